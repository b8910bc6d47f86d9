import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { captureOf } from "../../functions/facts/capture.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { unpackSome } from "../../functions/transports/archive.ts";
import { packCaptureFiles } from "../../functions/transports/capture-files.ts";

const scratch = mkdtempSync(join(tmpdir(), "netcheck-archive-"));
afterAll(() => rmSync(scratch, { recursive: true }));

function file(name: string, bytes: Buffer): string {
  writeFileSync(join(scratch, name), bytes);
  return join(scratch, name);
}

const PASTE = "$ ip route\ndefault via 10.0.0.1 dev eth0\n";
const routes = async (path: string) => (await readCaptures(path)).map(({ outputs }) => outputs.map(({ command, text }) => [command, text.trim()]));

describe("one file that was packed by itself", () => {
  test.each([
    ["paste.txt.gz", gzipSync(PASTE)],
    ["paste.gz", gzipSync(PASTE)],
    ["paste.txt.zst", zstdCompressSync(PASTE)],
    ["a name without an end", gzipSync(PASTE)],
  ])("%s is read as what it holds", async (name, bytes) => {
    expect(await routes(file(name, bytes))).toEqual([[["ip route", "default via 10.0.0.1 dev eth0"]]]);
  });

  test("its limit holds", async () => {
    const head = (await unpackSome(file("long.txt.gz", gzipSync("x".repeat(5000))), () => 100)).get("long.txt");
    expect([head?.bytes.length, head?.truncated]).toEqual([100, true]);
  });

  test("what is larger than an archive may be is refused", async () => {
    const path = file("bomb.gz", gzipSync(Buffer.alloc(100_000)));
    await expect(unpackSome(path, () => 100, { entries: 10, unpacked: 50_000 })).rejects.toThrow(/unpacks to more than/);
  });

  test("one that was cut is said to be", async () => {
    await expect(readCaptures(file("cut.txt.gz", gzipSync(PASTE.repeat(500)).subarray(0, 60)))).rejects.toThrow("it is damaged, or was cut when it was copied");
  });
});

test("a capture whose name lost its end is one all the same", async () => {
  const index = { schema: "netcheck.capture/1" as const, target: { name: "node7" }, outputs: [{ command: "ip route", file: "outputs/route.txt" }] };
  const capture = captureOf(index, () => ({ text: "default via 10.0.0.1 dev eth0\n", truncated: false }));
  const path = file("node7 (1)", await packCaptureFiles(capture));
  expect((await readCaptures(path)).map(({ target }) => target)).toEqual(["node7"]);
});
