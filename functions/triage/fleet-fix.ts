import { propose } from "./approval.ts";
import { sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, incidentOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import type { NodeSummary } from "./fleet.ts";
import { runBatches } from "./fleet-batches.ts";
import { commandsFile, othersMessage } from "./fleet-fix-message.ts";
import {
  type Ask,
  closeAll,
  fleetHere,
  KIND,
  loadMembers,
  type Member,
  MOST_OTHERS,
  type Others,
  plural,
  proposalsHash,
  proposalsOf,
  saveMembers,
  type Whole,
} from "./fleet-members.ts";
import { type FleetResult, groupsOf, keyOfNode, loadFleet } from "./fleet-report.ts";
import { noteMessage } from "./note.ts";
import type { FleetRequest, TriageRequest } from "./ports.ts";
import { proposalId } from "./proposal.ts";
import { registerEnd } from "./register.ts";

/**
 * One cause on several nodes: one node is fixed first, as any single node is; only when that is verified, the others are proposed together, and run in batches
 * until one of them does not end well. Each node has its own incident, proposal, lock, run marker and audit trail.
 */

/** Runs the triage of one node; the workflow's own, handed in. */
export type Triage = (context: Context, request: TriageRequest) => Promise<TriageResult>;

/** Nodes whose proposals are made in one step. */
const CHUNK = 20;

/** The incident of the first node, which is also the execution of the whole fix: one for each fleet and cause. */
const fixId = (fleet: string, rule: string): string => `inc-${sha256(`${fleet}\n${rule}\nfix`).slice(0, 12)}`;
const nodeId = (fleet: string, rule: string, node: string): string => `inc-${sha256(`${fleet}\n${rule}\n${node}`).slice(0, 12)}`;

/** "Fix one node first" was clicked: starts that, once for a fleet and cause, or goes on as that execution. */
export async function fixFleet(context: Context, request: FleetRequest, ask: Ask<"fix">, triage: Triage): Promise<TriageResult> {
  const { durable, ports } = context;
  const id = fixId(ask.fleet, ask.rule);
  if (request.incident === id) return canaryFirst(context, request, ask, triage);
  return durable.step("begin", async () => {
    const whisper = (text: string) => ports.chat.whisper(request.place, request.requester, noteMessage("information_source", text));
    const incident = await fleetHere(ports, ask.fleet, request.place);
    if (incident === undefined) {
      await whisper(`There is no run "${ask.fleet}" of many nodes in this channel.`);
      return { outcome: "unknown" };
    }
    if ((await ports.store.incident(id)) !== undefined) {
      await whisper("Fixing this cause has been begun in this thread already. If it has ended, examine the nodes again first: they may have changed.");
      return { outcome: "begun-before" };
    }
    const found = await sharing(context, await loadFleet(ports, ask.fleet), ask.rule);
    if (found.problem !== "") {
      await whisper(found.problem);
      return { outcome: "no-fix" };
    }
    await ports.work.start(id, { kind: "fleet", request: { ...request, incident: id } });
    return { outcome: "started" };
  });
}

/** The nodes that share a cause with a fix, or why there are none. */
async function sharing(
  { catalogue }: Context,
  result: FleetResult,
  rule: string,
): Promise<{ readonly nodes: readonly NodeSummary[]; readonly problem: string }> {
  const group = groupsOf(result.nodes, result.odd, catalogue).find((one) => one.rule === rule);
  if (group === undefined) return { nodes: [], problem: `No node of ${result.incident} has the cause ${rule}.` };
  const fix = group.fix === undefined ? undefined : catalogue.fixes.get(group.fix);
  if (fix === undefined) return { nodes: [], problem: `netcheck has no fix that fits all nodes with the cause ${rule}. Examine one of them by itself.` };
  return { nodes: group.nodes, problem: "" };
}

/** The first node through the whole triage, with its own proposal and approval; then, if that is verified, the others. */
async function canaryFirst(context: Context, request: FleetRequest, { fleet, rule }: Ask<"fix">, triage: Triage): Promise<TriageResult> {
  const { durable, ports, catalogue } = context;
  const { incident: id, requester } = request;
  const begun = await durable.step("choose", async () => {
    const { thread } = await incidentOf(ports, fleet);
    const { nodes, problem } = await sharing(context, await loadFleet(ports, fleet), rule);
    const [first, ...others] = nodes;
    if (first === undefined || thread === undefined) throw new Error(problem || `${fleet} has no thread`);
    const fix = catalogue.fixes.get(first.fix ?? "");
    const place = threadOf(thread);
    const text = `${plural(nodes.length, "node")} have the same cause. ${first.target} is fixed first, on its own approval; the other ${others.length} only after that was verified, on a second one. They are not touched before.`;
    await ports.chat.post(`${id}/first`, place, noteMessage("hatching_chick", text));
    return { first: keyOfNode(first), others: others.length, place, fix: first.fix ?? "", disruptive: fix?.file.risk === "disruptive" };
  });
  const { first, others, place } = begun;
  const { outcome } = await triage(context, { incident: id, target: first, requester, place });
  await registerEnd(context, id);
  // it was looked at anew, and another cause may have come first
  const same = await durable.step("first-ended", async () => {
    const proposal = await ports.store.proposal(proposalId(id));
    return proposal?.rule === rule && proposal.fix === begun.fix && proposal.version === catalogue.fixes.get(begun.fix)?.version;
  });
  const stop = async (text: string): Promise<TriageResult> => {
    await durable.step("tell-stopped", async () => {
      await ports.chat.post(`${id}/stopped`, place, noteMessage("octagonal_sign", text));
      await ports.store.record(fleet, [auditDraft(ports, `fix-stopped/${id}`, SYSTEM, { rule, first, outcome })]);
      return null;
    });
    return { outcome };
  };
  if (others === 0) return { outcome };
  if (outcome !== "resolved")
    return stop(`${first} was not fixed and verified (${outcome}), so the other ${plural(others, "node")} with this cause were not touched.`);
  if (!same)
    return stop(
      `${first} is fixed and verified, but what it needed by now was not the fix of this cause. So the other ${plural(others, "node")} were not touched: examine them again.`,
    );
  if (begun.disruptive)
    return stop(
      `${first} is fixed and verified. This fix is disruptive, so the other ${plural(others, "node")} are not fixed together: examine each by itself.`,
    );
  const whole = { fleet, rule, first, place };
  try {
    return await fixOthers(context, request, whole);
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "the fix of a fleet failed", { incident: id, problem });
    await durable.step("others-failed", async () => {
      await ports.store.change<Others>(KIND, `${fleet}/${rule}`, (old) => (old === undefined ? undefined : { ...old, state: "ended" }));
      await ports.store.record(fleet, [auditDraft(ports, `fix-stopped/${id}`, SYSTEM, { rule, first, problem })]);
      const text = `Fixing the other ${plural(others, "node")} failed: ${problem}. ${first} is fixed and verified. No more nodes are begun; what became of those that were is on record. Examine them again. Run id: ${id}`;
      await ports.chat.post(`${id}/others-failed`, place, noteMessage("warning", text));
      await closeAll(context, whole, "refused", problem);
      return null;
    });
    return { outcome: "failed" };
  }
}

