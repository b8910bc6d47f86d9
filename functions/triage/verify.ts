import type { Cause, Diagnosis, Finding } from "../rules/diagnosis.ts";

/** What the collection after a run says. */
export interface Verification {
  /** Undefined: it could not be told. */
  readonly ok: boolean | undefined;
  /** For people: sentences, of which the first begins in the middle of one. */
  readonly words: string;
  /** The cause is gone and nothing but symptoms is left, which may need longer to go than the fix takes to settle. */
  readonly lingers: boolean;
}

/**
 * Is the incident over? Only if its cause is surely gone, every symptom of the first diagnosis is surely gone that the cause explained or that nothing else on
 * record explains, and no cause is there that was not there before. Each symptom that is still there, or could not be checked, is named.
 * @param before the incident's first diagnosis
 * @param after of the collection after the fix, in which log lines that are older than the fix do not count
 * @param rule id of the cause that was fixed
 */
export function verifyFix(before: Diagnosis, after: Diagnosis, rule: string): Verification {
  const cause = before.causes.find((item) => item.rule === rule);
  const unsure = after.unchecked.find((item) => item.rule === rule);
  const open = (words: string, ok: false | undefined, lingers = false): Verification => ({
    ok,
    words: [words, ...asides(before, after, rule)].join(" "),
    lingers,
  });
  // a cause that another one explains now is listed among the symptoms: it is there all the same
  if (found(after, rule)) return open("the cause is still there.", false);
  if (unsure !== undefined) return open(`the cause could not be checked: ${unsure.reason}.`, undefined);

  const fresh = newCauses(before, after);
  if (fresh.length > 0) return open(`the cause is gone, but something new was found: ${titles(fresh)}.`, false);

  const { stay, unchecked } = symptomsOf(before, after, cause);
  if (stay.length > 0) return open(`the cause is gone, but the incident's symptoms are not: ${titles(stay)}.`, false, true);
  if (unchecked.length > 0) {
    const which = unchecked.map(({ title, reason }) => `${title} (${reason})`).join("; ");
    return open(`the cause is gone, but whether these symptoms of the incident are gone could not be checked: ${which}.`, undefined);
  }
  const had = (cause?.explains.length ?? 0) > 0 || before.symptoms.length > 0;
  return {
    ok: true,
    words: [`the cause is gone${had ? ", and the symptoms that it explained are gone, too" : ""}.`, ...asides(before, after, rule)].join(" "),
    lingers: false,
  };
}

/**
 * Is the node as it was before the fix? Then the same causes are found again, the fixed one with the same parameters. What differs is named.
 * @param rule id of the cause that the fix was for
 */
export function verifyRollback(before: Diagnosis, after: Diagnosis, rule: string): Verification {
  const then = before.causes.find((item) => item.rule === rule);
  const now = [...after.causes, ...after.symptoms].find((item) => item.rule === rule) as Cause | undefined;
  const unsure = after.unchecked.find((item) => item.rule === rule);
  if (now === undefined && unsure !== undefined)
    return { ok: undefined, words: `whether the node is as before the fix could not be checked: ${unsure.reason}.`, lingers: false };
  const differences: string[] = [];
  if (now === undefined) differences.push(`the cause that the fix was for (${then?.title ?? rule}) is not found again`);
  else if (JSON.stringify(parametersOf(then)) !== JSON.stringify(parametersOf(now)))
    differences.push(`a fix of that cause would need other values now: ${now.summary}`);
  const fresh = newCauses(before, after);
  if (fresh.length > 0) differences.push(`new since then: ${titles(fresh)}`);
  const gone = before.causes.filter((item) => item.rule !== rule && !found(after, item.rule));
  if (gone.length > 0) differences.push(`not found any more: ${titles(gone)}`);
  if (differences.length > 0) return { ok: false, words: `the node is not as before the fix: ${differences.join("; ")}.`, lingers: false };
  return {
    ok: true,
    words: `the node is as before the fix: the cause that the fix was for is there again, as expected (${now?.title ?? rule}).`,
    lingers: false,
  };
}

const parametersOf = (cause: Cause | undefined): unknown => Object.entries(cause?.fix?.parameters ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
const found = (diagnosis: Diagnosis, rule: string): boolean => [...diagnosis.causes, ...diagnosis.symptoms].some((finding) => finding.rule === rule);
const titles = (findings: readonly Finding[]): string => findings.map(({ title }) => title).join("; ");

/** Causes that were nowhere in the first diagnosis. One that another cause explained there has only lost its cover. */
const newCauses = (before: Diagnosis, after: Diagnosis): Cause[] => after.causes.filter((cause) => !found(before, cause.rule));

/** The incident's symptoms that are still there, or could not be checked; without those that a cause explains which was on record beside the fixed one. */
function symptomsOf(
  before: Diagnosis,
  after: Diagnosis,
  cause: Cause | undefined,
): { readonly stay: readonly Finding[]; readonly unchecked: readonly { readonly title: string; readonly reason: string }[] } {
  const mine = new Set(cause?.explains);
  const others = new Set(before.causes.filter((item) => item !== cause && found(after, item.rule)).flatMap((item) => item.explains));
  const wanted = before.symptoms.filter(({ rule }) => mine.has(rule) || !others.has(rule));
  const stay = wanted.filter(({ rule }) => found(after, rule));
  const unchecked = wanted.flatMap(({ rule, title }) => {
    const open = after.unchecked.find((item) => item.rule === rule);
    return open === undefined || found(after, rule) ? [] : [{ title, reason: open.reason }];
  });
  return { stay, unchecked };
}

/** What else a person should know: other causes that stay, and rules that could be decided before. */
function asides(before: Diagnosis, after: Diagnosis, rule: string): string[] {
  const others = before.causes.filter((item) => item.rule !== rule && found(after, item.rule));
  const lost = after.unchecked.filter((item) => !before.unchecked.some((one) => one.rule === item.rule) && item.rule !== rule);
  return [
    ...(others.length === 0 ? [] : [`Still there, and not what this fix is for: ${titles(others)}.`]),
    ...(lost.length === 0 ? [] : [`Could be checked before the fix and not this time: ${lost.map((item) => item.rule).join(", ")}.`]),
  ];
}
