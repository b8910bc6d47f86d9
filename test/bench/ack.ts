import { join } from "node:path";
import { build } from "esbuild";
import { bundleAck } from "../../infra/bundle.ts";
import { startLambda } from "../emulators/lambda.ts";
import { startSecrets } from "../emulators/secrets.ts";
import { command, SECRET, signed } from "../slack/requests.ts";
import { type Figure, median, ms, type Run, run, sideBySide, times } from "./measure.ts";

const FUNCTION = "netcheck-triage";
const SECRET_ARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:netcheck/slack-AbCdEf";
const ROUNDS = 15;
const here = import.meta.dirname;

interface First {
  readonly importMs: number;
  readonly firstMs: number;
  readonly rssMb: number;
  readonly response: { readonly statusCode: number; readonly body: string };
}

/** The acknowledging Lambda: how much code a cold start reads, and how long until its first request is answered. `folder`: for bundles. */
export async function benchAck(folder: string): Promise<Figure[]> {
  const bundle = await bundleAck(join(folder, "ack"));
  const bareStart = join(folder, "bare-start.mjs");
  await build({
    entryPoints: [join(here, "bare-start.mjs")],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    minify: true,
    outfile: bareStart,
    banner: { js: 'import{createRequire}from"node:module";const require=createRequire(import.meta.url);' },
    logLevel: "silent",
  });
  const [lambda, secrets] = await Promise.all([startLambda(FUNCTION), startSecrets()]);
  secrets.put(SECRET_ARN, JSON.stringify({ signingSecret: SECRET, botToken: "xoxb-1" }));
  const env = {
    PATH: process.env["PATH"],
    SLACK_SECRET_ARN: SECRET_ARN,
    TRIAGE_FUNCTION: FUNCTION,
    TRIAGE_QUALIFIER: "live",
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_ENDPOINT_URL_LAMBDA: lambda.url,
    AWS_ENDPOINT_URL_SECRETS_MANAGER: secrets.url,
  };
  let count = 0;
  /** From spawn to the end of a process that answers one command. */
  const first = (entry: string, text: string) => async (): Promise<Run & First> => {
    count += 1;
    const event = JSON.stringify(signed(command(text, { trigger_id: `trigger-${count}` })));
    const done = await run([process.execPath, join(here, "first-request.mjs"), entry, event], { env });
    // the metric is a line before it
    const report = JSON.parse(done.stdout.trim().split("\n").at(-1) ?? "") as First;
    if (report.response.statusCode !== 200) throw new Error(`bench: ${entry} answered ${JSON.stringify(report.response)}`);
    return { ...done, ...report };
  };
  try {
    const help = await sideBySide(ROUNDS, first(bundle.entry, "help"), first(join(here, "bare.mjs"), "help"));
    const started = lambda.executions.length;
    const start = await sideBySide(ROUNDS, first(bundle.entry, "node1"), first(bareStart, "node1"));
    if (lambda.executions.length - started !== 2 * (ROUNDS + 1)) throw new Error(`bench: ${lambda.executions.length} executions were started`);
    const row = (what: string, { ours, baseline }: typeof help, limit: number, baselineName: string): Figure => {
      const [a, b] = [median(ours.map(({ wallMs }) => wallMs)), median(baseline.map(({ wallMs }) => wallMs))];
      const parts = `import ${ms(median(ours.map(({ importMs }) => importMs)))}, request ${ms(median(ours.map(({ firstMs }) => firstMs)))}, ${median(ours.map(({ rssMb }) => rssMb)).toFixed(0)} MB`;
      return { what, measured: `${ms(a)} (${parts})`, baseline: `${ms(b)} ${baselineName}`, ratio: times(a, b), target: `≤ ${limit}×`, ok: a / b <= limit };
    };
    return [
      {
        what: "ack: code read at a cold start",
        measured: `${(bundle.startBytes / 1000).toFixed(1)} KB (${(bundle.totalBytes / 1000).toFixed(0)} KB with the SDK, read later)`,
        baseline: "–",
        ratio: "–",
        target: "≤ 160 KB",
        ok: bundle.startBytes <= 160_000,
      },
      row("ack: spawn → import → first signed command answered (help)", help, 1.9, "bare handler"),
      row("ack: the same, with the work started (`/netcheck node1`)", start, 1.9, "bare handler with the SDK"),
    ];
  } finally {
    await Promise.all([lambda.close(), secrets.close()]);
  }
}
