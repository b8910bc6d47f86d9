import type { FixParameters } from "../rules/diagnosis.ts";
import type { Fix } from "../rules/load.ts";
import { canonical, sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, fixOf, proposalOf, SYSTEM, threadOf } from "./context.ts";
import { noteMessage } from "./note.ts";
import { terms } from "./policy.ts";
import type { Actor, Durable, MessageRef, Ports, Proposal, ProposalState } from "./ports.ts";
import { evidenceOf, hashOf, keyOf, proposalId, subjectOf } from "./proposal.ts";
import { type Closing, proposalMessage } from "./proposal-message.ts";
import { showRefused } from "./refused.ts";
import { rootMessage } from "./report.ts";

/** What is to be approved: a fix, or the way back from one. */
export interface Wanted {
  readonly fix: Fix;
  readonly rule: string;
  readonly parameters: FixParameters;
  /** Of a rollback: the proposal that it undoes. */
  readonly of?: string;
}

/** About what, for whom, and in which thread. */
export interface Asking {
  readonly kind: "fix" | "rollback";
  readonly incident: string;
  readonly requester: Actor;
  readonly target: { readonly name: string; readonly cluster: string };
  readonly thread: MessageRef;
  /** Key of the diagnosis that the root message shows. */
  readonly diagnosis: string;
  /** What to propose; undefined if there is nothing. Runs inside a step. */
  readonly find: () => Promise<Wanted | undefined>;
}

/**
 * What came of it. `forbidden`: the policy lets nobody approve it, and the thread was told. `refused`: at a click it showed that it is not any more what was
 * proposed; the proposal is closed.
 */
export type Decided = { readonly kind: "none" | "forbidden" | "refused" } | { readonly kind: "approved" | "dismissed" | "expired"; readonly proposal: string };

/** What came of proposing. */
export type Proposed =
  | { readonly kind: "none" }
  | { readonly kind: "forbidden"; readonly title: string; readonly reason: string }
  | {
      readonly kind: "proposed";
      readonly id: string;
      readonly expiresSeconds: number;
      readonly approvers: readonly string[];
      readonly needed: number;
      /** Nobody may approve it but in an emergency. */
      readonly breakGlass: boolean;
      readonly remindMinutes?: number;
    };

/**
 * Proposes, posts, waits, reminds, and says how it was decided. What counts is the decision on record, never what an answer claims. An incident has one
 * proposal of each kind; asked again after a crash it is the same one.
 */
export async function approval(context: Context, asking: Asking): Promise<Decided> {
  const { durable, ports, catalogue } = context;
  const { kind, incident, thread } = asking;
  const inThread = threadOf(thread);
  const named = (name: string): string => (kind === "fix" ? name : `rollback-${name}`);
  const proposed = await durable.step(named("propose"), () => propose(ports, asking));
  if (proposed.kind === "none") return { kind: "none" };
  if (proposed.kind === "forbidden") {
    await durable.step(named("tell-forbidden"), async () => {
      const text =
        kind === "fix"
          ? `A fix exists (${proposed.title}), but ${proposed.reason}.`
          : `The fix can be undone (its commands are above), but not from here: ${proposed.reason}.`;
      await ports.chat.post(`${incident}/${named("forbidden")}`, inThread, noteMessage("no_entry_sign", text, incident, true));
      return null;
    });
    return { kind: "forbidden" };
  }
  const { id, approvers, needed, breakGlass } = proposed;
  if (proposed.remindMinutes !== undefined) await startReminders(durable, ports, { ...proposed, remindMinutes: proposed.remindMinutes }, inThread, named);

  const answer = await durable.callback<unknown>(named("approval"), proposed.expiresSeconds, async (callbackId) => {
    const draft = auditDraft(ports, keyOf("approval-requested", kind, id), SYSTEM, { proposal: id, approvers });
    const { proposal } = await ports.store.transition(id, ["pending"], { callback: callbackId }, draft);
    const drawn = proposalMessage(proposal, fixOf(catalogue, proposal), approvers, undefined, needed, breakGlass);
    const message = await ports.chat.post(`${id}/proposal`, inThread, drawn);
    // its buttons work from the moment it is posted, so somebody may have decided by now
    await ports.store.transition(
      id,
      ["pending", "approved", "dismissed"],
      { message },
      auditDraft(ports, keyOf("approval-posted", kind, id), SYSTEM, { proposal: id }),
    );
    const changed = await ports.store.update(incident, { state: "awaiting-approval", proposal: id }, []);
    await ports.chat.update(
      thread,
      rootMessage(changed, await loadDiagnosis(ports, asking.diagnosis), kind === "fix" ? undefined : "undoing it waits for approval"),
    );
  });

  // what counts is the decision on record, not what an answer claims: it may also have been made just before the time was up
  const decided = await durable.step(named("decision"), async () => {
    const pending: readonly ProposalState[] = answer.kind === "expired" ? ["pending"] : [];
    const draft = auditDraft(ports, keyOf("expired", kind, id), SYSTEM, { proposal: id });
    return (await ports.store.transition(id, pending, { state: "expired" }, draft)).proposal.state;
  });
  if (decided === "approved") return { kind: decided, proposal: id };
  if (decided === "refused") {
    await durable.step(named("tell-refused"), async () => {
      await showRefused(context, await proposalOf(ports, id));
      return closeRoot(context, asking, "unresolved");
    });
    return { kind: decided };
  }
  if (decided !== "dismissed" && decided !== "expired") throw new Error("the approval was answered, but no decision is on record");
  await durable.step(named(`tell-${decided}`), async () => {
    const proposal = await proposalOf(ports, id);
    if (proposal.message !== undefined)
      await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], closing(proposal, decided)));
    return closeRoot(context, asking, decided);
  });
  return { kind: decided, proposal: id };
}

