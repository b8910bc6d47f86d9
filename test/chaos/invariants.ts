import { verifyStore } from "../../functions/store/verify.ts";
import type { AuditEvent, Decision, Incident, Proposal } from "../../functions/triage/ports.ts";
import { holderOf } from "../triage/node-place.ts";
import type { Person, Policy } from "./scenario.ts";
import { CHANNEL, type ChaosWorld, type Rules } from "./world.ts";

/** What must hold at the end of a run, whatever happened in it. Returns what does not, as sentences. */
export async function broken(world: ChaosWorld): Promise<string[]> {
  const problems: string[] = [];
  const hold = (condition: boolean, problem: () => string): void => {
    if (!condition) problems.push(problem());
  };
  const { store, node, slack } = world;
  hold(world.running.length === 0, () => `still running after all this time: ${world.running.join(", ")}`);
  problems.push(...(await verifyStore(store)));

  // requests: what was taken is done, what nobody at Slack signed is not taken
  for (const { gesture, forged, status } of world.sent)
    if (forged && status === 200) problems.push(`a forged request was taken: ${gesture.what} by ${gesture.who}`);

  hold((await store.reserve("running/lab", "another", 1, undefined, new Date(world.clock.now()))).ok, () => "the place of a running fix is still taken");
  const limited = node.runs.filter(({ at, kind }) => kind === "fix" && world.rulesAt(at).policy === "limited");
  for (const [index, { id, at }] of limited.entries())
    hold(index === 0 || at - (limited[index - 1]?.at ?? 0) >= 3_600_000, () => `${id} ran within an hour of another, and the policy allows one`);

  // runs on the node
  const byId = Map.groupBy(node.runs, ({ id }) => id);
  for (const [id, runs] of byId) hold(runs.length === 1, () => `${id} ran ${runs.length} times`);
  for (const { id, at } of node.runs) problems.push(...whyUnauthorised(world, await store.proposal(id), await events(world, id), at));

  // a store that fails for good twice takes nothing down any more: then it is told that nothing is known, and the log says so
  const unrecorded = world.logged.some((line) => line.includes("could not be put on record"));
  for (const incident of await store.incidents(100)) {
    const audit = await store.audit(incident.id);
    const types = new Set(audit.map(({ type }) => type));
    const name = incident.id;
    const execution = world.engine.execution(name);
    hold(execution?.status === "SUCCEEDED" || execution?.status === "FAILED", () => `${name}: the execution is ${execution?.status ?? "not there"}`);
    const wanted = RECORDED[incident.state];
    hold(wanted === undefined || wanted.some((type) => types.has(type)), () => `${name} is ${incident.state} without ${wanted?.join(" or ")} on record`);
    hold(unrecorded || FINAL.has(incident.state) || execution?.status === "FAILED", () => `${name} ended, but is left ${incident.state}`);
    for (const suffix of ["fix", "rollback"]) {
      const proposal = await store.proposal(`${name}-${suffix}`);
      if (proposal !== undefined && !unrecorded) problems.push(...contradictions(world, proposal, audit));
    }
    const closed = audit.some(({ type, data }) => type === "refused" && data["statement"] === "binding" && data["proposal"] === `${name}-fix`);
    problems.push(...untold(world, incident, { failed: execution?.status === "FAILED", closed }));
    hold((await holderOf(store, `${incident.cluster}/${incident.target}`)) === undefined, () => `${incident.target} is still taken`);
    problems.push(...(await glass(world, incident, audit)));
  }
  for (const [key, twins] of Map.groupBy(
    slack.messages.filter((one) => one.key !== "" && one.onlyFor === undefined),
    (one) => one.key,
  ))
    hold(twins.length === 1, () => `${key} was posted ${twins.length} times`);
  return problems;
}

