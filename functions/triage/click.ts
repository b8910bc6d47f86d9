import { sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import type { Config } from "./config.ts";
import { auditDraft, type Context, fixOf, incidentOf, type TriageResult, threadOf } from "./context.ts";
import { noteMessage } from "./note.ts";
import { enough, mayApprove, mayReview, type Ruling, terms } from "./policy.ts";
import type { AuditEvent, Click, Decision, Incident, Message, Ports, Proposal } from "./ports.ts";
import { bindingProblem, subjectOf } from "./proposal.ts";
import { approvedBy, breakGlassMessage, proposalMessage, reviewMessage } from "./proposal-message.ts";
import { showRefused } from "./refused.ts";
import { rootMessage } from "./report.ts";
import { workloadWords } from "./workload.ts";

/** What a click came to, and what is to be told beyond the person who clicked: that may fail without undoing the decision. */
interface Decided extends TriageResult {
  readonly tell?: keyof typeof TELL;
}

/** A click on a button, or a modal that was sent off: checked against the policy at this moment, decided once, and always answered. */
export async function click(context: Context, event: Click): Promise<TriageResult> {
  const { durable, ports } = context;
  try {
    const { outcome, tell } = await durable.step(event.action, () => act(context, event));
    if (tell !== undefined) await tellOthers(context, event, tell);
    return { outcome };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "click failed", { click: event.id, problem });
    await durable.step("tell-failure", async () => {
      await ports.chat.whisper(event.place, event.actor, noteMessage("warning", `That did not work: ${problem}. Run id: ${event.id}`));
      return null;
    });
    return { outcome: "failed" };
  }
}

function act(context: Context, event: Click): Promise<Decided> {
  switch (event.action) {
    case "preview":
      return preview(context, event);
    case "approve":
      return review(context, event);
    case "confirm":
      return decide(context, event, "approve");
    case "dismiss":
      return decide(context, event, "dismiss");
    case "again":
      return again(context.ports, event);
    case "reviewed":
      return reviewed(context, event);
  }
}

/** The modal without a button that approves: for everybody. */
async function preview(context: Context, event: Click): Promise<Decided> {
  const { ports, catalogue } = context;
  const proposal = await proposalOf(ports, event);
  const fix = fixOf(catalogue, proposal);
  const { approvers, needed } = await whoMay(context, proposal);
  await saw(ports, event, proposal);
  const message = reviewMessage(proposal, fix, await diagnosisOf(ports, proposal), approvers, needed);
  await ports.chat.modal(event.triggerId, event.place, event.actor, message);
  return { outcome: "previewed" };
}

/** The modal that approves: for whoever may approve at this moment. What it shows is what the decision is bound to. */
async function review(context: Context, event: Click): Promise<Decided> {
  const { ports, catalogue } = context;
  const proposal = await proposalOf(ports, event);
  const obstacle = proposal.state === "pending" ? await outdated(context, event, proposal) : await shut(ports, event, proposal);
  if (obstacle !== undefined) return obstacle;
  const config = await ports.config();
  // side by side: Slack gives three seconds from the click to the modal
  const [ruling, { approvers, needed }, diagnosis] = await Promise.all([
    rulingOf(context, config, event, proposal),
    whoMay(context, proposal),
    diagnosisOf(ports, proposal),
  ]);
  if (!ruling.ok) return refuse(ports, event, proposal, "approve", ruling);
  const approved = approvedBy(proposal);
  if (approved.includes(event.actor.id)) {
    await whisper(ports, event, "white_check_mark", `You have approved this already; ${Math.max(1, needed - approved.length)} more needed.`);
    return { outcome: "counted" };
  }
  await saw(ports, event, proposal);
  const channel = config.breakGlass?.channel;
  const glass = { statement: ruling.statement, ...(channel === undefined ? {} : { channel }) };
  const asked = { place: event.place, ...(ruling.breakGlass ? { breakGlass: glass } : {}) };
  const message = reviewMessage(proposal, fixOf(catalogue, proposal), diagnosis, approvers, ruling.breakGlass ? 1 : needed, asked);
  await ports.chat.modal(event.triggerId, event.place, event.actor, message, TOO_LATE);
  return { outcome: "asked" };
}

