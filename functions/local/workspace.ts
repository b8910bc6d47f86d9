import { randomBytes, timingSafeEqual } from "node:crypto";
import { AppLink } from "./app-link.ts";
import { type Channel, Chat, type Message, SlackError, type User, type UserGroup, type View } from "./chat.ts";
import { type Clock, systemClock } from "./clock.ts";
import {
  type ClickGesture,
  type CommandGesture,
  Interactions,
  type MessageGesture,
  type Outcome,
  type ShortcutGesture,
  type SubmitGesture,
  slackbot,
} from "./interactions.ts";
import { Kept } from "./kept.ts";
import { isPng } from "./png.ts";
import type { SampleOffer } from "./sample-pages.ts";
import { transcript } from "./transcript.ts";
import { type Arguments, type Json, methods, permalink } from "./web-api.ts";

export interface WorkspaceOptions {
  /** A SQLite file in which everything is kept; it is all there again when the next workspace is made on it. ":memory:" (default): nowhere. */
  readonly file?: string;
  readonly clock?: Pick<Clock, "now" | "after">;
  /** What the app's token and signing secret are; the kept ones if absent, else random. */
  readonly botToken?: string;
  readonly signingSecret?: string;
  /** Slack's rate limits: one message per second and channel with short bursts, 50 updates per minute. Off by default. */
  readonly rateLimits?: boolean;
  /** Commands and clicks that the app does not answer in time are sent once more. On by default. */
  readonly retryInteractions?: boolean;
  /** How long the app has to answer, as in Slack 3 seconds unless told: tests in which much else runs in the app's process give it more. */
  readonly patienceMs?: number;
  readonly users?: readonly User[];
  readonly channels?: readonly Channel[];
  readonly groups?: readonly UserGroup[];
  /** The slash command the page offers. */
  readonly command?: { readonly name: string; readonly usage: string; readonly description: string };
  /** Completions for the command's first word. */
  readonly targets?: readonly { readonly name: string; readonly description: string }[];
  /** What the app adds to the menu of a message. */
  readonly shortcuts?: readonly { readonly name: string; readonly callbackId: string }[];
  /** Which sample pages can be sent, and where they are answered; none if absent. */
  readonly samples?: SampleOffer;
  /** What an empty channel offers as buttons. */
  readonly examples?: readonly { readonly command: string; readonly description: string }[];
}

/** What goes wrong on purpose, for tests. */
export interface Fault {
  /** How many calls fail. Default 1. */
  readonly times?: number;
  /** 500 (default) and the like; 429 adds Retry-After; "hang" never answers; "lost" does what was asked and then breaks the connection. */
  readonly with?: number | "hang" | "lost";
  /** Seconds in Retry-After of a 429. Default 1. */
  readonly retryAfter?: number;
  /** Instead: HTTP 200 with this error code, and what Slack says about it. */
  readonly error?: string;
  readonly messages?: readonly string[];
}

/** An answer of the Web API. `how`: whether it arrives at all. */
export interface ApiAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Json;
  readonly how: "answer" | "hang" | "break";
}

/** What one person sees of the workspace: plain JSON for the page. */
export interface WorkspaceState {
  readonly version: number;
  readonly team: { readonly id: string; readonly name: string };
  readonly app: { readonly id: string; readonly name: string; readonly user: string };
  readonly me: string;
  readonly users: readonly User[];
  readonly groups: readonly UserGroup[];
  readonly channels: readonly (Channel & { readonly unread: number; readonly messages: readonly SeenMessage[] })[];
  readonly modals: readonly SeenView[];
  readonly home: SeenView | undefined;
  readonly command: NonNullable<WorkspaceOptions["command"]>;
  readonly targets: NonNullable<WorkspaceOptions["targets"]>;
  readonly examples: NonNullable<WorkspaceOptions["examples"]>;
  readonly shortcuts: NonNullable<WorkspaceOptions["shortcuts"]>;
  readonly samples?: SampleOffer;
}
export interface SeenFile {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly size: number;
  readonly url: string;
  /** It can be shown as text. */
  readonly text: boolean;
  /** It can be shown as a picture. */
  readonly picture: boolean;
  readonly altText: string;
}
export type SeenMessage = Omit<Message, "files" | "metadata"> & { readonly files: readonly SeenFile[]; readonly unread: number; readonly permalink: string };
export type SeenView = Pick<View, "id" | "type" | "payload" | "blocks" | "hash">;

