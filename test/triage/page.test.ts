import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KnownAlert } from "../../functions/triage/page-alert.ts";
import { alertOf, PAGES, PageBench, pagesConfig } from "./page-bench.ts";

/** Deliveries of monitoring systems, at the whole workflow: what is told, what is examined, and what is not. */

let bench: PageBench;
beforeEach(() => {
  bench = new PageBench();
  bench.config = pagesConfig();
});
afterEach(async () => bench.close());

const T0 = Date.parse("2026-01-01T00:00:00Z");
const minutes = (n: number): string => new Date(T0 + n * 60_000).toISOString();
const known = async (key = "a1"): Promise<KnownAlert | undefined> => bench.store.kept<KnownAlert>("alert", `generic/${key}`);

describe("a new alert", () => {
  test("is one message, its node is examined in the thread, and the message says what was found", async () => {
    expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("started");
    const [root] = bench.roots() as [string];
    expect(bench.chat.posts.get(root)?.place).toEqual({ channel: PAGES });
    const { "lab/node2": id } = await bench.triages();
    const thread = { channel: PAGES, thread: bench.chat.posts.get(root)?.ref.ts };
    expect(bench.chat.posts.get(`${id}/root`)?.place).toEqual(thread);
    expect(bench.chat.drawn(`${id}/because`)).toContain("A page asked for it: NodeNotReady &lt;!channel&gt;");
    expect(await bench.incident(id)).toMatchObject({ requester: { id: "pager" }, state: "awaiting-approval" });
    expect(bench.root()).toMatch(/NodeNotReady.*firing · 1 node, 1 triage.*lab\/node2.*likely cause found/s);
    expect(await known()).toMatchObject({ status: "firing", times: 1, incidents: [id], thread: { channel: PAGES } });
  });

  test("the very same delivery, come again, changes nothing", async () => {
    await bench.deliver([alertOf()], { id: "same" });
    const posts = bench.chat.posts.size;
    bench.engine.execute("another-name", { kind: "page", page: { source: "generic", id: "same", alerts: [alertOf()], more: 0 } });
    await bench.pass(60);
    expect([bench.chat.posts.size, (await known())?.times]).toEqual([posts, 1]);
  });

  test("that names no node is explained, and nothing is examined", async () => {
    expect(bench.outcome(await bench.deliver([alertOf({ labels: { job: "api" } })]))).toBe("told");
    expect(bench.root()).toMatch(/0 nodes, 0 triages.*it names no node: there is none in node, .*instance\. A route of netcheck\.yaml/s);
    expect(await bench.triages()).toEqual({});
  });

  test.each([
    ["a node that there is not", { node: "node22" }, "node22: netcheck knows no node of that name; there is node2"],
    ["a name of two nodes", { node: "web" }, "web: that may be lab/web or edge/web; a route of netcheck.yaml can say which cluster"],
    ["a cluster that there is not", { node: "node2", cluster: "mars" }, "it is of the cluster “mars”, which netcheck.yaml does not have"],
    ["a node of another cluster", { node: "edge1", cluster: "lab" }, "edge1: there is no such node in lab, but in edge"],
  ])("of %s is explained, and nothing is examined", async (_, labels, words) => {
    await bench.deliver([alertOf({ labels })]);
    expect(bench.root()).toContain(words);
    expect(await bench.triages()).toEqual({});
  });

  test("of a cluster's node is examined there", async () => {
    await bench.deliver([alertOf({ labels: { node: "web", cluster: "edge" } })]);
    expect(Object.keys(await bench.triages())).toEqual(["edge/web"]);
  });

  test("without a channel for pages nothing is started, and the log says what is missing", async () => {
    const { pages: _, ...without } = pagesConfig();
    bench.config = without;
    expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("no-channel");
    expect(bench.logged.join("\n")).toContain("pages.channel");
    expect(bench.chat.posts.size).toBe(0);
  });
});

