import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { LoadError, loadCatalogue } from "../rules/load.ts";
import { UsageError } from "./errors.ts";
import { fixShellProblem } from "./fix-shell.ts";
import { print, type Shared, warnOfBroken } from "./output.ts";

/** `netcheck fixes list|show`: adds the commands. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  const fixes = netcheck.command("fixes").description("the catalogue of fixes");
  fixes
    .command("list")
    .description("all fixes: id, risk and title")
    .option("--json", "one JSON array")
    .action(
      run(async (options: { json?: boolean }) => {
        const loaded = loadCatalogue(runbooks, { tolerant: true });
        warnOfBroken(loaded.broken.fixes);
        for (const [id, fix] of loaded.fixes) {
          const problem = await fixShellProblem(fix);
          if (problem !== undefined) process.stderr.write(`netcheck: ${id} can never run: ${problem}\n`);
        }
        const list = [...loaded.fixes.values()].map(({ file, version }) => ({ id: file.id, version, risk: file.risk, title: file.title }));
        print(options.json, list, (fix) => `${fix.id.padEnd(28)} ${fix.risk.padEnd(11)} ${fix.title}`);
      }),
    );
  fixes
    .command("show")
    .description("the commands, parameters and side effects of a fix")
    .argument("<id>")
    .option("--json", "one JSON object")
    .action(
      run((id: string, options: { json?: boolean }) => {
        const loaded = loadCatalogue(runbooks, { tolerant: true });
        const problem = loaded.broken.fixes.get(id);
        if (problem !== undefined) throw new LoadError(problem);
        const fix = loaded.fixes.get(id);
        if (fix === undefined) throw new UsageError(`there is no fix "${id}"; see netcheck fixes list`);
        if (options.json === true) process.stdout.write(`${JSON.stringify({ ...fix.file, version: fix.version })}\n`);
        else process.stdout.write(readFileSync(join(runbooks, "fixes", id, "fix.yaml"), "utf8"));
      }),
    );
}
