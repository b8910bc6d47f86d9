import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { slackHandler } from "../../functions/slack/app.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { Config } from "../../functions/triage/config.ts";
import { click, command, type Envelope, mention, SECRET, signed, signedEvent, submission } from "../slack/requests.ts";
import { Bench, configOf } from "../triage/harness.ts";

/**
 * People of other workspaces and companies: signed requests at the real door, the real workflow behind it. The signature proves that Slack sent it, and nothing
 * more: a channel may be shared between companies, and an app may be installed twice.
 */

let bench: Bench;
let send: ReturnType<typeof slackHandler>;
beforeEach(() => {
  bench = new Bench();
  bench.groups["S_SRE"] = ["U0002", "W0002"];
  serve(["T0001"]);
  send = slackHandler({ signingSecret: SECRET, work: bench.ports.work, render: () => ({ text: "", blocks: [] }) });
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

const serve = (teams: readonly string[] | undefined): void => {
  bench.config = { ...configOf([{ id: "sre", effect: "allow", approvers: ["S_SRE"] }]), ...(teams === undefined ? {} : { slack: { teams: [...teams] } }) };
};

/** Sends a request and waits until nothing moves any more. */
async function request(event: Parameters<typeof send>[0]): Promise<void> {
  expect(await send(event)).toMatchObject({ statusCode: 200 });
  await bench.pass(300);
}

/** Somebody of ours asks, and a proposal waits. Says its incident. */
async function asked(): Promise<string> {
  await request(signed(command("node2")));
  const [incident] = await bench.store.incidents(1);
  expect(incident).toMatchObject({ state: "awaiting-approval" });
  return incident?.id ?? "";
}

const GRID = { team: { id: "T0001", domain: "example" }, enterprise: { id: "E0001", name: "Example" } };
const person = (id: string, team_id: string) => ({ id, username: "x", name: "x", team_id });

/** All that would need the other workspace's click to count. */
const approve = (incident: string, fields: Readonly<Record<string, unknown>>) => signed(click("approve", `${incident} ${incident}-fix`, fields));

describe("a command", () => {
  test("of a workspace that is served starts a triage", async () => {
    await asked();
    expect(bench.node.count("collect")).toBe(1);
  });

  test("of a second workspace in which the app is installed: nothing is looked at, the person is told", async () => {
    await request(signed(command("node2", { team_id: "T0666", user_id: "U0001" })));
    expect([bench.node.jobs.size, (await bench.store.incidents(9)).length]).toEqual([0, 0]);
    expect(bench.chat.whispered({ id: "U0001", team: "T0666" }).join()).toContain("does not take requests from your workspace");
    expect(bench.logged.join()).toMatch(/warn: stopped.*T0666/);
  });

  test("without a workspace at all, where some are named", async () => {
    await request(signed(command("node2", { team_id: "" })));
    expect(bench.node.jobs.size).toBe(0);
  });

  test("where none are named every workspace with the app is served", async () => {
    serve(undefined);
    await request(signed(command("node2", { team_id: "T0666" })));
    expect(bench.node.count("collect")).toBe(1);
  });
});

/** The modal's submission, which is the decision, as its person's client sends it. */
async function submit(
  incident: string,
  fields: Readonly<Record<string, unknown>> = {},
  change: (metadata: string) => string = (text) => text,
  envelope: Envelope = {},
): Promise<void> {
  const { hash, target } = await bench.proposal(`${incident}-fix`);
  await request(signed(submission(change(`${incident} ${incident}-fix ${hash} C0001 1700000000.000100 none ${target}`), {}, {}, fields), envelope));
}

describe("the modal's submission", () => {
  test.each<[string, Record<string, unknown>]>([
    ["in a channel that two companies share", { user: person("U0002", "T0666") }],
    ["of another organisation of Enterprise Grid", { ...GRID, user: person("U0002", "E0666") }],
    ["from a second workspace with the app", { user: person("U0002", "T0666"), team: { id: "T0666", domain: "other" } }],
  ])("by a stranger with the approver's id, %s: no decision, on record, nothing run", async (_who, fields) => {
    const incident = await asked();
    await submit(incident, fields);
    expect([bench.node.fixRuns, (await bench.proposal(`${incident}-fix`)).decisions]).toEqual([0, []]);
    expect(await bench.events("refused")).toMatchObject([{ incident, data: { statement: "slack.teams", decision: "confirm" } }]);
  });

  test.each<[string, (metadata: string) => string]>([
    ["another hash", (text) => text.replace(/[0-9a-f]{64}/, "0".repeat(64))],
    ["another proposal", (text) => text.replace("-fix ", "-other ")],
    ["words of its own", (text) => `${text} and more`],
    ["a channel that is none", (text) => text.replace("C0001", "../x")],
  ])("whose hidden part says %s: no decision, nothing run", async (_what, change) => {
    const incident = await asked();
    await submit(incident, {}, change);
    expect([bench.node.fixRuns, (await bench.proposal(`${incident}-fix`)).decisions, await bench.events("approved")]).toEqual([0, [], []]);
  });

  test("by an approver of ours, as it was drawn: approved, and run once", async () => {
    const incident = await asked();
    await submit(incident);
    // Slack's own retry
    await submit(incident, {}, undefined, { timestamp: Math.floor(Date.now() / 1000) - 100, headers: { "x-slack-retry-num": "1" } });
    expect([bench.node.fixRuns, (await bench.proposal(`${incident}-fix`)).decisions.length]).toEqual([1, 1]);
  });
});

describe("an approval", () => {
  test.each<[string, Record<string, unknown>]>([
    ["in a channel that two companies share", { user: person("U0002", "T0666") }],
    ["from the other company's side of it", { user: person("U0002", "T0666"), team: { id: "T0666", domain: "other" } }],
    ["by somebody of another organisation of Enterprise Grid", { ...GRID, user: person("U0002", "E0666") }],
    ["without any workspace", { user: { id: "U0002" }, team: null }],
  ])("by a stranger with the approver's id, %s: refused, on record, nothing run", async (_where, fields) => {
    const incident = await asked();
    await request(approve(incident, fields));
    expect([bench.node.fixRuns, (await bench.proposal(`${incident}-fix`)).state]).toEqual([0, "pending"]);
    expect(await bench.events("approved")).toEqual([]);
    expect(await bench.events("refused")).toMatchObject([{ incident, actor: { id: "U0002" }, data: { statement: "slack.teams", decision: "approve" } }]);
  });

  test("by a stranger in a shared channel, where no workspaces are named: refused as well", async () => {
    serve(undefined);
    const incident = await asked();
    await request(approve(incident, { user: person("U0002", "T0666") }));
    expect([bench.node.fixRuns, (await bench.events("refused")).length]).toEqual([0, 1]);
  });

  test.each<[string, Record<string, unknown>, readonly string[] | undefined]>([
    ["of the workspace", {}, ["T0001"]],
    ["of the organisation that the workspace belongs to", { ...GRID, user: person("W0002", "E0001") }, ["T0001"]],
    ["of a company that is named as well", { user: person("U0002", "T0666") }, ["T0001", "T0666"]],
    ["where no workspaces are named", {}, undefined],
  ])("by somebody %s is looked at by the policy as ever", async (_who, fields, teams) => {
    serve(teams);
    const incident = await asked();
    await request(approve(incident, fields));
    expect((await bench.events("refused")).filter(({ data }) => data["statement"] === "slack.teams")).toEqual([]);
    expect(bench.logged.filter((line) => line.includes("stopped"))).toEqual([]);
  });

  test("about an incident that there is not: nothing is written down for it", async () => {
    await request(approve("inc-none", { user: person("U0002", "T0666") }));
    expect(await bench.store.audit()).toEqual([]);
  });
});

test("a mention in a shared channel: of our own people, not of the others", async () => {
  const shared = { is_ext_shared_channel: true };
  await request(signedEvent(mention("<@U0BOT> node2", { user_team: "T0666", team: "T0666", user: "U0666" }, shared)));
  expect(bench.node.jobs.size).toBe(0);
  await request(signedEvent(mention("<@U0BOT> node2", { ts: "1700000009.000100" }, shared)));
  expect(bench.node.count("collect")).toBe(1);
});

/** A command comes while the configuration cannot be read. */
async function whileUnreadable(retryable: boolean): Promise<void> {
  await bench.close();
  const error = Object.assign(new Error("the configuration could not be read: AccessDenied"), { retryable });
  bench = new Bench(() => ({ config: () => Promise.reject(error) }));
  send = slackHandler({ signingSecret: SECRET, work: bench.ports.work, render: () => ({ text: "", blocks: [] }) });
  await request(signed(command("node2")));
  expect(bench.node.jobs.size).toBe(0);
  expect(bench.chat.whispered({ id: "U0001", team: "T0001" }).join()).toMatch(/AccessDenied.*Run id: inc-/);
}

test("nobody passes while the configuration cannot be read, and whoever asked is told", () => whileUnreadable(false));

test("so it is where that may pass and does not", () => whileUnreadable(true));

test.each([["T 1"], ["U0001"], [""], ["*"]])("slack.teams: %j is no workspace", (team) => {
  expect(Config.safeParse({ clusters: {}, slack: { teams: [team] } }).success).toBe(false);
});

test("a signature does not help a request that is old, changed, or sent twice: no execution", async () => {
  const log = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const incident = await asked();
  const event = approve(incident, {});
  const body = decodeURIComponent(event.body ?? "");
  const edited = { ...event, body: new URLSearchParams({ payload: body.slice("payload=".length).replace("U0002", "U0003") }).toString() };
  const stale = signed(click("approve", `${incident} ${incident}-fix`), { timestamp: Math.floor(Date.now() / 1000) - 301 });
  for (const forged of [edited, stale]) expect(await send(forged)).toEqual({ statusCode: 401, body: "" });
  await request(event);
  expect(await send(event)).toEqual({ statusCode: 401, body: "" });
  log.mockRestore();
});
