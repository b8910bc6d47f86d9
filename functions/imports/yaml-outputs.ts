import { isCommand } from "./bundle.ts";

/**
 * Outputs in YAML, as people's own collectors keep them and Ansible shows them: what a command printed is set in below a field.
 *
 *     - command: ip route
 *       stdout: |
 *         default via 10.0.0.1 dev eth0
 *
 *     changed: [n1] => changed=true
 *       cmd:
 *       - ip
 *       - route
 *       stdout_lines:
 *       - default via 10.0.0.1 dev eth0
 *
 *     ip route: |
 *       default via 10.0.0.1 dev eth0
 */

const COMMAND = /^(?:command|cmd|argv)$/;
const OUTPUT = /^(?:stdout|stdout_lines|output|out|text|result)$/;
const NODE = /^(?:node|nodeName|hostname|host)$/;
/** Ansible's answer of one host. */
const ANSWER = /^(?:ok|changed|fatal|failed): \[([\w.-]{1,253})(?: -> [\w.-]{1,253})?\].{0,400}=>/;
/** What stands between the answers, and below the last of them. */
const BETWEEN = /^(?:TASK|PLAY|RUNNING HANDLER) .{0,4000}\*{3,}$|^[\w.-]{1,253} {1,80}: ok=\d/;
const FIELD = /^((?: |- ){0,40})("(?:[^"\\]|\\.){1,400}"|'(?:[^']|''){1,400}'|[\w/][^\n]{0,400}?):(?: {1,8}(.{0,4000}))?$/;
const ITEM = /^( {0,40})- (.{0,4000})$/;
const LITERAL = /^[|>][-+]?$/;
/** A prompt that waits. */
const END = "sh-5.0#";

/** The lines with a prompt in the place of each field with a command, and what it printed as it was, if there are such fields. Lines keep their numbers. Pure, linear. */
export function outOfYaml(lines: readonly string[]): readonly string[] {
  const shown = [...lines];
  let host = "";
  let found = false;
  // the command of which the output is looked for, and where it stands
  let asked: { readonly command: string; readonly line: number } | undefined;
  const take = (command: string, line: number): void => {
    shown[line] = `${host === "" ? "sh-5.0" : `root@${host}:~`}# ${command}`;
    found = true;
  };
  const width = (line: string): number => line.length - line.trimStart().length;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const answer = ANSWER.exec(line)?.[1];
    const field = line.length > 4800 || answer !== undefined ? null : FIELD.exec(line);
    if (answer !== undefined || BETWEEN.test(line)) [host, asked, shown[i]] = [answer ?? host, undefined, found ? END : line];
    if (field === null) continue;
    const [, before = "", quoted = "", value = ""] = field;
    const key = plain(quoted);
    if (before.includes("-")) asked = undefined;
    const below = LITERAL.test(value);
    let [end, margin] = [i + 1, 200];
    for (; below && end < lines.length && ((lines[end] ?? "").trim() === "" || width(lines[end] ?? "") > before.length); end++)
      if ((lines[end] ?? "").trim() !== "") margin = Math.min(margin, width(lines[end] ?? ""));
    if (COMMAND.test(key)) {
      const words = value === "" ? itemsOf(lines, i + 1, before.length) : listOf(value);
      const command = words.map(plain).join(" ");
      asked = isCommand(command) ? { command, line: i } : undefined;
      if (asked !== undefined || found) shown.fill("", i, value === "" ? i + 1 + words.length : i + 1);
      // what another command printed is nobody's
      if (asked === undefined && found) shown[i] = END;
      continue;
    }
    if (NODE.test(key) && /^[\w.-]{1,253}$/.test(plain(value))) host = plain(value);
    const own = OUTPUT.test(key) ? asked : below && isCommand(key) ? { command: key, line: i } : undefined;
    if (own === undefined) {
      // another field of the same answer; behind an output it ends that
      if (asked !== undefined || found) shown.fill("", i, end);
      if (asked === undefined && found) shown[i] = END;
      if (below) i = end - 1;
      continue;
    }
    shown[i] = "";
    if (below) {
      for (let k = i + 1; k < end; k++) shown[k] = (lines[k] ?? "").slice(margin);
      take(own.command, i);
      i = end - 1;
    } else if (value === "") {
      const items = itemsOf(lines, i + 1, before.length);
      for (const [k, item] of items.entries()) shown[i + 1 + k] = plain(item);
      if (items.length > 0) take(own.command, i);
      i += items.length;
    } else if (own.line < i && !/^<omitted>$|\\n/.test(value)) {
      shown[i] = plain(value);
      take(own.command, own.line);
    }
    // what follows shows the same again
    if (found && key !== "stdout") asked = undefined;
  }
  // what stands between the answers is part of none, above the first one as well
  return found ? shown.map((line, i) => (line === lines[i] && (ANSWER.test(line) || BETWEEN.test(line)) ? END : line)) : lines;
}

/** The elements of a list, each on a line of its own. */
function itemsOf(lines: readonly string[], from: number, least: number): string[] {
  const items: string[] = [];
  for (let i = from; i < lines.length; i++) {
    const [, before = "", item] = ITEM.exec(lines[i] ?? "") ?? [];
    if (item === undefined || before.length < least) break;
    items.push(item);
  }
  return items;
}

/** `["ip", "route"]`, `[ip, route]`, or a text. */
const listOf = (value: string): string[] => (/^\[.{0,2000}\]$/.test(value) ? value.slice(1, -1).split(/, ?/) : [value]);

/** A text of YAML without its quotes. */
function plain(value: string): string {
  const text = value.trim();
  const single = /^'(.*)'$/.exec(text)?.[1];
  if (single !== undefined) return single.replaceAll("''", "'");
  return /^".*"$/.test(text)
    ? text
        .slice(1, -1)
        .replaceAll(/\\(["\\/])/g, "$1")
        .replaceAll("\\t", "\t")
    : text;
}
