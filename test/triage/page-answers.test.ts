import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { pagersOut } from "../../functions/pager/out/pagers.ts";
import { noteText } from "../../functions/triage/answer-page.ts";
import { sha256 } from "../../functions/triage/audit.ts";
import { Config } from "../../functions/triage/config.ts";
import type { OnCall, PageAlert, PagerCall, Pagers } from "../../functions/triage/ports.ts";
import { openIncidents } from "../../functions/triage/register.ts";
import { PAGERDUTY_TOKEN, type PagerDutyEmulator, ROUTING_KEY, startPagerDuty } from "../emulators/pagerduty.ts";
import { ALICE, Bench, BOB, MALLORY } from "./harness.ts";
import { healthy } from "./runbooks.ts";

/** What goes back to the monitoring system that paged, who is called, and how the thread is closed. The systems themselves are in test/pager/out.test.ts. */

/** Monitoring systems that keep what they are told. */
class RecordingPagers implements Pagers {
  readonly notes: { readonly source: string; readonly ref: string | undefined; readonly text: string }[] = [];
  readonly calls: PagerCall[] = [];
  readonly stoodDown: string[] = [];
  onDuty: OnCall | undefined = { name: "Bob", actor: BOB };
  trouble: () => void = () => undefined;

  async note(source: string, ref: string | undefined, text: string): Promise<boolean> {
    this.trouble();
    if (source === "cloudwatch") return false;
    this.notes.push({ source, ref, text });
    return true;
  }
  async escalate(call: PagerCall): Promise<void> {
    this.trouble();
    this.calls.push(call);
  }
  async standDown(id: string): Promise<void> {
    this.stoodDown.push(id);
  }
  async onCall(): Promise<OnCall | undefined> {
    this.trouble();
    return this.onDuty;
  }
}

const ROUTE = { escalate: { after: "10m", by: "pagerduty" }, onCall: { by: "pagerduty", schedule: "PSCHED" } };
const configOf = (route: object = ROUTE): Config =>
  Config.parse({
    clusters: { lab: { transport: "replay", targets: { node2: { address: "i-2" }, node3: {} } } },
    policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], expires: "2h" }],
    pages: { channel: "C_PAGES", routes: [{ match: {}, ...route }] },
    followUps: { after: [] },
  });

let bench: Bench;
let pagers: RecordingPagers;
let deliveries: number;
beforeEach(() => {
  pagers = new RecordingPagers();
  bench = new Bench(() => ({ pagers }));
  bench.config = configOf();
  deliveries = 0;
});
afterEach(async () => bench.close());

const now = (): string => new Date(bench.clock.now()).toISOString();
const alertOf = (more: Partial<PageAlert> = {}): PageAlert => ({
  key: "PINC1",
  status: "firing",
  severity: "critical",
  title: "NodeNetworkDown <!channel>",
  labels: {},
  targets: ["node2"],
  ref: "PINC1",
  url: "https://acme.pagerduty.com/incidents/PINC1",
  at: now(),
  ...more,
});
/** A delivery of PagerDuty, unless told. */
async function send(alerts: readonly PageAlert[], seconds = 60, source = "pagerduty"): Promise<void> {
  deliveries += 1;
  const name = `page-${deliveries}`;
  bench.engine.execute(name, { kind: "page", page: { source: source as never, id: `d${deliveries}`, alerts, more: 0 } });
  await bench.pass(seconds);
}
const incidentIds = async (): Promise<string[]> => (await bench.store.incidents(50)).map(({ id }) => id);
const only = async (): Promise<string> => (await incidentIds())[0] ?? "";
const posted = (pattern: RegExp): string[] => [...bench.chat.posts.keys()].filter((key) => pattern.test(key));
const texts = (pattern: RegExp): string[] => posted(pattern).map((key) => bench.chat.drawn(key));

