import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readShown } from "../../functions/slack/listeners/approval-view.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { commandTexts } from "../../functions/triage/command-text.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Actor, Message } from "../../functions/triage/ports.ts";
import { ALICE, Bench, BOB, CAROL, configOf, MALLORY } from "./harness.ts";
import { intercept } from "./intercept.ts";

/** The modal before an approval, what is sent off with it, broken glasses and their review: as people see them, and what is on record. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const modal = (): Message["data"] => bench.chat.modals.at(-1)?.message.data ?? {};
const buttons = () => bench.chat.drawn("inc-1-fix/proposal").includes('"action_id":"approve"');
/** The one fix of this node as one that may break traffic. */
function disruptive(): void {
  const fixes = new Map([...bench.catalogue.fixes].map(([id, fix]) => [id, { ...fix, file: { ...fix.file, risk: "disruptive" as const } }]));
  bench.catalogue = { ...bench.catalogue, fixes };
}
/** Only Bob may approve; Carol may break the glass. */
const GLASS = [{ id: "prod", effect: "allow", approvers: [BOB.id], breakGlass: { who: [CAROL.id] } }];

describe("the modal", () => {
  test("shows all that is to be known, to whoever may approve, and decides nothing", async () => {
    await bench.ask();
    expect(await bench.click("approve", BOB)).toBe("asked");
    const { hash } = await bench.proposal();
    expect(bench.chat.modals).toMatchObject([{ actor: BOB }]);
    expect(modal()).toMatchObject({
      ask: true,
      target: "node2",
      cluster: "lab",
      commands: [expect.stringContaining("-I FORWARD 1")],
      commandsMore: 0,
      check: expect.stringContaining("CILIUM_FORWARD"),
      back: [expect.stringContaining("-A FORWARD")],
      evidence: [{ lines: expect.stringContaining("KUBE-FORWARD") }],
      sideEffects: [expect.any(String)],
      requester: ALICE.id,
      approved: [],
      needed: 1,
      typed: false,
      reason: false,
      submit: "Approve & run",
    });
    expect(readShown(String(modal()["metadata"]))).toEqual({
      incident: "inc-1",
      proposal: "inc-1-fix",
      hash,
      channel: "C_INCIDENTS",
      thread: "1.000",
      typed: false,
      reason: false,
      target: "node2",
    });
    expect([(await bench.proposal()).state, bench.node.fixRuns, buttons()]).toEqual(["pending", 0, true]);
    expect(await bench.events("previewed")).toMatchObject([{ actor: BOB, data: { proposal: "inc-1-fix", hash } }]);
    // where the modal sends people for what it has no room for
    expect(bench.chat.uploads.get("inc-1/report")).toMatch(/To undo it:\n\n {4}iptables-restore/);
  });

  test.each([ALICE, MALLORY])("whoever may not ($id) sees none, and is told by which statement", async (actor) => {
    await bench.ask();
    expect(await bench.click("approve", actor)).toBe("refused");
    expect(bench.chat.modals).toEqual([]);
    expect(bench.chat.whispered(actor).join()).toMatch(/You cannot approve this: .*(statement \\"sre\\"|no policy statement)/);
    expect(await bench.events("refused")).toMatchObject([{ actor, data: { decision: "approve", statement: actor === ALICE ? "sre" : "default" } }]);
  });

  test("the preview is the same without a way to approve", async () => {
    await bench.ask();
    expect(await bench.click("preview", MALLORY)).toBe("previewed");
    expect(modal()).toMatchObject({ ask: false, metadata: "", commands: [expect.stringContaining("-I FORWARD 1")] });
    await bench.click("preview", BOB);
    expect(modal()).toMatchObject({ ask: false, metadata: "" });
  });

  test("a disruptive fix asks for the node's name", async () => {
    disruptive();
    await bench.ask();
    await bench.click("approve", BOB);
    expect(modal()).toMatchObject({ typed: true, disruptive: true });
    expect(readShown(String(modal()["metadata"]))).toMatchObject({ typed: true, reason: false, target: "node2" });
  });

  test("too late for Slack: told to click again, and that nothing was decided", async () => {
    await bench.ask();
    await bench.click("approve", BOB, { triggerId: undefined });
    expect(bench.chat.modals).toEqual([]);
    expect(bench.chat.whispered(BOB)).toEqual([expect.stringMatching(/Nothing was decided\. Click Review and approve… once more/)]);
    expect((await bench.proposal()).state).toBe("pending");
  });

  test("of a proposal that is closed, or too old, there is none", async () => {
    await bench.ask();
    await bench.click("dismiss", ALICE);
    expect(await bench.click("approve", BOB)).toBe("closed");
    expect(bench.chat.whispered(BOB).join()).toContain("closed already (dismissed)");
    await bench.ask("node2", "inc-2");
    const { createdAt } = await bench.proposal("inc-2-fix");
    await bench.store.transition("inc-2-fix", ["pending"], { expiresAt: createdAt }, { key: "clock", at: createdAt, actor: BOB, type: "clock", data: {} });
    expect(await bench.click("approve", BOB, { incident: "inc-2", proposal: "inc-2-fix" })).toBe("expired");
    expect(bench.chat.modals).toEqual([]);
  });
});

