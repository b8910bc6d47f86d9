import type { Catalogue } from "../rules/load.ts";
import type { NodeSummary } from "./fleet.ts";
import type { Alternative } from "./fleet-select.ts";
import type { Actor, Message, Ports, Target } from "./ports.ts";

/** What the chat is told of many nodes: one message that is edited, and a table. */

/** Groups in the message; the others are in the table. Each takes up to two blocks, and Slack takes 50. */
const MOST_GROUPS = 10;
/** Names of nodes per group in the message, and buttons below it: Slack takes 25 in a row. */
const MOST_NAMES = 20;
const MOST_BUTTONS = 5;
const BAR = 20;

/** A node that no rule finds a cause on, and that is not like its pool. */
export interface Odd {
  /** "cluster/name". */
  readonly node: string;
  readonly pool: string;
  /** Names of the nodes that it was held against. */
  readonly peers: readonly string[];
  /** Differences that are worth a look, and the first of them in a sentence. None: it was compared, and is like them after all. */
  readonly worth: number;
  readonly what: string;
  /** Key of the comparison in the store. */
  readonly comparison: string;
}

/** All that came of a fleet, as the store keeps it. */
export interface FleetResult {
  readonly incident: string;
  /** "nodes pool=blue". */
  readonly words: string;
  /** ISO 8601. */
  readonly at: string;
  readonly nodes: readonly NodeSummary[];
  readonly odd: readonly Odd[];
  /** What the reader should know of the whole, in sentences for people. */
  readonly notes: readonly string[];
}

/** Nodes of which the same is to be said. */
export interface FleetGroup {
  readonly kind: "cause" | "odd" | "symptoms" | "muted" | "inconclusive" | "lost" | "healthy";
  /** Id of the cause, of groups that share one. */
  readonly rule?: string;
  /** Id of the fix, if it can be offered on each of the nodes. */
  readonly fix?: string;
  readonly title: string;
  readonly nodes: readonly NodeSummary[];
}

export const keyOfNode = ({ cluster, target }: Pick<NodeSummary, "cluster" | "target">): string => `${cluster}/${target}`;

const KINDS: readonly FleetGroup["kind"][] = ["cause", "odd", "symptoms", "lost", "inconclusive", "muted", "healthy"];
const SEVERITIES = ["critical", "warning", "info"];

/** The nodes by what came of them: causes first, the worst and most frequent before the others; healthy nodes last. Each node is in one group, by its first cause. */
export function groupsOf(nodes: readonly NodeSummary[], odd: readonly Odd[], { rules }: Pick<Catalogue, "rules">): readonly FleetGroup[] {
  const strange = new Map(odd.filter(({ worth }) => worth > 0).map((one) => [one.node, one]));
  const titleOf = (rule: string): string => rules.get(rule)?.file.title ?? rule;
  const groups = new Map<string, FleetGroup & { nodes: NodeSummary[] }>();
  for (const node of nodes) {
    const group = groupOf(node, strange.get(keyOfNode(node)), titleOf);
    const key = [group.kind, group.rule ?? "", group.title].join("\n");
    const known = groups.get(key);
    if (known === undefined) groups.set(key, { ...group, nodes: [node] });
    else known.nodes.push(node);
  }
  const severity = (rule: string | undefined): number => SEVERITIES.indexOf(rules.get(rule ?? "")?.file.severity ?? "info");
  return [...groups.values()]
    .map((group) => {
      const [first] = group.nodes;
      const fix = first?.fix !== undefined && group.nodes.every((node) => node.fix === first.fix) ? { fix: first.fix } : {};
      return { ...group, ...(group.kind === "cause" ? fix : {}) };
    })
    .toSorted(
      (a, b) =>
        KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || severity(a.rule) - severity(b.rule) || b.nodes.length - a.nodes.length || (a.title < b.title ? -1 : 1),
    );
}

