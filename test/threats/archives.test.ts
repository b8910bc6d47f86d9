import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { unpackSome } from "../../functions/transports/archive.ts";
import { type ZipEntry, zipOf } from "./zip.ts";

/** Archives that people drop into a chat, made by an enemy, through the one importer that both the chat and the command line use. */

const MB = 1024 * 1024;
const parent = mkdtempSync(join(tmpdir(), "netcheck-threat-"));
const scratch = join(parent, "in");
beforeAll(() => writeFileSync(join(parent, "secret"), "default via 10.66.66.66 dev eth0\n"));
afterAll(() => rmSync(parent, { recursive: true }));

type Entry = { readonly name: string; readonly type?: Header["type"]; readonly linkname?: string; readonly content?: string };

async function tarOf(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", ...header } of entries) archive.entry(header, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
let files = 0;
function file(suffix: string, bytes: Buffer): string {
  const path = `${scratch}-${++files}${suffix}`;
  writeFileSync(path, bytes);
  return path;
}
const tgz = async (entries: readonly Entry[]): Promise<string> => file(".tgz", gzipSync(await tarOf(entries)));
const zip = (entries: readonly ZipEntry[]): string => file(".zip", zipOf(entries));

/** What is known of a file, and that nothing was written or read beside it. */
async function read(path: string): Promise<readonly Capture[]> {
  const before = readdirSync(parent);
  try {
    const captures = await readCaptures(path);
    expect(JSON.stringify(captures)).not.toContain("10.66.66.66");
    return captures;
  } finally {
    expect(readdirSync(parent)).toEqual(before);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  }
}
const refusal = (path: string): Promise<string> =>
  read(path).then(
    (captures) => `it was read: ${captures.length}`,
    (error: unknown) => (error as Error).message,
  );
const outputsOf = (captures: readonly Capture[]) =>
  captures.flatMap(({ outputs }) => outputs.map(({ command, file: name, text }) => [command, name, text.trim()]));

const RULE = { name: "sos_commands/networking/ip_rule", content: "0:\tfrom all lookup local\n" };
const known = ["ip rule", RULE.name, "0:\tfrom all lookup local"];
const page = (command: string, text: string) => ({ name: `cmd/${command.replaceAll(" ", "-")}.md`, content: `# ${command}\n\n\`\`\`\n${text}\n\`\`\`\n` });

describe("names that lead elsewhere", () => {
  test.each<[string, Entry]>([
    ["upwards", { name: "../secret", content: "x" }],
    ["upwards from inside", { name: "sos_commands/networking/../../../secret", content: "x" }],
    ["absolute", { name: `${parent}/secret`, content: "x" }],
    ["a symbolic link", { name: "sos_commands/networking/ip_route", type: "symlink", linkname: `${parent}/secret` }],
    ["a symbolic link upwards", { name: "sos_commands/networking/ip_route", type: "symlink", linkname: "../../../secret" }],
    ["a hard link", { name: "sos_commands/networking/ip_route", type: "link", linkname: `${parent}/secret` }],
    ["a device", { name: "sos_commands/networking/ip_route", type: "block-device" }],
    ["a pipe", { name: "sos_commands/networking/ip_route", type: "fifo" }],
    ["a name that means something to JavaScript", { name: "__proto__/polluted", content: "x" }],
    ["backslashes", { name: "..\\..\\secret", content: "x" }],
  ])("in a tar, %s: nothing is followed, the rest is read", async (_what, entry) => {
    expect(outputsOf(await read(await tgz([entry, RULE])))).toEqual([known]);
  });

  test.each<[string, string]>([
    ["upwards", "../secret"],
    ["absolute", "/etc/passwd"],
    ["backslashes", "..\\..\\secret"],
    ["a drive", "C:/secret"],
  ])("in a zip, %s: the whole file is refused", async (_what, name) => {
    expect(await refusal(zip([{ name, content: "x" }, RULE]))).toMatch(/could not unpack it: (?:invalid relative|absolute) path/);
  });

  test("in a zip, a symbolic link is a short text and nothing else", async () => {
    const link = { name: "sos_commands/networking/ip_route", content: `${parent}/secret`, mode: 0o120777 };
    expect(outputsOf(await read(zip([link, RULE])))).toEqual([["ip route", link.name, link.content], known]);
  });

  test("names that differ only in case are two files; of one name twice the first counts, so that what a person looked at is what is read", async () => {
    const captures = await read(
      await tgz([
        RULE,
        { ...RULE, content: "second" },
        { name: "SOS_COMMANDS/networking/ip_rule", content: "other case" },
        { name: `./x/../${RULE.name}`, content: "third" },
      ]),
    );
    expect(outputsOf(captures)).toEqual([known]);
  });

  test("a bundle's own list of commands cannot point out of it, nor at an object's prototype", async () => {
    const commands = [
      { filepath: "../../secret", exec: "ip route" },
      { filepath: "__proto__", exec: "ip route" },
      { filepath: RULE.name, exec: "ip rule show" },
    ];
    const manifest = `{"__proto__":{"polluted":1},"components":{"report":{"plugins":{"__proto__":{"commands":[]},"networking":{"commands":${JSON.stringify(commands)}}}}}}`;
    expect(outputsOf(await read(await tgz([{ name: "sos_reports/manifest.json", content: manifest }, RULE])))).toEqual([["ip rule show", ...known.slice(1)]]);
  });
});

describe("archives that are larger than they look", () => {
  test("a zip whose entry claims ten bytes and unpacks to 64 MB: refused where the lie shows", async () => {
    const bomb = { name: "sos_commands/networking/ip_route", content: Buffer.alloc(64 * MB), claims: 10 };
    expect(await refusal(zip([bomb]))).toMatch(/could not read it as a sosreport: too many bytes in the stream/);
  });

  test("a zip whose entries all unpack the same bytes: counted as often as they are named", async () => {
    const first = { name: "sos_commands/networking/a", content: "x", claims: 1024 * MB };
    const more = Array.from({ length: 5 }, (_, i) => ({ ...first, name: `sos_commands/networking/ip_route.${i}`, dataOf: 0 }));
    expect(await refusal(zip([first, ...more]))).toMatch(/could not unpack it: it unpacks to more than 4096 MB$/);
  });

  test("names of megabytes, in a tar of some kilobytes", async () => {
    const path = await tgz(Array.from({ length: 12 }, (_, i) => ({ name: `${"x".repeat(3 * MB)}${i}` })));
    expect(await refusal(path)).toMatch(/could not unpack it: the names of its files alone are longer than 32 MB$/);
  });

  test("archives in an archive are bounded together: four that are each below the limit", async () => {
    const inner = gzipSync(
      await tarOf([...Array.from({ length: 3 }, (_, i) => ({ name: `cmd/${"x".repeat(3 * MB)}${i}` })), page("ip route", "default dev eth0")]),
    );
    const bugtool = (i: number) => ({ name: `sysdump/cilium-bugtool-cilium-aaaa${i}.tar.gz`, content: inner });
    const few = file(".zip", zipOf([bugtool(1), bugtool(2)]));
    expect((await read(few)).map(({ target }) => target)).toEqual(["cilium-aaaa1", "cilium-aaaa2"]);
    const many = file(".zip", zipOf(Array.from({ length: 4 }, (_, i) => bugtool(i))));
    expect(await refusal(many)).toMatch(/could not read it as a cilium sysdump .*: the names of its files alone are longer than 32 MB$/);
  });

  test("an archive in an archive in an archive is not opened", async () => {
    const deep = gzipSync(await tarOf([page("ip route", "default dev eth0")]));
    const middle = gzipSync(
      await tarOf([{ name: "cilium-bugtool-inner.tar.gz", content: deep.toString("latin1") }, page("ip rule", "0:\tfrom all lookup local")]),
    );
    const [capture] = await read(file(".zip", zipOf([{ name: "cilium-bugtool-cilium-aaaaa.tar.gz", content: middle }])));
    expect(capture?.outputs.map(({ command }) => command)).toEqual(["ip rule"]);
  });

  test("a zip of more files than are allowed", async () => {
    const bytes = zipOf(Array.from({ length: 1001 }, (_, i) => ({ name: `${i}` })));
    await expect(unpackSome({ name: "x.zip", bytes }, () => MB, { entries: 1000, unpacked: MB })).rejects.toThrow(/^it holds more than 1000 files$/);
  });

  test("an xz that unpacks to more than is allowed, and one that asks for a dictionary of 1.5 GB", async () => {
    const sosreport = new URL("../imports/sosreport-node4.tar.xz", import.meta.url).pathname;
    await expect(unpackSome(sosreport, () => MB, { entries: 1000, unpacked: 1024 })).rejects.toThrow(/^it unpacks to more than/);
    // `tar cf - x.txt | xz --lzma2=dict=1536MiB`
    const greedy = Buffer.from(GREEDY, "base64");
    expect(await refusal(file(".tar.xz", greedy))).toMatch(/could not unpack it: /);
  });
});

const GREEDY =
  "/Td6WFoAAAFpIt42AgAhASUAAAA7eHtB4Cf/AHRdADwLiofEDvKXpPh1PcWp7dmXqZgl2Hs0Cm9Xu3l3XCvTp7c0MJYt3TDR0yTRK0nQS1Zha92p+iOZYpTFPSsadYWyXWWxf3hhNZEgcjMZkTgZqMF1LzqKGfErhn4XW/FmSltj9uICXdUkE5CRIcn36Pin+xEAAABc/5MAAYwBgFAAAEWxohY+MA2LAgAAAAABWVo=";
