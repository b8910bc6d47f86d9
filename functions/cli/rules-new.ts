import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { z } from "zod";
import { commandLine, searchOf } from "../facts/command.ts";
import { derivedFacts } from "../facts/derived.ts";
import { facts } from "../facts/index.ts";
import { firstIssue } from "../facts/issue.ts";
import { pipeOf } from "../facts/pipe.ts";
import { pascal, variableOf } from "../rules/cel.ts";
import { compileRule, sourcesOf } from "../rules/compile.ts";
import type { Role } from "../rules/diagnosis.ts";
import { UNWRITTEN } from "../rules/fixtures.ts";
import { parseFile } from "../rules/load.ts";
import { Id, RuleFile } from "../rules/schema.ts";
import { commandText } from "./command-text.ts";
import { CommandError, UsageError } from "./errors.ts";
import { factParts } from "./fact-fields.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** What a new rule is to be called and to look at. */
export interface NewRule {
  readonly id: string;
  readonly role: Role;
  /** Ids of the facts that it reads; the first one is where the skeleton searches. */
  readonly facts: readonly string[];
  readonly runbooks: string;
}

/** Where the severity of a new rule starts: the author decides. */
const SEVERITY: Readonly<Record<Role, string>> = { cause: "critical", symptom: "warning", risk: "info" };

/**
 * Makes `runbooks/rules/<id>/` with a rule.yaml that loads, a README.md with the four sections, and two cases (`fault`, `healthy`) that wait for real
 * outputs. @throws {UsageError} for a bad or taken id or an unknown fact, before anything is written.
 */
export function newRule(wish: NewRule): { readonly folder: string; readonly files: readonly string[]; readonly next: string } {
  const { id, runbooks } = wish;
  const valid = Id.safeParse(id);
  if (!valid.success) throw new UsageError(`"${id}" cannot be the id of a rule: ${firstIssue(valid.error).message}`);
  const folder = join(runbooks, "rules", id);
  if (existsSync(folder)) throw new UsageError(`there is a rule "${id}" already: ${folder}`);
  const known = new Map<string, z.ZodType>([...facts, ...derivedFacts].map((fact) => [fact.id, fact.schema]));
  const unknown = wish.facts.find((fact) => !known.has(fact));
  if (unknown !== undefined) throw new UsageError(`there is no fact "${unknown}"; facts are ${[...known.keys()].join(", ")}`);
  const schemas = [...new Set(wish.facts)].map((fact) => ({ fact, schema: known.get(fact) as z.ZodType }));

  const files: Record<string, string> = { "rule.yaml": ruleText(wish, folder, schemas), "README.md": guideText(id) };
  // what is written must load: a skeleton that does not would be a bad teacher
  compileRule(parseFile(join(folder, "rule.yaml"), files["rule.yaml"] as string, RuleFile).value, undefined);
  const commands = [...sourcesOf(wish.facts)].flatMap((source) => {
    const command = facts.find((fact) => fact.id === source)?.commands[0];
    return command === undefined ? [] : [{ command: commandText(command), file: `outputs/${source}.txt` }];
  });
  for (const [name, verdict] of Object.entries({ fault: "match", healthy: "no-match" })) {
    files[`fixtures/${name}/capture.json`] = `${JSON.stringify({ schema: "netcheck.capture/1", target: { name: "node" }, outputs: commands }, null, 1)}\n`;
    for (const { file } of commands) files[`fixtures/${name}/${file}`] = "";
    files[`fixtures/${name}/expect.yaml`] = verdict === "match" && wish.role === "cause" ? "verdict: match\nfirst: true\n" : `verdict: ${verdict}\n`;
  }
  try {
    for (const [name, text] of Object.entries(files)) {
      const path = join(folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text, { flag: "wx" });
    }
  } catch (cause) {
    throw new CommandError(`${folder}: could not write it: ${(cause as Error).message}`, { cause });
  }
  const made = Object.keys(files);
  // what to do next, for people
  return { folder, files: made, next: nextSteps(id, folder, made, commands[0]?.command ?? "") };
}

