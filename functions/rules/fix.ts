import type { FixParameters } from "./diagnosis.ts";
import { type FixFile, type FixStep, MAX_LIST, parameterTypes } from "./schema.ts";

/** The values of a fix's parameters, checked; or why they will not do. */
export type Binding = { readonly ok: true; readonly parameters: FixParameters } | { readonly ok: false; readonly problem: string };

/** Checks the values a rule worked out against the strict types of the fix. Nothing that does not match its pattern ever gets further. */
export function bind(fix: FixFile, values: Readonly<Record<string, unknown>>): Binding {
  const parameters: Record<string, string | string[]> = {};
  for (const [name, parameter] of Object.entries(fix.parameters)) {
    const value = values[name];
    const list = (Array.isArray(value) ? value : value === undefined || value === "" ? [] : [value]).map(String);
    if (list.length === 0) {
      if (parameter.optional) continue;
      return {
        ok: false,
        problem: fix.otherwise ?? `${fix.id}: the captured outputs do not tell ${name}. Mitigation of the rule tells what to do by hand.`,
      };
    }
    if (!parameter.list && list.length > 1) return { ok: false, problem: `${fix.id}: several values for ${name}` };
    if (list.length > MAX_LIST) return { ok: false, problem: `${fix.id}: ${list.length} values for ${name}; at most ${MAX_LIST} are fixed in one go` };
    const pattern = new RegExp(`^(?:${parameterTypes[parameter.type]})$`);
    const bad = list.find((item) => !pattern.test(item));
    if (bad !== undefined) return { ok: false, problem: `${fix.id}: ${JSON.stringify(bad.slice(0, 80))} is not a valid ${parameter.type} for ${name}` };
    parameters[name] = parameter.list ? list : (list[0] as string);
  }
  return { ok: true, parameters };
}

/** The pattern that the encoded value of a parameter matches: a value, or values joined by one blank. The empty string stands for "not set". */
export function patternOf(parameter: FixFile["parameters"][string]): string {
  const one = `(?:${parameterTypes[parameter.type]})`;
  const some = parameter.list ? `${one}(?: ${one}){0,${MAX_LIST - 1}}` : one;
  return parameter.optional ? `^(?:${some})?$` : `^${some}$`;
}

/** Parameters as the environment variables that reach the script. */
export function encode(fix: FixFile, parameters: FixParameters): Record<string, string> {
  return Object.fromEntries(
    Object.keys(fix.parameters).map((name) => {
      const value = parameters[name];
      return [name, value === undefined ? "" : typeof value === "string" ? value : value.join(" ")];
    }),
  );
}

/** One command as it will run, with its standard input if it has one. */
export interface PreviewStep {
  readonly argv: readonly string[];
  readonly stdin?: string;
}

/** The exact commands, in order, with the bound parameters. */
export function preview(steps: readonly FixStep[], parameters: FixParameters): PreviewStep[] {
  return steps.flatMap((step) => {
    if (step.if !== undefined && parameters[step.if] === undefined) return [];
    if (step.unless !== undefined && parameters[step.unless] !== undefined) return [];
    const rounds = step.each === undefined ? 1 : (parameters[step.each[0] as string] ?? []).length;
    return Array.from({ length: rounds }, (_, round) => {
      const argv = step.run.map((word) => {
        if (!word.startsWith("$")) return word;
        const value = parameters[word.slice(1)];
        return value === undefined ? "" : typeof value === "string" ? value : (value[round] ?? "");
      });
      return step.stdin === undefined ? { argv } : { argv, stdin: step.stdin };
    });
  });
}

/** What is wrong with a fix beyond its schema: unknown parameters, loops over scalars. Empty if nothing is. */
export function fixProblems(fix: FixFile): { path: (string | number)[]; message: string }[] {
  const problems: { path: (string | number)[]; message: string }[] = [];
  for (const key of ["apply", "rollback"] as const) {
    fix[key].forEach((step, i) => {
      const path = [key, i];
      for (const name of step.each ?? []) if (fix.parameters[name]?.list !== true) problems.push({ path, message: `each: "${name}" is not a list parameter` });
      for (const name of [step.if, step.unless]) {
        if (name !== undefined && fix.parameters[name]?.optional !== true) problems.push({ path, message: `"${name}" is not an optional parameter` });
      }
      for (const word of step.run) {
        if (!word.includes("$")) continue;
        const parameter = fix.parameters[word.slice(1)];
        if (!word.startsWith("$") || parameter === undefined)
          problems.push({ path, message: `"${word}" is not a parameter: a word is either constant or one $parameter` });
        else if (parameter.list && step.each?.includes(word.slice(1)) !== true) problems.push({ path, message: `"${word}" is a list: name it in each` });
      }
    });
  }
  if (fix.id === "status") problems.push({ path: ["id"], message: 'the script "fix-status" is taken: it reads run markers' });
  if (fix.rollback.length === 0 && fix.rollbackNote === undefined)
    problems.push({ path: ["rollbackNote"], message: "a fix without rollback says why in rollbackNote" });
  return problems;
}
