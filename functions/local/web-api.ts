import { limits } from "../slack/block-kit.ts";
import { type Channel, type Chat, type Message, SlackError, type StoredFile, type User, type View } from "./chat.ts";

/** Arguments of a call: strings from a form (with JSON in some), or any JSON value from a JSON body. */
export type Arguments = Readonly<Record<string, unknown>>;
export type Json = Record<string, unknown>;

type Method = (chat: Chat, args: Arguments) => Json;

/** The methods of Slack's Web API that exist here, by name. Each returns the answer without `ok`, or throws SlackError. */
export const methods: Readonly<Record<string, Method>> = {
  "api.test": (_chat, args) => ({ args }),

  "auth.test": (chat) => ({
    url: `${chat.url}/`,
    team: chat.team.name,
    user: chat.app.name,
    team_id: chat.team.id,
    user_id: chat.app.user,
    bot_id: chat.app.bot,
    is_enterprise_install: false,
  }),

  "bots.info": (chat, args) => {
    if (optional(args, "bot") !== chat.app.bot) throw new SlackError("bot_not_found");
    return { bot: { id: chat.app.bot, app_id: chat.app.id, user_id: chat.app.user, name: chat.app.name, deleted: false, updated: 0, icons: {} } };
  },

  "chat.postMessage": (chat, args) => {
    // A user's id as channel means the direct conversation with that user.
    const to = required(args, "channel");
    const channel = chat.users.has(to) ? chat.directChannel(to).id : to;
    const message = chat.post({
      channel,
      user: chat.app.user,
      text: optional(args, "text"),
      blocks: json(args, "blocks", "invalid_blocks_format"),
      threadTs: optional(args, "thread_ts"),
      metadata: metadata(args),
    });
    return { channel: message.channel, ts: message.ts, message: messageJson(chat, message, true) };
  },

  "chat.postEphemeral": (chat, args) => {
    const channel = chat.channel(required(args, "channel"));
    const threadTs = optional(args, "thread_ts");
    const active = threadTs === undefined || chat.messages(channel.id).some((one) => one.threadTs === threadTs && one.onlyFor === undefined);
    const message = chat.post({
      channel: required(args, "channel"),
      user: chat.app.user,
      onlyFor: required(args, "user"),
      text: optional(args, "text"),
      blocks: json(args, "blocks", "invalid_blocks_format"),
      threadTs,
    });
    // Slack takes it, and shows it to nobody
    if (!active) chat.remove(message);
    return { message_ts: message.ts };
  },

  "chat.update": (chat, args) => {
    const text = optional(args, "text");
    if ((text ?? "").length > limits.updateText) throw new SlackError("msg_too_long");
    const message = chat.message(required(args, "channel"), required(args, "ts"));
    if (message.user !== chat.app.user) throw new SlackError("cant_update_message");
    const blocks = json(args, "blocks", "invalid_blocks_format");
    if (text === undefined && blocks === undefined && args["metadata"] === undefined) throw new SlackError("no_text");
    const now = chat.edit(message, { text, blocks, metadata: metadata(args) });
    return { channel: now.channel, ts: now.ts, text: now.text, message: messageJson(chat, now, true) };
  },

  "chat.delete": (chat, args) => {
    const message = chat.message(required(args, "channel"), required(args, "ts"));
    if (message.user !== chat.app.user) throw new SlackError("cant_delete_message");
    chat.remove(message);
    return { channel: message.channel, ts: message.ts };
  },

  "chat.getPermalink": (chat, args) => {
    const message = chat.message(required(args, "channel"), required(args, "message_ts"));
    return { channel: message.channel, permalink: permalink(chat, message) };
  },

  "conversations.history": (chat, args) => {
    const channel = chat.channel(required(args, "channel"));
    const oldest = optional(args, "oldest") ?? "";
    const latest = optional(args, "latest") ?? "~";
    const inclusive = flag(args, "inclusive");
    const found = chat
      .messages(channel.id)
      .filter((one) => one.onlyFor === undefined && one.threadTs === undefined)
      .filter((one) => (inclusive ? one.ts >= oldest && one.ts <= latest : one.ts > oldest && one.ts < latest))
      .toReversed();
    const page = paged(found, args, 100);
    return { messages: page.items.map((one) => messageJson(chat, one, flag(args, "include_all_metadata"))), ...page.rest };
  },

  "conversations.replies": (chat, args) => {
    const channel = chat.channel(required(args, "channel"));
    const ts = required(args, "ts");
    const message = chat.messages(channel.id).find((one) => one.ts === ts);
    const page = paged(chat.thread(channel.id, message?.threadTs ?? ts), args, 1000);
    return { messages: page.items.map((one) => messageJson(chat, one, flag(args, "include_all_metadata"))), ...page.rest };
  },

  "conversations.info": (chat, args) => ({ channel: channelJson(chat, chat.channel(required(args, "channel"))) }),

  "conversations.list": (chat, args) => {
    const types = (optional(args, "types") ?? "public_channel").split(",");
    const found = chat.channels.filter((one) => types.includes(one.kind === "im" ? "im" : "public_channel"));
    const page = paged(found, args, 100);
    return { channels: page.items.map((one) => channelJson(chat, one)), response_metadata: page.rest.response_metadata };
  },

  "conversations.open": (chat, args) => {
    const users = (optional(args, "users") ?? "").split(",").filter((one) => one !== "");
    const existing = optional(args, "channel");
    if (existing !== undefined) return { channel: channelJson(chat, chat.channel(existing)) };
    const [user] = users;
    if (user === undefined || users.length > 1) throw new SlackError(user === undefined ? "users_list_not_supplied" : "method_not_supported_for_channel_type");
    return { channel: channelJson(chat, chat.directChannel(user)) };
  },

  "conversations.members": (chat, args) => {
    const page = paged(chat.channel(required(args, "channel")).members, args, 100);
    return { members: page.items, response_metadata: page.rest.response_metadata };
  },

  "users.info": (chat, args) => ({ user: userJson(chat, chat.user(required(args, "user"))) }),

  "users.list": (chat, args) => {
    const page = paged([...chat.users.values()], args, 1000);
    return { members: page.items.map((one) => userJson(chat, one)), response_metadata: page.rest.response_metadata };
  },

  "usergroups.list": (chat) => ({
    usergroups: chat.groups.map((one) => ({
      id: one.id,
      team_id: chat.team.id,
      handle: one.handle,
      name: one.handle,
      users: one.users,
      user_count: one.users.length,
    })),
  }),

  "usergroups.users.list": (chat, args) => {
    const group = chat.groups.find((one) => one.id === required(args, "usergroup"));
    if (group === undefined) throw new SlackError("no_such_subteam");
    return { users: group.users };
  },

  "views.open": (chat, args) => {
    const view = json(args, "view", "invalid_arguments");
    return { view: viewJson(chat, chat.openModal(chat.spendTrigger(required(args, "trigger_id")), view)) };
  },

  "views.push": (chat, args) => {
    const view = json(args, "view", "invalid_arguments");
    return { view: viewJson(chat, chat.openModal(chat.spendTrigger(required(args, "trigger_id")), view, "push")) };
  },

  "views.update": (chat, args) => {
    const id = optional(args, "view_id") ?? required(args, "external_id");
    return { view: viewJson(chat, chat.updateView(id, json(args, "view", "invalid_arguments"), optional(args, "hash"))) };
  },

  "views.publish": (chat, args) => ({ view: viewJson(chat, chat.publishHome(required(args, "user_id"), json(args, "view", "invalid_arguments"))) }),

  "files.getUploadURLExternal": (chat, args) => {
    const name = required(args, "filename");
    const length = Number(required(args, "length"));
    if (!Number.isInteger(length) || length <= 0) throw new SlackError("invalid_arguments", ["[ERROR] must be greater than 0 [json-pointer:/length]"]);
    const id = chat.id("F");
    const altText = optional(args, "alt_text");
    const file = { id, name, title: name, user: chat.app.user, created: seconds(chat), length, shared: false };
    chat.files.set(id, altText === undefined ? file : { ...file, altText });
    return { upload_url: `${chat.url}/upload/${id}`, file_id: id };
  },

  "files.completeUploadExternal": (chat, args) => {
    const listed = json(args, "files", "invalid_arguments");
    if (!Array.isArray(listed) || listed.length === 0)
      throw new SlackError("invalid_arguments", ["[ERROR] missing required field: files [json-pointer:/files]"]);
    const files = listed.map((one: Json) => {
      const file = chat.files.get(String(one["id"]));
      if (file === undefined || file.data === undefined) throw new SlackError("file_not_found");
      return { ...file, title: typeof one["title"] === "string" ? one["title"] : file.name };
    });
    const channels = (optional(args, "channel_id") ?? optional(args, "channels") ?? "").split(",").filter((one) => one !== "");
    for (const channel of channels) {
      chat.post({
        channel,
        user: chat.app.user,
        text: optional(args, "initial_comment"),
        blocks: json(args, "blocks", "invalid_blocks_format"),
        threadTs: optional(args, "thread_ts"),
        files: files.map((one) => one.id),
      });
    }
    for (const file of files) chat.files.set(file.id, { ...file, shared: channels.length > 0 });
    chat.changed();
    return { files: files.map((one) => fileJson(chat, one)) };
  },

  "files.info": (chat, args) => {
    const file = chat.files.get(required(args, "file"));
    if (file?.data === undefined) throw new SlackError("file_not_found");
    return { file: fileJson(chat, file) };
  },

  "reactions.add": (chat, args) => {
    const message = chat.message(required(args, "channel"), required(args, "timestamp"));
    const name = required(args, "name");
    const reactions = message.reactions ?? [];
    const mine = chat.app.user;
    if (reactions.some((one) => one.name === name && one.users.includes(mine))) throw new SlackError("already_reacted");
    const others = reactions.filter((one) => one.name !== name);
    const users = reactions.find((one) => one.name === name)?.users ?? [];
    chat.edit(message, { reactions: [...others, { name, users: [...users, mine] }] });
    return {};
  },
};