/** Proposes the others together, waits for the decision, and runs them in batches until one does not end well. */
async function fixOthers(context: Context, request: FleetRequest, whole: Whole): Promise<TriageResult> {
  const { durable, ports } = context;
  const { incident: id } = request;
  const { fleet, rule, place } = whole;
  const count = await durable.step("others", async () => {
    const { nodes } = await sharing(context, await loadFleet(ports, fleet), rule);
    return nodes.filter((node) => keyOfNode(node) !== whole.first).length;
  });
  const wanted = Math.min(count, MOST_OTHERS);
  for (let begin = 0; begin < wanted; begin += CHUNK) {
    await durable.step(`others-propose-${begin / CHUNK + 1}`, async () => {
      const { nodes } = await sharing(context, await loadFleet(ports, fleet), rule);
      const mine = nodes.filter((node) => keyOfNode(node) !== whole.first).slice(begin, Math.min(wanted, begin + CHUNK));
      const members = (await loadMembers(ports, whole)).slice(0, begin);
      const made: Member[] = [];
      for (const node of mine) made.push(await proposeFor(context, request, whole, node));
      await saveMembers(ports, whole, [...members, ...made]);
      return null;
    });
  }
  const open = await durable.step("others-open", async () => {
    const proposals = await proposalsOf(ports, await loadMembers(ports, whole));
    const hash = proposalsHash(proposals);
    const expires = Math.min(...proposals.map(({ expiresAt }) => Date.parse(expiresAt)));
    if (proposals.length > 0)
      await ports.store.change<Others>(KIND, `${fleet}/${rule}`, (stored) => stored ?? { state: "pending", hash, proposals: proposals.map((one) => one.id) });
    return { count: proposals.length, hash, seconds: Math.max(1, Math.round((expires - ports.now().getTime()) / 1000)) };
  });
  const key = `${id}/others`;
  const left = count - open.count;
  if (open.count === 0) {
    await durable.step("tell-none", async () => {
      const [any] = await loadMembers(ports, whole);
      const why = any?.problem ?? "they have another cause by now";
      await ports.chat.post(
        key,
        place,
        noteMessage("no_entry_sign", `${whole.first} is fixed and verified. None of the other ${count} can be fixed from here: ${why}.`),
      );
      return null;
    });
    return { outcome: "resolved" };
  }
  await durable.step("others-commands", async () => {
    await ports.chat.upload(`${id}/others-commands`, place, {
      name: `netcheck-fix-${id}.md`,
      title: `What would run on ${plural(open.count, "node")}`,
      content: await commandsFile(context, whole),
    });
    return null;
  });
  await durable.callback<unknown>("others-approval", open.seconds, async (callback) => {
    await ports.store.change<Others>(KIND, `${fleet}/${rule}`, (stored) => (stored === undefined ? undefined : { ...stored, callback }));
    await ports.chat.post(key, place, await othersMessage(context, whole, { open: true, words: "", left }));
  });
  // what counts is what is on record, not what an answer claims
  const decided = await durable.step("others-decision", async () => {
    const stored = await ports.store.change<Others>(KIND, `${fleet}/${rule}`, (old) => (old?.state === "pending" ? { ...old, state: "expired" } : old));
    return stored?.state ?? "expired";
  });
  if (decided !== "approved") {
    await durable.step("others-closed", async () => {
      await closeAll(context, whole, decided === "dismissed" ? "dismissed" : "expired");
      const words = decided === "dismissed" ? "Dismissed: the others were not touched." : "Nobody decided in time: the others were not touched.";
      const message = await othersMessage(context, whole, { open: false, words, left });
      await ports.chat.update(await ports.chat.post(key, place, message), message);
      return null;
    });
    return { outcome: decided };
  }
  return runBatches(context, request, whole, { key, left });
}

