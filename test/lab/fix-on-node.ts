import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { collectFrom } from "../../functions/cli/collect.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { scripts } from "../../functions/transports/script.ts";
import { fixPlan, scriptParameters } from "../../functions/triage/plan.ts";
import type { FixRun, Target, Transport } from "../../functions/triage/ports.ts";

const catalogue = loadCatalogue(join(fileURLToPath(new URL("../../", import.meta.url)), "runbooks"));

/** Diagnoses a target and runs the fix (or the rollback) of a rule there, without approval: for recording fixtures and for tests of the fixes themselves. */
export async function fixOnNode(
  transport: Transport,
  target: Target,
  rule: string,
  direction: "fix" | "rollback" = "fix",
  known?: Record<string, string>,
): Promise<{ run: FixRun; parameters: Record<string, string> }> {
  const fixId = catalogue.rules.get(rule)?.file.fix ?? "";
  const fix = catalogue.fixes.get(fixId);
  if (fix === undefined) throw new Error(`${rule} has no fix`);
  let parameters = known;
  if (parameters === undefined) {
    const diagnosis = diagnose(await collectFrom(transport, target), catalogue, target.name, () => 0);
    const cause = diagnosis.causes.find((item) => item.rule === rule);
    if (cause?.fix === undefined)
      throw new Error(`${rule} was not found on ${target.name}: ${JSON.stringify({ causes: diagnosis.causes, unchecked: diagnosis.unchecked })}`);
    parameters = scriptParameters(fix, cause.fix.parameters);
  }
  const nonce = randomBytes(16).toString("hex");
  const handle = await transport.start(target, { id: `fix-${nonce.slice(0, 12)}`, script: scripts.fix(fixPlan(fix, direction)), parameters, nonce });
  for (;;) {
    const state = await transport.poll(target, handle, 10_000);
    if (state.state === "running") continue;
    if (state.state !== "done") throw new Error(`${fixId}: ${state.reason}`);
    return { run: scripts.readFix(state.stdout, nonce), parameters };
  }
}