function groupOf(node: NodeSummary, odd: Odd | undefined, titleOf: (rule: string) => string): Omit<FleetGroup, "nodes"> {
  const [cause] = node.causes;
  if (cause !== undefined) return { kind: "cause", rule: cause, title: titleOf(cause) };
  if (node.verdict === "not-collected") return { kind: "lost", title: reasonOf(node) };
  if (node.muted !== undefined && (node.symptoms ?? []).length === 0 && odd === undefined) return { kind: "muted", title: node.muted.map(titleOf).join("; ") };
  if (odd !== undefined) return { kind: "odd", title: odd.what };
  if (node.verdict === "symptoms-only") return { kind: "symptoms", title: (node.symptoms ?? []).map(titleOf).join("; ") };
  if (node.verdict === "healthy") return { kind: "healthy", title: "" };
  return { kind: "inconclusive", title: "" };
}

/** Why a node could not be looked at, without what differs from node to node: its name, its instance and its job. */
const reasonOf = ({ reason = "", target }: NodeSummary): string =>
  reason
    .replaceAll(target, "the node")
    .replaceAll(/\bm?i-[0-9a-f]{8,17}\b/g, "the node")
    .replaceAll(/\binc-[0-9a-f]{6,}-[\w-]+/g, "the collection")
    .slice(0, 300);

const ICONS: Record<FleetGroup["kind"], string> = {
  cause: "red_circle",
  odd: "mag",
  symptoms: "large_yellow_circle",
  muted: "mute",
  inconclusive: "grey_question",
  lost: "no_entry",
  healthy: "white_check_mark",
};

const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** What a group is, without its title. */
function wordsOf({ kind, nodes }: FleetGroup): string {
  const count = nodes.length;
  const them = plural(count, "node");
  switch (kind) {
    case "cause":
      return count === 1 ? "1 node has a cause" : `${them} have the same cause`;
    case "odd":
      return `${them} without a cause that netcheck knows, but unlike ${count === 1 ? "its" : "their"} pool`;
    case "symptoms":
      return `${them} with symptoms, but no cause that netcheck knows`;
    case "lost":
      return `${them} could not be looked at, which says nothing about ${count === 1 ? "its" : "their"} network`;
    case "muted":
      return `${them} where all that was found is muted`;
    case "inconclusive":
      return `${them} inconclusive: nothing found, but not everything could be checked`;
    case "healthy":
      return `${them} without a cause: everything that was checked is in order`;
  }
}

/** "38 healthy · 2 same cause · 1 could not be looked at". */
export function headlineOf(groups: readonly FleetGroup[]): string {
  const counted = (kind: FleetGroup["kind"], words: (count: number) => string): readonly string[] => {
    const count = groups.filter((group) => group.kind === kind).reduce((sum, { nodes }) => sum + nodes.length, 0);
    return count === 0 ? [] : [words(count)];
  };
  return [
    ...counted("healthy", (count) => `${count} healthy`),
    ...groups
      .filter(({ kind }) => kind === "cause")
      .slice(0, 3)
      .map(({ nodes, title }) => `${nodes.length}${nodes.length > 1 ? " same cause" : ""}: ${title}`),
    ...moreCauses(groups.filter(({ kind }) => kind === "cause").slice(3)),
    ...counted("odd", (count) => `${count} unlike ${count === 1 ? "its" : "their"} pool`),
    ...counted("symptoms", (count) => `${count} with symptoms only`),
    ...counted("muted", (count) => `${count} with muted findings only`),
    ...counted("inconclusive", (count) => `${count} inconclusive`),
    ...counted("lost", (count) => `${count} could not be looked at`),
  ].join(" · ");
}

const moreCauses = (groups: readonly FleetGroup[]): readonly string[] =>
  groups.length === 0 ? [] : [`${groups.reduce((sum, { nodes }) => sum + nodes.length, 0)} with ${plural(groups.length, "other cause")}`];

/** What an edit of the first message shows while nodes are looked at. */
export interface Running {
  readonly incident: string;
  readonly words: string;
  readonly requester: Actor;
  readonly total: number;
  readonly done: number;
  readonly causes: number;
  readonly lost: number;
}

