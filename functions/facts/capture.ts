import { z } from "zod";
import { isRefusal, sampled } from "./command.ts";
import { toldByDate } from "./date-output.ts";
import { firstIssue } from "./issue.ts";
import { present } from "./present.ts";

/** `capture.json` (DESIGN C3). Only schema, target.name and the outputs' command and file are required, so that a person can write one by hand. */
export const CaptureIndex = z.strictObject({
  schema: z.literal("netcheck.capture/1"),
  target: z.strictObject({ name: z.string().min(1).max(253) }),
  transport: z.string().max(64).optional(),
  runbook: z.string().max(64).optional(),
  startedAt: z.string().max(64).optional(),
  /** What was blacked out on the node before anything left it. */
  redacted: z.number().int().nonnegative().optional(),
  /** Commands that were planned and did not run, with the reason. */
  notCollected: z.array(z.strictObject({ command: z.string(), reason: z.string() })).optional(),
  outputs: z
    .array(
      z.strictObject({
        command: z.union([z.string().min(1).max(4096), z.array(z.string().max(4096)).min(1).max(256)]),
        file: z.string().min(1).max(255),
        exitCode: z.number().int().optional(),
        durationMs: z.number().nonnegative().optional(),
        /** Milliseconds since startedAt at which the command began. */
        startMs: z.number().nonnegative().optional(),
        /** When the command began, as some note it for each output. It stands in for the time of the capture where that is missing. */
        startedAt: z.string().max(64).optional(),
        stderr: z.string().optional(),
        truncated: z.boolean().optional(),
        /** Which run of the same command it is, from 1; later ones than the second count as it does. */
        sample: z.number().int().min(1).max(1000).optional(),
        /** Why the command was not run although its answer is known: there is nothing that it could list. The file is empty. */
        notRun: z.string().max(200).optional(),
      }),
    )
    .max(10_000),
});
export type CaptureIndex = z.infer<typeof CaptureIndex>;

/**
 * Checks what `capture.json` holds. What others keep in theirs besides (a note, a host's kernel, `null` for what was not measured) is no reason to refuse it and is left out; a slip of the
 * pen is one: what the right key would have said, `truncated` for one, must not get lost. @throws {TypeError} that names key and reason.
 */
export function checkIndex(json: unknown): CaptureIndex {
  const { shape } = CaptureIndex;
  const index = known(json, shape);
  if (isObject(index)) {
    index["target"] = known(index["target"], shape.target.shape);
    for (const [name, { shape: of }] of [["outputs", shape.outputs.element] as const, ["notCollected", shape.notCollected.unwrap().element] as const])
      if (Array.isArray(index[name])) index[name] = index[name].map((one) => known(one, of));
  }
  const parsed = CaptureIndex.safeParse(index);
  if (parsed.success) return parsed.data;
  const { path, message } = firstIssue(parsed.error);
  throw new TypeError(`${path.length === 0 ? "" : `${path.join(".")}: `}${message}`);
}

const isObject = (given: unknown): given is Record<string, unknown> => typeof given === "object" && given !== null && !Array.isArray(given);

/** Keys that nobody has by chance. */
const POLLUTING: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** A copy of an object with the keys of `shape` that say something, and those that were meant to be one of them. Anything else as it is. */
function known(given: unknown, shape: object): unknown {
  if (!isObject(given)) return given;
  const names = Object.keys(shape).map((name) => name.toLowerCase());
  return Object.fromEntries(
    Object.entries(given).filter(([key, value]) =>
      Object.hasOwn(shape, key) ? value !== null : POLLUTING.has(key) || names.some((name) => isSlip(key.toLowerCase(), name)),
    ),
  );
}

/** True if two words differ by one letter, by two that changed places, or by `_` and `-` only. */
function isSlip(one: string, other: string): boolean {
  const [a, b] = [one.replaceAll(/[_-]/g, ""), other];
  let from = 0;
  while (from < a.length && a[from] === b[from]) from++;
  let behind = 0;
  while (behind < Math.min(a.length, b.length) - from && a.at(-1 - behind) === b.at(-1 - behind)) behind++;
  const [x, y] = [a.slice(from, a.length - behind), b.slice(from, b.length - behind)];
  return (x.length <= 1 && y.length <= 1) || (x.length === 2 && y === `${x[1]}${x[0]}`);
}

/** One output of a capture, with its text. */
export interface Output {
  /** As given: what evidence shows. */
  readonly command: string;
  readonly argv: readonly string[] | undefined;
  readonly file: string;
  readonly text: string;
  readonly exitCode: number | undefined;
  readonly durationMs: number | undefined;
  readonly startMs: number | undefined;
  readonly stderr: string;
  readonly truncated: boolean;
  readonly sample: number;
  /** Why it was not run; its empty text is the answer all the same. */
  readonly notRun?: string | undefined;
  /** Whose it is, where a text shows several machines that are read together. */
  readonly machine?: string;
  /** Nobody says which command printed it: what it looks like does. */
  readonly guessed?: true;
}

