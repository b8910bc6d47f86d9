import type { Catalogue } from "../rules/load.ts";
import { canonical, sha256 } from "./audit.ts";
import { click } from "./click.ts";
import { examine, loadDiagnosis } from "./collect.ts";
import { collectAll, collectPool, tellComparison } from "./comparison.ts";
import { auditDraft, type Context, fixOf, incidentOf, proposalOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { collectEitherWay, tellInstead } from "./fallback.ts";
import { tellInside } from "./inside.ts";
import { PAGER, page } from "./page.ts";
import { diagnosePaste, labelOf } from "./pasted.ts";
import { terms } from "./policy.ts";
import type {
  Message,
  MessageRef,
  PasteRequest,
  Place,
  Ports,
  Proposal,
  ProposalState,
  Resolution,
  Target,
  TriageRequest,
  WorkEvent,
  WorkloadName,
} from "./ports.ts";
import { remediate } from "./remediate.ts";
import { chooseTargetMessage, diagnosisMessage, noteMessage, proposalMessage, reportData, rootMessage } from "./report.ts";
import { type Chosen, chooseNodes, chosenText } from "./workload.ts";

/** The one durable function: a triage, files or text that somebody dropped, or a click on a button. */
export function work(context: Context, event: WorkEvent): Promise<TriageResult> {
  switch (event.kind) {
    case "triage":
      return triage(context, event.request);
    case "paste":
      return paste(context, event.request);
    case "click":
      return click(context, event.click);
    case "page":
      return page(context, event.page);
  }
}

async function paste(context: Context, request: PasteRequest): Promise<TriageResult> {
  try {
    return await diagnosePaste(context, request);
  } catch (error) {
    await fail(context, { ...request, target: labelOf(request) }, request.place, (error as Error).message);
    return { outcome: "failed" };
  }
}

/**
 * One triage from the request to the verified fix. Every step is remembered; a crash at any moment continues where it was. Whatever happens, the
 * person who asked is told.
 */
export async function triage(context: Context, request: TriageRequest): Promise<TriageResult> {
  const { durable, ports } = context;
  const place = request.place ?? { channel: "cli" };
  try {
    if (request.workload !== undefined) return await triageWorkload(context, request, request.workload, place);
    const resolution = await durable.step("resolve", async () => ports.targets.resolve(request.target));
    if (resolution.kind !== "found") return await tellUnknown(context, request, place, request.target, resolution);
    const peers: Target[] = [];
    for (const [index, name] of (request.against ?? []).entries()) {
      const peer = await durable.step(`resolve-peer-${index + 1}`, async () => ports.targets.resolve(name));
      if (peer.kind !== "found") return await tellUnknown(context, request, place, name, peer);
      const known = [resolution.target, ...peers].find((target) => target.cluster === peer.target.cluster && target.name === peer.target.name);
      if (known !== undefined) return await tellSame(context, request, place, known);
      peers.push(peer.target);
    }
    return await run(context, request, resolution.target, peers, place);
  } catch (error) {
    await fail(context, request, place, (error as Error).message);
    return { outcome: "failed" };
  }
}

/** A pod or a service: the node that was chosen for it is triaged as any other, and the thread says why that one, and what else was seen. */
async function triageWorkload(context: Context, request: TriageRequest, workload: WorkloadName, place: Place): Promise<TriageResult> {
  const { durable, ports } = context;
  const choice = await chooseNodes(context, workload);
  if (choice.kind === "chosen") return run(context, request, choice.chosen.node.target, [], place, choice.chosen);
  await durable.step("tell-unknown", async () => {
    const message =
      choice.kind === "none"
        ? noteMessage("grey_question", choice.text)
        : chooseTargetMessage(
            request.target,
            true,
            choice.words.map((words) => ({ label: words, command: words })),
          );
    await answerTo(ports, request, place, "unknown", message);
    return null;
  });
  return { outcome: choice.kind === "none" ? choice.outcome : "ambiguous" };
}

async function tellUnknown(
  { durable, ports }: Context,
  request: TriageRequest,
  place: Place,
  name: string,
  resolution: Exclude<Resolution, { kind: "found" }>,
): Promise<TriageResult> {
  const choices = resolution.kind === "unknown" ? resolution.suggestions.slice(0, 5).map((label) => ({ label, name: label })) : distinct(resolution.candidates);
  const message = chooseTargetMessage(
    name,
    resolution.kind === "ambiguous",
    choices.map((choice) => ({ label: choice.label, command: askedInstead(request, name, choice.name) })),
  );
  await durable.step("tell-unknown", async () => {
    await answerTo(ports, request, place, "unknown", message);
    return null;
  });
  return { outcome: resolution.kind };
}

/** To whoever asked, alone; what a page asked, the channel is told. */
async function answerTo(
  ports: Ports,
  { incident, requester }: Pick<TriageRequest, "incident" | "requester">,
  place: Place,
  key: string,
  message: Message,
): Promise<void> {
  if (requester.id === PAGER.id) await ports.chat.post(`${incident}/${key}`, place, message);
  else await ports.chat.whisper(place, requester, message);
}

/** What to type to mean just one of them: the name with its cluster; and what people tell it by. */
const distinct = (targets: readonly Target[]): readonly { readonly label: string; readonly name: string }[] =>
  targets.map(({ name, cluster, address }) => ({ label: `${cluster}/${name}${address === name ? "" : ` (${address})`}`, name: `${cluster}/${name}` }));

/** The command that was meant if `name` is called `instead`. */
const askedInstead = ({ target, against = [] }: TriageRequest, name: string, instead: string): string => {
  const [first, ...others] = [target, ...against].map((item) => (item === name ? instead : item));
  return others.length === 0 ? `${first}` : `${first} vs ${others.join(" ")}`;
};

/** Two names may mean one node (its name and its address). */
async function tellSame({ durable, ports }: Context, request: TriageRequest, place: Place, target: Target): Promise<TriageResult> {
  await durable.step("tell-same", async () => {
    const text = `${[request.target, ...(request.against ?? [])].join(" and ")} name the same node twice (${target.name}). Compare a node with other nodes, such as healthy ones of its pool.`;
    await ports.chat.whisper(place, request.requester, noteMessage("information_source", text));
    return null;
  });
  return { outcome: "same" };
}

/** What a failure leaves behind on the node, by the state of the proposal after it. */
const FATES: Partial<Record<ProposalState, string>> = {
  unknown: "It is not known whether the fix ran; it is not run again",
  succeeded: "The fix had run before that",
  failed: "The fix had failed before that",
};

/**
 * Something went wrong that the workflow has no answer to: it is put on record, no button is left that would do nothing, and the person is told. The
 * store or the chat may be what failed, so each of these is tried whatever became of the others.
 * @throws if nobody could be told: then the execution itself fails, for operations to see
 */
async function fail(
  { durable, ports, catalogue }: Context,
  request: Pick<TriageRequest, "incident" | "target" | "requester">,
  place: Place,
  problem: string,
): Promise<void> {
  const id = request.incident;
  ports.log("error", "triage failed", { incident: id, problem });
  const recorded = await durable
    .step("failed", async () => {
      let proposal = await ports.store.proposal(proposalId(id));
      for (const [from, state] of [
        [["pending", "approved"], "refused"],
        [["running"], "unknown"],
      ] as const) {
        if (proposal === undefined) break;
        const draft = auditDraft(ports, "fix-finished", SYSTEM, { proposal: proposal.id, outcome: state, reason: problem });
        proposal = (await ports.store.transition(proposal.id, from, { state }, draft)).proposal;
      }
      const known = (await ports.store.incident(id)) !== undefined;
      const incident = known ? await ports.store.update(id, { state: "failed", problem }, [auditDraft(ports, "failed", SYSTEM, { problem })]) : undefined;
      return { incident: incident ?? null, proposal: proposal ?? null };
    })
    .catch((error: unknown) => {
      ports.log("error", "a failure could not be put on record", { incident: id, problem: (error as Error).message });
      return undefined;
    });
  const { incident, proposal } = recorded ?? { incident: null, proposal: null };
  const fate = recorded === undefined ? "What became of a fix is not known" : (FATES[proposal?.state ?? "pending"] ?? "Nothing was changed on the node");
  const text = `The triage of ${request.target} failed: ${problem}. ${fate}. Run id: ${id}`;
  // what was read from a file has no node to run again on
  const note = noteMessage("warning", text, id, incident !== null && incident.sources === undefined);
  const thread = incident?.thread;
  await durable
    .step("tell-failure", async () => {
      await ports.chat.post(`${id}/failure`, thread === undefined ? place : threadOf(thread), note);
      return null;
    })
    .catch((error: unknown) => {
      // the bot may not be able to post there; the person who asked can still be reached
      ports.log("warn", "a failure could not be posted", { incident: id, problem: (error as Error).message });
      return durable.step("whisper-failure", async () => {
        await answerTo(ports, request, place, "failure", note);
        return null;
      });
    });
  await durable
    .step("show-failure", async () => {
      if (incident !== null && thread !== undefined) await ports.chat.update(thread, rootMessage(incident, undefined));
      if (proposal?.message !== undefined && (proposal.state === "refused" || proposal.state === "unknown")) {
        const closing = { icon: "warning", by: "", people: [], words: `The triage failed. ${fate}.`, detail: problem };
        await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], closing));
      }
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "a failure could not be shown", { incident: id, problem: (error as Error).message }));
}

