import { existsSync } from "node:fs";
import type { Command } from "commander";
import { readCaptures } from "../imports/index.ts";
import { compare, type Named } from "../rules/compare.ts";
import { comparisonText } from "../rules/compare-report.ts";
import { loadCatalogue, ownSecrets } from "../rules/load.ts";
import { collectOnce } from "./collect.ts";
import { UsageError } from "./errors.ts";
import type { Shared } from "./output.ts";

/** `netcheck compare A B [C…]`: adds the command. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  netcheck
    .command("compare")
    .description("compare a node with healthy peers: what differs, the most unusual and most weighty first")
    .argument("<node>", "a capture, a support bundle, a pasted text, or the name of a target")
    .argument("<peer...>", "the same, of healthy nodes; three are better than one")
    .option("--json", "one JSON object")
    .option("--limit <n>", "at most so many differences", "20")
    .option("--config <file>", "netcheck.yaml, for targets by name")
    .action(
      run(async (node: string, peers: string[], options: { json?: boolean; limit: string; config?: string }) => {
        const limit = Number(options.limit);
        if (!Number.isInteger(limit) || limit < 1 || limit > 1000) throw new UsageError(`--limit takes a number from 1 to 1000, not "${options.limit}"`);
        const twice = [node, ...peers].find((name, index, all) => all.indexOf(name) !== index);
        if (twice !== undefined) throw new UsageError(`"${twice}" is there twice; a node cannot be compared with itself`);
        const secrets = ownSecrets(loadCatalogue(runbooks, { tolerant: true }));
        const [target, ...more] = await read(node, options.config, secrets);
        if (target === undefined || more.length > 0) throw new UsageError(`${node} holds ${more.length + 1} nodes; the first argument must be one node`);
        const others: Named[] = [];
        for (const peer of peers) others.push(...(await read(peer, options.config, secrets)));
        const result = compare(target, others, limit);
        process.stdout.write(options.json === true ? `${JSON.stringify(result)}\n` : comparisonText(result));
      }),
    );
}

/** Captures by path; what is no path is the name of a target and is collected now. */
async function read(name: string, config: string | undefined, secrets: readonly string[]): Promise<Named[]> {
  if (name !== "-" && !existsSync(name) && !/[/\\]|\.(?:tgz|tar|gz|xz|zip|txt|json)$/.test(name)) return [{ name, capture: await collectOnce(name, config) }];
  const captures = await readCaptures(name, secrets);
  return captures.map((capture) => ({ name: captures.length === 1 ? name : `${name} (${capture.target})`, capture }));
}
