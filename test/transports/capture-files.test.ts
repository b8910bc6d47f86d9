import { execFile, execFileSync } from "node:child_process";
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { gunzipSync, gzipSync } from "node:zlib";
import { pack } from "tar-stream";
import { afterAll, describe, expect, test, vi } from "vitest";
import { missingFiles } from "../../functions/facts/capture.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { CaptureError, MAX_OUTPUT, packCaptureFiles, readCaptureFiles, writeCaptureDirectory } from "../../functions/transports/capture-files.ts";
import { packCapture, unpackCapture } from "../../functions/triage/captures.ts";

const scratch = mkdtempSync(join(tmpdir(), "netcheck-captures-"));
// some cases unpack gigabytes
vi.setConfig({ testTimeout: 60_000 });
afterAll(() => rmSync(scratch, { recursive: true }));
let count = 0;
const fresh = (): string => join(scratch, String(++count));

const SCHEMA = "netcheck.capture/1";
type Output = Record<string, unknown>;
const indexWith = (...outputs: Output[]) => ({ schema: SCHEMA, target: { name: "node1" }, outputs });
const ROUTE = { command: "ip route", file: "outputs/route.txt" };

/** A folder with these files; objects are written as JSON. */
function directory(files: Record<string, string | Buffer | object>): string {
  const path = fresh();
  mkdirSync(path);
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), typeof content === "string" || Buffer.isBuffer(content) ? content : JSON.stringify(content));
  }
  return path;
}

interface Entry {
  readonly name: string;
  readonly type?: "file" | "symlink" | "link" | "character-device" | "fifo" | "directory";
  readonly linkname?: string;
  readonly content?: string;
}

