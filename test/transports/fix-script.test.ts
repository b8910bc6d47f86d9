import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { replayFix, replayFixStatus, scripts } from "../../functions/transports/script.ts";
import { fixPlan, scriptParameters } from "../../functions/triage/plan.ts";
import type { FixPlan, FixRun } from "../../functions/triage/ports.ts";

const root = process.getuid?.() === 0 && spawnSync("unshare", ["-m", "true"]).status === 0;
if (!root && process.env["CI"] === "true") throw new Error("fix-script.test.ts needs root: fixes run in a mount namespace");
const shells = [["dash"], ["busybox", "sh"]].filter(([program = ""]) => spawnSync(program, ["--help"]).error === undefined);

const nonce = "0123456789abcdef0123456789abcdef";
const any = { pattern: "^.*$", description: "" };
const plan = (changes: Partial<FixPlan>): FixPlan => ({ name: "fix-test", parameters: {}, check: "true", steps: [{ run: ["true"] }], ...changes });

let directory: string;
let log: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-fix-"));
  log = join(directory, "log");
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A step that leaves a line in the log: what was really run. */
const say = (...words: string[]): FixPlan["steps"][number] => ({ run: ["sh", "-c", 'printf "%s\\n" "$*" >>"$0"', log, ...words] });
const said = (): string[] => (existsSync(log) ? readFileSync(log, "utf8").trimEnd().split("\n") : []);

/** A machine for one test: a mount namespace with an empty /var/lib and /tmp, kept alive by a process of ours. */
class Machine {
  readonly #holder: ChildProcess;
  readonly #shell: readonly string[];
  private constructor(holder: ChildProcess, shell: readonly string[]) {
    this.#holder = holder;
    this.#shell = shell;
  }

  static async start(shell: readonly string[]): Promise<Machine> {
    const keep = join(directory, "keep");
    mkdirSync(keep);
    // the log's folder stays visible under the new /tmp
    const setUp = `mount --make-rprivate / && mount --bind "$0" "$1" && mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/tmp && echo ready && exec cat`;
    const holder = spawn("unshare", ["-m", "sh", "-c", setUp, directory, keep], { stdio: ["pipe", "pipe", "inherit"] });
    const [ready] = (await once(holder.stdout as NodeJS.ReadableStream, "data")) as [Buffer];
    expect(String(ready)).toBe("ready\n");
    return new Machine(holder, shell);
  }

  spawn(text: string, parameters: Readonly<Record<string, string>>, job: string): ChildProcess {
    const words = [`--mount=/proc/${this.#holder.pid}/ns/mnt`, ...this.#shell, "-s"];
    const env: Record<string, string> = { PATH: process.env["PATH"] ?? "", TMPDIR: "/var/lib/tmp", NETCHECK_nonce: nonce, NETCHECK_job: job };
    for (const [name, value] of Object.entries(parameters)) env[`NETCHECK_${name}`] = value;
    const child = spawn("nsenter", words, { env, stdio: "pipe" });
    child.stdin?.end(text);
    return child;
  }

  async run(text: string, parameters: Readonly<Record<string, string>> = {}, job = "job-1"): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const child = this.spawn(text, parameters, job);
    const output = { stdout: "", stderr: "" };
    child.stdout?.on("data", (data) => {
      output.stdout += String(data);
    });
    child.stderr?.on("data", (data) => {
      output.stderr += String(data);
    });
    const [code] = (await once(child, "close")) as [number | null];
    return { code, ...output };
  }

  async fix(of: FixPlan, parameters: Readonly<Record<string, string>> = {}, job = "job-1"): Promise<FixRun> {
    const ran = await this.run(scripts.fix(of).text, parameters, job);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    return scripts.readFix(ran.stdout, nonce);
  }

  async status(job = "job-1"): Promise<string> {
    const ran = await this.run(scripts.fixStatus.text, { run: job }, `${job}-status`);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    return scripts.readFixStatus(ran.stdout, nonce);
  }

  async sh(text: string): Promise<string> {
    const { code, stdout, stderr } = await this.run(text);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  }

