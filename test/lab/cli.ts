import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocal } from "../../functions/local/main.ts";
import { incidents, startLab } from "./lab.ts";
import { labProblem } from "./requirements.ts";

/**
 * `npm run lab`: the incidents live in network namespaces, broken, and local mode open against them. `npm run lab -- s2 s4`: only these. Ctrl-C takes
 * everything down.
 */
const names = process.argv.slice(2);
const unknown = names.filter((name) => !incidents.some((incident) => incident === name));
if (unknown.length > 0) {
  process.stderr.write(`The lab has no ${unknown.join(", ")}: it has ${incidents.join(", ")}\n`);
  process.exit(2);
}
const chosen = names.length === 0 ? incidents : incidents.filter((incident) => names.includes(incident));
const problem = labProblem();
if (problem !== undefined) {
  process.stderr.write(`The live lab cannot run here: ${problem}\n`);
  process.exit(1);
}
const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-"));
process.stdout.write(`building ${chosen.length} node(s)…\n`);
const lab = await startLab(chosen);
const down = async (): Promise<void> => {
  await lab.down();
  rmSync(directory, { recursive: true, force: true });
};
try {
  await Promise.all(lab.nodes.map((node) => node.fault()));
  // some traffic, so that counters and tables show what it meets
  await Promise.all(lab.nodes.map((node) => node.probe()));
  const config = join(directory, "netcheck.yaml");
  const targets = lab.nodes.map((node) => `      ${node.name}: {}`).join("\n");
  writeFileSync(
    config,
    `clusters:\n  lab:\n    transport: local\n    targets:\n${targets}\nrunbook: netcheck\npolicy:\n  - { id: sre-approves, effect: allow, approvers: [S_SRE, U_ALICE] }\n`,
  );
  const local = await startLocal({ directory: join(directory, "data"), config, port: 3000, enter: (target) => lab.node(target.address).enter });
  process.stdout.write(`the nodes are broken and live: open ${local.url} and type /netcheck ${lab.nodes[0]?.name}\n`);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => {
      process.stdout.write("taking the lab down…\n");
      void local
        .close()
        .then(down)
        .then(() => process.exit(0));
    });
  }
} catch (error) {
  await down();
  throw error;
}
