import picomatch from "picomatch";
import type { Config, Statement } from "./config.ts";
import type { Actor, Decision } from "./ports.ts";

/** What is to be approved. */
export interface Subject {
  readonly cluster: string;
  readonly target: string;
  readonly fix: string;
  readonly requester: Actor;
}

/** May it be approved at all, by how many, for how long. */
export type Terms = { readonly ok: true; readonly approvalsNeeded: number; readonly expiresMinutes: number; readonly approvers: readonly string[] } | Refusal;
/** May this person approve. */
export type Ruling = { readonly ok: true; readonly statement: string; readonly approvalsNeeded: number } | Refusal;
export interface Refusal {
  readonly ok: false;
  /** The statement that decided, or "default". */
  readonly statement: string;
  /** A sentence for the person. */
  readonly reason: string;
}

/** Groups are resolved afresh each time; a group that cannot be resolved has no members. */
export type Members = (group: string) => Promise<readonly string[]>;

/** Can anybody approve this? Asked before buttons are drawn. */
export async function terms(config: Config, subject: Subject, members: Members): Promise<Terms> {
  const statements = await covering(config, subject, members);
  const allowing = statements.filter((statement) => statement.effect === "allow");
  const ban = statements.find((statement) => statement.effect === "deny" && statement.approvers.includes("*"));
  if (ban !== undefined) return { ok: false, statement: ban.id, reason: `the policy statement "${ban.id}" forbids this fix here` };
  if (allowing.length === 0) return { ok: false, statement: "default", reason: "no policy statement allows anyone to approve this fix here" };
  return {
    ok: true,
    approvalsNeeded: Math.max(...allowing.map((statement) => statement.approvalsNeeded)),
    expiresMinutes: Math.min(...allowing.map((statement) => statement.expiresMinutes)),
    // who asked is not named as somebody to ask, unless that person may really do it
    approvers: [...new Set(allowing.flatMap((statement) => statement.approvers.filter((id) => statement.selfApproval || id !== subject.requester.id)))],
  };
}

/** May `actor` approve this? An explicit deny wins, then an allow, else no. The requester needs a statement with selfApproval. */
export async function mayApprove(config: Config, subject: Subject, actor: Actor, members: Members): Promise<Ruling> {
  const statements = await covering(config, subject, members);
  let self: Statement | undefined;
  let allowed: Statement | undefined;
  for (const statement of statements) {
    if (!(await includes(statement.approvers, actor, members))) continue;
    if (statement.effect === "deny") return { ok: false, statement: statement.id, reason: `the policy statement "${statement.id}" denies it to you` };
    if (samePerson(actor, subject.requester) && !statement.selfApproval) self ??= statement;
    else allowed ??= statement;
  }
  if (allowed !== undefined) return { ok: true, statement: allowed.id, approvalsNeeded: allowed.approvalsNeeded };
  if (self !== undefined) {
    return { ok: false, statement: self.id, reason: `you asked for this triage, and the policy statement "${self.id}" wants a second person to approve` };
  }
  return { ok: false, statement: "default", reason: "no policy statement names you as an approver of this fix here" };
}

/** Are there enough approvals by distinct people? */
export const enough = (decisions: readonly Decision[], needed: number): boolean =>
  new Set(decisions.filter((decision) => decision.decision === "approve").map((decision) => decision.actor.id)).size >= needed;

export const samePerson = (a: Actor, b: Actor): boolean => a.id === b.id;

/** The statements that are about this, in order. */
async function covering(config: Config, subject: Subject, members: Members): Promise<Statement[]> {
  const found: Statement[] = [];
  for (const statement of config.policy) {
    const about =
      picomatch.isMatch(subject.cluster, statement.clusters) &&
      picomatch.isMatch(subject.target, statement.targets) &&
      picomatch.isMatch(subject.fix, statement.fixes);
    if (about && (await includes(statement.requesters, subject.requester, members))) found.push(statement);
  }
  return found;
}

async function includes(people: readonly string[], actor: Actor, members: Members): Promise<boolean> {
  if (people.includes("*") || people.includes(actor.id)) return true;
  for (const group of people.filter((person) => person.startsWith("S"))) if ((await members(group)).includes(actor.id)) return true;
  return false;
}