/** A tar with exactly these entries, whatever they are. */
async function tar(entries: readonly Entry[]): Promise<Buffer> {
  const archive = pack();
  for (const { name, type = "file", linkname, content = "" } of entries)
    archive.entry({ name, type, ...(linkname === undefined ? {} : { linkname }) }, content);
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

async function tgz(entries: readonly Entry[]): Promise<string> {
  const path = `${fresh()}.tgz`;
  writeFileSync(path, gzipSync(await tar(entries)));
  return path;
}

/** The message a reader gets; fails if the capture is read, or if anything but a CaptureError comes out. */
async function refusal(path: string): Promise<string> {
  const error: unknown = await readCaptureFiles(path).then(
    () => new Error("it was read"),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(CaptureError);
  return (error as Error).message;
}

describe("a capture as a person writes it", () => {
  test("only the required keys; everything else has its default", async () => {
    const path = directory({ "capture.json": indexWith(ROUTE), "outputs/route.txt": "default via 10.0.0.1 dev eth0\n" });
    expect(await readCaptureFiles(path)).toEqual({
      target: "node1",
      transport: "replay",
      runbook: "netcheck",
      startedAt: undefined,
      redacted: 0,
      notCollected: [],
      outputs: [
        {
          ...ROUTE,
          argv: undefined,
          text: "default via 10.0.0.1 dev eth0\n",
          exitCode: undefined,
          durationMs: undefined,
          startMs: undefined,
          stderr: "",
          truncated: false,
          sample: 1,
        },
      ],
    });
  });

  test("a command that was run three times: each later run counts as the second, numbered or not", async () => {
    const counters = (sample: number, value: string) => ({ command: "nstat -az", file: `${sample}.txt`, text: value, sample });
    const runs = [counters(1, "a"), counters(2, "b"), counters(3, "c")];
    for (const numbered of [true, false]) {
      const index = indexWith(...runs.map(({ command, file, sample }) => ({ command, file, ...(numbered ? { sample } : {}) })));
      const path = directory({ "capture.json": index, ...Object.fromEntries(runs.map(({ file, text }) => [file, text])) });
      expect((await readCaptureFiles(path)).outputs.map(({ text, sample }) => [text, sample])).toEqual([
        ["a", 1],
        ["b", 2],
        ["c", 2],
      ]);
    }
  });

  test("the command as a string or as its words, the file wherever it lies", async () => {
    const text = "default via 10.0.0.1 dev eth0\n";
    const path = directory({
      "capture.json": indexWith({ command: ["ip", "-4", "route"], file: "./a.txt" }, { command: "sudo ip -4 route", file: "deep/er/b.txt" }),
      "a.txt": text,
      "deep/er/b.txt": text,
    });
    const capture = await readCaptureFiles(path);
    expect(capture.outputs.map(({ command, argv, text: read }) => ({ command, argv, read }))).toEqual([
      { command: "ip -4 route", argv: ["ip", "-4", "route"], read: text },
      { command: "sudo ip -4 route", argv: undefined, read: text },
    ]);
  });

  test("each output's own time stands in for the capture's", async () => {
    const path = directory({
      "capture.json": indexWith(
        { ...ROUTE, startedAt: "2026-11-20T09:14:07Z" },
        { command: "ip rule", file: "outputs/route.txt", startedAt: "2026-11-20T09:14:05Z" },
        { command: "lsmod", file: "outputs/route.txt", startedAt: "just before" },
      ),
      "outputs/route.txt": "",
    });
    expect((await readCaptureFiles(path)).startedAt).toBe("2026-11-20T09:14:05Z");
    const timed = directory({
      "capture.json": { ...indexWith({ ...ROUTE, startedAt: "2026-11-20T09:14:07Z" }), startedAt: "2026-11-20T09:00:00Z" },
      "outputs/route.txt": "",
    });
    expect((await readCaptureFiles(timed)).startedAt).toBe("2026-11-20T09:00:00Z");
  });

  test("the path of its capture.json, or one with a slash at the end, will do", async () => {
    const path = directory({ "capture.json": indexWith() });
    for (const spelling of [path, `${path}/`, join(path, "capture.json")]) expect((await readCaptureFiles(spelling)).target).toBe("node1");
  });

  test("empty, binary, CRLF and byte order marks", async () => {
    const path = directory({
      "capture.json": Buffer.from(
        `\u{feff}${JSON.stringify(
          indexWith(
            { command: "ip rule", file: "empty" },
            { command: "lsmod", file: "binary" },
            { command: "ip route", file: "crlf" },
            { command: "ip -4 route", file: "utf16" },
          ),
        )}`,
      ),
      empty: "",
      binary: Buffer.from([0, 255, 254, 10, 128, 65]),
      crlf: "default via 10.0.0.1 dev eth0\r\n10.0.0.0/24 dev eth0\r\n",
      utf16: Buffer.from("\u{feff}10.1.0.0/24 dev eth1\n", "utf16le"),
    });
    const capture = await readCaptureFiles(path);
    expect(capture.outputs.map(({ text }) => text)).toEqual([
      "",
      "\0\u{fffd}\u{fffd}\n\u{fffd}A",
      "default via 10.0.0.1 dev eth0\r\n10.0.0.0/24 dev eth0\r\n",
      "10.1.0.0/24 dev eth1\n",
    ]);
    const routes = readFacts({ ...capture, outputs: capture.outputs.slice(2, 3) }).readings.get("route");
    expect(routes).toMatchObject({ status: "read", unparsed: [], value: { rows: [{ interface: "eth0" }, { interface: "eth0" }] } });
  });
});

describe("what is wrong is named: file, key, reason", () => {
  const cases: [string, object | string, RegExp][] = [
    ["unknown key", { ...indexWith(), tagret: 1 }, /capture\.json: tagret: Unrecognized key: "tagret"$/],
    ["a typo of a required key", indexWith({ comand: "ip route", file: "x" }), /capture\.json: outputs\.0\.comand: Unrecognized key/],
    ["a letter too few", indexWith({ ...ROUTE, truncatd: true }), /: outputs\.0\.truncatd: Unrecognized key/],
    ["a letter too many", { ...indexWith(), startedAtt: "2026-11-22T10:00:00Z" }, /: startedAtt: Unrecognized key/],
    ["another letter", indexWith({ ...ROUTE, semple: 2 }), /: outputs\.0\.semple: Unrecognized key/],
    ["another spelling", indexWith({ ...ROUTE, exit_code: 1 }), /: outputs\.0\.exit_code: Unrecognized key/],
    ["a typo in target", { ...indexWith(), target: { nmae: "n" } }, /target\.nmae: Unrecognized key/],
    ["another schema", { ...indexWith(), schema: "netcheck.capture/2" }, /: schema: .*netcheck\.capture\/1/],
    ["no target", { schema: SCHEMA, outputs: [] }, /: target: .*expected object/],
    ["command of a wrong type", indexWith({ command: 7, file: "x" }), /: outputs\.0\.command: .*string or array/],
    ["empty argv", indexWith({ command: [], file: "x" }), /: outputs\.0\.command: .*>=1/],
    ["sample 0", indexWith({ ...ROUTE, sample: 0 }), /: outputs\.0\.sample: .*>=1/],
    ["outputs is no list", { ...indexWith(), outputs: {} }, /: outputs: .*expected array/],
    ["a polluting key", `{"schema":"${SCHEMA}","target":{"name":"n"},"outputs":[],"__proto__":{"x":1}}`, /: __proto__: Unrecognized key/],
    ["not JSON", "{ schema: 1 }", /capture\.json: it is not JSON: .*position 2/],
    ["empty", "", /capture\.json: it is not JSON/],
    ["not an object", "[]", /capture\.json: .*expected object/],
    [
      "no file of all that it names",
      indexWith(ROUTE, { command: "ip rule", file: "outputs/rule.txt" }),
      /outputs: could not read "outputs\/route\.txt": ENOENT/,
    ],
    ["../", indexWith({ ...ROUTE, file: "../secret" }), /"\.\.\/secret" leads out of the capture/],
    ["../ in the middle", indexWith({ ...ROUTE, file: "outputs/../../secret" }), /"outputs\/\.\.\/\.\.\/secret" leads out/],
    ["an absolute path", indexWith({ ...ROUTE, file: "/etc/passwd" }), /"\/etc\/passwd" leads out of the capture/],
    ["a NUL", indexWith({ ...ROUTE, file: "a\0b" }), /"a\\u0000b" leads out of the capture/],
    ["the folder itself", indexWith({ ...ROUTE, file: "." }), /"\." is not a file/],
  ];
  test.each(cases)("%s", async (_, index, message) => {
    const path = directory({ "capture.json": index, "../secret": "secret" });
    const said = await refusal(path);
    expect(said).toMatch(message);
    expect(said.startsWith(path)).toBe(true);
    expect(Object.prototype).not.toHaveProperty("x");
  });

  test("what others keep in theirs besides is no reason to refuse it", async () => {
    const output = { ...ROUTE, startedAt: "2026-11-22T10:00:01Z", exitCode: null, stderr: null, note: "read as root", time: 12 };
    const path = directory({
      "capture.json": { ...indexWith(output), target: { name: "n", zone: "a" }, kernel: "6.1", transport: null },
      "outputs/route.txt": "default dev eth0\n",
    });
    const capture = await readCaptureFiles(path);
    expect(capture).toMatchObject({
      target: "n",
      transport: "replay",
      outputs: [{ text: "default dev eth0\n", exitCode: undefined, stderr: "", truncated: false }],
    });
    expect(JSON.stringify(capture)).not.toMatch(/zone|kernel|note/);
  });

  test("a file that was lost on the way costs only itself: its command counts as not collected, never as one that printed nothing", async () => {
    const path = directory({
      "capture.json": indexWith(ROUTE, { command: ["ip", "rule"], file: "outputs/rule.txt" }, { ...ROUTE, file: "outputs/route-2.txt" }),
      "outputs/route.txt": "default dev eth0\n",
    });
    const archive = `${fresh()}.tgz`;
    execFileSync("tar", ["czf", archive, "-C", path, "."]);
    for (const capture of [await readCaptureFiles(path), await readCaptureFiles(archive)]) {
      expect(capture.outputs).toMatchObject([{ command: "ip route", text: "default dev eth0\n", sample: 1 }]);
      expect(capture.notCollected).toEqual([
        { command: "ip rule", reason: '"outputs/rule.txt" is not in the capture' },
        { command: "ip route (second sample)", reason: '"outputs/route-2.txt" is not in the capture' },
      ]);
      expect(missingFiles(capture)[0]).toBe('"outputs/rule.txt" is not in the capture: what `ip rule` printed is not known');
      const { readings } = readFacts(capture);
      // in any spelling of the command: `ip rule` is not the one that netcheck runs
      expect(readings.get("rule")).toMatchObject({ status: "absent", reason: '"outputs/rule.txt" is not in the capture' });
      expect(readings.get("route")).toMatchObject({ status: "read" });
      expect(unpackCapture(packCapture(capture))).toEqual(capture);
    }
  });

  test("beside outputs that are there, a path that leads out is refused all the same", async () => {
    const path = directory({ "capture.json": indexWith(ROUTE, { command: "ip rule", file: "../secret" }), "outputs/route.txt": "" });
    expect(await refusal(path)).toMatch(/leads out of the capture$/);
  });

  test("a file of a `..`-like name is a file", async () => {
    const path = directory({ "capture.json": indexWith({ ...ROUTE, file: "..route" }), "..route": "default dev eth0\n" });
    expect((await readCaptureFiles(path)).outputs[0]?.text).toBe("default dev eth0\n");
  });

  test("a directory, a link out, a pipe as an output; a link that stays inside is read", async () => {
    const secret = join(directory({ secret: "root:x:0:0" }), "secret");
    const path = directory({ "outputs/real": "default dev eth0\n", "outputs/folder/x": "" });
    symlinkSync(secret, join(path, "outputs/link"));
    symlinkSync(dirname(secret), join(path, "outputs/away"));
    symlinkSync("real", join(path, "outputs/inner"));
    symlinkSync("loop", join(path, "outputs/loop"));
    execFileSync("mkfifo", [join(path, "outputs/pipe")]);
    const said: Record<string, string> = {};
    for (const name of ["link", "away/secret", "folder", "loop", "pipe"]) {
      writeFileSync(join(path, "capture.json"), JSON.stringify(indexWith({ ...ROUTE, file: `outputs/${name}` })));
      said[name] = (await refusal(path)).slice(path.length);
    }
    expect(said).toEqual({
      link: expect.stringContaining("leads out of the capture"),
      "away/secret": expect.stringContaining("leads out of the capture"),
      folder: expect.stringContaining("is not a file"),
      loop: expect.stringContaining("ELOOP"),
      pipe: expect.stringContaining("is not a file"),
    });
    writeFileSync(join(path, "capture.json"), JSON.stringify(indexWith({ ...ROUTE, file: "outputs/inner" })));
    expect((await readCaptureFiles(path)).outputs[0]?.text).toBe("default dev eth0\n");
  });

  test("capture.json itself may be neither a link out nor a pipe, and its text is not shown", async () => {
    const secret = join(directory({ secret: "root:x:0:0" }), "secret");
    const linked = directory({});
    symlinkSync(secret, join(linked, "capture.json"));
    const said = await refusal(linked);
    expect(said).toContain("leads out of the capture");
    expect(said).not.toContain("root:x");
    const piped = directory({});
    execFileSync("mkfifo", [join(piped, "capture.json")]);
    expect(await refusal(piped)).toContain("is not a file");
  });

  test("nothing there, no capture.json, another kind of file", async () => {
    expect(await refusal(join(scratch, "nowhere"))).toMatch(/nowhere: could not read it: ENOENT/);
    expect(await refusal(directory({ "outputs/x": "" }))).toMatch(/there is no capture\.json in it$/);
    expect(await refusal(join(directory({ "notes.txt": "" }), "notes.txt"))).toMatch(/a capture is a directory with capture\.json, or a \.tgz of one$/);
  });
});

describe("archives", () => {
  const INDEX = JSON.stringify(indexWith(ROUTE));
  const GOOD: Entry[] = [
    { name: "capture.json", content: INDEX },
    { name: "outputs/route.txt", content: "default dev eth0\n" },
  ];

  test.each([".tgz", ".tar.gz", ".tar"])("%s, as GNU tar makes it of a folder", async (suffix) => {
    const path = directory({ "capture.json": indexWith(ROUTE), "outputs/route.txt": "default dev eth0\n" });
    for (const args of [
      ["-C", path, "."],
      ["-C", dirname(path), path.slice(dirname(path).length + 1)],
    ]) {
      const file = fresh() + suffix;
      execFileSync("tar", [suffix === ".tar" ? "cf" : "czf", file, ...args]);
      expect(await readCaptureFiles(file)).toEqual(await readCaptureFiles(path));
    }
  });

  test("files beside capture.json, and the index behind its outputs", async () => {
    const path = await tgz([
      { name: "node1/route.txt", content: "default dev eth0\n" },
      { name: "node1/capture.json", content: JSON.stringify(indexWith({ ...ROUTE, file: "route.txt" })) },
    ]);
    expect((await readCaptureFiles(path)).outputs[0]?.text).toBe("default dev eth0\n");
  });

  test("of several capture.json the one nearest to the top counts", async () => {
    const path = await tgz([{ name: "old/capture.json", content: "{}" }, ...GOOD]);
    expect((await readCaptureFiles(path)).target).toBe("node1");
  });

  test.each<[string, Entry]>([
    ["a symbolic link", { name: "outputs/route.txt", type: "symlink", linkname: "/etc/passwd" }],
    ["a hard link", { name: "outputs/route.txt", type: "link", linkname: "/etc/passwd" }],
    ["a device", { name: "outputs/route.txt", type: "character-device" }],
    ["a pipe", { name: "outputs/route.txt", type: "fifo" }],
    ["a folder", { name: "outputs/route.txt", type: "directory" }],
    ["a path that leads out", { name: "../outputs/route.txt", content: "x" }],
    ["an absolute path", { name: "/outputs/route.txt", content: "x" }],
  ])("%s is not an output", async (_, entry) => {
    const path = await tgz([{ name: "capture.json", content: INDEX }, entry]);
    expect(await refusal(path)).toMatch(/capture\.json: outputs: "outputs\/route\.txt" is not a file in the archive$/);
    expect(readdirSync(dirname(path))).not.toContain("outputs");
  });

  test("the index cannot name what is outside", async () => {
    for (const file of ["../route.txt", "/etc/passwd"]) {
      const path = await tgz([{ name: "capture.json", content: JSON.stringify(indexWith({ ...ROUTE, file })) }]);
      expect(await refusal(path)).toMatch(/leads out of the capture$/);
    }
  });

  test("cut off, not an archive, empty, without an index, with a broken one", async () => {
    const whole = readFileSync(await tgz(GOOD));
    const write = (name: string, bytes: Uint8Array): string => {
      const path = `${fresh()}${name}`;
      writeFileSync(path, bytes);
      return path;
    };
    expect(await refusal(write(".tgz", whole.subarray(0, whole.length - 30)))).toMatch(
      /could not unpack it: it is damaged, or was cut when it was copied \(unexpected end of file\)$/,
    );
    expect(await refusal(write(".tar", (await tar(GOOD)).subarray(0, 700)))).toMatch(/could not unpack it: /);
    expect(await refusal(write(".tgz", Buffer.from("not gzip at all")))).toMatch(/could not unpack it: .* \(incorrect header check\)$/);
    expect(await refusal(write(".tar", Buffer.alloc(2000, "x")))).toMatch(/could not unpack it: /);
    for (const suffix of [".tgz", ".tar"]) expect(await refusal(write(suffix, Buffer.alloc(0)))).toContain(suffix);
    expect(await refusal(await tgz([]))).toMatch(/there is no capture\.json in it$/);
    expect(await refusal(await tgz([{ name: "capture.json", content: "{" }]))).toMatch(/\.tgz:capture\.json: it is not JSON/);
    expect(await refusal(await tgz([{ name: "capture.json", content: '{"schema":1}' }]))).toMatch(/\.tgz:capture\.json: schema: /);
  });

  test("a folder called x.tgz is a folder", async () => {
    const path = `${directory({ "capture.json": indexWith() })}`;
    const renamed = `${path}.tgz`;
    symlinkSync(path, renamed);
    expect((await readCaptureFiles(renamed)).target).toBe("node1");
  });

  test("very many files are refused", async () => {
    const path = await tgz([...GOOD, ...Array.from({ length: 20_000 }, (_, i) => ({ name: `junk/${i}` }))]);
    expect(await refusal(path)).toMatch(/could not unpack it: it holds more than 20000 files$/);
  });
});

describe("size", () => {
  const MB = 1024 * 1024;
  const run = promisify(execFile);
  const reader = new URL("../../functions/transports/capture-files.ts", import.meta.url).href;

  /** Reads a capture in a process of its own; says what came out and how much memory it took at most. */
  async function readApart(path: string): Promise<{ outputs: { length: number; truncated: boolean }[]; error: string; maxRssMb: number }> {
    const program = `
      const { readCaptureFiles } = await import(${JSON.stringify(reader)});
      const said = { outputs: [], error: "" };
      try { said.outputs = (await readCaptureFiles(process.argv[1])).outputs.map(({ text, truncated }) => ({ length: text.length, truncated })); }
      catch (error) { said.error = error.name + ": " + error.message; }
      console.log(JSON.stringify({ ...said, maxRssMb: Math.round(process.resourceUsage().maxRSS / 1024) }));`;
    const { stdout } = await run(process.execPath, ["--input-type=module", "--eval", program, path]);
    return JSON.parse(stdout);
  }

  test("100 MB of output are cut, said to be cut, and take bounded memory", async () => {
    const path = directory({ "capture.json": indexWith({ command: "conntrack -L", file: "outputs/big" }), "outputs/.keep": "" });
    const line = `${"tcp 6 86400 ESTABLISHED src=10.0.0.1 dst=10.0.0.2 sport=1 dport=2".padEnd(127)}\n`;
    const big = openSync(join(path, "outputs/big"), "w");
    for (let i = 0; i < 100; i++) writeSync(big, line.repeat(MB / 128));
    closeSync(big);
    const archive = `${path}.tgz`;
    execFileSync("tar", ["-C", path, "--use-compress-program=gzip -1", "-cf", archive, "."]);
    for (const capture of [path, archive]) {
      const { outputs, error, maxRssMb } = await readApart(capture);
      expect({ outputs, error }).toEqual({ outputs: [{ length: MAX_OUTPUT, truncated: true }], error: "" });
      expect(maxRssMb).toBeLessThan(400);
    }
  });

  test("all outputs together are bounded: what is over is cut and said to be cut", async () => {
    const path = directory({ "capture.json": indexWith(...Array.from({ length: 12 }, (_, i) => ({ command: `cat ${i}`, file: "zeros" }))) });
    const file = openSync(join(path, "zeros"), "w");
    ftruncateSync(file, 50 * MB);
    closeSync(file);
    const { outputs, maxRssMb } = await readApart(path);
    expect(outputs.map(({ length, truncated }) => [length / MB, truncated])).toEqual([...Array(10).fill([50, false]), [12, true], [0, true]]);
    expect(maxRssMb).toBeLessThan(1000);
  });

  test("a small file that unpacks to gigabytes is refused, in bounded memory", async () => {
    // gzip members may follow each other: 16 MB of zeros are 16 kB
    const zeros = gzipSync(Buffer.alloc(16 * MB));
    const header = (await tar([{ name: "capture.json", content: JSON.stringify(indexWith(ROUTE)) }])).subarray(0, 1024);
    const entry = Buffer.from((await tar([{ name: "outputs/route.txt", content: "x" }])).subarray(0, 512));
    // 4 GB in the size field, octal, and the checksum made right again
    entry.write("40000000000\0", 124, "latin1");
    entry.fill(" ", 148, 156);
    entry.write(
      `${entry
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, "0")}\0 `,
      148,
      "latin1",
    );
    const path = `${fresh()}.tgz`;
    writeFileSync(path, Buffer.concat([gzipSync(Buffer.concat([header, entry])), ...Array<Buffer>(256).fill(zeros)]));
    const { error, maxRssMb } = await readApart(path);
    expect(error).toMatch(/^CaptureError: .*could not unpack it: it unpacks to more than 1024 MB$/);
    expect(maxRssMb).toBeLessThan(500);
  });

  test("an index of more than 16 MB is refused", async () => {
    const path = directory({ "capture.json": `${" ".repeat(16 * MB)}${JSON.stringify(indexWith())}` });
    expect(await refusal(path)).toMatch(/capture\.json: it has more than 16 MB$/);
  });
});

describe("writing", () => {
  const given = {
    ...indexWith(
      { command: ["iptables-save", "-c"], file: "outputs/a.txt", exitCode: 1, durationMs: 2, startMs: 3, stderr: "oh", truncated: true, sample: 2 },
      { command: "ip route | head", file: "b.txt" },
    ),
    transport: "ssm",
    runbook: "other",
    startedAt: "2026-01-01T00:00:00Z",
    redacted: 2,
    notCollected: [{ command: "ovs-vsctl show", reason: "no time left" }],
  };
  const FILES = { "capture.json": given, "outputs/a.txt": "*filter\nCOMMIT\n", "b.txt": "äöü\r\n" };

  test("a directory and an archive read back as they were, the archive byte for byte the same each time", async () => {
    const capture = await readCaptureFiles(directory(FILES));
    const path = fresh();
    writeCaptureDirectory(capture, path);
    expect(JSON.parse(readFileSync(join(path, "capture.json"), "utf8"))).toEqual(given);
    expect(await readCaptureFiles(path)).toEqual(capture);
    const bytes = await packCaptureFiles(capture);
    // no time of day in it
    expect(gunzipSync(bytes).toString("latin1", 136, 147)).toBe("0".repeat(11));
    writeFileSync(`${path}.tgz`, bytes);
    expect(await readCaptureFiles(`${path}.tgz`)).toEqual(capture);
    expect(await packCaptureFiles(await readCaptureFiles(`${path}.tgz`))).toEqual(bytes);
  });

  test("no file is written outside, whatever a capture calls it", async () => {
    const capture = await readCaptureFiles(directory(FILES));
    const hostile = { ...capture, outputs: capture.outputs.map((output) => ({ ...output, file: "../escaped" })) };
    const parent = directory({});
    expect(() => writeCaptureDirectory(hostile, join(parent, "capture"))).toThrow(CaptureError);
    await expect(packCaptureFiles(hostile)).rejects.toThrow(CaptureError);
    expect(readdirSync(parent)).not.toContain("escaped");
  });
});
