import type { Fix } from "../rules/load.ts";
import { auditDraft, type Context, fixOf, SYSTEM, type TriageResult } from "./context.ts";
import { terms } from "./policy.ts";
import type { Message, Ports, Proposal, ProposalState, Reminder } from "./ports.ts";
import { subjectOf } from "./proposal.ts";

/** People that one reminder names; of larger groups the group is named. */
const MOST_PEOPLE = 10;
const ANY: readonly ProposalState[] = ["pending", "approved", "dismissed", "expired", "running", "succeeded", "failed", "unknown", "refused"];

/**
 * Reminds those who may approve and have not, in the thread: after `afterMinutes`, then after twice as long, and so on until somebody has decided or the
 * proposal expires. An execution of its own, so that the triage waits for its answer under one callback and no decision can fall between two of them. What
 * counts is the store: it is asked right before each message. One message a reminder, however often the step is repeated.
 */
export async function remind(context: Context, { proposal, place, afterMinutes, lastsMinutes }: Reminder): Promise<TriageResult> {
  const { durable, ports, catalogue } = context;
  for (let number = 1, pause = afterMinutes, passed = afterMinutes; passed < lastsMinutes; number += 1, pause *= 2, passed += pause) {
    await durable.wait(`wait-${number}`, pause * 60);
    const open = await durable
      .step(`remind-${number}`, () => once(number))
      .catch((error: unknown) => {
        // one that fails does not keep the next from being tried
        ports.log("warn", "a reminder could not be posted", { proposal, number, problem: (error as Error).message });
        return true;
      });
    if (!open) return { outcome: "decided" };
  }
  return { outcome: "reminded" };

  /** False if nobody has to decide any more. */
  async function once(number: number): Promise<boolean> {
    const asked = await ports.store.proposal(proposal);
    if (asked?.state !== "pending" || Date.parse(asked.expiresAt) <= ports.now().getTime()) return false;
    const fix = fixOf(catalogue, asked);
    const { people, anyone, needed } = await notDecided(ports, asked, fix);
    await ports.chat.post(`${proposal}/reminder-${number}`, place, message(asked, fix.file.title, people, anyone, needed));
    const draft = auditDraft(ports, `reminded/${proposal}/${number}`, SYSTEM, { proposal, number, people });
    await ports.store.transition(proposal, ANY, { reminders: number }, draft);
    return true;
  }
}

/** Who may approve at this moment and has not decided. Groups are looked up; one that is large, or cannot be looked up, is named as a group. */
async function notDecided(ports: Ports, proposal: Proposal, fix: Fix): Promise<{ people: readonly string[]; anyone: boolean; needed: number }> {
  const { requester } = proposal;
  const allowed = await terms(await ports.config(), subjectOf(proposal, fix), (group) => ports.members(group), ports.now());
  // who cannot decide now (a freeze window) is not called for nothing
  if (!allowed.ok) return { people: [], anyone: false, needed: 1 };
  const decided = new Set(proposal.decisions.map(({ actor }) => actor.id));
  const people = new Set<string>();
  for (const id of allowed.approvers) {
    if (id === "*" || id === "cli" || decided.has(id)) continue;
    const members = id.startsWith("S") ? await ports.members(id).catch(() => undefined) : [id];
    if (members === undefined || people.size + members.length > MOST_PEOPLE) people.add(id);
    else for (const member of members) if (!decided.has(member) && (member !== requester.id || allowed.approvers.includes(member))) people.add(member);
  }
  return { people: [...people], anyone: allowed.approvers.includes("*"), needed: allowed.approvalsNeeded };
}

const message = (proposal: Proposal, title: string, people: readonly string[], anyone: boolean, needed: number): Message => {
  const approvals = new Set(proposal.decisions.filter(({ decision }) => decision === "approve").map(({ actor }) => actor.id)).size;
  return {
    template: "reminder",
    data: {
      target: proposal.target,
      title,
      kind: proposal.kind ?? "fix",
      people,
      anyone,
      nobody: people.length === 0 && !anyone,
      approvals,
      needed,
      several: needed > 1,
      expiresAt: Math.floor(Date.parse(proposal.expiresAt) / 1000),
      expires: proposal.expiresAt,
    },
  };
};