const headOf = (total: number, words: string): string => `${plural(total, "node")} (${words.replace(/^nodes /, "").slice(0, 100)})`;

/** The first message while it goes on: a bar, and what was found so far. */
export function runningMessage({ incident, words, requester, total, done, causes, lost }: Running): Message {
  const filled = Math.round((BAR * done) / Math.max(1, total));
  const found = [causes > 0 ? `${causes} with a cause` : "", lost > 0 ? `${lost} could not be looked at` : ""].filter(Boolean).join(", ");
  return {
    template: "fleet",
    data: {
      icon: "hourglass_flowing_sand",
      title: headOf(total, words),
      headline: `examining them${found === "" ? "" : `; so far: ${found}`}`,
      running: true,
      bar: "█".repeat(filled) + "░".repeat(BAR - filled),
      done,
      total,
      groups: [],
      notes: "",
      requester: requester.id,
      incident,
      ended: false,
      example: "",
    },
  };
}

/** The first message at the end: groups by cause, with buttons that show single nodes, and one that begins a fix on one node. */
export function endedMessage(result: FleetResult, requester: Actor, catalogue: Pick<Catalogue, "rules" | "fixes">): Message {
  const groups = groupsOf(result.nodes, result.odd, catalogue);
  const several = new Set(result.nodes.map(({ cluster }) => cluster)).size > 1;
  let index = 0;
  const shown = groups.slice(0, MOST_GROUPS).map((group) => {
    const buttons =
      group.kind === "healthy"
        ? []
        : group.nodes.slice(0, MOST_BUTTONS).map((node) => ({
            label: several ? keyOfNode(node) : node.target,
            command: `nodes show ${result.incident} ${keyOfNode(node)}`,
            primary: false,
          }));
    const [first] = group.nodes;
    if (group.fix !== undefined && group.rule !== undefined && first !== undefined)
      buttons.push(
        group.nodes.length === 1
          ? { label: `Examine ${first.target} for its fix`, command: keyOfNode(first), primary: true }
          : { label: "Fix one node first…", command: `nodes fix ${result.incident} ${group.rule}`, primary: true },
      );
    const names = group.nodes.slice(0, MOST_NAMES).map((node) => (several ? keyOfNode(node) : node.target));
    return {
      icon: ICONS[group.kind],
      words: wordsOf(group),
      detail: group.title,
      rule: group.rule ?? "",
      names: names.join(", "),
      more: group.nodes.length - names.length,
      buttons: buttons.map((button) => ({ ...button, index: ++index })),
    };
  });
  const left = groups.slice(MOST_GROUPS);
  const notes = [
    ...(left.length === 0
      ? []
      : [
          `${plural(left.length, "more group")} with ${plural(
            left.reduce((sum, { nodes }) => sum + nodes.length, 0),
            "node",
          )} are in the table.`,
        ]),
    ...result.notes,
  ];
  const icon = groups.some(({ kind }) => kind === "cause")
    ? "red_circle"
    : groups.every(({ kind }) => kind === "healthy")
      ? "white_check_mark"
      : "grey_question";
  const [any] = result.nodes;
  return {
    template: "fleet",
    data: {
      icon,
      title: headOf(result.nodes.length, result.words),
      headline: headlineOf(groups),
      running: false,
      bar: "",
      done: result.nodes.length,
      total: result.nodes.length,
      groups: shown,
      notes: notes.join(" "),
      requester: requester.id,
      incident: result.incident,
      ended: true,
      example: any === undefined ? "cluster/node" : keyOfNode(any),
    },
  };
}

/** Something was not clear enough to examine anything: why, and buttons for what may have been meant. */
export const unclearMessage = (text: string, choices: readonly Alternative[]): Message => ({
  template: "fleet-choose",
  data: { icon: "thinking_face", text, choices: choices.map((choice, at) => ({ ...choice, index: at + 1 })) },
});