// ---- shapes ----------------------------------------------------------------------------------------------------------------------------------

/** A message as Slack sends it. `withMetadata`: as if asked for with include_all_metadata. */
export function messageJson(chat: Chat, message: Message, withMetadata: boolean): Json {
  const answers =
    message.threadTs === undefined ? chat.messages(message.channel).filter((one) => one.threadTs === message.ts && one.onlyFor === undefined) : [];
  const authors = [...new Set(answers.map((one) => one.user))];
  const byApp = message.user === chat.app.user;
  return {
    type: "message",
    ...(message.deleted === true ? { subtype: "tombstone", hidden: true } : {}),
    user: message.user,
    ts: message.ts,
    team: chat.team.id,
    text: message.text,
    ...(byApp
      ? { bot_id: chat.app.bot, app_id: chat.app.id, bot_profile: { id: chat.app.bot, app_id: chat.app.id, name: chat.app.name, team_id: chat.team.id } }
      : {}),
    ...(message.blocks === undefined ? {} : { blocks: message.blocks }),
    ...(message.threadTs === undefined
      ? {}
      : { thread_ts: message.threadTs, parent_user_id: chat.messages(message.channel).find((one) => one.ts === message.threadTs)?.user }),
    ...(answers.length === 0
      ? {}
      : { thread_ts: message.ts, reply_count: answers.length, reply_users_count: authors.length, reply_users: authors, latest_reply: answers.at(-1)?.ts }),
    ...(message.edited === undefined ? {} : { edited: { user: message.user, ts: message.edited } }),
    ...(message.files === undefined ? {} : { files: message.files.flatMap((id) => chat.files.get(id) ?? []).map((file) => fileJson(chat, file)) }),
    ...(message.reactions === undefined ? {} : { reactions: message.reactions.map((one) => ({ ...one, count: one.users.length })) }),
    ...(withMetadata && message.metadata !== undefined ? { metadata: message.metadata } : {}),
    ...(message.onlyFor === undefined ? {} : { is_ephemeral: true }),
  };
}

