import { afterEach, describe, expect, test } from "vitest";
import { parseNodes } from "../../functions/slack/listeners/nodes-command.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { loadFleet } from "../../functions/triage/fleet-report.ts";
import { FleetBench, pool } from "./fleet-bench.ts";
import { ALICE, BOB, CHANNEL } from "./harness.ts";
import { fault, healthy, otherFault, RULE, root } from "./runbooks.ts";

/** `/netcheck nodes …` from the words to the message, the table and single nodes. */

let bench: FleetBench;
afterEach(() => bench.close());

/** As typed. */
function ask(words: string) {
  const parsed = parseNodes(words);
  if (parsed?.kind !== "nodes") throw new Error(`not understood: ${words}`);
  return parsed.ask;
}

const data = () =>
  bench.chat.data("inc-1/root") as {
    headline: string;
    groups: { words: string; names: string; detail: string; buttons: { label: string; command: string; primary: boolean }[] }[];
    notes: string;
    icon: string;
  };

describe("many nodes", () => {
  async function forty(count = 8): Promise<void> {
    bench = new FleetBench(pool(count));
    bench.nodes.captures.set("node7", fault).set("node23", fault).set("node30", otherFault);
    bench.nodes.silent.set(count < 12 ? "node2" : "node12", `replay: could not start ${count < 12 ? "node2" : "node12"}: its agent does not answer`);
    expect(await bench.fleet(ask("nodes pool=blue"))).toBe("diagnosed");
  }

  test("one message, grouped by cause, with a button per node and the table as files", async () => {
    await forty(40);
    expect([...bench.chat.posts.keys()]).toEqual(["inc-1/root"]);
    const { headline, groups, icon } = data();
    expect(headline).toBe(
      `36 healthy · 2 same cause: ${bench.catalogue.rules.get(RULE)?.file.title} · 1: ${bench.catalogue.rules.get("linklocal-route-on-bond-member")?.file.title} · 1 could not be looked at`,
    );
    expect(icon).toBe("red_circle");
    expect(groups.map(({ words, names }) => [words, names])).toEqual([
      ["2 nodes have the same cause", "node7, node23"],
      ["1 node has a cause", "node30"],
      ["1 node could not be looked at, which says nothing about its network", "node12"],
      ["36 nodes without a cause: everything that was checked is in order", expect.stringMatching(/^node1, node2, node3/)],
    ]);
    expect(groups[2]?.detail).toBe("replay: could not start the node: its agent does not answer");
    expect(groups[0]?.buttons.map(({ label, command }) => [label, command])).toEqual([
      ["node7", "nodes show inc-1 lab/node7"],
      ["node23", "nodes show inc-1 lab/node23"],
      ["Fix one node first…", `nodes fix inc-1 ${RULE}`],
    ]);
    expect(groups[1]?.buttons.at(-1)).toMatchObject({ label: "Examine node30 for its fix", command: "lab/node30" });
    const csv = bench.chat.uploads.get("inc-1/table.csv") ?? "";
    expect(csv.trim().split("\r\n")).toHaveLength(41);
    expect(csv.split("\r\n")[1]).toMatch(new RegExp(`^node7,lab,cause-found,${RULE},`));
    expect(bench.chat.uploads.get("inc-1/table.md")).toContain("| node12 | lab | not-collected |");
    expect(await bench.incident()).toMatchObject({ state: "diagnosed", target: "nodes pool=blue", nodes: 40 });
    expect(await verifyStore(bench.store)).toEqual([]);
  });

  test("a node's button brings its diagnosis, once, without collecting again", async () => {
    await forty();
    const before = bench.nodes.started.length;
    const place = { channel: CHANNEL, thread: "1.000" };
    expect(await bench.fleet(ask("nodes show inc-1 lab/node7"), { incident: "inc-2", place })).toBe("shown");
    expect([...bench.chat.posts.values()].slice(1).map(({ message, place: at }) => [message.template, at.thread])).toEqual([
      ["fleet-node", "1.000"],
      ["diagnosis", "1.000"],
    ]);
    expect([...bench.chat.posts.values()].at(-1)?.message.data).toMatchObject({ again: false, cause: { rule: RULE } });
    expect(bench.nodes.started).toHaveLength(before);
    expect(await bench.fleet(ask("nodes show inc-1 node7"), { incident: "inc-3", place, requester: BOB })).toBe("shown-before");
    expect(bench.chat.posts.size).toBe(3);
    expect(bench.chat.whispered(BOB)[0]).toContain("is in this thread already");
  });

  test("of a node that could not be looked at the reason is shown", async () => {
    await forty();
    expect(await bench.fleet(ask("nodes show inc-1 lab/node2"), { incident: "inc-2" })).toBe("shown");
    expect([...bench.chat.posts.values()].at(-1)?.message.data).toMatchObject({
      words: expect.stringContaining("could not be looked at"),
      reason: expect.stringContaining("agent"),
    });
  });

  test.each([
    ["another channel learns nothing", "nodes show inc-1 lab/node7", { channel: "C_ELSEWHERE" }, 'There is no run "inc-1" of many nodes in this channel'],
    ["a node that was not in it", "nodes show inc-1 lab/node77", { channel: CHANNEL }, "lab/node77 is not among the nodes of inc-1"],
    ["a run that does not exist", "nodes show inc-9 lab/node7", { channel: CHANNEL }, 'There is no run "inc-9"'],
  ])("%s", async (_what, words, place, said) => {
    await forty();
    expect(await bench.fleet(ask(words), { incident: "inc-2", place })).toBe("unknown");
    expect(bench.chat.whispered(ALICE).at(-1)).toContain(said.replaceAll('"', '\\"').slice(0, 12));
    expect(bench.chat.posts.size).toBe(1);
  });
});

