import type { Capture, Output } from "../facts/capture.ts";
import type { Command } from "../facts/fact.ts";
import type { Diagram } from "../rules/diagnosis.ts";
import type { Config } from "./config.ts";

/**
 * Everything the triage needs from the outside, as types only: the durable engine, transports to nodes, the store, the chat, the clock.
 * Adapters import this file and nothing else of ours; the workflow imports this file and no adapter.
 */

// ---- durable execution -------------------------------------------------------------------------------------------------------------------

/** The part of a durable execution that a workflow may use. Time, randomness and I/O happen inside steps only; names are unique per execution. */
export interface Durable {
  /**
   * Runs once to completion; its result (JSON, < 256 KB) is remembered. A crash inside runs it again, so it must be idempotent.
   * Errors with `retryable: true` are retried (5 attempts, 1 s … 30 s with jitter); any other error fails the step at once.
   */
  step<T>(name: string, run: () => Promise<T>): Promise<T>;
  /**
   * Runs at most once, never again: not on error, not after a crash. Throws {@link Interrupted} if an earlier run was cut off, so its outcome is unknown;
   * other errors are passed on with their name and message.
   */
  once<T>(name: string, run: () => Promise<T>): Promise<T>;
  /** Suspends (costs nothing) for at least `seconds`. */
  wait(name: string, seconds: number): Promise<void>;
  /**
   * Calls `check` until it answers `done`, suspending `afterSeconds` (≥ 1) between calls. `check` may itself block a few seconds (long poll).
   * At most `maxChecks` calls, then throws a TimeoutError. Counts 1 + checks towards the 3,000 operations of an execution.
   */
  poll<T>(name: string, maxChecks: number, check: () => Promise<Progress<T>>): Promise<T>;
  /** Hands out a callback id (`submit` must be idempotent) and suspends until someone answers it or `timeoutSeconds` are over. */
  callback<T>(name: string, timeoutSeconds: number, submit: (callbackId: string) => Promise<void>): Promise<Answer<T>>;
  /** Runs the branches concurrently; one that throws does not stop the others. Results in order. */
  all<T>(name: string, branches: readonly { name: string; run: (durable: Durable) => Promise<T> }[], concurrency: number): Promise<readonly Settled<T>[]>;
}
export type Progress<T> = { readonly done: true; readonly value: T } | { readonly done: false; readonly afterSeconds: number };
export type Answer<T> = { readonly kind: "answered"; readonly value: T } | { readonly kind: "expired" };
export type Settled<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: { readonly name: string; readonly message: string } };

/** Name of the error that {@link Durable.once} throws when an earlier run was cut off. Compare `error.name`: `instanceof` does not survive a replay. */
export const INTERRUPTED = "Interrupted";

/** Starts durable executions and answers their callbacks. */
export interface Work {
  /** Same name and payload: the same execution, started once. `name`: [A-Za-z0-9_-]{1,64}. */
  start(name: string, event: WorkEvent): Promise<void>;
  /** Answers a callback. False if it is closed already (answered or expired). */
  answer(callbackId: string, value: unknown): Promise<boolean>;
}

/** What the acknowledging entry points hand over to the worker. Plain JSON. */
export type WorkEvent =
  | { readonly kind: "triage"; readonly request: TriageRequest }
  | { readonly kind: "paste"; readonly request: PasteRequest }
  | { readonly kind: "click"; readonly click: Click }
  | { readonly kind: "page"; readonly page: Page }
  | { readonly kind: "report"; readonly request: ReportRequest }
  | { readonly kind: "command"; readonly request: CommandRequest }
  | { readonly kind: "ask"; readonly request: AskRequest }
  | { readonly kind: "message-triage"; readonly request: MessageTriageRequest }
  | { readonly kind: "home"; readonly request: HomeRequest }
  | { readonly kind: "feedback"; readonly request: FeedbackRequest }
  | { readonly kind: "answer-page"; readonly answer: PageAnswer }
  | { readonly kind: "escalate"; readonly escalation: Escalation }
  | { readonly kind: "close-page"; readonly closing: PageClosing }
  | { readonly kind: "follow-up"; readonly followUp: FollowUp }
  | { readonly kind: "digest"; readonly digest: DigestRequest }
  | { readonly kind: "fleet"; readonly request: FleetRequest }
  | { readonly kind: "remind"; readonly reminder: Reminder };

/** What was found is to be told to the monitoring system whose page asked for the triage. */
export interface PageAnswer {
  readonly incident: string;
  /** "found": after the diagnosis; "ended": after what was done about it. */
  readonly stage: "found" | "ended";
  /** Of the incident's alerts this one alone: it joined later. */
  readonly only?: { readonly source: string; readonly key: string };
}

/** Somebody else is to be called if nobody takes an alert on in time. */
export interface Escalation {
  /** Of the alert. */
  readonly source: string;
  readonly key: string;
  readonly title: string;
  readonly severity: PageAlert["severity"];
  /** Where it is told: the alert's thread. */
  readonly place: Place;
  readonly afterMinutes: number;
  readonly by: "pagerduty" | "dm";
  /** Of "dm": whom; a person's or a user group's id. Else who is on call. */
  readonly to?: string;
  readonly onCall?: OnCallSource;
  readonly url?: string;
}

