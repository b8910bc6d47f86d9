import type { WebAPIPlatformError, WebClient } from "@slack/web-api";
import type { Actor, Chat, Message, MessageRef, Place, Store } from "../triage/ports.ts";
import type { DiagramData } from "./diagram.ts";
import { mrkdwn, plain } from "./escape.ts";
import { type Pace, unpaced } from "./pace.ts";
import type { Renderer } from "./render.ts";
import { mayPass, slackError } from "./slack-error.ts";

export interface ChatOptions {
  readonly client: WebClient;
  readonly store: Pick<Store, "remember" | "recall">;
  readonly render: Renderer;
  /** Draws a diagram as a PNG. */
  readonly draw: (title: string, diagram: DiagramData) => Promise<Uint8Array>;
  readonly log: (level: "warn", message: string, fields?: Record<string, unknown>) => void;
  /** When a message may go; at once unless given. Slack's real workspaces count: see pace.ts. */
  readonly pace?: Pace;
}

/** Errors of Slack that mean "the bot cannot speak in this channel". */
const NOT_HERE = new Set(["not_in_channel", "channel_not_found", "is_archived", "user_not_in_channel", "restricted_action"]);
/** A person's id stands for the direct conversation with that person. */
const PERSON = /^[UW][A-Z0-9_]+$/;
/** Slack gives three seconds for a modal, and takes a trigger once: a repeated step comes too late, too. */
const LATE = new Set(["expired_trigger_id", "exchanged_trigger_id"]);
/** Of a thread in which a message is looked for: four thousand replies. */
const MOST_PAGES = 20;
const WORDS: Record<string, string> = {
  not_in_channel: "netcheck is not in this channel: invite it with /invite @netcheck",
  channel_not_found:
    "netcheck cannot see this channel: invite it with /invite @netcheck (a direct conversation between people takes no app: ask in a channel, or write to netcheck itself)",
  user_not_in_channel: "netcheck is not in this channel: invite it with /invite @netcheck",
  is_archived: "the channel is archived: ask in another one",
  restricted_action: "the workspace does not let netcheck post in this channel: ask in another one, or ask an administrator to allow it",
};

/**
 * The Chat port on Slack's Web API. A message that is posted under a key carries the key as metadata, so that after a crash between posting and
 * remembering it is found again instead of posted twice; a file is found by its name.
 */
