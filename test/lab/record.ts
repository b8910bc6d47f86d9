import { existsSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collectFrom } from "../../functions/cli/collect.ts";
import { writeCaptureDirectory } from "../../functions/transports/capture-files.ts";
import { localTransport } from "../../functions/transports/local.ts";
import { fixOnNode } from "./fix-on-node.ts";
import { incidents, startLab } from "./lab.ts";
import { RULES } from "./rules.ts";
import { withoutHost } from "./without-host.ts";

/**
 * Records the lab's five incidents with the real collector: `node test/lab/record.ts [s1 …]` writes runbooks/rules/<rule>/fixtures/lab-{healthy,fault,fixed}/.
 * "fixed" is recorded after the catalogue's own fix has run; see test/lab/triage.test.ts. Existing expect.yaml files are kept.
 */
const chosen = process.argv.slice(2).length > 0 ? incidents.filter((incident) => process.argv.includes(incident)) : incidents;
const rules = new URL("../../runbooks/rules/", import.meta.url).pathname;

for (const incident of chosen) {
  const lab = await startLab([incident], { suffix: `rec${process.pid}` });
  const [node] = lab.nodes;
  if (node === undefined) throw new Error("the lab has no node");
  try {
    const transport = localTransport({ directory: join(tmpdir(), `netcheck-record-${process.pid}`), enter: () => node.enter });
    const target = { name: node.name, cluster: "lab", transport: "local", address: node.name };
    const record = async (state: string, expect: string): Promise<void> => {
      const capture = await collectFrom(transport, target);
      const folder = join(rules, RULES[incident], "fixtures", `lab-${state}`);
      const kept = existsSync(join(folder, "expect.yaml"));
      rmSync(join(folder, "outputs"), { recursive: true, force: true });
      writeCaptureDirectory(withoutHost(capture), folder);
      if (!kept) writeFileSync(join(folder, "expect.yaml"), expect);
      process.stdout.write(`${folder}: ${capture.outputs.length} outputs\n`);
    };
    await node.probe();
    await record("healthy", "verdict: no-match\n");
    await node.fault();
    await node.probe();
    await record("fault", "verdict: match\nfirst: true\n");
    if (await node.probe()) throw new Error(`${incident}: the traffic works in the fault`);
    await fixOnNode(transport, target, RULES[incident]);
    if (!(await node.probe())) throw new Error(`${incident}: the traffic does not work after the fix`);
    await record("fixed", "verdict: no-match\n");
  } finally {
    await lab.down();
  }
}
