import fc from "fast-check";

/** What people, terminals, pagers, cut connections and evil nodes do to a text. */
export const MUTATIONS = [
  "flip",
  "drop line",
  "duplicate line",
  "swap lines",
  "cut",
  "cut head",
  "splice",
  "long line",
  "control",
  "ansi",
  "crlf",
  "right to left",
  "nul",
  "surrogate",
  "number",
  "nest",
  "repeat",
  "blank",
] as const;

/** One change of a text. The numbers are large and are reduced to places in the text, so that a shrunk mutation is still one. */
export interface Mutation {
  readonly kind: (typeof MUTATIONS)[number];
  readonly at: number;
  readonly to: number;
}

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  kind: fc.constantFrom(...MUTATIONS),
  at: fc.nat({ max: 1_000_000 }),
  to: fc.nat({ max: 1_000_000 }),
});

const NUMBERS = ["99999999999999999999999", "-1", "1e309", "NaN", "0x7fffffffffffffff", "18446744073709551616", "0", "00", "9007199254740993", "4294967296"];
const CONTROL = ["\u0000", "\u0007", "\b", "\u000b", "\f", "\u001b", "\u007f", "\u0085", "\u00a0", "\u2028", "\ufeff", "\ufffd"];
const RIGHT_TO_LEFT = ["\u202e", "\u2067", "\u05d0\u05d1", "\u200f"];
const SURROGATES = ["\ud800", "\udfff", "\udc00\ud800"];
const OPENING = ["[", "{", '{"a":', "[{", "(", "<"];
/** What a line is made long to, and a text repeated to, at most: characters. */
const LONG = 1_000_000;

/** `text` with one change. `donors`: texts of other facts, from which lines are taken. Pure. */
export function mutated(text: string, { kind, at, to }: Mutation, donors: readonly string[]): string {
  const place = at % (text.length + 1);
  const insert = (what: string, over = 0): string => text.slice(0, place) + what + text.slice(place + over);
  const pick = <T>(list: readonly T[]): T => list[to % list.length] as T;
  switch (kind) {
    case "flip":
      return insert(String.fromCharCode(to % 256), 1);
    case "cut":
      return text.slice(0, place);
    case "cut head":
      return text.slice(place);
    case "control":
      return insert(pick(CONTROL));
    case "ansi":
      return insert(`\u001b[${to % 108}m`);
    case "crlf":
      return text.replaceAll("\n", "\r\n");
    case "right to left":
      return insert(pick(RIGHT_TO_LEFT));
    case "nul":
      return insert("\0".repeat(1 + (to % 300)));
    case "surrogate":
      return insert(pick(SURROGATES));
    case "blank":
      return insert(to % 2 === 0 ? " ".repeat(1 + (to % 2000)) : "\n".repeat(1 + (to % 50)));
    case "nest": {
      const opening = pick(OPENING);
      return insert(opening.repeat(1 + (to % 20_000)));
    }
    case "number": {
      const found = [...text.slice(place, place + 2000).matchAll(/\d+/g)][to % 7];
      const start = place + (found?.index ?? 0);
      return text.slice(0, start) + pick(NUMBERS) + text.slice(start + (found?.[0].length ?? 0));
    }
    case "repeat": {
      const token = tokenAt(text, place);
      return insert(token.repeat(Math.ceil((1 + (to % 4000)) / Math.max(1, token.length))));
    }
    default:
      return ofLines(text, kind, at, to, donors);
  }
}

function ofLines(
  text: string,
  kind: "drop line" | "duplicate line" | "swap lines" | "splice" | "long line",
  at: number,
  to: number,
  donors: readonly string[],
) {
  const all = text.split("\n");
  const [i, j] = [at % all.length, to % all.length];
  const [here, there] = [all[i] as string, all[j] as string];
  if (kind === "drop line") all.splice(i, 1);
  else if (kind === "duplicate line") all.splice(j, 0, here);
  else if (kind === "swap lines") [all[i], all[j]] = [there, here];
  else if (kind === "splice") {
    const donor = (donors[to % Math.max(1, donors.length)] ?? "").split("\n");
    const start = at % donor.length;
    all.splice(i, 0, ...donor.slice(start, start + 1 + (to % 5)));
  } else all[i] = here + (here === "" ? "x" : here).repeat(Math.ceil((to % LONG) / Math.max(1, here.length)));
  return all.join("\n");
}

/** A word, or the blanks or signs between two. */
function tokenAt(text: string, place: number): string {
  return /^(?:\w{1,40}|\s{1,40}|[^\w\s]{1,10})\s?/.exec(text.slice(place, place + 60))?.[0] ?? "x";
}

/** What makes a careless pattern slow: the same again and again, in one line or in many. */
export const FOODS = [
  "token in a line",
  "line in a line",
  "blanks in a line",
  "lines",
  "words in a line",
  "text",
  "opened in a line",
  "digits in a line",
] as const;
export interface Food {
  readonly kind: (typeof FOODS)[number];
  readonly at: number;
}
export const food: fc.Arbitrary<Food> = fc.record({ kind: fc.constantFrom(...FOODS), at: fc.nat({ max: 1_000_000 }) });

/** A text of about `size` characters made from a text that the fact knows: up to a place it is as printed, then something repeats. Pure. */
export function fed(text: string, { kind, at }: Food, size: number): string {
  if (kind === "text") return repeated(text.endsWith("\n") ? text : `${text}\n`, size);
  const place = at % (text.length + 1);
  const start = text.lastIndexOf("\n", place - 1) + 1;
  const end = text.indexOf("\n", place) === -1 ? text.length : text.indexOf("\n", place);
  const line = text.slice(start, end);
  if (kind === "lines") return text.slice(0, start) + repeated(`${line}\n`, size);
  const head = text.slice(0, place);
  const what = {
    "token in a line": tokenAt(text, place),
    "line in a line": `${line} `,
    "blanks in a line": " ",
    "words in a line": "a",
    "digits in a line": "1",
  };
  return `${head}${repeated(kind === "opened in a line" ? '{"a":[' : what[kind], size)}!${text.slice(place, end)}\n`;
}

const repeated = (what: string, size: number): string => what.repeat(Math.ceil(size / what.length)).slice(0, size);
