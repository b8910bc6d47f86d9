import type { Fix } from "../rules/load.ts";
import { shellProblem } from "../transports/local.ts";
import { scripts } from "../transports/script.ts";
import { fixPlan } from "../triage/plan.ts";

/** What is wrong with the shell of a fix's `check`, by itself or as a part of the whole script; undefined if nothing is. Nothing is run. */
export async function fixShellProblem(fix: Fix): Promise<string | undefined> {
  const alone = await shellProblem(fix.file.check);
  if (alone !== undefined) return `check is not valid shell: ${alone}`;
  const whole = await shellProblem(scripts.fix(fixPlan(fix)).text);
  return whole === undefined ? undefined : `with this check the script of the fix is not valid shell: ${whole}`;
}