const people: readonly User[] = [
  { id: "U_ALICE", name: "alice", realName: "Alice Moreau", title: "on-call engineer" },
  { id: "U_BOB", name: "bob", realName: "Bob Tanaka", title: "SRE lead" },
  { id: "U_CAROL", name: "carol", realName: "Carol Diaz", title: "network engineer" },
];
const app = { id: "A_NETCHECK", name: "netcheck", user: "U_NETCHECK", bot: "B_NETCHECK" };
const everyone = [...people.map((one) => one.id), app.user];
const places: readonly Channel[] = [
  { id: "C_INCIDENTS", name: "incidents", topic: "Node networking incidents: triage, approvals, fixes", kind: "channel", members: everyone },
  { id: "C_PLATFORM", name: "platform", topic: "Platform team", kind: "channel", members: everyone },
  { id: "C_PAYMENTS", name: "payments", topic: "Payments team; netcheck is not in this channel", kind: "channel", members: people.map((one) => one.id) },
];
const teams: readonly UserGroup[] = [
  { id: "S_ONCALL", handle: "oncall", users: ["U_ALICE"] },
  { id: "S_SRE", handle: "sre", users: ["U_BOB", "U_CAROL"] },
];
const textual = /\.(txt|json|ya?ml|md|log|csv|tsv|conf|sh|patch|diff)$|^[^.]+$/i;

/**
 * A Slack workspace for local mode and tests: `api` is what a WebClient calls, `command`, `click` … are what people do (told to the app at
 * `connect`'s address with signed requests), `state` and `transcript` are what they see.
 * What it has answered or shown to anyone is in its file and survives `kill -9`; events that the app has not taken yet are not sent again after that.
 */
export class Workspace {
  readonly botToken: string;
  readonly signingSecret: string;
  readonly chat: Chat;
  readonly #options: WorkspaceOptions;
  readonly #kept: Kept;
  readonly #link: AppLink;
  readonly #interactions: Interactions;
  readonly #faults = new Map<string, (Fault & { left: number })[]>();
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  /** @throws if another process uses the file */
  constructor(options: WorkspaceOptions = {}) {
    this.#options = options;
    this.#kept = new Kept(options.file ?? ":memory:");
    const secrets = this.#kept.map<string>("secret");
    // The usual people and places are only for a new workspace.
    const fresh = secrets.size === 0;
    const secret = (name: string, given: string | undefined, prefix: string) => {
      const value = given ?? secrets.get(name) ?? `${prefix}${randomBytes(16).toString("hex")}`;
      secrets.set(name, value);
      return value;
    };
    this.botToken = secret("botToken", options.botToken, "xoxb-local-");
    this.signingSecret = secret("signingSecret", options.signingSecret, "");
    const clock = options.clock ?? systemClock;
    const bot: User = { id: app.user, name: app.name, realName: app.name, title: "Incident triage for node networking", bot: true };
    this.chat = new Chat({
      clock,
      team: { id: "T_LOCAL", name: "Local workspace" },
      app,
      users: [...(options.users ?? (fresh ? people : [])), bot, slackbot],
      channels: options.channels ?? (fresh ? places : []),
      groups: options.groups ?? (fresh ? teams : []),
      kept: this.#kept,
    });
    const { retryInteractions = true, patienceMs = 3000 } = options;
    this.#link = new AppLink({ clock, signingSecret: this.signingSecret, retryInteractions, patienceMs });
    this.#interactions = new Interactions(this.chat, this.#link, this.signingSecret, this.#kept);
    this.#kept.flush();
  }

  /** Where the app takes requests, e.g. "http://127.0.0.1:3000/slack/events". Until then commands fail with dispatch_failed. */
  connect(appUrl: string): void {
    this.#link.url = appUrl;
  }

  /** Resolves when no request to the app is under way (retries that wait for their time do not count). */
  idle(): Promise<void> {
    return this.#link.idle();
  }

  /** Gives up waiting retries and lets the file go. */
  close(): void {
    this.#link.close();
    this.#kept.close();
  }

  // ---- the app's side ----------------------------------------------------------------------------------------------------------------------

