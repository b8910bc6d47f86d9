import { describe, expect, test, vi } from "vitest";
import type { HttpEvent, HttpResponse } from "../../functions/slack/app.ts";
import type { Click } from "../../functions/triage/ports.ts";
import { app, type Started } from "./door.ts";
import { click, command, now, SECRET, signed } from "./requests.ts";

/** The app's door with requests as Slack sends them; only the work behind it is a list. */

const shown = (response: HttpResponse): string => {
  expect(response).toMatchObject({ statusCode: 200, headers: { "Content-Type": "application/json" } });
  const { response_type: how, text, blocks } = JSON.parse(response.body) as { response_type: string; text: string; blocks: unknown[] };
  expect(how).toBe("ephemeral");
  return `${text}\n${JSON.stringify(blocks)}`;
};

const clicksOf = (started: readonly Started[]): Click[] => started.flatMap(({ event }) => (event.kind === "click" ? [event.click] : []));

describe("the command", () => {
  test.each(["help", "HELP", " help "])("%j is answered with help, privately, and starts nothing", async (text) => {
    const { send, started } = app();
    const answer = shown(await send(signed(command(text))));
    expect(answer).toContain("/netcheck node1");
    expect(started).toEqual([]);
  });

  test.each(["", "   "])("%j asks for a node in a modal, which the worker opens", async (text) => {
    const { send, started } = app();
    expect(await send(signed(command(text)))).toEqual({ statusCode: 200, body: "" });
    expect(started).toMatchObject([
      { event: { kind: "ask", request: { triggerId: "13345224609.738474920.8088930838d88f008e0", place: { channel: "C0001" } } } },
    ]);
  });

  test("a target starts one triage, with who asked and where to answer, and is acknowledged without a word", async () => {
    const { send, started } = app();
    expect(await send(signed(command("  node1.example.com ")))).toEqual({ statusCode: 200, body: "" });
    const incident = started[0]?.name ?? "";
    expect(incident).toMatch(/^inc-[0-9a-f]{12}$/);
    expect(started).toEqual([
      {
        name: incident,
        event: {
          kind: "triage",
          request: {
            incident,
            target: "node1.example.com",
            requester: { id: "U0001", team: "T0001" },
            place: { channel: "C0001", responseUrl: "https://hooks.slack.com/commands/T0001/1/x" },
          },
        },
      },
    ]);
  });

  test.each(["i-0123456789abcdef0", "10.0.0.7", "fd00::7", "NODE_1", "a".repeat(253)])("%s can be a target", async (target) => {
    const { send, started } = app();
    await send(signed(command(target)));
    expect(started.map(({ event }) => event.kind === "triage" && event.request.target)).toEqual([target]);
  });

  test.each([
    "node1 node2",
    "$(reboot)",
    "node1;reboot",
    "-rf",
    "../../etc/passwd",
    "<@U0002>",
    "<!channel>",
    "`id`",
    "узел",
    "node1\u202e",
    "a".repeat(254),
    "x".repeat(10_000),
  ])("%j is no target: said back harmlessly, nothing started", async (text) => {
    const { send, started } = app();
    const answer = shown(await send(signed(command(text))));
    expect(answer).toMatch(/cannot be the name of a target|more than one word/);
    expect(answer).not.toMatch(/<@|<!|\u202e|`id`/);
    expect(answer.length).toBeLessThan(2000);
    expect(started).toEqual([]);
  });

  test("another app's command is not ours", async () => {
    const { send, started } = app();
    expect(await send(signed(command("node1", { command: "/other" })))).toMatchObject({ statusCode: 404 });
    expect(started).toEqual([]);
  });
});

