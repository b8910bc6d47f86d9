import { createHmac } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pagerHandler } from "../../functions/pager/app.ts";
import type { WorkEvent } from "../../functions/triage/ports.ts";
import { app, type Started } from "../slack/door.ts";
import { click, command, mention, now, SECRET, signed, signedEvent } from "../slack/requests.ts";
import { Bench } from "../triage/harness.ts";

/** Requests that are signed and evil all the same: a person's words, and whatever a client can put beside them. At the real doors. */

const own = Object.getOwnPropertyNames(Object.prototype);
afterEach(() => {
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(own);
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

/** No value anywhere in it has an own key that means something to JavaScript. */
function clean(started: readonly Started[]): void {
  const text = JSON.stringify(started);
  expect(text).not.toMatch(/__proto__|"constructor"|"prototype"|polluted/);
}

describe("keys that mean something to JavaScript", () => {
  const evil = JSON.parse('{"__proto__":{"polluted":1,"isAdmin":true},"constructor":{"prototype":{"polluted":1}}}') as Record<string, unknown>;

  test("in the form of a command", async () => {
    const { send, started } = app();
    const form = { ...command("node1"), "__proto__[polluted]": "1", "constructor.prototype.polluted": "1", "constructor[prototype][polluted]": "1" };
    expect(await send(signed(form))).toMatchObject({ statusCode: 200 });
    expect(started).toHaveLength(1);
    clean(started);
  });

  test("in a click, at every depth", async () => {
    const { send, started } = app();
    const form = click("again", "inc-1", {
      ...evil,
      user: { ...evil, id: "U0002", team_id: "T0001" },
      state: { values: evil },
      channel: { ...evil, id: "C0001" },
    });
    expect(await send(signed(form))).toMatchObject({ statusCode: 200 });
    expect(started).toHaveLength(1);
    clean(started);
  });

  test("in an event", async () => {
    const { send, started } = app();
    expect(
      await send(
        signedEvent(mention("<@U0BOT> node1", { ...evil, files: [{ ...evil, id: "F1", name: "__proto__", url_private: "https://files.slack.com/x" }] }, evil)),
      ),
    ).toMatchObject({
      statusCode: 200,
    });
    expect(started).toHaveLength(1);
    expect(JSON.stringify(started).replace('"name":"__proto__"', "")).not.toMatch(/__proto__|"constructor"|polluted/);
  });

  test("in a page", async () => {
    const taken: WorkEvent[] = [];
    const body = '{"id":"a","title":"t","targets":["node1"],"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}';
    const timestamp = String(now());
    const signature = `v1=${createHmac("sha256", SECRET).update(`${timestamp}.${body}`).digest("hex")}`;
    const work = { start: async (_name: string, event: WorkEvent) => void taken.push(event), answer: async () => false };
    const send = pagerHandler({ secrets: async () => ({ signingSecret: SECRET }), work, now: () => Date.now() });
    expect(await send({ headers: { "x-netcheck-timestamp": timestamp, "x-netcheck-signature": signature }, body, isBase64Encoded: false })).toMatchObject({
      statusCode: 202,
    });
    expect(taken).toMatchObject([{ kind: "page", page: { source: "generic", alerts: [{ key: "a", title: "t", targets: ["node1"], labels: {} }] } }]);
    expect(JSON.stringify(taken)).not.toContain("polluted");
  });
});

test("a body of lists in lists is no crash of the door, and starts nothing", async () => {
  const { send, started } = app();
  const payload = `{"type":"block_actions","user":{"id":"U1"},"actions":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  const response = await send(signed({ payload })).catch(() => ({ statusCode: 500 }));
  expect(response.statusCode).toBeGreaterThanOrEqual(200);
  expect(started).toEqual([]);
  expect(await send(signed(command("node1")))).toMatchObject({ statusCode: 200 });
});

describe("a button's value that somebody edited", () => {
  let bench: Bench;
  let send: ReturnType<typeof app>["send"];
  beforeEach(async () => {
    bench = new Bench();
    const door = await import("../../functions/slack/app.ts");
    send = door.slackHandler({ signingSecret: SECRET, work: bench.ports.work, render: () => ({ text: "", blocks: [] }) });
    await bench.ask();
  });
  afterEach(() => bench.close());

  test.each<[string, string, string]>([
    ["a proposal that there is not", "approve", "inc-1 inc-2-fix"],
    ["an incident for a proposal", "approve", "inc-1 inc-1"],
    ["a name that means something to JavaScript", "approve", "inc-1 __proto__"],
    ["another kind of record", "approve", "inc-1 constructor"],
    ["an incident that there is not, to run again", "again", "inc-2"],
    ["a key of the store for an incident", "again", "__proto__"],
    ["no proposal at all", "approve", "inc-1"],
    ["no proposal at all, to call it off", "dismiss", "inc-1"],
  ])("%s: nothing is approved, started or written, whoever clicks", async (_what, action, value) => {
    const before = [bench.node.jobs.size, (await bench.store.audit()).filter(({ type }) => type !== "previewed").length, await bench.proposal()];
    const form = click(action, value, { user: { id: "U_BOB", username: "bob", name: "bob", team_id: "T0001" } });
    expect(await send(signed(form))).toMatchObject({ statusCode: 200 });
    await bench.pass(300);
    expect([bench.node.jobs.size, (await bench.store.audit()).filter(({ type }) => type !== "previewed").length, await bench.proposal()]).toEqual(before);
    expect([bench.node.fixRuns, await bench.events("approved")]).toEqual([0, []]);
  });
});
