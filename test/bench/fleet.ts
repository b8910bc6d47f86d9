import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Capture } from "../../functions/facts/capture.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { scripts } from "../../functions/transports/script.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import { collectorAnswer } from "../emulators/collector.ts";
import { startSsm } from "../emulators/ssm.ts";
import { bundleChild } from "./child.ts";
import { LAMBDA_FLAGS } from "./command.ts";
import { type Figure, ms, run } from "./measure.ts";

const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const RULE = "kube-forward-before-cilium";
const count = new Intl.NumberFormat("en-US");
/** Lambda's quota of operations per execution (docs), and what issue 4 allows. */
const LIMITS: Readonly<Record<number, number>> = { 1: 30, 10: 60, 50: 60, 100: 3000, 1000: 3000 };
const SIZES = [1, 10, 50, 100, 1000];
/** Node by node is measured up to here: more would take minutes, and beyond 500 nodes it is refused. */
const EACH_UP_TO = 50;
/** The worker's memory must hold whatever the number of nodes. */
const MAX_MB = 512;

const LARGE_MB = 50;

/** The same capture with so many megabytes more of output. */
function inflated(capture: Capture, megabytes: number): Capture {
  const outputs = capture.outputs.filter(({ sample }) => sample === 1);
  const more = Buffer.alloc(Math.ceil((megabytes << 20) / outputs.length), "a line of an output that is much too long\n").toString("latin1");
  return { ...capture, outputs: outputs.map((output) => ({ ...output, text: output.text + more })) };
}

interface Inner {
  readonly operations: number;
  readonly status: string;
  readonly ms: number;
  readonly peakMb: number;
  readonly verdicts: Readonly<Record<string, number>>;
  readonly error?: string;
}

/** Collecting and diagnosing many nodes through Systems Manager's own protocol. Nodes answer at once with recorded outputs, every tenth with a fault. */
export async function benchFleet(folder: string): Promise<Figure[]> {
  const child = await bundleChild("fleet-child", folder);
  const plan = collectionPlan(loadCatalogue(runbooks, { tolerant: true }), "netcheck");
  const capture = (name: string) => readCaptureFiles(join(runbooks, "rules", RULE, "fixtures", name));
  const [fault, healthy] = [await capture("lab-fault"), await capture("lab-healthy")];
  const document = ssmDocument(scripts.collect(plan));
  const usual = (at: number, nonce: string): Buffer => collectorAnswer(at % 10 === 0 ? fault : healthy, plan, nonce);
  const measure = async (nodes: number, mode: "fleet" | "each" | "collect" | "at-once" | "triage", answer = usual): Promise<Inner> => {
    const agents = Object.fromEntries(
      Array.from({ length: nodes }, (_, at) => [
        `i-${String(at + 1).padStart(17, "0")}`,
        {
          name: `node${at + 1}`,
          enter: [],
          answer: ({ SSM_nonce = "" }) => ({ stdout: answer(at, SSM_nonce) }),
        },
      ]),
    );
    const emulator = await startSsm({ agents });
    emulator.register(document.name, document.content);
    const files = mkdtempSync(join(folder, `fleet-${mode}-${nodes}-`));
    const environment = {
      ...process.env,
      AWS_ENDPOINT_URL_SSM: emulator.url,
      AWS_ENDPOINT_URL_S3: emulator.s3url,
      AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
      AWS_SECRET_ACCESS_KEY: "secret",
    };
    try {
      const inner = JSON.parse(
        (await run([process.execPath, ...LAMBDA_FLAGS, child, runbooks, files, String(nodes), mode], { env: environment })).stdout,
      ) as Inner;
      if (inner.error !== undefined) throw new Error(`bench: ${mode} of ${nodes} nodes: ${inner.error}`);
      const verdicts = Object.entries(inner.verdicts);
      const faults = inner.verdicts["cause-found"];
      if ((mode === "collect" || mode === "at-once") && inner.verdicts["collected"] !== nodes)
        throw new Error(`bench: ${nodes} nodes came to ${JSON.stringify(inner.verdicts)}`);
      if ((mode === "fleet" || mode === "each") && (faults !== Math.ceil(nodes / 10) || verdicts.some(([verdict]) => verdict === "not-collected")))
        throw new Error(`bench: ${mode} of ${nodes} nodes came to ${JSON.stringify(inner.verdicts)}`);
      return inner;
    } finally {
      await emulator.close();
    }
  };

  const words = ({ operations, ms: took, peakMb }: Inner): string => `${count.format(operations)} operations, ${ms(took)}, peak ${peakMb.toFixed(0)} MB`;
  const whole = await measure(1, "triage");
  const figures: Figure[] = [
    {
      what: "fleet: the triage of one node through SSM, up to its proposal",
      measured: words(whole),
      baseline: "–",
      ratio: "–",
      target: "≤ 30 operations",
      ok: whole.operations <= 30,
    },
  ];
  const long = (_at: number, nonce: string): Buffer => collectorAnswer(inflated(healthy, LARGE_MB), plan, nonce, "raw");
  const [streamed, atOnce] = [await measure(1, "collect", long), await measure(1, "at-once", long)];
  figures.push({
    what: `fleet: one answer of ${LARGE_MB} MB, not compressed, through the bucket into the store`,
    measured: words(streamed),
    baseline: `${words(atOnce)} read as one string`,
    ratio: `${(streamed.peakMb / atOnce.peakMb).toFixed(2)}× the memory`,
    target: `< ${MAX_MB} MB`,
    ok: streamed.peakMb < MAX_MB,
  });
  for (const nodes of SIZES) {
    const ours = await measure(nodes, "fleet");
    const one = nodes <= EACH_UP_TO ? await measure(nodes, "each") : undefined;
    const most = LIMITS[nodes] ?? 3000;
    figures.push({
      what: `fleet: ${count.format(nodes)} ${nodes === 1 ? "node" : "nodes"} collected and diagnosed through SSM`,
      measured: words(ours),
      baseline: one === undefined ? "–" : `${words(one)} node by node`,
      ratio: one === undefined ? "–" : `${(ours.operations / one.operations).toFixed(2)}× the operations`,
      target: `≤ ${count.format(most)} operations, < ${MAX_MB} MB`,
      ok: ours.operations <= most && ours.peakMb < MAX_MB,
    });
  }
  return figures;
}