const TOO_LATE = noteMessage(
  "hourglass",
  "The window to approve could not be opened in time: Slack gives three seconds for it. Nothing was decided. Click Review and approve… once more.",
);

/** Who saw what is part of the record. */
async function saw(ports: Ports, event: Click, proposal: Proposal): Promise<void> {
  const data = { proposal: proposal.id, hash: proposal.hash };
  await ports.store.record(proposal.incident, [auditDraft(ports, `previewed/${event.id}`, event.actor, data)]);
}

async function again(ports: Ports, event: Click): Promise<Decided> {
  const incident = await incidentOf(ports, event.incident);
  if (incident.sources !== undefined) throw new Error("this was read from a file, not from a node; mention netcheck with the file once more");
  const { channel, responseUrl } = event.place;
  // a triage that was asked for in a thread stays in it
  const thread = incident.thread?.thread;
  // the click itself runs under its id already; the same click is the same new incident
  const id = `inc-${sha256(event.id).slice(0, 12)}`;
  const place = { channel, ...(thread === undefined ? {} : { thread }), ...(responseUrl === undefined ? {} : { responseUrl }) };
  const against = incident.against === undefined ? {} : { against: incident.against };
  const { workload } = incident;
  const asked = workload === undefined ? { target: incident.target } : { target: workloadWords(workload), workload };
  await ports.work.start(id, { kind: "triage", request: { incident: id, ...asked, requester: event.actor, place, ...against } });
  return { outcome: "started" };
}

/** Records a decision, once, and wakes the workflow that waits for it. */
async function decide(context: Context, event: Click, decision: "approve" | "dismiss"): Promise<Decided> {
  const { ports } = context;
  const proposal = await proposalOf(ports, event);
  const earlier = proposal.decisions.findLast((item) => item.actor.id === event.actor.id);
  if (proposal.state !== "pending") {
    // a repeated step finds its own decision in the store: it only has to wake the workflow
    if (earlier === undefined || (proposal.state !== "approved" && proposal.state !== "dismissed")) return shut(ports, event, proposal);
    return wake(context, event, decision, earlier);
  }
  const late = decision === "approve" ? await outdated(context, event, proposal) : await expired(ports, event, proposal);
  if (late !== undefined) return late;
  const ruling = await rulingOf(context, await ports.config(), event, proposal);
  const allowed = decision === "dismiss" ? mayDismiss(ruling, event, proposal) : sure(context, event, proposal, ruling);
  if (!allowed.ok) return refuse(ports, event, proposal, decision, allowed);

  const glass = decision === "approve" && allowed.breakGlass ? { breakGlass: { reason: reasonOf(event) } } : {};
  const mine: Decision = { actor: event.actor, decision, at: ports.now().toISOString(), hash: proposal.hash, ...glass };
  // a second approval by one person adds nothing; who approved may still call it off, and that is a decision of its own
  const repeated = earlier?.decision === decision && mine.breakGlass === undefined;
  const decisions = repeated ? proposal.decisions : [...proposal.decisions, mine];
  const settled = decision === "dismiss" || enough(decisions, allowed.approvalsNeeded);
  const state = decision === "dismiss" ? "dismissed" : settled ? "approved" : "pending";
  const type = decision === "dismiss" ? "dismissed" : mine.breakGlass === undefined ? "approved" : "break-glass-approved";
  const approvals = approvedBy({ decisions }).length;
  const data = { proposal: proposal.id, hash: proposal.hash, statement: allowed.statement, approvals, needed: allowed.approvalsNeeded, ...mine.breakGlass };
  const draft = auditDraft(ports, `${type}/${event.id}`, event.actor, data);
  const { applied } = await ports.store.transition(proposal.id, ["pending"], { state, decisions }, draft);
  // someone else decided at the same moment: look again with that decision in place
  if (!applied) return decide(context, event, decision);
  if (!settled) {
    await whisper(ports, event, "white_check_mark", `Your approval counts; ${allowed.approvalsNeeded - approvals} more needed.`);
    return { outcome: "counted", tell: "approvals" };
  }
  return wake(context, event, decision, mine);
}