describe("the signature", () => {
  const refused = { statusCode: 401, body: "" };
  const good = signed(command("node1"));

  test.each<[string, HttpEvent]>([
    ["another secret", signed(command("node1"), { secret: "0".repeat(32) })],
    ["none", { ...good, headers: { ...good.headers, "x-slack-signature": undefined } }],
    ["an empty one", { ...good, headers: { ...good.headers, "x-slack-signature": "" } }],
    ["another version", { ...good, headers: { ...good.headers, "x-slack-signature": good.headers["x-slack-signature"]?.replace("v0", "v1") } }],
    ["something behind it", { ...good, headers: { ...good.headers, "x-slack-signature": `${good.headers["x-slack-signature"]}=again` } }],
    ["another body", { ...good, body: good.body?.replace("node1", "node2") ?? "" }],
    ["no body", { headers: good.headers, isBase64Encoded: false }],
    ["another time", { ...good, headers: { ...good.headers, "x-slack-request-timestamp": String(now() - 1) } }],
    ["no time", { ...good, headers: { ...good.headers, "x-slack-request-timestamp": undefined } }],
    ["a time that is none", { ...good, headers: { ...good.headers, "x-slack-request-timestamp": "yesterday" } }],
    [
      "nothing but a claim to be a certificate check",
      { headers: { "content-type": "application/x-www-form-urlencoded" }, body: "ssl_check=1", isBase64Encoded: false },
    ],
    ["a body that cannot be parsed", { headers: { ...good.headers, "content-type": "application/json" }, body: '{"type":', isBase64Encoded: false }],
    ["an unsigned challenge", { headers: { "content-type": "application/json" }, body: '{"type":"url_verification","challenge":"x"}', isBase64Encoded: false }],
  ])("%s: refused, no work", async (_what, event) => {
    const { send, started } = app();
    expect(await send(event)).toEqual(refused);
    expect(started).toEqual([]);
  });

  test("older than five minutes is stale, just below is not", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: new Date("2026-01-01T00:00:00Z") });
    try {
      const { send, started } = app();
      expect(await send(signed(command("node1"), { timestamp: now() - 301 }))).toEqual(refused);
      expect(started).toEqual([]);
      expect(await send(signed(command("node1"), { timestamp: now() - 299 }))).toMatchObject({ statusCode: 200 });
    } finally {
      vi.useRealTimers();
    }
  });

  test("header names in any case, as some gateways pass them", async () => {
    const { send, started } = app();
    const { headers, ...rest } = signed(command("node1"));
    const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()), value]));
    expect(await send({ ...rest, headers: upper })).toMatchObject({ statusCode: 200 });
    expect(started).toHaveLength(1);
  });

  test("base64 bodies, also with raw UTF-8 in them", async () => {
    const { send, started } = app();
    expect(await send(signed(command("node1"), { base64: true }))).toEqual({ statusCode: 200, body: "" });
    expect(started).toHaveLength(1);
    const { sign } = await import("../../functions/local/app-link.ts");
    const body = '{"type":"url_verification","challenge":"größer"}';
    const timestamp = now();
    const headers = { "content-type": "application/json", "x-slack-request-timestamp": String(timestamp), "x-slack-signature": sign(SECRET, timestamp, body) };
    const answer = await send({ headers, body: Buffer.from(body).toString("base64"), isBase64Encoded: true });
    expect(answer).toMatchObject({ statusCode: 200, body: '{"challenge":"größer"}' });
  });
});

describe("again", () => {
  test("the very same request is a replay: refused, no second work; also at the same moment, also after others", async () => {
    const { send, started } = app();
    const event = signed(command("node1"));
    const both = await Promise.all([send(event), send(event)]);
    expect(both.map(({ statusCode }) => statusCode)).toEqual([200, 401]);
    for (let i = 0; i < 50; i += 1) await send(signed(command("help", { trigger_id: `t${i}` })));
    expect(await send(event)).toEqual({ statusCode: 401, body: "" });
    expect(started).toHaveLength(1);
  });

  test("an unsigned flood with a time in the far future does not make the app forget", async () => {
    const { send, started } = app();
    const event = signed(command("node1"));
    await send(event);
    const headers = { "content-type": "application/x-www-form-urlencoded", "x-slack-request-timestamp": "99999999999", "x-slack-signature": "v0=x" };
    await send({ headers, body: "ssl_check=1", isBase64Encoded: false });
    expect(await send(event)).toMatchObject({ statusCode: 401 });
    expect(started).toHaveLength(1);
  });

  test("Slack's own retry is taken, under the same execution name and with the same payload", async () => {
    const { send, started } = app();
    const retry = { timestamp: now() - 1, headers: { "x-slack-retry-num": "1", "x-slack-retry-reason": "http_timeout" } };
    await send(signed(command("node1"), retry));
    await send(signed(command("node1")));
    expect(started).toHaveLength(2);
    expect(started[1]).toEqual(started[0]);
  });

  test("the same words a second time are another incident", async () => {
    const { send, started } = app();
    await send(signed(command("node1")));
    await send(signed(command("node1", { trigger_id: "13345224609.738474920.other" })));
    expect(new Set(started.map(({ name }) => name)).size).toBe(2);
  });

  test("work that could not be handed over is a failure, and the same request may come again", async () => {
    const { send, started } = app(2);
    const [ask, press] = [signed(command("node1")), signed(click("approve", "inc-1 fix-1"))];
    const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
    expect(await send(ask)).toMatchObject({ statusCode: 500 });
    expect(await send(press)).toMatchObject({ statusCode: 500 });
    log.mockRestore();
    expect(await send(ask)).toMatchObject({ statusCode: 200 });
    expect(await send(press)).toMatchObject({ statusCode: 200 });
    expect(started).toHaveLength(2);
  });
});

