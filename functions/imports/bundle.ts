import { lstatSync, opendirSync, realpathSync } from "node:fs";
import { join, sep } from "node:path";
import type { Capture, Output } from "../facts/capture.ts";
import { commandLine, isRefusal, sampled } from "../facts/command.ts";
import { commandsOf } from "../facts/command-list.ts";
import { commandsOfTurn } from "../facts/command-loop.ts";
import { toldByDate } from "../facts/date-output.ts";
import { present } from "../facts/present.ts";
import { readersOf } from "../facts/shared-text.ts";
import { type Head, type Limits, nothing, readHead, unpackSome } from "../transports/archive.ts";
import { MAX_OUTPUT } from "../transports/capture-files.ts";
import { withoutSecrets } from "../transports/secrets.ts";
import { withoutHostPrefix } from "./host-prefix.ts";

/** What support tools leave behind: many files, of which a few are outputs that netcheck knows. */

/** One importer: a kind of bundle, recognised by the names of its files. */
export interface Importer {
  readonly id: string;
  /** "a sosreport": for people. */
  readonly title: string;
  /** Which files it wants to read, or undefined if these names are not of its kind. */
  readonly recognize: (names: readonly string[]) => ((name: string) => boolean) | undefined;
  /** One draft per node that the bundle is about. `files`: those that were wanted; `bundle`: the name of the archive or folder itself. */
  readonly read: (files: ReadonlyMap<string, Head>, names: readonly string[], bundle: string) => Promise<readonly Draft[]> | readonly Draft[];
}

/** A capture in the making. */
export interface Draft {
  /** The node's name, if the bundle tells. */
  readonly target: string | undefined;
  readonly startedAt?: string | undefined;
  readonly outputs: readonly DraftOutput[];
}

/** What a command printed; exit code and standard error where the bundle keeps them. */
export interface DraftOutput {
  readonly command: string;
  readonly file: string;
  readonly text: string;
  readonly truncated: boolean;
  readonly exitCode?: number | undefined;
  readonly stderr?: string;
  /** Whose it is, where a text shows several machines that are read together. */
  readonly machine?: string;
  /** What it looks like tells the command, and nobody else. */
  readonly guessed?: true;
}

/** A sosreport has up to 50,000 files, and with a month of journal 1 to 2 GB. */
const LIMITS: Limits = { entries: 200_000, unpacked: 4 * 1024 * 1024 * 1024 };
/** All archives that lie in one together: a sysdump of 100 nodes has one of 50 MB for each. */
const NESTED: Limits = { entries: 400_000, unpacked: 8 * 1024 * 1024 * 1024 };
/** Folders are not followed deeper. */
const MAX_DEPTH = 24;

/** The files of a directory or an archive: all their names, and the beginnings of some. */
export interface Bundle {
  readonly names: readonly string[];
  readonly read: (wanted: (name: string) => boolean) => Promise<Map<string, Head>>;
}

/** Opens an archive. Throws an Error that says why it cannot. */
export async function archiveBundle(path: string): Promise<Bundle> {
  const names: string[] = [];
  await unpackSome(
    path,
    (name) => {
      names.push(name);
      return 0;
    },
    LIMITS,
  );
  return { names, read: (wanted) => unpackSome(path, (name) => (wanted(name) ? MAX_OUTPUT : 0), LIMITS) };
}

/** Reads archives that lie in another one: the limits hold for all of them together. */
export function nestedReader(): (archive: { name: string; bytes: Buffer }, wanted: (name: string) => boolean) => Promise<Map<string, Head>> {
  const taken = nothing();
  return (archive, wanted) => unpackSome(archive, (name) => (wanted(name) ? MAX_OUTPUT : 0), NESTED, taken);
}