describe("what was sent off", () => {
  test.each([
    ["another hash", { hash: "0".repeat(64) }],
    ["no hash", { hash: "" }],
  ])("%s: it is not what was shown; refused, on record, and open for another try", async (_what, more) => {
    await bench.ask();
    expect(await bench.click("confirm", BOB, more)).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toContain("what the window showed is not what is proposed now");
    expect(await bench.events("refused")).toHaveLength(1);
    expect([(await bench.proposal()).state, bench.node.fixRuns]).toEqual(["pending", 0]);
    expect(await bench.click("confirm", BOB)).toBe("approve");
  });

  test.each<[string, { typed?: string }]>([
    ["nothing", { typed: "" }],
    ["another node", { typed: "node3" }],
    ["capital letters", { typed: "NODE2" }],
    ["a blank inside", { typed: "node 2" }],
  ])("a disruptive fix, and %s was typed: refused", async (_what, more) => {
    disruptive();
    await bench.ask();
    expect(await bench.click("confirm", BOB, more)).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toContain("the name of the node (node2) was not typed");
    expect(bench.node.fixRuns).toBe(0);
  });

  test("a disruptive fix, and its name was typed with a blank behind it", async () => {
    disruptive();
    await bench.ask();
    expect(await bench.click("confirm", BOB, { typed: "node2 " })).toBe("approve");
    expect(bench.node.fixRuns).toBe(1);
  });

  test("the same modal twice is one decision; two modals are one run", async () => {
    await bench.ask();
    const id = bench.press("confirm", BOB);
    bench.press("confirm", BOB, { id });
    const other = bench.press("confirm", BOB);
    await bench.pass(300);
    expect(new Set([bench.outcome(id), bench.outcome(other)])).toEqual(new Set(["approve", "closed"]));
    expect([bench.node.fixRuns, (await bench.events("approved")).length]).toEqual([1, 1]);
  });

  test("somebody from another company in a shared channel: refused, whatever was typed", async () => {
    await bench.ask();
    expect(await bench.click("confirm", { ...BOB, home: "T_OTHER" })).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toContain("does not take requests from your workspace");
    expect([(await bench.proposal()).decisions, bench.node.fixRuns]).toEqual([[], 0]);
  });

  test("a person who may approve no more since the modal was opened: refused", async () => {
    await bench.ask();
    await bench.click("approve", BOB);
    bench.groups["S_SRE"] = [CAROL.id];
    expect(await bench.click("confirm", BOB)).toBe("refused");
    expect(bench.node.fixRuns).toBe(0);
  });
});

