import { type Block, elementsOf, limits, validateBlocks, validateView } from "../slack/block-kit.ts";
import type { Clock } from "./clock.ts";
import type { Kept, KeptMap } from "./kept.ts";

export interface User {
  readonly id: string;
  /** The short name behind the @. */
  readonly name: string;
  readonly realName: string;
  readonly title: string;
  readonly bot?: boolean;
}

export interface Channel {
  readonly id: string;
  readonly name: string;
  readonly topic: string;
  readonly kind: "channel" | "im";
  readonly members: readonly string[];
}

export interface UserGroup {
  readonly id: string;
  readonly handle: string;
  readonly users: readonly string[];
}

export interface Message {
  readonly channel: string;
  /** "1763690000.000100": unique in the workspace, and growing. */
  readonly ts: string;
  readonly user: string;
  /** The thread's first message; absent outside of threads. */
  readonly threadTs?: string;
  /** Ephemeral: only this user sees it. */
  readonly onlyFor?: string;
  readonly text: string;
  readonly blocks?: readonly Block[];
  readonly metadata?: unknown;
  /** When it was last changed. */
  readonly edited?: string;
  readonly files?: readonly string[];
  readonly reactions?: readonly { readonly name: string; readonly users: readonly string[] }[];
  /** Deleted, but its thread goes on below it. */
  readonly deleted?: boolean;
}

export interface View {
  readonly id: string;
  readonly user: string;
  readonly type: "modal" | "home";
  /** The view as the app sent it, with block and action ids filled in. */
  readonly payload: Readonly<Record<string, unknown>>;
  readonly blocks: readonly Block[];
  readonly hash: string;
  readonly rootId: string;
  readonly previousId: string | undefined;
}

export interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly title: string;
  readonly user: string;
  /** Seconds since 1970. */
  readonly created: number;
  /** Announced length, in bytes. */
  readonly length: number;
  readonly data?: Buffer;
  /** What a picture shows, in words. */
  readonly altText?: string;
  readonly shared: boolean;
}

/** A refusal with Slack's own error code; `messages` goes to `response_metadata`. */
export class SlackError extends Error {
  override readonly name = "SlackError";
  readonly code: string;
  readonly messages: readonly string[];
  constructor(code: string, messages: readonly string[] = []) {
    super(messages.length === 0 ? code : `${code}: ${messages.join("; ")}`);
    this.code = code;
    this.messages = messages;
  }
}

/** What a new message is made of. */
export interface Draft {
  readonly channel: string;
  readonly user: string;
  readonly text?: string | undefined;
  readonly blocks?: unknown;
  readonly threadTs?: string | undefined;
  readonly onlyFor?: string | undefined;
  readonly metadata?: unknown;
  readonly files?: readonly string[];
  /** Also where the author is no member, as an answer to a command may. */
  readonly anywhere?: boolean;
}

export interface ChatOptions {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly team: { readonly id: string; readonly name: string };
  readonly app: { readonly id: string; readonly name: string; readonly user: string; readonly bot: string };
  readonly users: readonly User[];
  readonly channels: readonly Channel[];
  readonly groups: readonly UserGroup[];
  /** Where it is all kept. People and places that are kept and not given stay. */
  readonly kept: Kept;
}

const triggerLifeMs = 3000;
const viewStack = 3;
const viewBytes = 250_000;

/** The workspace's contents: who, where, what was said. Knows Slack's rules for them, and nothing of HTTP. */
export class Chat {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly team: ChatOptions["team"];
  readonly app: ChatOptions["app"];
  readonly users: ReadonlyMap<string, User>;
  readonly files: KeptMap<StoredFile>;
  readonly homes: KeptMap<View>;
  /** Where this workspace is reached, without a slash at the end: the start of every link it hands out. Set by the server. */
  url = "http://127.0.0.1";
  readonly #groups: KeptMap<UserGroup>;
  readonly #channels: KeptMap<Channel>;
  /** By ts. */
  readonly #messages: KeptMap<Message>;
  /** The same messages, oldest first, by channel. */
  readonly #lists = new Map<string, Message[]>();
  readonly #modals: KeptMap<readonly View[]>;
  readonly #triggers: KeptMap<{ readonly user: string; readonly issued: number; readonly used: boolean }>;
  readonly #read: KeptMap<string>;
  readonly #counters: KeptMap<number>;
  readonly #listeners = new Set<() => void>();