/** Who is on call: a schedule of a monitoring system, or a person or user group of the chat. */
export interface OnCallSource {
  readonly by: "pagerduty" | "opsgenie" | "slack";
  /** Id of the schedule; of "slack" a person's or a user group's id. */
  readonly schedule: string;
}

/** An alert is over: the threads of its incidents are closed with a timeline. */
export interface PageClosing {
  readonly source: string;
  readonly key: string;
  readonly title: string;
  /** When it was resolved, by the sender's clock; ISO. */
  readonly at: string;
}

/** A node is looked at again, without being asked, some time after its incident ended. */
export interface FollowUp {
  readonly incident: string;
  /** As it was reached. */
  readonly target: Target;
  /** The cause that is looked for. */
  readonly rule: string;
  /** "fixed": the fix was verified. "open": the cause was left as it was, or the fix did not help. */
  readonly after: "fixed" | "open";
  /** Minutes after the incident ended, rising. */
  readonly minutes: readonly number[];
  /** Other nodes of the pool that are looked at as well where the cause is there. */
  readonly spread: number;
}

/** Open incidents are to be summed up, once a day. Without a day: if it is time by now. */
export interface DigestRequest {
  /** "2026-11-21", in the time zone of the configuration. */
  readonly day?: string;
}

/** Those who may approve a proposal are to be reminded, again and again, until they have decided or it expires. */
export interface Reminder {
  readonly proposal: string;
  /** The incident's thread. */
  readonly place: Place;
  /** Minutes until the first reminder; the next one comes after twice as long, and so on. */
  readonly afterMinutes: number;
  /** Minutes until the proposal expires. */
  readonly lastsMinutes: number;
}

/** Someone (or a page) wants a target examined. */
export interface TriageRequest {
  /** Idempotency key of the trigger and id of the incident: [A-Za-z0-9_-]{1,64}. */
  readonly incident: string;
  readonly target: string;
  readonly requester: Actor;
  /** Where to answer; absent from the CLI. */
  readonly place: Place | undefined;
  /** Names of healthy nodes to hold it against. */
  readonly against?: readonly string[];
  /** It is about a pod or a service, which `target` names in words: the nodes come from the cluster. */
  readonly workload?: WorkloadName;
  /** What a page said; hostile. */
  readonly because?: string;
}

/** Somebody wants many nodes examined, or something of what came of it. */
export interface FleetRequest {
  /** Idempotency key of the trigger, and id of the incident if nodes are examined: [A-Za-z0-9_-]{1,64}. */
  readonly incident: string;
  readonly requester: Actor;
  readonly place: Place;
  readonly ask: FleetAsk;
}

/** What of a fleet. `fleet`: id of the incident in which its nodes were examined. `rule`: id of a cause. Hostile, as typed or as a button says. */
export type FleetAsk =
  /** `confirmed`: at most so many nodes, whoever asks has agreed to that. */
  | { readonly kind: "examine"; readonly terms: readonly NodeTerm[]; readonly confirmed?: number }
  /** The diagnosis of one node, into the thread. `node`: "cluster/name". */
  | { readonly kind: "show"; readonly fleet: string; readonly node: string }
  /** One node with this cause first, and the others after it. */
  | { readonly kind: "fix"; readonly fleet: string; readonly rule: string }
  /** The others are to be fixed, or not. `hash`: of what was shown. */
  | { readonly kind: "approve" | "dismiss"; readonly fleet: string; readonly rule: string; readonly hash: string }
  /** Ours, to ourselves: runs the approved proposal of one node, and answers whoever waits. */
  | { readonly kind: "fix-node"; readonly fleet: string; readonly proposal: string; readonly callback: string };

/** Which nodes. Names are added up; of these, or of all nodes, those count that have all the labels. */
export type NodeTerm =
  | { readonly by: "all" }
  /** "*" stands for any letters, "cluster/" may stand before it. */
  | { readonly by: "name"; readonly name: string }
  /** A tag or a label of the cloud or the cluster; `pool` and `cluster` are those of netcheck.yaml, too. */
  | { readonly by: "label"; readonly name: string; readonly value: string };

/** Somebody wants the timeline of an incident. */
export interface ReportRequest {
  /** Idempotency key of the trigger, and name of the execution: [A-Za-z0-9_-]{1,64}. No incident is made. */
  readonly incident: string;
  /** Id of the incident, as it was typed. */
  readonly about: string;
  readonly requester: Actor;
  /** Where it was asked for. */
  readonly place: Place;
}

/**
 * What every text begins with that netcheck itself leaves in a monitoring system: titles, notes, keys for deduplication. A page that begins so is about us, and
 * is not taken: our own note would come back as a page, and so on for ever.
 */
export const PAGE_MARK = "netcheck:";

/** What one delivery of a monitoring system says. All of it is hostile. */
export interface Page {
  /** File in functions/pager/, without .ts. */
  readonly source: string;
  /** The same delivery, repeated, has the same id. */
  readonly id: string;
  /** At most 200; `more` were left out. */
  readonly alerts: readonly PageAlert[];
  readonly more: number;
}
export interface PageAlert {
  /** The alert's identity over its whole life: PagerDuty's incident id, Alertmanager's fingerprint, Opsgenie's alert id, an alarm's ARN. At most 300 characters. */
  readonly key: string;
  readonly status: "firing" | "acknowledged" | "resolved";
  readonly severity: "critical" | "warning" | "info";
  readonly title: string;
  /** Labels, dimensions, custom details: flat, at most 64, of 1,000 characters each. */
  readonly labels: Readonly<Record<string, string>>;
  /** Nodes that it names outright. */
  readonly targets?: readonly string[];
  /** What a note goes to. */
  readonly ref?: string;
  /** Where people see it: http or https. */
  readonly url?: string;
  /** When it became what `status` says, by the sender's clock; ISO. */
  readonly at: string;
}

