import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { PHYSICAL } from "../../functions/facts/ethtool-statistics.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { scripts } from "../../functions/transports/script.ts";
import { withoutSecrets } from "../../functions/transports/secrets.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { collectionPlan, fixPlan } from "../../functions/triage/plan.ts";
import type { Capture, Command, Plan, Script } from "../../functions/triage/ports.ts";
import { cpuMs, expectLinear } from "../cpu-time.ts";
import { about, bb, busybox, gnu, need, nonce, scriptBench, shells, which, withPath } from "./script-bench.ts";

const catalogue = loadCatalogue(join(import.meta.dirname, "../../runbooks"));
const plans = [...catalogue.runbooks.keys()].map((name) => collectionPlan(catalogue, name));
const fixes = [...catalogue.fixes.values()].flatMap((fix) => [fixPlan(fix), fixPlan(fix, "rollback")]).filter(({ steps }) => steps.length > 0);
const everything: readonly Script[] = [...plans.map((plan) => scripts.collect(plan)), ...fixes.map((plan) => scripts.fix(plan)), scripts.fixStatus];

const plan = (commands: readonly Command[], changes: Partial<Plan> = {}): Plan => ({
  runbook: "test",
  commands,
  timeoutSeconds: 5,
  maxBytes: 100_000,
  intervalSeconds: 0,
  budgetSeconds: 60,
  ...changes,
});
const sh = (text: string, ...words: string[]): Command => ({ argv: ["sh", "-c", text, ...words] });

// many small programs are started; on a busy machine that takes its time
vi.setConfig({ testTimeout: 60_000 });

const { directory, run, toolbox, collect } = scriptBench();

const ESSENTIAL = ["cat", "grep", "head", "mktemp", "mv", "rm", "sed", "wc"];
/** On every node there is; programs of the tests among them. */
const USUAL = ["sh", "sleep", "true", "echo", ...ESSENTIAL];
const OPTIONAL = ["timeout", "nice", "ionice", "gzip", "base64", "sha256sum", "tr", "dd"];
const outputOf = (capture: Capture, index = 0) => {
  const output = capture.outputs[index];
  if (output === undefined) throw new Error(`there is no output ${index}: ${JSON.stringify(capture.notCollected)}`);
  return output;
};

describe.skipIf(!need("shellcheck"))("shellcheck", () => {
  test.each(everything.map((script) => ({ name: script.name, script })))("$name", ({ script }) => {
    const { status, stdout } = spawnSync("shellcheck", ["-s", "sh", "-"], { input: script.text, encoding: "utf8" });
    expect(stdout).toBe("");
    expect(status).toBe(0);
  });
});