async function wake({ ports }: Context, event: Click, decision: "approve" | "dismiss", mine: Decision): Promise<Decided> {
  const overridden = mine.breakGlass !== undefined;
  if (overridden) await ports.store.update(event.incident, { review: "pending" }, []);
  const { callback, state } = await proposalOf(ports, event);
  const woken = callback !== undefined && (await ports.work.answer(callback, { decision }));
  // nobody was waiting (any more): a second click of the same person, or a triage that has ended meanwhile
  if (!woken) await whisper(ports, event, "information_source", `This proposal is closed already (${state}).`);
  return { outcome: woken ? decision : "closed", ...(overridden ? { tell: "break-glass" } : {}) };
}

/** The person who asked may always call it off, as may whoever may approve it; running it is another matter. */
function mayDismiss(ruling: Ruling, event: Click, proposal: Proposal): Ruling {
  if (event.actor.id === proposal.requester.id) return { ok: true, statement: "requester", approvalsNeeded: 1, breakGlass: false };
  if (!ruling.ok || !ruling.breakGlass) return ruling;
  const reason = `the policy statement "${ruling.statement}" lets you decide only in an emergency, and calling it off is none; the person who asked can, and whoever may approve it`;
  return { ok: false, statement: ruling.statement, reason };
}

/** An approval that is allowed: is it of what was shown, and did the person say what was asked for? */
function sure({ catalogue }: Context, event: Click, proposal: Proposal, ruling: Ruling): Ruling {
  if (!ruling.ok) return ruling;
  const refusal = (reason: string): Ruling => ({ ok: false, statement: ruling.statement, reason: `${reason}. Click Review and approve… once more` });
  if (event.hash !== proposal.hash) return refusal("what the window showed is not what is proposed now");
  const { risk } = fixOf(catalogue, proposal).file;
  if (risk === "disruptive" && event.typed?.trim() !== proposal.target)
    return refusal(`it is disruptive, and the name of the node (${proposal.target}) was not typed`);
  if (ruling.breakGlass && reasonOf(event) === "")
    return refusal(`the policy statement "${ruling.statement}" lets you approve it only in an emergency (break-glass), and wants a reason`);
  return ruling;
}

/** Characters of a reason that are kept. */
const REASON = 500;
const reasonOf = (event: Click): string => (event.reason ?? "").trim().slice(0, REASON);

/** Is a pending proposal too old, or no longer what was proposed? Then that was told, and it can be approved no more. */
async function outdated(context: Context, event: Click, proposal: Proposal): Promise<Decided | undefined> {
  const { ports } = context;
  const late = await expired(ports, event, proposal);
  if (late !== undefined) return late;
  const problem = await bindingProblem(context, proposal);
  if (problem === "") return undefined;
  const data = { proposal: proposal.id, decision: "approve", statement: "binding", reason: problem, hash: proposal.hash };
  const draft = auditDraft(ports, `refused/${event.id}`, event.actor, data);
  const { applied, proposal: stored } = await ports.store.transition(proposal.id, ["pending"], { state: "refused" }, draft);
  if (!applied) return closed(ports, event, stored);
  await whisper(ports, event, "no_entry", `This can no longer be approved: ${problem}. Nothing was run. Run the triage again.`);
  return { outcome: "refused", tell: await wakeRefused(ports, stored) };
}

async function expired(ports: Ports, event: Click, proposal: Proposal): Promise<Decided | undefined> {
  if (Date.parse(proposal.expiresAt) > ports.now().getTime()) return undefined;
  await whisper(ports, event, "hourglass", "This proposal has expired. Run the triage again.");
  return { outcome: "expired" };
}

/** Not pending any more: by this very click, whose step is repeated, or by something else. */
async function shut(ports: Ports, event: Click, proposal: Proposal): Promise<Decided> {
  if (await refusedBy(ports, event, proposal)) return { outcome: "refused", tell: await wakeRefused(ports, proposal) };
  return closed(ports, event, proposal);
}

async function closed(ports: Ports, event: Click, proposal: Proposal): Promise<Decided> {
  await whisper(ports, event, "information_source", `This proposal is closed already (${proposal.state}).`);
  return { outcome: "closed" };
}

/** The workflow waits for an answer: there will be no other. */
async function wakeRefused(ports: Ports, { callback }: Proposal): Promise<"refusal"> {
  if (callback !== undefined) await ports.work.answer(callback, { decision: "refused" });
  return "refusal";
}

