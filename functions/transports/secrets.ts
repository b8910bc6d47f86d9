import { RE2JS } from "re2js";

/** Words that stand before a secret. */
const SECRET = "password|passwd|passphrase|secret|token|psk|(api|access|private|client)[ _-]?key(-data)?";
const KEY = "[A-Z0-9 ]*PRIVATE KEY";

/** An extended regular expression; no two places of a line may each be the start of a long search. `keep`: what of it stays, before and behind `[redacted]`; `\1` is its first group. */
interface Pattern {
  readonly expression: string;
  readonly keep?: readonly [before: string, behind: string];
  readonly ignoreCase?: boolean;
}

/** In busybox's sed a bracket ends at the first class in it, so what could open another bracket stands before the class. A line stays a line, JSON stays JSON. */
const PATTERNS: readonly Pattern[] = [
  { expression: "eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]*" },
  { expression: "(AKIA|ASIA)[A-Z0-9]{16}" },
  { expression: "(xox[abeoprs]|xapp)-[A-Za-z0-9-]{8,}" },
  { expression: "(gh[pousr]_|github_pat_|glpat-)[A-Za-z0-9_-]{20,}" },
  { expression: "(://[^/@:[:space:]\"']*:)[^/@[:space:]\"']+@", keep: ["\\1", "@"] },
  { expression: "(Bearer[[:space:]]+)[A-Za-z0-9+/=._~-]{8,}", keep: ["\\1", ""], ignoreCase: true },
  { expression: "(authorization[^A-Za-z0-9=:]{0,3}[=:][^A-Za-z0-9]{0,6})[^\"'\\\\]+", keep: ["\\1", ""], ignoreCase: true },
  { expression: `((${SECRET})["']?[[:space:]]*[=:][[:space:]]*)"([^"\\\\]|\\\\.)+"`, keep: ['\\1"', '"'], ignoreCase: true },
  { expression: `((${SECRET})["']?[[:space:]]*[=:][[:space:]]*)'[^']+'`, keep: ["\\1'", "'"], ignoreCase: true },
  { expression: `((${SECRET})=\\\\?)[^[:space:]"'\\\\]+`, keep: ["\\1", ""], ignoreCase: true },
  // a quote, perhaps escaped, perhaps never closed; and YAML. JSON's bare numbers stay
  { expression: `((${SECRET})\\\\?["']?[[:space:]]*[=:][[:space:]]*\\\\?["'])[^"'\\\\]+`, keep: ["\\1", ""], ignoreCase: true },
  { expression: `((${SECRET})[[:space:]]*[=:][[:space:]]*)[^]["',;}\\\\[:space:]]{4,}`, keep: ["\\1", ""], ignoreCase: true },
  { expression: `(--(${SECRET})[[:space:]]+)[^-[:space:]"'][^[:space:]"']*`, keep: ["\\1", ""], ignoreCase: true },
];

const MARK = "[redacted]";

/**
 * The commands of `sed -E` that black out secrets on the node, before anything leaves it: passwords, tokens, keys, whatever printed them. A key's lines go to the end of the
 * output if its end was cut off.
 * @param more expressions of somebody's own; the usual ones come first
 */
export function secretsForSed(more: readonly string[] = []): string {
  return [
    `s/-----BEGIN ${KEY}.*-----END ${KEY}[A-Z ]*-----/${MARK}/`,
    `/-----BEGIN ${KEY}/,/-----END ${KEY}/{`,
    `/-----BEGIN ${KEY}/!s/.*/${MARK}/`,
    `s/-----BEGIN ${KEY}.*/${MARK}/`,
    "}",
    ...PATTERNS.map(({ expression, keep: [before, behind] = ["", ""], ignoreCase = false }) => {
      const sign = expression.includes("/") ? "#" : "/";
      return `s${sign}${expression}${sign}${before}${MARK}${behind}${sign}g${ignoreCase ? "I" : ""}`;
    }),
    ...more.map((pattern) => `s/${pattern.replaceAll(/\\\/|\//g, "\\/")}/${MARK}/g`),
  ].join("\n");
}

