import { preview } from "../rules/fix.ts";
import type { Fix } from "../rules/load.ts";
import { propose } from "./approval.ts";
import { sha256 } from "./audit.ts";
import { limitsOf } from "./clearance.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, fixOf, incidentOf, proposalOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import type { NodeSummary } from "./fleet.ts";
import { type FleetResult, groupsOf, keyOfNode, loadFleet, loadTargets } from "./fleet-report.ts";
import { enough, mayApprove } from "./policy.ts";
import type { Actor, Chat, Decision, FleetRequest, Incident, Message, MessageRef, Place, Ports, Proposal, TriageRequest } from "./ports.ts";
import { bindingProblem, proposalId, subjectOf } from "./proposal.ts";
import { registerEnd, registerEnded, registerOpened } from "./register.ts";
import { remediate } from "./remediate.ts";
import { commandTexts, noteMessage, rootMessage } from "./report.ts";
import { rollback } from "./rollback.ts";

/**
 * One cause on several nodes: one node is fixed first, as any single node is; only when that is verified, the others are proposed together, and run in batches
 * until one of them does not end well. Each node has its own incident, proposal, lock, run marker and audit trail.
 */

/** Runs the triage of one node; the workflow's own, handed in. */
export type Triage = (context: Context, request: TriageRequest) => Promise<TriageResult>;

/** Nodes that one approval is for, besides the first; more are left to the next examination. */
export const MOST_OTHERS = 200;
/** Nodes that are fixed at the same time, where the policy does not say fewer. */
const BATCH = 5;
/** How long a batch waits for one node, in seconds: locks, collecting three times, the fix and its settling are minutes. */
const NODE_SECONDS = 3600;
/** Nodes whose proposals are made in one step. */
const CHUNK = 20;
const SHOWN_NODES = 30;
const SHOWN_COMMANDS = 3;

type Ask<Kind extends FleetRequest["ask"]["kind"]> = Extract<FleetRequest["ask"], { kind: Kind }>;

/** Kind of the documents, by fleet/rule: what is decided of the others. */
const KIND = "fleet-fix";
interface Others {
  readonly state: "pending" | "approved" | "dismissed" | "expired" | "ended";
  /** sha256 of the hashes of all proposals, 16 hex digits: what was shown. */
  readonly hash: string;
  readonly proposals: readonly string[];
  /** Answers whoever waits for the decision. */
  readonly callback?: string;
}

/** The incident of the first node, which is also the execution of the whole fix: one for each fleet and cause. */
const fixId = (fleet: string, rule: string): string => `inc-${sha256(`${fleet}\n${rule}\nfix`).slice(0, 12)}`;
const nodeId = (fleet: string, rule: string, node: string): string => `inc-${sha256(`${fleet}\n${rule}\n${node}`).slice(0, 12)}`;
const proposalsHash = (proposals: readonly Pick<Proposal, "hash">[]): string =>
  sha256(
    proposals
      .map(({ hash }) => hash)
      .toSorted()
      .join("\n"),
  ).slice(0, 16);
const plural = (count: number, one: string): string => `${count} ${count === 1 ? one : `${one}s`}`;

/** A fleet of this channel. Undefined if there is none: whoever asks elsewhere learns nothing. */
export async function fleetHere(ports: Pick<Ports, "store">, id: string, place: Place): Promise<(Incident & { readonly thread: MessageRef }) | undefined> {
  const incident = await ports.store.incident(id);
  const { thread } = incident ?? {};
  return incident?.nodes === undefined || thread === undefined || thread.channel !== place.channel ? undefined : { ...incident, thread };
}

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

interface Whole {
  readonly fleet: string;
  readonly rule: string;
  /** "cluster/name" of the node that was fixed first. */
  readonly first: string;
  /** The fleet's thread. */
  readonly place: Place;
}

/** A node that is to be fixed after the first, or why it cannot be. */
interface Member {
  readonly node: string;
  readonly incident: string;
  readonly proposal?: string;
  readonly problem?: string;
}

const membersKey = ({ fleet, rule }: Pick<Whole, "fleet" | "rule">): string => `fleets/${fleet}/fix-${rule}`;

