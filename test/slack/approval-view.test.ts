import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { validateView } from "../../functions/slack/block-kit.ts";
import { readShown } from "../../functions/slack/listeners/approval-view.ts";
import type { Click } from "../../functions/triage/ports.ts";
import { app, type Started } from "./door.ts";
import { now, signed, submission } from "./requests.ts";

/** The modal that approves, sent off at the app's door as Slack does it. */

const HASH = "0123456789abcdef".repeat(4);
const shown = (asks: string, target = "node2"): string => `inc-0123456789ab inc-0123456789ab-fix ${HASH} C0001 1700000000.000100 ${asks} ${target}`;
const clicksOf = (started: readonly Started[]): Click[] => started.flatMap(({ event }) => (event.kind === "click" ? [event.click] : []));
const closed = { statusCode: 200, body: "" };
const errorsOf = (body: string): unknown => {
  const answer = JSON.parse(body) as { response_action: string; errors: unknown };
  expect(answer.response_action).toBe("errors");
  return answer.errors;
};

describe("a decision", () => {
  test("says who, on what, as it was shown, and where to answer; the modal closes", async () => {
    const { send, started } = app();
    expect(await send(signed(submission(shown("none"))))).toEqual(closed);
    const id = started[0]?.name ?? "";
    expect(id).toMatch(/^click-[0-9a-f]{20}$/);
    expect(clicksOf(started)).toEqual([
      {
        id,
        action: "confirm",
        incident: "inc-0123456789ab",
        proposal: "inc-0123456789ab-fix",
        actor: { id: "U0002", team: "T0001" },
        place: { channel: "C0001", thread: "1700000000.000100" },
        triggerId: "13345224609.738474920.submit",
        hash: HASH,
      },
    ]);
  });

  test("what was typed and the reason go with it, without blanks around them", async () => {
    const { send, started } = app();
    expect(await send(signed(submission(shown("both"), { typed: " node2\n", reason: "  Payments fail.  " })))).toEqual(closed);
    expect(clicksOf(started)).toMatchObject([{ typed: "node2", reason: "Payments fail." }]);
  });

  test("what was not asked for does not go with it", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("none"), { typed: "node2", reason: "because", other: "x" })));
    expect(Object.keys(clicksOf(started)[0] ?? {})).not.toEqual(expect.arrayContaining(["typed"]));
    expect(clicksOf(started)[0]).not.toHaveProperty("reason");
  });

  test("outside of a thread", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("none").replace("1700000000.000100", "-"))));
    expect(clicksOf(started)).toMatchObject([{ place: { channel: "C0001" } }]);
    expect(clicksOf(started)[0]?.place).not.toHaveProperty("thread");
  });
});

describe("typed confirmation", () => {
  test.each([
    ["nothing", null],
    ["blanks", "   "],
    ["another node", "node3"],
    ["capital letters", "NODE2"],
    ["a part of it", "node"],
    ["more than it", "node22"],
    ["a blank inside", "node 2"],
    ["a look-alike", "n\u043ede2"],
    ["a hidden character", "node2\u200b"],
  ])("%s: said in the modal, nothing decided", async (_what, typed) => {
    const { send, started } = app();
    const { statusCode, body } = await send(signed(submission(shown("typed"), { typed })));
    expect(statusCode).toBe(200);
    expect(errorsOf(body)).toEqual({ typed: "This is not the name of the node. Type node2, or cancel." });
    expect(started).toEqual([]);
  });

  test("corrected and sent again, it is one decision", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("typed"), { typed: "node1" })));
    expect(await send(signed(submission(shown("typed"), { typed: "node2" })))).toEqual(closed);
    expect(clicksOf(started)).toMatchObject([{ action: "confirm", typed: "node2" }]);
  });

  test.each([[undefined], [7], [["node2"]], [{ toString: "node2" }]])("an input that holds no text (%j) is empty", async (value) => {
    const { send, started } = app();
    const { body } = await send(signed(submission(shown("typed"), {}, { state: { values: { typed: { typed: { value } } } } })));
    expect(errorsOf(body)).toHaveProperty("typed");
    expect(started).toEqual([]);
  });

  test("a name that no pattern made: any that has no blank can be typed", async () => {
    for (const name of ["i-0123456789abcdef0", "fd00::7", "ip-10-0-1-7.eu-central-1.compute.internal", "a".repeat(253)]) {
      const { send, started } = app();
      await send(signed(submission(shown("typed", name), { typed: name })));
      expect(clicksOf(started)).toMatchObject([{ typed: name }]);
    }
  });
});

test.each([
  ["nothing", null],
  ["blanks", " \n\t "],
])("break-glass with %s as its reason: said in the modal, nothing decided", async (_what, reason) => {
  const { send, started } = app();
  const { body } = await send(signed(submission(shown("reason"), { reason })));
  expect(errorsOf(body)).toEqual({ reason: "A reason is needed: it is told openly, and somebody reviews it." });
  const both = await send(signed(submission(shown("both"), { typed: "node1", reason })));
  expect(Object.keys(errorsOf(both.body) as object)).toEqual(["typed", "reason"]);
  expect(started).toEqual([]);
});