/** Opens a directory. Links are left out: nothing outside of it is ever read. */
export function directoryBundle(root: string): Bundle {
  const names: string[] = [];
  const walk = (folder: string, depth: number): void => {
    if (depth > MAX_DEPTH || names.length > LIMITS.entries) return;
    const directory = opendirSync(join(root, folder));
    try {
      for (let entry = directory.readSync(); entry !== null; entry = directory.readSync()) {
        const name = folder === "" ? entry.name : `${folder}/${entry.name}`;
        if (entry.isDirectory()) walk(name, depth + 1);
        else if (entry.isFile()) names.push(name);
      }
    } finally {
      directory.closeSync();
    }
  };
  walk("", 0);
  names.sort();
  const real = realpathSync(root) + sep;
  const read = (wanted: (name: string) => boolean): Promise<Map<string, Head>> => {
    const heads = new Map<string, Head>();
    for (const name of names) {
      const path = join(root, name);
      if (wanted(name) && lstatSync(path).isFile() && realpathSync(path).startsWith(real)) heads.set(name, readHead(path, MAX_OUTPUT));
    }
    return Promise.resolve(heads);
  };
  return { names, read };
}

/** True if some fact reads the output of this command, or of one of those on the line. */
export const isKnown = (command: string): boolean => [...commandsOf(command), ...commandsOfTurn(command)].some((one) => readersOf(one).length > 0);

/** True of such a command, and of any that was run in a pod. */
export const isCommand = (text: string): boolean => isKnown(text) || commandLine(text).foreign;

/** `iptables-save | grep 8905` */
const RULES_SOUGHT = /^(?:sudo )?(?:ip6?tables|nft)\b.{0,200}\|\s{0,4}[ef]?grep /;

/**
 * A capture of a draft, secrets blacked out: people share what their tools gather. `fallback` names the node where nothing else does; `secrets`: expressions besides
 * the usual ones.
 */
export function captureOfDraft(draft: Draft, importer: string, fallback: string, secrets: readonly string[]): Capture {
  const seen = new Map<string, number>();
  let redacted = 0;
  const outputs = draft.outputs.map(({ command, file, text, truncated, exitCode, stderr = "", machine, guessed }): Output => {
    // the same command again is the second sample of its counters
    const question = sampled(command);
    const sample = Math.min(2, (seen.get(question) ?? 0) + 1);
    // rules that were not there when somebody first searched for them have no counters
    if (!isRefusal(text) && !(text.trim() === "" && RULES_SOUGHT.test(question))) seen.set(question, sample);
    const cleaned = withoutSecrets(withoutHostPrefix(command, text.replaceAll("\r\n", "\n")), secrets);
    const cleanedErrors = withoutSecrets(stderr, secrets);
    redacted += cleaned.redacted + cleanedErrors.redacted;
    return {
      command,
      argv: undefined,
      file,
      text: cleaned.text,
      truncated,
      exitCode,
      durationMs: undefined,
      startMs: undefined,
      stderr: cleanedErrors.text,
      sample,
      ...present({ machine, guessed }),
    };
  });
  return {
    target: draft.target ?? fallback,
    ...(draft.target === undefined && importer === "paste" ? { unnamed: true } : {}),
    transport: importer,
    // nothing of ours was run
    runbook: "",
    startedAt: draft.startedAt ?? toldByDate(draft.outputs),
    redacted,
    notCollected: [],
    outputs,
  };
}

/** The lines `from`…`to` (1-based, inclusive) of a text, the others blank: what is quoted as evidence keeps its line number in the file. */
export const onlyLines = (lines: readonly string[], from: number, to: number): string => `${"\n".repeat(from - 1)}${lines.slice(from - 1, to).join("\n")}\n`;

/** Without `dmesg` where `dmesg -T` shows the same with the times. */
export const withoutRawDmesg = (outputs: readonly DraftOutput[]): readonly DraftOutput[] =>
  outputs.some(({ command, text }) => command === "dmesg -T" && text.trim() !== "") ? outputs.filter(({ command }) => command !== "dmesg") : outputs;