  /**
   * A Web API call, never throwing: refusals are answers with `ok: false`, as Slack's.
   * @param token from the Authorization header; without one, the `token` argument counts
   */
  api(method: string, args: Arguments, token?: string): ApiAnswer {
    const fault = this.#fault(method);
    if (fault?.error !== undefined) {
      return answer(200, { ok: false, error: fault.error, ...(fault.messages === undefined ? {} : { response_metadata: { messages: fault.messages } }) });
    }
    if (fault?.with === "hang") return { ...answer(200, {}), how: "hang" };
    if (fault?.with === 429) return tooMany(fault.retryAfter ?? 1);
    if (fault !== undefined && fault.with !== "lost") return answer(Number(fault.with ?? 500), { ok: false, error: "internal_error" });
    const run = methods[method];
    if (run === undefined) return answer(200, { ok: false, error: "unknown_method", req_method: method });
    const given = token ?? args["token"];
    if (typeof given !== "string" || given === "") return answer(200, { ok: false, error: "not_authed" });
    if (!same(given, this.botToken)) return answer(200, { ok: false, error: "invalid_auth" });
    const wait = this.#options.rateLimits === true ? this.#rate(method, args) : 0;
    if (wait > 0) return tooMany(wait);
    const answered = this.#run(() => run(this.chat, args));
    // What is acknowledged is kept.
    this.#kept.flush();
    return { ...answered, how: fault?.with === "lost" ? "break" : "answer" };
  }

  /** The app posts to a response_url; `id` is the end of that URL. */
  respond(id: string, body: Json): { status: number; body: Json } {
    const answered = this.#interactions.respond(id, body);
    this.#kept.flush();
    return answered;
  }

  /** Takes a file's bytes at an upload URL. False: there is no such upload, or its length is not the announced one. */
  upload(fileId: string, data: Buffer): boolean {
    const file = this.chat.files.get(fileId);
    if (file === undefined || file.data !== undefined || file.length !== data.length) return false;
    this.chat.files.set(fileId, { ...file, data });
    this.#kept.flush();
    return true;
  }