describe("what is not ours", () => {
  test.each([
    ["nothing", ""],
    ["no hash", shown("none").replace(HASH, "")],
    ["a hash that is none", shown("none").replace(HASH, "z".repeat(64))],
    ["another order", `node2 ${shown("none")}`],
    ["another way to ask", shown("anything")],
    ["a channel that is none", shown("none").replace("C0001", "../etc")],
    ["a group of people as the channel", shown("none").replace("C0001", "S0001")],
    ["a thread that is none", shown("none").replace("1700000000.000100", "now")],
    ["JSON", '{"incident":"inc-1"}'],
    ["a line break at its end", `${shown("none")}\n`],
    ["two lines", `${shown("none")}\n${shown("none")}`],
    ["a name that is too long", shown("none", "x".repeat(254))],
    ["3,000 characters", "x".repeat(3000)],
    ["shell", shown("none").replace("inc-0123456789ab-fix", "$(reboot)")],
  ])("hidden data that we did not write (%s): nothing is decided, and the person is told", async (_what, metadata) => {
    const { send, started } = app();
    const { statusCode, body } = await send(signed(submission(metadata)));
    const { response_action: action, view } = JSON.parse(body) as { response_action: string; view: Record<string, unknown> };
    expect([statusCode, action, validateView(view)]).toEqual([200, "update", []]);
    expect(JSON.stringify(view)).toContain("Nothing was decided");
    expect(started).toEqual([]);
  });

  test("any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 300 }), (text) => readShown(text) === undefined),
      { seed: 5, numRuns: 300 },
    );
  });

  test.each([
    ["a view of another app", { callback_id: "deploy" }],
    ["a view whose name only begins like ours", { callback_id: "approval2" }],
    ["a view without a name", { callback_id: "" }],
  ])("%s starts nothing", async (_what, view) => {
    const { send, started } = app();
    await send(signed(submission(shown("none"), {}, view)));
    expect(started).toEqual([]);
  });

  test("closed instead of sent off: nothing", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("none"), {}, {}, { type: "view_closed", is_cleared: false })));
    expect(started).toEqual([]);
  });

  test("not signed by Slack, or stale: refused", async () => {
    const { send, started } = app();
    const refused = { statusCode: 401, body: "" };
    expect(await send(signed(submission(shown("none")), { secret: "0".repeat(32) }))).toEqual(refused);
    expect(await send(signed(submission(shown("none")), { timestamp: now() - 301 }))).toEqual(refused);
    const event = signed(submission(shown("none")));
    expect(await send({ ...event, body: event.body?.replace("node2", "node3") ?? "" })).toEqual(refused);
    expect(started).toEqual([]);
  });
});

describe("again", () => {
  test("a retry and a second click on its button are one decision; another person, or a modal opened anew, is another", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("none")), { timestamp: now() - 1, headers: { "x-slack-retry-num": "1" } }));
    await send(signed(submission(shown("none"))));
    expect(started[1]).toEqual(started[0]);
    await send(signed(submission(shown("none"), {}, { hash: "1700000009.abcdef" }, { trigger_id: "1.2.other" }), { timestamp: now() - 2 }));
    expect(started[2]?.name).toBe(started[0]?.name);
    await send(signed(submission(shown("none"), {}, {}, { user: { id: "U0003", team_id: "T0001" } })));
    await send(signed(submission(shown("none"), {}, { id: "V0002" })));
    expect(new Set(started.map(({ name }) => name)).size).toBe(3);
  });

  test("a decision that could not be handed over keeps the modal open, and may be sent again", async () => {
    const { send, started } = app(1);
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const event = signed(submission(shown("none")));
    expect((await send(event)).statusCode).toBe(500);
    expect(await send(event)).toEqual(closed);
    expect(started).toHaveLength(1);
    log.mockRestore();
  });
});

describe("whose workspace", () => {
  test("somebody from another company is told as such: the workflow decides whether that counts", async () => {
    const { send, started } = app();
    await send(signed(submission(shown("none"), {}, {}, { user: { id: "U0002", team_id: "T0999" } })));
    expect(clicksOf(started)).toMatchObject([{ actor: { id: "U0002", team: "T0001", home: "T0999" } }]);
  });

  test("a member of the same organisation (Enterprise Grid) is one of us", async () => {
    const { send, started } = app();
    const grid = { enterprise: { id: "E0001", name: "Example" }, is_enterprise_install: true, user: { id: "W0002", team_id: "E0001" } };
    await send(signed(submission(shown("none"), {}, {}, grid)));
    expect(clicksOf(started)[0]?.actor).toEqual({ id: "W0002", team: "T0001" });
  });
});