/** What every line with a secret in it holds; the patterns look only there. */
const HINT =
  /PRIVATE KEY|eyJ|AKIA|ASIA|xox[abeoprs]-|xapp-|gh[pousr]_|github_pat_|glpat-|:\/\/|bearer|authorization|password|passwd|passphrase|secret|token|psk|(?:api|access|private|client)[ _-]?key/i;
const KEY_BEGINS = new RegExp(`-----BEGIN ${KEY}`);
const KEY_ENDS = new RegExp(`-----END ${KEY}`);
const KEY_CLOSES = new RegExp(`-----END ${KEY}[A-Z ]*-----`, "g");

/**
 * The same for a text that netcheck did not collect: what somebody pasted or imported. Lines keep their numbers. Linear.
 * @param more expressions of somebody's own, as for sed
 * @returns the text, and how many places were blacked out
 */
export function withoutSecrets(text: string, more: readonly string[] = []): { readonly text: string; readonly redacted: number } {
  if (more.length === 0 && !HINT.test(text)) return { text, redacted: 0 };
  // RE2, and the longest text that fits, as sed takes it: nobody here wrote these, and none may take long
  const own = more.map((expression) => RE2JS.compile(fromExtended(expression), RE2JS.LONGEST_MATCH));
  let inKey = false;
  const cleaned = text.split("\n").map((line, index, { length }) => {
    // behind the last newline there is no line
    if (inKey && !(line === "" && index === length - 1)) {
      inKey = !KEY_ENDS.test(line);
      return MARK;
    }
    let kept = line;
    if (HINT.test(line)) {
      const begin = line.search(KEY_BEGINS);
      const closing = begin === -1 ? undefined : [...line.slice(begin).matchAll(KEY_CLOSES)].at(-1);
      inKey = begin !== -1 && closing === undefined;
      if (begin !== -1) kept = `${line.slice(0, begin)}${MARK}${closing === undefined ? "" : line.slice(begin + closing.index + closing[0].length)}`;
      for (const { pattern, by } of USUAL) kept = kept.replaceAll(pattern, by);
    }
    for (const pattern of own) kept = pattern.matcher(kept).replaceAll(MARK);
    return kept;
  });
  const result = cleaned.join("\n");
  return { text: result, redacted: marksIn(result) - marksIn(text) };
}

const marksIn = (text: string): number => text.split(MARK).length - 1;

/** The names that POSIX has for sets of characters. */
const CLASSES: Readonly<Record<string, string>> = {
  alnum: "A-Za-z0-9",
  alpha: "A-Za-z",
  blank: " \\t",
  digit: "0-9",
  lower: "a-z",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\s",
  upper: "A-Z",
  xdigit: "A-Fa-f0-9",
};
/** `[^]a[:space:]\]`: a `]` at the start and a backslash stand for themselves. */
const BRACKET = /\\.|\[(\^?)(\]?(?:\[:\w+:\]|[^\]])*)\]/g;

/** An extended regular expression (POSIX) as JavaScript writes it: they differ in brackets only, as far as a runbook may use them. */
function fromExtended(expression: string): string {
  return expression.replaceAll(BRACKET, (all: string, not: string | undefined, members: string | undefined) => {
    if (members === undefined) return all;
    const inner = members.replaceAll(/\[:(\w+):\]|[\\[\]]/g, (part: string, name?: string) => (name === undefined ? `\\${part}` : (CLASSES[name] ?? "")));
    return `[${not}${inner}]`;
  });
}

const USUAL = PATTERNS.map(({ expression, keep: [before, behind] = ["", ""], ignoreCase = false }) => ({
  // a token begins where a word does: in a long word each "eyJ" would be looked behind to its end
  pattern: new RegExp(expression.startsWith("eyJ") ? `(?<![\\w-])${expression}` : fromExtended(expression), ignoreCase ? "gi" : "g"),
  by: `${before.replace("\\", "$")}${MARK}${behind}`,
}));