/** An incident has one proposal. */
const proposalId = (incident: string): string => `${incident}-fix`;

async function run(context: Context, request: TriageRequest, target: Target, against: readonly Target[], place: Place, chosen?: Chosen): Promise<TriageResult> {
  const { durable, ports, catalogue, report } = context;
  const id = request.incident;
  const { workload } = request;
  const asked = { ...(against.length === 0 ? {} : { against: against.map(({ name }) => name) }), ...(workload === undefined ? {} : { workload }) };
  const thread = await durable.step("open", async () => {
    const now = ports.now().toISOString();
    const incident = await ports.store.open(
      { id, target: target.name, cluster: target.cluster, requester: request.requester, createdAt: now, state: "collecting", ...asked },
      auditDraft(ports, "incident-opened", request.requester, { target: target.name, cluster: target.cluster, transport: target.transport, ...asked }),
    );
    const root = await ports.chat.post(`${id}/root`, place, rootMessage({ ...incident, state: "collecting" }, undefined));
    const ref: MessageRef = place.thread === undefined ? root : { ...root, thread: place.thread };
    await ports.store.update(id, { thread: ref, state: "collecting" }, []);
    return ref;
  });
  const inThread = threadOf(thread);
  if (request.because !== undefined) {
    const because = `A page asked for it: ${request.because}`;
    await durable.step("tell-because", async () => {
      await ports.chat.post(`${id}/because`, inThread, noteMessage("rotating_light", because));
      return null;
    });
  }

  if (workload !== undefined && chosen !== undefined) {
    await durable.step("tell-workload", async () => {
      await ports.chat.post(`${id}/workload`, inThread, noteMessage("information_source", chosenText(workload, chosen)));
      return null;
    });
  }

  const looked =
    against.length === 0
      ? { node: await collectEitherWay(durable, ports, catalogue, id, target, "collect"), peers: [] }
      : await collectAll(context, id, target, against);
  const collected = looked.node;
  if (!collected.ok) {
    await durable.step("tell-not-collected", async () => {
      const problem = `could not look at ${target.name}: ${collected.reason}`;
      const incident = await ports.store.update(id, { state: "failed", problem }, [auditDraft(ports, "collect-failed", SYSTEM, { reason: collected.reason })]);
      await ports.chat.update(thread, rootMessage(incident, undefined));
      const text = `Inconclusive: netcheck ${problem}. That says nothing about the node's network. Run id: ${id}`;
      await ports.chat.post(`${id}/not-collected`, inThread, noteMessage("grey_question", text, id, true));
      return null;
    });
    return { outcome: "not-collected" };
  }
  await tellInstead(context, id, inThread, "instead", [{ target, collected }, ...looked.peers]);
  // whatever comes after goes the way that worked
  const reached = collected.instead?.target ?? target;

  const examined = await durable.step("diagnose", async () => {
    const { key, diagnosis } = await examine(ports, catalogue, collected.key);
    const capture = await ports.store.get(collected.key);
    await ports.store.update(id, { state: "diagnosed", capture: collected.key, diagnosis: key }, [
      auditDraft(ports, "diagnosed", SYSTEM, {
        verdict: diagnosis.verdict,
        causes: diagnosis.causes.map((cause) => cause.rule),
        unchecked: diagnosis.unchecked.map((item) => item.rule),
        capture: sha256(capture ?? ""),
        diagnosis: sha256(canonical(diagnosis)),
      }),
    ]);
    return { key, causes: diagnosis.causes.length };
  });
  await durable.step("tell-diagnosis", async () => {
    const diagnosis = await loadDiagnosis(ports, examined.key);
    const incident = await incidentOf(ports, id);
    await ports.chat.post(`${id}/diagnosis`, inThread, diagnosisMessage(incident, diagnosis, catalogue));
    await ports.chat.update(thread, rootMessage(incident, diagnosis));
    const [cause] = diagnosis.causes;
    if (cause?.diagram !== undefined)
      await ports.chat.upload(`${id}/diagram`, inThread, { name: `netcheck-${target.name}-${id}.png`, title: cause.title, content: cause.diagram });
    const content = report(reportData(incident, diagnosis, catalogue));
    await ports.chat.upload(`${id}/report`, inThread, { name: `netcheck-${target.name}-${id}.md`, title: `Full report on ${target.name}`, content });
    return null;
  });

  const peers = against.length > 0 ? looked.peers : examined.causes > 0 ? [] : await collectPool(context, id, target);
  if (against.length === 0) await tellInstead(context, id, inThread, "instead-peers", peers);
  if (peers.length > 0) await tellComparison(context, id, inThread, { target, capture: collected.key }, peers, against.length === 0);

  if (workload !== undefined && chosen !== undefined) await tellInside(context, id, inThread, { asked: workload, chosen, reached, capture: collected.key });

  const proposed = await durable.step("propose", async () => propose(ports, catalogue, request, target, examined.key));
  if (proposed.kind === "none") return { outcome: "diagnosed" };
  if (proposed.kind === "forbidden") {
    await durable.step("tell-forbidden", async () => {
      await ports.chat.post(`${id}/forbidden`, inThread, noteMessage("no_entry_sign", `A fix exists (${proposed.fix}), but ${proposed.reason}.`, id, true));
      return null;
    });
    return { outcome: "no-approver" };
  }

  const answer = await durable.callback<unknown>("approval", proposed.expiresSeconds, async (callbackId) => {
    const draft = auditDraft(ports, "approval-requested", SYSTEM, { proposal: proposed.id, approvers: proposed.approvers });
    const { proposal } = await ports.store.transition(proposed.id, ["pending"], { callback: callbackId }, draft);
    const message = await ports.chat.post(`${proposed.id}/proposal`, inThread, proposalMessage(proposal, fixOf(catalogue, proposal), proposed.approvers));
    // its buttons work from the moment it is posted, so somebody may have decided by now
    await ports.store.transition(
      proposed.id,
      ["pending", "approved", "dismissed"],
      { message },
      auditDraft(ports, "approval-posted", SYSTEM, { proposal: proposed.id }),
    );
    const incident = await ports.store.update(id, { state: "awaiting-approval" }, []);
    await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, examined.key)));
  });

  // what counts is the decision on record, not what an answer claims: it may also have been made just before the time was up
  const decided = await durable.step("decision", async () => {
    const pending: readonly ProposalState[] = answer.kind === "expired" ? ["pending"] : [];
    const draft = auditDraft(ports, "expired", SYSTEM, { proposal: proposed.id });
    return (await ports.store.transition(proposed.id, pending, { state: "expired" }, draft)).proposal.state;
  });
  if (decided === "approved")
    return { outcome: await remediate(context, { request, target: reached, thread, proposal: proposed.id, diagnosis: examined.key }) };
  if (decided !== "dismissed" && decided !== "expired") throw new Error("the approval was answered, but no decision is on record");
  await durable.step(`tell-${decided}`, async () => {
    await close(context, await proposalOf(ports, proposed.id), thread, examined.key, decided);
    return null;
  });
  return { outcome: decided };
}

