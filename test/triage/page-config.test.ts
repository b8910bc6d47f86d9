import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { Config } from "../../functions/triage/config.ts";

/** `pages` of netcheck.yaml: what loads, and what an error says. */

const load = (pages: unknown) => Config.safeParse({ clusters: { lab: { transport: "replay" } }, pages });

test("a channel is enough: the rest is usual", () => {
  expect(load({ channel: "C0PAGES" }).data?.pages).toEqual({ channel: "C0PAGES", cooldown: "30m", window: "5m", maxTargets: 5, routes: [] });
});

test("a route with all it may say", () => {
  const route = {
    match: { source: "alertmanager", severity: "critical", labels: { alertname: "Node.*" } },
    channel: "C0OTHER",
    cluster: "lab",
    targets: [{ label: "instance", regex: "^([^:]+):9100$" }, { label: "node" }],
    triage: true,
    escalate: { after: "10m", by: "dm", to: "U0ALICE" },
    onCall: { by: "pagerduty", schedule: "PSCHED1" },
  };
  expect(load({ channel: "C0PAGES", routes: [route] }).data?.pages?.routes).toEqual([route]);
});

test.each([
  ["a pattern that is none", { match: { labels: { job: "(" } } }, "no regular expression"],
  ["a look-ahead, which RE2 does not have", { match: { labels: { job: "(?=x)" } } }, "no regular expression"],
  ["no group", { targets: [{ label: "x", regex: "node" }] }, "just one group"],
  ["two groups", { targets: [{ label: "x", regex: "(a)(b)" }] }, "just one group"],
  ["a group of nothing", { targets: [{ label: "x", regex: "(a*)" }] }, "empty text"],
  ["a cluster that there is not", { cluster: "prod" }, 'there is no cluster "prod": the clusters are lab'],
  ["a source that there is not", { match: { source: "nagios" } }, "pagerduty"],
  ["a key that there is not", { target: [] }, "target"],
  ["a schedule for a person", { onCall: { by: "slack", schedule: "PSCHED1" } }, "a user id"],
  ["an escalation without end", { escalate: { after: "1y", by: "dm" } }, "a duration"],
])("refused: %s", (_, route, message) => {
  expect(JSON.stringify(load({ channel: "C0PAGES", routes: [route] }).error?.issues).replaceAll('\\"', '"')).toContain(message);
});

test("the examples of docs/pages.md load", () => {
  const page = readFileSync(new URL("../../docs/pages.md", import.meta.url), "utf8");
  const examples = [...page.matchAll(/^( *)```yaml\n([\s\S]*?)```/gm)].map(([, indent = "", text = ""]) => text.replaceAll(new RegExp(`^${indent}`, "gm"), ""));
  const pages = examples.map((text) => (parse(text) as { pages?: unknown }).pages).filter((one) => one !== undefined);
  expect(pages.length).toBeGreaterThanOrEqual(2);
  for (const one of pages) expect(Config.safeParse({ clusters: { "eks-prod": { transport: "replay" } }, pages: one }).error?.issues).toBeUndefined();
});