/** Who asked for something that makes no incident, and where. */
export interface Asker {
  /** Idempotency key of the trigger, and name of the execution: [A-Za-z0-9_-]{1,64}. */
  readonly incident: string;
  readonly requester: Actor;
  /** `channel` may be the id of a person: then the answer is a direct message. */
  readonly place: Place;
}

/** A command that examines no node. What was typed fits its pattern; whether there is such a rule or target is not known yet. */
export type ChatCommand =
  | { readonly name: "status" }
  | { readonly name: "rules" }
  | { readonly name: "history"; readonly target: string }
  /** `minutes`: 1 to 90 days. `reason`: 1 to 300 characters. */
  | { readonly name: "mute"; readonly rule: string; readonly target: string; readonly minutes: number; readonly reason: string }
  | { readonly name: "unmute"; readonly rule: string; readonly target: string };

/** Somebody typed such a command. */
export interface CommandRequest extends Asker {
  /** What was typed, at most 1,000 characters; its first word is the name of a command. */
  readonly text: string;
}

/** Somebody typed `/netcheck` alone: a modal asks which node. */
export interface AskRequest extends Asker {
  /** Opens the modal; good for 3 seconds. */
  readonly triggerId: string | undefined;
}

/** Somebody chose "Triage the node in this message" in the menu of a message. */
export interface MessageTriageRequest extends AskRequest {
  /** Of the message, at most 8,000 characters. Hostile. */
  readonly text: string;
}

/** Somebody opened the app's Home tab. */
export type HomeRequest = Asker;

/** Somebody says whether the cause that an incident names is the right one. */
export interface FeedbackRequest extends Asker {
  /** Id of the incident. */
  readonly about: string;
  readonly vote: Vote;
}
export type Vote = "right" | "wrong";

/** Someone dropped files, or pasted outputs, beside a mention of the bot; or mentioned it and said nothing that it understands. */
export interface PasteRequest {
  /** Idempotency key of the message and id of the incident: [A-Za-z0-9_-]{1,64}. */
  readonly incident: string;
  readonly requester: Actor;
  /** The thread of that message. */
  readonly place: Place;
  /** At most ten. */
  readonly files: readonly SharedFile[];
  /** Pasted outputs as they were typed, without the chat's own markup; "" if there are none. */
  readonly text: string;
  /** Why the one line in `text` is no question, for people: where it is no output either, that is what is told. "" if nothing or more was typed. */
  readonly problem: string;
}

/** A file in the chat. All of it is hostile. */
export interface SharedFile {
  readonly id: string;
  readonly name: string;
  /** Where the bot may fetch it with its token; absent where the chat tells it only when asked. */
  readonly url?: string;
  /** Bytes, as announced. */
  readonly size?: number;
}

/** A person, or "cli". Ids are the chat's. */
export interface Actor {
  readonly id: string;
  /** The workspace where it happened, or the person's own if that is not told. */
  readonly team: string;
  /** The person's own workspace or organisation, where it is another one: somebody from outside, in a channel that two companies share. */
  readonly home?: string;
}

/** A place in a chat. `channel` may be a person's id: what is posted there is a direct message. `responseUrl` reaches the person even where the bot is not a member. */
export interface Place {
  readonly channel: string;
  readonly thread?: string;
  /** The message that `thread` names has no answer yet: a whisper stands beside it, since Slack shows none in a thread that nobody has begun. */
  readonly fresh?: true;
  readonly responseUrl?: string;
}

/** A button was clicked. */
export interface Click {
  /** Idempotency key of the click. */
  readonly id: string;
  readonly action: "preview" | "approve" | "confirm" | "dismiss" | "again" | "reviewed";
  readonly incident: string;
  /** The proposal that the button was drawn for; absent on buttons that are about the incident. */
  readonly proposal: string | undefined;
  readonly actor: Actor;
  readonly place: Place;
  /** Opens a modal; good for 3 seconds. */
  readonly triggerId: string | undefined;
  /** Of "confirm": the hash of the proposal as the modal showed it, and what was typed into it. Hostile. */
  readonly hash?: string;
  readonly typed?: string;
  readonly reason?: string;
}

// ---- nodes -------------------------------------------------------------------------------------------------------------------------------

