import { answerPage, startAnswer } from "./answer-page.ts";
import { approval } from "./approval.ts";
import { ask, triageMessage } from "./ask.ts";
import { canonical, sha256 } from "./audit.ts";
import { chatCommand } from "./chat-command.ts";
import { click } from "./click.ts";
import { examine, loadDiagnosis } from "./collect.ts";
import { collectAll, collectPool, tellComparison } from "./comparison.ts";
import { auditDraft, type Context, fixOf, incidentOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { digest } from "./digest.ts";
import { escalate } from "./escalate.ts";
import { collectEitherWay, tellInstead } from "./fallback.ts";
import { feedback } from "./feedback.ts";
import { fleet } from "./fleet-command.ts";
import { followUp, startFollowUp } from "./follow-up.ts";
import { home, refreshHome } from "./home.ts";
import { tellInside } from "./inside.ts";
import { hiding, mutesOn, withoutMuted } from "./muted.ts";
import { chooseTargetMessage, noteMessage } from "./note.ts";
import { stopOutsider } from "./outsider.ts";
import { PAGER, page } from "./page.ts";
import { diagnosePaste, labelOf } from "./pasted.ts";
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
import { keyOf, proposalId } from "./proposal.ts";
import { proposalMessage } from "./proposal-message.ts";
import { registerEnd, registerOpened } from "./register.ts";
import { remediate } from "./remediate.ts";
import { remind } from "./remind.ts";
import { diagnosisMessage, reportData, rootMessage } from "./report.ts";
import { reportIncident } from "./report-command.ts";
import { rollback } from "./rollback.ts";
import { closePage } from "./timeline-close.ts";
import { type Chosen, chooseNodes, chosenText } from "./workload.ts";

/** The one durable function: a triage, files or text that somebody dropped, or a click on a button. */
export async function work(context: Context, event: WorkEvent): Promise<TriageResult> {
  const stopped = await stopOutsider(context, event);
  if (stopped !== undefined) return stopped;
  switch (event.kind) {
    case "triage": {
      const result = await triage(context, event.request);
      await registerEnd(context, event.request.incident);
      return result;
    }
    case "paste":
      return paste(context, event.request);
    case "click": {
      const result = await click(context, event.click);
      await refreshHome(context, event.click.actor);
      return result;
    }
    case "command":
      return chatCommand(context, event.request);
    case "ask":
      return ask(context, event.request);
    case "message-triage":
      return triageMessage(context, event.request);
    case "home":
      return home(context, event.request);
    case "feedback":
      return feedback(context, event.request);
    case "page":
      return page(context, event.page);
    case "answer-page":
      return answerPage(context, event.answer);
    case "escalate":
      return escalate(context, event.escalation);
    case "close-page":
      return closePage(context, event.closing);
    case "follow-up":
      return followUp(context, event.followUp);
    case "digest":
      return digest(context, event.digest);
    case "remind":
      return remind(context, event.reminder);
    case "report":
      return reportIncident(context, event.request);
    case "fleet":
      return fleet(context, event.request, triage);
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
    await startAnswer(context, request.incident, "ended");
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

/** What a failure leaves behind on the node, by the state of the fix's proposal after it, and of its rollback's. */
const FATES: Partial<Record<ProposalState, string>> = {
  unknown: "It is not known whether the fix ran; it is not run again",
  succeeded: "The fix had run before that",
  failed: "The fix had failed before that",
};
const ROLLBACK_FATES: Partial<Record<ProposalState, string>> = {
  unknown: "; it is not known whether it was undone, and it is not undone again",
  succeeded: " and was undone",
  failed: ", and undoing it failed",
};
function fateOf(fix: Proposal | null, rollback: Proposal | null): string {
  const ran = FATES[fix?.state ?? "pending"];
  if (ran === undefined) return "Nothing was changed on the node";
  return rollback === null ? ran : `${ran}${ROLLBACK_FATES[rollback.state] ?? "; it was not undone"}`;
}

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
      const fix = await close(ports, id, "fix", problem);
      const rollback = await close(ports, id, "rollback", problem);
      const known = (await ports.store.incident(id)) !== undefined;
      const incident = known ? await ports.store.update(id, { state: "failed", problem }, [auditDraft(ports, "failed", SYSTEM, { problem })]) : undefined;
      // what was posted right before it failed is in no incident yet, but the store knows it by its key
      const root = incident?.thread ?? (known ? await ports.store.recall(`${id}/root`) : undefined);
      const thread = root === undefined || place.thread === undefined ? root : { ...root, thread: place.thread };
      return { incident: incident ?? null, thread: thread ?? null, fix, rollback };
    })
    .catch((error: unknown) => {
      ports.log("error", "a failure could not be put on record", { incident: id, problem: (error as Error).message });
      return undefined;
    });
  const { incident, thread, fix, rollback } = recorded ?? { incident: null, thread: null, fix: null, rollback: null };
  const fate = recorded === undefined ? "What became of a fix is not known" : fateOf(fix, rollback);
  const text = `The triage of ${request.target} failed: ${problem}. ${fate}. Run id: ${id}`;
  // what was read from a file has no node to run again on
  const note = noteMessage("warning", text, id, incident !== null && incident.sources === undefined);
  await durable
    .step("tell-failure", async () => {
      await ports.chat.post(`${id}/failure`, thread === null ? place : threadOf(thread), note);
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
      if (incident !== null && thread !== null) await ports.chat.update(thread, rootMessage(incident, undefined));
      const proposal = rollback ?? fix;
      if (proposal === null || !OVER.has(proposal.state)) return null;
      const message = proposal.message ?? (await ports.store.recall(`${proposal.id}/proposal`));
      if (message !== undefined) {
        const closing = { icon: "warning", by: "", people: [], words: `The triage failed. ${fate}.`, detail: problem };
        await ports.chat.update(message, proposalMessage(proposal, fixOf(catalogue, proposal), [], closing));
      }
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "a failure could not be shown", { incident: id, problem: (error as Error).message }));
}

