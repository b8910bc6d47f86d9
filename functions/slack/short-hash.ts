import { createHash } from "node:crypto";

/** The beginning of the sha256 of some words: the same words are the same execution. @param length hex digits */
export const shortHash = (words: readonly string[], length: number): string => createHash("sha256").update(words.join("|")).digest("hex").slice(0, length);