/** A way to a node. Knows nothing of facts, rules or chats. */
export interface Transport {
  readonly name: string;
  /**
   * Starts a job on a target and returns a handle for `poll`. Not idempotent on its own: the workflow calls it at most once per job.
   * Throws {@link TransportError} if the job surely did not start; any other error means "unknown".
   */
  start(target: Target, job: Job): Promise<string>;
  /** Asks how a job is doing; may block up to `waitMs`. Throws TransportError (`retryable`) when it cannot look. */
  poll(target: Target, handle: string, waitMs: number): Promise<JobState>;
  /**
   * The handle of a job that was started earlier under this id, or undefined if the node (or service) surely knows nothing of it.
   * @param once one look is enough, as for a collection: no harm is done if a job that has only just begun is missed and started again
   */
  find(target: Target, jobId: string, once?: boolean): Promise<string | undefined>;
  /**
   * Clears away what a job left behind where it ran (a pod). Called when the result of {@link poll} is safe, for any end; idempotent. Throws TransportError.
   * Absent where nothing is left behind. What is never released has an expiry of its own.
   */
  release?(target: Target, handle: string): Promise<void>;
  /**
   * Stops a job that nobody waits for any more, if it still runs. For collections only: a fix that is stopped in the middle is worse than one that is late.
   * Throws TransportError. Absent where a job ends by itself soon enough.
   */
  cancel?(target: Target, handle: string): Promise<void>;
  /** Several targets in one go; absent where each is asked by itself. */
  readonly batches?: Batches;
  /**
   * The nodes of a cluster that the configuration names only by a tag or a label; none if it names none so. Throws TransportError.
   * @param nameTag only those whose tag "Name" is this
   * @param labels only those that have all these tags or labels besides; of letters, digits and ". _ : / @ + -"
   */
  discover?(cluster: string, nameTag?: string, labels?: Readonly<Record<string, string>>): Promise<readonly Discovered[]>;
}

/** One read-only job on several targets of one cluster. */
export interface Batches {
  /** Most targets of one batch. */
  readonly size: number;
  /**
   * Starts the job on all targets, unless a job of this id was started before: then its handles. A result per target, in the order of the targets. Throws
   * TransportError if it surely started nowhere; after any other error it may be called again.
   */
  start(targets: readonly Target[], job: Job): Promise<readonly Started[]>;
  /** The ends of jobs, each as soon as it is known and has been read, one at a time; blocks up to `waitMs` while jobs run. What is not told runs still. */
  poll(jobs: readonly BatchJob[], waitMs: number): AsyncIterable<{ readonly job: BatchJob; readonly state: JobState }>;
  /** Stops what still runs of these jobs, which are of one batch. Throws TransportError. */
  cancel(jobs: readonly BatchJob[]): Promise<void>;
}
export interface BatchJob {
  readonly target: Target;
  readonly handle: string;
}
/** `ok: false`: it surely did not start there; why, for people. */
export type Started = { readonly ok: true; readonly handle: string } | { readonly ok: false; readonly reason: string };

/** A node as the transport's own service knows it. All names are what the node or its owner says. */
export interface Discovered {
  /** Goes into {@link Target.address}. */
  readonly address: string;
  /** Host name ("ip-10-0-1-7.eu-central-1.compute.internal"), the name it was registered with, IP address: what people may call it by. Hostile. */
  readonly names: readonly string[];
  /** The cloud's own id of its machine (EC2: "i-…"), as the cluster has it: the same node by another transport. */
  readonly machine?: string;
}

/** A node that a transport reaches. */
export interface Target {
  readonly name: string;
  readonly cluster: string;
  readonly transport: string;
  /** What the transport needs to find it (an instance id, a node name); from the configuration or the transport's own service, never from chat. */
  readonly address: string;
}

/** What to run: a script from the catalogue, by name, with typed parameters. Never free text. */
export interface Job {
  /** [A-Za-z0-9_-]{1,80}; the same id is the same job, for ever. */
  readonly id: string;
  readonly script: Script;
  /** Values were checked against `script.parameters` before. */
  readonly parameters: Readonly<Record<string, string>>;
  /** A random word that frames the output, so that nothing a node prints can pass for our framing. 32 hex digits. */
  readonly nonce: string;
}

/** A constant POSIX sh script of the catalogue: the same text for every run, registered beforehand where the transport wants that. */
export interface Script {
  /** Names the SSM document: "collect-netcheck", "fix-restore-bridge-netfilter". */
  readonly name: string;
  /** Parameters arrive as environment variables NETCHECK_<name>; NETCHECK_nonce and NETCHECK_job are always there. */
  readonly text: string;
  readonly parameters: Readonly<Record<string, ScriptParameter>>;
  /** The script is stopped after this. */
  readonly timeoutSeconds: number;
  /** It changes the node: a fix. Whatever else runs may be kept from writing to the node's file systems. */
  readonly changes?: true;
}
export interface ScriptParameter {
  /** An anchored RE2-safe pattern that every value matches. */
  readonly pattern: string;
  readonly description: string;
}

/** What a collection runs, in order. */
export interface Plan {
  readonly runbook: string;
  readonly commands: readonly Command[];
  /** Limits per command. */
  readonly timeoutSeconds: number;
  readonly maxBytes: number;
  readonly intervalSeconds: number;
  readonly budgetSeconds: number;
  /** Patterns (`sed -E`) of what is blacked out besides the usual. */
  readonly redact?: readonly string[];
  /** The commands look at the network namespace of one pod, which the parameter `uid` names. */
  readonly inPod?: true;
}

