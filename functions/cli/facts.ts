import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { commandLine, searchOf } from "../facts/command.ts";
import { facts } from "../facts/index.ts";
import { pipeOf } from "../facts/pipe.ts";
import { standardInput } from "../imports/standard-input.ts";
import { CommandError, UsageError } from "./errors.ts";
import { compactJson } from "./json.ts";
import { print, type Shared } from "./output.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** As much as a capture keeps of one output; not imported from there, because what reads archives would be loaded with it. */
const MAX_OUTPUT = 64 * 1024 * 1024;

/** `netcheck facts list|show|parse`: adds the commands. */
export function register(netcheck: Command, { run }: Pick<Shared, "run">): void {
  const factCommand = netcheck.command("facts").description("what netcheck can read");
  factCommand
    .command("list")
    .description("all facts, and the commands that are run for them")
    .option("--json", "one JSON array")
    .action(
      run(async (options: { json?: boolean }) => {
        const { derivedFacts } = await import("../facts/derived.ts");
        const list = [
          ...facts.map((fact) => ({ id: fact.id, title: fact.title, commands: fact.commands.map((command) => command.argv.join(" ")) })),
          ...derivedFacts.map((fact) => ({ id: fact.id, title: fact.title, commands: [`(from ${fact.from.join(", ")})`] })),
        ];
        print(options.json, list, (fact) => `${fact.id.padEnd(18)} ${fact.title}\n${fact.commands.map((command) => `${" ".repeat(21)}${command}`).join("\n")}`);
      }),
    );
  factCommand
    .command("show")
    .description("the source of a fact: its commands, fields and parser")
    .argument("<id>")
    .option("--json", "its lists and the fields of their rows")
    .action(
      run(async (id: string, options: { json?: boolean }) => {
        const { derivedFacts } = await import("../facts/derived.ts");
        const fact = [...facts, ...derivedFacts].find((one) => one.id === id);
        if (fact === undefined) throw new UsageError(`there is no fact "${id}"; see netcheck facts list${staleHint()}`);
        const { factParts } = await import("./fact-fields.ts");
        if (options.json === true) process.stdout.write(`${JSON.stringify({ id, title: fact.title, lists: factParts(fact.schema) })}\n`);
        else process.stdout.write(readFileSync(join(root, `functions/facts/${id}.ts`), "utf8"));
      }),
    );
  factCommand
    .command("parse")
    .description("parse a file as the output of a command")
    .argument("<file>", "- for standard input")
    .requiredOption("--command <command>", 'the command that printed it, e.g. "ip route"')
    .option("--json", "all rows; fields that are false or empty are left out")
    .action(
      run(async (file: string, options: { command: string; json?: boolean }) => {
        const line = commandLine(options.command);
        const [search, pipe] = [searchOf(options.command), pipeOf(options.command)];
        const readers = facts.flatMap((fact) => {
          const view = line.argv.length === 0 ? undefined : fact.recognize(line.argv, search, pipe);
          return view === undefined ? [] : [{ fact, view }];
        });
        if (readers.length === 0) throw new UsageError(`no fact reads the output of "${options.command}"; see netcheck facts list${staleHint()}`);
        const { text, cut } = await readText(file);
        for (const { fact, view } of readers) {
          // not `performance`, for which Node loads more of itself
          const started = process.hrtime.bigint();
          const parsed = fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: 0, stderr: "", sorted: line.sorted, pipe });
          const ms = Number((process.hrtime.bigint() - started) / 10_000n) / 100;
          const result = {
            fact: fact.id,
            complete: view.complete && !line.filtered && !cut && parsed.unparsedCount === 0,
            ms,
            bytes: Buffer.byteLength(text),
            value: parsed.value,
            unparsed: parsed.unparsed,
            unparsedCount: parsed.unparsedCount,
          };
          if (options.json === true) printJson(result);
          else process.stdout.write(parsedText(result));
        }
      }),
    );
}

/** For who wrote a fact and asks the bundle that was made before. "" if the command is run from source, or nothing was written since. */
function staleHint(): string {
  if (process.argv[1]?.endsWith(".ts") === true) return "";
  const folder = join(root, "functions/facts");
  try {
    const made = statSync(join(root, "dist/cli/cli.mjs")).mtimeMs;
    if (!readdirSync(folder).some((file) => statSync(join(folder, file)).mtimeMs > made)) return "";
  } catch {
    return "";
  }
  return ". The files in functions/facts are newer than this command: npm run prepare brings it up to date";
}

async function readText(file: string): Promise<{ text: string; cut: boolean }> {
  try {
    const { bytes, truncated } = file === "-" ? await standardInput(MAX_OUTPUT) : { bytes: readFileSync(file), truncated: false };
    return { text: bytes.subarray(0, MAX_OUTPUT).toString("utf8"), cut: truncated || bytes.length > MAX_OUTPUT };
  } catch (cause) {
    throw new CommandError(`${file}: could not read it: ${(cause as Error).message}`, { cause });
  }
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

function printJson({ value, ...result }: ParsedText): void {
  process.stdout.write(`${JSON.stringify(result).slice(0, -1)},"value":`);
  for (const piece of compactJson(value as Readonly<Record<string, unknown>>)) process.stdout.write(piece);
  process.stdout.write("}\n");
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
