import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Diagnosis } from "../../functions/rules/diagnosis.ts";
import { netcheckCommand } from "./command.ts";
import { kubeRules } from "./kube-rules.ts";
import { type Figure, median, ms, run, sideBySide, times } from "./measure.ts";

const ROUNDS = 5;
const RULES = 50_000;

/** `netcheck diagnose` on a node with very many iptables rules, two samples as collected. `folder`: for the capture. */
export async function benchDiagnose(folder: string): Promise<Figure[]> {
  const text = kubeRules(RULES);
  const rules = text.match(/^\[\d+:\d+\] -A /gm)?.length ?? 0;
  const big = writeCapture(join(folder, "big"), text);
  const small = writeCapture(join(folder, "small"), kubeRules(0));
  const file = join(big, "outputs/iptables-save.txt");
  const netcheck = await netcheckCommand();
  const diagnose = (capture: string) => async () => {
    // how much memory it took is only known inside
    const peak = `data:text/javascript,process.on("exit",()=>process.stderr.write("peak "+process.resourceUsage().maxRSS))`;
    const { wallMs, stdout, stderr } = await run([...netcheck.slice(0, -1), "--import", peak, ...netcheck.slice(-1), "diagnose", capture, "--json"]);
    const { stats, unparsed } = JSON.parse(stdout) as Diagnosis;
    if (unparsed.length > 0) throw new Error(`bench: unparsed lines: ${JSON.stringify(unparsed)}`);
    return { wallMs, bytes: stats.bytes, innerMs: stats.ms, peakMb: Number(/peak (\d+)/.exec(stderr)?.[1]) / 1000 };
  };
  // both files, as both are read
  const grep = async () => (await run(["grep", "-c", "KUBE-", file, file])).wallMs;
  const { ours, baseline } = await sideBySide(ROUNDS, diagnose(big), grep);
  const { ours: idle } = await sideBySide(ROUNDS, diagnose(small), async () => undefined);
  const [a, b, empty] = [median(ours.map(({ wallMs }) => wallMs)), median(baseline), median(idle.map(({ wallMs }) => wallMs))];
  const [bytes, inner, peak] = [ours[0]?.bytes ?? 0, median(ours.map(({ innerMs }) => innerMs)), median(ours.map(({ peakMb }) => peakMb))];
  const speed = (milliseconds: number): string => `${(bytes / 1000 / milliseconds).toFixed(1)} MB/s`;
  return [
    {
      what: `diagnose: two samples of ${rules.toLocaleString("en-US")} iptables rules, ${(bytes / 1e6).toFixed(1)} MB, all rules`,
      measured: `${ms(a)}, of it ${ms(inner)} in parsing and rules (${speed(inner)}); peak ${peak.toFixed(0)} MB`,
      baseline: `${ms(b)} \`grep -c KUBE-\` (${speed(b)}); ${ms(empty)} for an empty capture, peak ${median(idle.map(({ peakMb }) => peakMb)).toFixed(0)} MB`,
      ratio: times(a, b),
      target: "–",
    },
  ];
}

function writeCapture(folder: string, text: string): string {
  mkdirSync(join(folder, "outputs"), { recursive: true });
  writeFileSync(join(folder, "outputs/iptables-save.txt"), text);
  const output = (sample: number) => ({ command: "iptables-save -c", file: "outputs/iptables-save.txt", exitCode: 0, sample });
  writeFileSync(join(folder, "capture.json"), JSON.stringify({ schema: "netcheck.capture/1", target: { name: "node1" }, outputs: [output(1), output(2)] }));
  return folder;
}
