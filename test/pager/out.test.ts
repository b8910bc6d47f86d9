import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type PagersSettings, pagersOut } from "../../functions/pager/out/pagers.ts";
import type { Pagers } from "../../functions/triage/ports.ts";
import { GRAFANA_TOKEN, type GrafanaEmulator, startGrafana } from "../emulators/grafana.ts";
import { GENIE_KEY, type OpsgenieEmulator, startOpsgenie } from "../emulators/opsgenie.ts";
import { PAGERDUTY_TOKEN, type PagerDutyEmulator, ROUTING_KEY, startPagerDuty } from "../emulators/pagerduty.ts";

/** What netcheck leaves in monitoring systems, over HTTP, against emulators that answer and refuse as the real ones do. */

let pagerduty: PagerDutyEmulator;
let opsgenie: OpsgenieEmulator;
let grafana: GrafanaEmulator;
let settings: PagersSettings | undefined;
let secrets: Record<string, string>;
let asked: string[];
let pagers: Pagers;
beforeAll(async () => {
  [pagerduty, opsgenie, grafana] = await Promise.all([startPagerDuty(), startOpsgenie(), startGrafana()]);
});
afterAll(async () => {
  await Promise.all([pagerduty.close(), opsgenie.close(), grafana.close()]);
});
beforeEach(() => {
  for (const { trouble } of [pagerduty, opsgenie, grafana]) trouble.next = undefined;
  pagerduty.notes.clear();
  pagerduty.notes.set("PINC1", []);
  opsgenie.notes.clear();
  opsgenie.notes.set("70413a06-38d6", []);
  grafana.annotations.length = 0;
  pagerduty.events.length = 0;
  pagerduty.requests.length = 0;
  settings = {
    pagerduty: { tokenSecret: "PD_TOKEN", from: "netcheck@example.com", region: "us", routingKeySecret: "PD_ROUTING" },
    opsgenie: { tokenSecret: "OG_TOKEN", region: "eu" },
    grafana: { url: `${grafana.url}/`, tokenSecret: "GF_TOKEN" },
    people: { "alice@example.com": "U_ALICE" },
  };
  secrets = { PD_TOKEN: PAGERDUTY_TOKEN, PD_ROUTING: ROUTING_KEY, OG_TOKEN: GENIE_KEY, GF_TOKEN: GRAFANA_TOKEN };
  asked = [];
  pagers = pagersOut({
    settings: async () => settings,
    secret: async (name) => secrets[name] ?? "",
    personOf: async (email) => {
      asked.push(email);
      return email === "bob@example.com" ? { id: "U_BOB", team: "T1" } : undefined;
    },
    addresses: { pagerduty: pagerduty.url, events: pagerduty.url, opsgenie: opsgenie.url },
  });
});

const NOTE = "netcheck: inc-1 examined node2: likely cause found\nEvidence: a <b> & c";
const problemOf = async (run: Promise<unknown>): Promise<Error & { retryable?: boolean }> =>
  run.then(
    () => {
      throw new Error("it did not fail");
    },
    (error: Error) => error,
  );

const CASES = [
  { source: "pagerduty", ref: "PINC1", emulator: () => pagerduty, kept: () => pagerduty.notes.get("PINC1")?.map(({ content }) => content), token: "PD_TOKEN" },
  {
    source: "opsgenie",
    ref: "70413a06-38d6",
    emulator: () => opsgenie,
    kept: () => opsgenie.notes.get("70413a06-38d6")?.map(({ note }) => note),
    token: "OG_TOKEN",
  },
  {
    source: "grafana",
    ref: "rule-uid-1",
    emulator: () => grafana,
    kept: () => grafana.annotations.map(({ text }) => text.replaceAll("<br/>", "\n").replace("&lt;b&gt; &amp; c", "<b> & c")),
    token: "GF_TOKEN",
  },
];

describe.each(CASES)("a note to $source", ({ source, ref, emulator, kept, token }) => {
  test("is left once, however often the step is repeated; another one beside it", async () => {
    expect(await pagers.note(source, ref, NOTE)).toBe(true);
    expect(await pagers.note(source, ref, NOTE)).toBe(true);
    expect(kept()).toEqual([NOTE]);
    await pagers.note(source, ref, "netcheck: inc-1 ended for node2: resolved");
    expect(kept()?.length).toBe(2);
  });

  test("a key that is refused says what to do, and is not tried again", async () => {
    secrets[token] = "wrong";
    const error = await problemOf(pagers.note(source, ref, NOTE));
    expect(error.message).toMatch(new RegExp(`^${source}: could not leave .*HTTP 401.*tokenSecret`));
    expect(error.retryable).toBe(false);
  });

  test.each([429, 500, 503])("%s may pass, and nothing was left", async (status) => {
    emulator().trouble.next = { status, times: 1 };
    const error = await problemOf(pagers.note(source, ref, NOTE));
    expect([error.retryable, error.message.includes(`HTTP ${status}`), kept()]).toEqual([true, true, []]);
    await pagers.note(source, ref, NOTE);
    expect(kept()).toEqual([NOTE]);
  });

  test("a connection that is cut may pass", async () => {
    emulator().trouble.next = { cut: true, times: 1 };
    expect((await problemOf(pagers.note(source, ref, NOTE))).retryable).toBe(true);
  });
});