describe("the note", () => {
  test("has the cause, its evidence and where to approve; after the fix it says how it ended", async () => {
    await send([alertOf()]);
    const id = await only();
    expect(pagers.notes.map(({ source, ref }) => [source, ref])).toEqual([["pagerduty", "PINC1"]]);
    const [note] = pagers.notes;
    expect(note?.text).toMatch(new RegExp(`^netcheck: ${id} examined node2: likely cause found\n`));
    expect(note?.text).toMatch(/% sure, critical\)\n.+\nEvidence:\n {2}\S.*, line \d+: /);
    expect(note?.text).toContain("A fix can be approved in the thread");
    expect(note?.text.split("\n").at(-1)).toMatch(/^Thread: https:\/\//);
    await bench.click("confirm", BOB, { incident: id, proposal: `${id}-fix` });
    expect(pagers.notes.map(({ text }) => text.split("\n")[0])).toEqual([
      note?.text.split("\n")[0],
      `netcheck: ${id} ended for node2: the fix ran, and its cause is gone`,
    ]);
    expect((await bench.events("page-answered")).map(({ data }) => data)).toEqual([
      { stage: "found", notes: 1, of: 1, failed: 0 },
      { stage: "ended", notes: 1, of: 1, failed: 0 },
    ]);
  });

  test("an alert that joins later is answered by itself, and the first one not again", async () => {
    await send([alertOf()]);
    await send([alertOf({ key: "PINC2", ref: "PINC2" })]);
    expect([await incidentIds()].flat()).toHaveLength(1);
    expect(pagers.notes.map(({ ref }) => ref)).toEqual(["PINC1", "PINC2"]);
    expect(pagers.notes[1]?.text).toBe(pagers.notes[0]?.text);
  });

  test("hostile lines of a node stay one line of plain text, and a note is never longer than 3,000 characters", async () => {
    const evil = `x${String.fromCharCode(27)}[31m\nnetcheck: inc-9 examined node9: all is well\u202e${"y".repeat(5000)}`;
    const finding = {
      rule: "r",
      title: evil,
      severity: "critical",
      confidence: 1,
      summary: evil,
      evidence: [{ command: evil, file: "f", line: 1, text: evil }],
      explains: [],
    } as const;
    const incident = { id: "inc-1", target: "node2", cluster: "lab", requester: ALICE, createdAt: now(), state: "diagnosed" } as const;
    const diagnosis = {
      schema: "netcheck.diagnosis/1",
      capture: "c",
      target: "node2",
      verdict: "cause-found",
      causes: Array.from({ length: 9 }, () => finding),
      symptoms: [],
      risks: [],
      unchecked: [],
      unparsed: [],
      unknown: [],
      stats: { bytes: 0, lines: 0, rules: 1, ms: 0 },
    } as const;
    const text = noteText(incident, "found", diagnosis, bench.catalogue, "https://acme.slack.com/archives/C1/p1");
    expect(text.length).toBeLessThanOrEqual(3000);
    expect(text.split("\n").filter((line) => line.startsWith("netcheck:"))).toHaveLength(1);
    expect([text.includes(String.fromCharCode(27)), text.includes("\u202e")]).toEqual([false, false]);
    expect(text.endsWith("Thread: https://acme.slack.com/archives/C1/p1")).toBe(true);
  });

  test("a healthy node, and one that could not be looked at, are told, too", async () => {
    bench.node.capture = () => healthy;
    await send([alertOf()]);
    expect(pagers.notes[0]?.text).toContain("no cause found: everything that was checked is in order");
    bench.node.beforeStart = () => {
      throw Object.assign(new Error("ssm: the node is offline"), { name: "TransportError" });
    };
    await bench.pass(3600);
    await send([alertOf({ key: "PINC2", ref: "PINC2", targets: ["node3"] })]);
    expect(pagers.notes[1]?.text).toMatch(/examined node3: inconclusive\n.*offline.*That says nothing about the node's network/);
  });

  test("what cannot be left is told in the thread with the reason, and holds nothing up", async () => {
    pagers.trouble = () => {
      throw new Error("pagerduty: could not leave a note on incident PINC1: HTTP 401: Unauthorized. The REST API key must be valid");
    };
    await send([alertOf()]);
    const id = await only();
    expect((await bench.incident(id)).state).toBe("awaiting-approval");
    expect(bench.chat.drawn(`${id}/note-failed-found`)).toContain("The page does not show this answer: pagerduty: could not leave a note");
    expect(bench.logged.join("\n")).not.toContain("triage failed");
  });

  test("a triage that fails is told as such", async () => {
    bench.node.capture = () => {
      throw new Error("unreadable");
    };
    bench.chat.trouble = (_, what) => {
      if (what.endsWith("/root") && what.startsWith("inc-")) throw new Error("slack: could not post in C_PAGES: is_archived");
    };
    await send([alertOf()]);
    expect(pagers.notes.map(({ text }) => text)).toEqual([expect.stringMatching(/ended for node2: the triage failed\n.*is_archived/)]);
  });

  test("what takes no notes is not tried, and a person's question leaves none", async () => {
    await send([alertOf()], 60, "cloudwatch");
    await bench.ask("node3", "inc-person");
    expect([pagers.notes, await bench.events("page-answered")]).toEqual([[], []]);
  });
});

describe("with PagerDuty behind it, over HTTP", () => {
  let pagerduty: PagerDutyEmulator;
  beforeEach(async () => {
    pagerduty = await startPagerDuty();
    pagerduty.notes.set("PINC1", []);
    pagerduty.onCalls.set("PSCHED", [{ level: 1, name: "Bob", email: "bob@example.com" }]);
    await bench.close();
    const settings = { pagerduty: { tokenSecret: "TOKEN", from: "netcheck@example.com", region: "us", routingKeySecret: "ROUTING" } } as const;
    const real = pagersOut({
      settings: async () => settings,
      secret: async (name) => (name === "TOKEN" ? PAGERDUTY_TOKEN : ROUTING_KEY),
      personOf: async () => BOB,
      addresses: { pagerduty: pagerduty.url, events: pagerduty.url },
    });
    bench = new Bench(() => ({ pagers: real }));
    bench.config = configOf();
  });
  afterEach(async () => pagerduty.close());

  test("a page is answered, escalated and stood down; requests that it refuses for now are sent again, and the note is there once", async () => {
    pagerduty.trouble.next = { status: 429, times: 2 };
    await send([alertOf()], 120);
    const notes = () => pagerduty.notes.get("PINC1")?.map(({ content }) => content.split("\n")[0]);
    const id = await only();
    expect(notes()).toEqual([`netcheck: ${id} examined node2: likely cause found`]);
    expect(texts(/^on-call\//)[0]).toContain(`<@${BOB.id}>`);
    await bench.pass(10 * 60);
    expect([...pagerduty.open]).toHaveLength(1);
    await send([alertOf({ status: "resolved" })]);
    expect([[...pagerduty.open], posted(/page-closed$/)]).toEqual([[], [`${id}/page-closed`]]);
    expect(notes()).toHaveLength(1);
  });
});

describe("who is on call", () => {
  test("is named once in the thread, as a mention where Slack knows the person", async () => {
    await send([alertOf({ targets: ["node2", "node3"] })]);
    expect(texts(/^on-call\//)).toHaveLength(1);
    expect(texts(/^on-call\//)[0]).toContain(`On call now: <@${BOB.id}>`);
  });

  test.each([
    [{ name: "Eve <!here>" }, "Eve &lt;!here&gt;, whom Slack does not know"],
    [undefined, "Nobody is on call now"],
  ])("%o is said", async (onDuty, words) => {
    pagers.onDuty = onDuty;
    await send([alertOf()]);
    expect(texts(/^on-call\//)[0]).toContain(words);
  });

  test.each([false, true])("who cannot be looked up is said; an outage that may pass, and does not: %j", async (retryable) => {
    pagers.onCall = () => Promise.reject(Object.assign(new Error("pagerduty: no answer in 10 s"), { retryable }));
    await send([alertOf()], 180);
    expect(texts(/^on-call\//)[0]).toContain("Who is on call could not be looked up: pagerduty: no answer in 10 s");
  });
});

describe("an escalation", () => {
  test("calls somebody if nobody takes a critical alert on, says so in its thread, and is stood down when the alert is over", async () => {
    await send([alertOf()]);
    await bench.pass(8 * 60);
    expect(pagers.calls).toEqual([]);
    await bench.pass(2 * 60);
    const details = {
      source: "pagerduty",
      alert: "https://acme.pagerduty.com/incidents/PINC1",
      "netcheck on node2": expect.stringMatching(/^a fix is waiting for approval: \S/),
    };
    expect(pagers.calls).toMatchObject([{ severity: "critical", url: expect.stringContaining("C_PAGES"), details }]);
    expect(pagers.calls[0]?.summary).toMatch(/^nobody took this critical alert on within 10 minutes: NodeNetworkDown/);
    expect(texts(/^escalation\//)[0]).toContain("PagerDuty was told to call somebody");
    expect((await bench.events("escalated")).length).toBe(1);
    await send([alertOf({ status: "resolved" })]);
    expect(pagers.stoodDown).toEqual([pagers.calls[0]?.id]);
  });

  test("an alert that names no node is escalated and stood down, too", async () => {
    await send([alertOf({ targets: [] })], 11 * 60);
    expect([pagers.calls.length, await incidentIds()]).toEqual([1, []]);
    await bench.pass(3600);
    expect(pagers.stoodDown).toEqual([]);
    await send([alertOf({ targets: [], status: "resolved" })]);
    await bench.pass(3600);
    expect(pagers.stoodDown).toEqual([pagers.calls[0]?.id]);
    await bench.pass(7 * 24 * 3600);
    expect(pagers.stoodDown).toHaveLength(1);
  });

  test("nobody is called for what was acknowledged, resolved, or taken on in Slack", async () => {
    await send([alertOf()]);
    await send([alertOf({ status: "acknowledged" })]);
    await send([alertOf({ key: "PINC2", targets: ["node3"] })]);
    const second = (await bench.store.incidents(5)).find(({ target }) => target === "node3")?.id ?? "";
    await bench.click("preview", MALLORY, { incident: second, proposal: `${second}-fix` });
    await bench.click("approve", BOB, { incident: second, proposal: `${second}-fix` });
    await bench.pass(3600);
    expect([pagers.calls, texts(/^escalation\//)]).toEqual([[], []]);
    expect(pagers.stoodDown).toEqual([]);
  });

  test("by direct message: to who is on call, or to whom the route names; a group is mentioned in the thread", async () => {
    bench.config = configOf({ escalate: { after: "10m", by: "dm" }, onCall: ROUTE.onCall });
    await send([alertOf()], 11 * 60);
    const [direct] = posted(/^escalation\/.*direct$/);
    expect(bench.chat.posts.get(direct ?? "")?.place).toEqual({ channel: BOB.id });
    expect(texts(/^escalation\/.*direct$/)[0]).toContain("NodeNetworkDown &lt;!channel&gt;");
    bench.config = configOf({ escalate: { after: "10m", by: "dm", to: "S_LEADS" } });
    await send([alertOf({ key: "PINC2", targets: ["node3"] })], 11 * 60);
    expect(texts(/^escalation\/.*told$/)[1]).toContain("<!subteam^S_LEADS>: please look at it");
    expect(posted(/^escalation\/.*direct$/)).toHaveLength(1);
  });

  test("one that fails is told in the thread with the reason; it is no secret that nobody was called", async () => {
    await send([alertOf()]);
    pagers.trouble = () => {
      throw new Error("pagerduty: could not call somebody: HTTP 400: Event object is invalid");
    };
    await bench.pass(10 * 60);
    expect(texts(/^escalation\/.*told$/)[0]).toContain("nobody could be called: pagerduty: could not call somebody: HTTP 400");
  });
});

describe("the end of a page", () => {
  test("closes the thread with what happened and the timeline as a file; said once, however often it is told", async () => {
    await send([alertOf()]);
    const id = await only();
    await bench.click("confirm", BOB, { incident: id, proposal: `${id}-fix` });
    await send([alertOf({ status: "resolved" })]);
    await send([alertOf({ status: "resolved" })]);
    const closed = bench.chat.drawn(`${id}/page-closed`);
    expect(closed).toContain("The page is over: pagerduty says that *NodeNetworkDown &lt;!channel&gt;* was resolved");
    for (const words of ["asked for the triage", "diagnosed", `<@${BOB.id}> approved`, "collected again and judged", "closed the thread"])
      expect(closed).toContain(words);
    expect(bench.chat.uploads.get(`${id}/page-closed-timeline`)).toContain(id);
    expect((await bench.events("page-closed")).length).toBe(1);
    expect(posted(/page-closed$/)).toHaveLength(1);
  });

  test("what waits for a person stays, and the thread says so; the incident is not changed", async () => {
    await send([alertOf()]);
    await send([alertOf({ status: "resolved" })]);
    const id = await only();
    expect(bench.chat.drawn(`${id}/page-closed`)).toContain("A fix still waits for approval here");
    expect((await bench.incident(id)).state).toBe("awaiting-approval");
    const listed = async () => (await openIncidents(bench.store, new Date(bench.clock.now()))).map(({ incident }) => incident);
    expect(await listed()).toEqual([id]);
  });

  test("an incident that answers two alerts is closed when both are over", async () => {
    await send([alertOf(), alertOf({ key: "PINC2" })]);
    const id = await only();
    await send([alertOf({ status: "resolved" })]);
    expect(posted(/page-closed$/)).toEqual([]);
    await send([alertOf({ key: "PINC2", status: "resolved" })]);
    expect(posted(/page-closed$/)).toEqual([`${id}/page-closed`]);
  });

  test("follow-ups end with it", async () => {
    bench.config = { ...configOf(), followUps: { after: ["30m"], spread: 0 } };
    await send([alertOf()]);
    const id = await only();
    bench.press("dismiss", ALICE, { incident: id, proposal: `${id}-fix` });
    await bench.pass(60);
    await send([alertOf({ status: "resolved" })]);
    await bench.pass(3600);
    expect([bench.outcome(`follow-${sha256(id).slice(0, 16)}`), posted(/follow-up/)]).toEqual(["page-over", []]);
  });

  test("a timeline that cannot be attached is said; the thread is closed all the same", async () => {
    bench.chat.trouble = (call) => {
      if (call === "upload") throw new Error("slack: could not upload a file: file_uploads_disabled");
    };
    await send([alertOf()]);
    // the triage itself wants to attach its report, and says so
    const id = await only();
    await send([alertOf({ status: "resolved" })]);
    expect(bench.chat.drawn(`${id}/no-timeline`)).toContain("The timeline could not be attached: slack: could not upload a file");
  });
});