test("edits of the progress: one per batch at most, one a second at most, and they count", async () => {
  bench = new FleetBench(pool(40, ""));
  expect(await bench.fleet(ask("nodes node*"))).toBe("diagnosed");
  const shown = bench.chat.updates.map(({ message }) => message.data);
  const running = shown.filter((one) => one["running"] === true);
  // the clock of the test does not move while batches end: one edit is all that a second takes
  expect(running).toHaveLength(1);
  expect(running[0]).toMatchObject({ total: 40, done: 10, bar: "█████░░░░░░░░░░░░░░░" });
  expect(shown.at(-1)).toMatchObject({ running: false, headline: "40 healthy" });
  expect(bench.chat.posts.size).toBe(1);
});

test("progress goes on as time does, and an edit that fails costs nothing", async () => {
  bench = new FleetBench(pool(30));
  let refused = 0;
  let now = 0;
  Object.assign(bench.ports, {
    now: () => {
      now += 2000;
      return new Date(Date.UTC(2026, 0, 1) + now);
    },
  });
  bench.chat.trouble = (call) => {
    if (call === "update" && ++refused === 1) throw new Error("slack: ratelimited");
  };
  expect(await bench.fleet(ask("nodes pool=blue"))).toBe("diagnosed");
  const done = bench.chat.updates.filter(({ message }) => message.data["running"] === true).map(({ message }) => Number(message.data["done"]));
  expect(done.length).toBeGreaterThan(1);
  expect(done).toEqual(done.toSorted((a, b) => a - b));
  expect(bench.logged.filter((line) => line.includes("progress could not be shown"))).toHaveLength(1);
});