describe("two of three must approve", () => {
  beforeEach(() => {
    bench.config = configOf([{ id: "two", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 2 }]);
  });

  test("the message says who has approved, and the first one's modal does not promise a run", async () => {
    await bench.ask();
    expect(bench.chat.data("inc-1-fix/proposal")).toMatchObject({ several: true, approvals: 0, needed: 2 });
    await bench.click("approve", BOB);
    expect(modal()).toMatchObject({ submit: "Approve", needed: 2 });
    expect(await bench.click("confirm", BOB)).toBe("counted");
    expect(bench.chat.data("inc-1-fix/proposal")).toMatchObject({ approvals: 1, approved: [BOB.id] });
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("approvals: 1 of 2: <@U_BOB>");
    expect(buttons()).toBe(true);

    expect(await bench.click("approve", BOB)).toBe("counted");
    expect(bench.chat.whispered(BOB).at(-1)).toContain("You have approved this already; 1 more needed.");
    await bench.click("approve", CAROL);
    expect(modal()).toMatchObject({ submit: "Approve & run", approved: [BOB.id] });
    expect(await bench.click("confirm", CAROL)).toBe("approve");
    expect([bench.outcome(), bench.node.fixRuns, buttons()]).toEqual(["resolved", 1, false]);
  });

  test("at the same moment: both count, one run", async () => {
    await bench.ask();
    const names = [bench.press("confirm", BOB), bench.press("confirm", CAROL)];
    await bench.pass(300);
    expect(new Set(names.map((name) => bench.outcome(name)))).toEqual(new Set(["approve", "counted"]));
    expect([bench.node.fixRuns, (await bench.proposal()).decisions.length]).toEqual([1, 2]);
  });

  test("a message that cannot be edited costs no approval: told, and on record", async () => {
    await bench.ask();
    bench.chat.trouble = (call, what) => {
      if (call === "update" && what === "proposal") throw new Error("slack: could not edit a message");
    };
    expect(await bench.click("confirm", BOB)).toBe("counted");
    expect(bench.chat.whispered(BOB).join()).toMatch(/Your decision counts, but it could not be shown everywhere: slack: could not edit.*Run id: click-1/);
    expect(await bench.events("not-told")).toHaveLength(1);
    expect((await bench.proposal()).decisions).toHaveLength(1);
  });
});

describe("it is no longer what was proposed", () => {
  const cases: [string, () => void, RegExp][] = [
    [
      "another version of the fix",
      () => {
        const fixes = new Map([...bench.catalogue.fixes].map(([id, fix]) => [id, { ...fix, version: "ffffffffffff" }]));
        bench.catalogue = { ...bench.catalogue, fixes };
      },
      /another version/,
    ],
    [
      "another policy",
      () => {
        bench.config = configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"], expires: "2h" }]);
      },
      /policy/,
    ],
    [
      "a fix that left the catalogue",
      () => {
        bench.catalogue = { ...bench.catalogue, fixes: new Map() };
      },
      /not in the catalogue any more/,
    ],
  ];

  test.each(cases.slice(0, 2))("%s, at the click on the button: no modal, closed with the reason and a button to run again", async (_what, change, reason) => {
    await bench.ask();
    change();
    expect(await bench.click("approve", BOB)).toBe("refused");
    expect(bench.chat.modals).toEqual([]);
    expect(bench.chat.whispered(BOB)).toEqual([expect.stringMatching(reason)]);
    expect(bench.chat.whispered(BOB).join()).toContain("Run the triage again.");
    expect([(await bench.proposal()).state, bench.node.fixRuns, buttons()]).toEqual(["refused", 0, false]);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toMatch(reason);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain('"action_id":"again"');
    expect(await bench.events("refused")).toMatchObject([{ actor: BOB, data: { statement: "binding", reason: expect.stringMatching(reason) } }]);
    // nobody waits for an answer that will never come
    expect(bench.execution()?.status).toBe("SUCCEEDED");
    expect((await bench.incident()).state).toBe("unresolved");
  });

  test.each(cases)("%s, while the modal was open: nothing is run", async (_what, change, reason) => {
    await bench.ask();
    await bench.click("approve", BOB);
    change();
    await bench.click("confirm", BOB);
    expect(bench.chat.whispered(BOB).join()).toMatch(reason);
    expect([bench.node.fixRuns, (await bench.proposal()).decisions]).toEqual([0, []]);
    expect(await bench.events("approved")).toEqual([]);
  });

  test("it can still be called off", async () => {
    await bench.ask();
    cases[1]?.[1]();
    expect(await bench.click("dismiss", ALICE)).toBe("dismiss");
    expect(bench.outcome()).toBe("dismissed");
  });
});

