import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { type Capture, captureOf, indexOf } from "../facts/capture.ts";
import { readCaptures } from "../imports/index.ts";
import { diagnose } from "../rules/diagnose.ts";
import type { Diagnosis, Evidence } from "../rules/diagnosis.ts";
import type { Expect } from "../rules/fixtures.ts";
import { judgeRule } from "../rules/judge.ts";
import { type Catalogue, ownSecrets } from "../rules/load.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { writeCaptureDirectory } from "../transports/capture-files.ts";
import { unpackCapture } from "../triage/captures.ts";
import { CommandError, UsageError } from "./errors.ts";
import { type Scrubbed, scrubCapture } from "./scrub.ts";

/** What to record, and where. */
export interface Recording {
  /** Id of an incident in local mode's store, or the path of a capture. */
  readonly source: string;
  /** The new fixture's folder; by default `<first cause>/fixtures/<source>` below the rules. */
  readonly output: string | undefined;
  /** Local mode's data. */
  readonly directory: string;
  readonly runbooks: string;
}

/** What was written. */
export interface Recorded {
  readonly folder: string;
  /** Whose case it is; undefined where there is no cause and the folder is no rule's. */
  readonly rule: string | undefined;
  readonly expect: Expect | undefined;
  /** The diagnosis, before and after. */
  readonly verdict: Diagnosis["verdict"];
  readonly replaced: Scrubbed["replaced"];
  /** All of it for people, with what to do next. */
  readonly text: string;
}

/**
 * `netcheck record`: writes a capture as a scrubbed fixture with its expect.yaml, after it has proved that the scrubbed capture is diagnosed as the original
 * one. @throws {CommandError} where there is no such capture, or the proof fails: then nothing is written
 */
export async function record({ source, output, directory, runbooks }: Recording, catalogue: Catalogue): Promise<Recorded> {
  const capture = existsSync(source) ? await captureOfPath(source, ownSecrets(catalogue)) : await captureOfIncident(source, directory);
  const before = diagnose(capture, catalogue, "", () => 0);
  const first = before.causes[0]?.rule;
  const folder = output === undefined ? defaultFolder(source, first, runbooks) : resolve(output);
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new UsageError(`${folder} is there already, and not empty: name another folder with --output`);
  let scrubbed: Scrubbed;
  try {
    scrubbed = scrubCapture(capture, rangesOf(catalogue));
  } catch (cause) {
    if (cause instanceof RangeError) throw new CommandError(`${source}: ${cause.message}. Record a smaller capture: only the outputs that matter`, { cause });
    throw cause;
  }
  const written = asWritten(scrubbed.capture);
  const changed = differences(
    before,
    diagnose(written, catalogue, "", () => 0),
    capture,
    written,
  );
  if (changed.length > 0)
    throw new CommandError(
      `${source}: without its names and addresses this capture is diagnosed differently, so it would prove nothing; nothing was written.\n${changed.map((one) => `  ${one}`).join("\n")}`,
    );
  // <rule>/fixtures/<case>: the case is the rule's
  const named = basename(dirname(folder)) === "fixtures" ? basename(dirname(dirname(folder))) : "";
  const rule = catalogue.rules.has(named) ? named : first;
  const expected = rule === undefined ? undefined : expectation(rule, written, catalogue, first);
  writeCaptureDirectory(written, folder);
  if (expected !== undefined) writeFileSync(join(folder, "expect.yaml"), expectText(rule ?? "", expected));
  return { folder, rule, expect: expected, verdict: before.verdict, replaced: scrubbed.replaced, text: report(folder, scrubbed, before, rule, expected) };
}

/** A capture as it will be read: whose an output is, where a text shows several machines, stands in no `capture.json`. */
function asWritten(capture: Capture): Capture {
  const texts = new Map(capture.outputs.map(({ file, text, truncated }) => [file, { text, truncated }]));
  return captureOf(indexOf(capture), (file) => texts.get(file));
}

/** A capture, a support bundle or a pasted text, of one node. */
async function captureOfPath(path: string, secrets: readonly string[]): Promise<Capture> {
  const [capture, ...more] = await readCaptures(path, secrets);
  if (capture === undefined || more.length > 0) throw new UsageError(`${path} holds ${more.length + 1} nodes: record them one by one`);
  return capture;
}

async function captureOfIncident(id: string, directory: string): Promise<Capture> {
  const file = join(directory, "store.sqlite");
  if (!existsSync(file))
    throw new CommandError(
      `${id} is no capture, and there are no incidents in ${directory}: start local mode first (--once keeps nothing), or name another --directory`,
    );
  const store = new SqliteStore(file);
  try {
    const incident = await store.incident(id);
    if (incident === undefined) {
      const latest = (await store.incidents(5)).map((one) => `${one.id} (${one.target})`);
      throw new CommandError(
        `there is no incident "${id}" in ${directory}; --once keeps none, and netcheck audit show lists the others${latest.length === 0 ? "" : `; the latest are ${latest.join(", ")}`}`,
      );
    }
    const data = incident.capture === undefined ? undefined : await store.get(incident.capture);
    if (data === undefined) throw new CommandError(`the incident ${id} has no capture: ${incident.problem ?? `its state is "${incident.state}"`}`);
    return unpackCapture(data);
  } finally {
    store.close();
  }
}