test("an incident that is gone is said, and not tried again; a ref that is no id never gets into an address", async () => {
  const gone = await problemOf(pagers.note("pagerduty", "PGONE", NOTE));
  expect([gone.message, gone.retryable]).toEqual(["pagerduty: could not leave a note on incident PGONE: HTTP 404: Not Found", false]);
  const before = pagerduty.requests.length;
  expect((await problemOf(pagers.note("pagerduty", "../users", NOTE))).message).toContain("no id of an incident");
  expect(pagerduty.requests.length).toBe(before);
});

test("what takes no notes is annotated beside it, where Grafana is configured; else nothing is tried", async () => {
  expect(await pagers.note("alertmanager", undefined, NOTE)).toBe(true);
  expect(grafana.annotations[0]?.tags[0]).toBe("netcheck");
  expect(grafana.annotations[0]?.text).not.toContain("<b>");
  settings = {};
  expect(await pagers.note("cloudwatch", undefined, NOTE)).toBe(false);
  expect(await pagers.note("pagerduty", "PINC1", NOTE)).toBe(false);
});

describe("a call through PagerDuty", () => {
  const CALL = {
    id: "abc",
    summary: "nobody took this on",
    severity: "critical",
    details: { alert: "x" },
    url: "https://example.slack.com/archives/C1/p1",
  } as const;
  test("opens one alert, marked as ours, and ends it", async () => {
    await pagers.escalate(CALL);
    await pagers.escalate(CALL);
    expect([...pagerduty.open]).toEqual(["netcheck:abc"]);
    expect(pagerduty.events[0]).toMatchObject({
      client: "netcheck",
      payload: { summary: "netcheck: nobody took this on", severity: "critical", custom_details: { alert: "x" } },
    });
    await pagers.standDown("abc");
    expect([...pagerduty.open]).toEqual([]);
  });

  test("a routing key of the wrong length, and none at all, are said", async () => {
    secrets["PD_ROUTING"] = "short";
    expect((await problemOf(pagers.escalate(CALL))).message).toContain("should be 32 characters");
    settings = { pagerduty: { tokenSecret: "PD_TOKEN", from: "netcheck@example.com", region: "us" } };
    expect((await problemOf(pagers.escalate(CALL))).message).toContain("routingKeySecret");
    await pagers.standDown("abc");
    settings = {};
    expect((await problemOf(pagers.escalate(CALL))).message).toContain("pagers.pagerduty");
  });
});

describe("who is on call", () => {
  test("by PagerDuty: the lowest level; by the map, else by Slack, else by name", async () => {
    pagerduty.onCalls.set("PSCHED1", [
      { level: 2, name: "Boss", email: "boss@example.com" },
      { level: 1, name: "Alice", email: "Alice@example.com" },
    ]);
    expect(await pagers.onCall({ by: "pagerduty", schedule: "PSCHED1" })).toEqual({ name: "Alice", actor: { id: "U_ALICE", team: "" } });
    expect(asked).toEqual([]);
    pagerduty.onCalls.set("PSCHED1", [{ level: 1, name: "Bob", email: "bob@example.com" }]);
    expect(await pagers.onCall({ by: "pagerduty", schedule: "PSCHED1" })).toEqual({ name: "Bob", actor: { id: "U_BOB", team: "T1" } });
    pagerduty.onCalls.set("PSCHED1", [{ level: 1, name: "Eve", email: "eve@example.com" }]);
    expect(await pagers.onCall({ by: "pagerduty", schedule: "PSCHED1" })).toEqual({ name: "Eve" });
    pagerduty.onCalls.set("PSCHED1", []);
    expect(await pagers.onCall({ by: "pagerduty", schedule: "PSCHED1" })).toBeUndefined();
    expect((await problemOf(pagers.onCall({ by: "pagerduty", schedule: "PNONE" }))).message).toContain("there is no schedule PNONE");
  });

  test("by Opsgenie, and by Slack", async () => {
    opsgenie.onCalls.set("sched-1", ["bob@example.com"]);
    expect(await pagers.onCall({ by: "opsgenie", schedule: "sched-1" })).toEqual({ name: "bob@example.com", actor: { id: "U_BOB", team: "T1" } });
    expect(await pagers.onCall({ by: "slack", schedule: "S_ONCALL" })).toEqual({ name: "S_ONCALL", actor: { id: "S_ONCALL", team: "" } });
    settings = {};
    expect((await problemOf(pagers.onCall({ by: "opsgenie", schedule: "sched-1" }))).message).toContain("pagers.opsgenie");
  });
});
