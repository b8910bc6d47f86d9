import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { netcheckCommand } from "./command.ts";
import { ipRoute, iptablesList, routeTable } from "./listings.ts";
import { type Figure, median, ms, run, sideBySide, times } from "./measure.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const LARGE = 100_000;

interface Case {
  readonly command: string;
  /** jc's option; what it has no parser for stands beside its nearest. */
  readonly parser: string;
  readonly text: string;
  /** How much faster we must be. */
  readonly target: number;
  readonly size: string;
}

const fixture = (name: string): string => readFileSync(join(root, "test/facts", name), "utf8");

/** Every command that jc 1.22.5 and netcheck both read, on one file each; and large listings. */
const CASES: readonly Case[] = [
  { command: "iptables -nvL", parser: "--iptables", text: iptablesList(LARGE), target: 5, size: "100,000 rules" },
  { command: "route -n", parser: "--route", text: routeTable(LARGE), target: 5, size: "100,000 routes" },
  { command: "ip route", parser: "--route", text: ipRoute(LARGE), target: 5, size: "100,000 routes; jc reads as many of `route -n`" },
  { command: "iptables -nvL", parser: "--iptables", text: iptablesList(20), target: 1, size: "20 rules" },
  { command: "route -n", parser: "--route", text: routeTable(5), target: 1, size: "5 routes" },
  { command: "arp -an", parser: "--arp", text: fixture("neighbor/arp-a.txt"), target: 1, size: "a few lines" },
  { command: "ifconfig", parser: "--ifconfig", text: fixture("link/ifconfig-new.txt"), target: 1, size: "a few lines" },
  { command: "lsmod", parser: "--lsmod", text: fixture("module/lsmod.txt"), target: 1, size: "a few lines" },
  { command: "sysctl -a", parser: "--sysctl", text: fixture("sysctl/all.txt"), target: 1, size: "a few lines" },
  { command: "ss -lntup", parser: "--ss", text: fixture("socket/ss-lntup.txt"), target: 1, size: "a few lines" },
  { command: "netstat -lntup", parser: "--netstat", text: fixture("socket/netstat-lntup.txt"), target: 1, size: "a few lines" },
  { command: "ps -ef", parser: "--ps", text: fixture("process/ps-ef.txt"), target: 1, size: "a few lines" },
  { command: "systemctl list-units --all", parser: "--systemctl", text: fixture("unit/list-units.txt"), target: 1, size: "a few lines" },
  { command: "timedatectl", parser: "--timedatectl", text: fixture("clock/timedatectl.txt"), target: 1, size: "a few lines" },
  { command: "ntpq -p", parser: "--ntpq", text: fixture("clock/ntpq-good.txt"), target: 1, size: "a few lines" },
];

/** Facts against `jc` (Debian package), whole processes, the same file through a pipe of the shell's. Left out with a word where jc is not installed. */
export async function benchJc(folder: string): Promise<Figure[]> {
  const jc = await run(["jc", "--version"]).catch(() => undefined);
  if (jc === undefined) {
    const what = "facts against jc";
    return [{ what, measured: "not measured: jc is not installed (apt-get install jc)", baseline: "–", ratio: "–", target: "–" }];
  }
  const netcheck = (await netcheckCommand()).map((word) => `"${word}"`).join(" ");
  const figures: Figure[] = [];
  for (const [i, { command, parser, text, target, size }] of CASES.entries()) {
    const file = join(folder, `jc-${i}.txt`);
    writeFileSync(file, text);
    const theirs = join(folder, `jc-${i}-theirs.txt`);
    writeFileSync(theirs, command === "ip route" ? routeTable(LARGE) : text);
    const sh = async (script: string): Promise<number> => (await run(["sh", "-c", script])).wallMs;
    const { ours, baseline } = await sideBySide(
      text.length > 1e6 ? 5 : 9,
      () => sh(`${netcheck} facts parse "${file}" --command "${command}" --json > /dev/null`),
      () => sh(`jc ${parser} < "${theirs}" > /dev/null`),
    );
    const [a, b] = [median(ours), median(baseline)];
    const large = text.length > 1e6;
    const bare = large
      ? await sideBySide(
          3,
          () => sh(`"${process.execPath}" "${join(root, "test/bench/bare-listing.mjs")}" "${file}" > /dev/null`),
          () => sh("true"),
        )
      : undefined;
    figures.push({
      what: `\`${command}\`, ${size}: \`netcheck facts parse --json\``,
      measured: bare === undefined ? ms(a) : `${ms(a)} (bare Node, the words of each line as JSON: ${ms(median(bare.ours))})`,
      baseline: `${ms(b)} \`jc ${parser}\``,
      ratio: times(a, b),
      target: target === 1 ? "never slower" : `≥ ${target}× its speed`,
      ok: b / a >= target,
    });
  }
  return figures;
}