/** What a fix runs. */
export interface FixPlan {
  /** "fix-<id>" or "rollback-<id>". */
  readonly name: string;
  readonly parameters: Readonly<Record<string, ScriptParameter>>;
  readonly check: string;
  /** A step that fails does not keep the next ones from being tried; the outcome is "failed" all the same. */
  readonly goOn?: true;
  readonly steps: readonly {
    readonly run: readonly string[];
    readonly each?: readonly string[] | undefined;
    readonly if?: string | undefined;
    readonly unless?: string | undefined;
    readonly stdin?: string | undefined;
  }[];
}

/** How a fix went on the node. */
export interface FixRun {
  /** `refused`: the precondition no longer held, nothing was changed. `unmarked`: no marker could be written, nothing was changed. */
  readonly outcome: "succeeded" | "failed" | "refused" | "unmarked";
  /** True if this run found the marker of an earlier one and only repeats what that one reported. */
  readonly repeated: boolean;
  readonly steps: readonly { readonly command: string; readonly exitCode: number; readonly output: string }[];
}

/** What a collection's answer is read with. `truncated`: the transport could not deliver all of it. */
export interface CaptureAbout {
  readonly nonce: string;
  readonly plan: Plan;
  readonly target: string;
  readonly transport: string;
  readonly startedAt: string;
  readonly truncated: boolean;
}

/** Turns plans into scripts, and what scripts print back into data. */
export interface Scripts {
  collect(plan: Plan): Script;
  fix(plan: FixPlan): Script;
  /** Reads the marker of a fix run. */
  readonly fixStatus: Script;
  /** Throws with a sentence for people if the output holds no frame with this nonce. */
  readCapture(stdout: string, about: CaptureAbout): Capture;
  /** The same of a long answer in pieces, never all of it in memory. What the source throws is passed on. */
  readLongCapture(stdout: AsyncIterable<Uint8Array>, about: CaptureAbout): Promise<Capture>;
  readFix(stdout: string, nonce: string): FixRun;
  /** "none": no run was ever started; "unfinished": it was started and did not report. */
  readFixStatus(stdout: string, nonce: string): "none" | "unfinished" | FixRun["outcome"];
}

export type JobState =
  | { readonly state: "running"; readonly detail: string }
  /** It ended: what it printed. `truncated` if the transport could not deliver all of it. */
  | {
      readonly state: "done";
      readonly exitCode: number;
      readonly stdout: string;
      readonly stderr: string;
      readonly truncated: boolean;
      /** All of an answer that is too long for `stdout`, which then holds only its beginning. Fetched anew with each call. Throws TransportError. */
      readonly whole?: () => AsyncIterable<Uint8Array>;
      /** How it ran, where that is not the usual way ("image's tools: the node has no shell"). For people; at most 40 characters, because captures keep it. */
      readonly note?: string;
      /** From transports that hold captures instead of running scripts (replay). */
      readonly capture?: Capture;
    }
  /** It never ran, surely: the node is gone, the agent does not answer, access was denied. */
  | { readonly state: "not-run"; readonly reason: string }
  /** It may have run, and nothing more will be heard of it (timed out while running, cancelled). */
  | { readonly state: "lost"; readonly reason: string };

/** A transport could not do something. `retryable`: the same call may work later (throttling, a network error). */
export class TransportError extends Error {
  override readonly name = "TransportError";
  readonly retryable: boolean;
  /** @param message `<transport>: could not <verb> <object>: <cause>` */
  constructor(message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryable = options.retryable;
  }
}

/** What a name means: one target, several, or none with the nearest names. */
export type Resolution =
  | { readonly kind: "found"; readonly target: Target }
  | { readonly kind: "ambiguous"; readonly candidates: readonly Target[] }
  | { readonly kind: "unknown"; readonly suggestions: readonly string[] };

/** A target, and all it may be called by, in lower case. */
export interface Called {
  readonly target: Target;
  readonly names: readonly string[];
}

export interface Targets {
  resolve(name: string): Promise<Resolution>;
  /**
   * All targets, those that the configuration names first; `problem`: why a list could not be had, for people.
   * @param labels only those that are known to have all these tags or labels (see {@link Transport.discover})
   */
  all(labels?: Readonly<Record<string, string>>): Promise<{ readonly called: readonly Called[]; readonly problem?: string }>;
}

// ---- pods and services -------------------------------------------------------------------------------------------------------------------

/** A pod or a service by its name, as somebody typed it: namespace and name are DNS names, or it is refused. */
export interface WorkloadName {
  readonly kind: "pod" | "service";
  /** Where two clusters have one of that name. */
  readonly cluster?: string;
  readonly namespace: string;
  readonly name: string;
  /** Of a service: the node from which it is called. */
  readonly from?: string;
}

/** A pod, as its cluster knows it. All texts are what people and programs wrote into the cluster. */
export interface PodPlace {
  readonly kind: "pod";
  readonly cluster: string;
  /** Name of its node in the cluster. */
  readonly node: string;
  /** What its cgroups are named by: a UUID, or the 32 hex digits of a static pod. */
  readonly uid: string;
  /** It has no network namespace of its own: the node's is its. */
  readonly hostNetwork: boolean;
  /** Other than the cluster's usual one: it may be a sandbox with a kernel of its own. */
  readonly runtimeClass?: string;
  readonly phase: string;
  readonly addresses: readonly string[];
  /** At most 20. `state`: "running", or why not ("CrashLoopBackOff"). */
  readonly containers: readonly { readonly name: string; readonly ready: boolean; readonly restarts: number; readonly state: string }[];
}

