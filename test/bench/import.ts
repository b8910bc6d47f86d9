import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { bundleFunction } from "../../infra/bundle-function.ts";
import { LAMBDA_FLAGS } from "./command.ts";
import { type Figure, median, ms, run } from "./measure.ts";

const ROUNDS = 9;
const LIMIT_MS = 300;

/** The Lambda that does the work: how long a cold start reads and evaluates its code, before it asks anybody for anything. `folder`: for the bundle. */
export async function benchImport(folder: string): Promise<Figure[]> {
  const entry = await bundleFunction("triage", join(folder, "triage"));
  const env = { PATH: process.env["PATH"] };
  const start = () => run([process.execPath, ...LAMBDA_FLAGS, join(import.meta.dirname, "import.mjs"), entry], { env });
  await start();
  const imports: number[] = [];
  const bare: number[] = [];
  let rssMb = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const report = JSON.parse((await start()).stdout) as { importMs: number; rssMb: number };
    imports.push(report.importMs);
    rssMb = report.rssMb;
    bare.push((await run([process.execPath, "-e", "0"], { env })).wallMs);
  }
  const bytes = readdirSync(join(folder, "triage"))
    .filter((name) => name.endsWith(".mjs"))
    .reduce((sum, name) => sum + statSync(join(folder, "triage", name)).size, 0);
  const [a, b] = [median(imports), median(bare)];
  return [
    {
      what: "triage: import of its bundle, the Kubernetes client not loaded",
      measured: `${ms(a)} (${(bytes / 1e6).toFixed(1)} MB of code in all, ${rssMb.toFixed(0)} MB of memory)`,
      baseline: `${ms(b)} \`node -e 0\``,
      ratio: `${(a / b).toFixed(2)}×`,
      target: `≤ ${LIMIT_MS} ms`,
      ok: a <= LIMIT_MS,
    },
  ];
}
