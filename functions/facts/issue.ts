import type { z } from "zod";

/** The one thing to tell a person about data that did not fit its schema. */
export interface Issue {
  /** Keys from the top to the place; empty if it is the whole. */
  readonly path: readonly (string | number)[];
  readonly message: string;
}

/** The most telling issue of a failed parse: an unknown key (often a typo of one that is missing) first; of a union, the alternative that was meant. */
export function firstIssue(error: z.ZodError): Issue {
  const { path, message } = deepest(error.issues);
  return { path: path.map((key) => (typeof key === "symbol" ? String(key) : key)), message };
}

function deepest(issues: readonly z.core.$ZodIssue[]): { path: PropertyKey[]; message: string } {
  const issue = issues.find(({ code }) => code === "unrecognized_keys") ?? issues[0];
  if (issue === undefined) return { path: [], message: "it is not valid" };
  if (issue.code === "unrecognized_keys") return { path: [...issue.path, ...issue.keys.slice(0, 1)], message: issue.message };
  if (issue.code === "invalid_key") return { path: issue.path, message: deepest(issue.issues).message };
  if (issue.code !== "invalid_union") return { path: issue.path, message: issue.message };
  // the alternatives of another type were not meant
  const meant = issue.errors.filter(([first]) => !(first?.code === "invalid_type" && first.path.length === 0));
  const [alternative] = meant.length > 0 ? meant : issue.errors;
  if (meant.length === 0 || alternative === undefined) {
    const wanted = issue.errors.flatMap(([first]) => (first?.code === "invalid_type" ? [first.expected] : []));
    return { path: issue.path, message: wanted.length === 0 ? issue.message : `${issue.message}: expected ${[...new Set(wanted)].join(" or ")}` };
  }
  const inner = deepest(alternative);
  return { path: [...issue.path, ...inner.path], message: inner.message };
}