  async stop(): Promise<void> {
    const closed = once(this.#holder, "close");
    this.#holder.stdin?.end();
    await closed;
  }
}

const reason = root ? "" : " (skipped: needs root for a mount namespace)";
describe.skipIf(!root).each(shells.map((shell) => ({ name: shell.join(" "), shell })))(`a fix under $name${reason}`, ({ shell }) => {
  let machine: Machine;
  beforeEach(async () => {
    machine = await Machine.start(shell);
  });
  afterEach(async () => {
    // beside the marker nothing is left
    expect(await machine.sh("ls -A /var/lib/tmp")).toBe("");
    await machine.stop();
    expect(existsSync("/var/lib/netcheck")).toBe(false);
  });

  test("a check that the shell cannot parse: nothing was run, and there is no marker that would leave that open", async () => {
    const { text } = scripts.fix(plan({ check: "if true; then", steps: [say("one")] }));
    const ran = await machine.run(text);
    expect(ran).toMatchObject({ code: 2, stdout: "" });
    expect(ran.stderr).toMatch(/syntax error/i);
    expect(said()).toEqual([]);
    expect(await machine.status()).toBe("none");
  });

  test("runs its steps in order and says what they said", async () => {
    const run = await machine.fix(plan({ check: "echo looks right", steps: [say("one"), { run: ["sh", "-c", "echo out; echo err >&2"] }, say("two")] }));
    expect(run).toMatchObject({ outcome: "succeeded", repeated: false });
    expect(run.steps.map(({ exitCode, output }) => [exitCode, output])).toEqual([
      [0, ""],
      [0, "out\nerr"],
      [0, ""],
    ]);
    expect(run.steps[1]?.command).toBe("sh -c echo out; echo err >&2");
    expect(said()).toEqual(["one", "two"]);
    expect(await machine.status()).toBe("succeeded");
  });

  test("runs once: a second run of the job changes nothing and repeats the outcome; another job is another run", async () => {
    const of = plan({ steps: [say("applied")] });
    expect(await machine.fix(of)).toMatchObject({ outcome: "succeeded", repeated: false });
    expect(await machine.fix(of)).toEqual({ outcome: "succeeded", repeated: true, steps: [] });
    expect(await machine.fix(plan({ check: "false", steps: [say("other")] }))).toEqual({ outcome: "succeeded", repeated: true, steps: [] });
    expect(said()).toEqual(["applied"]);
    expect(await machine.fix(of, {}, "job-2")).toMatchObject({ outcome: "succeeded", repeated: false });
    expect(said()).toEqual(["applied", "applied"]);
  });

  test("many at once: exactly one applies", async () => {
    const { text } = scripts.fix(plan({ steps: [say("applied")] }));
    const runs = await Promise.all(Array.from({ length: 8 }, () => machine.run(text)));
    expect(said()).toEqual(["applied"]);
    const outcomes = runs.map(({ stdout }) => {
      try {
        const { outcome, repeated } = scripts.readFix(stdout, nonce);
        return repeated ? `repeated ${outcome}` : outcome;
      } catch (error) {
        return (error as Error).message;
      }
    });
    expect(outcomes.filter((outcome) => outcome === "succeeded")).toHaveLength(1);
    const others = ["repeated succeeded", "an earlier run of this proposal was started on the node and never reported how it went"];
    expect(outcomes.filter((outcome) => outcome !== "succeeded" && !others.includes(outcome))).toEqual([]);
    expect(await machine.status()).toBe("succeeded");
  });

  test("a check that fails refuses, once and for all", async () => {
    const refusing = plan({ check: 'echo "it is gone" >&2\nexit 1', steps: [say("applied")] });
    expect(await machine.fix(refusing)).toEqual({ outcome: "refused", repeated: false, steps: [{ command: "check", exitCode: 1, output: "it is gone" }] });
    expect(await machine.status()).toBe("refused");
    expect(await machine.fix(plan({ steps: [say("applied")] }))).toEqual({ outcome: "refused", repeated: true, steps: [] });
    expect(said()).toEqual([]);
  });

  test("a check cannot swallow the script, whatever it reads", async () => {
    // longer than what a shell reads ahead
    const steps = [{ run: ["true"], stdin: "x\n".repeat(50_000) }, say("applied")];
    expect(await machine.fix(plan({ check: "cat >/dev/null", steps }))).toMatchObject({ outcome: "succeeded" });
    expect(said()).toEqual(["applied"]);
  });

  test("a step that fails stops the rest and is named", async () => {
    const run = await machine.fix(plan({ steps: [say("one"), { run: ["sh", "-c", "echo no; exit 7"] }, say("three")] }));
    expect(run.outcome).toBe("failed");
    expect(run.steps.map(({ exitCode }) => exitCode)).toEqual([0, 7]);
    expect(run.steps[1]).toEqual({ command: "sh -c echo no; exit 7", exitCode: 7, output: "no" });
    expect(said()).toEqual(["one"]);
    expect(await machine.status()).toBe("failed");
    const missing = await machine.fix(plan({ steps: [{ run: ["no-such-tool"] }, say("after")] }), {}, "job-2");
    expect([missing.outcome, missing.steps[0]?.exitCode]).toEqual(["failed", 127]);
    expect(said()).toEqual(["one"]);
  });

  test("on the way back a step that fails keeps none of the others from being tried, and the run has failed all the same", async () => {
    const back = plan({ goOn: true, steps: [say("one"), { run: ["sh", "-c", "exit 7"] }, say("three")] });
    const run = await machine.fix(back);
    expect([run.outcome, run.steps.map(({ exitCode }) => exitCode), said()]).toEqual(["failed", [0, 7, 0], ["one", "three"]]);
    expect(await machine.status()).toBe("failed");
    expect(await machine.fix(back)).toEqual({ outcome: "failed", repeated: true, steps: [] });
    expect((await machine.fix(plan({ goOn: true, steps: [say("four")] }), {}, "job-2")).outcome).toBe("succeeded");
    expect(said()).toEqual(["one", "three", "four"]);
  });

  test("a failing round of a list stops the others", async () => {
    const run: FixPlan["steps"][number] = { each: ["ids"], run: ["sh", "-c", 'echo "$1" >>"$0"; [ "$1" != b ]', log, "$ids"] };
    expect(await machine.fix(plan({ parameters: { ids: any }, steps: [run, say("after")] }), { ids: "a b c" })).toMatchObject({ outcome: "failed" });
    expect(said()).toEqual(["a", "b"]);
  });

  test("lists go together word by word; an optional one may be empty", async () => {
    const parameters = { a: any, b: any, none: any, one: any };
    const steps: FixPlan["steps"] = [
      { ...say("pair", "$a", "$b", "$one"), each: ["a", "b"] },
      { ...say("never", "$none"), each: ["none"] },
      { ...say("if set"), if: "one" },
      { ...say("if not set"), if: "none" },
      { ...say("unless set"), unless: "one" },
      { ...say("unless not set"), unless: "none" },
      say("$one", "constant $one", "a'b"),
    ];
    expect(await machine.fix(plan({ parameters, steps }), { a: "1 2 3", b: "x * z", none: "", one: "eth0" })).toMatchObject({ outcome: "succeeded" });
    expect(said()).toEqual(["pair 1 x eth0", "pair 2 * eth0", "pair 3 z eth0", "if set", "unless not set", "eth0 constant $one a'b"]);
  });

  test("lists of different lengths are refused: nothing is run with half its arguments", async () => {
    const steps = [say("first"), { ...say("$a", "$b"), each: ["a", "b"] }];
    const run = await machine.fix(plan({ parameters: { a: any, b: any }, steps }), { a: "1 2", b: "x" });
    expect(run).toEqual({
      outcome: "refused",
      repeated: false,
      steps: [{ command: "check", exitCode: 1, output: "the lists are not of the same length: 1 2 | x" }],
    });
    expect(said()).toEqual([]);
  });

  test("parameters are data: nothing in them is run or expanded", async () => {
    const hostile = `a'b"c;touch /tmp/no $(touch /tmp/no) \`touch /tmp/no\` * \\ $HOME`;
    const run = await machine.fix(plan({ parameters: { value: any }, check: '[ -n "$NETCHECK_value" ]', steps: [say("$value")] }), { value: hostile });
    expect(run.outcome).toBe("succeeded");
    expect(said()).toEqual([hostile]);
    expect(existsSync("/tmp/no")).toBe(false);
  });

  test("a missing parameter stops it before anything is marked", async () => {
    const ran = await machine.run(scripts.fix(plan({ parameters: { value: any }, steps: [say("$value")] })).text);
    expect(ran.code).not.toBe(0);
    expect(ran.stdout).toBe("");
    expect([said(), await machine.status()]).toEqual([[], "none"]);
  });

  test("standard input is constant text, for each round", async () => {
    const stdin = "*filter\n-A \"$HOME\" `x` $(y) \\ 'z'\n\nCOMMIT\n";
    const step = { run: ["sh", "-c", 'cat >>"$0"; echo "$1" >>"$0"', log, "$names"], each: ["names"], stdin };
    expect(await machine.fix(plan({ parameters: { names: any }, steps: [step] }), { names: "one two" })).toMatchObject({ outcome: "succeeded" });
    expect(readFileSync(log, "utf8")).toBe(`${stdin}one\n${stdin}two\n`);
    const empty = { run: ["sh", "-c", 'wc -c >>"$0"', log] };
    await machine.fix(plan({ steps: [empty] }), {}, "job-2");
    expect(said().at(-1)?.trim()).toBe("0");
  });

  test("long and secret output of a step is cut and redacted", async () => {
    const run = await machine.fix(plan({ steps: [{ run: ["sh", "-c", "echo token=abcdef; seq 3000 | sed s/.*/noise/"] }] }));
    expect(run.steps[0]?.output.startsWith("token=[redacted]\nnoise")).toBe(true);
    expect(run.steps[0]?.output.length).toBeLessThanOrEqual(4100);
    expect(run.outcome).toBe("succeeded");
  });

  test("where no marker can be written nothing is applied", async () => {
    await machine.sh("mkdir -p /var/lib/netcheck && mount -t tmpfs -o ro tmpfs /var/lib/netcheck");
    expect(await machine.fix(plan({ steps: [say("applied")] }))).toEqual({ outcome: "unmarked", repeated: false, steps: [] });
    expect(said()).toEqual([]);
    expect(await machine.status()).toBe("none");
    await machine.sh("umount /var/lib/netcheck");
    // it was never run, so it may be
    expect(await machine.fix(plan({ steps: [say("applied")] }))).toMatchObject({ outcome: "succeeded", repeated: false });
  });

  test("stopped in the middle: unfinished, and never run again", async () => {
    const of = plan({ steps: [say("first"), { run: ["sh", "-c", 'echo "$$" >"$0.pid"; exec sleep 60', log] }, say("last")] });
    const child = machine.spawn(scripts.fix(of).text, {}, "job-1");
    const closed = once(child, "close");
    await expect.poll(() => existsSync(`${log}.pid`) && readFileSync(`${log}.pid`, "utf8").endsWith("\n"), { timeout: 4000 }).toBe(true);
    expect(await machine.status()).toBe("unfinished");
    child.kill("SIGKILL");
    process.kill(Number(readFileSync(`${log}.pid`, "utf8")), "SIGKILL");
    await closed;
    expect(await machine.status()).toBe("unfinished");
    const again = await machine.run(scripts.fix(of).text);
    expect(() => scripts.readFix(again.stdout, nonce)).toThrow("an earlier run of this proposal was started on the node and never reported how it went");
    expect(said()).toEqual(["first"]);
    await machine.sh("rm -rf /var/lib/tmp/netcheck.*");
  });

  test("the marker is where it should be, and a job cannot name another place", async () => {
    await machine.fix(plan({ steps: [say("applied")] }));
    expect(await machine.sh("cd /var/lib/netcheck/runs && ls -A . job-1 && cat job-1/outcome && stat -c %a .")).toBe(
      ".:\njob-1\n\njob-1:\noutcome\nreport\nsucceeded\n700\n",
    );
    const { text } = scripts.fix(plan({ steps: [say("elsewhere")] }));
    for (const job of ["../x", "a/b", ".", "a b", "a\nb"])
      expect(await machine.run(text, {}, job)).toEqual({ code: 69, stdout: "", stderr: "netcheck: that is not a job\n" });
    expect(await machine.run(scripts.fixStatus.text, { run: "../runs/job-1" })).toEqual({ code: 69, stdout: "", stderr: "netcheck: that is not a job\n" });
    expect(said()).toEqual(["applied"]);
  });

  test("status in all states", async () => {
    expect(await machine.status("never")).toBe("none");
    await machine.fix(plan({}), {}, "good");
    await machine.fix(plan({ check: "false" }), {}, "refused");
    await machine.fix(plan({ steps: [{ run: ["false"] }] }), {}, "bad");
    // died between its marker and its first word
    await machine.sh("mkdir /var/lib/netcheck/runs/silent");
    const jobs = ["good", "refused", "bad", "silent"];
    expect(await Promise.all(jobs.map((job) => machine.status(job)))).toEqual(["succeeded", "refused", "failed", "unfinished"]);
    expect(await machine.sh("ls /var/lib/netcheck/runs")).toBe("bad\ngood\nrefused\nsilent\n");
  });
});

describe("a fix as a script", () => {
  test("text of stdin that would end its own here-document is not accepted", () => {
    expect(() => scripts.fix(plan({ steps: [{ run: ["cat"], stdin: "a\nNETCHECK_STDIN\nrm -rf /\n" }] }))).toThrow(
      "fix-test: a line of stdin is NETCHECK_STDIN",
    );
  });

  const catalogue = loadCatalogue(join(import.meta.dirname, "../../runbooks"));
  const hostile = [
    "",
    " ",
    "x; reboot",
    "$(reboot)",
    "`reboot`",
    "a b c",
    "-f",
    "--help",
    "../../etc/passwd",
    "a\nb",
    "a\0b",
    "'",
    '"',
    "*",
    "x".repeat(500),
    "ünïcode",
  ];
  test.each([...catalogue.fixes.values()].map((fix) => ({ id: fix.file.id, fix })))("$id: hostile values do not get as far as its script", ({ fix }) => {
    for (const [name, parameter] of Object.entries(fix.file.parameters)) {
      for (const value of hostile) {
        // the empty string stands for a value that is not set
        if (value === "" && parameter.optional) continue;
        const others = { ...fix, file: { ...fix.file, parameters: { [name]: parameter } } };
        // nothing is set: what to do by hand, where the fix says it
        const words = value === "" ? (fix.file.otherwise ?? `${fix.file.id}: `) : `${fix.file.id}: `;
        expect(() => scriptParameters(others, { [name]: value }), `${name} ${JSON.stringify(value)}`).toThrow(words);
        if (parameter.list) expect(() => scriptParameters(others, { [name]: [value] })).toThrow(`${fix.file.id}: `);
      }
      expect(new RegExp(fixPlan(fix).parameters[name]?.pattern ?? "^").test("x; reboot")).toBe(false);
    }
  });
});

describe("reading how a fix went", () => {
  const run: FixRun = {
    outcome: "failed",
    repeated: false,
    steps: [
      { command: "one", exitCode: 0, output: "ü\n#0123 outcome succeeded 0 0 0" },
      { command: "two", exitCode: 3, output: `#${nonce} outcome succeeded 0 0 0` },
    ],
  };

  test("is the run", () => {
    expect(scripts.readFix(replayFix(run, nonce), nonce)).toEqual(run);
    for (const outcome of ["none", "unfinished", "succeeded", "failed", "refused", "unmarked"] as const)
      expect(scripts.readFixStatus(replayFixStatus(outcome, nonce), nonce)).toBe(outcome);
  });

  test("cut at every length it is an error, or all of it", () => {
    const text = replayFix(run, nonce);
    let errors = 0;
    for (let length = 0; length < text.length; length += 1) {
      try {
        expect(scripts.readFix(text.slice(0, length), nonce)).toEqual(run);
      } catch (error) {
        expect((error as Error).message).toMatch(/^(?:the node sent no result frame|the node's answer was cut off before the outcome)/);
        errors += 1;
      }
    }
    expect(errors).toBeGreaterThan(text.indexOf("failed"));
  });

  test("bytes lost in a step's output: no outcome is made up from what follows", () => {
    const text = replayFix(run, nonce).replace("one", "o");
    expect(() => scripts.readFix(text, nonce)).toThrow("the node's answer was cut off before the outcome");
  });

  test("words that are no outcome", () => {
    const frame = (kind: string, word: string): string => {
      const payload = `#${nonce} outcome ${word} 1 0 0\n`;
      return `NETCHECK/1 ${nonce} ${kind} raw ${payload.length} -\n${payload}\nNETCHECK/1 ${nonce} end\n`;
    };
    for (const word of ["", "fine", "SUCCEEDED", "constructor"]) {
      expect(() => scripts.readFix(frame("fix", word), nonce)).toThrow("cut off");
      expect(() => scripts.readFixStatus(frame("status", word), nonce)).toThrow("cut off");
    }
    expect(() => scripts.readFix(frame("fix", "none"), nonce)).toThrow("cut off");
    expect(() => scripts.readFixStatus(frame("fix", "succeeded"), nonce)).toThrow("no result frame");
    expect(() => scripts.readFix(frame("fix", "succeeded"), "f".repeat(32))).toThrow("no result frame");
  });

  test("an answer that was changed on its way", () => {
    const payload = `#${nonce} outcome succeeded 0 0 0\n`;
    const text = `NETCHECK/1 ${nonce} fix raw ${payload.length} ${"0".repeat(64)}\n${payload}\nNETCHECK/1 ${nonce} end\n`;
    expect(() => scripts.readFix(text, nonce)).toThrow("its checksum does not match");
  });
});
