import { describe, expect, test } from "vitest";
import { LoadError, parseFile } from "../../functions/rules/load.ts";
import { Config, milliseconds } from "../../functions/triage/config.ts";

/** What is refused when netcheck.yaml is loaded, with line, column and key: a policy that says something else than its author means. */

const CLUSTERS = "clusters:\n  eu: { transport: ssm, targets: { node1: {} } }\n  us: { transport: ssm, targetsByTag: { team: a } }\n";

const load = (statements: string): Config => parseFile("netcheck.yaml", `${CLUSTERS}policy:\n${statements}`, Config).value;
const allow = (...lines: string[]): string => ["  - id: a", "effect: allow", "approvers: [S_SRE]", ...lines].join("\n    ");
const deny = (...lines: string[]): string => allow(...lines).replace("allow", "deny");

function problemOf(statements: string): string {
  try {
    load(statements);
  } catch (error) {
    if (error instanceof LoadError) return error.message;
    throw error;
  }
  return "none";
}

describe("the policy in netcheck.yaml", () => {
  test("everything that a statement can say", () => {
    const [statement] = load(
      allow(
        "clusters: [eu]",
        'targets: ["node*"]',
        'fixes: ["move-*"]',
        "risks: [disruptive]",
        "requesters: [U_ALICE, S_DEV, cli]",
        "selfApproval: true",
        "approvalsNeeded: 2",
        "expires: 2h",
        "remind: 15m",
        "freezeWindows:",
        "  - { days: [fri, sat], from: '18:00', to: '08:00', timeZone: Europe/Berlin }",
        "  - { from: 2026-12-20, to: 2027-01-03T08:00, timeZone: UTC }",
        "maxNodes: { most: 3 }",
        "rate: { most: 10, per: 1d }",
        "oneAtATime: cluster",
        "breakGlass: { who: [S_LEADS], reviewers: [U_CISO] }",
      ),
    ).policy;
    expect(statement).toEqual({
      id: "a",
      effect: "allow",
      clusters: ["eu"],
      targets: ["node*"],
      fixes: ["move-*"],
      risks: ["disruptive"],
      requesters: ["U_ALICE", "S_DEV", "cli"],
      approvers: ["S_SRE"],
      selfApproval: true,
      approvalsNeeded: 2,
      expires: "2h",
      remind: "15m",
      freezeWindows: [
        { days: ["fri", "sat"], from: "18:00", to: "08:00", timeZone: "Europe/Berlin" },
        { from: "2026-12-20", to: "2027-01-03T08:00", timeZone: "UTC" },
      ],
      maxNodes: { most: 3, per: "1h" },
      rate: { most: 10, per: "1d" },
      oneAtATime: "cluster",
      breakGlass: { who: ["S_LEADS"], reviewers: ["U_CISO"] },
    });
  });

  test.each([
    ["45m", 45 * 60_000],
    ["2h", 7_200_000],
    ["7d", 604_800_000],
  ])("%s is %d ms", (text, expected) => expect(milliseconds(text)).toBe(expected));

  const window = (text: string): string => allow(`freezeWindows: [{ ${text} }]`);
  const at = (key: string, more = ""): string => `netcheck.yaml:8:${more}`.concat(` policy.0.${key}: `);
  test.each<[string, string, string, string]>([
    ["an effect that there is not", allow().replace("allow", "maybe"), "netcheck.yaml:6:5: policy.0.effect: ", '"allow" or "deny"'],
    ["no effect", "  - { id: a, approvers: [S_SRE] }", "policy.0", '"allow" or "deny"'],
    ["two of one name", `${allow()}\n${deny()}`, "netcheck.yaml:8:5: policy.1.id: ", 'another statement "a"'],
    ["a cluster that there is not", allow("clusters: [prod-*]"), "netcheck.yaml:8:5: policy.0.clusters: ", "it can never match: the clusters are eu, us"],
    ["a node that there is not", allow("clusters: [eu]", "targets: [node2]"), ":9:5: policy.0.targets: ", "no node of eu is named so"],
    ["more approvals than approvers", allow("approvalsNeeded: 2").replace("S_SRE", "U_BOB"), "policy.0.approvalsNeeded: ", "only 1 named"],
    ["one approver, twice", allow("approvalsNeeded: 2").replace("S_SRE", "U_BOB, U_BOB"), "policy.0.approvalsNeeded: ", "only 1 named"],
    ["who may only ask and only approve", allow("requesters: [U_BOB]").replace("S_SRE", "U_BOB"), "policy.0.approvers: ", "it can never match"],
    ["a reminder after the end", allow("expires: 1h", "remind: 60m"), ":9:5: policy.0.remind: ", "nobody is ever reminded"],
    ["a rate without a number", allow("rate: { per: 1h }"), "policy.0.rate.most: ", "number"],
    ["a rate over a year", allow("rate: { most: 1, per: 365d }"), "policy.0.rate.per: ", "up to 30 days"],
    ["no risk at all", allow("risks: []"), "policy.0.risks: ", ""],
    ["everybody may break the glass", allow('breakGlass: { who: ["*"] }'), "policy.0.breakGlass.who.0: ", 'not "*"'],
    ["a deny that asks for approvals", deny("approvalsNeeded: 2"), "policy.0", 'Unrecognized key: "approvalsNeeded"'],
    ["a deny that can be broken", deny("breakGlass: { who: [U_BOB] }"), "policy.0", 'Unrecognized key: "breakGlass"'],
    ["no window", allow("freezeWindows: []"), "policy.0.freezeWindows: ", ""],
    ["an unknown time zone", window('days: [fri], from: "18:00", to: "20:00", timeZone: Europe/Bern'), "policy.0.freezeWindows.0.timeZone: ", "Europe/Bern"],
    ["an offset for a time zone", window('days: [fri], from: "18:00", to: "20:00", timeZone: "+01:00"'), "freezeWindows.0.timeZone: ", "+01:00"],
    ["an empty window", window('days: [fri], from: "18:00", to: "18:00", timeZone: UTC'), "freezeWindows.0.to: ", "empty"],
    ["a day that there is not", window('days: [fry], from: "18:00", to: "20:00", timeZone: UTC'), "freezeWindows.0.days.0: ", "fri"],
    ["a time that there is not", window('days: [fri], from: "25:00", to: "20:00", timeZone: UTC'), "freezeWindows.0.from: ", "18:00"],
    ["24:00 as a beginning", window('days: [fri], from: "24:00", to: "08:00", timeZone: UTC'), "freezeWindows.0.from: ", "18:00"],
    ["times without days", window('from: "18:00", to: "20:00", timeZone: UTC'), "freezeWindows.0.from: ", "needs `days`"],
    ["a date that there is not", window("from: 2026-02-29, to: 2026-03-05, timeZone: UTC"), "freezeWindows.0.from: ", "2026-12-20"],
    ["dates with days", window("days: [fri], from: 2026-02-28, to: 2026-03-05, timeZone: UTC"), "freezeWindows.0.from: ", "a weekly window has times"],
    ["an end before the beginning", window("from: 2026-03-05, to: 2026-03-04, timeZone: UTC"), "freezeWindows.0.to: ", "ends before it begins"],
    [
      "a freeze for ever",
      window(
        'days: [mon, tue, wed, thu, fri, sat, sun], from: "08:00", to: "06:00", timeZone: UTC }, { days: [mon, tue, wed, thu, fri, sat, sun], from: "05:00", to: "08:00", timeZone: UTC',
      ),
      at("freezeWindows", "5:"),
      "leave no minute of the week",
    ],
  ])("%s is an error with its place", (_, statements, place, reason) => {
    const problem = problemOf(statements);
    expect(problem).toContain(place);
    expect(problem).toContain(reason);
  });

  test("near misses load: a node that a tag may bring, an approver among several, windows that leave a minute", () => {
    for (const statement of [
      allow("clusters: [us]", "targets: [node2]"),
      allow("requesters: [U_BOB]").replace("S_SRE", "U_BOB, U_CAROL"),
      allow("requesters: [U_BOB]", "selfApproval: true").replace("S_SRE", "U_BOB"),
      allow("requesters: [U_BOB]", "breakGlass: { who: [U_BOB] }").replace("S_SRE", "U_BOB"),
      allow("approvalsNeeded: 2").replace("S_SRE", "U_BOB, U_CAROL"),
      window('days: [mon, tue, wed, thu, fri, sat, sun], from: "00:01", to: "24:00", timeZone: UTC'),
      window("from: 2026-03-05, to: 2026-03-05, timeZone: UTC"),
    ])
      expect(problemOf(statement)).toBe("none");
  });
});
