import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Capture } from "../../functions/facts/capture.ts";
import { type Local, startLocal } from "../../functions/local/main.ts";
import { scripts } from "../../functions/transports/script.ts";
import { unpackCapture } from "../../functions/triage/captures.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import { type LabNode, startLab } from "../lab/lab.ts";
import { labProblem } from "../lab/requirements.ts";
import { type Figure, median, ms, sideBySide, times } from "./measure.ts";

const ROUNDS = 5;
const LIMIT_MS = 2000;
const CHANNEL = "C_INCIDENTS";
const what = "triage: signed command → diagnosis in the thread, live S4 node, without the sampling pause";

/** The whole flow on a live node. `folder`: for local mode's data. */
export async function benchTriage(folder: string): Promise<Figure[]> {
  const problem = labProblem();
  if (problem !== undefined) return [{ what, measured: `not measured: ${problem}`, baseline: "–", ratio: "–", target: "< 2 s" }];
  const lab = await startLab(["s4"], { suffix: `bench${process.pid}` });
  let local: Local | undefined;
  try {
    const node = lab.node("s4");
    await node.fault();
    const config = join(folder, "netcheck.yaml");
    writeFileSync(
      config,
      `clusters:\n  lab:\n    transport: local\n    targets:\n      ${node.name}: { address: ${node.name} }\nrunbook: netcheck\npages: { channel: ${CHANNEL} }\npolicy: []\n`,
    );
    local = await startLocal({ directory: join(folder, "lab"), config, enter: () => node.enter });
    const app = local;
    const { ours, baseline } = await sideBySide(
      ROUNDS,
      () => triage(app, node.name),
      () => collectOnly(app, node),
    );
    const [a, b, pause] = [median(ours.map(({ tookMs }) => tookMs)), median(baseline), median(ours.map(({ pauseMs }) => pauseMs))];
    return [
      {
        what,
        measured: `${ms(a)} (and ${ms(pause)} of pause between the two samples)`,
        baseline: `${ms(b)} the collection script alone`,
        ratio: times(a, b),
        target: "< 2 s",
        ok: a < LIMIT_MS,
      },
      await benchPage(app, node.name),
    ];
  } finally {
    await local?.close();
    await lab.down();
  }
}

const FIRST_LIMIT_MS = 1000;
const PAGE_LIMIT_MS = 3000;

/** One page over HTTP: a node that was examined just now is not examined again for another. */
async function benchPage(app: Local, target: string): Promise<Figure> {
  const before = new Set(app.workspace.chat.messages(CHANNEL).map(({ ts }) => ts));
  const started = performance.now();
  const first = new Promise<number>((resolve) => {
    const stop = app.workspace.chat.onChange(() => {
      if (!app.workspace.chat.messages(CHANNEL).some(({ ts }) => !before.has(ts))) return;
      stop();
      resolve(performance.now() - started);
    });
  });
  const { tookMs } = await triage(app, target, async () => {
    const headers = { "content-type": "application/json", authorization: `Bearer ${app.workspace.botToken}` };
    const body = JSON.stringify({ source: "generic", status: "firing", about: target, forged: false });
    const response = await fetch(`${app.url}/workspace/page`, { method: "POST", headers, body });
    if (!response.ok) throw new Error(`bench: the page was refused: ${await response.text()}`);
  });
  const firstMs = await first;
  return {
    what: "triage: page over HTTP → first message; → diagnosis in the thread, live S4 node, without the sampling pause",
    measured: `${ms(firstMs)}; ${ms(tookMs)}`,
    baseline: "–",
    ratio: "–",
    target: "< 1 s; < 3 s",
    ok: firstMs < FIRST_LIMIT_MS && tookMs < PAGE_LIMIT_MS,
  };
}

/** Milliseconds from the gesture to the diagnosis in the thread, less the pause. */
async function triage(app: Local, target: string, gesture?: () => Promise<void>): Promise<{ tookMs: number; pauseMs: number }> {
  const { chat } = app.workspace;
  const told = new Set(chat.messages(CHANNEL).map(({ ts }) => ts));
  const started = performance.now();
  const shown = new Promise<number>((resolve) => {
    const stop = chat.onChange(() => {
      const found = chat
        .messages(CHANNEL)
        .some(({ ts, threadTs, blocks }) => !told.has(ts) && threadTs !== undefined && (JSON.stringify(blocks) ?? "").includes("Likely cause"));
      if (!found) return;
      stop();
      resolve(performance.now() - started);
    });
  });
  if (gesture === undefined) {
    const outcome = await app.workspace.command({ user: "U_ALICE", channel: CHANNEL, command: "/netcheck", text: target });
    if (!outcome.ok) throw new Error(`bench: the command was refused: ${outcome.error ?? ""}`);
  } else await gesture();
  const shownMs = await shown;
  await app.engine.idle();
  const [incident] = await app.store.incidents(1);
  const data = await app.store.get(incident?.capture ?? "none");
  if (data === undefined) throw new Error("bench: the incident has no capture");
  const pauseMs = pauseOf(unpackCapture(data));
  return { tookMs: shownMs - pauseMs, pauseMs };
}

/** The same script on the same node, by itself, less the pause. */
async function collectOnly(app: Local, node: LabNode): Promise<number> {
  const plan = collectionPlan(app.catalogue, "netcheck");
  const nonce = "0123456789abcdef0123456789abcdef";
  const started = performance.now();
  const { stdout, code, stderr } = await node.run(["env", `NETCHECK_nonce=${nonce}`, "NETCHECK_job=bench", "/bin/sh", "-c", scripts.collect(plan).text]);
  const tookMs = performance.now() - started;
  if (code !== 0) throw new Error(`bench: the collection failed: ${stderr}`);
  const about = { nonce, plan, target: node.name, transport: "local", startedAt: "2026-01-01T00:00:00Z", truncated: false };
  return tookMs - pauseOf(scripts.readCapture(stdout, about));
}

/** Milliseconds between the last command before the second samples and the first of these, by the node's own clock (to 10 ms). */
function pauseOf({ outputs }: Capture): number {
  const end = Math.max(...outputs.filter(({ sample }) => sample === 1).map(({ startMs = 0, durationMs = 0 }) => startMs + durationMs));
  const second = Math.min(...outputs.filter(({ sample }) => sample === 2).map(({ startMs = Number.POSITIVE_INFINITY }) => startMs));
  return Math.max(0, second - end);
}
