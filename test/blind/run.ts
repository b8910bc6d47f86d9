import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Capture } from "../../functions/facts/capture.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import type { Diagnosis } from "../../functions/rules/diagnosis.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";

/**
 * The blind cases: captures written without a look at the rules, by <fault-id>/<case> or healthy/<case>. `expect.json` names the fault (`{"cause": "<rule>"}`)
 * or says that there is none (`{"cause": null}`). A case is a capture, or one text as somebody pasted it: `paste.txt`.
 * `node test/blind/run.ts [WORD…]` prints what netcheck says of each case whose path holds one of the words.
 */
export interface BlindResult {
  /** <fault-id>/<case>. */
  readonly name: string;
  /** The fault of the node; null: it is healthy. */
  readonly expected: string | null;
  readonly diagnosis: Diagnosis;
}

const here = fileURLToPath(new URL(".", import.meta.url));
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));

/** The cases on disk, sorted. */
function blindCases(): string[] {
  const folders = (path: string): string[] =>
    readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => entry.name)
      .sort();
  return folders(here)
    .flatMap((fault) => folders(join(here, fault)).map((name) => `${fault}/${name}`))
    .filter((name) => existsSync(join(here, name, "expect.json")));
}

/** The capture of a case as `netcheck diagnose` reads it; further ones of other machines that a text shows. */
export async function blindCaptures(folder: string): Promise<[Capture, ...Capture[]]> {
  const paste = join(folder, "paste.txt");
  return (await readCaptures(existsSync(paste) ? paste : folder)) as [Capture, ...Capture[]];
}

/** Diagnoses every case whose name holds one of `words` (all, if there are none); of faulty ones those that are `chosen`. */
export async function runBlind(words: readonly string[] = [], chosen: (name: string) => boolean = () => true): Promise<BlindResult[]> {
  const catalogue = loadCatalogue(runbooks, { tolerant: true });
  const results: BlindResult[] = [];
  for (const name of blindCases()) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    if (!name.startsWith("healthy/") && !chosen(name)) continue;
    const folder = join(here, name);
    const { cause } = JSON.parse(readFileSync(join(folder, "expect.json"), "utf8")) as { cause: string | null };
    const [diagnosis, ...others] = (await blindCaptures(folder)).map((capture) => diagnose(capture, catalogue, name, () => performance.now())) as [Diagnosis];
    results.push({ name, expected: cause, diagnosis: { ...diagnosis, causes: [diagnosis, ...(others as Diagnosis[])].flatMap(({ causes }) => causes) } });
  }
  return results;
}

/** Counts and the names behind them. */
export interface BlindTotals {
  readonly faulty: number;
  readonly found: number;
  readonly first: number;
  readonly healthy: number;
  /** Faulty nodes whose fault is not among the causes. */
  readonly missed: readonly string[];
  /** Faulty nodes whose fault is a cause, but not the first. */
  readonly notFirst: readonly string[];
  /** Healthy nodes with any cause. */
  readonly falseAlarms: readonly string[];
  /** Other causes on faulty nodes: not wrong by themselves, but to be looked at. */
  readonly otherCauses: readonly string[];
}

export function totalsOf(results: readonly BlindResult[]): BlindTotals {
  const causes = (result: BlindResult): string[] => result.diagnosis.causes.map((cause) => cause.rule);
  const told = (result: BlindResult): string => `${result.name}: ${causes(result).join(", ") || result.diagnosis.verdict}`;
  const faulty = results.filter((result) => result.expected !== null);
  const found = faulty.filter((result) => causes(result).includes(result.expected as string));
  const healthy = results.filter((result) => result.expected === null);
  return {
    faulty: faulty.length,
    found: found.length,
    first: found.filter((result) => causes(result)[0] === result.expected).length,
    healthy: healthy.length,
    missed: faulty.filter((result) => !found.includes(result)).map(told),
    notFirst: found.filter((result) => causes(result)[0] !== result.expected).map(told),
    falseAlarms: healthy.filter((result) => causes(result).length > 0).map(told),
    otherCauses: faulty.filter((result) => causes(result).some((cause) => cause !== result.expected)).map(told),
  };
}

function table(results: readonly BlindResult[]): string {
  const row = ({ name, expected, diagnosis }: BlindResult): string => {
    const causes = diagnosis.causes.map((cause) => `${cause.rule} ${cause.confidence.toFixed(2)}`);
    const ok = expected === null ? causes.length === 0 : diagnosis.causes[0]?.rule === expected;
    const extra = [...diagnosis.symptoms.map((finding) => `symptom ${finding.rule}`), ...diagnosis.risks.map((finding) => `risk ${finding.rule}`)];
    const unread = diagnosis.unparsed.map(({ command, lines }) => `${lines} lines of \`${command.slice(0, 40)}\``);
    const more = [...(expected === null || causes.length === 0 ? extra : []), ...(unread.length > 0 ? [`unread: ${unread.join(", ")}`] : [])];
    return `${ok ? "  " : "! "}${name.padEnd(60)} ${diagnosis.verdict.padEnd(13)} ${causes.join(", ")}${more.length > 0 ? `  [${more.join("; ")}]` : ""}`;
  };
  return results.map(row).join("\n");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = await runBlind(process.argv.slice(2));
  const totals = totalsOf(results);
  const verdicts = results.filter((result) => result.expected === null && result.diagnosis.verdict === "healthy").length;
  console.log(table(results));
  console.log(`\nrecall ${totals.found}/${totals.faulty}, first ${totals.first}/${totals.faulty}, false alarms ${totals.falseAlarms.length}/${totals.healthy}`);
  console.log(
    `healthy nodes told to be healthy ${verdicts}/${totals.healthy}, faulty nodes with other causes too ${totals.otherCauses.length}/${totals.faulty}`,
  );
}
