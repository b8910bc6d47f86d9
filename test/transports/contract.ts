import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { scripts } from "../../functions/transports/script.ts";
import type { Job, JobState, Plan, Script, Target, Transport } from "../../functions/triage/ports.ts";

/** A transport with something behind it, for one test. */
export interface Subject {
  /** A new instance of the transport, as a restarted netcheck would have. */
  transport(): Transport;
  /** Reachable, and not. */
  target: Target;
  nowhere: Target;
  /** Makes a script known where it has to be registered beforehand. */
  register(script: Script): void;
  close(): Promise<void>;
}

const nonce = "0123456789abcdef0123456789abcdef";
const framing = { nonce: { pattern: "^[0-9a-f]{32}$", description: "" }, job: { pattern: "^[A-Za-z0-9_-]{1,80}$", description: "" } };

/** A script of the catalogue for tests. */
export function script(name: string, text: string, parameters: Script["parameters"] = {}, timeoutSeconds = 20): Script {
  return { name, text, parameters: { ...framing, ...parameters }, timeoutSeconds };
}

export const job = (id: string, run: Script, parameters: Record<string, string> = {}): Job => ({ id, script: run, parameters, nonce });

/** Polls until the job is over. */
export async function result(transport: Transport, target: Target, handle: string): Promise<JobState> {
  for (;;) {
    const state = await transport.poll(target, handle, 500);
    if (state.state !== "running") return state;
  }
}

const plan: Plan = {
  runbook: "contract",
  commands: [{ argv: ["uname", "-s"] }, { argv: ["no-such-tool"] }],
  timeoutSeconds: 5,
  maxBytes: 10_000,
  intervalSeconds: 1,
  budgetSeconds: 20,
};
/** A real collection; what it brings back is the same on every Linux. */
const collection = (): Script => scripts.collect(plan);

/** What every transport does alike, recorded or live, so that the triage need not care which one it has. */
export function jobContract(name: string, create: () => Promise<Subject>): void {
  describe(`transport ${name}: jobs`, () => {
    let subject: Subject;
    beforeEach(async () => {
      subject = await create();
    });
    afterEach(() => subject.close());

    test("is called by its name", () => {
      expect(subject.transport().name).toBe(name);
    });

    test("finds a job by its id after a restart, and reads its result", async () => {
      const what = collection();
      subject.register(what);
      const handle = await subject.transport().start(subject.target, job("job-1", what));
      const restarted = subject.transport();
      expect(await restarted.find(subject.target, "job-1")).toBe(handle);
      expect(await restarted.find(subject.target, "job-2")).toBeUndefined();
      expect(await restarted.find(subject.target, "job")).toBeUndefined();
      expect(await result(restarted, subject.target, handle)).toMatchObject({ state: "done", exitCode: 0 });
    });

    test("says with a TransportError that a job surely did not start", async () => {
      const what = collection();
      subject.register(what);
      const error = await subject
        .transport()
        .start(subject.nowhere, job("job-1", what))
        .then(
          async (handle) => result(subject.transport(), subject.nowhere, handle),
          (reason: Error) => reason,
        );
      // a transport that cannot know until it tries says so with the result
      if (error instanceof Error) {
        expect(error.name).toBe("TransportError");
        expect(error.message).toMatch(new RegExp(`^${name}: could not start `));
      } else expect(error).not.toMatchObject({ state: "done", exitCode: 0 });
    });

    test("brings a collection back as a capture", async () => {
      const what = collection();
      subject.register(what);
      const transport = subject.transport();
      const state = await result(transport, subject.target, await transport.start(subject.target, job("job-1", what)));
      expect(state).toMatchObject({ state: "done", exitCode: 0, truncated: false });
      if (state.state !== "done") return;
      const capture =
        state.capture ?? scripts.readCapture(state.stdout, { nonce, plan, target: "node", transport: name, startedAt: "", truncated: state.truncated });
      expect(capture.outputs.map(({ command, text, exitCode }) => [command, text, exitCode])).toEqual([
        ["uname -s", "Linux\n", 0],
        ["no-such-tool", "", 127],
      ]);
    });
  });
}

/** The same, and what every transport that runs scripts does with them. */
export function transportContract(name: string, create: () => Promise<Subject>): void {
  jobContract(name, create);
  describe(`transport ${name}: scripts`, () => {
    let subject: Subject;
    beforeEach(async () => {
      subject = await create();
    });
    afterEach(() => subject.close());

    async function run(what: Script, parameters: Record<string, string> = {}): Promise<JobState> {
      subject.register(what);
      const transport = subject.transport();
      return result(transport, subject.target, await transport.start(subject.target, job("job-1", what, parameters)));
    }

    test("brings back output, errors and exit code; a failing script is a result, not an exception", async () => {
      expect(await run(script("fails", "echo out; echo err >&2; exit 3"))).toEqual({
        state: "done",
        exitCode: 3,
        stdout: "out\n",
        stderr: "err\n",
        truncated: false,
      });
    });

    test("hands parameters over as they are, in NETCHECK_ variables", async () => {
      const hostile = `a'b"c; $(echo no) \`echo no\` {{ x }} \\ *`;
      const text = 'printf "%s|%s|%s|%s" "$NETCHECK_word" "$NETCHECK_empty" "$NETCHECK_nonce" "$NETCHECK_job"';
      const parameters = { word: { pattern: "^.*$", description: "" }, empty: { pattern: "^$", description: "" } };
      expect(await run(script("echoes", text, parameters), { word: hostile, empty: "" })).toMatchObject({ stdout: `${hostile}||${nonce}|job-1` });
    });

    test("brings back a long answer whole", async () => {
      const state = await run(script("long", 'i=0; while [ $i -lt 2000 ]; do i=$((i+1)); printf "%0100d\\n" "$i"; done'));
      expect(state).toMatchObject({ state: "done", truncated: false });
      expect(state.state === "done" && state.stdout.length).toBe(2000 * 101);
    });

    test("says that a job is running, and is done later", async () => {
      const what = script("slow", "sleep 0.5; echo done");
      subject.register(what);
      const transport = subject.transport();
      const handle = await transport.start(subject.target, job("job-1", what));
      expect(await transport.poll(subject.target, handle, 0)).toMatchObject({ state: "running" });
      expect(await result(transport, subject.target, handle)).toMatchObject({ state: "done", stdout: "done\n" });
    });

    test("stops a script that takes too long", async () => {
      const state = await run(script("stuck", "echo begun; sleep 60", {}, 1));
      expect(state.state === "lost" || (state.state === "done" && state.exitCode !== 0), JSON.stringify(state)).toBe(true);
    });
  });
}