  /** Lets the next calls of a Web API method fail. Faults of a method are used up in the order in which they were given. */
  fail(method: string, fault: Fault = {}): void {
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), { ...fault, left: fault.times ?? 1 }]);
  }

  // ---- the people's side -------------------------------------------------------------------------------------------------------------------

  /** Runs a slash command; resolves when the app has acknowledged it (or has not, in 3 s). */
  command(gesture: CommandGesture): Promise<Outcome> {
    return gently(() => this.#interactions.command(gesture));
  }
  /** Posts a message as typed. */
  message(gesture: MessageGesture): Promise<Outcome> {
    return gently(() => this.#interactions.message(gesture));
  }
  /** Uploads a file for a message that is to come. Returns its id. @throws SlackError user_not_found, invalid_arguments */
  attach(user: string, name: string, data: Buffer): string {
    const { chat } = this;
    if (name === "" || data.length === 0) throw new SlackError("invalid_arguments");
    const file = { id: chat.id("F"), name, title: name, user: chat.user(user).id, created: Math.floor(chat.clock.now() / 1000), length: data.length, data };
    chat.files.set(file.id, { ...file, shared: false });
    this.#kept.flush();
    return file.id;
  }
  /** Presses a button or chooses something, in a message or a view. */
  click(gesture: ClickGesture): Promise<Outcome> {
    return gently(() => this.#interactions.click(gesture));
  }
  /** Chooses a shortcut in the menu of a message. */
  shortcut(gesture: ShortcutGesture): Promise<Outcome> {
    return gently(() => this.#interactions.shortcut(gesture));
  }
  /** Sends the top modal off. */
  submit(gesture: SubmitGesture): Promise<Outcome> {
    return gently(() => this.#interactions.submit(gesture));
  }
  /** Closes the top modal. */
  closeView(user: string, viewId: string): Promise<Outcome> {
    return gently(() => this.#interactions.closeView(user, viewId));
  }
  /** Opens the app's Home tab. */
  openHome(user: string): Promise<Outcome> {
    return gently(() => this.#interactions.openHome(user));
  }
  /** Brings the app into a channel, as `/invite @netcheck` does. */
  invite(user: string, channel: string): Promise<Outcome> {
    return gently(() => this.#interactions.invite(user, channel));
  }
  /** Marks a channel, or one of its threads, as read. */
  read(user: string, channel: string, threadTs?: string): void {
    this.chat.markRead(user, channel, threadTs);
    this.#kept.flush();
  }

  /** All that one person sees. @throws SlackError user_not_found */
  state(user: string): WorkspaceState {
    const { chat } = this;
    const me = chat.user(user).id;
    return {
      version: chat.version,
      team: chat.team,
      app: { id: chat.app.id, name: chat.app.name, user: chat.app.user },
      me,
      users: [...chat.users.values()],
      groups: chat.groups,
      channels: chat.channels
        .filter((channel) => channel.members.includes(me))
        .map((channel) => ({
          ...channel,
          unread: chat.unread(me, channel.id),
          messages: chat
            .messages(channel.id)
            .filter((one) => one.onlyFor === undefined || one.onlyFor === me)
            .map((one) => this.#seen(one, me)),
        })),
      modals: chat.modals(me).map(seenView),
      home: chat.homes.has(me) ? seenView(chat.homes.get(me) as View) : undefined,
      command: this.#options.command ?? { name: "/netcheck", usage: "<target>", description: "Find out what is wrong with a node's network" },
      targets: this.#options.targets ?? [],
      examples: this.#options.examples ?? [],
      shortcuts: this.#options.shortcuts ?? [],
      ...(this.#options.samples === undefined ? {} : { samples: this.#options.samples }),
    };
  }

  /** A thread (or a whole channel) as plain text. See transcript.ts. */
  transcript(channel: string, threadTs?: string, user?: string): string {
    return transcript(this.chat, channel, threadTs, user);
  }

  // ---- inside ------------------------------------------------------------------------------------------------------------------------------

  #seen(message: Message, me: string): SeenMessage {
    const { files: ids, metadata: _hidden, ...rest } = message;
    const files = (ids ?? [])
      .flatMap((id) => this.chat.files.get(id) ?? [])
      .map((file) => ({
        id: file.id,
        name: file.name,
        title: file.title,
        size: file.data?.length ?? 0,
        url: `/files/${file.id}/${encodeURIComponent(file.name)}`,
        text: textual.test(file.name),
        picture: file.data !== undefined && isPng(file.data),
        altText: file.altText ?? file.title,
      }));
    const unread = message.threadTs === undefined ? this.chat.unread(me, message.channel, message.ts) : 0;
    return { ...rest, files, unread, permalink: permalink(this.chat, message).slice(this.chat.url.length) };
  }

  #run(run: () => Json): Omit<ApiAnswer, "how"> {
    try {
      return answer(200, { ok: true, ...run() });
    } catch (error) {
      if (!(error instanceof SlackError)) throw error;
      return answer(200, { ok: false, error: error.code, ...(error.messages.length === 0 ? {} : { response_metadata: { messages: error.messages } }) });
    }
  }

  #fault(method: string): Fault | undefined {
    const [fault] = this.#faults.get(method) ?? [];
    if (fault === undefined) return undefined;
    fault.left -= 1;
    if (fault.left <= 0) this.#faults.get(method)?.shift();
    return fault;
  }

  /** Seconds to wait before this call is allowed; 0: now. */
  #rate(method: string, args: Arguments): number {
    // Slack does not say how long a burst may be.
    if (method === "chat.postMessage" || method === "chat.postEphemeral") return this.#bucket(`post ${JSON.stringify(args["channel"])}`, 5, 1);
    return method === "chat.update" ? this.#bucket("update", 50, 50 / 60) : 0;
  }

  #bucket(key: string, burst: number, perSecond: number): number {
    const now = this.chat.clock.now();
    const bucket = this.#buckets.get(key) ?? { tokens: burst, at: now };
    const tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    this.#buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, at: now });
    return tokens >= 1 ? 0 : Math.max(1, Math.ceil((1 - tokens) / perSecond));
  }
}

/** A refusal of the workspace as a sentence, instead of an exception. */
async function gently(run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof SlackError) return { ok: false, error: `That did not work: ${error.message}.` };
    throw error;
  }
}

function seenView(view: View): SeenView {
  return { id: view.id, type: view.type, payload: view.payload, blocks: view.blocks, hash: view.hash };
}

function answer(status: number, body: Json): ApiAnswer {
  return { status, headers: {}, body, how: "answer" };
}

function tooMany(seconds: number): ApiAnswer {
  return { status: 429, headers: { "retry-after": String(seconds) }, body: { ok: false, error: "ratelimited" }, how: "answer" };
}

function same(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)];
  return a.length === b.length && timingSafeEqual(a, b);
}
