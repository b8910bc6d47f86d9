import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Command, type CommanderError } from "commander";
import { commandLine } from "../facts/command.ts";
import { derivedFacts, facts } from "../facts/index.ts";
import { diagnose, judge } from "../rules/diagnose.ts";
import { type Diagnosis, type Finding, severities } from "../rules/diagnosis.ts";
import { type Catalogue, LoadError, loadCatalogue } from "../rules/load.ts";
import { CaptureError, MAX_OUTPUT, packCaptureFiles, readCaptureFiles } from "../transports/capture-files.ts";
import { TransportError } from "../triage/ports.ts";
import { CommandError, UsageError } from "./errors.ts";
import { explain } from "./explain.ts";

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
    .description("diagnose captures: directories with capture.json, or .tgz")
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
            const diagnosis = diagnose(await readCaptureFiles(path), rules, path, () => performance.now());
            process.stdout.write(options.json === true ? `${JSON.stringify(diagnosis)}\n` : `${diagnosisText(diagnosis)}\n`);
            if (limit !== undefined && diagnosis.causes.some((cause) => severities.indexOf(cause.severity) >= limit)) process.exitCode = 1;
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

  const rules = netcheck.command("rules").description("the ruleset");
  rules
    .command("list")
    .option("--json")
    .action(
      run((options: { json?: boolean }) => {
        const list = [...catalogue().rules.values()].map(({ file }) => ({
          id: file.id,
          role: file.role,
          severity: file.severity,
          status: file.status,
          title: file.title,
        }));
        print(options.json, list, (rule) => `${rule.id.padEnd(34)} ${rule.role.padEnd(8)} ${rule.severity.padEnd(9)} ${rule.title}`);
      }),
    );
  rules
    .command("show")
    .argument("<id>")
    .option("--json")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const loaded = catalogue();
        const rule = loaded.rules.get(id);
        if (rule === undefined) throw new UsageError(`there is no rule "${id}"; see netcheck rules list`);
        if (options.json === true) process.stdout.write(`${JSON.stringify(rule.file)}\n`);
        else
          process.stdout.write(readFileSync(join(runbooks, "rules", id, "README.md"), "utf8") + readFileSync(join(runbooks, "rules", id, "rule.yaml"), "utf8"));
      }),
    );
  rules
    .command("explain")
    .description("why a rule did or did not match a capture, clause by clause")
    .argument("<id>")
    .argument("<capture>")
    .option("--json", "the verdict, its reason and the finding")
    .action(
      run(async (id: string, path: string, options: { json?: boolean }) => {
        const loaded = catalogue();
        const rule = loaded.rules.get(id);
        if (rule === undefined) throw new UsageError(`there is no rule "${id}"; see netcheck rules list`);
        const capture = await readCaptureFiles(path);
        if (options.json !== true) process.stdout.write(explain(id, capture, loaded));
        else {
          const { verdict, reason, finding } = judge(capture, { rules: new Map([[id, rule]]) }).outcomes[0] ?? {};
          process.stdout.write(`${JSON.stringify({ rule: id, verdict, reason, finding })}\n`);
        }
      }),
    );

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
    .action(
      run((id: string) => {
        if (![...facts, ...derivedFacts].some((fact) => fact.id === id)) throw new UsageError(`there is no fact "${id}"; see netcheck facts list`);
        process.stdout.write(readFileSync(join(root, `functions/facts/${id}.ts`), "utf8"));
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
        const list = [...catalogue().fixes.values()].map(({ file, version }) => ({ id: file.id, version, risk: file.risk, title: file.title }));
        print(options.json, list, (fix) => `${fix.id.padEnd(28)} ${fix.risk.padEnd(11)} ${fix.title}`);
      }),
    );
  fixes
    .command("show")
    .argument("<id>")
    .option("--json")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const fix = catalogue().fixes.get(id);
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
            process.stdout.write(options.json === true ? `${JSON.stringify(diagnosis)}\n` : `${diagnosisText(diagnosis)}\n`);
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

function print<T>(json: boolean | undefined, list: readonly T[], line: (item: T) => string): void {
  process.stdout.write(json === true ? `${JSON.stringify(list)}\n` : list.map((item) => `${line(item)}\n`).join(""));
}

function readText(file: string): { text: string; cut: boolean } {
  try {
    const bytes = readFileSync(file);
    return { text: bytes.subarray(0, MAX_OUTPUT).toString("utf8"), cut: bytes.length > MAX_OUTPUT };
  } catch (cause) {
    throw new CaptureError(`${file}: could not read it: ${(cause as Error).message}`, { cause });
  }
}

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
  if (diagnosis.unchecked.length > 0) lines.push("", "COULD NOT BE CHECKED", ...diagnosis.unchecked.map(({ rule, reason }) => `  ${rule}: ${reason}`));
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
