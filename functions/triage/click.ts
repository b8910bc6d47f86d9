import { sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, fixOf, incidentOf, type TriageResult } from "./context.ts";
import { enough, mayApprove } from "./policy.ts";
import type { Click, Decision, Ports, Proposal } from "./ports.ts";
import { noteMessage, previewMessage } from "./report.ts";
import { workloadWords } from "./workload.ts";

/** A click on a button: checked against the policy at this moment, decided once, and always answered. */
export async function click(context: Context, event: Click): Promise<TriageResult> {
  const { durable, ports } = context;
  try {
    switch (event.action) {
      case "preview":
        return await durable.step("preview", () => preview(context, event));
      case "again":
        return await durable.step("again", () => again(ports, event));
      default:
        return await durable.step("decide", () => decide(context, event, event.action as "approve" | "dismiss"));
    }
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

async function preview({ ports, catalogue }: Context, event: Click): Promise<TriageResult> {
  const proposal = await proposalOf(ports, event);
  const incident = await incidentOf(ports, proposal.incident);
  await ports.store.record(proposal.incident, [auditDraft(ports, `previewed/${event.id}`, event.actor, { proposal: proposal.id, hash: proposal.hash })]);
  const diagnosis = await loadDiagnosis(ports, incident.diagnosis ?? "");
  await ports.chat.modal(event.triggerId, event.place, event.actor, previewMessage(proposal, fixOf(catalogue, proposal), diagnosis));
  return { outcome: "previewed" };
}

async function again(ports: Ports, event: Click): Promise<TriageResult> {
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

async function decide(context: Context, event: Click, decision: "approve" | "dismiss"): Promise<TriageResult> {
  const { ports } = context;
  const proposal = await proposalOf(ports, event);
  const whisper = (icon: string, text: string) => ports.chat.whisper(event.place, event.actor, noteMessage(icon, text));
  const earlier = proposal.decisions.find((item) => item.actor.id === event.actor.id);
  // a repeated step finds its own decision in the store: it only has to wake the workflow
  if (proposal.state !== "pending" && !(earlier !== undefined && (proposal.state === "approved" || proposal.state === "dismissed"))) {
    await whisper("information_source", `This proposal is closed already (${proposal.state}).`);
    return { outcome: "closed" };
  }
  if (proposal.state === "pending") {
    if (Date.parse(proposal.expiresAt) <= ports.now().getTime()) {
      await whisper("hourglass", "This proposal has expired. Run the triage again.");
      return { outcome: "expired" };
    }
    const config = await ports.config();
    const subject = { cluster: proposal.cluster, target: proposal.target, fix: proposal.fix, requester: proposal.requester };
    const ruling = await mayApprove(config, subject, event.actor, (group) => ports.members(group));
    // the person who asked may always call it off; running it is another matter
    const allowed =
      decision === "dismiss" && event.actor.id === proposal.requester.id ? { ok: true as const, statement: "requester", approvalsNeeded: 1 } : ruling;
    if (!allowed.ok) {
      const data = { proposal: proposal.id, decision, statement: allowed.statement, reason: allowed.reason };
      await ports.store.record(proposal.incident, [auditDraft(ports, `refused/${event.id}`, event.actor, data)]);
      await whisper("no_entry", `You cannot ${decision === "approve" ? "approve" : "dismiss"} this: ${allowed.reason}. Your click was recorded.`);
      return { outcome: "refused" };
    }
    const mine: Decision = { actor: event.actor, decision, at: ports.now().toISOString(), hash: proposal.hash };
    // a second approval by one person adds nothing; who approved may still call it off, and that is a decision of its own
    const decisions = earlier?.decision === decision ? proposal.decisions : [...proposal.decisions, mine];
    const settled = decision === "dismiss" || enough(decisions, allowed.approvalsNeeded);
    const state = decision === "dismiss" ? "dismissed" : settled ? "approved" : "pending";
    const type = decision === "dismiss" ? "dismissed" : "approved";
    const data = { proposal: proposal.id, hash: proposal.hash, statement: allowed.statement, approvals: decisions.length, needed: allowed.approvalsNeeded };
    const { applied } = await ports.store.transition(
      proposal.id,
      ["pending"],
      { state, decisions },
      auditDraft(ports, `${type}/${event.id}`, event.actor, data),
    );
    // someone else decided at the same moment: look again with that decision in place
    if (!applied) return decide(context, event, decision);
    if (!settled) {
      await whisper("white_check_mark", `Your approval counts; ${allowed.approvalsNeeded - decisions.length} more needed.`);
      return { outcome: "counted" };
    }
  }
  const stored = await proposalOf(ports, event);
  const woken = stored.callback !== undefined && (await ports.work.answer(stored.callback, { decision }));
  // nobody was waiting (any more): a second click of the same person, or a triage that has ended meanwhile
  if (!woken) await whisper("information_source", `This proposal is closed already (${stored.state}).`);
  return { outcome: woken ? decision : "closed" };
}

async function proposalOf(ports: Ports, event: Click): Promise<Proposal> {
  const proposal = event.proposal === undefined ? undefined : await ports.store.proposal(event.proposal);
  if (proposal === undefined || proposal.incident !== event.incident) throw new Error("this button belongs to no proposal that netcheck knows");
  return proposal;
}