describe("breaking the glass", () => {
  const REASON = "Payments fail, and Bob is asleep.";
  const broken = (actor: Actor = CAROL, reason = REASON) => bench.click("confirm", actor, { reason });
  beforeEach(() => {
    bench.config = Config.parse({ ...configOf(), policy: GLASS, breakGlass: { channel: "C_SECURITY" } });
  });

  test("the modal says so, and asks for a reason; the message says so only where nobody may approve otherwise", async () => {
    await bench.ask();
    expect(bench.chat.data("inc-1-fix/proposal")).toMatchObject({ emergency: false, approvers: [BOB.id] });
    await bench.click("approve", CAROL);
    expect(modal()).toMatchObject({ reason: true, statement: "prod", channel: "C_SECURITY", submit: "Approve & run" });
    expect(readShown(String(modal()["metadata"]))).toMatchObject({ reason: true });
    // who may approve anyway breaks nothing
    await bench.click("approve", BOB);
    expect(modal()).toMatchObject({ reason: false });
  });

  test("in a freeze the message says who may approve in an emergency", async () => {
    const freezeWindows = [{ from: "2000-01-01", to: "2100-01-01", timeZone: "UTC" }];
    bench.config = Config.parse({ ...configOf(), policy: [{ ...GLASS[0], freezeWindows }] });
    await bench.ask();
    expect(bench.chat.data("inc-1-fix/proposal")).toMatchObject({ emergency: true, approvers: [CAROL.id] });
    expect(await bench.click("approve", BOB)).toBe("refused");
    expect(bench.chat.whispered(BOB).join()).toMatch(/statement \\"prod\\" does not allow it in its freeze window .*frozen until/);
    expect(await broken()).toBe("approve");
    expect(bench.outcome()).toBe("resolved");
  });

  test("it runs; it is told in the thread and in the channel, flagged on record, and waits for a review", async () => {
    await bench.ask();
    expect(await broken()).toBe("approve");
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect(bench.chat.drawn("inc-1-fix/proposal")).toContain("Approved (break-glass) by <@U_CAROL>");
    expect(await bench.events("approved")).toEqual([]);
    expect(await bench.events("break-glass-approved")).toMatchObject([{ actor: CAROL, data: { proposal: "inc-1-fix", statement: "prod", reason: REASON } }]);
    expect((await bench.proposal()).decisions).toMatchObject([{ actor: CAROL, breakGlass: { reason: REASON } }]);
    expect((await bench.incident()).review).toBe("pending");
    const told = ["inc-1-fix/break-glass", "inc-1-fix/break-glass-channel"];
    expect(told.map((key) => bench.chat.posts.get(key)?.place)).toEqual([{ channel: "C_INCIDENTS", thread: "1.000" }, { channel: "C_SECURITY" }]);
    for (const key of told) {
      for (const words of [REASON, "<@U_CAROL> approved a fix", "<@U_BOB>", '"action_id":"reviewed"']) expect(bench.chat.drawn(key)).toContain(words);
    }
  });

  test.each(["", "   ", "\n"])("without a reason (%j): refused, on record, nothing told and nothing run", async (reason) => {
    await bench.ask();
    expect(await broken(CAROL, reason)).toBe("refused");
    expect(bench.chat.whispered(CAROL).join()).toContain("only in an emergency (break-glass), and wants a reason");
    expect([bench.node.fixRuns, (await bench.proposal()).state]).toEqual([0, "pending"]);
    expect(bench.chat.posts.has("inc-1-fix/break-glass")).toBe(false);
    expect((await bench.incident()).review).toBeUndefined();
  });

  test("somebody who may not even that: refused, whatever the reason", async () => {
    await bench.ask();
    expect(await broken(MALLORY)).toBe("refused");
    expect(await broken(ALICE)).toBe("refused");
    expect(bench.node.fixRuns).toBe(0);
  });

  test("calling it off is no emergency", async () => {
    await bench.ask();
    expect(await bench.click("dismiss", CAROL)).toBe("refused");
    expect(bench.chat.whispered(CAROL).join()).toContain("calling it off is none");
    expect((await bench.proposal()).state).toBe("pending");
  });

  test("a channel that does not take it: the thread has it, the run goes on, and it is on record that it was not told there", async () => {
    await bench.ask();
    bench.chat.trouble = (call, what) => {
      if (call === "post" && what === "inc-1-fix/break-glass-channel") throw new Error("slack: could not post in C_SECURITY: netcheck is not in this channel");
    };
    expect(await broken()).toBe("approve");
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect(bench.chat.posts.has("inc-1-fix/break-glass")).toBe(true);
    expect(await bench.events("not-told")).toMatchObject([{ data: { tell: "break-glass", problem: expect.stringContaining("C_SECURITY") } }]);
    expect(bench.chat.whispered(CAROL).join()).toContain("not in this channel");
  });

  test("reviewed by an approver: the buttons go, it is on record; a second review is told so", async () => {
    await bench.ask();
    await broken();
    expect(bench.chat.drawn("inc-1/root")).toContain("resolved and verified; approved by breaking the glass, not reviewed yet");
    expect(await bench.click("reviewed", BOB)).toBe("reviewed");
    expect(bench.chat.drawn("inc-1/root")).toContain("resolved and verified");
    expect(bench.chat.drawn("inc-1/root")).not.toContain("not reviewed yet");
    expect((await bench.incident()).review).toBe("done");
    expect(await bench.events("reviewed")).toMatchObject([{ actor: BOB, data: { proposal: "inc-1-fix", statement: "prod" } }]);
    for (const key of ["inc-1-fix/break-glass", "inc-1-fix/break-glass-channel"]) {
      expect(bench.chat.drawn(key)).toContain("reviewed by <@U_BOB>");
      expect(bench.chat.drawn(key)).not.toContain('"action_id":"reviewed"');
    }
    expect(bench.chat.whispered(BOB)).toEqual([]);
    expect(await bench.click("reviewed", MALLORY)).toBe("reviewed");
    expect(bench.chat.whispered(MALLORY).join()).toContain("Somebody else has reviewed this already");
    expect(await bench.events("reviewed")).toHaveLength(1);
  });

  test("two reviewers at the same moment: one is on record, and it is the one who is named", async () => {
    bench.config = Config.parse({ ...bench.config, policy: [{ ...GLASS[0], breakGlass: { who: [CAROL.id], reviewers: [BOB.id, ALICE.id] } }] });
    await bench.ask();
    await broken();
    bench.press("reviewed", BOB);
    bench.press("reviewed", ALICE);
    await bench.pass(60);
    const [first, ...more] = await bench.events("reviewed");
    expect(more).toEqual([]);
    expect(bench.chat.drawn("inc-1-fix/break-glass")).toContain(`reviewed by <@${first?.actor.id}>`);
  });

  test.each([
    ["the one who broke it", CAROL, /you broke the glass yourself/],
    ["a stranger", MALLORY, /names you as a reviewer/],
  ] as const)("%s cannot review it: told, on record, still open", async (_what, actor, words) => {
    await bench.ask();
    await broken();
    expect(await bench.click("reviewed", actor)).toBe("refused");
    expect(bench.chat.whispered(actor).join()).toMatch(words);
    expect(await bench.events("refused")).toMatchObject([{ actor, data: { decision: "review" } }]);
    expect((await bench.incident()).review).toBe("pending");
  });

  test("a button that claims a review where no glass was broken does nothing", async () => {
    await bench.ask();
    await bench.click("confirm", BOB);
    expect(await bench.click("reviewed", BOB)).toBe("failed");
    expect((await bench.incident()).review).toBeUndefined();
    expect(await bench.events("reviewed")).toEqual([]);
  });
});

