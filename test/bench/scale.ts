import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bundleChild } from "./child.ts";
import { nodeFlags } from "./command.ts";
import { kubeRules } from "./kube-rules.ts";
import { type Figure, median, ms, run, sideBySide, times } from "./measure.ts";

const count = new Intl.NumberFormat("en-US");

interface Inner {
  readonly ms: number;
  readonly peakMb: number;
  readonly rules: number;
}

/** How the cost of facts and rules grows with lines and with rules, beside what any reader of the file has to pay. */
export async function benchScale(folder: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  // as in production, without the reader of TypeScript in memory
  const child = await bundleChild("scale-child", folder);
  const inner = innerOf(child);
  for (const lines of [10_000, 100_000, 1_000_000]) {
    const capture = captureOf(join(folder, `scale-${lines}`), kubeRules(lines));
    const file = join(capture, "outputs/iptables-save.txt");
    const { ours, baseline } = await sideBySide(lines === 1_000_000 ? 2 : 5, inner(capture, 1), bareSplit(file));
    const { baseline: wc } = await sideBySide(
      3,
      async () => undefined,
      async () => (await run(["wc", "-l", file])).wallMs,
    );
    const { baseline: grep } = await sideBySide(
      3,
      async () => undefined,
      async () => (await run(["grep", "-c", "KUBE-", file])).wallMs,
    );
    const [a, b, peak] = [median(ours.map((one) => one.ms)), median(baseline), median(ours.map((one) => one.peakMb))];
    const target = lines === 100_000;
    figures.push({
      what: `${count.format(lines)} iptables rules: parse + all ${ours[0]?.rules} rules, in the process`,
      measured: `${ms(a)}, peak ${peak.toFixed(0)} MB`,
      baseline: `${ms(b)} bare Node: read and split the lines; ${ms(median(wc))} \`wc -l\`; ${ms(median(grep))} \`grep -c\``,
      ratio: times(a, b),
      target: target ? "< 600 ms, < 300 MB" : "linear in lines",
      ...(target ? { ok: a < 600 && peak < 300 } : {}),
    });
  }
  const ten = captureOf(join(folder, "scale-rules"), kubeRules(10_000));
  const { ours: often, baseline: once } = await sideBySide(3, inner(ten, 10), inner(ten, 1));
  const [many, few] = [median(often.map((one) => one.ms)), median(once.map((one) => one.ms))];
  figures.push({
    what: `${often[0]?.rules} rules (the ruleset ten times) on 10,000 iptables rules`,
    measured: ms(many),
    baseline: `${ms(few)} with ${once[0]?.rules} rules`,
    ratio: times(many, few),
    target: "linear in rules (≤ 10×)",
    ok: many / few <= 10,
  });
  const typical = fileURLToPath(new URL("../../runbooks/rules/kube-forward-before-cilium/fixtures/lab-fault/", import.meta.url));
  const { ours: whole, baseline: facts } = await sideBySide(5, inner(typical, 1, "warm"), inner(typical, 0, "warm"));
  const [all, read] = [median(whole.map((one) => one.ms)), median(facts.map((one) => one.ms))];
  figures.push({
    what: `the whole ruleset (${whole[0]?.rules}) on a typical capture (a lab node, facts included)`,
    measured: ms(all),
    baseline: `${ms(read)} the facts alone`,
    ratio: times(all, read),
    target: "< 20 ms",
    ok: all < 20,
  });
  return figures;
}

const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));

const innerOf =
  (child: string) =>
  (capture: string, ruleset: number, mode = "cold") =>
  async (): Promise<Inner> =>
    JSON.parse((await run([process.execPath, "--max-old-space-size=4096", ...nodeFlags(), child, runbooks, capture, String(ruleset), mode])).stdout) as Inner;

const bareSplit = (file: string) => async (): Promise<number> => {
  const source = `const t=performance.now();const n=require("fs").readFileSync(${JSON.stringify(file)},"utf8").split("\\n").length;console.log(performance.now()-t,n)`;
  return Number((await run([process.execPath, "-e", source])).stdout.split(" ")[0]);
};

function captureOf(folder: string, text: string): string {
  mkdirSync(join(folder, "outputs"), { recursive: true });
  writeFileSync(join(folder, "outputs/iptables-save.txt"), text);
  const outputs = [{ command: "iptables-save -c", file: "outputs/iptables-save.txt", exitCode: 0 }];
  writeFileSync(join(folder, "capture.json"), JSON.stringify({ schema: "netcheck.capture/1", target: { name: "node1" }, outputs }));
  return folder;
}
