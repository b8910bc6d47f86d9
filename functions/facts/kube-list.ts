import { parsedJson } from "./json.ts";

/**
 * Objects as `kubectl get … -o json` and `-o yaml` print them, alone or in a list, one document or several. They are read by their indentation, line by line: a
 * text that was cut gives what it has, and each field knows its line.
 *
 *     items:
 *     - apiVersion: v1
 *       metadata:
 *         name: coredns-76f75df574-8l2wq
 */
export interface KubeObject {
  /** The line of its name, or its first. */
  readonly line: number;
  /** By path: "metadata.name", "spec.ports[0].nodePort". */
  readonly fields: ReadonlyMap<string, KubeField>;
  /** True if something of it is missing. */
  readonly cut?: boolean;
}
export interface KubeField {
  readonly line: number;
  readonly value: string;
}

interface Level {
  readonly indent: number;
  readonly path: string;
  /** How many elements of it were seen, if it is a list. */
  elements: number;
}

const JSON_FIELD = /^"([^"\\]{1,300})":\s{0,4}(.*?),?$/;
const JSON_WORD = /^"([^"\\]{0,1000})",?$|^(-?[\d.]{1,30}|true|false|null),?$/;
const YAML_FIELD = /^("[^"\\]{1,300}"|'[^']{1,300}'|[A-Za-z0-9][\w./-]{0,300}):(?:\s+(\S.*))?$/;
/** More fields than this of one object are not what anybody asks for. */
const MAX_FIELDS = 5000;

