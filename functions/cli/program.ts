import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Command, type CommanderError } from "commander";
import { commandLine } from "../facts/command.ts";
import { derivedFacts, facts } from "../facts/index.ts";
import { readCaptures } from "../imports/index.ts";
import { diagnose } from "../rules/diagnose.ts";
import { type Diagnosis, type Finding, severities } from "../rules/diagnosis.ts";
import { type Catalogue, LoadError, loadCatalogue } from "../rules/load.ts";
import { uncheckedGroups } from "../rules/unchecked.ts";
import { CaptureError, MAX_OUTPUT, packCaptureFiles } from "../transports/capture-files.ts";
import { TransportError } from "../triage/ports.ts";
import { compareCommand } from "./compare.ts";
import { CommandError, UsageError } from "./errors.ts";
import { factParts } from "./fact-fields.ts";
import { print, warnOfBroken } from "./output.ts";
import { rulesCommand } from "./rules.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The `netcheck` command (DESIGN C4). Prints to stdout; errors to stderr with exit code 1 (failed) or 2 (usage). */
export function program(): Command {
  const netcheck = new Command("netcheck").description("Finds the root cause of a node's network fault, proves it, and fixes it with approval.");
  netcheck.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : 2));
  netcheck.configureOutput({ outputError: (text, write) => write(text) });
  const runbooks = process.env["NETCHECK_RUNBOOKS"] ?? join(root, "runbooks");
  const catalogue = (): Catalogue => loadCatalogue(runbooks, { tolerant: true });
  const run =
    <Args extends unknown[]>(action: (...args: Args) => Promise<void> | void) =>
    async (...args: Args): Promise<void> => {
      try {
        await action(...args);
      } catch (error) {
        process.stderr.write(`netcheck: ${isExpected(error) ? error.message : ((error as Error).stack ?? String(error))}\n`);
        process.exitCode = error instanceof UsageError ? 2 : 1;
      }
    };

  netcheck
    .command("diagnose")
    .description("diagnose captures (a directory with capture.json, or a .tgz), support bundles (sosreport, EKS log collector, cilium sysdump), pasted text")
    .argument("<path...>")
    .option("--json", "one JSON line each, in order")
    .option("--fail-on <severity>", "exit code 1 if a cause of at least this severity is found (info, warning, critical)")
    .action(
      run(async (paths: string[], options: { json?: boolean; failOn?: string }) => {
        const limit = options.failOn === undefined ? undefined : severities.indexOf(options.failOn as (typeof severities)[number]);
        if (limit === -1) throw new UsageError(`--fail-on takes ${severities.join(", ")}, not "${options.failOn}"`);
        const rules = catalogue();
        let failed = false;
        for (const path of paths) {
          try {
            for (const capture of await readCaptures(path)) {
              const diagnosis = diagnose(capture, rules, path, () => performance.now());
              process.stdout.write(options.json === true ? `${diagnosisJson(diagnosis)}\n` : `${diagnosisText(diagnosis)}\n`);
              if (limit !== undefined && diagnosis.causes.some((cause) => severities.indexOf(cause.severity) >= limit)) process.exitCode = 1;
            }
          } catch (error) {
            if (!(error instanceof CaptureError)) throw error;
            // one bad capture costs only itself, and is never silent
            failed = true;
            process.stderr.write(`netcheck: ${error.message}\n`);
          }
        }
        if (failed) process.exitCode = 1;
      }),
    );

  rulesCommand(netcheck, { runbooks, run });
  compareCommand(netcheck, { run });

  const factCommand = netcheck.command("facts").description("what netcheck can read");
  factCommand
    .command("list")
    .option("--json")
    .action(
      run((options: { json?: boolean }) => {
        const list = [
          ...facts.map((fact) => ({ id: fact.id, title: fact.title, commands: fact.commands.map((command) => command.argv.join(" ")) })),
          ...derivedFacts.map((fact) => ({ id: fact.id, title: fact.title, commands: [`(from ${fact.from.join(", ")})`] })),
        ];
        print(options.json, list, (fact) => `${fact.id.padEnd(18)} ${fact.title}\n${fact.commands.map((command) => `${" ".repeat(21)}${command}`).join("\n")}`);
      }),
    );
  factCommand
    .command("show")
    .argument("<id>")
    .option("--json", "its lists and the fields of their rows")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const fact = [...facts, ...derivedFacts].find((one) => one.id === id);
        if (fact === undefined) throw new UsageError(`there is no fact "${id}"; see netcheck facts list`);
        if (options.json === true) process.stdout.write(`${JSON.stringify({ id, title: fact.title, lists: factParts(fact.schema) })}\n`);
        else process.stdout.write(readFileSync(join(root, `functions/facts/${id}.ts`), "utf8"));
      }),
    );
  factCommand
    .command("parse")
    .description("parse a file as the output of a command")
    .argument("<file>")
    .requiredOption("--command <command>", 'the command that printed it, e.g. "ip route"')
    .option("--json")
    .action(
      run((file: string, options: { command: string; json?: boolean }) => {
        const line = commandLine(options.command);
        const readers = facts.flatMap((fact) => {
          const view = line.argv.length === 0 ? undefined : fact.recognize(line.argv);
          return view === undefined ? [] : [{ fact, view }];
        });
        if (readers.length === 0) throw new UsageError(`no fact reads the output of "${options.command}"; see netcheck facts list`);
        const { text, cut } = readText(file);
        for (const { fact, view } of readers) {
          const started = performance.now();
          const parsed = fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: 0, stderr: "" });
          const ms = Math.round((performance.now() - started) * 100) / 100;
          const result = {
            fact: fact.id,
            complete: view.complete && !line.filtered && !cut && parsed.unparsedCount === 0,
            ms,
            bytes: Buffer.byteLength(text),
            value: parsed.value,
            unparsed: parsed.unparsed,
            unparsedCount: parsed.unparsedCount,
          };
          process.stdout.write(options.json === true ? `${JSON.stringify(result)}\n` : parsedText(result));
        }
      }),
    );

  const fixes = netcheck.command("fixes").description("the catalogue of fixes");
  fixes
    .command("list")
    .option("--json")
    .action(
      run((options: { json?: boolean }) => {
        const loaded = catalogue();
        warnOfBroken(loaded.broken.fixes);
        const list = [...loaded.fixes.values()].map(({ file, version }) => ({ id: file.id, version, risk: file.risk, title: file.title }));
        print(options.json, list, (fix) => `${fix.id.padEnd(28)} ${fix.risk.padEnd(11)} ${fix.title}`);
      }),
    );
  fixes
    .command("show")
    .argument("<id>")
    .option("--json")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const loaded = catalogue();
        const problem = loaded.broken.fixes.get(id);
        if (problem !== undefined) throw new LoadError(problem);
        const fix = loaded.fixes.get(id);
        if (fix === undefined) throw new UsageError(`there is no fix "${id}"; see netcheck fixes list`);
        if (options.json === true) process.stdout.write(`${JSON.stringify({ ...fix.file, version: fix.version })}\n`);
        else process.stdout.write(readFileSync(join(runbooks, "fixes", id, "fix.yaml"), "utf8"));
      }),
    );

  netcheck
    .command("collect")
    .description("collect the facts of a target into a capture")
    .argument("<target>")
    .requiredOption("-o, --output <file>", "a .tgz")
    .option("--config <file>", "netcheck.yaml")
    .action(
      run(async (target: string, options: { output: string; config?: string }) => {
        const { collectOnce } = await import("./collect.ts");
        const capture = await collectOnce(target, options.config);
        try {
          writeFileSync(options.output, await packCaptureFiles(capture));
        } catch (cause) {
          throw new CommandError(`${options.output}: could not write it: ${(cause as Error).message}`, { cause });
        }
        process.stdout.write(`${options.output}: ${capture.outputs.length} outputs of ${capture.target}\n`);
      }),
    );
  netcheck
    .command("triage")
    .description("collect and diagnose targets, read-only, without chat")
    .argument("<target...>")
    .option("--json")
    .option("--config <file>", "netcheck.yaml")
    .action(
      run(async (targets: string[], options: { json?: boolean; config?: string }) => {
        const { collectOnce } = await import("./collect.ts");
        const loaded = catalogue();
        for (const target of targets) {
          try {
            const diagnosis = diagnose(await collectOnce(target, options.config), loaded, target, () => performance.now());
            process.stdout.write(options.json === true ? `${diagnosisJson(diagnosis)}\n` : `${diagnosisText(diagnosis)}\n`);
          } catch (error) {
            if (!isExpected(error)) throw error;
            // one node that cannot be looked at costs only itself, and is never silent
            process.exitCode = 1;
            process.stderr.write(`netcheck: ${error.message}\n`);
          }
        }
      }),
    );

  const audit = netcheck.command("audit").description("the audit trail of local mode");
  for (const verb of ["verify", "export", "show"] as const) {
    audit
      .command(verb)
      .argument("[incident]")
      .option("--directory <path>", "local mode's data", ".netcheck")
      .option("--json")
      .action(
        run(async (incident: string | undefined, options: { directory: string; json?: boolean }) => {
          const { auditCommand } = await import("./audit.ts");
          await auditCommand(verb, incident, resolve(options.directory), options.json === true);
        }),
      );
  }

  netcheck
    .command("record")
    .description("make a fixture of an incident or a capture: without names and addresses, and diagnosed as before")
    .argument("<source>", "an incident of local mode, or the path of a capture, a support bundle or a pasted text")
    .option("-o, --output <folder>", "the fixture, runbooks/rules/<id>/fixtures/<case>")
    .option("--directory <path>", "local mode's data", ".netcheck")
    .option("--json")
    .action(
      run(async (source: string, options: { output?: string; directory: string; json?: boolean }) => {
        const { record } = await import("./record.ts");
        const { text, ...recorded } = await record({ source, output: options.output, directory: resolve(options.directory), runbooks }, catalogue());
        process.stdout.write(options.json === true ? `${JSON.stringify(recorded)}\n` : text);
      }),
    );
  netcheck
    .command("docs", { hidden: true })
    .description("write docs/generated/ (npm run docs)")
    .action(
      run(async () => {
        const { allPages, writePages } = await import("./docs.ts");
        const { testRule } = await import("./rules-test.ts");
        const loaded = catalogue();
        const broken = [...loaded.broken.rules.values(), ...loaded.broken.fixes.values()];
        if (broken.length > 0) throw new CommandError(`the pages were not written, because not everything loads:\n${broken.join("\n")}`);
        const results = [];
        for (const id of loaded.rules.keys()) results.push(...(await testRule(id, runbooks, loaded)).cases);
        const written = writePages(join(root, "docs/generated"), allPages(root, loaded, results));
        process.stdout.write(written.length === 0 ? "docs/generated is up to date\n" : written.map((name) => `wrote docs/generated/${name}\n`).join(""));
      }),
    );

  netcheck
    .command("start")
    .description("local mode: a simulated Slack workspace on 127.0.0.1")
    .option("--once <command>", 'run one command, print the thread, exit; e.g. "/netcheck node1"')
    .option("--port <port>", "the page's port", "3000")
    .option("--directory <path>", "where local mode keeps its data", ".netcheck")
    .option("--fresh", "forget earlier runs: the replayed nodes are broken again")
    .option("--config <file>", "netcheck.yaml")
    .action(
      run(async (options: { once?: string; port: string; directory: string; fresh?: boolean; config?: string }) => {
        const { start } = await import("./start.ts");
        await start({ ...options, port: Number(options.port) });
      }),
    );
  return netcheck;
}