/** Who broke the glass is named openly, and somebody else has looked at it or still has to. */
async function glass({ store, slack }: ChaosWorld, { id, review }: Incident, audit: readonly AuditEvent[]): Promise<string[]> {
  const problems: string[] = [];
  for (const suffix of ["fix", "rollback"]) {
    const proposal = await store.proposal(`${id}-${suffix}`);
    const broke = (proposal?.decisions ?? []).find(({ breakGlass }) => breakGlass !== undefined);
    if (broke === undefined) continue;
    const reviewed = audit.find(({ type, data }) => type === "reviewed" && data["proposal"] === proposal?.id);
    if (!audit.some(({ type, actor }) => type === "break-glass-approved" && actor.id === broke.actor.id))
      problems.push(`${id}: the glass was broken off the record`);
    if (review === undefined) problems.push(`${id}: the glass was broken, and nobody has to look at it`);
    if (reviewed !== undefined && reviewed.actor.id === broke.actor.id) problems.push(`${id}: who broke the glass reviewed it`);
    const told = slack.posted(`${id}-${suffix}/break-glass`).length === 1 || audit.some(({ type }) => type === "not-told");
    if (!told) problems.push(`${id}: the glass was broken, and the thread does not say so`);
  }
  return problems;
}

/** States in which an incident may be left, with what must be on record for each. */
const RECORDED: Partial<Record<Incident["state"], readonly string[]>> = {
  diagnosed: ["diagnosed"],
  resolved: ["verified"],
  // closed at a click: it was no longer what was proposed
  unresolved: ["verified", "refused"],
  dismissed: ["dismissed"],
  expired: ["expired"],
  failed: ["failed", "collect-failed"],
};
const FINAL: ReadonlySet<string> = new Set(Object.keys(RECORDED));

async function events(world: ChaosWorld, proposal: string): Promise<readonly AuditEvent[]> {
  return world.store.audit((await world.store.proposal(proposal))?.incident ?? "none");
}

/** Nobody but those whom the policy names, enough of them, for exactly this, may have made it run. */
function whyUnauthorised(world: ChaosWorld, proposal: Proposal | undefined, audit: readonly AuditEvent[], at: number): string[] {
  if (proposal === undefined) return ["something ran that was never proposed"];
  const about = (type: string): AuditEvent[] => audit.filter((event) => event.type === type && event.data["proposal"] === proposal.id);
  const [started] = about(`${proposal.kind ?? "fix"}-started`);
  if (started === undefined) return [`${proposal.id} ran, but its start is not on record`];
  const rules = world.rulesAt(Date.parse(started.at));
  const counting = proposal.decisions.filter(
    (one) => one.decision === "approve" && one.hash === proposal.hash && Date.parse(one.at) <= at && mayApprove(rules, one, proposal.requester.id),
  );
  const approvals = [...about("approved"), ...about("break-glass-approved")];
  const people = new Set(counting.map(({ actor }) => actor.id));
  const problems: string[] = [];
  if (people.size < NEEDED[rules.policy])
    problems.push(`${proposal.id} ran with the approvals of [${[...people].join(", ")}], but the policy is "${rules.policy}"`);
  const proposed = world.rulesAt(Date.parse(proposal.createdAt));
  if (rules.policy !== proposed.policy) problems.push(`${proposal.id} ran, though the policy is not the one that it was proposed under`);
  if (rules.fixChanged !== proposed.fixChanged) problems.push(`${proposal.id} ran, though the fix is not what was approved`);
  for (const person of people)
    if (!approvals.some((event) => event.actor.id === person)) problems.push(`${proposal.id} ran, but the approval of ${person} is not on record`);
  if (started.sequence < Math.min(...approvals.map(({ sequence }) => sequence))) problems.push(`${proposal.id} started before it was approved`);
  return problems;
}

const NEEDED: Record<Policy, number> = { sre: 1, two: 2, self: 1, "not-carol": 1, limited: 1, glass: 1, nobody: Number.POSITIVE_INFINITY };

/** The policies of world.ts, said once more in the plainest way. */
function mayApprove({ policy, sre }: Rules, { actor, breakGlass }: Decision, requester: string): boolean {
  const who = actor.id as Person;
  if (breakGlass !== undefined) return policy === "glass" && who === "U_MALLORY" && breakGlass.reason !== "";
  if (policy === "self") return sre.includes(who) || who === "U_ALICE";
  if (who === requester) return false;
  return sre.includes(who) && !(policy === "not-carol" && who === "U_CAROL");
}

