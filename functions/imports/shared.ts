import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Capture } from "../facts/capture.ts";
import { pastedCaptures, readCaptures } from "./index.ts";

/** A file that somebody shared: its name is hostile. */
interface Shared {
  readonly name: string;
}

interface SharedOptions<File extends Shared> {
  /** Brings a file to a path that does not exist yet. */
  readonly fetch: (file: File, path: string) => Promise<{ readonly bytes: number; readonly sha256: string }>;
  /** Files lie here while they are read, each in a private folder of its own; made if it is not there. */
  readonly directory: string;
  /** What is blacked out besides the usual. */
  readonly secrets?: readonly string[];
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
  readonly file: (file: File) => Promise<{ readonly captures: readonly Capture[]; readonly bytes: number; readonly sha256: string }>;
  readonly text: (text: string) => readonly Capture[];
} {
  return {
    file: async (file) => {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      const folder = mkdtempSync(join(directory, "shared-"));
      try {
        const path = join(folder, safeName(file.name));
        const { bytes, sha256 } = await fetch(file, path);
        const captures = await readCaptures(path, secrets).catch((cause: unknown) => {
          // where it lay for a moment means nothing to a person
          const message = (cause as Error).message.replaceAll(`${path}: `, "").replaceAll(`${folder}/`, "").replaceAll(folder, "it");
          throw new Error(message, { cause });
        });
        return { captures, bytes, sha256 };
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    text: (text) => pastedCaptures(text, "pasted", "the message", secrets),
  };
}

/** The end of a name, which tells its kind, as a name of a plain file that evidence may quote. */
function safeName(name: string): string {
  const safe = name
    .replaceAll(/[^A-Za-z0-9._+-]+/g, "_")
    .replace(/^[.-]+/, "")
    .slice(-120);
  return safe === "" ? "file" : safe;
}
