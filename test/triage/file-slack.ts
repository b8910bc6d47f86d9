import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { WebClient } from "@slack/web-api";

/** A message as Slack keeps it, as far as netcheck looks at it. */
export interface Posted {
  readonly kind: "post" | "upload";
  readonly channel: string;
  readonly thread?: string;
  readonly ts: string;
  readonly text: string;
  readonly metadata?: { readonly event_payload: { readonly key: string } };
  readonly files?: readonly { readonly name: string }[];
}
interface Args {
  readonly channel: string;
  readonly channel_id: string;
  readonly ts: string;
  readonly thread_ts?: string;
  readonly text: string;
  readonly metadata: { event_payload: { key: string } };
  readonly filename: string;
}

/** A Slack whose channel is a file, so that it outlives netcheck. Posts whatever it is told to, as often as it is told to. */
export class FileSlack {
  readonly client: WebClient;
  readonly #file: string;

  /** @param reached called before and after every call */
  constructor(file: string, reached: (point: string) => void) {
    this.#file = file;
    const call =
      <T>(name: string, effect: (args: Args) => T) =>
      async (args: Args): Promise<T> => {
        reached(`before slack ${name}`);
        const result = effect(args);
        reached(`after slack ${name}`);
        return result;
      };
    const post = ({ channel, thread_ts, text, metadata }: Args) =>
      this.#add({ kind: "post", channel, ...(thread_ts === undefined ? {} : { thread: thread_ts }), text, metadata });
    const upload = ({ channel_id: channel, thread_ts, filename }: Args) =>
      this.#add({ kind: "upload", channel, ...(thread_ts === undefined ? {} : { thread: thread_ts }), text: "", files: [{ name: filename }] });
    this.client = {
      conversations: {
        history: call("history", ({ channel }) => ({ messages: this.messages.filter((one) => one.channel === channel && one.thread === undefined) })),
        replies: call("replies", ({ channel, ts }) => ({ messages: this.messages.filter((one) => one.channel === channel && one.thread === ts) })),
      },
      chat: {
        postMessage: call("postMessage", post),
        update: call("update", ({ ts, text }) => appendFileSync(`${file}.edits`, `${JSON.stringify({ ts, text })}\n`)),
        postEphemeral: call("postEphemeral", ({ text }) => appendFileSync(`${file}.whispers`, `${JSON.stringify(text)}\n`)),
      },
      filesUploadV2: call("filesUploadV2", upload),
    } as unknown as WebClient;
  }

  /** All there is, in order. */
  get messages(): Posted[] {
    return existsSync(this.#file)
      ? readFileSync(this.#file, "utf8")
          .trim()
          .split("\n")
          .map((line) => JSON.parse(line) as Posted)
      : [];
  }

  /** The keys of what was posted, and the names of uploaded files, in order. */
  get keys(): string[] {
    return this.messages.map((one) => one.metadata?.event_payload.key ?? one.files?.[0]?.name ?? "?");
  }

  #add(message: Omit<Posted, "ts">): { channel: string; ts: string } {
    const ts = `${this.messages.length + 1}.000`;
    appendFileSync(this.#file, `${JSON.stringify({ ...message, ts })}\n`);
    return { channel: message.channel, ts };
  }
}