describe("the cool-down", () => {
  test("an alert that still fires is not examined again before it is over, and then it is", async () => {
    await bench.deliver([alertOf()]);
    expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("nothing-new");
    await bench.pass(31 * 60);
    expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("started");
    expect([bench.roots().length, (await known())?.times, (await known())?.incidents.length]).toEqual([2, 2, 2]);
  });

  test("it is per node: another node of the same alert is examined at once, in the same message", async () => {
    await bench.deliver([alertOf()]);
    expect(bench.outcome(await bench.deliver([alertOf({ labels: { node: "node2,node3" } })]))).toBe("started");
    expect(Object.keys(await bench.triages()).sort()).toEqual(["lab/node2", "lab/node3"]);
    expect(bench.roots()).toHaveLength(1);
  });

  test("one that flaps is examined once; the message shows how it stands", async () => {
    await bench.deliver([alertOf()]);
    await bench.deliver([alertOf({ status: "resolved", at: minutes(2) })]);
    expect(bench.outcome(await bench.deliver([alertOf({ at: minutes(3) })]))).toBe("changed");
    expect(bench.root()).toContain("firing · 1 node, 1 triage");
    expect((await known())?.times).toBe(1);
  });

  test("a delivery that waits for a message which its poster could not post, posts it", async () => {
    let posts = 0;
    bench.chat.trouble = (call) => {
      if (call === "post" && ++posts === 1) throw new Error("internal_error");
    };
    const names = [bench.send([alertOf()]), bench.send([alertOf({ key: "a2", labels: { node: "node3" } })])];
    await bench.pass(60);
    expect(names.map((name) => bench.outcome(name))).toEqual(["FAILED", "started"]);
    expect(bench.root()).toContain("lab/node3");
  });

  test("of a page that nobody could be told, the next delivery counts as the first", async () => {
    bench.chat.trouble = (call) => {
      if (call === "post") throw new Error("not_in_channel");
    };
    expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("FAILED");
    expect(bench.logged.join("\n")).toContain("a page could not be told");
    bench.chat.trouble = () => undefined;
    expect(bench.outcome(await bench.deliver([alertOf()], {}, 120))).toBe("started");
    expect(Object.keys(await bench.triages())).toEqual(["lab/node2"]);
  });
});

describe("an alert that is over", () => {
  test("is shown, told in the thread once, and closes what belongs to it", async () => {
    const closed: unknown[] = [];
    const start = bench.ports.work.start.bind(bench.ports.work);
    bench.ports.work.start = async (name, event) => (event.kind === "close-page" ? void closed.push(event.closing) : start(name, event));
    await bench.deliver([alertOf(), alertOf({ key: "a2", title: "Second", labels: { node: "node3" } })]);
    expect(bench.outcome(await bench.deliver([alertOf({ status: "resolved", at: minutes(5) })]))).toBe("changed");
    expect(bench.root()).toContain("1 firing · 1 resolved");
    expect(closed).toEqual([{ source: "generic", key: "a1", title: "NodeNotReady <!channel>", at: minutes(5) }]);
    await bench.deliver([alertOf({ key: "a2", title: "Second", labels: { node: "node3" }, status: "resolved", at: minutes(6) })]);
    const [root] = bench.roots() as [string];
    expect(bench.chat.drawn(root.replace("root", "resolved"))).toContain("All 2 alerts of this page are resolved.");
    expect(bench.root()).toContain("white_check_mark");
  });

  test("before its message was posted is shown and closed all the same", async () => {
    const closed: string[] = [];
    const start = bench.ports.work.start.bind(bench.ports.work);
    bench.ports.work.start = async (name, event) => (event.kind === "close-page" ? void closed.push(event.closing.key) : start(name, event));
    let tries = 0;
    bench.chat.trouble = (call) => {
      if (call === "post" && ++tries === 1) throw Object.assign(new Error("ratelimited"), { retryable: true });
    };
    bench.send([alertOf()]);
    await bench.pass(0);
    expect(bench.outcome(bench.send([alertOf({ status: "resolved", at: minutes(0.1) })]))).toBeDefined();
    await bench.pass(60);
    expect([closed, (await known())?.status]).toEqual([["a1"], "resolved"]);
    expect(bench.root()).toContain("resolved · 1 node, 1 triage");
  });

  test("that never fired here is no news", async () => {
    expect(bench.outcome(await bench.deliver([alertOf({ status: "resolved" })]))).toBe("nothing-new");
    expect(bench.chat.posts.size).toBe(0);
  });

  test("stays over if an older delivery arrives late", async () => {
    await bench.deliver([alertOf()]);
    await bench.deliver([alertOf({ status: "resolved", at: minutes(5) })]);
    expect(bench.outcome(await bench.deliver([alertOf({ status: "acknowledged", at: minutes(3) })]))).toBe("nothing-new");
    expect((await known())?.status).toBe("resolved");
  });

  test("an acknowledgement is shown, and examines nothing", async () => {
    await bench.deliver([alertOf()]);
    await bench.deliver([alertOf({ status: "acknowledged", at: minutes(2) })]);
    expect(bench.root()).toContain("acknowledged · 1 node, 1 triage");
    expect(Object.keys(await bench.triages())).toHaveLength(1);
  });
});

