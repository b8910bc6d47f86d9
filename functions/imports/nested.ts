import { basename } from "node:path";
import { archiveKind, type Limits, nothing, type Taken, unpackSome } from "../transports/archive.ts";
import { MAX_OUTPUT } from "../transports/capture-files.ts";
import type { Bundle } from "./bundle.ts";

/** Archives that lie in another one, each the bundle of a node: `sos collect`, a folder of log collectors' archives that somebody packed. */

/** The names that the collectors of single nodes give theirs; what else lies packed in a bundle is a part of it. */
const OF_NODE = /(?:^|\/)(?:sosreport|eks_i|scc_|nts_)[^/]{1,200}$/;
/** More are no nodes of one incident. */
const MAX_NESTED = 100;
/** All files that they unpack to, together. Only those that are wanted are kept. */
const LIMITS: Limits = { entries: 1_000_000, unpacked: 16 * 1024 * 1024 * 1024 };

/** The names of the nodes' archives among these, but for those that lie unpacked beside themselves. */
export function nestedIn(names: readonly string[]): readonly string[] {
  const found = names.filter((name) => OF_NODE.test(name) && archiveKind(name) !== undefined).slice(0, MAX_NESTED);
  return found.filter((name) => !names.some((other) => other.startsWith(`${name.replace(/\.(?:t[a-z\d]{2,3}|tar(?:\.\w{2,3})?|zip)$/i, "")}/`)));
}

/**
 * Opens the archives of these names that lie in the archive at `path`, one after the other. One that is broken, or too large to be opened in memory, is told as the
 * Error that says why.
 */
export async function* openNested(path: string, names: readonly string[]): AsyncGenerator<{ readonly name: string; readonly bundle: Bundle | Error }> {
  const wanted = new Set(names);
  const taken: Taken = nothing();
  const heads = await unpackSome(path, (name) => (wanted.has(name) ? MAX_ARCHIVE : 0), LIMITS);
  for (const name of names) {
    const head = heads.get(name);
    if (head === undefined) continue;
    const archive = { name: basename(name), bytes: head.bytes };
    heads.delete(name);
    yield { name, bundle: head.truncated ? new Error("it is too large to be read in here: unpack it first") : await open(archive, taken) };
  }
}
const MAX_ARCHIVE = 512 * 1024 * 1024;

async function open(archive: { readonly name: string; readonly bytes: Buffer }, taken: Taken): Promise<Bundle | Error> {
  const names: string[] = [];
  const note = (name: string): number => {
    names.push(name);
    return 0;
  };
  try {
    await unpackSome(archive, note, LIMITS, taken);
  } catch (error) {
    return error as Error;
  }
  return { names, read: (wanted) => unpackSome(archive, (name) => (wanted(name) ? MAX_OUTPUT : 0), LIMITS, taken) };
}
