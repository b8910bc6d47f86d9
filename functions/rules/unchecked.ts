import type { Diagnosis } from "./diagnosis.ts";

/** Rules that could not be decided for one reason: fifty rules that lack one output are one thing to tell, not fifty. */
export interface UncheckedGroup {
  readonly rules: readonly string[];
  readonly reason: string;
}

/** How the reader of facts says that nobody ran the command (facts/read.ts). */
const NOT_THERE = /the capture holds no output of `[^`]+`$/;

/**
 * What could not be checked, by reason. First what is left open of that which was looked at: who pasted two outputs wants to know what is missing in these. Then the
 * outputs that are not there, each once; in both what keeps most rules from deciding comes first.
 */
export function uncheckedGroups(unchecked: Diagnosis["unchecked"]): UncheckedGroup[] {
  const groups = new Map<string, { rules: string[]; reason: string; absent: boolean }>();
  for (const { rule, reason: why } of unchecked) {
    const absent = NOT_THERE.exec(why)?.[0];
    const reason = absent ?? why;
    const group = groups.get(reason);
    if (group === undefined) groups.set(reason, { rules: [rule], reason, absent: absent !== undefined });
    else group.rules.push(rule);
  }
  return [...groups.values()]
    .sort((a, b) => Number(a.absent) - Number(b.absent) || b.rules.length - a.rules.length || (a.reason < b.reason ? -1 : 1))
    .map(({ rules, reason }) => ({ rules, reason }));
}
