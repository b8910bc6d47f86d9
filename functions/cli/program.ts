import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Command, type CommanderError } from "commander";
import { CommandError, UsageError } from "./errors.ts";
import { isExpected, type Shared } from "./output.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** The commands whose code is large, each in a module that adds it: only what is asked for is loaded. */
const GROUPS: Readonly<Record<string, () => Promise<{ register: (netcheck: Command, shared: Shared) => void }>>> = {
  diagnose: () => import("./diagnose.ts"),
  triage: () => import("./diagnose.ts"),
  rules: () => import("./rules.ts"),
  compare: () => import("./compare.ts"),
  facts: () => import("./facts.ts"),
  fixes: () => import("./fixes.ts"),
  doctor: () => import("./doctor.ts"),
  policy: () => import("./policy.ts"),
  audit: () => import("./audit.ts"),
};

/**
 * The `netcheck` command (DESIGN C4). Prints to stdout; errors to stderr with exit code 1 (failed) or 2 (usage).
 * @param word the first argument: the command that will be asked for; anything else loads all, for help and suggestions
 */
export async function program(word: string | undefined): Promise<Command> {
  const netcheck = new Command("netcheck").description("Finds the root cause of a node's network fault, proves it, and fixes it with approval.");
  netcheck.exitOverride((error: CommanderError) => process.exit(error.exitCode === 0 ? 0 : 2));
  netcheck.configureOutput({ outputError: (text, write) => write(text) });
  const runbooks = process.env["NETCHECK_RUNBOOKS"] ?? join(root, "runbooks");
  const run: Shared["run"] =
    (action) =>
    async (...args) => {
      try {
        await action(...args);
      } catch (error) {
        process.stderr.write(`netcheck: ${isExpected(error) ? error.message : ((error as Error).stack ?? String(error))}\n`);
        process.exitCode = error instanceof UsageError ? 2 : 1;
      }
    };
  const asked = word !== undefined && Object.hasOwn(GROUPS, word) ? GROUPS[word] : undefined;
  const groups = await Promise.all([...new Set(asked === undefined ? Object.values(GROUPS) : [asked])].map((load) => load()));
  for (const group of new Set(groups)) group.register(netcheck, { runbooks, run });
  if (asked === undefined) netcheck.version((JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version);

  netcheck
    .command("collect")
    .description("collect the facts of a target into a capture")
    .argument("<target>")
    .requiredOption("-o, --output <file>", "a .tgz")
    .option("--config <file>", "netcheck.yaml")
    .option("--json", "what was written, as one JSON object")
    .action(
      run(async (target: string, options: { output: string; config?: string; json?: boolean }) => {
        const { collectOnce } = await import("./collect.ts");
        const { packCaptureFiles } = await import("../transports/capture-files.ts");
        const capture = await collectOnce(target, options.config);
        try {
          writeFileSync(options.output, await packCaptureFiles(capture));
        } catch (cause) {
          throw new CommandError(`${options.output}: could not write it: ${(cause as Error).message}`, { cause });
        }
        const written = { file: options.output, target: capture.target, outputs: capture.outputs.length, notCollected: capture.notCollected.length };
        const missing = written.notCollected === 0 ? "" : `; ${written.notCollected} could not be collected, and capture.json says why`;
        process.stdout.write(
          options.json === true ? `${JSON.stringify(written)}\n` : `${options.output}: ${written.outputs} outputs of ${capture.target}${missing}\n`,
        );
      }),
    );
  netcheck
    .command("record")
    .description("make a fixture of an incident or a capture: without names and addresses, and diagnosed as before")
    .argument("<source>", "an incident of local mode, or the path of a capture, a support bundle or a pasted text")
    .option("-o, --output <folder>", "the fixture, runbooks/rules/<id>/fixtures/<case>")
    .option("--directory <path>", "local mode's data", ".netcheck")
    .option("--json", "what was written, as one JSON object")
    .action(
      run(async (source: string, options: { output?: string; directory: string; json?: boolean }) => {
        const { record } = await import("./record.ts");
        const { loadCatalogue } = await import("../rules/load.ts");
        const { text, ...recorded } = await record(
          { source, output: options.output, directory: resolve(options.directory), runbooks },
          loadCatalogue(runbooks, { tolerant: true }),
        );
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
        const { loadCatalogue } = await import("../rules/load.ts");
        const loaded = loadCatalogue(runbooks, { tolerant: true });
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