/** All outputs of one node at one time. */
export interface Capture {
  readonly target: string;
  /** Nobody said which node it is: the target is what the file or the folder of a pasted text is called. */
  readonly unnamed?: true;
  readonly transport: string;
  readonly runbook: string;
  readonly startedAt: string | undefined;
  readonly redacted: number;
  readonly notCollected: readonly { command: string; reason: string }[];
  readonly outputs: readonly Output[];
}

/**
 * A script that a shell was given as one word, `["sh", "-c", "ss -tan | wc -l"]`, as a person types it: its pipes count. In front of the shell may stand what
 * runs it (`chroot /host`).
 */
function asTyped(command: string | readonly string[]): string | readonly string[] {
  if (typeof command === "string") return command;
  const [shell = "", option = "", script = ""] = command.slice(-3);
  if (!/^(?:\/(?:usr\/)?bin\/)?(?:ba|da|a|k)?sh$/.test(shell) || !/^-[a-z]{0,4}c$/.test(option)) return command;
  const before = command.slice(0, -3);
  const quote = ["'", '"'].find((one) => !script.includes(one));
  if (before.length === 0) return script;
  return quote === undefined ? command : [...before, "sh -c", `${quote}${script}${quote}`].join(" ");
}

/**
 * Puts a validated `capture.json` and the texts of its files together. `texts` answers for each file with its text and whether it was cut, or with nothing for a file
 * that is not there: its command counts as not collected, which is never the same as one that printed nothing.
 */
export function captureOf(index: CaptureIndex, texts: (file: string) => { text: string; truncated: boolean } | undefined): Capture {
  const seen = new Map<string, number>();
  const startedAt = index.startedAt ?? earliest(index.outputs.map((output) => output.startedAt));
  const lost: { command: string; reason: string }[] = [];
  const outputs = index.outputs.flatMap((output) => {
    const given = asTyped(output.command);
    const command = typeof given === "string" ? given : given.join(" ");
    // who writes a capture by hand and ran a command twice need not say so
    const question = sampled(command);
    const nth = (seen.get(question) ?? 0) + 1;
    const sample = Math.min(2, output.sample ?? nth);
    const read = texts(output.file);
    if (read === undefined || !isRefusal(read.text)) seen.set(question, nth);
    if (read === undefined) {
      lost.push({ command: sample === 2 ? `${command} (second sample)` : command, reason: `${JSON.stringify(output.file)} ${NOT_IN_CAPTURE}` });
      return [];
    }
    const { text, truncated } = read;
    const taken: Output = {
      command,
      argv: typeof given === "string" ? undefined : given,
      file: output.file,
      text,
      exitCode: output.exitCode,
      durationMs: output.durationMs,
      startMs: output.startMs,
      stderr: output.stderr ?? "",
      truncated: truncated || (output.truncated ?? false),
      sample,
      ...present({ notRun: output.notRun }),
    };
    return [taken];
  });
  return {
    target: index.target.name,
    transport: index.transport ?? "replay",
    runbook: index.runbook ?? "netcheck",
    startedAt: startedAt ?? toldByDate(outputs),
    redacted: index.redacted ?? 0,
    notCollected: [...(index.notCollected ?? []), ...lost],
    outputs,
  };
}

/** What is said of a file that `capture.json` names and that does not lie beside it. */
const NOT_IN_CAPTURE = "is not in the capture";
/** What is said of one of several machines' bundles that could not be read beside the others. */
export const NOT_READ = "was left out";

/** What is to be told of a capture of which files are missing, a sentence each. */
export const missingFiles = ({ notCollected }: Pick<Capture, "notCollected">): readonly string[] =>
  notCollected.flatMap(({ command, reason }) => {
    if (reason.endsWith(NOT_IN_CAPTURE)) return [`${reason}: what \`${command}\` printed is not known`];
    return reason.endsWith(NOT_READ) ? [reason] : [];
  });

/** The first of these times; those that are none are left aside. */
function earliest(times: readonly (string | undefined)[]): string | undefined {
  const known = times.filter((time) => time !== undefined && !Number.isNaN(Date.parse(time)));
  return known.toSorted((one, other) => Date.parse(one as string) - Date.parse(other as string))[0];
}

/** The `capture.json` of a capture: the inverse of {@link captureOf}. */
export function indexOf(capture: Capture): CaptureIndex {
  const first = new Map(capture.outputs.map(({ command }, i) => [sampled(command), i] as const).reverse());
  return {
    schema: "netcheck.capture/1",
    target: { name: capture.target },
    transport: capture.transport,
    runbook: capture.runbook,
    ...present({ startedAt: capture.startedAt }),
    ...(capture.redacted === 0 ? {} : { redacted: capture.redacted }),
    ...(capture.notCollected.length === 0 ? {} : { notCollected: [...capture.notCollected] }),
    outputs: capture.outputs.map((output, i) => ({
      command: output.argv === undefined ? output.command : [...output.argv],
      file: output.file,
      ...present({ exitCode: output.exitCode, durationMs: output.durationMs, startMs: output.startMs }),
      ...(output.stderr === "" ? {} : { stderr: output.stderr }),
      ...(output.truncated ? { truncated: true } : {}),
      ...(output.sample === 1 && first.get(sampled(output.command)) === i ? {} : { sample: output.sample }),
      ...present({ notRun: output.notRun }),
    })),
  };
}
