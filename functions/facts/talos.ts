import { optionValue } from "./command.ts";
import { lines, type UnparsedLines, type View } from "./fact.ts";
import { isPrompt } from "./paste.ts";

/**
 * Resources of Talos, whose nodes have no shell: what `talosctl get routes` prints, as a table or with `-o yaml`; `talosctl support` keeps the latter.
 *
 *     NODE       NAMESPACE   TYPE          ID                        VERSION   DESTINATION     GATEWAY    LINK     METRIC
 *     10.5.0.2   network     RouteStatus   inet4/10.5.0.1//1024      1                         10.5.0.1   enp1s0   1024
 */
export interface TalosResource {
  /** Of a document, the line of its name. */
  readonly line: number;
  readonly id: string;
  /** What stands behind the version in a table: an empty column leaves nothing. */
  readonly words: readonly string[];
  /** Of a document's spec; undefined in a table. */
  readonly spec: ReadonlyMap<string, string> | undefined;
}

/** How `talosctl get` asks for all resources of a type, by any of its names; undefined if it asks for something else. */
export function talosView(argv: readonly string[], names: RegExp, rank: number): View | undefined {
  if (argv[0] !== "talosctl" || !argv.includes("get")) return undefined;
  const [type = "", ...ids] = argv.slice(argv.indexOf("get") + 1).filter((word, i, words) => !word.startsWith("-") && !(words[i - 1] ?? "").startsWith("-"));
  const output = optionValue(argv, "-o", "--output") ?? "table";
  if (!names.test(type) || !/^(?:table|yaml)$/.test(output)) return undefined;
  return { format: output === "yaml" ? "talos-yaml" : "talos", complete: ids.length === 0, scope: ids.length === 0 ? "" : ` ${ids[0]}`, rank };
}

const ROW = /^(?:(\S{1,253})\s{1,40})?network\s{1,40}([A-Z][A-Za-z]{1,40})\s{1,60}(\S{1,253})\s{1,120}\d{1,9}(?:\s{1,400}(\S.{0,600}))?$/;
const FIELD = /^ {4}([A-Za-z]{1,40}): ?(.{0,600})$/;

/** The resources of one node; where several were asked at once, whose they are is not known. */
export function talosResources(text: string, view: View, type: string, unparsed: UnparsedLines): TalosResource[] {
  const nodes = new Set<string>();
  const found = view.format === "talos" ? inTable(text, type, nodes, unparsed) : inYaml(text, type, nodes);
  if (nodes.size < 2) return found;
  for (const { line, id } of found) unparsed.add(line, id);
  return [];
}

function inTable(text: string, type: string, nodes: Set<string>, unparsed: UnparsedLines): TalosResource[] {
  return [...lines(text)].flatMap(({ line, text: content }) => {
    const [, node, kind, id, rest = ""] = ROW.exec(content.trim()) ?? [];
    if (id === undefined || kind !== type) {
      if (content.trim() !== "" && !content.startsWith("NODE ") && !isPrompt(content)) unparsed.add(line, content);
      return [];
    }
    if (node !== undefined) nodes.add(node);
    return [{ line, id, words: rest.split(/\s+/).filter((word) => word !== ""), spec: undefined }];
  });
}

function inYaml(text: string, type: string, nodes: Set<string>): TalosResource[] {
  const found: TalosResource[] = [];
  let section = "";
  let wanted = false;
  let spec = new Map<string, string>();
  for (const { line, text: content } of lines(text)) {
    const node = /^node: (\S{1,253})$/.exec(content)?.[1];
    if (node !== undefined) nodes.add(node);
    section = /^([a-z]{1,20}):/.exec(content)?.[1] ?? section;
    const [, name, raw = ""] = FIELD.exec(content) ?? [];
    if (name === undefined) continue;
    const value = raw.trim().replace(/^"(.*)"$/, "$1");
    // "RouteStatuses.net.talos.dev" is the type of a "RouteStatus"
    if (section === "metadata" && name === "type") wanted = value.replace(/es\.net\.talos\.dev$/, "") === type;
    else if (section === "metadata" && name === "id" && wanted) {
      spec = new Map();
      found.push({ line, id: value, words: [], spec });
    } else if (section === "spec" && wanted) spec.set(name, value);
  }
  return found;
}