/** The objects of a text, and whether its end was seen. */
export function kubeObjects(text: string): { objects: KubeObject[]; whole: boolean } {
  const laidOut = oneLine(text);
  const objects: { line: number; fields: Map<string, KubeField> }[] = [];
  let stack: Level[] = [];
  let last = "";
  // what stands around the objects of a list is none of theirs
  let listed = false;
  const open = (line: number): void => void objects.push({ line, fields: new Map() });
  (laidOut ?? text).split("\n").forEach((raw, i) => {
    const line = laidOut === undefined ? i + 1 : 1;
    const trimmed = raw.trim();
    if (trimmed === "" || raw.length > 4000) return;
    last = trimmed;
    const indent = raw.length - raw.trimStart().length;
    // another document
    if (indent === 0 && (trimmed === "{" || trimmed === "---")) {
      stack = [];
      listed = false;
      open(line);
      return;
    }
    const dash = /^-(?: +|$)/.exec(trimmed)?.[0];
    const brace = trimmed === "{" || trimmed === "[";
    while (stack.length > 0 && (stack.at(-1) as Level).indent >= indent + (dash === undefined ? 0 : 1)) stack.pop();
    const parent = stack.at(-1);
    const rest = dash === undefined ? trimmed : trimmed.slice(dash.length);
    const word = JSON_WORD.exec(trimmed);
    if ((dash !== undefined || brace || word !== null) && parent !== undefined) {
      const path = `${parent.path}[${parent.elements++}]`;
      if (path.startsWith("items[") && path.indexOf("]") === path.length - 1) {
        listed = true;
        open(line);
      }
      stack.push({ indent: indent + (dash === undefined ? 0 : 1), path, elements: 0 });
      // "- 10.43.0.10" of YAML, and of JSON a word alone
      const scalar = word === null ? (dash !== undefined && !YAML_FIELD.test(rest) ? unquoted(rest) : undefined) : (word[1] ?? word[2]);
      if (scalar !== undefined && (!listed || path.startsWith("items["))) put(objects.at(-1), path, line, scalar);
    }
    const json = dash === undefined ? JSON_FIELD.exec(trimmed) : null;
    const yaml = json === null && word === null ? YAML_FIELD.exec(rest) : null;
    const key = json?.[1] ?? (yaml === null ? undefined : unquoted(yaml[1] as string));
    if (key === undefined) return;
    if (objects.length === 0) open(line);
    const value = json?.[2] ?? yaml?.[2] ?? "";
    const holder = stack.at(-1);
    const path = holder === undefined ? key : `${holder.path}.${key}`;
    if (/^(?:[{[]|\|-?|>-?)?$/.test(value)) stack.push({ indent: indent + (dash?.length ?? 0), path, elements: 0 });
    else if (!listed || path.startsWith("items[")) put(objects.at(-1), path, line, unquoted(value));
  });
  const whole =
    laidOut !== undefined ||
    /^\}$/.test(last) ||
    /\nkind: (?:\w{1,40})?List\n(?:metadata:\n(?: {2}.*\n?){0,4})?$/.test(endOf(text)) ||
    (!/^items:/m.test(text) && END_OF_ONE.test(endOf(text)));
  const found = objects.map((object, i) => (object.fields.size >= MAX_FIELDS || (!whole && i === objects.length - 1) ? { ...object, cut: true } : object));
  return { objects: found.filter(({ fields }) => fields.has("metadata.name")), whole };
}

/** The keys of an object are sorted: behind its status there is none, nor behind the ports of endpoints, of which the protocol is the last. */
const END_OF_ONE = /\nstatus:(?: \{\}\n|\n(?:[ -].*\n){1,400})$|\n {0,4}protocol: (?:TCP|UDP|SCTP)\n$/;

/** The last lines, without blanks and carriage returns at their ends. */
const endOf = (text: string): string =>
  `${text
    .trimEnd()
    .slice(-4000)
    .replaceAll(/[ \t\r]{1,1000}$/gm, "")}\n`;

/** A document of very few lines, as `jq -c` and the API itself print it, laid out as kubectl does. */
function oneLine(text: string): string | undefined {
  const trimmed = text.trim();
  if (!trimmed.startsWith("{") || trimmed.split("\n", 4).length > 3) return undefined;
  const value = parsedJson(trimmed); // none if it was cut, or there are several
  return value === undefined ? undefined : JSON.stringify(value, null, 4);
}

function put(object: { line: number; fields: Map<string, KubeField> } | undefined, path: string, line: number, value: string): void {
  const own = path.replace(/^items\[\d{1,9}\]\.?/, "");
  if (object === undefined || own === "" || value === "null" || object.fields.size >= MAX_FIELDS || object.fields.has(own)) return;
  object.fields.set(own, { line, value });
  if (own === "metadata.name") object.line = line;
}

const unquoted = (value: string): string => value.replace(/^(["'])(.*)\1$/, "$2");

/** The elements of a list, each with its fields: `elementsOf(object, "spec.ports")`. */
export function elementsOf({ fields }: Pick<KubeObject, "fields">, list: string): Map<string, KubeField>[] {
  const found = new Map<number, Map<string, KubeField>>();
  for (const [path, field] of fields) {
    if (!path.startsWith(`${list}[`)) continue;
    const end = path.indexOf("]", list.length);
    const at = Number(path.slice(list.length + 1, end));
    const element = found.get(at) ?? new Map<string, KubeField>();
    element.set(path.slice(end + 1).replace(/^\./, ""), field);
    found.set(at, element);
  }
  return [...found.values()];
}

/** Of several kinds in one answer each name has its kind in front: `kube-system   pod/coredns-76f75df574-8l2wq   1/1 …`, `deployment.apps/coredns   2/2 …`. */
export const kindInRow = (row: string): string | undefined => /^(?:[a-z\d-]{1,63}\s{1,100})?([a-z]{2,60})(?:\.[a-z\d.-]{1,100})?\/[a-z\d]/.exec(row)?.[1];
/** What stands above the rows of any kind. */
export const isTableHeader = (row: string): boolean => /^(?:NAMESPACE\s+)?NAME\s+[A-Z]/.test(row);

/** "2m10s", "12d", "1y20d" of kubectl's table, in seconds. */
export function secondsOf(text: string): number | undefined {
  const units: Readonly<Record<string, number>> = { y: 31_536_000, d: 86_400, h: 3600, m: 60, s: 1 };
  if (!/^(?:\d{1,6}[ydhms]){1,3}$/.test(text)) return undefined;
  return [...text.matchAll(/(\d{1,6})([ydhms])/g)].reduce((sum, [, number, unit]) => sum + Number(number) * (units[unit ?? ""] ?? 0), 0);
}
