import type { Catalogue } from "../rules/load.ts";
import { scripts } from "../transports/script.ts";
import { collectionPlan, fixPlan } from "../triage/plan.ts";
import type { Script } from "../triage/ports.ts";

/** Every script that can ever run on a node, by runbook and fix in the order of the catalogue: what a deployment registers, and what `doctor` compares it with. */
export function allScripts(catalogue: Catalogue): Script[] {
  const fixes = [...catalogue.fixes.values()];
  return [
    ...[...catalogue.runbooks.keys()].map((name) => scripts.collect(collectionPlan(catalogue, name))),
    ...fixes.map((fix) => scripts.fix(fixPlan(fix))),
    ...fixes.filter(({ file }) => file.rollback.length > 0).map((fix) => scripts.fix(fixPlan(fix, "rollback"))),
    scripts.fixStatus,
  ];
}
