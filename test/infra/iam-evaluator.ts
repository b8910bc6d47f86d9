import type { Statement } from "../../infra/iam-surface.ts";

/** One resource that a call touches, with what AWS knows of it. */
export interface Touched {
  readonly resource: string;
  /** Condition key → value or values. */
  readonly context?: Readonly<Record<string, string | readonly string[]>>;
}
export type Decision = "allow" | "explicit deny" | "implicit deny";

/**
 * What IAM would say to a call of a role: an explicit deny wins, what nothing allows is denied, and a call that touches several resources needs all of them.
 * Knows the conditions that our policies use, and throws at any other.
 */
export function evaluate(statements: readonly Statement[], action: string, touched: readonly Touched[]): Decision {
  const decisions = touched.map((one) => decide(statements, action, one));
  return decisions.find((decision) => decision === "explicit deny") ?? decisions.find((decision) => decision === "implicit deny") ?? "allow";
}

function decide(statements: readonly Statement[], action: string, { resource, context = {} }: Touched): Decision {
  const applying = statements.filter(
    (one) =>
      one.actions.some((pattern) => matches(pattern.toLowerCase(), action.toLowerCase())) &&
      (one.notResources.length > 0
        ? !one.notResources.some((pattern) => matches(pattern, resource))
        : one.resources.some((pattern) => matches(pattern, resource))) &&
      Object.entries(one.conditions).every(([operator, keys]) => Object.entries(keys).every(([key, wanted]) => holds(operator, context[key], wanted))),
  );
  if (applying.some(({ effect }) => effect === "Deny")) return "explicit deny";
  return applying.length > 0 ? "allow" : "implicit deny";
}

function holds(operator: string, given: string | readonly string[] | undefined, wanted: readonly string[]): boolean {
  switch (operator) {
    case "StringEquals":
      return typeof given === "string" && wanted.includes(given);
    // true also of what is not there
    case "StringNotEquals":
      return typeof given !== "string" || !wanted.includes(given);
    case "ForAllValues:StringLike":
      return [given ?? []].flat().every((value) => wanted.some((pattern) => matches(pattern, value)));
    default:
      throw new Error(`the evaluator does not know ${operator}: teach test/infra/iam-evaluator.ts`);
  }
}

/** `*` is any text, `?` any character; both also of `/` and `:`. */
function matches(pattern: string, text: string): boolean {
  const escaped = pattern
    .replaceAll(/[.+^${}()|[\]\\]/g, "\\$&")
    .replaceAll("*", ".*")
    .replaceAll("?", ".");
  return new RegExp(`^${escaped}$`, "s").test(text);
}
