import { isKnown } from "./bundle.ts";

/**
 * Prompts that people adorn, as plain ones, so that the rest needs to know few: a clock or a number in front or inside (`[14:12:31] root@node1:~# ip rule`,
 * `root@node1 [7] ~ # ip rule`), the two lines of Kali and its like (`┌──(root㉿node1)-[~]` above `└─# ip rule`), zsh (`node1% ip rule`).
 */

const CLOCK =
  /^(?:\[(?:\d{4}-\d{2}-\d{2}[T ])?\d{1,2}:\d{2}(?::\d{2})?\]|\d{2}:\d{2}:\d{2}) {1,2}(?=(?:\[[\w.-]{1,64}@|[\w.-]{1,64}@[\w.-]{1,64}[: ]?[~/]?)[^#$\n]{0,80}[#$](?: |$))/;
const COUNTED = /^([\w.-]{1,64}@[\w.-]{1,64}) \[\d{1,6}\] ([~/][^\s#$]{0,80}) ?([#$])(?= |$)/;
const UPPER = /^[┌╭]─{0,4}[([ ]{0,3}(?:[\w.-]{1,64}(?:@|㉿))?([\w.-]{1,64})?.{0,120}$/u;
const LOWER = /^[└╰]─{0,4}[>❯➤]? ?([#$%]?)(?: |$)/u;
const ZSH = /^([A-Za-z][\w.-]{0,63})% (?=[a-z/])/;
/** So many commands that netcheck knows must stand behind a host with nothing but `%`: `100% packet loss` has the sign, too. */
const HABIT = 3;

/** The lines with plain prompts; each stays at its place. Pure, linear. */
export function plainPrompts(lines: readonly string[]): readonly string[] {
  const hosts = zshHosts(lines);
  let host = "";
  return lines.map((line, i) => {
    if (line.length > 4000) return line;
    const lower = lines[i + 1] ?? "";
    const upper = LOWER.test(lower) ? UPPER.exec(line) : null;
    if (upper !== null) {
      host = upper[1] ?? "";
      return "";
    }
    const below = LOWER.exec(line);
    if (below !== null && UPPER.test(lines[i - 1] ?? ""))
      return `${host === "" ? "" : `root@${host}:~`}${below[1] === "$" ? "$" : "#"} ${line.slice(below[0].length)}`;
    const zsh = ZSH.exec(line)?.[1];
    if (zsh !== undefined && hosts.has(zsh)) return `${zsh}:~# ${line.slice(zsh.length + 2)}`;
    return line.replace(CLOCK, "").replace(COUNTED, "$1:$2$3");
  });
}

function zshHosts(lines: readonly string[]): ReadonlySet<string> {
  const counts = new Map<string, Set<string>>();
  for (const line of lines) {
    const match = line.length > 500 ? null : ZSH.exec(line);
    const command = line.slice(match?.[0].length ?? 0);
    if (match === null || !isKnown(command)) continue;
    const host = match[1] ?? "";
    counts.set(host, (counts.get(host) ?? new Set()).add(command));
  }
  return new Set([...counts].filter(([, commands]) => commands.size >= HABIT).map(([host]) => host));
}