/** An incident and a proposal for one node, on what the fleet found on it. Repeated it comes to the same. */
async function proposeFor({ ports, catalogue }: Context, request: FleetRequest, { fleet, rule }: Whole, node: NodeSummary): Promise<Member> {
  const name = keyOfNode(node);
  const incident = nodeId(fleet, rule, name);
  const { target, cluster, capture, diagnosis: key } = node;
  if (capture === undefined || key === undefined) return { node: name, incident, problem: "it was not looked at" };
  const data = { target, cluster, fleet, rule, capture, diagnosis: key };
  // not in the list of open incidents yet: it is decided with the others, not by itself
  await ports.store.open(
    { id: incident, target, cluster, requester: request.requester, createdAt: ports.now().toISOString(), state: "diagnosed", capture, diagnosis: key },
    auditDraft(ports, "incident-opened", request.requester, data),
  );
  const proposed = await propose(ports, {
    kind: "fix",
    incident,
    requester: request.requester,
    target: { name: target, cluster },
    // nothing is posted for one node of many
    thread: { channel: request.place.channel, ts: "" },
    diagnosis: key,
    find: async () => {
      const cause = (await loadDiagnosis(ports, key)).causes.find((one) => one.rule === rule);
      const fix = cause?.fix === undefined ? undefined : catalogue.fixes.get(cause.fix.id);
      return cause?.fix === undefined || fix === undefined ? undefined : { fix, rule, parameters: cause.fix.parameters };
    },
  });
  if (proposed.kind === "proposed") return { node: name, incident, proposal: proposed.id };
  return { node: name, incident, problem: proposed.kind === "forbidden" ? proposed.reason : "its fix cannot be offered" };
}
