import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { pack } from "tar-stream";
import { afterAll } from "vitest";

/** Files of a folder, by their names. */
export type Files = Readonly<Record<string, string | Buffer>>;

/** A place for folders of files, removed behind the tests of a file. */
export function folders(): {
  readonly scratch: string;
  /** A new folder with these files. */
  readonly directory: (files: Files) => string;
  /** A new archive of this name with these files, as `compress` leaves it. */
  readonly archive: (name: string, files: Files, compress: (tar: Buffer) => Buffer) => Promise<string>;
} {
  const scratch = mkdtempSync(join(tmpdir(), "netcheck-imports-"));
  afterAll(() => rmSync(scratch, { recursive: true }));
  let count = 0;
  const next = (): string => join(scratch, String(++count));
  const directory = (files: Files): string => {
    const root = next();
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(join(root, dirname(name)), { recursive: true });
      writeFileSync(join(root, name), content);
    }
    return root;
  };
  const archive = async (name: string, files: Files, compress: (tar: Buffer) => Buffer): Promise<string> => {
    const path = join(next(), name);
    mkdirSync(dirname(path));
    writeFileSync(path, compress(await tarOf(files)));
    return path;
  };
  return { scratch, directory, archive };
}

/** A tar archive of these files. */
export async function tarOf(files: Files): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of Object.entries(files)) archive.entry({ name }, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
