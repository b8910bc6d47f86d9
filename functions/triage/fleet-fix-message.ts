import { preview } from "../rules/fix.ts";
import type { Fix } from "../rules/load.ts";
import { limitsOf } from "./clearance.ts";
import { commandTexts } from "./command-text.ts";
import { type Context, fixOf } from "./context.ts";
import { loadMembers, type Member, MOST_OTHERS, plural, proposalsHash, proposalsOf, type Whole } from "./fleet-members.ts";
import type { Message, Proposal } from "./ports.ts";

/** Nodes that are fixed at the same time, where the policy does not say fewer. */
const BATCH = 5;

const SHOWN_NODES = 30;
const SHOWN_COMMANDS = 3;

/** How one node ended. `reason`: for people; "" if all is well. */
export interface Ended {
  readonly node: string;
  readonly ok: boolean;
  readonly reason: string;
}

/** The message about the others: what would run where, with buttons, or what became of it. */
export async function othersMessage(
  { ports, catalogue }: Context,
  whole: Whole,
  { open, words, left, failed = [] }: { readonly open: boolean; readonly words: string; readonly left: number; readonly failed?: readonly Ended[] },
): Promise<Message> {
  const members = await loadMembers(ports, whole);
  const proposals = await proposalsOf(ports, members);
  const [lead] = proposals;
  if (lead === undefined) throw new Error(`${whole.fleet} has no proposals for ${whole.rule}`);
  const fix = fixOf(catalogue, lead);
  const kinds = variants(fix, proposals);
  const names = proposals.slice(0, SHOWN_NODES).map(({ target }) => target);
  const approved = [...new Set(lead.decisions.filter(({ decision }) => decision === "approve").map(({ actor }) => actor.id))];
  const size = await batchSize({ ports, catalogue }, lead);
  const value = `${whole.fleet} ${whole.rule} ${proposalsHash(proposals)}`;
  return {
    template: "fleet-fix",
    data: {
      count: proposals.length,
      title: fix.file.title,
      risk: fix.file.risk,
      first: whole.first,
      size,
      names: names.join(", "),
      more: proposals.length - names.length,
      variants: kinds.slice(0, SHOWN_COMMANDS).map(({ commands, nodes }) => ({ commands, nodes: kinds.length === 1 ? "" : plural(nodes.length, "node") })),
      variantsMore: Math.max(0, kinds.length - SHOWN_COMMANDS),
      sideEffects: fix.file.sideEffects,
      left: left === 0 ? "" : leftWords(left, members),
      open,
      words,
      failed: failed.slice(0, BATCH).map(({ node, reason }, at) => ({ node, reason, command: node, index: at + 3 })),
      approve: { command: `nodes approve ${value}` },
      dismiss: { command: `nodes dismiss ${value}` },
      approved,
      requester: lead.requester.id,
      expiresAt: Math.floor(Date.parse(lead.expiresAt) / 1000),
      expires: lead.expiresAt,
    },
  };
}

function leftWords(left: number, members: readonly Member[]): string {
  const why = members.find(({ problem }) => problem !== undefined)?.problem;
  return `${plural(left, "node")} with this cause ${left === 1 ? "is" : "are"} not among them${why === undefined ? `: at most ${MOST_OTHERS} are fixed on one approval` : `: ${why}`}.`;
}

/** What would run, each text once, with the nodes on which it would. */
function variants({ file }: Fix, proposals: readonly Proposal[]): readonly { readonly commands: string; readonly nodes: readonly string[] }[] {
  const found = new Map<string, string[]>();
  for (const { parameters, target } of proposals) {
    const { shown, more } = commandTexts(preview(file.apply, parameters));
    const text = `${shown.join("\n")}${more === 0 ? "" : `\n… and ${more} more commands`}`;
    found.set(text, [...(found.get(text) ?? []), target]);
  }
  return [...found].map(([commands, nodes]) => ({ commands: commands.slice(0, 2800), nodes }));
}

/** Every command on every node: what will run is never left out in silence. */
export async function commandsFile({ ports, catalogue }: Context, whole: Whole): Promise<string> {
  const proposals = await proposalsOf(ports, await loadMembers(ports, whole));
  const [lead] = proposals;
  if (lead === undefined) return "";
  const { file } = fixOf(catalogue, lead);
  const parts = proposals.map(({ target, cluster, parameters, id, hash }) =>
    [
      `## ${cluster}/${target}`,
      "",
      `Proposal ${id}, ${hash}`,
      "",
      ...commandTexts(preview(file.apply, parameters), 1000).shown.map((text) => `    ${text.replaceAll("\n", "\n    ")}`),
      "",
    ].join("\n"),
  );
  return [
    `# ${file.title}`,
    "",
    `Risk ${file.risk}. Undone by:`,
    "",
    ...commandTexts(preview(file.rollback, lead.parameters)).shown.map((text) => `    ${text.replaceAll("\n", "\n    ")}`),
    "",
    ...parts,
  ].join("\n");
}

/** As many at a time as the policy lets run, five at most. */
export async function batchSize({ ports, catalogue }: Pick<Context, "ports" | "catalogue">, proposal: Proposal): Promise<number> {
  const wanted = await limitsOf({ ports, catalogue } as Context, proposal);
  return Math.max(1, Math.min(BATCH, ...wanted.map(({ most }) => most)));
}
