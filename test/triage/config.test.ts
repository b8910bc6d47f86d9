import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LoadError, loadFile } from "../../functions/rules/load.ts";
import { Config } from "../../functions/triage/config.ts";
import { configuredTargets, targetsOf } from "../../functions/triage/targets.ts";
import { root } from "./runbooks.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-config-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function load(text: string): Config {
  const file = join(folder, "netcheck.yaml");
  writeFileSync(file, text);
  return loadFile(file, Config).value;
}

const CLUSTERS = "clusters:\n  lab: { transport: local, targets: { node1: {} } }\n";

describe("netcheck.yaml", () => {
  test("the smallest one: what is not said is denied", () => {
    expect(load(CLUSTERS)).toEqual({ clusters: { lab: { transport: "local", targets: { node1: {} } } }, runbook: "netcheck", policy: [] });
  });

  test("a statement says little and means all", () => {
    expect(load(`${CLUSTERS}policy:\n  - { id: a, effect: allow, approvers: [S012ABC, U_BOB, W12] }\n`).policy).toEqual([
      {
        id: "a",
        effect: "allow",
        clusters: ["*"],
        targets: ["*"],
        fixes: ["*"],
        risks: ["low", "disruptive"],
        requesters: ["*"],
        approvers: ["S012ABC", "U_BOB", "W12"],
        selfApproval: false,
        approvalsNeeded: 1,
        expires: "60m",
        oneAtATime: "node",
      },
    ]);
  });

  test("the one of local mode loads", () => {
    expect(targetsOf(loadFile(join(root, "functions/local/netcheck.yaml"), Config).value).map(({ name }) => name)).toContain("node1");
  });

  const statement = (more: string): string => `${CLUSTERS}policy:\n  - id: a\n    effect: allow\n    approvers: [U_BOB]\n    ${more}\n`;

  test.each([
    ["an unknown key", `${CLUSTERS}polices: []\n`, ":3:1: polices: ", 'Unrecognized key: "polices"'],
    ["an unknown key in a statement", statement("approver: [U_EVE]"), "policy.0", 'Unrecognized key: "approver"'],
    ["an unknown key in a cluster", "clusters:\n  lab: { transport: local, targets: {}, secret: x }\n", "clusters.lab", 'Unrecognized key: "secret"'],
    ["a key that is there twice", `${CLUSTERS}clusters: {}\n`, "", "Map keys must be unique"],
    ["no YAML", "clusters: [\n", "", ""],
    ["nothing", "", "", "expected object"],
    ["a transport that there is not", "clusters:\n  lab: { transport: ssh, targets: {} }\n", ":2:10: clusters.lab.transport: ", "local"],
    ["a target that is no name", "clusters:\n  lab: { transport: local, targets: { '-rf': {} } }\n", "clusters.lab.targets", ""],
    ["a region that is none", "clusters:\n  lab: { transport: ssm, region: evil.example, targets: {} }\n", "clusters.lab.region", ""],
    ["a name for a person", statement("requesters: [bob]"), "policy.0.requesters.0: ", "a user id (U…)"],
    ["nobody", statement("requesters: []"), "policy.0.requesters: ", ""],
    ["an effect that there is not", statement("selfApproval: false").replace("allow", "maybe"), "policy.0.effect: ", "allow"],
    ["no approvals at all", statement("approvalsNeeded: 0"), ":7:5: policy.0.approvalsNeeded: ", ">=1"],
    ["a wait without end", statement("expires: 8d"), ":7:5: policy.0.expires: ", "7 days at most"],
    ["a wait in words", statement("expires: soon"), "policy.0.expires: ", '"2h"'],
    ["a word for yes", statement('selfApproval: "true"'), "policy.0.selfApproval: ", "boolean"],
  ])("%s is an error that names file, place and key", (_, text, place, reason) => {
    let problem: unknown;
    try {
      load(text);
    } catch (error) {
      problem = error;
    }
    expect(problem).toBeInstanceOf(LoadError);
    const { message } = problem as LoadError;
    expect(message.startsWith(join(folder, "netcheck.yaml")), message).toBe(true);
    expect(message).toContain(place);
    expect(message).toContain(reason);
  });

  test("a file that is not there", () => {
    expect(() => loadFile(join(folder, "none.yaml"), Config)).toThrow(/none\.yaml: could not read it: ENOENT/);
  });
});

describe("targets", () => {
  const config = Config.parse({
    clusters: {
      eu: { transport: "ssm", targets: { "ip-10-0-0-1": { address: "i-0abc" }, node1: {} } },
      us: { transport: "ssm", targets: { node1: {} } },
    },
  });
  const resolve = (name: string) => configuredTargets(async () => config).resolve(name);

  test.each(["ip-10-0-0-1", "IP-10-0-0-1", "i-0abc", "eu/ip-10-0-0-1"])("%s is found", async (name) => {
    expect(await resolve(name)).toEqual({ kind: "found", target: { name: "ip-10-0-0-1", cluster: "eu", transport: "ssm", address: "i-0abc" } });
  });

  test("a name of two clusters is ambiguous; with its cluster it is one", async () => {
    expect(await resolve("node1")).toMatchObject({ kind: "ambiguous", candidates: [{ cluster: "eu" }, { cluster: "us" }] });
    expect(await resolve("us/node1")).toMatchObject({ kind: "found", target: { cluster: "us" } });
  });

  test("a slip gets the nearest names, nonsense gets none", async () => {
    expect(await resolve("ip-10-0-0-2")).toEqual({ kind: "unknown", suggestions: ["ip-10-0-0-1"] });
    expect(await resolve("something-completely-different")).toEqual({ kind: "unknown", suggestions: [] });
    expect(await resolve("__proto__")).toMatchObject({ kind: "unknown" });
  });
});