/** A service with what stands behind it. */
export interface ServicePlace {
  readonly kind: "service";
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  /** "ClusterIP", "NodePort", "LoadBalancer", "ExternalName". */
  readonly type: string;
  /** None of a headless service. */
  readonly addresses: readonly string[];
  readonly ports: readonly ServicePort[];
  /** At most 200; `more` were left out. */
  readonly endpoints: readonly ServiceEndpoint[];
  readonly more: number;
  /** Nodes that are ready, by name; at most 200. Empty where they may not be listed. */
  readonly nodes: readonly string[];
  /** It may leave out endpoints that are far away (internalTrafficPolicy Local, trafficDistribution, topology hints). */
  readonly prefersNear: boolean;
  /** It takes no other endpoints than those on the calling node (internalTrafficPolicy Local). */
  readonly onlyLocal: boolean;
  /** Cilium sends to its endpoints in other clusters, too, which this cluster does not list (global service of a cluster mesh). */
  readonly acrossClusters?: boolean;
  /** The label that keeps kube-proxy from writing entries for it: another proxy does, or nobody. */
  readonly leftOut?: string;
  /** What could not be asked, and what to do about it; for people. */
  readonly problems: readonly string[];
}
export interface ServicePort {
  /** Empty if it is the only one. */
  readonly name: string;
  /** "TCP", "UDP", "SCTP". */
  readonly protocol: string;
  readonly port: number;
}
/** An address behind one port of a service. */
export interface ServiceEndpoint {
  /** Of the service's port. */
  readonly portName: string;
  readonly protocol: string;
  readonly address: string;
  readonly port: number;
  readonly ready: boolean;
  /** It is on its way out. */
  readonly terminating: boolean;
  /** It still answers. Of one that is on its way out: proxies send to it where nothing else is ready. Kubernetes tells since 1.22. */
  readonly serving?: boolean;
  readonly node?: string;
  /** Name of the pod. */
  readonly pod?: string;
}

/** `ambiguous`: several clusters have it. `unknown`: why, for people. */
export type WorkloadResolution =
  | { readonly kind: "found"; readonly place: PodPlace | ServicePlace }
  | { readonly kind: "ambiguous"; readonly clusters: readonly string[] }
  | { readonly kind: "unknown"; readonly reason: string };

/** Looks pods and services up in their clusters. Reads only. */
export interface Workloads {
  /** Throws {@link TransportError} where a cluster could not be asked and no other one has it. */
  find(asked: WorkloadName): Promise<WorkloadResolution>;
}

// ---- files that people have --------------------------------------------------------------------------------------------------------------

/** Of a file that was fetched. */
export interface FetchedFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** What a file came to. */
export interface Imported extends FetchedFile {
  /** One per node that the file is about. */
  readonly captures: readonly Capture[];
}

/** What files came to that are read together. */
export interface ImportedTogether {
  /** One per node that they are about. */
  readonly captures: readonly Capture[];
  readonly fetched: readonly ({ readonly name: string } & FetchedFile)[];
  /** Those of which nothing is in the captures, each with a sentence that says why. */
  readonly unread: readonly { readonly name: string; readonly reason: string }[];
}

/** Reads what people have instead of a node: captures, support bundles, pasted outputs. Runs nothing, and keeps nothing. */
export interface Importer {
  /** The files of one message, those together that are parts of one collection: outputs that were saved in a file each. */
  groups(files: readonly SharedFile[]): readonly (readonly SharedFile[])[];
  /** The same as {@link Importer.file} for several files that belong together. One of them that cannot be fetched or read costs only itself. */
  together(files: readonly SharedFile[]): Promise<ImportedTogether>;
  /** Fetches a file and reads it. Throws an Error whose message is a sentence for people; `retryable` where waiting may help. */
  file(file: SharedFile): Promise<Imported>;
  /** Reads a pasted text: one capture, and one more for each further machine on which the same was asked. Throws in the same way. */
  text(text: string): readonly Capture[];
}

// ---- store -------------------------------------------------------------------------------------------------------------------------------

export type IncidentState =
  | "open"
  | "collecting"
  | "diagnosed"
  | "awaiting-approval"
  | "fixing"
  | "verifying"
  | "resolved"
  | "unresolved"
  | "dismissed"
  | "expired"
  | "failed";

/** One triage with its thread. */
export interface Incident {
  readonly id: string;
  readonly target: string;
  readonly cluster: string;
  readonly requester: Actor;
  readonly createdAt: string;
  readonly state: IncidentState;
  /** The thread, once the first message is posted. */
  readonly thread?: MessageRef;
  /** Keys of blobs in the store. */
  readonly capture?: string;
  readonly diagnosis?: string;
  readonly comparison?: string;
  readonly proposal?: string;
  /** Names of the nodes that the requester wanted it compared with. */
  readonly against?: readonly string[];
  /** The pod or service that the requester asked about; `target` is then the node that was chosen for it. */
  readonly workload?: WorkloadName;
  /** It is about so many nodes; `target` is what was asked for, in words, and no name. */
  readonly nodes?: number;
  /** What it was read from instead of a node: names of files. Nobody vouches for it, so no fix is ever proposed, and it cannot be run again. */
  readonly sources?: readonly string[];
  /** Why it failed, for people. */
  readonly problem?: string;
  /** The policy was overridden (break-glass): somebody else has to look at it, or has. */
  readonly review?: "pending" | "done";
  /** Findings of its diagnosis that somebody muted before it was made: they are in the diagnosis, and not shown as the others are. */
  readonly muted?: readonly Mute[];
}

