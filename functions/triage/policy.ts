import picomatch from "picomatch";
import { canonical, sha256 } from "./audit.ts";
import { type AllowStatement, type Config, milliseconds, type Statement } from "./config.ts";
import { type Freeze, freezeAt, wallClock, windowWords } from "./freeze.ts";
import type { Actor, Decision } from "./ports.ts";

/** What is to be approved. */
export interface Subject {
  readonly cluster: string;
  readonly target: string;
  readonly fix: string;
  readonly requester: Actor;
  /** Of the fix. */
  readonly risk: "low" | "disruptive";
}

/** May it be approved at all, by how many, for how long. */
export type Terms =
  | {
      readonly ok: true;
      /** Distinct people. */
      readonly approvalsNeeded: number;
      readonly expiresMinutes: number;
      /** Until the first reminder; nobody is reminded if absent. */
      readonly remindMinutes?: number;
      /** Whom to ask: people and groups; "*" is everybody. */
      readonly approvers: readonly string[];
      /** sha256 of the statements that are about it, whoever asks: another one, and what was approved is no longer what was agreed. */
      readonly policy: string;
      /** Nobody may approve it now but by breaking the glass: `approvers` are those who may. */
      readonly breakGlass: boolean;
    }
  | Refusal;

/** May this person approve. */
export type Ruling =
  | {
      readonly ok: true;
      readonly statement: string;
      /** Distinct people, the same for everybody who may approve; 1 for whoever breaks the glass. */
      readonly approvalsNeeded: number;
      /** Allowed by breakGlass alone: it needs a reason, is told openly, flagged, and reviewed. */
      readonly breakGlass: boolean;
    }
  | Refusal;

export interface Refusal {
  readonly ok: false;
  /** The statement that decided, or "default". */
  readonly statement: string;
  /** A sentence for the person, without its full stop. */
  readonly reason: string;
}

/**
 * Members of a user group, resolved afresh at each question. Throws if they cannot be told: then nobody is let in, or out of a deny, by that group. What may pass
 * (`retryable`) is passed on instead, to be asked again.
 */
export type Members = (group: string) => Promise<readonly string[]>;

/** What one statement says to one person at one moment, and why. */
export interface Judgement {
  readonly statement: string;
  readonly effect: Statement["effect"];
  readonly says:
    | "not-about-it"
    | "not-in-force"
    | "does-not-name-you"
    | "denies"
    | "allows"
    | "allows-by-break-glass"
    | "frozen"
    | "second-person"
    | "group-unknown";
  /** A sentence for people, without its full stop. */
  readonly why: string;
}

/** A ruling with what led to it: one judgement for each statement, in the order of the file. */
export interface Explanation {
  readonly ruling: Ruling;
  readonly judgements: readonly Judgement[];
}

