import { auditDraft, type Context, fixOf, SYSTEM } from "./context.ts";
import { enough, type Limit, limits, mayApprove, terms } from "./policy.ts";
import type { Durable, Ports, Proposal } from "./ports.ts";
import { bindingProblem, keyOf, subjectOf } from "./proposal.ts";

/** A place that a run has taken of a limit of the policy. */
export interface Place {
  readonly scope: string;
  readonly holder: string;
}

/** May it run now? `refusal`: why not, as a clause for people; "" if it may, and then `taken` are the places that it took anew. */
export interface Clearance {
  readonly refusal: string;
  readonly taken: readonly Place[];
}

/**
 * A fix and its rollback take one place: the way back must not fail on the very limit that its fix used up. The node's name stands with its cluster in the
 * scope.
 */
const holderOf = (limit: Limit, proposal: Proposal): string => (limit.holder === "target" ? proposal.target : (proposal.of ?? proposal.id));

/** The limits of the policy that a run must keep. Asked in a step before the one that takes the places: what is on record is given back whatever the policy says then. */
export async function limitsOf({ ports, catalogue }: Context, proposal: Proposal): Promise<readonly Limit[]> {
  const subject = subjectOf(proposal, fixOf(catalogue, proposal));
  return limits(await ports.config(), subject, (group) => ports.members(group), ports.now());
}

/**
 * The last questions before a run, whose answers count at this moment: is it still what was approved, may it be approved at all, do the approvals still count,
 * and is there a place of each limit? Then it is on record as running. Repeated after a crash it comes to the same: a place is taken once, and a proposal that
 * runs already stays so.
 */
export async function clear(context: Context, proposal: Proposal, wanted: readonly Limit[]): Promise<Clearance> {
  const { ports, catalogue } = context;
  const refuse = (refusal: string): Clearance => ({ refusal, taken: [] });
  const problem = await bindingProblem(context, proposal);
  if (problem !== "") return refuse(`this is not what was approved: ${problem}`);
  const denied = await approvalProblem(context, proposal);
  if (denied !== "") return refuse(denied);
  const { taken, full } = await reserve(ports, proposal, wanted);
  if (full !== "") return refuse(full);
  const kind = proposal.kind ?? "fix";
  const data = {
    proposal: proposal.id,
    hash: proposal.hash,
    fix: proposal.fix,
    version: fixOf(catalogue, proposal).version,
    parameters: proposal.parameters,
    limits: wanted.map(({ statement, scope }) => ({ statement, scope })),
  };
  const draft = auditDraft(ports, keyOf(`${kind}-started`, kind, proposal.id), SYSTEM, data);
  const { applied, proposal: now } = await ports.store.transition(proposal.id, ["approved"], { state: "running" }, draft);
  if (applied || now.state === "running") return { refusal: "", taken };
  await giveBack(ports, taken);
  return refuse(`the proposal is ${now.state}`);
}

/** Why the approvals on record do not suffice at this moment; "" if they do. Who broke the glass did so alone, and only while the policy still lets them approve. */
async function approvalProblem({ ports, catalogue }: Context, proposal: Proposal): Promise<string> {
  const config = await ports.config();
  const subject = subjectOf(proposal, fixOf(catalogue, proposal));
  let untold = false;
  const members = async (group: string) => {
    try {
      return await ports.members(group);
    } catch (error) {
      untold = true;
      throw error;
    }
  };
  const refusal = (why: string): string => `${untold ? "whether the policy still allows it is not known" : "the policy no longer allows it"}: ${why}`;
  const at = ports.now();
  const allowed = await terms(config, subject, members, at);
  if (!allowed.ok) return refusal(allowed.reason);
  const standing = [];
  let needed = allowed.approvalsNeeded;
  let why = "";
  for (const decision of proposal.decisions) {
    if (decision.decision !== "approve" || decision.hash !== proposal.hash) continue;
    const ruling = await mayApprove(config, subject, decision.actor, members, at);
    if (!ruling.ok) why = `: ${ruling.reason.replace(/\byou\b/g, decision.actor.id)}`;
    else if (decision.breakGlass !== undefined) return "";
    else if (ruling.breakGlass)
      why = `: by now the policy statement "${ruling.statement}" lets ${decision.actor.id} approve it only in an emergency (break-glass)`;
    else {
      standing.push(decision);
      needed = Math.max(needed, ruling.approvalsNeeded);
    }
  }
  return enough(standing, needed) ? "" : refusal(`an approval does not count any more${why}`);
}

/**
 * Nobody holds a place longer than this, in milliseconds: a run takes minutes, and one whose execution died for good must not keep its node, or a limit, for
 * ever. That nothing runs twice does not hang on it: the node's own marker sees to that.
 */
const LEASE_MS = 24 * 3_600_000;

/** A node as a place: one run at a time. */
const nodeOf = (proposal: Proposal): string => `node/${proposal.cluster}/${proposal.target}`;

/** Takes the node for a run. Taken again by the same run it is its own. @returns why not, as a clause for people; "" if it is taken */
export async function takeNode(ports: Ports, proposal: Proposal): Promise<string> {
  const { ok, holders } = await ports.store.reserve(nodeOf(proposal), proposal.id, 1, LEASE_MS, ports.now());
  return ok ? "" : `another fix is running on this node: ${holders.join(", ")}`;
}

/** Takes a place of each limit, or none: `full` says which statement's limit is used up, and by whom. */
async function reserve(ports: Ports, proposal: Proposal, wanted: readonly Limit[]): Promise<{ readonly taken: readonly Place[]; readonly full: string }> {
  const taken: Place[] = [];
  for (const limit of wanted) {
    const place = { scope: limit.scope, holder: holderOf(limit, proposal) };
    const { ok, holders } = await ports.store.reserve(place.scope, place.holder, limit.most, limit.keepMs ?? LEASE_MS, ports.now());
    if (!ok) {
      await giveBack(ports, taken);
      return { taken: [], full: `the policy allows ${limit.words}, and these count now: ${holders.slice(0, 10).join(", ")}. Run the triage again later` };
    }
    // who held it before took no new place, and has none to give back
    if (!holders.includes(place.holder)) taken.push(place);
  }
  return { taken, full: "" };
}

async function giveBack(ports: Ports, places: readonly Place[]): Promise<void> {
  for (const { scope, holder } of places) await ports.store.release(scope, holder);
}

/** What a run held. */
export interface Held {
  readonly proposal: Proposal;
  readonly wanted: readonly Limit[];
  readonly clearance: Clearance;
  /** The node may have been changed. */
  readonly ran: boolean;
}

/** Gives back what a run held: the node, the places that last as long as the run, and, if nothing was run, those that it took for a time. */
export async function leave(durable: Durable, ports: Ports, name: string, { proposal, wanted, clearance, ran }: Held): Promise<void> {
  await durable.step(name, async () => {
    const lasting = wanted.filter(({ keepMs }) => keepMs === undefined).map((limit) => ({ scope: limit.scope, holder: holderOf(limit, proposal) }));
    await giveBack(ports, ran ? lasting : [...lasting, ...clearance.taken]);
    await ports.store.release(nodeOf(proposal), proposal.id);
    return null;
  });
}
