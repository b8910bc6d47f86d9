/**
 * Reads the documentation comments of zod objects off their TypeScript source, so that the generated pages and JSON Schemas say what the source says and
 * nothing has to be written twice. Works on this repository's own sources only; it is no TypeScript parser.
 */

/** The keys of one object literal of a schema, in order, with what its comment says of each ("" where there is none). */
export type DocumentedKeys = ReadonlyMap<string, string>;

const OBJECT = /(?:z\s*\.(?:strictO|looseO|o)bject|\.extend)\(\{/g;

/** Every `z.object({…})`, `z.strictObject({…})` and `.extend({…})` of a source, nested ones included. Linear but for nesting. */
export function documentedObjects(source: string): DocumentedKeys[] {
  return [...source.matchAll(OBJECT)].map((match) => keysOf(source, match.index + match[0].length));
}

/** Reads the keys of an object literal whose `{` ends before `start`. */
function keysOf(source: string, start: number): DocumentedKeys {
  const keys = new Map<string, string>();
  let depth = 1;
  let doc = "";
  let expectKey = true;
  for (let i = start; i < source.length && depth > 0; ) {
    const rest = source.slice(i, i + 2);
    const char = source[i] as string;
    if (rest === "/*") {
      const end = source.indexOf("*/", i + 2);
      if (depth === 1 && source[i + 2] === "*") doc = plain(source.slice(i + 3, end));
      i = end + 2;
    } else if (rest === "//") i = lineEnd(source, i);
    else if (char === '"' || char === "'" || char === "`") {
      // a quoted key is none that a comment of ours describes
      if (depth === 1) expectKey = false;
      i = stringEnd(source, i);
    } else if (char === "/" && /[(,=:[!&|?]\s*$/.test(source.slice(Math.max(0, i - 12), i))) i = regexEnd(source, i);
    else if ("([{".includes(char)) {
      depth++;
      i++;
    } else if (")]}".includes(char)) {
      depth--;
      i++;
    } else if (depth === 1 && char === ",") {
      expectKey = true;
      i++;
    } else if (depth === 1 && expectKey && /[A-Za-z_$]/.test(char)) {
      const name = /^[\w$]+/.exec(source.slice(i, i + 80))?.[0] ?? char;
      keys.set(name, doc);
      doc = "";
      expectKey = false;
      i += name.length;
    } else i++;
  }
  return keys;
}

/** The text of a comment on one line, without its stars. */
const plain = (comment: string): string =>
  comment
    .replaceAll(/^[ \t]*\*[ \t]?/gm, "")
    .replaceAll(/\{@link (\w+)\}/g, "$1")
    .replaceAll(/\s+/g, " ")
    .trim();

function lineEnd(source: string, at: number): number {
  const end = source.indexOf("\n", at);
  return end === -1 ? source.length : end + 1;
}

function stringEnd(source: string, at: number): number {
  let i = at + 1;
  while (i < source.length && source[i] !== source[at]) i += source[i] === "\\" ? 2 : 1;
  return i + 1;
}

function regexEnd(source: string, at: number): number {
  let i = at + 1;
  for (let inClass = false; i < source.length && (inClass || source[i] !== "/") && source[i] !== "\n"; i++) {
    if (source[i] === "\\") i++;
    else if (source[i] === "[") inClass = true;
    else if (source[i] === "]") inClass = false;
  }
  return i + 1;
}

/**
 * What the comments say of the keys of a schema object. The source object with the most keys in common is taken; keys that it lacks (they come from an
 * object that was extended) are looked up in the objects that hold nothing but keys of this one.
 */
export function docsFor(keys: readonly string[], objects: readonly DocumentedKeys[]): ReadonlyMap<string, string> {
  const wanted = new Set(keys);
  const shared = (object: DocumentedKeys): number => [...object.keys()].filter((key) => wanted.has(key)).length;
  const score = (object: DocumentedKeys): number => 3 * shared(object) - object.size;
  const ranked = objects.filter((object) => shared(object) > 0).sort((a, b) => score(b) - score(a));
  const parts = ranked.filter((object, i) => i === 0 || shared(object) === object.size);
  return new Map(keys.map((key) => [key, parts.map((object) => object.get(key)).find((doc) => doc !== undefined && doc !== "") ?? ""]));
}