describe("cut off in the middle, and done again", () => {
  /** The call fails once in a way that may pass: the step runs again. */
  const once = (name: string, is: (args: readonly unknown[]) => boolean) => {
    let left = 1;
    return async (method: string, args: readonly unknown[], go: () => Promise<unknown>) => {
      if (method === name && is(args) && left-- > 0) throw Object.assign(new Error("killed"), { retryable: true });
      return go();
    };
  };
  const started = async (change: ConstructorParameters<typeof Bench>[0]) => {
    await bench.close();
    bench = new Bench(change);
    bench.config = Config.parse({ ...configOf(), policy: GLASS, breakGlass: { channel: "C_SECURITY" } });
    await bench.ask();
  };

  test.each<[string, ConstructorParameters<typeof Bench>[0]]>([
    [
      "the review could not be asked for",
      ({ store }) => ({
        store: intercept(
          "store",
          store,
          once("store.update", ([, change]) => (change as { review?: string }).review === "pending"),
        ),
      }),
    ],
    [
      "the workflow could not be woken",
      ({ work }) => ({
        work: intercept(
          "work",
          work,
          once("work.answer", () => true),
        ),
      }),
    ],
    [
      "it could not be told",
      ({ chat }) => ({
        chat: intercept(
          "chat",
          chat,
          once("chat.post", ([key]) => key === "inc-1-fix/break-glass"),
        ),
      }),
    ],
  ])("a broken glass, and %s: one run, one event, told once, to be reviewed", async (_what, change) => {
    await started(change);
    expect(await bench.click("confirm", CAROL, { reason: "now" })).toBe("approve");
    expect([bench.outcome(), bench.node.fixRuns]).toEqual(["resolved", 1]);
    expect(await bench.events("break-glass-approved")).toHaveLength(1);
    expect((await bench.incident()).review).toBe("pending");
    expect(bench.chat.drawn("inc-1-fix/break-glass")).toContain("now");
    expect(bench.chat.drawn("inc-1-fix/break-glass-channel")).toContain("now");
  });

  test("it is no longer what was proposed, and the workflow could not be woken: it ends all the same", async () => {
    await started(({ work }) => ({
      work: intercept(
        "work",
        work,
        once("work.answer", () => true),
      ),
    }));
    bench.config = configOf();
    expect(await bench.click("confirm", BOB)).toBe("refused");
    expect([bench.execution()?.status, (await bench.proposal()).state, bench.node.fixRuns, buttons()]).toEqual(["SUCCEEDED", "refused", 0, false]);
    expect(await bench.events("refused")).toHaveLength(1);
  });
});