function defaultFolder(source: string, rule: string | undefined, runbooks: string): string {
  if (rule === undefined)
    throw new UsageError(`${source} has no cause, so it belongs to no rule by itself: name a folder with --output, runbooks/rules/<id>/fixtures/<case>`);
  const name = basename(resolve(source))
    .replace(/\.(?:tgz|tar\.gz|tar|json)$/, "")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return join(runbooks, "rules", rule, "fixtures", `recorded-${name}`);
}

/** Prefixes that conditions name: an address inside one must stay inside. */
function rangesOf({ rules }: Pick<Catalogue, "rules">): string[] {
  const found = new Set<string>();
  for (const { file } of rules.values()) {
    const forms = Object.values(file.forms ?? {});
    const conditions = [
      file.applies,
      file.when,
      file.settled,
      ...Object.values(file.let),
      ...file.evidence,
      ...forms.flatMap(({ when, evidence }) => [when, ...evidence]),
    ];
    for (const text of conditions.filter((one) => one !== undefined))
      for (const match of text.matchAll(/"((?:\d{1,3}\.){3}\d{1,3}\/\d{1,2}|[0-9a-f:]{3,39}::?\/\d{1,3})"/g)) found.add(match[1] as string);
  }
  return [...found].sort();
}

/** The place of the output that a line is quoted from: of a text's outputs several may be of one command. */
const outputOf = ({ outputs }: Capture, { file, command, text }: Pick<Evidence, "file" | "command" | "text">): number =>
  outputs.findIndex((output) => output.file === file && output.command === command && (output.text.includes(text) || output.stderr.includes(text)));

/** What is not the same in two diagnoses, but for the names and addresses in their texts. */
function differences(before: Diagnosis, after: Diagnosis, original: Capture, scrubbed: Capture): string[] {
  const found: string[] = [];
  const compare = (what: string, one: unknown, other: unknown): void => {
    const [a, b] = [JSON.stringify(one), JSON.stringify(other)];
    if (a !== b) found.push(`${what}: ${a} became ${b}`);
  };
  const findings = (diagnosis: Diagnosis, capture: Capture, key: "causes" | "symptoms" | "risks") =>
    diagnosis[key].map(({ rule, confidence, evidence }) => ({
      rule,
      confidence,
      // files have other names now, and which of two lines comes first may turn on a name
      lines: evidence.map(({ file, command, line, text }) => `${outputOf(capture, { file, command, text }) + 1}:${line}`).toSorted(),
    }));
  compare("verdict", before.verdict, after.verdict);
  for (const key of ["causes", "symptoms", "risks"] as const) compare(key, findings(before, original, key), findings(after, scrubbed, key));
  compare(
    "could not be checked",
    before.unchecked.map(({ rule }) => rule),
    after.unchecked.map(({ rule }) => rule),
  );
  compare(
    "lines that could not be read",
    before.unparsed.map(({ lines }) => lines),
    after.unparsed.map(({ lines }) => lines),
  );
  return found;
}

function expectation(rule: string, capture: Capture, catalogue: Catalogue, first: string | undefined): Expect | undefined {
  const one = catalogue.rules.get(rule);
  if (one === undefined) return undefined;
  const verdict = judgeRule(one, capture).outcome.verdict;
  return { verdict, ...(first === rule ? { first: true } : {}) };
}

const expectText = (rule: string, { verdict, first }: Expect): string =>
  `# what ${rule} says. Recorded with netcheck record: addresses, MACs, names and ids are pseudonyms\nverdict: ${verdict}\n${first === true ? "first: true\n" : ""}`;

function report(folder: string, { capture, replaced }: Scrubbed, before: Diagnosis, rule: string | undefined, expected: Expect | undefined): string {
  const place = relative(process.cwd(), folder).startsWith("..") ? folder : relative(process.cwd(), folder);
  const { addresses, macs, names, ids } = replaced;
  return [
    `${place}: ${capture.outputs.length} outputs; ${addresses} addresses, ${macs} MACs, ${names} names and ${ids} ids were looked at and have pseudonyms where they tell whose node it is`,
    `the diagnosis is the same: ${before.verdict}${before.causes.length === 0 ? "" : `, ${before.causes.map((cause) => `${cause.rule} ${Math.round(cause.confidence * 100)} %`).join(", ")}`}`,
    expected === undefined
      ? "no expect.yaml was written: there is no cause, and the folder is not one of a rule (runbooks/rules/<id>/fixtures/<case>)"
      : `expect.yaml: ${rule} ${expected.verdict}${expected.first === true ? ", first" : ""}`,
    "Read the outputs before you share them: a secret in a log message, or a name that stands nowhere else, is still there.",
    ...(expected === undefined
      ? []
      : [basename(dirname(folder)) === "fixtures" ? `Next: netcheck rules test ${rule}` : `Next: move it to runbooks/rules/${rule}/fixtures/`]),
    "",
  ].join("\n");
}