const VERDICTS: Readonly<Record<string, string>> = {
  "cause-found": "likely cause found",
  "symptoms-only": "symptoms, but no cause that netcheck knows",
  healthy: "no cause found: everything that was checked is in order",
  inconclusive: "inconclusive: nothing found, but not everything could be checked",
  "not-collected": "could not be looked at, which says nothing about its network",
};
export const verdictWords = (verdict: string): string => VERDICTS[verdict] ?? verdict;

/** Each node as a row of the table; the worst first. */
function rows(result: FleetResult, catalogue: Pick<Catalogue, "rules">): readonly (readonly string[])[] {
  const odd = new Map(result.odd.map((one) => [one.node, one]));
  return groupsOf(result.nodes, result.odd, catalogue).flatMap(({ nodes, title, kind }) =>
    nodes.map((node) => {
      const one = odd.get(keyOfNode(node));
      const compared =
        one === undefined
          ? ""
          : one.worth === 0
            ? `like ${one.peers.join(", ")}`
            : `${plural(one.worth, "difference")} from ${one.peers.join(", ")}: ${one.what}`;
      return [
        node.target,
        node.cluster,
        node.verdict,
        node.causes.join(" "),
        kind === "cause" || kind === "symptoms" ? title : "",
        compared,
        [node.reason, node.note, node.muted === undefined ? "" : `muted: ${node.muted.join(" ")}`].filter(Boolean).join("; "),
      ];
    }),
  );
}

const COLUMNS = ["node", "cluster", "verdict", "causes", "in words", "compared with its pool", "remarks"];

/** The whole as Markdown: what came of it, then a row for each node. What nodes say is one line of literal text. */
export function fleetMarkdown(result: FleetResult, catalogue: Pick<Catalogue, "rules">): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  const cell = (text: string): string => oneLine(text).replaceAll(/[\\|`*_<>[\]]/g, (mark) => `\\${mark}`);
  return [
    `# ${plural(result.nodes.length, "node")} examined: ${cell(result.words)}`,
    "",
    `Run ${result.incident}, ${result.at}. ${cell(headlineOf(groupsOf(result.nodes, result.odd, catalogue)))}.`,
    ...result.notes.map((note) => `\n${cell(note)}`),
    "",
    line(COLUMNS),
    line(COLUMNS.map(() => "---")),
    ...rows(result, catalogue).map((row) => line(row.map(cell))),
    "",
  ].join("\n");
}

/** The same rows for a spreadsheet (RFC 4180). Nothing that a node says is ever read as a formula. */
export function fleetCsv(result: FleetResult, catalogue: Pick<Catalogue, "rules">): string {
  const cell = (text: string): string => {
    const plain = oneLine(text);
    const safe = /^[=+\-@]/.test(plain) ? `'${plain}` : plain;
    return /[",]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [COLUMNS, ...rows(result, catalogue)].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

const oneLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();

export const targetsKey = (id: string): string => `fleets/${id}/targets`;
export const resultKey = (id: string): string => `fleets/${id}/result`;
export const keyOf = ({ cluster, name }: Target): string => `${cluster}/${name}`;
export const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** The targets of a fleet. Throws if there is none of this id, or they are not in the store any more. */
export async function loadTargets(ports: Pick<Ports, "store">, id: string): Promise<readonly Target[]> {
  const data = await ports.store.get(targetsKey(id));
  if (data === undefined) throw new Error(`the nodes of ${id} are not in the store any more`);
  return JSON.parse(new TextDecoder().decode(data)) as Target[];
}

/** What came of a fleet. Throws if there is none of this id, it has not ended, or it is not in the store any more. */
export async function loadFleet(ports: Pick<Ports, "store">, id: string): Promise<FleetResult> {
  const data = await ports.store.get(resultKey(id));
  if (data === undefined) throw new Error(`there is no result of a fleet ${id}: it was not examined, or is not in the store any more`);
  return JSON.parse(new TextDecoder().decode(data)) as FleetResult;
}