describe("buttons", () => {
  test.each(["preview", "approve", "dismiss", "again", "reviewed"] as const)("%s says who clicked what, and where", async (action) => {
    const { send, started } = app();
    const value = action === "again" ? "inc-0123456789ab" : "inc-0123456789ab inc-0123456789ab-fix";
    expect(await send(signed(click(action, value)))).toEqual({ statusCode: 200, body: "" });
    const id = started[0]?.name ?? "";
    expect(id).toMatch(/^click-[0-9a-f]{20}$/);
    expect(started).toEqual([
      {
        name: id,
        event: {
          kind: "click",
          click: {
            id,
            action,
            incident: "inc-0123456789ab",
            proposal: action === "again" ? undefined : "inc-0123456789ab-fix",
            actor: { id: "U0002", team: "T0001" },
            place: { channel: "C0001", thread: "1700000000.000100", responseUrl: "https://hooks.slack.com/actions/T0001/2/y" },
            triggerId: "13345224609.738474920.click",
          },
        },
      },
    ]);
  });

  test.each([
    ["none", undefined],
    ["an empty one", ""],
    ["words", "please run this"],
    ["three ids", "a b c"],
    ["two blanks", "inc-1  fix-1"],
    ["a line break", "inc-1\nfix-1"],
    ["a path", "../../etc"],
    ["JSON", '{"incident":"inc-1"}'],
    ["shell", "inc-1 $(reboot)"],
    ["too long", `${"x".repeat(65)} fix`],
    ["a trailing line break", "inc-1 fix-1\n"],
  ])("a value that we did not write (%s) is acknowledged and starts nothing", async (_what, value) => {
    const { send, started } = app();
    expect(await send(signed(click("approve", value)))).toEqual({ statusCode: 200, body: "" });
    expect(started).toEqual([]);
  });

  test.each([
    ["an action of another app", click("delete_everything", "inc-1 fix-1")],
    ["an action that only begins like ours", click("approve2", "inc-1 fix-1")],
    ["a button that says it were the modal", click("confirm", "inc-1 fix-1")],
    ["a click without a channel", click("approve", "inc-1 fix-1", { channel: undefined })],
  ])("%s starts nothing", async (_what, form) => {
    const { send, started } = app();
    await send(signed(form));
    expect(started).toEqual([]);
  });

  test("a retried click is the same click; another person, message or moment is another", async () => {
    const { send, started } = app();
    const form = click("approve", "inc-1 fix-1");
    await send(signed(form, { timestamp: now() - 1, headers: { "x-slack-retry-num": "1" } }));
    await send(signed(form));
    expect(started[1]).toEqual(started[0]);
    await send(signed(click("approve", "inc-1 fix-1", { user: { id: "U0003", team_id: "T0001" } })));
    await send(signed(click("approve", "inc-1 fix-1", { message: { ts: "1700000009.000200" } })));
    const action = { type: "button", action_id: "approve", block_id: "proposal", value: "inc-1 fix-1", action_ts: "1700000003.000300" };
    await send(signed(click("approve", "inc-1 fix-1", { actions: [action] })));
    expect(new Set(started.map(({ name }) => name)).size).toBe(4);
  });

  test("on a message that is no reply, the message is the thread; on an ephemeral one there is none", async () => {
    const { send, started } = app();
    await send(signed(click("again", "inc-1", { message: { ts: "1700000009.000200" } })));
    await send(signed(click("again", "inc-1", { message: undefined })));
    expect(clicksOf(started).map(({ place }) => place.thread)).toEqual(["1700000009.000200", undefined]);
  });
});

describe("Enterprise Grid", () => {
  test("a command of an organisation-wide install", async () => {
    const { send, started } = app();
    const grid = { enterprise_id: "E0001", enterprise_name: "Example", is_enterprise_install: "true", user_id: "W0001" };
    expect(await send(signed(command("node1", grid)))).toEqual({ statusCode: 200, body: "" });
    expect(started).toMatchObject([{ event: { request: { requester: { id: "W0001", team: "T0001" } } } }]);
  });

  test("a click without a team, by a member of another workspace: the actor's own team counts", async () => {
    const { send, started } = app();
    const grid = {
      team: null,
      enterprise: { id: "E0001", name: "Example" },
      is_enterprise_install: true,
      user: { id: "W0002", username: "bob", name: "bob", team_id: "T0999" },
    };
    expect(await send(signed(click("approve", "inc-1 fix-1", grid)))).toEqual({ statusCode: 200, body: "" });
    expect(clicksOf(started)).toMatchObject([{ actor: { id: "W0002", team: "T0999" } }]);
  });

  test("a click in a shared channel: the workspace of the message, as for a command typed there", async () => {
    const { send, started } = app();
    await send(signed(click("approve", "inc-1 fix-1", { user: { id: "U0002", team_id: "T0999" }, enterprise: { id: "E0001", name: "Example" } })));
    expect(clicksOf(started)).toMatchObject([{ actor: { id: "U0002", team: "T0001" } }]);
  });
});
