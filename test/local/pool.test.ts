import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { root } from "../../functions/local/assembly.ts";
import { capturesOf } from "../../functions/local/nodes.ts";
import { compare, WORTH_A_LOOK } from "../../functions/rules/compare.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { type Catalogue, loadCatalogue, loadFile } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { Config } from "../../functions/triage/config.ts";
import { poolOf, targetsOf } from "../../functions/triage/targets.ts";

/** The pool of local mode: four nodes that are built alike, recorded live; on blue-3 something is left that no rule knows. */

const NAMES = ["blue-1", "blue-2", "blue-3", "blue-4"];
const config = loadFile(join(root, "functions/local/netcheck.yaml"), Config).value;
const captures = new Map<string, Capture>();
let catalogue: Catalogue;

beforeAll(async () => {
  catalogue = loadCatalogue(join(root, "runbooks"));
  const find = capturesOf(join(root, "runbooks"));
  for (const target of targetsOf(config).filter(({ name }) => NAMES.includes(name))) {
    const files = find(target);
    if (files !== undefined) captures.set(target.name, await readCaptureFiles(files.before));
  }
});

const captureOf = (name: string): Capture => {
  const capture = captures.get(name);
  if (capture === undefined) throw new Error(`local mode has no capture of ${name}`);
  return capture;
};
const named = (name: string) => ({ name, capture: captureOf(name) });
const withPool = (name: string) =>
  compare(
    named(name),
    poolOf(config, { name, cluster: "demo" }).map((peer) => named(peer.name)),
  );
const text = (name: string, command: string): string => captureOf(name).outputs.find((output) => output.command === command)?.text ?? "";

test("each of the four is held against the three others", () => {
  for (const name of NAMES) expect(poolOf(config, { name, cluster: "demo" }).map((peer) => peer.name)).toEqual(NAMES.filter((other) => other !== name));
});

test("no two have the same addresses, links, routes or counters: what they have in common has to be found", () => {
  for (const command of ["ip -j addr show", "ip -d -s -j link show", "ip -j -4 route show table all", "iptables-save -c", "conntrack -L"])
    expect([command, new Set(NAMES.map((name) => text(name, command))).size]).toEqual([command, 4]);
});

// a rule that needs a command that was not recorded makes it inconclusive: then record again (test/lab/record-pool.ts)
test.each(NAMES)("%s: no rule of the catalogue finds anything", (name) => {
  const { verdict, causes, symptoms, risks } = diagnose(captureOf(name), catalogue, name, () => 0);
  expect({ verdict, causes, symptoms, risks }).toEqual({ verdict: "healthy", causes: [], symptoms: [], risks: [] });
});

describe("blue-3", () => {
  test("the policy rule comes first, then the route it leads to, and nothing else", () => {
    const { differences, notCompared } = withPool("blue-3");
    expect(differences.map(({ what }) => what)).toEqual([
      "Only here (rule table 100): priority 1000 from all lookup 100; none of the 3 peers has it",
      "Only here (route table 100): unicast 10.40.0.0/16 interface eth0 gateway 10.20.0.77 metric 0; none of the 3 peers has it",
    ]);
    expect(differences.every(({ score }) => score >= WORTH_A_LOOK)).toBe(true);
    expect(differences[0]).toMatchObject({ here: [{ command: "ip -j -4 rule show", line: 1 }], there: [], notIn: "ip -j -4 rule show" });
    expect(differences[0]?.here[0]?.text).toBe('{"priority":1000,"src":"all","table":"100"}');
    expect(differences[0]?.why).toContain("before the main table");
    expect(notCompared).toEqual([]);
  });

  test("against one peer alone, too", () => {
    for (const peer of ["blue-1", "blue-2", "blue-4"])
      expect([peer, compare(named("blue-3"), [named(peer)]).differences.map(({ fact }) => fact)]).toEqual([peer, ["rule", "route"]]);
  });
});

test.each(["blue-1", "blue-2", "blue-4"])("%s: no difference from its pool, though blue-3 is in it", (name) => {
  expect(withPool(name).differences).toEqual([]);
});
