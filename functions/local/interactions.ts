import { createHmac } from "node:crypto";
import { type Block, type Element, elementsOf } from "../slack/block-kit.ts";
import type { AppLink, Delivery } from "./app-link.ts";
import { type Channel, type Chat, type Message, SlackError, type StoredFile, type User, type View } from "./chat.ts";
import { problemsOf, stateOf, statesOf, type Values } from "./inputs.ts";
import type { Kept, KeptMap } from "./kept.ts";
import { fileJson, type Json, messageJson, optional, viewJson } from "./web-api.ts";

/** How a gesture of a person ended: `error` is a sentence for that person, `errors` are such sentences by block id of a modal. */
export type Outcome = { readonly ok: true } | { readonly ok: false; readonly error?: string; readonly errors?: Readonly<Record<string, string>> };

export interface CommandGesture {
  readonly user: string;
  readonly channel: string;
  /** "/netcheck" */
  readonly command: string;
  /** All behind the command, as typed. */
  readonly text: string;
}
export interface MessageGesture {
  readonly user: string;
  readonly channel: string;
  /** As typed: `@netcheck` becomes a mention. May be empty beside files. */
  readonly text: string;
  readonly threadTs?: string | undefined;
  /** Ids of files that the same person has uploaded and not shared yet. */
  readonly files?: readonly string[] | undefined;
}
export interface ClickGesture {
  readonly user: string;
  /** The message, or the view, that the element is in. */
  readonly channel?: string | undefined;
  readonly ts?: string | undefined;
  readonly viewId?: string | undefined;
  /** Absent: the first element with that action id. */
  readonly blockId?: string | undefined;
  readonly actionId: string;
  /** What was chosen, for anything but a button. */
  readonly value?: string | readonly string[] | undefined;
  /** What the other inputs around it hold. */
  readonly values?: Values | undefined;
}
/** Something chosen in the menu of a message. */
export interface ShortcutGesture {
  readonly user: string;
  readonly channel: string;
  readonly ts: string;
  readonly callbackId: string;
}
export interface SubmitGesture {
  readonly user: string;
  readonly viewId: string;
  readonly values: Values;
}

interface ResponseUrl {
  readonly user: string;
  readonly channel: string;
  readonly issued: number;
  /** The message it came from; absent for a command. */
  readonly original: { readonly ts: string } | undefined;
  readonly uses: number;
}

const responseUses = 5;
const responseLifeMs = 30 * 60_000;
/** Who tells a person that a command failed. */
export const slackbot: User = { id: "USLACKBOT", name: "slackbot", realName: "Slackbot", title: "", bot: true };

/** What people do in the workspace, told to the app as Slack tells it, and what the app answers. */
export class Interactions {
  readonly #chat: Chat;
  readonly #link: AppLink;
  readonly #secret: string;
  readonly #responses: KeptMap<ResponseUrl>;

  constructor(chat: Chat, link: AppLink, secret: string, kept: Kept) {
    this.#chat = chat;
    this.#link = link;
    this.#secret = secret;
    this.#responses = kept.map("response");
  }