/** Can anybody approve this at `at`? Asked before buttons are drawn. */
export async function terms(config: Config, subject: Subject, members: Members, at: Date): Promise<Terms> {
  const readings = await readAll(config, subject, new Groups(members), at);
  const about = byId(readings.filter((reading) => reading.about));
  const ban = about.find((reading) => denies(reading) && reading.statement.approvers.includes("*"));
  if (ban !== undefined) {
    const { id } = ban.statement;
    if (ban.problem !== undefined) return refusal(id, `the policy statement "${id}" may forbid this fix here, and that cannot be ruled out: ${ban.problem}`);
    return refusal(id, `the policy statement "${id}" forbids this fix here${duration(ban.freeze)}`);
  }
  const allowing = about.filter(isAllow);
  if (allowing.length === 0) return refusal("default", `no policy statement allows anyone to approve this fix here${unresolved(readings)}`);
  const open = allowing.filter(({ freeze }) => freeze === undefined);
  // who asked is not named as somebody to ask, unless that person may really do it
  const people = open.flatMap(({ statement }) => statement.approvers.filter((id) => statement.selfApproval || id !== subject.requester.id));
  const glass = allowing.flatMap(({ statement }) => statement.breakGlass?.who ?? []);
  if (people.length === 0 && glass.length === 0) {
    const [first] = allowing as [Reading<AllowStatement>];
    const { id } = first.statement;
    if (open.length === 0) return refusal(id, frozen(first));
    return refusal(id, `the policy statement "${id}" names nobody but the person who asked, and wants a second person to approve`);
  }
  const breakGlass = people.length === 0;
  const statements = readings
    .filter(counts)
    .filter(isAllow)
    .map(({ statement }) => statement);
  const reminders = statements.flatMap(({ remind }) => (remind === undefined ? [] : [minutes(remind)]));
  return {
    ok: true,
    approvalsNeeded: breakGlass ? 1 : approvalsNeeded(statements),
    expiresMinutes: Math.min(...statements.map(({ expires }) => minutes(expires))),
    ...(reminders.length === 0 ? {} : { remindMinutes: Math.min(...reminders) }),
    approvers: [...new Set(breakGlass ? glass : people)],
    policy: fingerprint(config, subject),
    breakGlass,
  };
}

/** May `actor` approve this at `at`? See {@link explain}. */
export async function mayApprove(config: Config, subject: Subject, actor: Actor, members: Members, at: Date): Promise<Ruling> {
  return (await explain(config, subject, actor, members, at)).ruling;
}

/**
 * May `actor` approve this at `at`, and why? An explicit deny wins, then an allow, then a broken glass, else no. The order of the statements does not matter:
 * of several that say the same, the first by id is named; of several that allow, the strictest.
 */
export async function explain(config: Config, subject: Subject, actor: Actor, members: Members, at: Date): Promise<Explanation> {
  const groups = new Groups(members);
  const readings = await readAll(config, subject, groups, at);
  const judgements: Judgement[] = [];
  for (const reading of readings) judgements.push(await judge(reading, subject, actor, groups));
  return { ruling: rule(readings, judgements), judgements };
}

/**
 * Places to be taken before it runs, one for each limit of the statements that allow it, or may: all of them, or it does not run. They hold for a broken glass
 * too, and at all times; `_at` is there because the policy is never asked without a moment.
 */
export async function limits(config: Config, subject: Subject, members: Members, _at: Date): Promise<readonly Limit[]> {
  const found = new Map<string, Limit>();
  const { cluster } = subject;
  const groups = new Groups(members);
  for (const statement of config.policy.toSorted((a, b) => compare(a.id, b.id))) {
    if (statement.effect === "deny") continue;
    const { why, problem } = await concerns(statement, subject, groups);
    if (why !== "" && problem === undefined) continue;
    const { id, maxNodes, rate, oneAtATime } = statement;
    const add = (limit: Limit) => found.has(limit.scope) || found.set(limit.scope, limit);
    if (oneAtATime === "cluster")
      add({ statement: id, scope: `running/${cluster}`, holder: "proposal", most: 1, words: `one fix at a time in ${cluster} (statement "${id}")` });
    if (maxNodes !== undefined) {
      const words = `at most ${plural(maxNodes.most, "node")} of ${cluster} within ${maxNodes.per} (statement "${id}")`;
      add({ statement: id, scope: `nodes/${id}/${cluster}`, holder: "target", most: maxNodes.most, keepMs: milliseconds(maxNodes.per), words });
    }
    if (rate !== undefined) {
      const words = `at most ${plural(rate.most, "fix", "fixes")} in ${cluster} within ${rate.per} (statement "${id}")`;
      add({ statement: id, scope: `rate/${id}/${cluster}`, holder: "proposal", most: rate.most, keepMs: milliseconds(rate.per), words });
    }
  }
  return [...found.values()];
}