async function loadMembers(ports: Pick<Ports, "store">, whole: Pick<Whole, "fleet" | "rule">): Promise<readonly Member[]> {
  const data = await ports.store.get(membersKey(whole));
  return data === undefined ? [] : (JSON.parse(new TextDecoder().decode(data)) as Member[]);
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
      await ports.store.put(membersKey(whole), new TextEncoder().encode(JSON.stringify([...members, ...made])));
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

/** The proposals of the members that have one, in their order. */
async function proposalsOf(ports: Pick<Ports, "store">, members: readonly Member[]): Promise<readonly Proposal[]> {
  return Promise.all(members.flatMap(({ proposal }) => (proposal === undefined ? [] : [proposalOf(ports, proposal)])));
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

/** The message about the others: what would run where, with buttons, or what became of it. */
async function othersMessage(
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
async function commandsFile({ ports, catalogue }: Context, whole: Whole): Promise<string> {
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
async function batchSize({ ports, catalogue }: Pick<Context, "ports" | "catalogue">, proposal: Proposal): Promise<number> {
  const wanted = await limitsOf({ ports, catalogue } as Context, proposal);
  return Math.max(1, Math.min(BATCH, ...wanted.map(({ most }) => most)));
}

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

/** How one node ended. `reason`: for people; "" if all is well. */
interface Ended {
  readonly node: string;
  readonly ok: boolean;
  readonly reason: string;
}

/** Runs the approved proposals, some at a time. After a batch in which one did not end well no other one begins. */
async function runBatches(
  context: Context,
  request: FleetRequest,
  whole: Whole,
  about: { readonly key: string; readonly left: number },
): Promise<TriageResult> {
  const { durable, ports } = context;
  const { members, size } = await durable.step("others-plan", async () => {
    const all = (await loadMembers(ports, whole)).filter(({ proposal }) => proposal !== undefined);
    const lead = await proposalOf(ports, all[0]?.proposal ?? "");
    return { members: all.map(({ node, incident, proposal = "" }) => ({ node, incident, proposal })), size: await batchSize(context, lead) };
  });
  const done: Ended[] = [];
  const show = async (words: string): Promise<null> => {
    const failed = done.filter(({ ok }) => !ok);
    const message = await othersMessage(context, whole, { open: false, words, left: about.left, failed });
    await ports.chat.update(await ports.chat.post(about.key, whole.place, message), message);
    return null;
  };
  for (let begin = 0; begin < members.length && done.every(({ ok }) => ok); begin += size) {
    const batch = members.slice(begin, begin + size);
    const number = begin / size + 1;
    await durable.step(`batch-${number}-tell`, () => show(`${progress(done.length, members.length)}; now ${batch.map(({ node }) => node).join(", ")}`));
    await durable.all<null>(
      `batch-${number}`,
      batch.map(({ incident, proposal }, at) => ({
        name: `batch-${number}-${at + 1}`,
        run: async (child) => {
          await child.callback<unknown>(`node-${begin + at + 1}`, NODE_SECONDS, async (callback) => {
            const ask = { kind: "fix-node" as const, fleet: whole.fleet, proposal, callback };
            await ports.work.start(incident, { kind: "fleet", request: { incident, requester: request.requester, place: whole.place, ask } });
          });
          return null;
        },
      })),
      batch.length,
    );
    // what is on record counts: a node whose answer was lost may be fixed, and one that answered may not
    done.push(
      ...(await durable.step(`batch-${number}-ended`, async () => {
        const ended: Ended[] = [];
        for (const { node, incident } of batch) ended.push(await endOf(ports, node, incident));
        return ended;
      })),
    );
  }
  const bad = done.filter(({ ok }) => !ok);
  const rest = members.slice(done.length);
  await durable.step("others-ended", async () => {
    if (rest.length > 0) await closeAll(context, whole, "refused", `stopped after ${bad.map(({ node }) => node).join(", ")}`);
    await ports.store.change<Others>(KIND, `${whole.fleet}/${whole.rule}`, (old) => (old === undefined ? undefined : { ...old, state: "ended" }));
    const data = { rule: whole.rule, fixed: done.length - bad.length, failed: bad.map(({ node }) => node), untouched: rest.length };
    await ports.store.record(whole.fleet, [auditDraft(ports, `others-ended/${whole.rule}`, SYSTEM, data)]);
    const words =
      bad.length === 0
        ? `All ${members.length} are fixed and verified`
        : `Stopped: ${done.length - bad.length} fixed and verified, ${bad.length} not, ${rest.length} not touched`;
    return show(words);
  });
  return { outcome: bad.length === 0 ? "resolved" : "unresolved" };
}

const progress = (done: number, total: number): string => `${done} of ${total} fixed and verified`;

/** What became of a node, by its incident, and the words of the last event that say why. */
async function endOf(ports: Pick<Ports, "store">, node: string, incident: string): Promise<Ended> {
  const { state, problem } = await incidentOf(ports, incident);
  if (state === "resolved") return { node, ok: true, reason: "" };
  const events = (await ports.store.audit(incident)).toReversed();
  const ran = events.find(({ type }) => type === "fix-finished")?.data;
  const verified = events.find(({ type }) => type === "verified")?.data["words"];
  const words = [
    ran?.["outcome"] === "succeeded" ? "the fix ran" : ran === undefined ? "" : `the fix: ${String(ran["outcome"])}`,
    ran?.["reason"],
    verified,
    problem,
  ];
  const reason = words.filter((one): one is string => typeof one === "string" && one !== "").join("; ");
  return { node, ok: false, reason: (reason === "" ? `no end is on record (${state})` : reason).slice(0, 500) };
}

/** Closes what is not going to run: nobody goes on with it. */
async function closeAll({ ports }: Context, whole: Whole, state: "dismissed" | "expired" | "refused", reason = ""): Promise<void> {
  for (const { proposal: id, incident } of await loadMembers(ports, whole)) {
    if (id === undefined) continue;
    const { applied } = await ports.store.transition(
      id,
      ["pending", "approved"],
      { state },
      auditDraft(ports, `closed/${id}`, SYSTEM, { proposal: id, state, reason }),
    );
    const proposal = await proposalOf(ports, id);
    if (applied || proposal.state === state) {
      await ports.store.update(incident, { state: state === "refused" ? "unresolved" : state }, []);
    }
  }
}

/** The chat of one node among many: nothing is posted, so that many nodes are not many messages. What it would have said is on record. */
const quiet = (chat: Chat): Chat => ({
  post: async (_key, place) => ({ channel: place.channel, ts: "" }),
  update: async () => undefined,
  upload: async () => undefined,
  whisper: (...what) => chat.whisper(...what),
  modal: (...what) => chat.modal(...what),
  home: (...what) => chat.home(...what),
});

/** Runs the approved proposal of one node as any other, and answers the batch that waits for it. Where it did not help, the way back is offered in the thread. */
export async function fixNode(context: Context, request: FleetRequest, { fleet, proposal: id, callback }: Ask<"fix-node">): Promise<TriageResult> {
  const { durable, ports } = context;
  const { incident, requester, place } = request;
  let answered = false;
  const answer = async (): Promise<void> => {
    if (answered) return;
    answered = true;
    await durable.step("answer", async () => {
      await registerEnded(ports, incident);
      await ports.work.answer(callback, { incident });
      return null;
    });
  };
  try {
    const begun = await durable.step("node", async () => {
      const proposal = await proposalOf(ports, id);
      if (proposal.incident !== incident || proposal.state !== "approved") throw new Error(`the proposal ${id} is ${proposal.state}`);
      const target = (await loadTargets(ports, fleet)).find((one) => one.cluster === proposal.cluster && one.name === proposal.target);
      const summary = (await loadFleet(ports, fleet)).nodes.find((one) => one.cluster === proposal.cluster && one.target === proposal.target);
      if (target === undefined || summary?.diagnosis === undefined) throw new Error(`${proposal.target} is not among the nodes of ${fleet}`);
      await registerOpened(ports.store, await incidentOf(ports, incident));
      return { target: summary.reached ?? target, diagnosis: summary.diagnosis };
    });
    const approved = {
      request: { incident, target: begun.target.name, requester, place },
      target: begun.target,
      thread: { channel: place.channel, ts: "" },
      proposal: id,
      diagnosis: begun.diagnosis,
    };
    const { state, undo } = await remediate({ ...context, ports: { ...ports, chat: quiet(ports.chat) } }, approved);
    await answer();
    if (undo === undefined) return { outcome: state };
    const thread = await durable.step("node-root", async () => {
      const diagnosis = await loadDiagnosis(ports, begun.diagnosis);
      const root = await ports.chat.post(`${incident}/root`, place, rootMessage(await incidentOf(ports, incident), diagnosis));
      const ref = place.thread === undefined ? root : { ...root, thread: place.thread };
      await ports.store.update(incident, { thread: ref }, []);
      return ref;
    });
    return { outcome: await rollback(context, { ...approved, thread }, undo) };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "the fix of a node failed", { incident, problem });
    await durable.step("failed", async () => {
      const draft = (state: string) => auditDraft(ports, `fix-finished`, SYSTEM, { proposal: id, outcome: state, reason: problem });
      // whether it ran is not known, and it is never run again
      await ports.store.transition(id, ["running"], { state: "unknown" }, draft("unknown"));
      await ports.store.transition(id, ["approved"], { state: "refused" }, draft("refused"));
      await ports.store.update(incident, { state: "failed", problem }, [auditDraft(ports, "failed", SYSTEM, { problem })]);
      return null;
    });
    await answer();
    return { outcome: "failed" };
  }
}
