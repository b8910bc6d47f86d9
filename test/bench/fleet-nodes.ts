import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleChild } from "./child.ts";
import { LAMBDA_FLAGS } from "./command.ts";
import { type Figure, ms, run } from "./measure.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const number = new Intl.NumberFormat("en-US");

/** What issue 6 allows: seconds by the number of nodes, and megabytes. */
const LIMITS: Readonly<Record<number, number>> = { 10: 10, 40: 10, 100: 30, 1000: 120 };
const MAX_MB = 1000;

interface Inner {
  readonly ms: number;
  readonly cpuMs: number;
  readonly peakMb: number;
  readonly operations: number;
  readonly calls: Readonly<Record<string, number>>;
  readonly causes: number;
  readonly lost: number;
  readonly nodes: number;
}

/** `/netcheck nodes pool=green` on replayed nodes: from the command to the table, with every message drawn as for Slack. Baseline: the same for one node, so many times. */
export async function benchFleetNodes(folder: string, sizes: readonly number[] = Object.keys(LIMITS).map(Number)): Promise<Figure[]> {
  const child = await bundleChild("fleet-nodes-child", folder);
  const measure = async (nodes: number): Promise<Inner> => {
    const files = mkdtempSync(join(folder, `fleet-nodes-${nodes}-`));
    const inner = JSON.parse((await run([process.execPath, ...LAMBDA_FLAGS, child, root, files, String(nodes)])).stdout) as Inner;
    if (inner.nodes !== nodes || inner.lost > 0 || inner.causes !== Math.ceil(nodes / 10))
      throw new Error(`bench: ${nodes} nodes came to ${JSON.stringify(inner)}`);
    return inner;
  };
  const one = await measure(1);
  const figures: Figure[] = [];
  for (const nodes of sizes) {
    const all = await measure(nodes);
    const calls = Object.values(all.calls).reduce((sum, count) => sum + count, 0);
    const seconds = LIMITS[nodes] ?? 120;
    figures.push({
      what: `fleet: /netcheck nodes, ${number.format(nodes)} replayed nodes, from the command to the table`,
      measured: `${ms(all.ms)} (${ms(all.cpuMs)} of the processor), peak ${all.peakMb.toFixed(0)} MB, ${number.format(all.operations)} operations, ${calls} calls to Slack`,
      baseline: `${ms(one.ms * nodes)}: one node, ${number.format(nodes)} times`,
      ratio: `${(all.ms / (one.ms * nodes)).toFixed(2)}×`,
      target: `< ${seconds} s, < ${number.format(MAX_MB)} MB, calls bounded`,
      ok: all.ms < seconds * 1000 && all.peakMb < MAX_MB && calls <= 4 + Math.max(1, nodes / 10),
    });
  }
  return figures;
}