  constructor(options: ChatOptions) {
    this.clock = options.clock;
    this.team = options.team;
    this.app = options.app;
    const { kept } = options;
    const users = kept.map<User>("user");
    for (const user of options.users) users.set(user.id, user);
    this.users = users;
    this.#groups = kept.map("group");
    for (const group of options.groups) this.#groups.set(group.id, group);
    this.#channels = kept.map("channel");
    for (const channel of options.channels) this.#channels.set(channel.id, channel);
    this.files = kept.map("file");
    this.homes = kept.map("home");
    this.#messages = kept.map("message");
    for (const message of this.#messages.values()) this.#list(message.channel).push(message);
    this.#modals = kept.map("modals");
    this.#triggers = kept.map("trigger");
    this.#read = kept.map("read");
    this.#counters = kept.map("counter");
  }

  get groups(): readonly UserGroup[] {
    return [...this.#groups.values()];
  }

  /** Counts the changes; a page that has seen this version is up to date. */
  get version(): number {
    return this.#counters.get("version") ?? 0;
  }

  /** Calls `listener` after every change; the returned function ends that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  changed(): void {
    this.#counters.set("version", this.version + 1);
    for (const listener of this.#listeners) listener();
  }

  /** A new id: the prefix and a number of its own. */
  id(prefix: string): string {
    const serial = (this.#counters.get("serial") ?? 0) + 1;
    this.#counters.set("serial", serial);
    return `${prefix}${serial.toString(36).toUpperCase().padStart(8, "0")}`;
  }

  // ---- channels and users ------------------------------------------------------------------------------------------------------------------

  get channels(): readonly Channel[] {
    return [...this.#channels.values()];
  }

  /** @throws SlackError channel_not_found */
  channel(id: string): Channel {
    const channel = this.#channels.get(id) ?? this.channels.find((one) => one.kind === "channel" && `#${one.name}` === id);
    if (channel === undefined) throw new SlackError("channel_not_found");
    return channel;
  }

  /** Makes somebody a member. @throws SlackError channel_not_found */
  join(id: string, user: string): void {
    const channel = this.channel(id);
    if (channel.members.includes(user)) return;
    this.#channels.set(channel.id, { ...channel, members: [...channel.members, user] });
    this.changed();
  }

  /** @throws SlackError user_not_found */
  user(id: string): User {
    const user = this.users.get(id);
    if (user === undefined) throw new SlackError("user_not_found");
    return user;
  }

  /** The direct conversation of the app with a user, opened when it is first needed. */
  directChannel(user: string): Channel {
    const id = `D_${this.user(user).id}`;
    let channel = this.#channels.get(id);
    if (channel === undefined) {
      channel = { id, name: this.app.name, topic: "", kind: "im", members: [user, this.app.user] };
      this.#channels.set(id, channel);
      this.changed();
    }
    return channel;
  }

  // ---- messages ----------------------------------------------------------------------------------------------------------------------------

  /** Everything in a channel, oldest first, ephemeral messages included. */
  messages(channel: string): readonly Message[] {
    return this.#list(this.channel(channel).id);
  }

  /** A message that is there for all. @throws SlackError message_not_found */
  message(channel: string, ts: string): Message {
    const message = this.messages(channel).find((one) => one.ts === ts && one.onlyFor === undefined && one.deleted !== true);
    if (message === undefined) throw new SlackError("message_not_found");
    return message;
  }

  /** A message that this user sees, ephemeral ones included. @throws SlackError message_not_found */
  visible(channel: string, ts: string, user: string): Message {
    const message = this.messages(channel).find((one) => one.ts === ts && (one.onlyFor === undefined || one.onlyFor === user));
    if (message === undefined) throw new SlackError("message_not_found");
    return message;
  }

  /** The thread's first message and its answers, oldest first, without ephemeral ones. @throws SlackError thread_not_found */
  thread(channel: string, ts: string): readonly Message[] {
    const thread = this.messages(channel).filter((one) => one.onlyFor === undefined && (one.ts === ts || one.threadTs === ts));
    if (thread[0]?.ts !== ts) throw new SlackError("thread_not_found");
    return thread;
  }

  /**
   * Adds a message.
   * @throws SlackError invalid_blocks, msg_too_long, no_text, thread_not_found, channel_not_found, not_in_channel, user_not_in_channel
   */
  post(draft: Draft): Message {
    const channel = this.channel(draft.channel);
    if (!channel.members.includes(draft.user) && draft.anywhere !== true) throw new SlackError("not_in_channel");
    if (draft.onlyFor !== undefined && !channel.members.includes(this.user(draft.onlyFor).id) && draft.anywhere !== true)
      throw new SlackError("user_not_in_channel");
    const text = draft.text ?? "";
    if (text.length > limits.messageText) throw new SlackError("msg_too_long");
    const blocks = draft.blocks === undefined ? undefined : this.blocks(draft.blocks);
    if (text.trim() === "" && (blocks ?? []).length === 0 && (draft.files ?? []).length === 0) throw new SlackError("no_text");
    // An answer to an answer belongs to the same thread.
    const parent = draft.threadTs === undefined ? undefined : this.messages(channel.id).find((one) => one.ts === draft.threadTs && one.onlyFor === undefined);
    if (draft.threadTs !== undefined && parent === undefined) throw new SlackError("thread_not_found");
    const message: Message = {
      channel: channel.id,
      ts: this.#nextTs(),
      user: draft.user,
      text,
      ...(blocks === undefined || blocks.length === 0 ? {} : { blocks }),
      ...(parent === undefined ? {} : { threadTs: parent.threadTs ?? parent.ts }),
      ...(draft.onlyFor === undefined ? {} : { onlyFor: draft.onlyFor }),
      ...(draft.metadata === undefined ? {} : { metadata: draft.metadata }),
      ...(draft.files === undefined ? {} : { files: draft.files }),
    };
    this.#messages.set(message.ts, message);
    this.#list(channel.id).push(message);
    this.#read.set(readKey(draft.user, channel.id, message.threadTs), message.ts);
    this.changed();
    return message;
  }

  /** Puts `changes` in place of what a message had; `undefined` values stay as they were. Returns the message as it is now. */
  edit(message: Message, changes: { text?: string | undefined; blocks?: unknown; metadata?: unknown; reactions?: Message["reactions"] }): Message {
    const blocks = changes.blocks === undefined ? undefined : this.blocks(changes.blocks);
    const { text, metadata, reactions } = changes;
    const said = text !== undefined || blocks !== undefined;
    const now: Message = {
      ...message,
      ...(text === undefined ? {} : { text }),
      ...(blocks === undefined ? {} : { blocks }),
      ...(metadata === undefined ? {} : { metadata }),
      ...(reactions === undefined ? {} : { reactions }),
      ...(said && message.onlyFor === undefined ? { edited: this.#nextTs() } : {}),
    };
    this.#replace(message, now);
    return now;
  }

  /** Deletes a message. One that has a thread below it leaves "This message was deleted." in its place. */
  remove(message: Message): void {
    const answered = this.messages(message.channel).some((one) => one.threadTs === message.ts);
    this.#replace(
      message,
      answered ? { channel: message.channel, ts: message.ts, user: message.user, text: "This message was deleted.", deleted: true } : undefined,
    );
  }

  #replace(message: Message, now: Message | undefined): void {
    const list = this.#list(message.channel);
    const index = list.findIndex((one) => one.ts === message.ts);
    if (index < 0) throw new SlackError("message_not_found");
    list.splice(index, 1, ...(now === undefined ? [] : [now]));
    if (now === undefined) this.#messages.delete(message.ts);
    else this.#messages.set(message.ts, now);
    this.changed();
  }

  #list(channel: string): Message[] {
    const list = this.#lists.get(channel) ?? [];
    this.#lists.set(channel, list);
    return list;
  }

  /** The blocks as they are kept: checked, and with an id for each block and element that came without. @throws SlackError invalid_blocks */
  blocks(blocks: unknown, problems: readonly string[] = validateBlocks(blocks, "message")): Block[] {
    if (problems.length > 0) throw new SlackError("invalid_blocks", problems);
    const filled = structuredClone(blocks) as Block[];
    for (const block of filled) {
      block.block_id ??= this.id("b");
      for (const element of elementsOf(block)) element.action_id ??= this.id("a");
    }
    return filled;
  }

  /** Marks a channel (or one of its threads) as read by a user, up to its end. */
  markRead(user: string, channel: string, threadTs?: string): void {
    const last = this.messages(channel).findLast((one) => one.threadTs === threadTs && (one.onlyFor === undefined || one.onlyFor === user));
    const key = readKey(user, channel, threadTs);
    if (last === undefined || (this.#read.get(key) ?? "") >= last.ts) return;
    this.#read.set(key, last.ts);
    this.changed();
  }

  /** How many messages of others a user has not seen in a channel outside of threads, or in one thread. */
  unread(user: string, channel: string, threadTs?: string): number {
    const seen = this.#read.get(readKey(user, channel, threadTs)) ?? "";
    return this.messages(channel).filter(
      (one) => one.threadTs === threadTs && one.ts > seen && one.user !== user && (one.onlyFor === undefined || one.onlyFor === user),
    ).length;
  }

  // ---- views -------------------------------------------------------------------------------------------------------------------------------

  /** A ticket for one views.open or views.push by the app, within 3 seconds. */
  trigger(user: string): string {
    const now = this.clock.now();
    // Old ones are only kept to tell "expired" from "invalid".
    for (const [old, { issued }] of this.#triggers) if (now - issued > 100 * triggerLifeMs) this.#triggers.delete(old);
    const id = `${now}.${this.#triggers.size + 1}.${this.id("t").toLowerCase()}`;
    this.#triggers.set(id, { user, issued: now, used: false });
    return id;
  }

  /** Whose trigger it is; it is spent by that. @throws SlackError invalid_trigger_id, expired_trigger_id, exchanged_trigger_id */
  spendTrigger(id: string): string {
    const trigger = this.#triggers.get(id);
    if (trigger === undefined) throw new SlackError("invalid_trigger_id");
    if (trigger.used) throw new SlackError("exchanged_trigger_id");
    if (this.clock.now() - trigger.issued > triggerLifeMs) throw new SlackError("expired_trigger_id");
    this.#triggers.set(id, { ...trigger, used: true });
    return trigger.user;
  }

  /** The modals open for a user; the last one is on top. */
  modals(user: string): readonly View[] {
    return this.#modals.get(user) ?? [];
  }

  /** @throws SlackError not_found */
  view(id: string): View {
    const view = [...this.#modals.values(), [...this.homes.values()]].flat().find((one) => one.id === id || one.payload["external_id"] === id);
    if (view === undefined) throw new SlackError("not_found");
    return view;
  }

  /** Shows a modal: alone, or on top of those that are open (`push`). @throws SlackError invalid_arguments, view_too_large, push_limit_reached */
  openModal(user: string, payload: unknown, how: "open" | "push" = "open"): View {
    const open = how === "push" ? this.modals(user) : [];
    if (open.length >= viewStack) throw new SlackError("push_limit_reached");
    const view = this.#makeView(user, "modal", payload, open);
    this.#modals.set(user, [...open, view]);
    this.changed();
    return view;
  }

  /** Puts a new payload in place of a view's. @throws SlackError not_found, hash_conflict, and as openModal */
  updateView(id: string, payload: unknown, hash?: string): View {
    const old = this.view(id);
    if (hash !== undefined && hash !== old.hash) throw new SlackError("hash_conflict");
    const view = { ...this.#makeView(old.user, old.type, payload, []), id: old.id, rootId: old.rootId, previousId: old.previousId };
    if (old.type === "home") this.homes.set(old.user, view);
    else
      this.#modals.set(
        old.user,
        this.modals(old.user).map((one) => (one.id === old.id ? view : one)),
      );
    this.changed();
    return view;
  }

  /** Sets the app's Home tab for a user. @throws SlackError as openModal */
  publishHome(user: string, payload: unknown): View {
    const view = this.#makeView(this.user(user).id, "home", payload, []);
    this.homes.set(user, view);
    this.changed();
    return view;
  }

  /** Takes away the top modal of a user, or all of them. */
  closeModals(user: string, which: "top" | "all"): void {
    const left = which === "all" ? [] : this.modals(user).slice(0, -1);
    this.#modals.set(user, left);
    this.changed();
  }

  #makeView(user: string, type: View["type"], payload: unknown, below: readonly View[]): View {
    const problems = validateView(payload);
    if (problems.length > 0) throw new SlackError("invalid_arguments", problems);
    const valid = payload as Record<string, unknown>;
    if (valid["type"] !== type) throw new SlackError("invalid_arguments", [`[ERROR] must be a ${type} [json-pointer:/view/type]`]);
    if (JSON.stringify(valid).length > viewBytes) throw new SlackError("view_too_large");
    const blocks = this.blocks(valid["blocks"], []);
    const id = this.id("V");
    return {
      id,
      user,
      type,
      payload: { ...valid, blocks },
      blocks,
      hash: `${Math.floor(this.clock.now() / 1000)}.${id}`,
      rootId: below[0]?.id ?? id,
      previousId: below.at(-1)?.id,
    };
  }

  #nextTs(): string {
    const micros = Math.max((this.#counters.get("ts") ?? 0) + 100, this.clock.now() * 1000);
    this.#counters.set("ts", micros);
    return `${Math.floor(micros / 1_000_000)}.${String(micros % 1_000_000).padStart(6, "0")}`;
  }
}

function readKey(user: string, channel: string, threadTs: string | undefined): string {
  return `${user} ${channel} ${threadTs ?? ""}`;
}
