import type { Command } from "commander";
import { missingFiles } from "../facts/capture.ts";
import { commandsOfTurn } from "../facts/command-loop.ts";
import { readersOf } from "../facts/shared-text.ts";
import { readCaptures } from "../imports/index.ts";
import { diagnose } from "../rules/diagnose.ts";
import { type Diagnosis, type Finding, severities } from "../rules/diagnosis.ts";
import { loadCatalogue, ownSecrets } from "../rules/load.ts";
import { uncheckedGroups } from "../rules/unchecked.ts";
import { CaptureError } from "../transports/capture-files.ts";
import { cut } from "../triage/plain-text.ts";
import { UsageError } from "./errors.ts";
import { isExpected, type Shared } from "./output.ts";

/** `netcheck diagnose` and `netcheck triage`: adds the commands. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  netcheck
    .command("diagnose")
    .description(
      "diagnose captures (a directory with capture.json, or a .tgz), support bundles (sosreport, supportconfig, EKS, AKS and Rancher log collectors, must-gather, cilium sysdump, calicoctl diags, and others: README.md), saved outputs, pasted text",
    )
    .argument("<path...>", "- for a text on standard input")
    .option("--json", "one JSON line each, in order")
    .option("--fail-on <severity>", "exit code 1 if a cause of at least this severity is found (info, warning, critical)")
    .action(
      run(async (paths: string[], options: { json?: boolean; failOn?: string }) => {
        const limit = options.failOn === undefined ? undefined : severities.indexOf(options.failOn as (typeof severities)[number]);
        if (limit === -1) throw new UsageError(`--fail-on takes ${severities.join(", ")}, not "${options.failOn}"`);
        const rules = loadCatalogue(runbooks, { tolerant: true });
        let failed = false;
        for (const path of paths) {
          try {
            for (const capture of await readCaptures(path, ownSecrets(rules))) {
              for (const missing of missingFiles(capture)) process.stderr.write(`netcheck: ${path}: ${missing}\n`);
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
  netcheck
    .command("triage")
    .description("collect and diagnose targets, read-only, without chat")
    .argument("<target...>")
    .option("--json", "one JSON line each, in order")
    .option("--config <file>", "netcheck.yaml")
    .action(
      run(async (targets: string[], options: { json?: boolean; config?: string }) => {
        const { collectOnce } = await import("./collect.ts");
        const loaded = loadCatalogue(runbooks, { tolerant: true });
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
}

/** A diagnosis as one line of JSON (DESIGN C5). Pictures are for people, and so is how much a counter rose. */
const diagnosisJson = (diagnosis: Diagnosis): string =>
  JSON.stringify(diagnosis, (key, value: unknown) => (key === "diagram" || key === "grew" ? undefined : value));

/** So many commands nobody types one by one. */
const MANY = 5;

/** A diagnosis for a terminal. */
function diagnosisText(diagnosis: Diagnosis): string {
  const lines = [`${diagnosis.target}: ${diagnosis.verdict} (${diagnosis.capture})`];
  const finding = (label: string, item: Finding): void => {
    lines.push("", `${label}: ${item.title}  [${item.rule}, ${item.severity}, ${Math.round(item.confidence * 100)} %]`, `  ${item.summary}`);
    // a list of forty sysctl keys says no more than its beginning, and indented JSON is one thing; what the kubelet is told of a pod stands at the end of its line
    for (const { command, line, text, grew } of item.evidence)
      lines.push(
        `    ${cut(command, 80)}:${line}: ${cut(text.trim().replace(/\s*\n\s*/g, " "), 600)}${grew === undefined ? "" : `   (${grew} between the two samples)`}`,
      );
  };
  for (const cause of diagnosis.causes) {
    finding("CAUSE", cause);
    if (cause.explains.length > 0) lines.push(`  explains: ${cause.explains.join(", ")}`);
    if (cause.fix !== undefined) lines.push(`  fix: ${cause.fix.id} ${JSON.stringify(cause.fix.parameters)}`);
    if (cause.fixProblem !== undefined) lines.push(`  no fix can be offered: ${cause.fixProblem}`);
    lines.push(`  how to check it and what to do: netcheck rules show ${cause.rule}`);
  }
  for (const symptom of diagnosis.symptoms) finding("SYMPTOM", symptom);
  for (const risk of diagnosis.risks) finding("RISK", risk);
  const open = uncheckedGroups(diagnosis.unchecked);
  if (open.length > 0) lines.push("", "COULD NOT BE CHECKED");
  for (const { rules, reason, absent } of open) if (absent === undefined) lines.push(`  ${rules.join(", ")}`, `    ${reason}`);
  // of a pasted output nearly everything is missing: a line for each, so that what was found stays in sight
  const missing = open.flatMap(({ rules, absent }) => (absent === undefined ? [] : [`    \`${absent}\`: ${rules.join(", ")}`]));
  if (missing.length > 0) lines.push("  The capture holds no output of", ...missing);
  if (missing.length > MANY) lines.push("  All of these in one go, on the node itself: `netcheck triage localhost`");
  if (diagnosis.unparsed.length > 0)
    lines.push("", "LINES THAT COULD NOT BE READ", ...diagnosis.unparsed.map(({ command, lines: count }) => `  ${command}: ${count}`));
  const loops = diagnosis.unknown.filter((command) => commandsOfTurn(command).some((one) => readersOf(one).length > 0));
  const others = diagnosis.unknown.filter((command) => !loops.includes(command));
  if (loops.length > 0)
    lines.push(
      "",
      'LOOPS THAT DO NOT SAY WHICH TURN PRINTED WHAT (put `echo "== $i"` in front of each answer)',
      ...loops.map((loop) => `  ${cut(loop.replace(/\s*\n\s*/g, " "), 200)}`),
    );
  if (others.length > 0) lines.push("", `Commands that netcheck does not know: ${others.join("; ")}`);
  const { stats } = diagnosis;
  lines.push("", `${stats.rules} rules on ${stats.lines} lines (${stats.bytes} bytes) in ${stats.ms} ms`);
  return lines.join("\n");
}
