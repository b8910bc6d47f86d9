import { words } from "../facts/command.ts";

/** What runs a command on many machines at once, and puts the machine's name in front of each line: pdsh, clush (ClusterShell). */
const SPREADERS = /^(?:[\w./-]{0,100}\/)?(?:pdsh|clush)$/;
const PREFIX = /^([A-Za-z0-9][\w.-]{0,252}): ?/;

/**
 * What one machine printed, without its name in front of each line: `node7: default via 192.0.2.1 dev eth0`. Where several machines answered, or a line has no
 * name, the text as it is: whose it was must not be guessed. Lines keep their numbers.
 */
export function withoutHostPrefix(command: string, text: string): string {
  if (!words(command).some((word) => SPREADERS.test(word))) return text;
  const lines = text.split("\n");
  const hosts = new Set(lines.filter((line) => line.trim() !== "").map((line) => PREFIX.exec(line)?.[1]));
  const [host] = hosts;
  return hosts.size === 1 && host !== undefined ? lines.map((line) => line.replace(PREFIX, "")).join("\n") : text;
}
