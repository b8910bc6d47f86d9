import type { Diagnosis } from "./diagnosis.ts";

/** Rules that could not be decided for one reason: fifty rules that lack one output are one thing to tell, not fifty. */
export interface UncheckedGroup {
  readonly rules: readonly string[];
  readonly reason: string;
  /** The command that nobody ran, where that is the reason. */
  readonly absent?: string;
}

/** How the reader of facts says that nobody ran the command (facts/read.ts). */
const NOT_THERE = /the capture holds no output of `([^`]+)`$/;
/** Which fact it is that lacks something (evaluate.ts): one output may be what several lack, and nobody knows our facts by name. */
const OF_FACT = /^(?:[a-z][\w-]* is only partly known: |(?:needs )?[a-z][\w-]*: (?=`))/;

/**
 * What could not be checked, by reason. First what is left open of that which was looked at: who pasted two outputs wants to know what is missing in these. Then the
 * outputs that are not there, each once; in both what keeps most rules from deciding comes first.
 */
export function uncheckedGroups(unchecked: Diagnosis["unchecked"]): UncheckedGroup[] {
  const groups = new Map<string, { rules: string[]; reason: string; absent?: string }>();
  for (const { rule, reason: why } of unchecked) {
    const [missing, absent] = NOT_THERE.exec(why) ?? [];
    const reason = missing ?? why.replace(OF_FACT, "");
    const group = groups.get(reason);
    if (group === undefined) groups.set(reason, { rules: [rule], reason, ...(absent === undefined ? {} : { absent }) });
    else group.rules.push(rule);
  }
  const later = ({ absent }: UncheckedGroup): number => (absent === undefined ? 0 : 1);
  return [...groups.values()].sort((a, b) => later(a) - later(b) || b.rules.length - a.rules.length || (a.reason < b.reason ? -1 : 1));
}
