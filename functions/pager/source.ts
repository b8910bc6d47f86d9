import type { Page } from "../triage/ports.ts";

/** A request, before anybody knows who sent it. */
export interface Delivery {
  /** By name, in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The bytes that were signed. */
  readonly body: Buffer;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/**
 * A page; or a sentence for the sender why it is none (`ignored`: all is well, and nothing follows, though our operators may want to know; `problem`: it is
 * wrong); or an address to visit first.
 */
export type Reading =
  | { readonly page: Page }
  | { readonly ignored: string; readonly notable?: true }
  | { readonly problem: string }
  | { readonly visit: string };

/** What a web address answers, as text. Throws if it does not answer with 200. */
export type Visit = (url: string) => Promise<string>;

/** A system that sends pages: how its requests prove who sent them, and what they say. */
export interface Source {
  /** Its file here, and the end of its address: /pager/<name>. */
  readonly name: string;
  /** Field of the pager's secret. Its words, between spaces, are each good: so a secret can be changed without a gap. */
  readonly field: string;
  /** What a request without a valid proof is told. */
  readonly proof: string;
  /** Content types besides JSON. */
  readonly types?: readonly string[];
  /** @param secrets at least one */
  authentic(delivery: Delivery, secrets: readonly string[], visit: Visit): boolean | Promise<boolean>;
  /** Only of what is authentic. @param value the body, parsed */
  read(value: unknown, delivery: Delivery): Reading;
}