/** A view as Slack sends it, `values` being what its inputs hold. */
export function viewJson(chat: Chat, view: View, values: Json = {}): Json {
  return {
    id: view.id,
    team_id: chat.team.id,
    app_id: chat.app.id,
    app_installed_team_id: chat.team.id,
    bot_id: chat.app.bot,
    title: null,
    submit: null,
    close: null,
    private_metadata: "",
    callback_id: "",
    external_id: "",
    clear_on_close: false,
    notify_on_close: false,
    ...view.payload,
    blocks: view.blocks,
    state: { values },
    hash: view.hash,
    root_view_id: view.rootId,
    previous_view_id: view.previousId ?? null,
  };
}

/** The address of a message in this workspace. */
export function permalink(chat: Chat, message: Message): string {
  const path = `${chat.url}/archives/${message.channel}/p${message.ts.replace(".", "")}`;
  return message.threadTs === undefined ? path : `${path}?thread_ts=${message.threadTs}&cid=${message.channel}`;
}

function channelJson(chat: Chat, channel: Channel): Json {
  const im = channel.kind === "im";
  return {
    id: channel.id,
    ...(im ? { user: channel.members.find((one) => one !== chat.app.user) } : { name: channel.name, name_normalized: channel.name }),
    is_channel: !im,
    is_im: im,
    is_private: im,
    is_archived: false,
    is_general: false,
    is_shared: false,
    is_ext_shared: false,
    is_org_shared: false,
    is_member: channel.members.includes(chat.app.user),
    num_members: channel.members.length,
    context_team_id: chat.team.id,
    topic: { value: channel.topic, creator: "", last_set: 0 },
    purpose: { value: "", creator: "", last_set: 0 },
  };
}