/** A number of places that fixes take before they run. */
export interface Limit {
  /** The statement that asks for it. */
  readonly statement: string;
  /** Which places: "running/prod-eu", "nodes/<statement>/prod-eu", "rate/<statement>/prod-eu". */
  readonly scope: string;
  /** What takes a place: the proposal's id, or the node's name. */
  readonly holder: "proposal" | "target";
  readonly most: number;
  /** Milliseconds for which a place stays taken; absent: until it is released. */
  readonly keepMs?: number;
  /** For people: 'at most 3 nodes of prod-eu within 1h (statement "x")'. */
  readonly words: string;
}

/**
 * May `actor` say that a fix was reviewed which somebody approved by breaking the glass? The statements' reviewers may, or their approvers where no reviewers are
 * named; never one of those who broke it. Statements without breakGlass count only if none has it any more.
 * @param broke ids of those who broke the glass
 */
export async function mayReview(
  config: Config,
  subject: Subject,
  broke: readonly string[],
  actor: Actor,
  members: Members,
): Promise<{ readonly ok: true; readonly statement: string } | Refusal> {
  if (broke.includes(actor.id)) return refusal("default", "you broke the glass yourself; somebody else has to review it");
  const groups = new Groups(members);
  const about: AllowStatement[] = [];
  for (const statement of config.policy) if (statement.effect === "allow" && (await concerns(statement, subject, groups)).why === "") about.push(statement);
  const broken = about.filter(({ breakGlass }) => breakGlass !== undefined);
  const doubts: string[] = [];
  for (const { id, approvers, breakGlass } of (broken.length > 0 ? broken : about).toSorted((a, b) => compare(a.id, b.id))) {
    const named = await groups.name(breakGlass?.reviewers ?? approvers, actor);
    if (named.is === "yes") return { ok: true, statement: id };
    if (named.is === "unknown") doubts.push(`${named.problem} (statement "${id}")`);
  }
  if (doubts.length > 0) return refusal("default", `it is not known whether you may review it: ${doubts.join("; ")}. Try again later`);
  return refusal("default", "no policy statement names you as a reviewer of this fix here");
}

/** Are there enough approvals by distinct people? */
export const enough = (decisions: readonly Decision[], needed: number): boolean =>
  new Set(decisions.filter((decision) => decision.decision === "approve").map((decision) => decision.actor.id)).size >= needed;

const samePerson = (a: Actor, b: Actor): boolean => a.id === b.id;

/** A statement held against a subject and a moment. */
interface Reading<S extends Statement = Statement> {
  readonly statement: S;
  readonly about: boolean;
  /** Why it is not about it, or what could not be told. */
  readonly why: string;
  /** It is one of its freeze windows' time. */
  readonly freeze: Freeze | undefined;
  /** A group of requesters that could not be resolved. */
  readonly problem: string | undefined;
}

const isAllow = (reading: Reading): reading is Reading<AllowStatement> => reading.statement.effect === "allow";
/** Sets the terms: it is about it, or may be. A group that cannot be looked up makes nothing easier. */
const counts = ({ about, problem }: Reading): boolean => about || problem !== undefined;
/** In force: a deny with freeze windows denies within them. */
const denies = ({ statement, freeze }: Reading): boolean => statement.effect === "deny" && (statement.freezeWindows === undefined || freeze !== undefined);

async function readAll(config: Config, subject: Subject, groups: Groups, at: Date): Promise<Reading[]> {
  const readings: Reading[] = [];
  for (const statement of config.policy) {
    const { why, problem } = await concerns(statement, subject, groups);
    // a deny that may be about it is about it
    const about = why === "" || (problem !== undefined && statement.effect === "deny");
    readings.push({ statement, about, why, problem, freeze: freezeAt(statement.freezeWindows ?? [], at) });
  }
  return readings;
}