/** These say in a sentence for people what is wrong; any other error is a bug and shows its stack. */
function isExpected(error: unknown): error is Error {
  return [CaptureError, LoadError, UsageError, CommandError, TransportError].some((kind) => error instanceof kind);
}

function readText(file: string): { text: string; cut: boolean } {
  try {
    const bytes = readFileSync(file);
    return { text: bytes.subarray(0, MAX_OUTPUT).toString("utf8"), cut: bytes.length > MAX_OUTPUT };
  } catch (cause) {
    throw new CaptureError(`${file}: could not read it: ${(cause as Error).message}`, { cause });
  }
}

/** A diagnosis as one line of JSON (DESIGN C5). Pictures are for people. */
const diagnosisJson = (diagnosis: Diagnosis): string => JSON.stringify(diagnosis, (key, value: unknown) => (key === "diagram" ? undefined : value));

/** A diagnosis for a terminal. */
export function diagnosisText(diagnosis: Diagnosis): string {
  const lines = [`${diagnosis.target}: ${diagnosis.verdict} (${diagnosis.capture})`];
  const finding = (label: string, item: Finding): void => {
    lines.push("", `${label}: ${item.title}  [${item.rule}, ${item.severity}, ${Math.round(item.confidence * 100)} %]`, `  ${item.summary}`);
    for (const { command, line, text } of item.evidence) lines.push(`    ${command}:${line}: ${text.slice(0, 200)}`);
  };
  for (const cause of diagnosis.causes) {
    finding("CAUSE", cause);
    if (cause.explains.length > 0) lines.push(`  explains: ${cause.explains.join(", ")}`);
    if (cause.fix !== undefined) lines.push(`  fix: ${cause.fix.id} ${JSON.stringify(cause.fix.parameters)}`);
    if (cause.fixProblem !== undefined) lines.push(`  no fix can be offered: ${cause.fixProblem}`);
  }
  for (const symptom of diagnosis.symptoms) finding("SYMPTOM", symptom);
  for (const risk of diagnosis.risks) finding("RISK", risk);
  if (diagnosis.unchecked.length > 0) {
    lines.push("", "COULD NOT BE CHECKED");
    for (const { rules, reason } of uncheckedGroups(diagnosis.unchecked)) lines.push(`  ${rules.join(", ")}`, `    ${reason}`);
  }
  if (diagnosis.unparsed.length > 0)
    lines.push("", "LINES THAT COULD NOT BE READ", ...diagnosis.unparsed.map(({ command, lines: count }) => `  ${command}: ${count}`));
  if (diagnosis.unknown.length > 0) lines.push("", `Commands that netcheck does not know: ${diagnosis.unknown.join("; ")}`);
  const { stats } = diagnosis;
  lines.push("", `${stats.rules} rules on ${stats.lines} lines (${stats.bytes} bytes) in ${stats.ms} ms`);
  return lines.join("\n");
}

interface ParsedText {
  readonly fact: string;
  readonly complete: boolean;
  readonly ms: number;
  readonly bytes: number;
  readonly value: unknown;
  readonly unparsed: readonly { line: number; text: string }[];
  readonly unparsedCount: number;
}

function parsedText(result: ParsedText): string {
  const lists = Object.entries(result.value as Record<string, unknown>).flatMap(([name, rows]) =>
    Array.isArray(rows)
      ? [
          `${name}: ${rows.length}`,
          ...rows.slice(0, 50).map((row) => `  ${JSON.stringify(row)}`),
          ...(rows.length > 50 ? [`  … ${rows.length - 50} more`] : []),
        ]
      : [],
  );
  const unparsed = result.unparsed.map(({ line, text }) => `  line ${line}: ${text}`);
  return [
    `fact ${result.fact}: ${result.complete ? "complete" : "partial"}, ${result.bytes} bytes in ${result.ms} ms`,
    ...lists,
    `unparsed: ${result.unparsedCount}`,
    ...unparsed,
    "",
  ].join("\n");
}