/** The incident's own state and its first message, when nothing will be run. A fix that has run stays unresolved, whatever becomes of its rollback. */
async function closeRoot({ ports }: Context, asking: Asking, state: "dismissed" | "expired" | "unresolved"): Promise<null> {
  const incident = await ports.store.update(asking.incident, { state: asking.kind === "fix" ? state : "unresolved" }, []);
  await ports.chat.update(asking.thread, rootMessage(incident, await loadDiagnosis(ports, asking.diagnosis)));
  return null;
}

function closing(proposal: Proposal, state: "dismissed" | "expired"): Closing {
  const unchanged = proposal.kind === "rollback" ? "Nothing was undone." : "Nothing was changed.";
  if (state === "expired") return { icon: "hourglass", by: "", people: [], words: `Nobody decided in time: the proposal expired. ${unchanged}`, again: true };
  const people = proposal.decisions.slice(-1).map((item) => item.actor.id);
  return { icon: "no_entry_sign", by: "Dismissed", people, words: unchanged, again: true };
}

/** Reminders are worth less than the approval: if they cannot be started, the log says so and everything goes on. */
async function startReminders(
  durable: Durable,
  ports: Ports,
  { id, expiresSeconds, remindMinutes }: { readonly id: string; readonly expiresSeconds: number; readonly remindMinutes: number },
  place: ReturnType<typeof threadOf>,
  named: (name: string) => string,
): Promise<void> {
  const reminder = { proposal: id, place, afterMinutes: remindMinutes, lastsMinutes: expiresSeconds / 60 };
  await durable
    .step(named("reminders"), async () => {
      try {
        await ports.work.start(`remind-${sha256(id).slice(0, 16)}`, { kind: "remind", reminder });
      } catch (error) {
        if ((error as { retryable?: boolean }).retryable === true) throw error;
        ports.log("warn", "reminders could not be started", { proposal: id, problem: (error as Error).message });
      }
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "reminders could not be started", { proposal: id, problem: (error as Error).message }));
}

/** Binds a fix, or the way back from it, to this node, its evidence and the policy. */
export async function propose(ports: Ports, asking: Asking): Promise<Proposed> {
  const { kind, incident, requester, target } = asking;
  const wanted = await asking.find();
  if (wanted === undefined) return { kind: "none" };
  const { fix, rule, parameters, of } = wanted;
  const subject = subjectOf({ cluster: target.cluster, target: target.name, fix: fix.file.id, requester }, fix);
  const now = ports.now();
  const allowed = await terms(await ports.config(), subject, (group) => ports.members(group), now);
  if (!allowed.ok) {
    const data = { kind, fix: fix.file.id, statement: allowed.statement, reason: allowed.reason };
    await ports.store.record(incident, [auditDraft(ports, keyOf("proposal-refused", kind, proposalId(incident, kind)), SYSTEM, data)]);
    return { kind: "forbidden", title: fix.file.title, reason: allowed.reason };
  }
  const id = proposalId(incident, kind);
  const evidence = await evidenceOf(ports, { incident, rule });
  const place = { target: target.name, cluster: target.cluster };
  const bound = { kind, of, fix: fix.file.id, version: fix.version, parameters, ...place, evidence, policy: allowed.policy };
  const draft = auditDraft(ports, keyOf(`${kind}-proposed`, kind, id), SYSTEM, { proposal: id, rule, ...bound, evidence: sha256(canonical(evidence)) });
  const stored = await ports.store.propose(
    {
      id,
      kind,
      ...(of === undefined ? {} : { of }),
      policy: allowed.policy,
      version: fix.version,
      incident,
      ...place,
      rule,
      fix: fix.file.id,
      parameters,
      hash: hashOf(bound),
      requester,
      createdAt: now.toISOString(),
      expiresAt: new Date(now.getTime() + allowed.expiresMinutes * 60_000).toISOString(),
      state: "pending",
      decisions: [],
    },
    draft,
  );
  await ports.store.update(incident, { proposal: id }, []);
  return {
    kind: "proposed",
    id,
    expiresSeconds: Math.max(1, Math.round((Date.parse(stored.expiresAt) - now.getTime()) / 1000)),
    approvers: allowed.approvers,
    needed: allowed.approvalsNeeded,
    breakGlass: allowed.breakGlass,
    ...(allowed.remindMinutes === undefined ? {} : { remindMinutes: allowed.remindMinutes }),
  };
}

/** Puts in the place of a proposal's buttons what is happening to it, under who approved. */
export async function showProposal({ ports, catalogue }: Context, proposal: Proposal, icon: string, words: string, detail = ""): Promise<void> {
  if (proposal.message === undefined) return;
  const people = proposal.decisions.filter((item) => item.decision === "approve").map((item) => item.actor.id);
  await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], { icon, by: "Approved", people, words, detail }));
}
