import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { readFacts } from "../../functions/facts/read.ts";
import { evaluateRule, Facts } from "../../functions/rules/evaluate.ts";
import { bind } from "../../functions/rules/fix.ts";
import { fixtureNames, readCase } from "../../functions/rules/fixtures.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/**
 * Never a dangerous button: of the many forms of one fault only some are safe to mend from here. In these rules each case that matches says so: with `fix` in its
 * expect.yaml the fix is offered with these parameters, and without it there must be none.
 */
const RULES = [
  "clock-unsynchronized",
  "duplicate-address",
  "leftover-cni-interface",
  "local-route-shadowed",
  "mtu-mismatch",
  "neighbor-table-overflow",
  "networkd-removes-foreign-routes",
  "nm-cloud-setup-rules",
  "node-local-dns-orphan",
  "overlay-interface-down",
  "policy-rule-missing",
  "rp-filter-drops",
  "stale-pod-route",
  "stale-pod-veth",
  "stale-tcx-program",
  "veth-not-on-bridge",
  "vpc-cni-rules-missing",
  "vxlan-checksum-offload",
];
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });

describe.each(RULES)("the fix of %s", (id) => {
  const matching = fixtureNames(runbooks, id)
    .map((name) => readCase(runbooks, id, name))
    .filter(({ expect: { verdict } }) => verdict === "match");

  test.each(matching)("in $name", async ({ capture: path, expect: expected }) => {
    const rule = catalogue.rules.get(id);
    const fix = catalogue.fixes.get(rule?.file.fix ?? "");
    if (rule === undefined || fix === undefined) throw new Error(`${id} has no fix`);
    const capture = await readCaptureFiles(path);
    const { verdict, parameters } = evaluateRule(rule, new Facts(capture, readFacts(capture)));
    expect(verdict).toBe("match");
    // a condition that could not be worked out would hide the fix everywhere
    expect(Object.keys(parameters ?? {}).sort()).toEqual(Object.keys(fix.file.parameters).sort());
    const binding = bind(fix.file, parameters ?? {});
    expect(binding.ok ? binding.parameters : undefined).toEqual(expected.fix);
    if (!binding.ok) expect(binding.problem, "why there is none, and what to do by hand").toBe(fix.file.otherwise);
  });
});