function ruleText({ id, role, facts: wanted }: NewRule, folder: string, schemas: readonly { fact: string; schema: z.ZodType }[]): string {
  const [first, ...rest] = [...new Set(wanted)] as [string, ...string[]];
  const parts = factParts((schemas[0] as { schema: z.ZodType }).schema);
  const list = parts.find((part) => part.fields.length > 0)?.name ?? "rows";
  // every fact in needs must be read somewhere
  const others = rest.flatMap((fact) => {
    const part = factParts(schemas.find((one) => one.fact === fact)?.schema as z.ZodType).find((one) => one.fields.length > 0);
    return part === undefined ? [] : [`  in${pascal(fact)}: ${variableOf(fact)}.${part.name}.filter(r, r.line < 1)`];
  });
  const shown = schemas.flatMap(({ fact, schema }) =>
    factParts(schema).map(
      ({ name, fields, type }) =>
        `#   ${variableOf(fact)}.${name}: ${fields.length === 0 ? type : fields.map((f) => `${f.name}${f.optional ? "?" : ""} ${f.type}`).join(", ")}`,
    ),
  );
  return `# yaml-language-server: $schema=${relative(folder, join(root, "docs/generated/rule.schema.json"))}
# What this rule can read ("?": read it with has(r.field) before, or as r.?field.orValue(…)):
${wrapped(shown).join("\n")}
id: ${id}
title: "${UNWRITTEN} what is wrong, in one short sentence"
role: ${role}
severity: ${SEVERITY[role]}
status: experimental
detects: "Detects ${UNWRITTEN} a node on which (what is seen), so that (what it breaks)."
# facts without which nothing can be said; { fact: ${first}, whole: true } where you conclude from something that is not there
needs: [${[first, ...rest].join(", ")}]
# applies: a gate in CEL; where it is false the rule has nothing to say (another CNI, no kube-proxy)
let:
  # ${UNWRITTEN} the rows that prove the fault. r.line < 1 is never true: replace it
  found: ${variableOf(first)}.${list}.filter(r, r.line < 1)
${others.map((line) => `${line}\n`).join("")}when: found.size() > 0${others.map((line) => ` && ${line.trim().split(":")[0]}.size() > 0`).join("")}
# the lines that are quoted as proof
evidence: [found${others.map((line) => `, ${line.trim().split(":")[0]}`).join("")}]
summary: "${UNWRITTEN} one sentence with the values of this node: {{ found.size() }} line(s) show it."
# 0.93 and more: the lines prove the fault and its harm; 0.8 to 0.9: a wrong state is proven; 0.6 to 0.75: there are innocent explanations
confidence: 0.8
falsePositives:
  - "${UNWRITTEN} which node looks like this and is well, and why the rule does not match there"
references:
  - "${UNWRITTEN} where the fault is described: an issue, a document, a kernel source"
`;
}

const guideText = (id: string): string => `# ${id}

## Meaning

${UNWRITTEN} what is wrong on the node, for somebody who never heard of it. Three sentences.

## Impact

${UNWRITTEN} what users notice, what still works, how soon it matters.

## Diagnosis

${UNWRITTEN} the commands that show it by hand, and what to look for in what they print.

## Mitigation

${UNWRITTEN} the command that repairs it, its side effects, how to undo it, and how to make it last over a reboot.
`;

/** True for a command whose output a fact reads. */
const isRead = (command: string): boolean => facts.some((fact) => fact.recognize(commandLine(command).argv, searchOf(command), pipeOf(command)) !== undefined);

function nextSteps(id: string, folder: string, files: readonly string[], command: string): string {
  const here = relative(process.cwd(), folder) || folder;
  const place = here.startsWith("..") ? resolve(folder) : here;
  // long ones by their first words, where those tell: cut anywhere else it could not be pasted
  const brief = command.split(" ").slice(0, 2).join(" ");
  const short = command.length > 60 && isRead(brief) ? brief : command;
  const output = files.find((file) => file.startsWith("fixtures/fault/outputs/"));
  return [
    ...files.map((file) => `made ${place}/${file}`),
    "",
    "Next:",
    `  1. Put what a faulty node printed into ${place}/fixtures/fault/outputs/, what a healthy one printed into fixtures/healthy/outputs/.`,
    ...(output === undefined
      ? [
          '     netcheck runs no command for these facts, so capture.json has no output yet: add each as { "command": "<what was run>", "file": "outputs/<file>" }.',
          `  2. netcheck facts parse ${place}/fixtures/fault/outputs/<file> --command "<what was run>"`,
        ]
      : [
          "     capture.json names the command of each file: change it to the command that was really run. More cases are more folders (near-miss-…).",
          `  2. netcheck facts parse ${place}/${output} --command "${short.replaceAll(/["$`\\]/g, "\\$&")}"`,
        ]),
    "     shows the rows that a rule can ask for.",
    `  3. Write ${place}/rule.yaml and README.md: everything behind "${UNWRITTEN}".`,
    `  4. netcheck rules explain ${id} ${place}/fixtures/fault`,
    `  5. netcheck rules test ${id}`,
    `  6. CASES=all npx vitest run --project unit test/rules/false-alarms.test.ts test/rules/oracle.test.ts -t "${id}/"`,
    "     takes your captures apart: what is missing or cut must not look like a fault.",
    "  7. functions/cli/rule-areas.ts: the area of the rule; npm run docs, so that the generated pages list it; npm test",
    "",
  ].join("\n");
}

/** Comment lines of at most 160 characters, broken between fields. */
function wrapped(lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const out: string[] = [];
    let current = "";
    for (const piece of line.split(", ")) {
      const next = current === "" ? piece : `${current}, ${piece}`;
      if (next.length > 156 && current !== "") {
        out.push(`${current},`);
        current = `#       ${piece}`;
      } else current = next;
    }
    return [...out, current];
  });
}
