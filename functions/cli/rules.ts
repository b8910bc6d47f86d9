import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { distance } from "fastest-levenshtein";
import { readCaptures } from "../imports/index.ts";
import { roles } from "../rules/diagnosis.ts";
import { fixtureNames, readCase } from "../rules/fixtures.ts";
import type { Catalogue } from "../rules/load.ts";
import { LoadError, loadCatalogue, ownSecrets } from "../rules/load.ts";
import { UsageError } from "./errors.ts";
import { explanation, explanationText } from "./explain.ts";
import { print, type Shared, warnOfBroken } from "./output.ts";
import { newRule } from "./rules-new.ts";
import { ruleResultText, summaryText, testRule } from "./rules-test.ts";

/** `netcheck rules list|show|explain|test|new|stats`. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  const catalogue = (): Catalogue => loadCatalogue(runbooks, { tolerant: true });
  const rules = netcheck.command("rules").description("the ruleset");
  rules
    .command("list")
    .description("all rules: id, role, severity and title")
    .option("--json", "one JSON array")
    .action(
      run((options: { json?: boolean }) => {
        const loaded = catalogue();
        warnOfBroken(loaded.broken.rules);
        const list = [...loaded.rules.values()].map(({ file: { id, role, severity, status, title } }) => ({ id, role, severity, status, title }));
        print(options.json, list, (rule) => `${rule.id.padEnd(34)} ${rule.role.padEnd(8)} ${rule.severity.padEnd(9)} ${rule.title}`);
      }),
    );
  rules
    .command("show")
    .description("the guide and the text of a rule")
    .argument("<id>")
    .option("--json", "the rule as one JSON object, without the guide")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const rule = known(id, catalogue());
        if (options.json === true) process.stdout.write(`${JSON.stringify(rule.file)}\n`);
        else
          process.stdout.write(readFileSync(join(runbooks, "rules", id, "README.md"), "utf8") + readFileSync(join(runbooks, "rules", id, "rule.yaml"), "utf8"));
      }),
    );
  rules
    .command("explain")
    .description("why a rule did or did not match a capture, clause by clause")
    .argument("<id>")
    .argument("<capture>", "a capture, or the name of a case of this rule")
    .option("--json", "the same, for machines")
    .action(
      run(async (id: string, path: string, options: { json?: boolean }) => {
        const loaded = catalogue();
        const rule = known(id, loaded);
        const captures = await readCaptures(existsSync(path) ? path : caseFolder(runbooks, id, path), ownSecrets(loaded));
        for (const capture of captures) {
          if (captures.length > 1 && options.json !== true) process.stdout.write(`== ${capture.target}\n`);
          const explained = explanation(rule, capture);
          process.stdout.write(options.json === true ? `${JSON.stringify(explained)}\n` : explanationText(explained));
        }
      }),
    );
  rules
    .command("test")
    .description("run the fixtures of a rule, or of all rules; exit code 1 if one is not as expected")
    .argument("[id]")
    .option("--json", "one JSON line each rule")
    .action(
      run(async (id: string | undefined, options: { json?: boolean }) => {
        const loaded = catalogue();
        const all = [...loaded.rules.keys(), ...loaded.broken.rules.keys()].sort();
        if (id !== undefined && !all.includes(id)) throw unknown(id, all);
        const results = [];
        for (const one of id === undefined ? all : [id]) {
          const result = await testRule(one, runbooks, loaded);
          results.push(result);
          if (options.json === true) process.stdout.write(`${JSON.stringify(result)}\n`);
          else if (id !== undefined || !result.ok) process.stdout.write(`${ruleResultText(result)}\n`);
          else process.stdout.write(`${one}: ${result.cases.length} case(s) as expected\n`);
        }
        if (options.json !== true) process.stdout.write(`${summaryText(results)}\n`);
        if (results.some((result) => !result.ok)) process.exitCode = 1;
      }),
    );
  rules
    .command("new")
    .description("make the folder of a new rule: rule.yaml, README.md, and a case that should match and one that should not")
    .argument("<id>", "lower case words joined by hyphens; the fault's name")
    .option("--role <role>", roles.join(", "), "cause")
    .option("--fact <fact...>", "facts that the rule reads; see netcheck facts list", ["sysctl"])
    .option("--json", "the files that were made")
    .action(
      run((id: string, options: { role: string; fact: string[]; json?: boolean }) => {
        const role = roles.find((one) => one === options.role);
        if (role === undefined) throw new UsageError(`--role takes ${roles.join(", ")}, not "${options.role}"`);
        const { folder, files, next } = newRule({ id, role, facts: options.fact, runbooks });
        process.stdout.write(options.json === true ? `${JSON.stringify({ rule: id, folder, files })}\n` : next);
      }),
    );
  rules
    .command("stats")
    .description("how often people said that a rule named the right cause (the buttons below a diagnosis)")
    .argument("[path]", "local mode's data, a file of netcheck audit export, or a downloaded archive", ".netcheck")
    .option("--json", "one JSON array")
    .action(
      run(async (path: string, options: { json?: boolean }) => {
        const { ruleStats, statsText } = await import("./rules-stats.ts");
        const stats = await ruleStats(resolve(path));
        print(options.json, stats, statsText);
        if (options.json !== true && stats.length === 0) process.stdout.write("nobody has voted yet: the buttons below each diagnosis in the chat count\n");
      }),
    );
}

/** A rule by its id. @throws {LoadError} if it does not load, {UsageError} if there is none. */
function known(id: string, { rules, broken }: Catalogue) {
  const rule = rules.get(id);
  if (rule !== undefined) return rule;
  const problem = broken.rules.get(id);
  throw problem === undefined ? unknown(id, [...rules.keys()]) : new LoadError(problem);
}

/** The folder of the capture that a case of the rule judges, by the case's name. @throws {UsageError} if there is no such case. */
function caseFolder(runbooks: string, id: string, name: string): string {
  const names = fixtureNames(runbooks, id);
  if (names.includes(name)) return readCase(runbooks, id, name).capture;
  throw new UsageError(`"${name}" is no file, and ${id} has no such case; its cases are ${names.join(", ")}`);
}

function unknown(id: string, ids: readonly string[]): UsageError {
  const near = ids.filter((one) => distance(one, id) <= 3 || one.includes(id)).slice(0, 3);
  return new UsageError(`there is no rule "${id}"; ${near.length === 0 ? "" : `did you mean ${near.join(", ")}? `}see netcheck rules list`);
}
