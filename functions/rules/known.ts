import { createHash } from "node:crypto";

/** What was read before, by the texts of the files: reading YAML and checking every expression is most of a start. Another text is read anew. */
export interface Known {
  /** What a file says, by `keyOf` its kind and text: it is as its schema wants it. */
  readonly files: Map<string, unknown>;
  /** Rules that were compiled: their key, and that of the fix they were compiled with. */
  readonly checked: Set<string>;
}

export const nothingKnown = (): Known => ({ files: new Map(), checked: new Set() });

/** Filled as files are read. In a bundle the catalogue of the repository is known from the start (infra/known-catalogue.ts). */
export const known: Known = nothingKnown();

/** @param kind which schema the text was read by */
export const keyOf = (kind: string, text: string): string => `${kind} ${createHash("sha256").update(text).digest("base64")}`;