/** Edits the proposal (its buttons go) and the root message. */
async function close(
  { ports, catalogue }: Context,
  proposal: Proposal,
  thread: MessageRef,
  diagnosisKey: string,
  state: "expired" | "dismissed",
): Promise<void> {
  if (proposal.message !== undefined) {
    const closing =
      state === "expired"
        ? { icon: "hourglass", by: "", people: [], words: "Nobody decided in time: the proposal expired. Nothing was changed.", again: true }
        : {
            icon: "no_entry_sign",
            by: "Dismissed",
            people: proposal.decisions.slice(-1).map((item) => item.actor.id),
            words: "Nothing was changed.",
            again: true,
          };
    await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], closing));
  }
  const incident = await ports.store.update(proposal.incident, { state }, []);
  await ports.chat.update(thread, rootMessage(incident, await loadDiagnosis(ports, diagnosisKey)));
}

type Proposed =
  | { readonly kind: "none" }
  | { readonly kind: "forbidden"; readonly fix: string; readonly reason: string }
  | { readonly kind: "proposed"; readonly id: string; readonly expiresSeconds: number; readonly approvers: readonly string[] };

/** Binds the first cause's fix to this node and its evidence. */
async function propose(ports: Ports, catalogue: Catalogue, request: TriageRequest, target: Target, diagnosisKey: string): Promise<Proposed> {
  const diagnosis = await loadDiagnosis(ports, diagnosisKey);
  const cause = diagnosis.causes[0];
  const fix = cause?.fix === undefined ? undefined : catalogue.fixes.get(cause.fix.id);
  if (cause?.fix === undefined || fix === undefined) return { kind: "none" };
  const subject = { cluster: target.cluster, target: target.name, fix: fix.file.id, requester: request.requester };
  const allowed = await terms(await ports.config(), subject, (group) => ports.members(group));
  if (!allowed.ok) {
    await ports.store.record(request.incident, [
      auditDraft(ports, "proposal-refused", SYSTEM, { fix: fix.file.id, statement: allowed.statement, reason: allowed.reason }),
    ]);
    return { kind: "forbidden", fix: fix.file.title, reason: allowed.reason };
  }
  const id = proposalId(request.incident);
  const bound = {
    fix: fix.file.id,
    version: fix.version,
    parameters: cause.fix.parameters,
    target: target.name,
    cluster: target.cluster,
    evidence: cause.evidence,
  };
  const now = ports.now();
  const stored = await ports.store.propose(
    {
      id,
      incident: request.incident,
      target: target.name,
      cluster: target.cluster,
      rule: cause.rule,
      fix: fix.file.id,
      parameters: cause.fix.parameters,
      hash: sha256(canonical(bound)),
      requester: request.requester,
      createdAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + allowed.expiresMinutes * 60_000).toISOString(),
      state: "pending",
      decisions: [],
    },
    auditDraft(ports, "fix-proposed", SYSTEM, { proposal: id, rule: cause.rule, ...bound, evidence: sha256(canonical(cause.evidence)) }),
  );
  await ports.store.update(request.incident, { proposal: id }, []);
  return { kind: "proposed", id, expiresSeconds: Math.max(1, Math.round((Date.parse(stored.expiresAt) - now.getTime()) / 1000)), approvers: allowed.approvers };
}
