import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLocal } from "../../functions/local/main.ts";
import { startLab } from "./lab.ts";
import { labProblem } from "./requirements.ts";

/** `npm run lab`: the five incidents live in network namespaces, broken, and local mode open against them. Ctrl-C takes everything down. */
const problem = labProblem();
if (problem !== undefined) {
  process.stderr.write(`The live lab cannot run here: ${problem}\n`);
  process.exit(1);
}
const directory = mkdtempSync(join(tmpdir(), "netcheck-lab-"));
process.stdout.write("building five nodes…\n");
const lab = await startLab(["s1", "s2", "s3", "s4", "s5"]);
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
  process.stdout.write(`the nodes are broken and live: open ${local.url} and type /netcheck node1\n`);
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