/** Nothing was run, or nobody knows: whatever its message says, it has no buttons any more. */
const OVER: ReadonlySet<ProposalState> = new Set(["refused", "unknown", "dismissed", "expired"]);

/** Closes what waits or runs: nobody will go on with it. Null if there is no such proposal. */
async function close(ports: Ports, incident: string, kind: "fix" | "rollback", problem: string): Promise<Proposal | null> {
  let proposal = await ports.store.proposal(proposalId(incident, kind));
  for (const [from, state] of [
    [["pending", "approved"], "refused"],
    [["running"], "unknown"],
  ] as const) {
    if (proposal === undefined) return null;
    const draft = auditDraft(ports, keyOf(`${kind}-finished`, kind, proposal.id), SYSTEM, { proposal: proposal.id, outcome: state, reason: problem });
    proposal = (await ports.store.transition(proposal.id, from, { state }, draft)).proposal;
  }
  return proposal ?? null;
}

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
    await registerOpened(ports.store, incident);
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
    await startAnswer(context, id, "found");
    return { outcome: "not-collected" };
  }
  await tellInstead(context, id, inThread, "instead", [{ target, collected }, ...looked.peers]);
  // whatever comes after goes the way that worked
  const reached = collected.instead?.target ?? target;

  const examined = await durable.step("diagnose", async () => {
    const { key, diagnosis } = await examine(ports, catalogue, collected.key);
    const capture = await ports.store.get(collected.key);
    const muted = hiding(diagnosis, await mutesOn(ports.store, target.cluster, target.name, ports.now()));
    await ports.store.update(id, { state: "diagnosed", capture: collected.key, diagnosis: key, ...(muted.length === 0 ? {} : { muted }) }, [
      auditDraft(ports, "diagnosed", SYSTEM, {
        verdict: diagnosis.verdict,
        causes: diagnosis.causes.map((cause) => cause.rule),
        unchecked: diagnosis.unchecked.map((item) => item.rule),
        ...(muted.length === 0 ? {} : { muted: muted.map(({ rule }) => rule) }),
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
    const [cause] = withoutMuted(diagnosis, incident.muted).causes;
    if (cause?.diagram !== undefined)
      await ports.chat.upload(`${id}/diagram`, inThread, { name: `netcheck-${target.name}-${id}.png`, title: cause.title, content: cause.diagram });
    const content = report(reportData(incident, diagnosis, catalogue));
    await ports.chat.upload(`${id}/report`, inThread, { name: `netcheck-${target.name}-${id}.md`, title: `Full report on ${target.name}`, content });
    return null;
  });

  await startAnswer(context, id, "found");

  const peers = against.length > 0 ? looked.peers : examined.causes > 0 ? [] : await collectPool(context, id, target);
  if (against.length === 0) await tellInstead(context, id, inThread, "instead-peers", peers);
  if (peers.length > 0) await tellComparison(context, id, inThread, { target, capture: collected.key }, peers, against.length === 0);

  if (workload !== undefined && chosen !== undefined) await tellInside(context, id, inThread, { asked: workload, chosen, reached, capture: collected.key });

  const decided = await approval(context, {
    kind: "fix",
    incident: id,
    requester: request.requester,
    target,
    thread,
    diagnosis: examined.key,
    find: async () => {
      // nothing is proposed for a cause that somebody muted
      const [cause] = withoutMuted(await loadDiagnosis(ports, examined.key), (await incidentOf(ports, id)).muted).causes;
      const fix = cause?.fix === undefined ? undefined : catalogue.fixes.get(cause.fix.id);
      return cause?.fix === undefined || fix === undefined ? undefined : { fix, rule: cause.rule, parameters: cause.fix.parameters };
    },
  });
  if (decided.kind === "none") return { outcome: "diagnosed" };
  if (decided.kind === "forbidden") return { outcome: "no-approver" };
  if (decided.kind !== "approved") {
    await startAnswer(context, id, "ended");
    if (decided.kind === "dismissed") await startFollowUp(context, id, { target: reached, proposal: decided.proposal, after: "open" });
    return { outcome: decided.kind };
  }
  const approved = { request, target: reached, thread, proposal: decided.proposal, diagnosis: examined.key };
  const { state, undo } = await remediate(context, approved);
  const outcome = undo === undefined ? state : await rollback(context, approved, undo);
  await startAnswer(context, id, "ended");
  await startFollowUp(context, id, { target: reached, proposal: decided.proposal, after: state === "resolved" ? "fixed" : "open" });
  return { outcome };
}
