import type { WebClient } from "@slack/web-api";

/** A message as everybody (or one person) sees it. */
export interface Seen {
  readonly channel: string;
  readonly ts: string;
  readonly thread: string | undefined;
  readonly onlyFor: string | undefined;
  /** What it was posted under; the file's name of an upload. */
  readonly key: string;
  text: string;
  blocks: readonly Block[];
}
export interface Block {
  readonly type: string;
  readonly block_id?: string;
  readonly label?: { readonly text?: string };
  readonly element?: { readonly action_id?: string };
  readonly elements?: readonly { readonly action_id?: string; readonly value?: string }[];
}
export interface View {
  readonly user: string;
  readonly callback: string;
  readonly metadata: string;
  readonly blocks: readonly Block[];
}

/** How a call goes wrong: `refused` (429) and `failed` (500, no connection) before anything is done, `lost` after it. */
export type SlackTrouble = "refused" | "failed" | "lost";

interface Args {
  readonly channel: string;
  readonly channel_id: string;
  readonly user: string;
  readonly usergroup: string;
  readonly ts: string;
  readonly thread_ts?: string;
  /** An upload has none. */
  readonly text?: string;
  readonly blocks?: readonly Block[];
  readonly metadata?: { readonly event_payload: { readonly key: string } };
  readonly filename: string;
  readonly trigger_id: string;
  readonly view: { readonly callback_id?: string; readonly private_metadata?: string; readonly blocks: readonly Block[] };
}

/** Slack's Web API in memory, as far as netcheck uses it: posts whatever it is told to, as often as it is told to. */
export class SlackWorld {
  readonly messages: Seen[] = [];
  /** Modals in the order in which they were opened. */
  readonly views: View[] = [];
  readonly groups: Record<string, readonly string[]> = {};
  /** Who holds a trigger. */
  readonly triggers = new Map<string, string>();
  /** Asked before each call by the method's name. */
  trouble: (method: string) => SlackTrouble | undefined = () => undefined;
  readonly client: WebClient;

  constructor() {
    const call =
      <T>(method: string, effect: (args: Args) => T) =>
      async (args: Args): Promise<T> => {
        const trouble = this.trouble(method);
        if (trouble === "refused") throw Object.assign(new Error("A rate-limit has been reached"), { code: "slack_webapi_rate_limited_error" });
        if (trouble === "failed") throw new TypeError("fetch failed");
        const result = effect(args);
        if (trouble === "lost") throw new TypeError("fetch failed");
        return result;
      };
    const isIn =
      ({ channel, ts }: Pick<Args, "channel" | "ts">, thread: boolean) =>
      (one: Seen): boolean =>
        one.channel === channel && one.onlyFor === undefined && (thread ? one.thread === ts || one.ts === ts : one.thread === undefined);
    const told = ({ key, ts }: Seen) => ({ ts, metadata: { event_payload: { key } }, files: [{ name: key }] });
    this.client = {
      conversations: {
        history: call("conversations.history", (args) => ({ messages: this.messages.filter(isIn(args, false)).map(told) })),
        replies: call("conversations.replies", (args) => ({ messages: this.messages.filter(isIn(args, true)).map(told) })),
      },
      chat: {
        postMessage: call("chat.postMessage", (args) => this.#add(args, args.channel, args.metadata?.event_payload.key ?? "", undefined)),
        postEphemeral: call("chat.postEphemeral", (args) => this.#add(args, args.channel, "", args.user)),
        update: call("chat.update", ({ channel, ts, text, blocks = [] }) => {
          const message = this.messages.find((one) => one.channel === channel && one.ts === ts);
          if (message === undefined)
            throw Object.assign(new Error("message_not_found"), { code: "slack_webapi_platform_error", data: { error: "message_not_found" } });
          Object.assign(message, { text, blocks });
          return {};
        }),
      },
      views: {
        open: call("views.open", ({ trigger_id, view }) => {
          const user = this.triggers.get(trigger_id);
          if (user === undefined)
            throw Object.assign(new Error("expired_trigger_id"), { code: "slack_webapi_platform_error", data: { error: "expired_trigger_id" } });
          // a trigger opens one modal
          this.triggers.delete(trigger_id);
          this.views.push({ user, callback: view.callback_id ?? "", metadata: view.private_metadata ?? "", blocks: view.blocks });
          return {};
        }),
      },
      usergroups: { users: { list: call("usergroups.users.list", ({ usergroup }) => ({ users: this.groups[usergroup] ?? [] })) } },
      filesUploadV2: call("filesUploadV2", (args) => this.#add(args, args.channel_id, args.filename, undefined)),
    } as unknown as WebClient;
  }

  /** The public messages that were posted under a key. */
  posted(key: string): readonly Seen[] {
    return this.messages.filter((one) => one.key === key && one.onlyFor === undefined);
  }

  #add({ text = "", blocks = [], thread_ts: thread }: Args, channel: string, key: string, onlyFor: string | undefined): { channel: string; ts: string } {
    const ts = `${this.messages.length + 1}.000`;
    this.messages.push({ channel, ts, thread, onlyFor, key, text, blocks });
    return { channel, ts };
  }
}

/** The button of that name on a message; its value goes back to the app when it is pressed. */
export function buttonOf(message: Seen, action: string): string | undefined {
  for (const { elements = [] } of message.blocks) for (const { action_id, value } of elements) if (action_id === action) return value;
  return undefined;
}
