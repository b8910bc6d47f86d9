import { join } from "node:path";
import type { Diagram } from "../../functions/rules/diagnosis.ts";
import { loadTemplates, type Renderer } from "../../functions/slack/render.ts";
import type { Actor, Chat, Message, MessageRef, Place } from "../../functions/triage/ports.ts";
import { root } from "./runbooks.ts";

export type Call = "home" | "post" | "update" | "whisper" | "modal" | "upload";

/** A chat that remembers what it was told. Every message is drawn with the real templates, so that one that Slack would refuse fails the test. */
export class RecordingChat implements Chat {
  /** By key, in order; what is there now, edits included. */
  readonly posts = new Map<string, { readonly place: Place; readonly ref: MessageRef; message: Message }>();
  readonly updates: { readonly ref: MessageRef; readonly message: Message }[] = [];
  readonly whispers: { readonly place: Place; readonly actor: Actor; readonly message: Message }[] = [];
  readonly modals: { readonly actor: Actor; readonly message: Message }[] = [];
  readonly homes: { readonly actor: Actor; readonly message: Message }[] = [];
  readonly uploads = new Map<string, string>();
  /** Throws what goes wrong with a call; `what`: the key of a post or upload, otherwise the template. */
  trouble: (call: Call, what: string) => void = () => undefined;
  readonly #render: Renderer = loadTemplates(join(root, "templates/slack"));

  async post(key: string, place: Place, message: Message): Promise<MessageRef> {
    this.#draw(message);
    this.trouble("post", key);
    const old = this.posts.get(key);
    if (old !== undefined) return old.ref;
    const ref = { channel: place.channel, ts: `${this.posts.size + 1}.000` };
    this.posts.set(key, { place, ref, message });
    return ref;
  }

  async update(ref: MessageRef, message: Message): Promise<void> {
    this.#draw(message);
    this.trouble("update", message.template);
    const post = [...this.posts.values()].find((one) => one.ref.ts === ref.ts && one.ref.channel === ref.channel);
    if (post === undefined) throw new Error(`there is no message ${ref.channel} ${ref.ts}`);
    post.message = message;
    this.updates.push({ ref, message });
  }

  async whisper(place: Place, actor: Actor, message: Message): Promise<void> {
    this.#draw(message);
    this.trouble("whisper", message.template);
    this.whispers.push({ place, actor, message });
  }

  /** Without a trigger it comes too late. */
  async modal(triggerId: string | undefined, place: Place, actor: Actor, message: Message, late?: Message): Promise<void> {
    this.#draw(message);
    this.trouble("modal", message.template);
    if (triggerId === undefined) await this.whisper(place, actor, late ?? message);
    else this.modals.push({ actor, message });
  }

  async link({ channel, ts }: MessageRef): Promise<string> {
    return `https://chat.example/archives/${channel}/p${ts.replace(".", "")}`;
  }

  async home(actor: Actor, message: Message): Promise<void> {
    this.#draw(message);
    this.trouble("home", message.template);
    this.homes.push({ actor, message });
  }

  async upload(key: string, _place: Place, file: { readonly name: string; readonly content: string | Diagram }): Promise<void> {
    this.trouble("upload", key);
    this.uploads.set(key, typeof file.content === "string" ? file.content : JSON.stringify(file.content));
  }

  /** The data of what is posted under a key; fails if nothing is. */
  data(key: string): Readonly<Record<string, unknown>> {
    const post = this.posts.get(key);
    if (post === undefined) throw new Error(`nothing was posted as ${key}; posted: ${[...this.posts.keys()].join(", ")}`);
    return post.message.data;
  }

  /** What a person was whispered, in order. */
  whispered(actor: Actor): string[] {
    return this.whispers.filter((one) => one.actor.id === actor.id).map(({ message }) => this.#draw(message));
  }

  /** All words of a message, as the templates draw them. */
  drawn(key: string): string {
    const post = this.posts.get(key);
    return post === undefined ? "" : this.#draw(post.message);
  }

  #draw(message: Message): string {
    const { text, blocks, view } = this.#render(message);
    return [text, JSON.stringify(blocks), JSON.stringify(view ?? {})].join("\n");
  }
}
