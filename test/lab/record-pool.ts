import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collectFrom } from "../../functions/cli/collect.ts";
import { packCaptureFiles } from "../../functions/transports/capture-files.ts";
import { localTransport } from "../../functions/transports/local.ts";
import { withoutHost } from "./without-host.ts";

/**
 * Records the pool "blue" of local mode with the real collector, one node after the other: `node test/lab/record-pool.ts` (root, Linux) writes
 * functions/local/pool/blue-{1…4}.tgz. Three are healthy; on blue-3 a policy rule is left that no rule of the catalogue knows.
 */
const FAULTY = 3;
const folder = new URL("../../functions/local/pool/", import.meta.url).pathname;
const suffix = `pool${process.pid}`;
const work = join(tmpdir(), `netcheck-record-pool-${process.pid}`);

mkdirSync(folder, { recursive: true });
try {
  for (const number of [1, 2, 3, 4]) await record(number);
} finally {
  rmSync(work, { recursive: true, force: true });
  rmSync(join("/run/netcheck-lab", suffix), { recursive: true, force: true });
}

async function record(number: number): Promise<void> {
  const name = `blue-${number}`;
  try {
    run(number, "up");
    if (number === FAULTY) {
      run(number, "fault");
      if (probe(number)) throw new Error(`${name}: the traffic works in the fault`);
    } else if (!probe(number)) throw new Error(`${name}: the traffic does not work`);
    const keeper = readFileSync(join("/run/netcheck-lab", suffix, `blue${number}`, "keeper"), "utf8").trim();
    const enter = ["nsenter", `--mount=/proc/${keeper}/ns/mnt`, `--uts=/proc/${keeper}/ns/uts`, `--net=/run/netns/nc-blue${number}-node-${suffix}`, "--"];
    const transport = localTransport({ directory: join(work, name), enter: () => enter });
    const capture = withoutHost(await collectFrom(transport, { name, cluster: "lab", transport: "local", address: name }));
    const packed = await packCaptureFiles(capture);
    writeFileSync(join(folder, `${name}.tgz`), packed);
    process.stdout.write(`${name}: ${capture.outputs.length} outputs, ${packed.length} bytes\n`);
  } finally {
    run(number, "down");
  }
}

function run(number: number, verb: string): void {
  execFileSync(join(import.meta.dirname, "pool.sh"), [verb], { env: { ...process.env, POOL_NUMBER: String(number), LAB_SUFFIX: suffix }, timeout: 60_000 });
}

/** True if the traffic works. @throws if the lab itself is broken */
function probe(number: number): boolean {
  try {
    run(number, "probe");
    return true;
  } catch (error) {
    if ((error as { status?: number }).status === 3) return false;
    throw error;
  }
}