describe("commands for people", () => {
  const steps = (count: number, length: number) =>
    Array.from({ length: count }, (_, index) => ({ argv: ["ip", "route", "del", `${index}`.padEnd(length, "0")] }));
  const words = ({ shown }: { shown: readonly string[] }) => shown.join("\n").split("\n");

  test("a few are one text", () => {
    expect(commandTexts(steps(2, 1))).toEqual({ shown: ["ip route del 0\nip route del 1"], more: 0 });
    expect(commandTexts([])).toEqual({ shown: [], more: 0 });
  });

  test("many are cut into texts that Slack takes, none lost", () => {
    const cut = commandTexts(steps(300, 40));
    expect(cut.more).toBe(0);
    expect(words(cut)).toHaveLength(300);
    expect(Math.max(...cut.shown.map((text) => text.length))).toBeLessThanOrEqual(3000);
  });

  test("too many: it is said how many are not shown", () => {
    const cut = commandTexts(steps(2000, 40));
    expect(cut.shown).toHaveLength(8);
    expect(words(cut).length + cut.more).toBe(2000);
    expect(commandTexts(steps(300, 40), 1).more).toBeGreaterThan(200);
  });

  test("one that is longer than all the room counts as not shown", () => {
    const long = commandTexts([{ argv: ["ipset", "restore"], stdin: "add hosts 10.0.0.1\n".repeat(3000) }, { argv: ["true"] }]);
    expect([long.shown.length, long.more]).toEqual([8, 2]);
    const line = commandTexts([{ argv: ["x".repeat(5000)] }]);
    expect([line.shown.join("").replaceAll("\n", "").length, line.more]).toEqual([5000, 0]);
  });
});