export function slackChat({ client, store, render, draw, log, pace = unpaced }: ChatOptions): Chat {
  async function find({ channel, thread }: Place, isIt: (message: Posted) => boolean): Promise<MessageRef | undefined> {
    let cursor: string | undefined;
    for (let pages = 1; pages <= MOST_PAGES; pages += 1) {
      const about = { channel, include_all_metadata: true, ...(cursor === undefined ? {} : { cursor }) };
      const reading =
        thread === undefined ? client.conversations.history({ ...about, limit: 100 }) : client.conversations.replies({ ...about, ts: thread, limit: 200 });
      const page = await reading.catch((error: unknown) => {
        throw explain(error, "look for an earlier message", channel);
      });
      const ts = page.messages?.find(isIt)?.ts;
      if (ts !== undefined) return { channel, ts };
      cursor = page.response_metadata?.next_cursor || undefined;
      // a channel begins with its newest message, a thread with its oldest
      if (thread === undefined || cursor === undefined) return undefined;
    }
    return undefined;
  }

  /** Runs `post` once per key; `isIt` knows what it posted. */
  async function once(key: string, place: Place, isIt: (message: Posted) => boolean, post: () => Promise<MessageRef>): Promise<MessageRef> {
    const known = await store.recall(key);
    if (known !== undefined) return known;
    const intent = `${key}/intent`;
    const tried = (await store.recall(intent)) !== undefined;
    if (!tried) await store.remember(intent, { channel: place.channel, ts: "" });
    // what was written to a person cannot be looked for by the person's id: after a crash it may come twice
    const ref = (tried && !PERSON.test(place.channel) ? await find(place, isIt) : undefined) ?? (await post());
    await store.remember(key, ref);
    return ref;
  }

  function blocksOf(message: Message): { text: string; blocks: object[] } {
    try {
      const { text, blocks } = render(message);
      return { text, blocks };
    } catch (error) {
      // a person waits for this: say it plainly rather than not at all
      log("warn", "a message could not be rendered", { template: message.template, problem: (error as Error).message });
      const text = `netcheck could not draw the message "${message.template}": ${(error as Error).message.slice(0, 500)}`;
      return { text: mrkdwn(text), blocks: [{ type: "section", text: { type: "mrkdwn", text: mrkdwn(text) } }] };
    }
  }

  /** To the person alone, as a direct message of the bot. */
  async function direct(actor: Actor, text: string, blocks: object[]): Promise<void> {
    try {
      await pace(actor.id, () => client.chat.postMessage({ channel: actor.id, text, blocks: blocks as never, unfurl_links: false, unfurl_media: false }));
    } catch (error) {
      throw explain(error, "write a direct message", actor.id);
    }
  }

  async function whisper(place: Place, actor: Actor, message: Message): Promise<void> {
    const { text, blocks } = blocksOf(message);
    if (PERSON.test(place.channel)) return direct(actor, text, blocks);
    try {
      const where = { channel: place.channel, user: actor.id, ...(place.thread === undefined || place.fresh === true ? {} : { thread_ts: place.thread }) };
      await pace(place.channel, () => client.chat.postEphemeral({ ...where, text, blocks: blocks as never }));
    } catch (error) {
      const code = slackError(error);
      if (code === undefined || !NOT_HERE.has(code)) throw explain(error, "whisper", place.channel);
      if (place.responseUrl === undefined) return direct(actor, text, blocks);
      const response = await fetch(answerable(place.responseUrl, client), {
        method: "POST",
        redirect: "manual",
        signal: AbortSignal.timeout(10_000),
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ response_type: "ephemeral", replace_original: false, text, blocks }),
      });
      if (!response.ok) throw new Error(`slack: could not answer through the response url: HTTP ${response.status}`);
    }
  }

  return {
    post: (key, place, what) =>
      once(key, place, carries(key), async () => {
        const { text, blocks } = blocksOf(what);
        try {
          const message = {
            channel: place.channel,
            ...(place.thread === undefined ? {} : { thread_ts: place.thread }),
            text,
            blocks: blocks as never,
            metadata: { event_type: "netcheck", event_payload: { key } },
            unfurl_links: false,
            unfurl_media: false,
          };
          const posted = await pace(place.channel, () => client.chat.postMessage(message));
          return { channel: posted.channel ?? place.channel, ts: posted.ts as string };
        } catch (error) {
          throw explain(error, "post", place.channel);
        }
      }),

    async update(ref, message) {
      const { text, blocks } = blocksOf(message);
      try {
        await client.chat.update({ channel: ref.channel, ts: ref.ts, text, blocks: blocks as never });
      } catch (error) {
        throw explain(error, "edit a message", ref.channel);
      }
    },

    async link({ channel, ts }) {
      try {
        return (await client.chat.getPermalink({ channel, message_ts: ts })).permalink;
      } catch (error) {
        throw explain(error, "link a message", channel);
      }
    },

    whisper,

    async modal(triggerId, place, actor, message, late) {
      const { view, blocks } = { view: {}, ...render(message) };
      try {
        if (triggerId === undefined) throw new Error("no trigger");
        await client.views.open({ trigger_id: triggerId, view: { ...view, blocks } as never });
      } catch (error) {
        log("warn", "a modal could not be opened", { problem: (error as Error).message });
        // only of a trigger that is too old it is true that another click helps
        if (late !== undefined && triggerId !== undefined && !tooLate(error)) throw explain(error, "open a window", place.channel);
        await whisper(place, actor, late ?? message);
      }
    },

    async home(actor, message) {
      const { view, blocks } = { view: {}, ...render(message) };
      try {
        await client.views.publish({ user_id: actor.id, view: { ...view, blocks } as never });
      } catch (error) {
        throw explain(error, "show the Home tab", actor.id);
      }
    },

    async upload(key, place, file) {
      // Slack gives a shared file no metadata of ours; its name holds the incident
      await once(
        key,
        place,
        ({ files }) => files?.some(({ name }) => name === file.name) ?? false,
        async () => {
          try {
            const { name: filename, title, content } = file;
            const what = typeof content === "string" ? { content } : { file: Buffer.from(await draw(title, content)), alt_text: altText(title, content) };
            const where = place.thread === undefined ? { channel_id: place.channel } : { channel_id: place.channel, thread_ts: place.thread };
            await client.filesUploadV2({ ...where, filename, title, ...what });
            return { channel: place.channel, ts: "" };
          } catch (error) {
            throw explain(error, "upload a file", place.channel);
          }
        },
      );
    },
  };
}

/** What the picture says, for those who do not see it. */
const altText = (title: string, { path, breakAt, note }: DiagramData): string =>
  plain(`${title}. ${path.join(", then ")}. It breaks at ${path[breakAt - 1]}: ${note}.`);

/** Where Slack takes answers to a request. */
const HOOKS = new Set(["hooks.slack.com", "hooks.slack-gov.com"]);

/** The address for an answer: it came in a request, so it may be Slack's own only, or that of the API that the client talks to. @throws if it leads elsewhere */
function answerable(responseUrl: string, client: WebClient): URL {
  const url = URL.canParse(responseUrl) ? new URL(responseUrl) : undefined;
  const own =
    url !== undefined && (url.origin === new URL(client.slackApiUrl).origin || (url.protocol === "https:" && url.port === "" && HOOKS.has(url.hostname)));
  if (!own || url.username !== "" || url.password !== "") throw new Error("slack: the response url leads elsewhere than to Slack, so nothing was sent to it");
  return url;
}

/** The part of a posted message that tells which one it is. */
interface Posted {
  readonly metadata?: { readonly event_payload?: object } | undefined;
  readonly files?: readonly { readonly name?: string | undefined }[] | undefined;
}

const carries =
  (key: string) =>
  ({ metadata }: Posted): boolean =>
    (metadata?.event_payload as { key?: unknown } | undefined)?.key === key;

function tooLate(error: unknown): boolean {
  const code = slackError(error);
  // Slack says it in two ways: slackapi/bolt-python#434 has the second
  const { messages } = code === undefined ? {} : ((error as WebAPIPlatformError).data.response_metadata ?? {});
  return LATE.has(code ?? "") || (code === "invalid_arguments" && (messages ?? []).some((message) => /trigger_id` expired/.test(message)));
}

/** `slack: could not <verb> in <channel>: <cause>`; `retryable` where waiting may help. */
function explain(error: unknown, verb: string, channel: string): Error {
  const code = slackError(error);
  const words = code === undefined ? (error as Error).message : (WORDS[code] ?? code);
  return Object.assign(new Error(`slack: could not ${verb} in ${channel}: ${words}`, { cause: error }), { retryable: mayPass(code) });
}
