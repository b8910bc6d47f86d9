import type { Diagnosis } from "./diagnosis.ts";

/** Rules that could not be decided for one reason: fifty rules that lack one output are one thing to tell, not fifty. */
export interface UncheckedGroup {
  readonly rules: readonly string[];
  readonly reason: string;
}

/** What could not be checked, by reason; what keeps most rules from deciding comes first. */
export function uncheckedGroups(unchecked: Diagnosis["unchecked"]): UncheckedGroup[] {
  const groups = new Map<string, { rules: string[]; reason: string }>();
  for (const { rule, reason } of unchecked) {
    const group = groups.get(reason);
    if (group === undefined) groups.set(reason, { rules: [rule], reason });
    else group.rules.push(rule);
  }
  return [...groups.values()].sort((a, b) => b.rules.length - a.rules.length || (a.reason < b.reason ? -1 : 1));
}