/** Why a statement is not about a subject; "" if it is. */
async function concerns(statement: Statement, subject: Subject, groups: Groups): Promise<{ why: string; problem?: string }> {
  const elsewhere = mismatch(statement, subject);
  if (elsewhere !== "") return { why: elsewhere };
  const named = await groups.name(statement.requesters, subject.requester);
  if (named.is === "yes") return { why: "" };
  if (named.is === "unknown")
    return { why: `it is not known whether it is about requests of ${subject.requester.id}: ${named.problem}`, problem: named.problem };
  return { why: `requesters (${statement.requesters.join(", ")}) do not include ${subject.requester.id}` };
}

/** Where a statement is about something else, whoever asks; "" if nowhere. */
function mismatch({ clusters, targets, fixes, risks }: Statement, { cluster, target, fix, risk }: Subject): string {
  const differs = (key: string, patterns: readonly string[], name: string): string =>
    picomatch.isMatch(name, [...patterns]) ? "" : `${key} (${patterns.join(", ")}) do not include ${name}`;
  const first = differs("clusters", clusters, cluster) || differs("targets", targets, target) || differs("fixes", fixes, fix);
  return first || (risks.includes(risk) ? "" : `risks (${risks.join(", ")}) do not include ${risk}`);
}

async function judge(reading: Reading, subject: Subject, actor: Actor, groups: Groups): Promise<Judgement> {
  const { statement, freeze } = reading;
  const { id } = statement;
  const as = (says: Judgement["says"], why: string): Judgement => ({ statement: id, effect: statement.effect, says, why });
  if (!reading.about) return reading.problem === undefined ? as("not-about-it", reading.why) : as("group-unknown", reading.why);
  const named = await groups.name(statement.approvers, actor);
  if (!isAllow(reading)) {
    if (!denies(reading)) return as("not-in-force", `it denies only in its freeze windows (${(statement.freezeWindows ?? []).map(windowWords).join("; ")})`);
    if (named.is === "no") return as("does-not-name-you", `approvers (${statement.approvers.join(", ")}) do not include you`);
    const doubt = named.is === "unknown" ? named.problem : reading.problem;
    if (doubt !== undefined) return as("denies", `the policy statement "${id}" may deny it to you, and that cannot be ruled out: ${doubt}`);
    return as("denies", `the policy statement "${id}" denies it to you${duration(freeze)}`);
  }
  const self = samePerson(actor, subject.requester) && !reading.statement.selfApproval;
  if (named.is === "yes" && !self && freeze === undefined) return as("allows", "it names you as an approver");
  const glass = await groups.name(reading.statement.breakGlass?.who ?? [], actor);
  const obstacle = obstacleOf();
  return glass.is === "yes" ? as("allows-by-break-glass", `you may break the glass; without it: ${obstacle.why}`) : obstacle;

  function obstacleOf(): Judgement {
    if (named.is === "yes" && freeze !== undefined) return as("frozen", frozen(reading));
    if (named.is === "yes") return as("second-person", `you asked for this triage, and the policy statement "${id}" wants a second person to approve`);
    const doubts = [...new Set([named, glass].flatMap((one) => (one.is === "unknown" ? [one.problem] : [])))];
    if (doubts.length > 0) return as("group-unknown", `it is not known whether you may approve by the policy statement "${id}": ${doubts.join("; ")}`);
    return as("does-not-name-you", `approvers (${statement.approvers.join(", ")}) do not include you`);
  }
}