async function refusedBy(ports: Ports, event: Click, { state, incident }: Proposal): Promise<boolean> {
  return state === "refused" && (await ports.store.audit(incident)).some(({ key }) => key === `refused/${event.id}`);
}

/** Not allowed: on record, and said with the statement that decided and its reason. */
async function refuse(
  ports: Ports,
  event: Click,
  proposal: Proposal,
  decision: "approve" | "dismiss" | "review",
  { statement, reason }: { readonly statement: string; readonly reason: string },
): Promise<Decided> {
  const data = { proposal: proposal.id, decision, statement, reason };
  await ports.store.record(proposal.incident, [auditDraft(ports, `refused/${event.id}`, event.actor, data)]);
  await whisper(ports, event, "no_entry", `You cannot ${decision} this: ${reason}. Your click was recorded.`);
  return { outcome: "refused" };
}

/** Somebody looked at an approval that broke the glass. The first one who says so counts. */
async function reviewed({ ports, catalogue }: Context, event: Click): Promise<Decided> {
  const proposal = await proposalOf(ports, event);
  const broke = proposal.decisions.filter(({ breakGlass }) => breakGlass !== undefined).map(({ actor }) => actor.id);
  if (broke.length === 0) throw new Error("nobody broke the glass for this proposal");
  const before = reviewOf(await ports.store.audit(proposal.incident), proposal.id);
  if (before.by === undefined) {
    const subject = subjectOf(proposal, fixOf(catalogue, proposal));
    const ruling = await mayReview(await ports.config(), subject, broke, event.actor, (group) => ports.members(group));
    if (!ruling.ok) return refuse(ports, event, proposal, "review", ruling);
    const draft = auditDraft(ports, `reviewed/${proposal.id}`, event.actor, { proposal: proposal.id, statement: ruling.statement });
    await ports.store.update(proposal.incident, { review: before.others ? "pending" : "done" }, [draft]);
  }
  const { by } = reviewOf(await ports.store.audit(proposal.incident), proposal.id);
  if (by?.id !== event.actor.id) await whisper(ports, event, "information_source", "Somebody else has reviewed this already.");
  return { outcome: "reviewed", tell: "break-glass" };
}

/** Who reviewed a proposal, and whether another one of its incident still waits for that. */
function reviewOf(events: readonly AuditEvent[], proposal: string): { readonly by: AuditEvent["actor"] | undefined; readonly others: boolean } {
  const done = new Map(events.filter(({ type }) => type === "reviewed").map(({ data, actor }) => [data["proposal"], actor]));
  const broken = events.filter(({ type }) => type === "break-glass-approved").map(({ data }) => data["proposal"]);
  return { by: done.get(proposal), others: broken.some((one) => one !== proposal && !done.has(one)) };
}

/** What others than the person who clicked are shown. Repeated after a crash it changes nothing. */
const TELL = {
  approvals: showApprovals,
  refusal: showRefused,
  "break-glass": showBreakGlass,
};

/** A decision stands, whether or not the chat takes what is told of it. */
async function tellOthers(context: Context, event: Click, tell: keyof typeof TELL): Promise<void> {
  const { durable, ports } = context;
  try {
    await durable.step(`tell-${tell}`, async () => {
      await TELL[tell](context, await proposalOf(ports, event));
      return null;
    });
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "a decision could not be shown", { click: event.id, tell, problem });
    await durable.step(`untold-${tell}`, async () => {
      await ports.store.record(event.incident, [auditDraft(ports, `not-told/${event.id}`, event.actor, { tell, problem })]);
      await whisper(ports, event, "warning", `Your decision counts, but it could not be shown everywhere: ${problem}. Run id: ${event.id}`);
      return null;
    });
  }
}

/** The approvals so far, beside the buttons. */
async function showApprovals(context: Context, proposal: Proposal): Promise<void> {
  // whoever settled it meanwhile has shown more than this
  if (proposal.message === undefined || proposal.state !== "pending") return;
  const { approvers, needed, breakGlass } = await whoMay(context, proposal);
  const message = proposalMessage(proposal, fixOf(context.catalogue, proposal), approvers, undefined, needed, breakGlass);
  await context.ports.chat.update(proposal.message, message);
}

/** A text in an event's data; "" if there is none. */
function wordsIn(event: AuditEvent | undefined, key: string): string {
  const value = event?.data[key];
  return typeof value === "string" ? value : "";
}