/** A rule that somebody does not want to be told of on one target, for a time. It is evaluated, and kept in the diagnosis, all the same. */
export interface Mute {
  readonly rule: string;
  readonly cluster: string;
  readonly target: string;
  readonly by: Actor;
  readonly at: string;
  /** At most 90 days after `at`. */
  readonly until: string;
  /** As it was typed. Hostile. */
  readonly reason: string;
}

export type ProposalState = "pending" | "approved" | "dismissed" | "expired" | "running" | "succeeded" | "failed" | "unknown" | "refused";

/** A fix bound to a target and parameters. `hash` covers kind, fix, version, parameters, target, evidence and policy: an approval counts for this hash alone. */
export interface Proposal {
  readonly id: string;
  /** A fix unless told. */
  readonly kind?: "fix" | "rollback";
  /** Of a rollback: the proposal that it undoes. */
  readonly of?: string;
  /** sha256 of the policy's statements about it when it was proposed. */
  readonly policy?: string;
  /** Of the fix in the catalogue when it was proposed. */
  readonly version?: string;
  /** Reminders posted so far. */
  readonly reminders?: number;
  readonly incident: string;
  readonly target: string;
  readonly cluster: string;
  readonly rule: string;
  readonly fix: string;
  readonly parameters: Readonly<Record<string, string | readonly string[]>>;
  readonly hash: string;
  readonly requester: Actor;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly state: ProposalState;
  readonly decisions: readonly Decision[];
  /** Answers the waiting workflow. */
  readonly callback?: string;
  readonly message?: MessageRef;
}
export interface Decision {
  readonly actor: Actor;
  readonly decision: "approve" | "dismiss";
  readonly at: string;
  readonly hash: string;
  /** The policy allowed it only by breaking the glass; the reason is what the person typed. */
  readonly breakGlass?: { readonly reason: string };
}

/** An audit event before it is chained. `key` makes it idempotent: a second event with the same incident and key is ignored. */
export interface AuditDraft {
  readonly key: string;
  readonly at: string;
  readonly actor: Actor;
  /** "incident-opened", "collected", "diagnosed", "fix-proposed", "approved", "refused", "fix-started", … */
  readonly type: string;
  /** Plain JSON: ids, hashes, words; never raw node output. */
  readonly data: Readonly<Record<string, unknown>>;
}

/** An audit event in the chain. `hash` = sha256 over the canonical JSON of all other fields. */
export interface AuditEvent extends AuditDraft {
  readonly incident: string;
  /** Number of the event in its incident, from 1, without gaps; and the hash of the one before ("" for the first). */
  readonly sequence: number;
  readonly previous: string;
  /** The same over all incidents of the store. */
  readonly globalSequence: number;
  readonly globalPrevious: string;
  readonly hash: string;
}

export interface Store {
  /** Creates the incident unless its id exists; returns the stored one either way. */
  open(incident: Incident, event: AuditDraft): Promise<Incident>;
  incident(id: string): Promise<Incident | undefined>;
  /** Newest first. */
  incidents(limit: number): Promise<readonly Incident[]>;
  /** Changes fields and appends the events in one transaction. Throws if the incident does not exist. */
  update(id: string, change: Partial<Omit<Incident, "id">>, events: readonly AuditDraft[]): Promise<Incident>;
  /** Creates the proposal unless its id exists, with its event, in one transaction; returns the stored one. */
  propose(proposal: Proposal, event: AuditDraft): Promise<Proposal>;
  proposal(id: string): Promise<Proposal | undefined>;
  /**
   * Changes the proposal and appends the event in one transaction, but only if its state is one of `from`; says whether it did. A decision in
   * `change.decisions` replaces the list. Of two callers at the same moment exactly one is told `applied: true`.
   */
  transition(
    id: string,
    from: readonly ProposalState[],
    change: Partial<Omit<Proposal, "id" | "incident" | "hash">>,
    event: AuditDraft,
  ): Promise<{ readonly applied: boolean; readonly proposal: Proposal }>;
  /** Appends events only. */
  record(incident: string, events: readonly AuditDraft[]): Promise<void>;
  /** Events of one incident in order, or of all incidents in global order. */
  audit(incident?: string): Promise<readonly AuditEvent[]>;
  /** Large data by key ([A-Za-z0-9_/.-]{1,200}); writing the same key again replaces it. */
  put(key: string, data: Uint8Array): Promise<void>;
  get(key: string): Promise<Uint8Array | undefined>;
  /**
   * A small document (JSON, < 100 KB) by kind and key, for what is no incident: changes it to what `update` makes of the stored one (undefined: there is none;
   * nothing is left if it returns undefined), in one transaction. `update` is pure: it runs again if somebody else wrote in between. Returns what is stored now.
   * @param kind [a-z-]{1,40} @param key 1 to 500 characters, any
   */
  change<T>(kind: string, key: string, update: (stored: T | undefined) => T | undefined): Promise<T | undefined>;
  kept<T>(kind: string, key: string): Promise<T | undefined>;
  /** Documents whose keys begin with `prefix`, in the order of their keys or against it. */
  list<T>(
    kind: string,
    options: { readonly prefix?: string; readonly limit: number; readonly newestFirst?: boolean },
  ): Promise<readonly { readonly key: string; readonly value: T }[]>;
  /** What was posted under a key, so that a repeated step edits or skips instead of posting twice. */
  remember(key: string, message: MessageRef): Promise<void>;
  recall(key: string): Promise<MessageRef | undefined>;
  /**
   * Takes one of `most` places for `holder`, in one transaction: of callers at the same moment never more are told `ok` than there are places. Whoever holds one
   * already keeps it, counted from `at` on. A place is free again `keepMs` milliseconds after it was taken; undefined: when it is released.
   */
  reserve(scope: string, holder: string, most: number, keepMs: number | undefined, at: Date): Promise<Reserved>;
  /** Gives a place back; nothing happens if the holder has none. */
  release(scope: string, holder: string): Promise<void>;
}