describe("not clear enough", () => {
  test("all of them asks once more, with a button that says how many", async () => {
    bench = new FleetBench(pool(12));
    expect(await bench.fleet(ask("nodes all"))).toBe("unclear");
    expect(bench.nodes.started).toEqual([]);
    const { message } = bench.chat.whispers[0] ?? {};
    expect(message?.data).toMatchObject({ choices: [{ label: "Examine 12 nodes", command: "nodes all confirm=12" }] });
    expect(await bench.fleet(ask("nodes all confirm=12"), { incident: "inc-2" })).toBe("diagnosed");
    expect(bench.chat.data("inc-2/root")["headline"]).toBe("12 healthy");
  });

  test("a name that is not known, with the nearest as a button; nothing is looked at", async () => {
    bench = new FleetBench(pool(5));
    expect(await bench.fleet(ask("nodes node1,nod2"))).toBe("unclear");
    expect(bench.nodes.started).toEqual([]);
    expect(bench.chat.whispers[0]?.message.data).toMatchObject({
      choices: expect.arrayContaining([expect.objectContaining({ command: "nodes node1 node2" })]),
    });
  });

  test("the store fails: told once, and on record", async () => {
    bench = new FleetBench(pool(3));
    const put = bench.store.put.bind(bench.store);
    bench.store.put = async (key, value) => {
      if (key.endsWith("/result")) throw new Error("the disk is full");
      return put(key, value);
    };
    expect(await bench.fleet(ask("nodes pool=blue"))).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toContain("the disk is full");
    expect((await bench.incident()).state).toBe("failed");
  });
});

test("the one that is not like its pool is found among nodes without a cause, and compared", async () => {
  bench = new FleetBench({ "blue-1": "blue", "blue-2": "blue", "blue-3": "blue", "blue-4": "blue" });
  for (const number of [1, 2, 3, 4]) bench.nodes.captures.set(`blue-${number}`, await readCaptureFiles(`${root}/functions/local/pool/blue-${number}.tgz`));
  expect(await bench.fleet(ask("nodes pool=blue"))).toBe("diagnosed");
  const { headline, groups } = data();
  expect(headline).toMatch(/1 unlike its pool$/);
  expect(groups[0]).toMatchObject({ words: "1 node without a cause that netcheck knows, but unlike its pool", names: "blue-3" });
  const { odd } = await loadFleet(bench.ports, "inc-1");
  expect(odd.find(({ node }) => node === "lab/blue-3")).toMatchObject({ peers: expect.arrayContaining(["blue-1"]), worth: 2 });
  await bench.fleet(ask("nodes show inc-1 lab/blue-3"), { incident: "inc-2" });
  expect([...bench.chat.posts.values()].map(({ message }) => message.template)).toEqual(["fleet", "fleet-node", "diagnosis", "comparison"]);
});

test("hostile names and reasons stay text: no mention, no formula, no broken table", async () => {
  bench = new FleetBench(pool(2));
  bench.nodes.silent.set("node1", '=cmd|"/c calc" <!channel> `x` | a\nb');
  bench.nodes.captures.set("node2", healthy);
  expect(await bench.fleet(ask("nodes pool=blue"))).toBe("diagnosed");
  expect(bench.chat.drawn("inc-1/root")).not.toContain("<!channel>");
  const csv = bench.chat.uploads.get("inc-1/table.csv") ?? "";
  expect(csv.split("\r\n")).toHaveLength(4);
  expect(csv).toContain(`"'=cmd|""/c calc""`);
  const table = (bench.chat.uploads.get("inc-1/table.md") ?? "").split("\n").filter((line) => line.startsWith("| node"));
  expect(table.map((line) => line.replaceAll(/\\./g, "").split("|").length)).toEqual([9, 9, 9]);
});

test("what somebody muted on a node is not counted, shown nor fixed there, and makes it no healthy node", async () => {
  bench = new FleetBench(pool(4, ""));
  for (const name of ["node1", "node2", "node3"]) bench.nodes.captures.set(name, fault);
  const until = new Date(bench.clock.now() + 86_400_000).toISOString();
  for (const rule of [RULE, "conntrack-invalid-drops"]) {
    const mute = { rule, cluster: "lab", target: "node2", by: BOB, at: until, until, reason: "known" };
    await bench.store.change("mute", `lab/node2/${rule}`, () => mute);
  }
  expect(await bench.fleet(ask("nodes node*"))).toBe("diagnosed");
  expect(data().groups.map(({ words, names }) => [words, names])).toEqual([
    ["2 nodes have the same cause", "node1, node3"],
    ["1 node where all that was found is muted", "node2"],
    ["1 node without a cause: everything that was checked is in order", "node4"],
  ]);
});