/** Told openly in the thread and where the configuration says, with a button until somebody has reviewed it. */
async function showBreakGlass(context: Context, proposal: Proposal): Promise<void> {
  const { ports, catalogue } = context;
  const incident = await incidentOf(ports, proposal.incident);
  const mine = proposal.decisions.findLast(({ breakGlass }) => breakGlass !== undefined);
  if (mine?.breakGlass === undefined) return;
  const events = await ports.store.audit(proposal.incident);
  const approved = events.findLast(({ type, data }) => type === "break-glass-approved" && data["proposal"] === proposal.id);
  const statement = wordsIn(approved, "statement");
  const config = await ports.config();
  const override = { actor: mine.actor.id, reason: mine.breakGlass.reason, statement };
  const by = reviewOf(events, proposal.id).by?.id;
  const message = breakGlassMessage(proposal, fixOf(catalogue, proposal), override, reviewersOf(config, statement, mine.actor.id), by ?? "");
  const channel = config.breakGlass?.channel;
  const places = [
    ...(incident.thread === undefined ? [] : [{ key: `${proposal.id}/break-glass`, place: threadOf(incident.thread) }]),
    ...(channel === undefined ? [] : [{ key: `${proposal.id}/break-glass-channel`, place: { channel } }]),
  ];
  // one place that does not take it keeps no other from it
  const told = await Promise.allSettled([
    ...places.map(({ key, place }) => postOrEdit(ports, key, place, message, by !== undefined)),
    ...(by === undefined ? [] : [showReviewed(ports, incident)]),
  ]);
  for (const one of told) if (one.status === "rejected") throw one.reason;
}

/** The first message says no longer that a review is missing; while a fix runs, the workflow will draw it anyway. */
async function showReviewed(ports: Ports, incident: Incident): Promise<void> {
  if (incident.thread === undefined || incident.diagnosis === undefined || incident.state === "fixing" || incident.state === "verifying") return;
  await ports.chat.update(incident.thread, rootMessage(incident, await loadDiagnosis(ports, incident.diagnosis)));
}

async function postOrEdit(ports: Ports, key: string, place: { channel: string }, message: Message, edit: boolean): Promise<void> {
  const ref = await ports.chat.post(key, place, message);
  if (edit) await ports.chat.update(ref, message);
}

/** Whom the message names. Who may really review is the policy's answer to the click. */
function reviewersOf({ policy }: Config, statement: string, broke: string): readonly string[] {
  const found = policy.find(({ id }) => id === statement);
  if (found?.effect !== "allow") return [];
  return (found.breakGlass?.reviewers ?? found.approvers).filter((id) => id !== "*" && id !== broke);
}

const whisper = (ports: Ports, event: Click, icon: string, text: string): Promise<void> =>
  ports.chat.whisper(event.place, event.actor, noteMessage(icon, text));

const rulingOf = ({ ports, catalogue }: Context, config: Config, event: Click, proposal: Proposal): Promise<Ruling> =>
  mayApprove(config, subjectOf(proposal, fixOf(catalogue, proposal)), event.actor, (group) => ports.members(group), ports.now());

/** Whom to ask, and how many of them. */
async function whoMay(context: Context, proposal: Proposal): Promise<{ approvers: readonly string[]; needed: number; breakGlass: boolean }> {
  const { ports, catalogue } = context;
  const subject = subjectOf(proposal, fixOf(catalogue, proposal));
  const found = await terms(await ports.config(), subject, (group) => ports.members(group), ports.now());
  if (!found.ok) return { approvers: [], needed: 1, breakGlass: false };
  return { approvers: found.approvers, needed: found.approvalsNeeded, breakGlass: found.breakGlass };
}

const diagnosisOf = async (ports: Ports, proposal: Proposal) => loadDiagnosis(ports, (await incidentOf(ports, proposal.incident)).diagnosis ?? "");

async function proposalOf(ports: Ports, event: Click): Promise<Proposal> {
  const proposal = event.proposal === undefined ? undefined : await ports.store.proposal(event.proposal);
  if (proposal === undefined || proposal.incident !== event.incident) throw new Error("this button belongs to no proposal that netcheck knows");
  return proposal;
}
