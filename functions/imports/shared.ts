import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import type { Capture } from "../facts/capture.ts";
import { isKnown } from "./bundle.ts";
import { commandNamed, isText } from "./file-names.ts";
import { pastedCaptures, readCaptures } from "./index.ts";

/** A file that somebody shared: its name is hostile. */
interface Shared {
  readonly name: string;
}

/** Of a file that was fetched. */
interface Fetched {
  readonly bytes: number;
  readonly sha256: string;
}

interface SharedOptions<File extends Shared> {
  /** Brings a file to a path that does not exist yet. */
  readonly fetch: (file: File, path: string) => Promise<Fetched>;
  /** Files lie here while they are read, each in a private folder of its own; made if it is not there. */
  readonly directory: string;
  /** What is blacked out besides the usual. */
  readonly secrets?: readonly string[];
}

/** What files came to that are read together, and those of which nothing was read, with the reason. */
interface Together {
  readonly captures: readonly Capture[];
  readonly fetched: readonly ({ readonly name: string } & Fetched)[];
  readonly unread: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * The importer port: reads shared files and pasted texts with {@link readCaptures}. What was fetched is gone when it returns, whatever it came to.
 * Throws what `fetch` throws, or a sentence that says what is wrong with the file and what can be read.
 */
export function sharedImporter<File extends Shared>({
  fetch,
  directory,
  secrets,
}: SharedOptions<File>): {
  readonly groups: (files: readonly File[]) => readonly (readonly File[])[];
  readonly file: (file: File) => Promise<{ readonly captures: readonly Capture[] } & Fetched>;
  readonly together: (files: readonly File[]) => Promise<Together>;
  readonly text: (text: string) => readonly Capture[];
} {
  /** Runs `use` with a private folder, which is gone afterwards. */
  async function inFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const folder = mkdtempSync(join(directory, "shared-"));
    try {
      return await use(folder);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  }
  // where it lay for a moment means nothing to a person
  const read = (path: string, folder: string): Promise<Capture[]> =>
    readCaptures(path, secrets).catch((cause: unknown) => {
      const message = (cause as Error).message.replaceAll(`${path}: `, "").replaceAll(`${folder}/`, "").replaceAll(folder, "it");
      throw new Error(message, { cause });
    });

  return {
    groups,
    file: (file) =>
      inFolder(async (folder) => {
        const path = join(folder, safeName(file.name));
        const fetched = await fetch(file, path);
        return { captures: await read(path, folder), ...fetched };
      }),
    together: (files) =>
      inFolder(async (folder) => {
        const fetched: ({ name: string } & Fetched)[] = [];
        const unread: { name: string; reason: string }[] = [];
        for (const file of files) {
          try {
            fetched.push({ name: file.name, ...(await fetch(file, join(folder, safeName(file.name)))) });
          } catch (error) {
            if ((error as { retryable?: boolean }).retryable === true) throw error;
            unread.push({ name: file.name, reason: (error as Error).message });
          }
        }
        const captures = fetched.length === 0 ? [] : await read(folder, folder);
        const shown = new Set(captures.flatMap(({ outputs }) => outputs.map(({ file }) => file)));
        for (const { name } of fetched)
          if (!shown.has(safeName(name))) unread.push({ name, reason: "netcheck found no output of a command that it knows in it" });
        // the folder's name is ours
        return { captures: captures.map((capture) => (capture.target === basename(folder) ? { ...capture, target: "pasted" } : capture)), fetched, unread };
      }),
    text: (text) => pastedCaptures(text, "pasted", "the message", secrets),
  };
}

/**
 * Which files of one message are read together: outputs that somebody saved in a file each, named after its command, are one node's, as they are in a folder. Any other file, and two
 * of one name, are read each by itself: they may be of several nodes.
 */
function groups<File extends Shared>(files: readonly File[]): readonly (readonly File[])[] {
  const names = files.map(({ name }) => safeName(name));
  const once = (i: number): boolean => names.indexOf(names[i] ?? "") === names.lastIndexOf(names[i] ?? "");
  const saved = files.filter((_, i) => once(i) && isText(names[i] ?? "") && commandNamed(names[i] ?? "").some(isKnown));
  if (saved.length < 2) return files.map((file) => [file]);
  return files.flatMap((file) => (file === saved[0] ? [saved] : saved.includes(file) ? [] : [[file]]));
}

/** The end of a name, which tells its kind, as a name of a plain file that evidence may quote. */
function safeName(name: string): string {
  const safe = name
    .replaceAll(/[^A-Za-z0-9._+-]+/g, "_")
    .replace(/^[.-]+/, "")
    .slice(-120);
  return safe === "" ? "file" : safe;
}
