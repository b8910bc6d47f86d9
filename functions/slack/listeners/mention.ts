import type { AllMiddlewareArgs, SlackEventMiddlewareArgs } from "@slack/bolt";
import type { SharedFile, Work, WorkEvent } from "../../triage/ports.ts";
import { actorOf } from "../person.ts";
import { shortHash } from "../short-hash.ts";
import { parseChatCommand } from "./chat-command.ts";
import { parseCommand, parseReport, triageRequest } from "./netcheck-command.ts";
import { parseNodes } from "./nodes-command.ts";

/**
 * A message with a mention of the bot, or a direct one: files, pasted outputs, or the name of a target. Must answer within 3 seconds, so it only reads
 * the words and hands the work over.
 */
export function mention(work: Work) {
  return async function mentioned({ event, body }: SlackEventMiddlewareArgs<"app_mention" | "message"> & AllMiddlewareArgs): Promise<void> {
    const asked = readMention(event as unknown as MentionEvent, body);
    if (asked !== undefined) await work.start(asked.request.incident, asked);
  };
}

/** What is used of an event; Bolt's types lack the files of a mention. Signed by Slack, written by anyone. */
export interface MentionEvent {
  readonly type: string;
  readonly subtype?: string;
  readonly channel_type?: string;
  readonly user?: string;
  /** The workspace of who wrote it, in a channel that companies share; one of these. */
  readonly user_team?: string;
  readonly source_team?: string;
  readonly team?: string;
  readonly bot_id?: string;
  readonly text?: string;
  readonly ts: string;
  readonly thread_ts?: string;
  readonly channel: string;
  readonly files?: readonly FileObject[];
}
interface FileObject {
  readonly id?: string;
  readonly name?: string | null;
  readonly size?: number;
  readonly url_private?: string;
  readonly url_private_download?: string;
}

/** Slack's own limit for one message. */
const MAX_FILES = 10;
/** Kinds of messages that a person writes; the others are changes and notices. */
const WRITTEN = new Set([undefined, "file_share", "thread_broadcast"]);

type Asked = Extract<WorkEvent, { kind: "triage" | "paste" | "report" | "command" | "fleet" }>;

/**
 * What a message asks for; undefined if it is nothing to us. Slack tells a message with a file and a mention as `app_mention`, as `message`, or as both:
 * they are one execution, named by team, channel and time of the message.
 */
export function readMention(
  event: MentionEvent,
  body: {
    readonly team_id?: string;
    readonly context_enterprise_id?: string | null;
    readonly is_ext_shared_channel?: boolean;
    readonly authorizations?: readonly { readonly user_id?: string }[];
  },
): Asked | undefined {
  const { user, channel, ts } = event;
  // not from apps, ours included: two bots would talk for ever
  if (user === undefined || event.bot_id !== undefined || !WRITTEN.has(event.subtype)) return undefined;
  const bot = body.authorizations?.[0]?.user_id;
  const said = event.text ?? "";
  const direct = event.channel_type === "im";
  if (event.type === "message" && !direct && !(event.subtype === "file_share" && bot !== undefined && said.includes(`<@${bot}`))) return undefined;

  const team = body.team_id ?? "";
  const own = body.is_ext_shared_channel === true ? (event.user_team ?? event.source_team ?? event.team) : undefined;
  const incident = `inc-${shortHash([team, channel, ts], 12)}`;
  const asker = {
    incident,
    requester: actorOf(user, team, body.context_enterprise_id ?? undefined, own),
    place: event.thread_ts === undefined ? { channel, thread: ts, fresh: true as const } : { channel, thread: event.thread_ts },
  };
  const words = withoutMention(said, bot);
  const files = (event.files ?? []).slice(0, MAX_FILES).map(sharedFile);
  if (words.includes("\n")) return { kind: "paste", request: { ...asker, files, text: words, problem: "" } };
  if (files.length > 0) return { kind: "paste", request: { ...asker, files, text: "", problem: "" } };
  const report = parseReport(words);
  if (report?.kind === "report") return { kind: "report", request: { ...asker, about: report.about } };
  const nodes = parseNodes(words);
  if (nodes?.kind === "nodes") return { kind: "fleet", request: { ...asker, ask: nodes.ask } };
  const command = parseChatCommand(words);
  if (command !== undefined) return { kind: "command", request: { ...asker, text: command.text } };
  const asked = report ?? nodes ?? parseCommand(words);
  // one line that is no question may be one that was pasted: what reads outputs tells
  if (asked.kind === "help") return { kind: "paste", request: { ...asker, files, text: asked.problem === "" ? "" : words, problem: asked.problem } };
  return { kind: "triage", request: triageRequest(asked, asker) };
}

function sharedFile({ id, name, size, url_private_download: download, url_private: view }: FileObject): SharedFile {
  const url = download ?? view;
  return {
    id: id ?? "",
    name: (name ?? "").slice(0, 200) || "a file without a name",
    ...(typeof size === "number" ? { size } : {}),
    ...(url === undefined ? {} : { url }),
  };
}

/** What was typed, without the mention of the bot (the first mention, if Slack does not tell which one it is). */
function withoutMention(text: string, bot: string | undefined): string {
  const one = bot === undefined ? /<@[UW][A-Z0-9_]+(?:\|[^<>]*)?>/ : new RegExp(`<@${bot.replaceAll(/\W/g, "")}(?:\\|[^<>]*)?>`, "g");
  return typed(text.replace(one, " "))
    .replace(/^[ \t]*[:,]?[ \t]*\n?/, "")
    .trimEnd();
}

/** Slack's encoding of a message undone: links and mentions are what is shown of them, code blocks stand on lines of their own. */
function typed(text: string): string {
  return (
    text
      .replaceAll("\u00a0", " ")
      .replaceAll(/<(?:[^<>|]*)\|([^<>]*)>/g, "$1")
      .replaceAll(/<((?:https?|mailto|tel):[^<>|]*)>/g, "$1")
      // what stands in a block is read line by line, and its fences with it; a block that was pasted with the name of its language keeps it
      .replaceAll(/(?<=[^\n])```/g, "\n```")
      .replaceAll(/```(?=[^\n])(?![a-z]{1,12}\n)/g, "```\n")
      .replaceAll("&lt;", "<")
      .replaceAll("&gt;", ">")
      // last: "&amp;lt;" was typed as "&lt;"
      .replaceAll("&amp;", "&")
  );
}