describe("every script of the catalogue", () => {
  test("can be an SSM document", () => {
    for (const script of everything) expect(ssmDocument(script).content.length).toBeLessThan(64 * 1024);
  });

  test("has a name of its own", () => {
    const names = everything.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  test("holds nothing of a run: the same plan is the same text", () => {
    expect(plans.map((item) => scripts.collect(item).text)).toEqual(everything.slice(0, plans.length).map(({ text }) => text));
    for (const { text } of everything) expect(text).not.toContain(nonce);
  });

  test("needs a nonce", () => {
    for (const { text } of everything) {
      const { status, stdout } = spawnSync("/bin/sh", ["-s"], { input: text, env: {}, encoding: "utf8" });
      expect([status === 0, stdout]).toEqual([false, ""]);
    }
  });
});

describe.each(shells.map((shell) => ({ name: shell.join(" "), shell })))("collection under $name", ({ shell }) => {
  test("keeps output, errors, exit codes and order; a missing tool is recorded, not an error", () => {
    const commands = [
      sh("echo out; echo err >&2; exit 3"),
      { argv: ["no-such-tool", "x"] },
      sh("cat; printf 'no newline'"),
      sh('printf "%s|" "$@"', "a'b c", "$x", "`y`", "*"),
    ];
    const capture = collect(plan(commands), shell);
    expect(capture.outputs.map(({ text, stderr, exitCode, truncated }) => [text, stderr, exitCode, truncated])).toEqual([
      ["out\n", "err\n", 3, false],
      ["", "", 127, false],
      ["no newline", "", 0, false],
      ["$x|`y`|*|", "", 0, false],
    ]);
    expect(capture).toMatchObject({ target: "node1", transport: "test", runbook: "test", startedAt: about.startedAt, redacted: 0, notCollected: [] });
    expect(capture.outputs[0]).toMatchObject({ argv: commands[0]?.argv, sample: 1, startMs: expect.any(Number), durationMs: expect.any(Number) });
    expect(new Set(capture.outputs.map(({ file }) => file)).size).toBe(4);
  });

  test("cuts a long output, and says so; cuts what is said on stderr without stopping the command", () => {
    const noisy = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo 'what a noise' >&2; done; echo done";
    const capture = collect(plan([sh("while :; do echo 0123456789; done"), sh(noisy), sh("printf %0999d 1")], { maxBytes: 1000 }), shell);
    const [endless, chatty, short] = [outputOf(capture, 0), outputOf(capture, 1), outputOf(capture, 2)];
    expect([endless.text.length, endless.truncated]).toEqual([1000, true]);
    expect([chatty.text, chatty.exitCode, chatty.stderr.length, chatty.truncated]).toEqual(["done\n", 0, 4000, false]);
    expect([short.text.length, short.truncated]).toEqual([999, false]);
  });

  test("stops a command after its time; what it said by then is kept, with exit code 124 or 137", () => {
    const capture = collect(plan([sh("echo begun; exec sleep 30"), sh("echo next")], { timeoutSeconds: 1 }), shell);
    expect([124, 137]).toContain(outputOf(capture).exitCode);
    expect(outputOf(capture).text).toBe("begun\n");
    expect(outputOf(capture).durationMs).toBeGreaterThanOrEqual(900);
    expect(outputOf(capture, 1).text).toBe("next\n");
  });

  test("lists what there was no time for", () => {
    const each: Command = { argv: ["echo", "{}"], each: "echo 1" };
    const capture = collect(plan([sh("echo begun; exec sleep 30"), sh("echo next"), each], { timeoutSeconds: 1, budgetSeconds: 1 }), shell);
    expect(capture.outputs).toHaveLength(1);
    const reason = "the collection's time budget of 1 s was used up";
    expect(capture.notCollected).toEqual([
      { command: "sh -c echo next", reason },
      { command: "echo {}", reason },
    ]);
  });

  test("lists what there was no room for", () => {
    const of = plan([1, 2, 3].map((n) => sh(`printf %0900d ${n}`)));
    const { text } = scripts.collect(of);
    expect(text).toContain("\nwhole=134217728\n");
    const capture = scripts.readCapture(run(text.replace("whole=134217728", "whole=1000"), shell).stdout, { ...about, plan: of });
    expect(capture.outputs).toHaveLength(2);
    expect(capture.notCollected).toEqual([{ command: "sh -c printf %0900d 3", reason: "the collection's limit of 128 MiB was used up" }]);
  });

  test("carries bytes that are no text, and output that looks like ours", () => {
    const hostile = [
      sh("printf 'a\\000b\\377\\376c\\n'"),
      sh(`printf 'NETCHECK/1 ${"f".repeat(32)} collect raw 3 -\\nabc\\nNETCHECK/1 ${"f".repeat(32)} end\\n'`),
      sh(`printf '#${"f".repeat(32)} 0 - 1 0 0 0 3 0 0\\nabc'`),
      sh("printf '\\nNETCHECK/1 0123 end\\n#\\n\\n'"),
      sh("echo last"),
    ];
    const capture = collect(plan(hostile), shell);
    expect(capture.outputs.map(({ text, truncated }) => [text, truncated])).toEqual([
      ["a\0b\ufffd\ufffdc\n", false],
      [`NETCHECK/1 ${"f".repeat(32)} collect raw 3 -\nabc\nNETCHECK/1 ${"f".repeat(32)} end\n`, false],
      [`#${"f".repeat(32)} 0 - 1 0 0 0 3 0 0\nabc`, false],
      ["\nNETCHECK/1 0123 end\n#\n\n", false],
      ["last\n", false],
    ]);
  });

  test("runs a command for each number, and for nothing that is not a number", () => {
    const ids = ["7", "8; touch /tmp/no", "$(echo 9)", "-1", " 10", "12345678901", "0x1f", "", "*", "42", "7"];
    const each = `printf '%s\\n' ${ids.map((id) => `'${id}'`).join(" ")}`;
    const capture = collect(plan([{ argv: ["echo", "id", "{}"], each }]), shell);
    expect(capture.outputs.map(({ command, text }) => [command, text])).toEqual([
      ["echo id 7", "id 7\n"],
      ["echo id 42", "id 42\n"],
    ]);
    expect(capture.outputs.map(({ file }) => file)).toEqual(["outputs/echo_id_7.txt", "outputs/echo_id_42.txt"]);
    expect(collect(plan([{ argv: ["echo", "{}"], each: "seq 100" }]), shell).outputs).toHaveLength(16);
    expect(collect(plan([{ argv: ["echo", "{}"], each: "no-such-tool" }, sh("echo on")]), shell).outputs.map(({ text }) => text)).toEqual(["on\n"]);
  });

  test("runs a command for each interface name, and for nothing else", () => {
    const names = ["eth0", "eth0.100", "br-1a2b", "-e", "a b", "$(id)", "x;id", "../x", "*", "a/b", "sixteen_letters_", "veth1@if3", "`id`", "", "eth0"];
    const each = `printf '%s\\n' ${names.map((name) => `'${name}'`).join(" ")}`;
    const capture = collect(plan([{ argv: ["echo", "-S", "{}"], each, eachOf: "interface", samples: 2 }], { intervalSeconds: 1 }), shell);
    expect(capture.outputs.map(({ command, text, sample }) => [command, text, sample])).toEqual(
      [1, 2].flatMap((sample) => ["eth0", "eth0.100", "br-1a2b", "veth1@if3"].map((name) => [`echo -S ${name}`, `-S ${name}\n`, sample])),
    );
    // the physical interfaces, as the facts ask for them
    const physical = collect(plan([{ argv: ["echo", "{}"], each: PHYSICAL, eachOf: "interface" }]), shell).outputs.map(({ text }) => text.trim());
    expect(physical).toEqual(readdirSync("/sys/class/net").filter((name) => existsSync(`/sys/class/net/${name}/device`)));
  });

  test("a list that takes too long does not hold up the rest", () => {
    const capture = collect(plan([{ argv: ["echo", "{}"], each: "echo 1; exec sleep 30" }, sh("echo on")], { timeoutSeconds: 1 }), shell);
    expect(capture.outputs.map(({ text }) => text)).toEqual(["1\n", "on\n"]);
  });

  test("takes two samples, at least the interval apart, everything else in between", () => {
    const commands: Command[] = [{ argv: ["cat", "/proc/uptime"], samples: 2 }, sh("echo between")];
    const capture = collect(plan(commands, { intervalSeconds: 1 }), shell);
    expect(capture.outputs.map(({ command, sample, file }) => [command, sample, file])).toEqual([
      ["cat /proc/uptime", 1, "outputs/cat_-proc-uptime.txt"],
      ["sh -c echo between", 1, "outputs/sh_-c_echo-between.txt"],
      ["cat /proc/uptime", 2, "outputs/cat_-proc-uptime.sample2.txt"],
    ]);
    const [first, , second] = capture.outputs.map(({ text }) => Number(text.split(" ")[0]));
    expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(0.98);
  });

  test("says where tools are", () => {
    const capture = collect(plan([{ argv: ["command", "-v", "sh", "no-such-tool", "cat"] }]), shell);
    expect(outputOf(capture)).toMatchObject({ command: "command -v sh no-such-tool cat", exitCode: 0 });
    expect(outputOf(capture).text).toMatch(/^\S*sh\n\S*cat\n$/);
  });

  test("a node that has just come up: hundredths of a second are no octal numbers", () => {
    const uptime = join(directory(), "uptime");
    writeFileSync(uptime, "0.08 0.09\n");
    const of = plan([sh("echo up")]);
    const { text } = scripts.collect(of);
    expect(text).toContain("</proc/uptime");
    const ran = run(text.replace("/proc/uptime", uptime), shell);
    expect(ran.stderr).toBe("");
    expect(outputOf(scripts.readCapture(ran.stdout, { ...about, plan: of })).text).toBe("up\n");
  });
});

describe("nodes with fewer tools", () => {
  const commands = [
    sh("echo out; echo err >&2"),
    sh("printf 'a\\000b\\377c \\303\\274\\n'"),
    sh("while :; do echo 0123456789; done"),
    { argv: ["absent"] },
    sh("echo last"),
  ];
  const small = plan(commands, { maxBytes: 1000 });
  const boxes: { name: string; shell: string[]; tools: () => Record<string, string> }[] = [
    ...OPTIONAL.map((missing) => ({ name: `no ${missing}`, shell: ["dash"], tools: () => gnu(...USUAL, ...OPTIONAL.filter((tool) => tool !== missing)) })),
    { name: "the least", shell: ["dash"], tools: () => gnu(...USUAL) },
    ...(busybox
      ? [
          { name: "busybox applets", shell: ["busybox", "sh"], tools: () => bb(...USUAL, ...OPTIONAL) },
          { name: "busybox applets under dash", shell: ["dash"], tools: () => bb(...USUAL, ...OPTIONAL) },
          { name: "the least, of busybox", shell: ["dash"], tools: () => bb(...USUAL) },
        ]
      : []),
  ];

  test.each(boxes)("$name", ({ shell, tools }) => {
    const box = tools();
    const capture = collect(small, shell, toolbox(box));
    const binary = "gzip" in box && "base64" in box ? "a\0b\ufffdc \u00fc\n" : "tr" in box ? "a?b?c ??\n" : undefined;
    if (binary === undefined) {
      // the bytes were changed by a wire that carries text: what cannot be read is listed
      expect(capture.outputs.map(({ text, truncated }) => [text, truncated])[0]).toEqual(["out\n", false]);
      expect(outputOf(capture, 1).truncated).toBe(true);
      expect(capture.notCollected.map(({ command }) => command)).toEqual(commands.slice(2).map(({ argv }) => argv.join(" ")));
      return;
    }
    expect(capture.outputs.map(({ text, exitCode, truncated }) => [text.length, exitCode === 0, truncated])).toEqual([
      [4, true, false],
      [binary.length, true, false],
      [1000, false, true],
      [0, false, false],
      [5, true, false],
    ]);
    expect(outputOf(capture, 1).text).toBe(binary);
    expect(outputOf(capture, 0).stderr).toBe("err\n");
    expect(outputOf(capture, 3).exitCode).toBe(127);
    expect(capture.notCollected).toEqual([]);
  });

  test("no timeout: commands are stopped all the same, and nothing keeps running", () => {
    const marker = `30.${process.pid}`;
    const path = toolbox(gnu(...USUAL, "gzip", "base64"));
    const capture = collect(plan([sh(`echo begun; exec sleep ${marker}`), sh("echo next; exit 4")], { timeoutSeconds: 1 }), ["dash"], path);
    expect(capture.outputs.map(({ text, exitCode }) => [text, exitCode])).toEqual([
      ["begun\n", 137],
      ["next\n", 4],
    ]);
    expect(spawnSync("pgrep", ["-f", `sleep ${marker}`], { encoding: "utf8" }).stdout).toBe("");
  });

  test("a head that does not know -c", () => {
    const tools = gnu(...USUAL.filter((tool) => tool !== "head"), ...OPTIONAL);
    const path = toolbox(tools);
    const head = `#!/bin/sh\nif [ "$1" = -c ]; then echo "head: invalid option -- c" >&2; exit 1; fi\nexec ${which("head")} "$@"\n`;
    writeFileSync(join(path, "head"), head, { mode: 0o755 });
    const capture = collect(
      plan([sh("echo out; echo err >&2"), sh("while :; do echo 0123456789; done"), { argv: ["echo", "{}"], each: "echo 5" }], { maxBytes: 1000 }),
      ["dash"],
      path,
    );
    expect(capture.outputs.map(({ text, truncated }) => [text.length, truncated])).toEqual([
      [4, false],
      [1000, true],
      [2, false],
    ]);
    rmSync(join(path, "dd"));
    expect(run(withPath(scripts.collect(small).text, path))).toEqual({
      code: 69,
      stdout: "",
      stderr: "netcheck: this node's head does not know -c, and there is no dd\n",
    });
  });

  test.each(ESSENTIAL)("without %s it says so and does nothing", (missing) => {
    const path = toolbox(gnu(...USUAL.filter((tool) => tool !== missing)));
    expect(run(withPath(scripts.collect(small).text, path), ["dash"])).toEqual({ code: 69, stdout: "", stderr: `netcheck: this node has no ${missing}\n` });
  });

  test("a sed that cannot redact: nothing leaves the node", () => {
    const path = toolbox(gnu(...USUAL.filter((tool) => tool !== "sed"), ...OPTIONAL));
    writeFileSync(join(path, "sed"), "#!/bin/sh\nexec cat\n", { mode: 0o755 });
    expect(run(withPath(scripts.collect(plan([sh("echo token=abcdef")])).text, path))).toEqual({
      code: 69,
      stdout: "",
      stderr: "netcheck: this node's sed cannot black out secrets\n",
    });
  });

  test("what cannot be redacted is withheld", () => {
    const path = toolbox(gnu(...USUAL.filter((tool) => tool !== "sed"), ...OPTIONAL));
    // works on standard input (the trial at the start), fails on files
    writeFileSync(join(path, "sed"), `#!/bin/sh\nif [ $# -gt 3 ]; then exit 4; fi\nexec ${which("sed")} "$@"\n`, { mode: 0o755 });
    const { outputs } = collect(plan([sh("echo token=abcdef; echo secret=abcdef >&2")]), ["dash"], path);
    expect(outputs.map(({ text, stderr, truncated }) => [text, stderr, truncated])).toEqual([["", "", true]]);
  });

  test("a temporary folder that cannot be written", () => {
    const { text } = scripts.collect(small);
    const ran = run(`TMPDIR=/proc\n${text}`);
    expect([ran.code, ran.stdout]).toEqual([70, ""]);
    expect(ran.stderr).toContain("/proc/netcheck.");
  });
});

describe("redaction", () => {
  const pem = (kind: string) => `-----BEGIN ${kind}-----\nMIIEpAIBAAKCAQEA\nc2VjcmV0c2VjcmV0==\n-----END ${kind}-----`;
  const jwt = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJub2RlIn0.c2lnbmF0dXJl";
  const cases: [string, string][] = [
    [`before\n${pem("RSA PRIVATE KEY")}\nafter`, "before\n[redacted]\n[redacted]\n[redacted]\n[redacted]\nafter"],
    [`key: ${pem("PRIVATE KEY")} x\nafter`, "key: [redacted]\n[redacted]\n[redacted]\n[redacted]\nafter"],
    [pem("OPENSSH PRIVATE KEY").replaceAll("\n", "\r\n  "), "[redacted]\n[redacted]\n[redacted]\n[redacted]"],
    [pem("PGP PRIVATE KEY BLOCK"), "[redacted]\n[redacted]\n[redacted]\n[redacted]"],
    [`{"key":"${pem("EC PRIVATE KEY").replaceAll("\n", "\\n")}","next":1}\nafter`, '{"key":"[redacted]","next":1}\nafter'],
    // cut off in the middle: the rest of that output goes
    ["-----BEGIN PRIVATE KEY-----\nMIIEpAIB\nAAKCAQEA", "[redacted]\n[redacted]\n[redacted]"],
    [pem("CERTIFICATE"), pem("CERTIFICATE")],
    [`bearer ${jwt} x`, "bearer [redacted] x"],
    ["Authorization: Bearer abcdefgh.ijk=", "Authorization: [redacted]"],
    ["a Bearer abcdefgh.ijk= b", "a Bearer [redacted] b"],
    [`"authorization": "Basic dXNlcjpwYXNz", "a": 1`, '"authorization": "[redacted]", "a": 1'],
    [`{"Authorization":["Bearer abcdefghijk"]}`, '{"Authorization":["[redacted]"]}'],
    ["authorization denied for eth0", "authorization denied for eth0"],
    ["AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", "[redacted] and [redacted]"],
    ["aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [redacted]"],
    ['"SecretAccessKey" : "wJalrXUtnFEMI/K7MDENG",', '"SecretAccessKey" : "[redacted]",'],
    ["xoxb-123456789012-abcdefghij xapp-1-A0123456789", "[redacted] [redacted]"],
    [`ghp_${"a".repeat(36)} github_pat_${"b".repeat(30)} glpat-${"c".repeat(20)}`, "[redacted] [redacted] [redacted]"],
    ['{"password":"two words","id":7}', '{"password":"[redacted]","id":7}'],
    ['{"password":"a\\"b, c","id":7}', '{"password":"[redacted]","id":7}'],
    ['{"msg":"{\\"password\\":\\"hunter22\\"}"}', '{"msg":"{\\"password\\":\\"[redacted]\\"}"}'],
    ["password='two words' x", "password='[redacted]' x"],
    ["PASSWORD=ab,cdefgh;x next", "PASSWORD=[redacted] next"],
    ["--password hunter22 --verbose", "--password [redacted] --verbose"],
    ["--token --verbose", "--token --verbose"],
    ["client-key-data: LS0tLS1CRUdJTg==", "client-key-data: [redacted]"],
    ["private key: aGVsbG8=", "private key: [redacted]"],
    ["https://user:pa55:word@host/path", "https://user:[redacted]@host/path"],
    ["tcp://10.0.0.1:80@x fe80::1%eth0", "tcp://10.0.0.1:[redacted]@x fe80::1%eth0"],
    ['{"token":1234,"ids":[1,2]}', '{"token":1234,"ids":[1,2]}'],
  ];
  const seds = [
    { name: "sed", box: undefined },
    ...(busybox ? [{ name: "busybox sed", box: () => toolbox({ ...gnu(...USUAL, ...OPTIONAL), ...bb("sed") }) }] : []),
  ];

  test.each(seds)("$name: secrets go, the rest stays, line by line", ({ box }) => {
    const path = box?.();
    const texts = cases.map(([text], index) => {
      writeFileSync(join(directory(), `text${index}`), text);
      return { argv: ["cat", join(directory(), `text${index}`)] };
    });
    const capture = collect(plan(texts), ["dash"], path);
    expect(capture.outputs.map(({ text }) => text)).toEqual(cases.map(([, expected]) => expected));
    const marks = cases.map(([, expected]) => expected.split("[redacted]").length - 1).reduce((sum, count) => sum + count, 0);
    expect(capture.redacted).toBe(marks);
  });

  test("the same in what was not collected but pasted or imported", () => {
    expect(cases.map(([text]) => withoutSecrets(text).text)).toEqual(cases.map(([, expected]) => expected));
    const { text, redacted } = withoutSecrets(`a [redacted] b\n${pem("RSA PRIVATE KEY")}\ntoken=abcdef\n`);
    expect({ text, redacted }).toEqual({ text: `a [redacted] b\n${"[redacted]\n".repeat(4)}token=[redacted]\n`, redacted: 5 });
    // brackets as POSIX writes them
    expect(withoutSecrets("x [a]\\ q\n", ["[^][:alnum:]\n x]a[]\\[:space:]]+q"]).text).toBe("x [redacted]\n");
  });

  test.each([
    "eyJ",
    "eyJabcdefgh.",
    'token="',
    "token:   ",
    "secret ",
    "--token -",
    "://a:b",
    "authorization:",
    "-----BEGIN PRIVATE KEY",
    "-----BEGIN A ",
    "bearer ",
  ])("a megabyte of %j in one line is looked through at once", (word) => {
    expectLinear(
      (size) => word.repeat(size),
      (text) => withoutSecrets(text),
      250_000 / word.length,
    );
  });

  test.each(["(a+)+b", "a.*a.*a.*a.*b", "(a|aa)*b", "(x+x+)+y|(a*)*b"])("a pattern of somebody's own, %s, takes no time on a hostile text", (pattern) => {
    const started = cpuMs();
    expect(withoutSecrets(`${"a".repeat(20_000)}c`, [pattern]).redacted).toBe(0);
    expect(cpuMs() - started).toBeLessThan(3000);
  });

  test.each(seds)("$name: and what somebody says is a secret, too", ({ box }) => {
    const redact = ["ACME-[0-9]{4}", "/srv/(vault|keys)/[a-z]+", "Secret", "it's \\$[0-9]+", '"seed":"[^"]*"', "longe|longest"];
    const capture = collect(
      plan([sh(`echo 'a ACME-1234 b ACME-12 /srv/vault/abc /srv/other'; echo "it's \\$5 {\\"seed\\":\\"x y\\"} longest token=abcdef"`)], { redact }),
      ["dash"],
      box?.(),
    );
    const expected = "a [redacted] b ACME-12 [redacted] /srv/other\n[redacted] {[redacted]} [redacted] token=[redacted]\n";
    expect(outputOf(capture).text).toBe(expected);
    expect(capture.redacted).toBe(6);
    expect(withoutSecrets('a ACME-1234 b ACME-12 /srv/vault/abc /srv/other\nit\'s $5 {"seed":"x y"} longest token=abcdef\n', redact)).toEqual({
      text: expected,
      redacted: 6,
    });
  });

  test.each(seds)("$name: also on stderr, and with bytes that are no text", ({ box }) => {
    const capture = collect(plan([sh("echo token=abcdef >&2; printf 'a\\000\\377 secret=abcdef\\n\\000token: abcdef'")]), ["dash"], box?.());
    expect(outputOf(capture)).toMatchObject({ text: "a\0\ufffd secret=[redacted]\n\0token: [redacted]", stderr: "token=[redacted]\n" });
  });

  test.each(seds)("$name: leaves what nodes print as it is", ({ box }) => {
    const captures = join(import.meta.dirname, "../../runbooks/rules");
    const files = readdirSync(captures, { recursive: true, encoding: "utf8" }).filter((name) => /outputs\/[^/]+$/.test(name));
    expect(files.length).toBeGreaterThan(100);
    const all = join(directory(), "all");
    const text = files.map((name) => readFileSync(join(captures, name), "utf8")).join("\n");
    writeFileSync(all, text);
    const capture = collect(plan([{ argv: ["cat", all] }], { maxBytes: 64 << 20 }), ["dash"], box?.());
    expect(outputOf(capture).text === text).toBe(true);
    expect(capture.redacted).toBe(0);
    expect(withoutSecrets(text).text === text).toBe(true);
  });
});

describe("reading a frame", () => {
  const of = plan([sh("one"), { argv: ["two"], samples: 2 }, { argv: ["three", "{}"], each: "x" }, sh("four")]);
  const record = (head: string, text: string, error = ""): string =>
    `#${nonce} ${head} ${Buffer.byteLength(text)} ${Buffer.byteLength(error)} 0\n${text}${error}`;
  const payload = [
    record("1 - 1 0 0 1", "second\n"),
    record("0 - 1 3 1 2", "first ü\n", "oops\n"),
    record("2 17 1 0 3 1", "third\n"),
    record("3 - 1 0 4 1", ""),
    record("1 - 2 0 200 1", "second again\n"),
  ].join("");
  const frame = (encoding: "gz" | "raw", body: Buffer | string, sum: boolean): string => {
    const bytes = encoding === "gz" ? Buffer.from(`${gzipSync(body).toString("base64").replaceAll(/.{76}/g, "$&\n")}\n`) : Buffer.from(body);
    const digest = sum ? createHash("sha256").update(bytes).digest("hex") : "-";
    return `NETCHECK/1 ${nonce} collect ${encoding} ${bytes.length} ${digest}\n${bytes.toString("utf8")}\nNETCHECK/1 ${nonce} end\n`;
  };
  const read = (stdout: string, truncated = false): Capture => scripts.readCapture(stdout, { ...about, plan: of, truncated });
  const whole = read(frame("raw", payload, true));
  const kinds = (["gz", "raw"] as const).flatMap((encoding) => [true, false].map((sum) => ({ encoding, sum })));

  test("the example is whole", () => {
    expect(whole.notCollected).toEqual([]);
    expect(whole.outputs.map(({ command, text, stderr, sample, startMs }) => [command, text, stderr, sample, startMs])).toEqual([
      ["two", "second\n", "", 1, 0],
      ["sh -c one", "first ü\n", "oops\n", 1, 10],
      ["three 17", "third\n", "", 1, 30],
      ["sh -c four", "", "", 1, 40],
      ["two", "second again\n", "", 2, 2000],
    ]);
  });

  test.each(kinds)("is found whatever stands around it: $encoding, checksum $sum", ({ encoding, sum }) => {
    const text = frame(encoding, payload, sum);
    for (const around of [
      text,
      `motd\nNETCHECK/1 ${"f".repeat(32)} collect raw 3 -\nabc\n${text}`,
      `${text}Connection closed.\n`,
      text.trimEnd(),
      text.replace("\n", "\r\n"),
    ])
      expect(read(around)).toEqual(whole);
  });

  test.each(kinds)("cut at every length: $encoding, checksum $sum", ({ encoding, sum }) => {
    const text = frame(encoding, payload, sum);
    const header = text.indexOf("\n");
    let complete = 0;
    for (let length = 0; length < text.length; length += 1) {
      const cut = text.slice(0, length);
      if (length < header) {
        // "-" is the last character of a header without a checksum; a shorter number is a header of its own only with what follows
        expect(() => read(cut), cut).toThrow("the node sent no result frame");
        continue;
      }
      const capture = read(cut, true);
      const known = (command: string): boolean => capture.notCollected.some((item) => item.command === command);
      for (const output of whole.outputs) {
        const got = capture.outputs.find(({ file }) => file === output.file);
        if (got === undefined) {
          const command = output.sample === 2 ? "two (second sample)" : output.command.replace("17", "{}");
          expect(known(command), `${length}: ${command} is lost without a word`).toBe(true);
        } else if (!got.truncated) expect(got, String(length)).toEqual(output);
        else expect(output.text.startsWith(got.text.replace(/\ufffd+$/, "")), String(length)).toBe(true);
      }
      if (capture.outputs.length === whole.outputs.length && capture.outputs.every(({ truncated }) => !truncated)) complete += 1;
    }
    expect(complete).toBeGreaterThan(0);
  });

  test("without the transport's word for it: a cut is noticed", () => {
    const text = frame("raw", payload, false);
    const capture = read(text.slice(0, text.indexOf("second again")));
    expect(capture.outputs.filter(({ truncated }) => truncated).map(({ text: got, sample }) => [got, sample])).toEqual([["", 2]]);
  });

  test("changed on its way", () => {
    for (const encoding of ["raw", "gz"] as const) {
      const text = frame(encoding, payload, true);
      const middle = text.indexOf("\n") + 20;
      const changed = `${text.slice(0, middle)}${text[middle] === "A" ? "B" : "A"}${text.slice(middle + 1)}`;
      expect(() => read(changed)).toThrow("the node's answer was changed on its way: its checksum does not match");
    }
    const text = frame("gz", payload, false);
    const middle = text.indexOf("\n") + 40;
    expect(() => read(`${text.slice(0, middle)}${text[middle] === "A" ? "B" : "A"}${text.slice(middle + 1)}`)).toThrow(
      "the node's answer could not be unpacked: ",
    );
  });

  test("bytes added or lost without a checksum: the output is marked, the rest is listed", () => {
    const text = frame("raw", payload, false);
    for (const changed of [text.replace("first", "first first"), text.replace("first", "fi")]) {
      const capture = read(changed);
      expect(capture.outputs.map(({ command, truncated }) => [command, truncated])).toEqual([
        ["two", false],
        ["sh -c one", true],
      ]);
      expect(capture.notCollected.map(({ command }) => command)).toEqual(["two (second sample)", "three {}", "sh -c four"]);
    }
  });

  test("a gzip bomb is not unpacked", () => {
    const bomb = frame("gz", Buffer.alloc(257 << 20), true);
    expect(bomb.length).toBeLessThan(1 << 20);
    expect(() => read(bomb)).toThrow(/could not be unpacked: .*larger than/);
  });

  test.each([
    ["an index that is not in the plan", record("9 - 1 0 0 0", "x"), 0],
    ["the same record twice", record("0 - 1 0 0 0", "x") + record("0 - 1 0 0 0", "y"), 1],
    ["a path for an id", record("2 ../../etc 1 0 0 0", "x"), 0],
    ["a third sample", record("0 - 3 0 0 0", "x"), 0],
    ["no exit code", record("0 - 1 x 0 0", "x"), 0],
    ["a length below zero", `#${nonce} 0 - 1 0 0 0 -5 10 0\nx`, 0],
    ["a length that is no number", `#${nonce} 0 - 1 0 0 0 1e1 0 0\nx`, 0],
    ["a length beyond the end", `#${nonce} 0 - 1 0 0 0 999999999999 0 0\nx`, 1],
    ["too few words", `#${nonce} 0 -\nx`, 0],
    ["another nonce", `#${"f".repeat(32)} 0 - 1 0 0 0 1 0 0\nx`, 0],
    ["nothing", "", 0],
  ])("from a node that lies: %s", (_name, body, count) => {
    const capture = read(frame("raw", body, true));
    expect(capture.outputs).toHaveLength(count);
    for (const { file, text } of capture.outputs) {
      expect(file).toMatch(/^outputs\/[A-Za-z0-9_.-]+$/);
      expect(text).toBe("x");
    }
    expect(capture.notCollected.map(({ command }) => command)).toContain("sh -c four");
  });

  test.each([
    ["", "the node sent no result frame (nothing at all)"],
    ["sh: 1: Syntax error\n", "the node sent no result frame; it said: sh: 1: Syntax error"],
    [`NETCHECK/1 ${nonce} fix raw 0 -\n\n`, "the node sent no result frame"],
    [`NETCHECK/1 ${"f".repeat(32)} collect raw 0 -\n\n`, "the node sent no result frame"],
    [`NETCHECK/1 ${nonce} collect zip 0 -\n\n`, "the node sent no result frame"],
    [`NETCHECK/1 ${nonce} collect raw 99999999999999 -\n\n`, "the node sent no result frame"],
  ])("no frame: %j", (stdout, message) => {
    expect(() => read(stdout)).toThrow(message);
  });
});

describe("a collection that ends early", () => {
  test.each(shells.map((shell) => ({ name: shell.join(" "), shell })))("when nobody listens any more it leaves nothing behind under $name", ({ shell }) => {
    const listener = `${shell.join(" ")} -s | head -c 1`;
    const long = plan([{ argv: ["head", "-c", "300000", "/dev/urandom"] }], { maxBytes: 1 << 20 });
    expect(run(scripts.collect(long).text, ["sh", "-c", listener]).stdout).toBe("N");
    expect(readdirSync(join(directory(), "tmp"))).toEqual([]);
  });

  test("stopped in the middle it leaves nothing behind", () => {
    const { text } = scripts.collect(plan([sh("echo begun; exec sleep 2")]));
    const ran = spawnSync("timeout", ["0.5", "dash", "-s"], {
      input: text,
      env: { PATH: process.env["PATH"] ?? "", TMPDIR: join(directory(), "tmp"), NETCHECK_nonce: nonce, NETCHECK_job: "job-1" },
      encoding: "utf8",
    });
    expect([ran.status, ran.stdout]).toEqual([124, ""]);
    expect(readdirSync(join(directory(), "tmp"))).toEqual([]);
    expect(existsSync("/tmp/no")).toBe(false);
  });
});
