import { distance } from "fastest-levenshtein";
import { auditDraft, type Context } from "./context.ts";
import { MUTE, muteKey } from "./muted.ts";
import { noteMessage } from "./note.ts";
import type { ChatCommand, CommandRequest, Message, Mute, Resolution } from "./ports.ts";
import { untilText } from "./report.ts";
import { mayMute, standingOf } from "./standing.ts";

/** All mutes are one chain of the audit trail, beside those of the incidents. */
const MUTES = "mutes";

type Asked = Extract<ChatCommand, { name: "mute" | "unmute" }>;

/**
 * `mute RULE on TARGET for 7d because …` and `unmute RULE on TARGET`: checked, put on record, and answered. Only who may approve something on the node may
 * mute there. Repeated after a crash it changes nothing more.
 */
export async function muteCommand({ ports, catalogue }: Pick<Context, "ports" | "catalogue">, request: CommandRequest, asked: Asked): Promise<Message> {
  const { rule, target: name } = asked;
  const { incident: run, requester: by } = request;
  const target = await ports.targets.resolve(name);
  if (target.kind !== "found") return noteMessage("grey_question", unknownTarget(name, target));
  const node = { cluster: target.target.cluster, target: target.target.name };
  const where = `${node.target} (${node.cluster})`;
  const key = muteKey({ ...node, rule });
  const earlier = await ports.store.kept<Mute>(MUTE, key);
  if (asked.name === "mute" && !catalogue.rules.has(rule)) return noteMessage("grey_question", unknownRule(rule, [...catalogue.rules.keys()]));
  const standing = await standingOf(await ports.config(), by, (group) => ports.members(group));
  const ruling = mayMute(standing, node);
  if (!ruling.ok) {
    await ports.store.record(MUTES, [auditDraft(ports, `refused/${run}`, by, { ...node, rule, decision: asked.name, reason: ruling.reason })]);
    return noteMessage("no_entry", `You cannot ${asked.name} ${rule} on ${where}: ${ruling.reason}. What you asked was recorded.`);
  }
  if (asked.name === "unmute") {
    if (earlier === undefined) return noteMessage("information_source", `${rule} is not muted on ${where}.`);
    await ports.store.record(MUTES, [auditDraft(ports, `unmuted/${run}`, by, { ...node, rule, statement: ruling.statement })]);
    await ports.store.change(MUTE, key, () => undefined);
    return noteMessage("bell", `${rule} is no longer muted on ${where}: the next triage tells of it again.`);
  }
  const now = ports.now();
  const mute: Mute = { ...node, rule, by, at: now.toISOString(), until: new Date(now.getTime() + asked.minutes * 60_000).toISOString(), reason: asked.reason };
  const { until, reason } = mute;
  await ports.store.record(MUTES, [auditDraft(ports, `muted/${run}`, by, { ...node, rule, until, reason, statement: ruling.statement })]);
  await ports.store.change<Mute>(MUTE, key, () => mute);
  const instead = earlier === undefined || earlier.at === mute.at ? "" : ` It replaces the mute of ${earlier.by.id} until ${untilText(earlier.until)}.`;
  return noteMessage(
    "no_bell",
    `${rule} is muted on ${where} until ${untilText(until)}: ${reason}. It is still looked for and kept in each diagnosis, the thread says that it is hidden, and a node is never called healthy because of it. To end it: unmute ${rule} on ${node.target}.${instead}`,
  );
}

/** Why a name means no one target, for people. */
export function unknownTarget(name: string, resolution: Exclude<Resolution, { kind: "found" }>): string {
  if (resolution.kind === "ambiguous") {
    const ways = resolution.candidates.slice(0, 5).map((one) => `${one.cluster}/${one.name}`);
    return `Several targets are called ${name}: write ${ways.join(" or ")}.`;
  }
  const near = resolution.suggestions.slice(0, 3);
  return `There is no target called ${name}.${near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`}`;
}

function unknownRule(rule: string, rules: readonly string[]): string {
  const near = rules
    .map((id) => ({ id, far: distance(id, rule) }))
    .filter(({ id, far }) => far <= 4 || id.includes(rule))
    .sort((a, b) => a.far - b.far)
    .slice(0, 3)
    .map(({ id }) => id);
  return `There is no rule ${rule}, so nothing was muted.${near.length === 0 ? "" : ` Did you mean ${near.join(" or ")}?`} The id of a rule stands in the diagnosis and in its report.`;
}