function rule(readings: readonly Reading[], judgements: readonly Judgement[]): Ruling {
  const first = (says: Judgement["says"]): Judgement | undefined =>
    judgements.filter((one) => one.says === says).toSorted((a, b) => compare(a.statement, b.statement))[0];
  const denied = first("denies");
  if (denied !== undefined) return refusal(denied.statement, denied.why);
  const statements = byId(readings.filter(counts))
    .filter(isAllow)
    .map(({ statement }) => statement);
  const allowing = statements.filter(({ id }) => judgements.some((one) => one.statement === id && one.says === "allows"));
  const strictest = allowing.toSorted((a, b) => b.approvalsNeeded - a.approvalsNeeded)[0];
  if (strictest !== undefined) return { ok: true, statement: strictest.id, approvalsNeeded: approvalsNeeded(statements), breakGlass: false };
  const glass = first("allows-by-break-glass");
  if (glass !== undefined) return { ok: true, statement: glass.statement, approvalsNeeded: 1, breakGlass: true };
  for (const says of ["frozen", "second-person", "group-unknown"] as const) {
    const obstacle = first(says);
    if (obstacle !== undefined) return refusal(obstacle.statement, says === "group-unknown" ? `${obstacle.why}. Try again later` : obstacle.why);
  }
  return refusal("default", "no policy statement names you as an approver of this fix here");
}

/** User groups, each resolved once for one question. */
class Groups {
  readonly #members: Members;
  readonly #known = new Map<string, Promise<readonly string[] | { readonly problem: string }>>();

  constructor(members: Members) {
    this.#members = members;
  }

  /** Is a person named, by id, by a group, or as everybody? Unknown where a group that may hold the person could not be resolved. */
  async name(people: readonly string[], actor: Actor): Promise<{ is: "yes" } | { is: "no" } | { is: "unknown"; problem: string }> {
    if (people.includes("*") || people.includes(actor.id)) return { is: "yes" };
    const problems: string[] = [];
    for (const group of people.filter((person) => person.startsWith("S"))) {
      const found = await this.#resolve(group);
      if ("problem" in found) problems.push(found.problem);
      else if (found.includes(actor.id)) return { is: "yes" };
    }
    return problems.length === 0 ? { is: "no" } : { is: "unknown", problem: problems.join("; ") };
  }

  #resolve(group: string): Promise<readonly string[] | { readonly problem: string }> {
    let asked = this.#known.get(group);
    if (asked === undefined) {
      // a function of its own: also what throws at once becomes a problem
      asked = (async () => this.#members(group))().catch((error: unknown) => {
        if ((error as { retryable?: boolean }).retryable === true) throw error;
        return { problem: `the members of the user group ${group} could not be looked up (${(error as Error).message})` };
      });
      this.#known.set(group, asked);
    }
    return asked;
  }
}

/** sha256 of the statements that are about a subject, whoever asks: it needs no group, and so no answer of the chat, to be the same again. */
export function fingerprint(config: Config, subject: Subject): string {
  const about = config.policy.filter((statement) => mismatch(statement, subject) === "");
  return sha256(canonical(about.toSorted((a, b) => compare(a.id, b.id))));
}

const refusal = (statement: string, reason: string): Refusal => ({ ok: false, statement, reason });
/** The strictest of them. A freeze does not make it easier: a statement counts also while it does not allow. */
const approvalsNeeded = (statements: readonly AllowStatement[]): number => Math.max(...statements.map((statement) => statement.approvalsNeeded));
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const byId = (readings: readonly Reading[]): Reading[] => readings.toSorted((a, b) => compare(a.statement.id, b.statement.id));
const minutes = (text: string): number => milliseconds(text) / 60_000;
const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;

/** Why a statement that would allow does not: it is frozen. */
const frozen = ({ statement, freeze }: Reading): string => `the policy statement "${statement.id}" does not allow it${duration(freeze)}`;

function duration(freeze: Freeze | undefined): string {
  if (freeze === undefined) return "";
  const { timeZone } = freeze.window;
  return ` in its freeze window ${windowWords(freeze.window)}; it is frozen until ${wallClock(freeze.until, timeZone)} (${timeZone})`;
}

/** What could not be told of who asked, where a statement could have allowed it. */
function unresolved(readings: readonly Reading[]): string {
  const problems = new Set(readings.flatMap((reading) => (isAllow(reading) && reading.problem !== undefined ? [reading.problem] : [])));
  return problems.size === 0 ? "" : `, as far as can be told: ${[...problems].join("; ")}`;
}