describe("a storm", () => {
  test("37 alerts about 7 nodes are one message and five triages; the rest is named", async () => {
    const alerts = Array.from({ length: 37 }, (_, n) =>
      alertOf({ key: `k${n}`, title: `Alert ${n}`, labels: { node: `node${2 + (n % 7)}` }, severity: n === 36 ? "critical" : "info" }),
    );
    await bench.deliver(alerts, { more: 4 });
    expect(Object.keys(await bench.triages())).toHaveLength(5);
    const words = bench.root();
    expect(words).toContain("41 alerts, 7 nodes, 5 triages");
    expect(words).toContain("Alert 36");
    expect(words).toContain("and 31 more alerts");
    expect(words).toMatch(/Not examined, because 5 are: lab\/node7, lab\/node8\./);
  });

  test("500 deliveries within a minute are one message, few edits, and five triages", async () => {
    for (let minute = 0; minute < 60; minute += 6) {
      for (let n = 0; n < 50; n++) bench.send([alertOf({ key: `k${minute}-${n}`, title: `Alert ${minute}-${n}`, labels: { node: `node${2 + (n % 8)}` } })]);
      await bench.pass(6);
    }
    await bench.pass(120);
    const [root] = bench.roots() as [string];
    const edits = bench.chat.updates.filter(({ ref }) => ref.ts === bench.chat.posts.get(root)?.ref.ts).length;
    expect(bench.root()).toContain("500 alerts, 8 nodes, 5 triages");
    expect(Object.keys(await bench.triages())).toHaveLength(5);
    expect(edits).toBeLessThan(30);
  });

  test("what comes after the window is another message", async () => {
    await bench.deliver([alertOf()]);
    await bench.pass(5 * 60);
    await bench.deliver([alertOf({ key: "a2", labels: { node: "node3" } })]);
    expect(bench.roots()).toHaveLength(2);
  });
});

describe("routes", () => {
  test("choose channel, cluster and names; the first that fits counts", async () => {
    bench.config = pagesConfig({
      routes: [
        { match: { labels: { alertname: "Watchdog" } }, triage: false },
        { match: { source: "pagerduty" }, channel: "C0OTHER", cluster: "lab", targets: [{ label: "title", regex: "on (\\S+) is" }] },
      ],
    });
    await bench.deliver([alertOf({ key: "w", labels: { alertname: "Watchdog", node: "node3" } })]);
    expect(bench.chat.posts.size).toBe(0);
    await bench.deliver([alertOf({ title: "kubelet on web is down", labels: {} })], { source: "pagerduty" });
    expect(bench.chat.posts.get(bench.roots()[0] as string)?.place.channel).toBe("C0OTHER");
    expect(Object.keys(await bench.triages())).toEqual(["lab/web"]);
  });

  test("alerts of one delivery for two channels are two messages; trouble in one is none of the other", async () => {
    bench.config = pagesConfig({ routes: [{ match: { severity: "critical" }, channel: "C0CRIT" }] });
    let posts = 0;
    bench.chat.trouble = (call) => {
      if (call === "post" && ++posts === 1) throw new Error("not_in_channel");
    };
    const name = await bench.deliver([alertOf({ severity: "critical" }), alertOf({ key: "a2", labels: { node: "node3" } })]);
    expect([bench.outcome(name), Object.keys(await bench.triages())]).toEqual(["FAILED", ["lab/node3"]]);
  });

  test("a critical alert that nobody takes on is escalated; of a storm no more than are examined", async () => {
    const escalations: { key: string; afterMinutes: number }[] = [];
    const start = bench.ports.work.start.bind(bench.ports.work);
    bench.ports.work.start = async (name, event) => (event.kind === "escalate" ? void escalations.push(event.escalation) : start(name, event));
    bench.config = pagesConfig({ maxTargets: 2, routes: [{ escalate: { after: "10m", by: "dm", to: "U0BOB" }, onCall: { by: "slack", schedule: "S0CALL" } }] });
    await bench.deliver(Array.from({ length: 9 }, (_, n) => alertOf({ key: `k${n}`, severity: n < 5 ? "critical" : "warning" })));
    expect(escalations.map(({ key, afterMinutes }) => [key, afterMinutes])).toEqual([
      ["k0", 10],
      ["k1", 10],
    ]);
    expect(escalations[0]).toMatchObject({ by: "dm", to: "U0BOB", onCall: { by: "slack", schedule: "S0CALL" }, place: { channel: PAGES } });
  });
});