function userJson(chat: Chat, user: User): Json {
  return {
    id: user.id,
    team_id: chat.team.id,
    name: user.name,
    real_name: user.realName,
    deleted: false,
    is_bot: user.bot === true,
    is_admin: false,
    is_app_user: false,
    tz: "Etc/UTC",
    tz_label: "Coordinated Universal Time",
    tz_offset: 0,
    profile: {
      real_name: user.realName,
      display_name: user.name,
      title: user.title,
      team: chat.team.id,
      ...(user.id === chat.app.user ? { bot_id: chat.app.bot, api_app_id: chat.app.id } : { email: `${user.name}@example.com` }),
    },
  };
}

/** A file as Slack sends it; its address wants the bot's token. */
export function fileJson(chat: Chat, file: StoredFile): Json {
  const url = `${chat.url}/files/${file.id}/${encodeURIComponent(file.name)}`;
  return {
    id: file.id,
    name: file.name,
    title: file.title,
    user: file.user,
    created: file.created,
    timestamp: file.created,
    size: file.data?.length ?? file.length,
    mode: "hosted",
    is_external: false,
    filetype: file.name.includes(".") ? file.name.slice(file.name.lastIndexOf(".") + 1) : "text",
    url_private: url,
    url_private_download: url,
    permalink: url,
  };
}

// ---- arguments -------------------------------------------------------------------------------------------------------------------------------

/** An argument as text; absent or empty: undefined. @throws SlackError invalid_arguments for anything but text, numbers and truth values */
export function optional(args: Arguments, name: string): string | undefined {
  const value = args[name];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return `${value}`;
  throw new SlackError("invalid_arguments", [`[ERROR] must be a string [json-pointer:/${name}]`]);
}

function required(args: Arguments, name: string): string {
  const value = optional(args, name);
  if (value === undefined) throw new SlackError("invalid_arguments", [`[ERROR] missing required field: ${name} [json-pointer:/${name}]`]);
  return value;
}

function flag(args: Arguments, name: string): boolean {
  const value = args[name];
  return value === true || value === "true" || value === "1" || value === 1;
}

/** A JSON argument: text in a form, the value itself in a JSON body. Absent: undefined. @throws SlackError with `code` if it cannot be read */
function json(args: Arguments, name: string, code: string): unknown {
  const value = args[name];
  if (typeof value !== "string") return value ?? undefined;
  if (value === "") return undefined;
  try {
    return JSON.parse(value);
  } catch {
    throw new SlackError(code, [`[ERROR] not valid JSON [json-pointer:/${name}]`]);
  }
}

function metadata(args: Arguments): unknown {
  const value = json(args, "metadata", "invalid_metadata_format");
  if (value === undefined) return undefined;
  const shape = value as { event_type?: unknown; event_payload?: unknown };
  if (typeof shape.event_type !== "string" || typeof shape.event_payload !== "object") throw new SlackError("invalid_metadata_format");
  if (JSON.stringify(shape.event_payload).length > 8000) throw new SlackError("metadata_too_large");
  return value;
}

/** One page of a list: `limit` items from `cursor` on. @throws SlackError invalid_cursor, invalid_limit */
function paged<T>(items: readonly T[], args: Arguments, most: number): { items: readonly T[]; rest: { has_more: boolean; response_metadata: Json } } {
  const limit = Number(optional(args, "limit") ?? most);
  if (!Number.isInteger(limit) || limit < 1) throw new SlackError("invalid_limit");
  const cursor = optional(args, "cursor");
  const from = cursor === undefined ? 0 : Number(/^offset:(\d+)$/.exec(Buffer.from(cursor, "base64").toString())?.[1] ?? Number.NaN);
  if (Number.isNaN(from)) throw new SlackError("invalid_cursor");
  const to = from + Math.min(limit, 1000);
  const more = to < items.length;
  return {
    items: items.slice(from, to),
    rest: { has_more: more, response_metadata: { next_cursor: more ? Buffer.from(`offset:${to}`).toString("base64") : "" } },
  };
}

function seconds(chat: Chat): number {
  return Math.floor(chat.clock.now() / 1000);
}