/** What came of asking for a place. */
export interface Reserved {
  readonly ok: boolean;
  /** Who held the places before. Whoever is among them took no new place, and has none to give back if the run does not happen. */
  readonly holders: readonly string[];
}

// ---- chat --------------------------------------------------------------------------------------------------------------------------------

export interface MessageRef {
  readonly channel: string;
  readonly ts: string;
  /** The thread that it stands in; absent if it begins one. */
  readonly thread?: string;
}

/** A message by template and data: what it looks like is the chat's business. Data is plain JSON; every string in it is hostile until escaped. */
export interface Message {
  /** File in templates/slack/, without .json. */
  readonly template: string;
  readonly data: Readonly<Record<string, unknown>>;
}

export interface Chat {
  /** Posts once per key (store-backed): repeated after a crash it finds the message that is already there. */
  post(key: string, place: Place, message: Message): Promise<MessageRef>;
  /** Edits a message. */
  update(ref: MessageRef, message: Message): Promise<void>;
  /** A web address of a message, for people; undefined if the chat does not tell. */
  link?(ref: MessageRef): Promise<string | undefined>;
  /** Only `actor` sees it. Falls back to the response URL where the bot is not in the channel. */
  whisper(place: Place, actor: Actor, message: Message): Promise<void>;
  /** Opens a modal; where the trigger has expired, whispers `late` instead, or what the modal would have shown. */
  modal(triggerId: string | undefined, place: Place, actor: Actor, message: Message, late?: Message): Promise<void>;
  /** Shows a person the Home tab of the app, in place of what it showed before. */
  home(actor: Actor, message: Message): Promise<void>;
  /** A text file, or a diagram as a picture, in a thread, once per key. */
  upload(key: string, place: Place, file: { readonly name: string; readonly title: string; readonly content: string | Diagram }): Promise<void>;
}

// ---- answers to monitoring systems -------------------------------------------------------------------------------------------------------

/**
 * What netcheck leaves in the systems that page it. Every text begins with {@link PAGE_MARK}. Errors are sentences for people; `retryable` where waiting may
 * help.
 */
export interface Pagers {
  /**
   * Leaves a note on what `ref` names, or beside it, unless one that begins with the same line is there. False: nothing of that source takes notes, or none is
   * configured; nothing was tried.
   * @param ref {@link PageAlert.ref} @param text plain text, at most 3,000 characters; its first line tells the note from all others
   */
  note(source: string, ref: string | undefined, text: string): Promise<boolean>;
  /** Calls somebody through PagerDuty. The same id is one call. */
  escalate(call: PagerCall): Promise<void>;
  /** The call with this id is not needed any more; nothing happens if there was none. */
  standDown(id: string): Promise<void>;
  /** Who is on call at this moment; undefined: nobody. */
  onCall(source: OnCallSource): Promise<OnCall | undefined>;
}
export interface PagerCall {
  /** At most 200 characters. */
  readonly id: string;
  readonly summary: string;
  readonly severity: PageAlert["severity"];
  readonly details: Readonly<Record<string, string>>;
  readonly url?: string;
}
export interface OnCall {
  /** As the schedule has it, for people; hostile. */
  readonly name: string;
  /** In the chat; absent if the chat knows no such person. */
  readonly actor?: Actor;
}

// ---- the rest ----------------------------------------------------------------------------------------------------------------------------

/** All ports of the triage. */
export interface Ports {
  readonly work: Work;
  readonly targets: Targets;
  /** Absent where no cluster's API is known. */
  readonly workloads?: Workloads;
  /** The transport of a target. */
  transport(name: string): Transport;
  readonly scripts: Scripts;
  readonly importer: Importer;
  readonly store: Store;
  readonly chat: Chat;
  /** Absent where netcheck answers no monitoring system. */
  readonly pagers?: Pagers;
  /** Members of a user group, resolved afresh. Throws if they cannot be told; `retryable` says whether waiting may help. */
  members(group: string): Promise<readonly string[]>;
  /** Read afresh each time: a changed policy counts at once. Throws if it cannot be read, as `members` does. */
  config(): Promise<Config>;
  now(): Date;
  /** Random hex digits. */
  random(digits: number): string;
  log(level: "info" | "warn" | "error", message: string, fields?: Readonly<Record<string, unknown>>): void;
}

export type { Capture, Command, Output };
