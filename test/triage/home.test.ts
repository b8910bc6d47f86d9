import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { verifyStore } from "../../functions/store/verify.ts";
import { askMessage, wordsOf } from "../../functions/triage/ask.ts";
import { readChatCommand } from "../../functions/triage/chat-words.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Actor, Mute, Place, WorkEvent } from "../../functions/triage/ports.ts";
import { expectLinear } from "../cpu-time.ts";
import { ALICE, Bench, BOB, CAROL, CHANNEL, configOf, MALLORY } from "./harness.ts";
import { healthy, RULE } from "./runbooks.ts";

/** What people see and do beside a triage: small commands, mutes, votes, the Home tab, the question for a node. */

const SYMPTOM = "conntrack-invalid-drops";
const ELSEWHERE = "C_ELSEWHERE";
let bench: Bench;
let runs = 0;
beforeEach(() => {
  bench = new Bench();
  runs = 0;
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

async function does(event: (incident: string) => WorkEvent): Promise<unknown> {
  const run = `run-${++runs}`;
  bench.engine.execute(run, event(run));
  await bench.pass(30);
  return bench.outcome(run);
}
const says = (actor: Actor, text: string, channel = CHANNEL): Promise<unknown> =>
  does((incident) => ({ kind: "command", request: { incident, requester: actor, place: { channel }, text } }));
const opensHome = (actor: Actor): Promise<unknown> =>
  does((incident) => ({ kind: "home", request: { incident, requester: actor, place: { channel: actor.id } } }));
const votes = (actor: Actor, vote: "right" | "wrong", about = "inc-1"): Promise<unknown> =>
  does((incident) => ({ kind: "feedback", request: { incident, requester: actor, place: { channel: CHANNEL }, about, vote } }));
const last = (actor: Actor): string => bench.chat.whispered(actor).at(-1) ?? "";
const homeOf = (actor: Actor): Readonly<Record<string, unknown>> => bench.chat.homes.findLast((one) => one.actor.id === actor.id)?.message.data ?? {};

describe("reading commands", () => {
  test.each<[string, unknown]>([
    ["status", { name: "status" }],
    [" RULES ", { name: "rules" }],
    ["history lab/node2", { name: "history", target: "lab/node2" }],
    [
      "mute nic-drops on node1 for 7d because the card is swapped on Monday",
      { name: "mute", rule: "nic-drops", target: "node1", minutes: 10_080, reason: "the card is swapped on Monday" },
    ],
    ["MUTE nic-drops ON node1 FOR 90D BECAUSE: because", { name: "mute", rule: "nic-drops", target: "node1", minutes: 129_600, reason: "because" }],
    ["unmute nic-drops on node1", { name: "unmute", rule: "nic-drops", target: "node1" }],
  ])("%s", (text, command) => expect(readChatCommand(text)).toEqual({ ok: true, command }));

  test.each([
    ["status now", "stands alone"],
    ["history", "which node"],
    ["history a b", "cannot be the name"],
    ["mute", "needs a rule, a node, a time and a reason"],
    ["mute nic-drops on node1 for 7d", "needs a reason"],
    ["mute nic-drops on node1 for 7d because  ", "needs a reason"],
    ["mute nic-drops on node1 for 91d because x", "90 days at most"],
    ["mute nic-drops on node1 for 130000m because x", "90 days at most"],
    ["mute nic-drops on node1 for ever because x", "is no time"],
    ["mute nic-drops on node1 for 0d because x", "is no time"],
    ["mute ../x on node1 for 1d because x", "cannot be the id of a rule"],
    ["mute nic-drops on $(id) for 1d because x", "cannot be the name of a target"],
    [`mute nic-drops on node1 for 1d because ${"x".repeat(301)}`, "may have 300 characters"],
    ["unmute nic-drops", "unmute conntrack-table-full on node1"],
    ["unmute nic-drops on node1 now", "unmute conntrack-table-full on node1"],
  ])("%s is not understood, and why is said", (text, why) => expect(readChatCommand(text)).toMatchObject({ ok: false, problem: expect.stringContaining(why) }));

  test("the person is told with the help", async () => {
    expect(await says(ALICE, "mute x")).toBe("help");
    expect(last(ALICE)).toContain("A mute needs a rule, a node, a time and a reason");
  });
});

describe("status and history", () => {
  test("what is open in this channel is shown to anybody there, elsewhere only to who asked and who may approve", async () => {
    await bench.ask();
    await says(MALLORY, "status");
    expect(last(MALLORY)).toContain("a fix is waiting for approval");
    expect(last(MALLORY)).toContain("https://chat.example/archives/C_INCIDENTS/");
    await says(MALLORY, "status", ELSEWHERE);
    expect(last(MALLORY)).toContain("No incident is open in this channel");
    for (const actor of [ALICE, BOB]) {
      await says(actor, "status", ELSEWHERE);
      expect(last(actor)).toContain("inc-1");
    }
  });

  test("an incident is open as long as it leaves something to look at", async () => {
    bench.node.capture = () => healthy;
    await bench.ask("node3", "inc-healthy");
    await bench.ask("node2", "inc-healthy-2");
    await says(ALICE, "status");
    expect(last(ALICE)).toContain("No incident is open");
  });

  test("a dismissed one is closed, and one that was looked at again is replaced", async () => {
    await bench.ask("node2", "inc-1");
    await bench.click("dismiss", BOB);
    await says(ALICE, "status");
    expect(last(ALICE)).toContain("No incident is open");
    bench.config = configOf([]);
    await bench.ask("node2", "inc-2");
    expect(bench.outcome("inc-2")).toBe("no-approver");
    await says(ALICE, "status");
    expect(last(ALICE)).toContain("inc-2");
    await bench.ask("node2", "inc-3");
    await says(ALICE, "status");
    expect(last(ALICE)).toContain("inc-3");
    expect(last(ALICE)).not.toContain("inc-2");
  });

  test("what could not be looked at stays open: that is not fine", async () => {
    bench.node.state = () => ({ state: "not-run", reason: "the agent is dead" });
    await bench.ask();
    expect(bench.outcome()).toBe("not-collected");
    await says(ALICE, "status");
    expect(last(ALICE)).toContain("inc-1");
  });

  test("history shows the triages of one node, newest first, by any of its names", async () => {
    bench.node.capture = () => healthy;
    await bench.ask("node2", "inc-1");
    await bench.ask("node3", "inc-2");
    await bench.pass(3600);
    await bench.ask("node2", "inc-3");
    await says(ALICE, "history i-2");
    const shown = last(ALICE);
    expect(shown.indexOf("inc-3")).toBeGreaterThan(0);
    expect(shown.indexOf("inc-3")).toBeLessThan(shown.indexOf("inc-1"));
    expect(shown).not.toContain("inc-2");
    expect(shown).toContain('"value":"lab/node2"');
    await says(MALLORY, "history node2", ELSEWHERE);
    expect(last(MALLORY)).toContain("No triage of");
    await says(ALICE, "history nod2");
    expect(last(ALICE)).toContain("Did you mean node2");
  });
});

describe("mutes", () => {
  const muteAll = async (actor: Actor = BOB, days = 7): Promise<void> => {
    await says(actor, `mute ${RULE} on node2 for ${days}d because the chains are <!channel> ours`);
    await says(actor, `mute ${SYMPTOM} on node2 for ${days}d because of the same`);
  };

  test("who may approve there may mute: on record, and shown wherever it hides something; never healthy, and nothing is proposed", async () => {
    await muteAll();
    expect(last(BOB)).toContain("is muted on node2 (lab) until");
    expect((await bench.events("muted")).map(({ actor, incident, data }) => [actor.id, incident, data["rule"], data["statement"]])).toEqual([
      [BOB.id, "mutes", RULE, "sre"],
      [BOB.id, "mutes", SYMPTOM, "sre"],
    ]);
    await bench.ask();
    expect(bench.outcome()).toBe("diagnosed");
    const drawn = bench.chat.drawn("inc-1/diagnosis");
    expect(drawn).toContain("no cause found but 2 muted findings");
    expect(drawn).toContain(`1 finding muted by <@${BOB.id}> until`);
    expect(drawn).toContain(RULE);
    expect(drawn).not.toMatch(/in order|white_check_mark|Right cause|<!channel>/);
    expect(bench.chat.drawn("inc-1/root")).toContain("no cause found but 2 muted findings");
    expect(bench.chat.uploads.get("inc-1/report")).toContain("## Muted");
    expect(bench.chat.uploads.get("inc-1/report")).toContain("KUBE-FORWARD");
    expect(await bench.store.proposal("inc-1-fix")).toBeUndefined();
    // evaluated, and kept, all the same
    expect(await bench.events("diagnosed")).toMatchObject([{ data: { verdict: "cause-found", causes: [RULE], muted: [SYMPTOM, RULE] } }]);
    await says(BOB, "status");
    expect(last(BOB)).toContain(RULE);
    await says(BOB, "history node2");
    expect(last(BOB)).toContain("no_bell");
  });

  test("a muted cause leaves its symptoms in sight", async () => {
    await says(BOB, `mute ${RULE} on node2 for 1d because so`);
    await bench.ask();
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("no cause found but 1 muted finding; there are symptoms");
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain(SYMPTOM);
  });

  test("it hides nothing on another node, nor after its time, nor after it was ended", async () => {
    await muteAll(BOB, 1);
    await bench.ask("node3", "inc-3");
    expect(bench.chat.drawn("inc-3/diagnosis")).toContain("Likely cause");
    await bench.pass(24 * 3600 + 60);
    await bench.ask("node2", "inc-4");
    expect(bench.chat.drawn("inc-4/diagnosis")).toContain("Likely cause");
    await muteAll(CAROL);
    await says(BOB, `unmute ${RULE} on node2`);
    expect(await bench.events("unmuted")).toMatchObject([{ actor: BOB, data: { rule: RULE, cluster: "lab", target: "node2" } }]);
    await bench.ask("node2", "inc-5");
    expect(bench.chat.drawn("inc-5/diagnosis")).toContain("Likely cause");
    await says(BOB, `unmute ${RULE} on node2`);
    expect(last(BOB)).toContain("is not muted");
  });

  test("mutes that are over hide none that is in force", async () => {
    for (let at = 0; at < 150; at++) {
      const over = { rule: "a", cluster: "lab", target: `a${at}`, by: BOB, at: "2025-01-01T00:00:00Z", until: "2025-01-02T00:00:00Z", reason: "x" };
      await bench.store.change("mute", `lab/a${at}/a`, () => over);
    }
    await says(BOB, `mute ${RULE} on node3 for 1d because so`);
    await says(BOB, "status");
    expect(last(BOB)).toMatch(new RegExp(`${RULE}.*node3.*muted by`));
    expect(last(BOB)).not.toContain("more mutes");
  });

  test("a later mute replaces the earlier one, and says so", async () => {
    await says(BOB, `mute ${RULE} on node2 for 1d because so`);
    await says(CAROL, `mute ${RULE} on lab/node2 for 2d because longer`);
    expect(last(CAROL)).toContain("It replaces the mute of");
    expect(await bench.store.list<Mute>("mute", { limit: 10 })).toMatchObject([{ value: { by: CAROL, reason: "longer" } }]);
  });

  test.each<[string, Actor, () => void, RegExp]>([
    ["nobody whom the policy does not name", MALLORY, () => undefined, /no policy statement names you/],
    [
      "nobody whom a statement denies everything",
      BOB,
      () => (bench.config = configOf([...allow(), { id: "not-bob", effect: "deny", approvers: [BOB.id] }])),
      /"not-bob" denies it/,
    ],
    [
      "nobody of whom a deny cannot be ruled out",
      ALICE,
      () =>
        (bench.config = configOf([
          { id: "all", effect: "allow", approvers: ["*"] },
          { id: "group", effect: "deny", approvers: ["S_GONE"] },
        ])),
      /"group" denies it to you, or that cannot be ruled out/,
    ],
    [
      "nobody whose group cannot be told",
      BOB,
      () => (bench.config = configOf([{ id: "x", effect: "allow", approvers: ["S_GONE"] }])),
      /it is not known whether you may/,
    ],
    [
      "nobody of other nodes",
      BOB,
      () => (bench.config = configOf([{ id: "x", effect: "allow", targets: ["node3"], approvers: ["S_SRE"] }])),
      /no policy statement names you/,
    ],
  ])("%s may mute or unmute", async (_what, actor, change, why) => {
    await bench.close();
    bench = new Bench((ports) => ({
      members: async (group) => {
        if (group === "S_GONE") throw new Error("no such group");
        return ports.members(group);
      },
    }));
    change();
    for (const text of [`mute ${RULE} on node2 for 1d because so`, `unmute ${RULE} on node2`]) {
      await says(actor, text);
      expect(last(actor)).toMatch(why);
    }
    expect(await bench.store.list("mute", { limit: 10 })).toEqual([]);
    expect(await bench.events("refused")).toHaveLength(2);
  });

  const allow = () => [{ id: "sre", effect: "allow", approvers: ["S_SRE"] }];

  test("a deny that is about some fixes, or some hours, is none of mutes", async () => {
    const window = { days: ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], from: "00:00", to: "23:00", timeZone: "UTC" };
    bench.config = configOf([
      ...allow(),
      { id: "freeze", effect: "deny", approvers: ["*"], freezeWindows: [window] },
      { id: "rough", effect: "deny", approvers: ["*"], risks: ["disruptive"] },
    ]);
    await says(BOB, `mute ${RULE} on node2 for 1d because so`);
    expect(last(BOB)).toContain("is muted");
  });

  test("an unknown rule or node mutes nothing, and the nearest are named", async () => {
    await says(BOB, `mute ${RULE}x on node2 for 1d because so`);
    expect(last(BOB)).toContain(`Did you mean ${RULE}`);
    await says(BOB, `mute ${RULE} on nod2 for 1d because so`);
    expect(last(BOB)).toContain("Did you mean node2");
    expect(await bench.store.list("mute", { limit: 10 })).toEqual([]);
  });
});

test("nobody from a workspace that is not served gets an answer, or a Home tab", async () => {
  const stranger: Actor = { id: "U_STRANGER", team: "T_LOCAL", home: "T_OTHER" };
  await bench.ask();
  for (const text of ["status", "history node2", `mute ${RULE} on node2 for 1d because so`]) expect(await says(stranger, text)).toBe("refused");
  expect(await opensHome(stranger)).toBe("refused");
  expect(await votes(stranger, "wrong")).toBe("refused");
  expect(bench.chat.whispered(stranger).join("\n")).not.toContain("inc-1");
  expect([bench.chat.homes, await bench.store.list("mute", { limit: 10 }), await bench.store.list("feedback", { limit: 10 })]).toEqual([[], [], []]);
});

test("an answer that goes astray is given again, and nothing is done twice", async () => {
  let first = true;
  bench.chat.trouble = (call) => {
    if (call !== "whisper" || !first) return;
    first = false;
    throw Object.assign(new Error("slack: ratelimited"), { retryable: true });
  };
  await says(BOB, `mute ${RULE} on node2 for 1d because so`);
  expect(last(BOB)).toContain("is muted on node2");
  expect(last(BOB)).not.toContain("It replaces");
  expect(await bench.events("muted")).toHaveLength(1);
});

describe("votes", () => {
  test("one for each person and incident, which may be changed; on record, and counted for the rule", async () => {
    await bench.ask();
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain('"action_id":"right"');
    await votes(BOB, "right");
    await votes(BOB, "right");
    await votes(MALLORY, "wrong");
    expect(last(MALLORY)).toContain("1 of 2 votes");
    await votes(MALLORY, "right");
    expect(last(MALLORY)).toMatch(/your vote was changed.*2 of 2 votes/s);
    expect((await bench.events("feedback")).map(({ actor, data }) => [actor.id, data["rule"], data["vote"], data["before"]])).toEqual([
      [BOB.id, RULE, "right", undefined],
      [MALLORY.id, RULE, "wrong", undefined],
      [MALLORY.id, RULE, "right", "wrong"],
    ]);
    await says(ALICE, "rules");
    expect(last(ALICE)).toMatch(new RegExp(`${RULE}.*right 2/2 \\(100 %\\)`));
  });

  test("without a cause there is nothing to vote on", async () => {
    bench.node.capture = () => healthy;
    await bench.ask();
    expect(bench.chat.drawn("inc-1/diagnosis")).not.toContain('"action_id":"right"');
    expect(await votes(BOB, "right")).toBe("failed");
    expect(last(BOB)).toContain("this diagnosis names no cause");
    expect(await votes(BOB, "right", "inc-none")).toBe("failed");
    await says(ALICE, "rules");
    expect(last(ALICE)).toContain("Nobody has said yet");
  });
});

describe("the Home tab", () => {
  test("shows what is the person's business, and what the person may do", async () => {
    await bench.ask();
    await says(BOB, `mute ${SYMPTOM} on node3 for 1d because so`);
    expect(await opensHome(BOB)).toBe("shown");
    expect(homeOf(BOB)).toMatchObject({
      approvals: [{ incident: "inc-1", proposal: "inc-1-fix", target: "node2", risk: "low" }],
      open: [{ incident: "inc-1", link: expect.stringContaining("https://") }],
      recent: [{ target: "node2", command: "lab/node2" }],
      mutes: [{ rule: SYMPTOM, target: "node3", by: BOB.id }],
      rights: [{ words: expect.stringContaining('You may approve every fix on all nodes of all clusters; not what you asked for yourself (statement "sre")') }],
    });
    await opensHome(MALLORY);
    expect(homeOf(MALLORY)).toMatchObject({ approvals: [], open: [], recent: [], mutes: [], rights: [] });
  });

  test("an approval from there is the one of the thread, and the tab is refreshed for who decided", async () => {
    await bench.ask();
    await opensHome(BOB);
    const place: Place = { channel: BOB.id };
    expect(await bench.click("approve", BOB, { place })).toBe("asked");
    expect(bench.chat.modals.at(-1)?.message.data["metadata"]).toContain(` ${BOB.id} - `);
    const drawn = bench.chat.homes.length;
    expect(await bench.click("confirm", BOB, { place })).toBe("approve");
    expect(bench.chat.homes.length).toBeGreaterThan(drawn);
    expect(homeOf(BOB)["approvals"]).toEqual([]);
    // who never opened it has none
    expect(bench.chat.homes.every((one) => one.actor.id === BOB.id)).toBe(true);
  });

  test.each([false, true])("what keeps it from being drawn is told there; an outage that may pass, and does not: %j", async (retryable) => {
    await bench.close();
    let reads = 0;
    const unreadable = Object.assign(new Error("the configuration could not be read"), { retryable });
    // once: whether the person is one of ours
    bench = new Bench((ports) => ({ config: () => (reads++ === 0 ? ports.config() : Promise.reject(unreadable)) }));
    await opensHome(BOB);
    await bench.pass(120);
    expect(bench.chat.homes.at(-1)?.message).toEqual({ template: "home-failed", data: { problem: "the configuration could not be read" } });
  });

  test("an approval that is late is not offered", async () => {
    await bench.ask();
    await bench.pass(3600 + 60);
    await opensHome(BOB);
    expect(homeOf(BOB)).toMatchObject({ approvals: [], open: [{ incident: "inc-1" }] });
  });

  test("is bounded with many incidents, nodes, mutes and statements", async () => {
    const policy = Array.from({ length: 60 }, (_, at) => ({ id: `statement-${at}`, effect: "allow", approvers: ["*"], clusters: ["lab"] }));
    bench.config = Config.parse({
      clusters: { lab: { transport: "replay", targets: Object.fromEntries(Array.from({ length: 40 }, (_, at) => [`n${at}`, {}])) } },
      policy,
    });
    for (let at = 0; at < 40; at++) {
      const incident = {
        id: `inc-${at}`,
        target: `n${at}`,
        cluster: "lab",
        requester: ALICE,
        createdAt: bench.ports.now().toISOString(),
        state: "failed",
      } as const;
      await bench.store.open(incident, { key: "incident-opened", at: incident.createdAt, actor: ALICE, type: "incident-opened", data: {} });
      await bench.store.change("open", `${incident.createdAt}/${incident.id}`, () => ({
        incident: incident.id,
        target: incident.target,
        cluster: "lab",
        requester: ALICE,
        createdAt: incident.createdAt,
      }));
      await bench.store.change("mute", `lab/n${at}/x`, () => ({
        rule: "x",
        cluster: "lab",
        target: `n${at}`,
        by: BOB,
        at: incident.createdAt,
        until: "2999-01-01T00:00:00Z",
        reason: "y",
      }));
    }
    await opensHome(MALLORY);
    const { open, openMore, recent, mutes, rights, rightsMore } = homeOf(MALLORY) as Record<string, unknown[]>;
    expect([open?.length, openMore, recent?.length, mutes?.length, rights?.length, rightsMore]).toEqual([10, 30, 8, 8, 10, 50]);
  });

  test("if it cannot be drawn it says why; if Slack does not take it, no decision suffers", async () => {
    bench.node.capture = () => healthy;
    await opensHome(BOB);
    await bench.close();
    bench = new Bench(() => ({
      config: async () => {
        throw new Error("netcheck.yaml:3:1: it is not valid");
      },
    }));
    expect(await opensHome(BOB)).toBe("failed");
    await bench.close();
    bench = new Bench();
    await bench.ask();
    await opensHome(BOB);
    bench.chat.trouble = (call) => {
      if (call === "home") throw new Error("slack: not_enabled");
    };
    expect(await bench.click("confirm", BOB)).toBe("approve");
    expect(bench.logged.join("\n")).toContain("a Home tab could not be refreshed");
  });
});

describe("the question for a node", () => {
  const asks = (triggerId: string | undefined) =>
    does((incident) => ({ kind: "ask", request: { incident, requester: ALICE, place: { channel: CHANNEL, responseUrl: "https://hooks/1" }, triggerId } }));

  test("lists the targets of the configuration by cluster, and knows where to answer", async () => {
    expect(await asks("trigger")).toBe("asked");
    expect(bench.chat.modals.at(-1)?.message).toMatchObject({
      template: "ask",
      data: {
        groups: [{ group: "lab", options: [{ name: "node2", command: "lab/node2" }, { name: "node3" }] }],
        metadata: `${CHANNEL} - https://hooks/1`,
        more: 0,
      },
    });
  });

  test("nodes that were found by tags and labels are listed the next time; the modal never waits for them", async () => {
    await bench.close();
    const target = { name: "found-1", cluster: "lab", transport: "ssm", address: "i-9" };
    let listed = 0;
    bench = new Bench((ports) => ({
      targets: {
        resolve: (name) => ports.targets.resolve(name),
        all: async () => {
          listed += bench.chat.modals.length;
          return { called: [{ target, names: ["found-1", "i-9"] }] };
        },
      },
    }));
    await asks("trigger");
    expect(listed).toBe(1);
    expect(JSON.stringify(bench.chat.modals.at(-1)?.message.data)).not.toContain("found-1");
    await asks("trigger");
    expect(JSON.stringify(bench.chat.modals.at(-1)?.message.data)).toContain("lab/found-1");
  });

  test("too late for a window: the person is told how to ask", async () => {
    await asks(undefined);
    expect(last(ALICE)).toContain("could not be opened in time");
  });

  test("5,000 targets: what fits is listed, the rest can be typed", () => {
    const all = Array.from({ length: 5000 }, (_, at) => `lab/node-${String(at).padStart(4, "0")}`);
    const { data } = askMessage(all, { channel: CHANNEL });
    const groups = data["groups"] as { group: string; options: unknown[] }[];
    expect(groups.map(({ group, options }) => [group, options.length])).toEqual([
      ["lab", 100],
      ["lab (2)", 100],
      ["lab (3)", 100],
    ]);
    expect(data["more"]).toBe(4700);
    expect(JSON.stringify(groups).length).toBeLessThan(30_000);
  });
});

describe("a message that names a node", () => {
  const triages = (text: string, actor: Actor = ALICE) =>
    does((incident) => ({
      kind: "message-triage",
      request: { incident, requester: actor, place: { channel: CHANNEL, thread: "0.500", fresh: true }, triggerId: "trigger", text },
    }));

  test.each(["FIRING: node2 drops packets", "node2.", "(NODE2)", "instance=i-2, severity=critical", "`lab/node2`", "http://node2:9100/metrics"])(
    "%s: its triage in that thread",
    async (text) => {
      expect(await triages(text)).toBe("started");
      await bench.pass(60);
      const [incident] = await bench.store.incidents(1);
      expect(incident).toMatchObject({ target: "node2", requester: ALICE, thread: { thread: "0.500" } });
    },
  );

  test("several: which one, with buttons that keep the thread", async () => {
    expect(await triages("node2 cannot reach node3")).toBe("several");
    expect(last(ALICE)).toContain("Several targets are named in that message");
    expect(last(ALICE)).toContain('"value":"lab/node2 @0.500"');
  });

  test("none: the modal, which says so", async () => {
    expect(await triages("is something wrong with 10.0.0.9 or node22?")).toBe("none");
    expect(bench.chat.modals.at(-1)?.message.data["problem"]).toContain("No target that netcheck knows");
    expect(await bench.store.incidents(1)).toEqual([]);
  });

  test("a list that could not be had is said: it may be there", async () => {
    await bench.close();
    bench = new Bench((ports) => ({
      targets: { resolve: (name) => ports.targets.resolve(name), all: async () => ({ called: [], problem: "ssm: AccessDenied" }) },
    }));
    expect(await triages("found-1 is slow")).toBe("none");
    expect(bench.chat.modals.at(-1)?.message.data["problem"]).toContain("ssm: AccessDenied");
  });

  test("an address that could not be looked up is said, too", async () => {
    await bench.close();
    bench = new Bench(({ targets }) => ({ targets: { all: () => targets.all(), resolve: () => Promise.reject(new Error("ssm: Throttling")) } }));
    expect(await triages("10.0.0.9 is slow")).toBe("none");
    expect(bench.chat.modals.at(-1)?.message.data["problem"]).toContain("as far as it can be told: ssm: Throttling");
  });

  test("any text is read in time", () => {
    expectLinear(
      (size) => "a.".repeat(size),
      (text) => expect(wordsOf(text).length).toBeLessThan(10),
      20_000,
    );
    expectLinear(
      (length) => Array.from({ length }, (_, at) => `w${at}`).join(" "),
      (text) => expect(wordsOf(text)).toHaveLength(1000),
      5000,
    );
  });
});