/** A proposal against what is on record, what ran, and what its message says. */
function contradictions(world: ChaosWorld, proposal: Proposal, audit: readonly AuditEvent[]): string[] {
  const problems: string[] = [];
  const { id, state } = proposal;
  const has = (type: string, fitting: (event: AuditEvent) => boolean = () => true): boolean => audit.some((event) => event.type === type && fitting(event));
  const ran = world.node.runs.filter((run) => run.id === id).length;
  if (!["dismissed", "expired", "succeeded", "failed", "unknown", "refused"].includes(state)) problems.push(`${id} is left ${state}`);
  if (state === "dismissed" && !has("dismissed")) problems.push(`${id} is dismissed, and nothing on record says by whom`);
  if (state === "expired" && !has("expired")) problems.push(`${id} is expired without an event`);
  const finished = has(`${proposal.kind ?? "fix"}-finished`, ({ data }) => data["outcome"] === state && data["proposal"] === id);
  const closed = state === "refused" && has("refused", ({ data }) => data["statement"] === "binding" && data["proposal"] === id);
  if (["succeeded", "failed", "unknown", "refused"].includes(state) && !finished && !closed) problems.push(`${id} is ${state} without an event that says so`);
  if (ran > 0 && ["dismissed", "expired", "refused"].includes(state)) problems.push(`${id} ran, but it is ${state}`);
  if (ran === 0 && state === "succeeded") problems.push(`${id} never ran, but it is ${state}`);
  const [message] = world.slack.posted(`${id}/proposal`);
  if (message === undefined) return problems;
  const said = `${message.text} ${JSON.stringify(message.blocks)}`;
  if (said.includes('"action_id":"approve"')) problems.push(`${id} is ${state}, but its button to approve is left`);
  if (said.includes("The fix ran.") && state !== "succeeded") problems.push(`${id} is ${state}, but its message says that the fix ran`);
  if (said.includes("Nothing was changed") && ran > 0) problems.push(`${id} ran, but its message says that nothing was changed`);
  return problems;
}

/** What people were told in the end. `failed`: even the telling failed, for operations to see. `closed`: a click showed that it is not what was proposed. */
function untold(world: ChaosWorld, { id, state }: Incident, { failed, closed }: { readonly failed: boolean; readonly closed: boolean }): string[] {
  const { slack, node } = world;
  if (failed) return [];
  const problems: string[] = [];
  const whispered = slack.messages.some((one) => one.onlyFor !== undefined && one.text.includes(id));
  const [root] = slack.posted(`${id}/root`);
  const [outcome] = slack.posted(`${id}/outcome`);
  const [failure] = slack.posted(`${id}/failure`);
  const ran = node.runs.some((run) => run.id === `${id}-fix`);
  if (root === undefined && !whispered && failure === undefined) problems.push(`${id}: nobody was told anything`);
  if ((state === "resolved" || (state === "unresolved" && !closed)) && outcome === undefined)
    problems.push(`${id} is ${state}, and nobody was told the outcome`);
  if (state === "failed" && failure === undefined && slack.posted(`${id}/not-collected`).length === 0 && !whispered)
    problems.push(`${id} failed, and nobody was told`);
  if (state === "resolved" && node.broken) problems.push(`${id} is resolved, but the fault is still there`);
  const words = ROOT_WORDS[state];
  if (root !== undefined && words !== undefined && !root.text.includes(words)) problems.push(`${id} is ${state}, but its first message says "${root.text}"`);
  if (outcome !== undefined) {
    const said = JSON.stringify(outcome.blocks);
    if (said.includes("the cause is gone") && node.broken) problems.push(`${id}: people read that the cause is gone, but it is not`);
    if (said.includes("Nothing was changed on the node") && ran) problems.push(`${id}: people read that nothing was changed, but the fix ran`);
  }
  if (failure !== undefined && ran && failure.text.includes("Nothing was changed on the node"))
    problems.push(`${id}: people read "${failure.text}", but the fix ran`);
  for (const message of slack.messages) if (message.channel !== CHANNEL && message.channel !== "cli") problems.push(`a message went to ${message.channel}`);
  return problems;
}

const ROOT_WORDS: Partial<Record<Incident["state"], string>> = {
  resolved: "resolved and verified",
  unresolved: "not resolved",
  dismissed: "dismissed",
  expired: "the proposal expired",
  failed: "the triage failed",
};
