import { auditDraft, type Context, fixOf, proposalOf, type TriageResult } from "./context.ts";
import { type Ask, fleetHere, KIND, type Others } from "./fleet-members.ts";
import { noteMessage } from "./note.ts";
import { enough, mayApprove } from "./policy.ts";
import type { Actor, Decision, FleetRequest, Ports, Proposal } from "./ports.ts";
import { bindingProblem, subjectOf } from "./proposal.ts";

/** Somebody decides about the others: asked of the policy for each node at this moment, and on record with each proposal; all of them, or none. */
export async function decideOthers(context: Context, request: FleetRequest, ask: Ask<"approve" | "dismiss">): Promise<TriageResult> {
  const { durable, ports } = context;
  const { place, requester: actor } = request;
  const say = async (outcome: string, icon: string, text: string): Promise<TriageResult> => {
    await ports.chat.whisper(place, actor, noteMessage(icon, text));
    return { outcome };
  };
  return durable.step("decide", async () => {
    const incident = await fleetHere(ports, ask.fleet, place);
    const stored = incident === undefined ? undefined : await ports.store.kept<Others>(KIND, `${ask.fleet}/${ask.rule}`);
    if (stored === undefined) return say("unknown", "grey_question", "There is nothing like that to decide in this channel.");
    if (stored.hash !== ask.hash) return say("refused", "no_entry", "What the message showed is not what is proposed now. Nothing was decided.");
    if (stored.state !== "pending")
      return (await wakeAgain(ports, stored, ask)) ? { outcome: ask.kind } : say("closed", "information_source", `This is decided already (${stored.state}).`);
    const proposals: Proposal[] = [];
    for (const id of stored.proposals) proposals.push(await proposalOf(ports, id));
    const now = ports.now();
    if (proposals.some(({ expiresAt }) => Date.parse(expiresAt) <= now.getTime()))
      return say("expired", "hourglass", "This has expired. Examine the nodes again.");
    const { problem, needed, statement } = await mayDecide(context, actor, ask.kind, proposals);
    if (problem !== "") {
      const data = { decision: ask.kind, rule: ask.rule, reason: problem };
      await ports.store.record(ask.fleet, [auditDraft(ports, `refused/${request.incident}`, actor, data)]);
      return say("refused", "no_entry", `You cannot ${ask.kind} this: ${problem}. Nothing was decided, and your click was recorded.`);
    }
    let missing = 0;
    for (const proposal of proposals) missing = Math.max(missing, await decideOne(ports, request, ask.kind, proposal, needed.get(proposal.id) ?? 1, statement));
    if (ask.kind === "approve" && missing > 0)
      return say("counted", "white_check_mark", `Your approval counts for all ${proposals.length} nodes; ${missing} more needed.`);
    const state = ask.kind === "approve" ? ("approved" as const) : ("dismissed" as const);
    const now2 = await ports.store.change<Others>(KIND, `${ask.fleet}/${ask.rule}`, (old) => (old?.state === "pending" ? { ...old, state } : old));
    await ports.store.record(ask.fleet, [auditDraft(ports, `others-${state}/${ask.rule}`, actor, { rule: ask.rule, hash: ask.hash, nodes: proposals.length })]);
    if (now2?.callback !== undefined) await ports.work.answer(now2.callback, { decision: ask.kind });
    return { outcome: ask.kind };
  });
}

/** A repeated step, or a second click after a lost answer: the decision is on record, and whoever waits is woken once more. */
async function wakeAgain(ports: Ports, { callback, state }: Others, { kind }: Ask<"approve" | "dismiss">): Promise<boolean> {
  return state === (kind === "approve" ? "approved" : "dismissed") && callback !== undefined && ports.work.answer(callback, { decision: kind });
}

/** May somebody decide about all of these? `problem`: why not, as a clause; `needed`: approvals by proposal. */
async function mayDecide(
  context: Context,
  actor: Actor,
  kind: "approve" | "dismiss",
  proposals: readonly Proposal[],
): Promise<{ readonly problem: string; readonly needed: ReadonlyMap<string, number>; readonly statement: string }> {
  const { ports, catalogue } = context;
  const needed = new Map<string, number>();
  const none = { needed, statement: "" };
  if (kind === "dismiss" && proposals.every(({ requester }) => requester.id === actor.id)) return { ...none, problem: "", statement: "requester" };
  const config = await ports.config();
  let statement = "";
  // one and the same group for two hundred nodes: asked once
  const groups = new Map<string, Promise<readonly string[]>>();
  const members = (group: string): Promise<readonly string[]> => {
    const known = groups.get(group) ?? ports.members(group);
    groups.set(group, known);
    return known;
  };
  for (const proposal of proposals) {
    const where = `${proposal.cluster}/${proposal.target}`;
    const ruling = await mayApprove(config, subjectOf(proposal, fixOf(catalogue, proposal)), actor, members, ports.now());
    if (!ruling.ok) return { ...none, problem: `${ruling.reason} (${where})` };
    if (ruling.breakGlass)
      return { ...none, problem: `the policy lets you approve it only in an emergency (break-glass), which is for one node at a time (${where})` };
    if (kind === "approve") {
      const changed = await bindingProblem(context, proposal);
      if (changed !== "") return { ...none, problem: `it is no longer what was proposed: ${changed} (${where}). Examine the nodes again` };
    }
    needed.set(proposal.id, ruling.approvalsNeeded);
    statement = ruling.statement;
  }
  return { problem: "", needed, statement };
}

/** Records a decision with one proposal. Returns how many approvals are still missing. */
async function decideOne(
  ports: Ports,
  request: FleetRequest,
  kind: "approve" | "dismiss",
  proposal: Proposal,
  needed: number,
  statement: string,
): Promise<number> {
  const mine: Decision = { actor: request.requester, decision: kind, at: ports.now().toISOString(), hash: proposal.hash };
  const repeated = proposal.decisions.some(({ actor, decision }) => actor.id === mine.actor.id && decision === kind);
  const decisions = repeated ? proposal.decisions : [...proposal.decisions, mine];
  const settled = kind === "dismiss" || enough(decisions, needed);
  const state = kind === "dismiss" ? "dismissed" : settled ? "approved" : "pending";
  const people = new Set(decisions.filter(({ decision }) => decision === "approve").map(({ actor }) => actor.id)).size;
  const data = { proposal: proposal.id, hash: proposal.hash, statement, approvals: people, needed, together: true };
  const draft = auditDraft(ports, `${kind === "approve" ? "approved" : "dismissed"}/${request.incident}`, mine.actor, data);
  const { applied, proposal: now } = await ports.store.transition(proposal.id, ["pending"], { state, decisions }, draft);
  // somebody else decided at the same moment: once more, with that decision in place
  if (!applied && now.state === "pending") return decideOne(ports, request, kind, now, needed, statement);
  return settled ? 0 : needed - people;
}