  /** Runs a slash command. Failures are also told in the channel, to that person only, in Slack's own words. */
  async command(gesture: CommandGesture): Promise<Outcome> {
    const channel = this.#chat.channel(gesture.channel);
    const user = this.#chat.user(gesture.user);
    const delivery = await this.#link.interaction({
      token: "local",
      team_id: this.#chat.team.id,
      team_domain: "local",
      channel_id: channel.id,
      channel_name: channel.kind === "im" ? "directmessage" : channel.name,
      user_id: user.id,
      user_name: user.name,
      command: gesture.command,
      text: gesture.text,
      api_app_id: this.#chat.app.id,
      is_enterprise_install: "false",
      response_url: this.#responseUrl(user.id, channel.id, undefined),
      trigger_id: this.#chat.trigger(user.id),
    });
    if (delivery.kind !== "answered" || delivery.status !== 200) {
      const error = `${gesture.command} failed with the error "${delivery.kind === "timeout" ? "operation_timeout" : "dispatch_failed"}"`;
      this.#chat.post({ channel: channel.id, user: slackbot.id, onlyFor: user.id, text: error, anywhere: true });
      return { ok: false, error };
    }
    if (delivery.body.trim() === "") return { ok: true };
    try {
      this.#say(parseObject(delivery.body) ?? { text: delivery.body }, user.id, channel.id);
      return { ok: true };
    } catch (error) {
      const reason = `${gesture.command} failed with the error "${error instanceof SlackError ? error.message : "invalid_response"}"`;
      this.#chat.post({ channel: channel.id, user: slackbot.id, onlyFor: user.id, text: reason, anywhere: true });
      return { ok: false, error: reason };
    }
  }

  /** Posts what a person typed; a mention of the app, or a direct message to it, becomes an event. */
  async message(gesture: MessageGesture): Promise<Outcome> {
    const channel = this.#chat.channel(gesture.channel);
    const text = this.#encode(gesture.text);
    const files = (gesture.files ?? []).map((id) => this.#unshared(id, gesture.user));
    const message = this.#chat.post({
      channel: channel.id,
      user: gesture.user,
      text,
      threadTs: gesture.threadTs,
      ...(files.length === 0 ? {} : { files: files.map(({ id }) => id) }),
    });
    for (const file of files) this.#chat.files.set(file.id, { ...file, shared: true });
    const direct = channel.kind === "im";
    if (!direct && !text.includes(`<@${this.#chat.app.user}>`)) return { ok: true };
    if (!channel.members.includes(this.#chat.app.user)) return { ok: true };
    return this.#event({
      type: direct ? "message" : "app_mention",
      user: gesture.user,
      text,
      ts: message.ts,
      channel: channel.id,
      event_ts: message.ts,
      team: this.#chat.team.id,
      ...(files.length === 0 ? {} : { files: files.map((file) => fileJson(this.#chat, file)), upload: false }),
      ...(direct ? { channel_type: "im" } : {}),
      ...(direct && files.length > 0 ? { subtype: "file_share" } : {}),
      ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
    });
  }

  /** Brings the app into a channel, and says so there. */
  async invite(user: string, id: string): Promise<Outcome> {
    const chat = this.#chat;
    const [by, channel, app] = [chat.user(user), chat.channel(id), chat.user(chat.app.user)];
    if (channel.members.includes(app.id)) return { ok: false, error: `${app.name} is in this channel already.` };
    chat.join(channel.id, app.id);
    chat.post({ channel: channel.id, user: slackbot.id, text: `<@${app.id}> was added to this channel by <@${by.id}>.`, anywhere: true });
    return { ok: true };
  }

  /** Opens the app's Home tab. */
  openHome(user: string): Promise<Outcome> {
    const view = this.#chat.homes.get(user);
    return this.#event({
      type: "app_home_opened",
      user: this.#chat.user(user).id,
      channel: this.#chat.directChannel(user).id,
      tab: "home",
      event_ts: String(this.#chat.clock.now() / 1000),
      ...(view === undefined ? {} : { view: viewJson(this.#chat, view) }),
    });
  }

  /** A button was pressed, or something chosen, in a message or a view. */
  async click(gesture: ClickGesture): Promise<Outcome> {
    const user = this.#chat.user(gesture.user);
    const place = gesture.viewId === undefined ? this.#messagePlace(gesture) : this.#viewPlace(gesture.viewId, gesture);
    const found = findElement(place.blocks, gesture);
    if (found === undefined) return { ok: false, error: "This is no longer there." };
    const action = {
      action_id: found.element.action_id,
      block_id: found.block.block_id,
      ...stateOf(found.element, gesture.value),
      action_ts: String(this.#chat.clock.now() / 1000),
    };
    const delivery = await this.#interact({ type: "block_actions", ...this.#common(user.id), ...place.payload, actions: [action] });
    return acknowledged(delivery) ? { ok: true } : { ok: false, error: clickProblem(delivery) };
  }

  /** A shortcut of the app was chosen in the menu of a message. Messages that one person sees alone have none. */
  async shortcut(gesture: ShortcutGesture): Promise<Outcome> {
    const user = this.#chat.user(gesture.user);
    const message = this.#chat.message(gesture.channel, gesture.ts);
    const channel = this.#chat.channel(message.channel);
    const delivery = await this.#interact({
      type: "message_action",
      ...this.#common(user.id),
      callback_id: gesture.callbackId,
      action_ts: String(this.#chat.clock.now() / 1000),
      message_ts: message.ts,
      channel: nameJson(channel),
      message: messageJson(this.#chat, message, false),
      response_url: this.#responseUrl(user.id, channel.id, message),
    });
    return acknowledged(delivery) ? { ok: true } : { ok: false, error: clickProblem(delivery) };
  }

  /** Sends a modal off. What Slack itself checks is checked first; then the app decides. */
  async submit(gesture: SubmitGesture): Promise<Outcome> {
    const view = this.#topView(gesture.user, gesture.viewId);
    const errors = problemsOf(view.blocks, gesture.values);
    if (Object.keys(errors).length > 0) return { ok: false, errors };
    const payload = viewJson(this.#chat, view, statesOf(view.blocks, gesture.values));
    const delivery = await this.#interact({ type: "view_submission", ...this.#common(view.user), view: payload, response_urls: [] });
    const trouble = { ok: false, error: "We had some trouble connecting. Try again?" } as const;
    if (delivery.kind !== "answered" || !acknowledged(delivery)) return trouble;
    const answer = parseObject(delivery.body) ?? {};
    try {
      switch (answer["response_action"]) {
        case "errors":
          return { ok: false, errors: answer["errors"] as Record<string, string> };
        case "update":
          this.#chat.updateView(view.id, answer["view"]);
          break;
        case "push":
          this.#chat.openModal(view.user, answer["view"], "push");
          break;
        case "clear":
          this.#chat.closeModals(view.user, "all");
          break;
        default:
          this.#chat.closeModals(view.user, "top");
      }
      return { ok: true };
    } catch {
      return trouble;
    }
  }

  /** Closes the top modal, all of them if the app wants that; tells the app if it asked to be told. */
  async closeView(user: string, viewId: string): Promise<Outcome> {
    const view = this.#topView(user, viewId);
    this.#chat.closeModals(user, view.payload["clear_on_close"] === true ? "all" : "top");
    if (view.payload["notify_on_close"] !== true) return { ok: true };
    await this.#interact({ type: "view_closed", ...this.#common(user), view: viewJson(this.#chat, view), is_cleared: false });
    return { ok: true };
  }

  /** The app posts to a response_url. Five times, within 30 minutes. */
  respond(id: string, body: Json): { status: number; body: Json } {
    const response = this.#responses.get(id);
    const refuse = (status: number, error: string, messages: readonly string[] = []) => ({
      status,
      body: { ok: false, error, ...(messages.length === 0 ? {} : { response_metadata: { messages } }) },
    });
    if (response === undefined) return refuse(404, "invalid_url");
    if (this.#chat.clock.now() - response.issued > responseLifeMs) return refuse(404, "expired_url");
    if (response.uses >= responseUses) return refuse(404, "used_url");
    this.#responses.set(id, { ...response, uses: response.uses + 1 });
    try {
      if (response.original !== undefined && (body["delete_original"] === true || body["replace_original"] === true)) {
        const original = this.#chat.visible(response.channel, response.original.ts, response.user);
        if (body["delete_original"] === true) this.#chat.remove(original);
        else this.#chat.edit(original, { text: optional(body, "text"), blocks: body["blocks"] });
      } else this.#say(body, response.user, response.channel);
      return { status: 200, body: { ok: true } };
    } catch (error) {
      if (error instanceof SlackError) return refuse(400, error.code, error.messages);
      throw error;
    }
  }

  // ---- payloads ----------------------------------------------------------------------------------------------------------------------------

  #messagePlace(gesture: ClickGesture): { blocks: readonly Block[]; payload: Json } {
    const message = this.#chat.visible(gesture.channel ?? "", gesture.ts ?? "", gesture.user);
    const channel = this.#chat.channel(message.channel);
    const blocks = message.blocks ?? [];
    const ephemeral = message.onlyFor !== undefined;
    return {
      blocks,
      payload: {
        channel: nameJson(channel),
        container: {
          type: "message",
          message_ts: message.ts,
          channel_id: channel.id,
          is_ephemeral: ephemeral,
          ...(message.threadTs === undefined ? {} : { thread_ts: message.threadTs }),
        },
        // Slack does not show apps their ephemeral messages.
        ...(ephemeral ? {} : { message: messageJson(this.#chat, message, true) }),
        state: { values: statesOf(blocks, gesture.values ?? {}) },
        response_url: this.#responseUrl(gesture.user, channel.id, message),
      },
    };
  }

  #viewPlace(viewId: string, gesture: ClickGesture): { blocks: readonly Block[]; payload: Json } {
    const view = this.#chat.view(viewId);
    if (view.user !== gesture.user) throw new SlackError("not_found");
    return {
      blocks: view.blocks,
      payload: {
        container: { type: "view", view_id: view.id },
        view: viewJson(this.#chat, view, statesOf(view.blocks, gesture.values ?? {})),
      },
    };
  }

  #topView(user: string, viewId: string): View {
    const top = this.#chat.modals(user).at(-1);
    if (top?.id !== viewId) throw new SlackError("not_found");
    return top;
  }

  #common(user: string): Json {
    const { name } = this.#chat.user(user);
    return {
      user: { id: user, username: name, name, team_id: this.#chat.team.id },
      team: { id: this.#chat.team.id, domain: "local" },
      api_app_id: this.#chat.app.id,
      token: "local",
      enterprise: null,
      is_enterprise_install: false,
      trigger_id: this.#chat.trigger(user),
    };
  }

  async #event(event: Json): Promise<Outcome> {
    const delivery = await this.#link.event({
      token: "local",
      team_id: this.#chat.team.id,
      context_team_id: this.#chat.team.id,
      context_enterprise_id: null,
      api_app_id: this.#chat.app.id,
      event,
      type: "event_callback",
      event_id: this.#chat.id("Ev"),
      event_time: Math.floor(this.#chat.clock.now() / 1000),
      authorizations: [{ enterprise_id: null, team_id: this.#chat.team.id, user_id: this.#chat.app.user, is_bot: true, is_enterprise_install: false }],
      is_ext_shared_channel: false,
    });
    return acknowledged(delivery) ? { ok: true } : { ok: false, error: `${this.#chat.app.name} did not take this message (${reason(delivery)}).` };
  }

  #interact(payload: Json): Promise<Delivery> {
    return this.#link.interaction({ payload: JSON.stringify(payload) });
  }

  #responseUrl(user: string, channel: string, original: Message | undefined): string {
    const now = this.#chat.clock.now();
    for (const [old, { issued }] of this.#responses) if (now - issued > 2 * responseLifeMs) this.#responses.delete(old);
    const serial = this.#chat.id("R");
    // Not to be guessed, and yet the same in every run with the same secret.
    const id = `${serial}-${createHmac("sha256", this.#secret).update(serial).digest("hex").slice(0, 24)}`;
    this.#responses.set(id, { user, channel, issued: now, original: original === undefined ? undefined : { ts: original.ts }, uses: 0 });
    return `${this.#chat.url}/response/${id}`;
  }

  /** A message in the shape of a command's answer or a response_url: for that person only, unless it says in_channel. */
  #say(body: Json, user: string, channel: string): void {
    this.#chat.post({
      channel,
      user: this.#chat.app.user,
      text: optional(body, "text"),
      blocks: body["blocks"],
      threadTs: optional(body, "thread_ts"),
      onlyFor: body["response_type"] === "in_channel" ? undefined : user,
      anywhere: true,
    });
  }

  /** @throws SlackError file_not_found */
  #unshared(id: string, user: string): StoredFile {
    const file = this.#chat.files.get(id);
    if (file?.data === undefined || file.user !== user || file.shared) throw new SlackError("file_not_found");
    return file;
  }

  #encode(typed: string): string {
    const escaped = typed.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    return escaped.replace(/(^|[\s(])@([\w.-]+\w)/g, (all, before: string, name: string) => {
      const user = [...this.#chat.users.values()].find((one) => one.name === name);
      return user === undefined ? all : `${before}<@${user.id}>`;
    });
  }
}

/** A channel as interactions name it. */
const nameJson = (channel: Channel): Json => ({ id: channel.id, name: channel.kind === "im" ? "directmessage" : channel.name });

function findElement(blocks: readonly Block[], gesture: ClickGesture): { block: Block; element: Element } | undefined {
  for (const block of blocks) {
    if (gesture.blockId !== undefined && block.block_id !== gesture.blockId) continue;
    const element = elementsOf(block).find((one) => one.action_id === gesture.actionId);
    if (element !== undefined) return { block, element };
  }
  return undefined;
}

function acknowledged(delivery: Delivery): boolean {
  return delivery.kind === "answered" && delivery.status >= 200 && delivery.status < 300;
}

function reason(delivery: Delivery): string {
  return delivery.kind === "answered" ? `status ${delivery.status}` : delivery.kind;
}

/** Slack's own words beside a button whose app did not answer. */
function clickProblem(delivery: Delivery): string {
  if (delivery.kind === "timeout") return "Operation timed out. Apps need to respond within 3 seconds.";
  if (delivery.kind === "unreachable") return "This app could not be reached.";
  return `This app responded with Status Code ${delivery.status}.`;
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
