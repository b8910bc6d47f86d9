import { isPromptLine, withoutPrompt } from "../facts/command.ts";
import { isWindowWidth, NARROWEST } from "../facts/unwrap.ts";
import { isCommand, isKnown } from "./bundle.ts";
import { logSignOf } from "./log-lines.ts";
import { isProse } from "./prose.ts";
import { signOf } from "./unnamed-outputs.ts";

/**
 * Prompts that people adorn, as plain ones, so that the rest needs to know few: a clock or a number in front or inside (`[14:12:31] root@node1:~# ip rule`,
 * `root@node1 [7] ~ # ip rule`), the two lines of Kali and its like (`┌──(root㉿node1)-[~]` above `└─# ip rule`), zsh (`node1% ip rule`), netshoot's image (` node1  ~  ip rule`). Whatever else somebody
 * has there (a branch of git, a context of kubectl, PowerShell) is known by what stands behind it: the same words and a sign in front of several commands of ours.
 */

const CLOCK =
  /^(?:\[(?:\d{4}-\d{2}-\d{2}[T ])?\d{1,2}:\d{2}(?::\d{2})?\]|\d{2}:\d{2}:\d{2}) {1,2}(?=(?:\[[\w.-]{1,64}@|[\w.-]{1,64}@[\w.-]{1,64}[: ]?[~/]?)[^#$\n]{0,80}[#$](?: |$))/;
const COUNTED = /^([\w.-]{1,64}@[\w.-]{1,64}) \[\d{1,6}\] ([~/][^\s#$]{0,80}) ?([#$])(?= |$)/;
const UPPER = /^[┌╭]─{0,4}[([ ]{0,3}(?:[\w.-]{1,64}(?:@|㉿))?([\w.-]{1,64})?.{0,120}$/u;
const LOWER = /^[└╰]─{0,4}[>❯➤○●λ➜]? ?([#$%]?)(?: |$)/u;
const ZSH = /^([A-Za-z][\w.-]{0,63})% (?=[a-z/])/;
/** The image for debugging has no sign in its prompt, but two blanks on both sides of the folder. */
const NETSHOOT = /^ ?([A-Za-z0-9][\w.-]{0,62}) {2}([~/][\w./-]{0,80}) (?: (?=\S)|$)/;
/** So many commands that netcheck knows must stand behind a host with nothing but `%`: `100% packet loss` has the sign, too. */
const HABIT = 3;

/** The sign at the end of a prompt; behind the arrow of oh-my-zsh stand the folder and the branch. */
const SIGN = /➜[ \t]{1,3}(?:~[\w./-]{0,60}[ \t]|[\w.~/-]{1,60} git:\([^()\s]{1,60}\)[ \t])?[ \t]{0,3}|[#$%>❯➤»›λ✗✘○●][ \t]{0,3}/gu;
/** Behind them nothing else than a command stands, not even once. */
const OF_USER =
  /^(?:\([^()\n]{1,60}\)|\[[^[\]\n]{1,60}\]|[^\w\s]|[ \t\d]){0,8}[\w.-]{1,64}@[\w.*<[-][^@\n]{0,160}[#$%>] ?$|^\([^()\n]{1,60}\) ?[#$%❯] ?$|^~[\w./-]{0,80} ?[#$%❯➜λ»] ?$|^PS [^\n]{1,100}> ?$|^[A-Z]:\\[^\n]{0,100}> ?$/u;
/** What a heading begins with, and the bare signs of prompts, are known elsewhere. */
const BARE = /^(?!~ ?[#$%>] ?$)[\s=#$%*+>~@:-]+$/;
/** A whole line that somebody made bold, slanted or code, also in a list. A lone `#` inside of it begins a heading's words. */
const MARKED = /^[ \t]{0,8}(?:(?:[-*+]|\d{1,2}[.)]|#{2,6}) {1,4})?(\*{1,3}|_{1,3}|`)(?![\s*_`]|#{1,6} )([^\n]{1,2000}?)\1[:.]?[ \t]{0,4}$/;
/** Markup of a page, also in front of the whole prompt. */
const TAG = /^[ \t]*<pre[ >]|<[^<>]{1,80}>[ \t]*$|`{3}/i;
/** Where a command has begun, a `$` is a variable's: `root@node1:~# for t in 2 3; do ip route show table $t; done`. */
const IN_COMMAND = /["';]|\bdo |\| |&&/;
/** What people type besides: beside one command that netcheck knows these tell a prompt, too. */
const TYPED =
  /^(?:(?:sudo|ssh|kubectl|oc|helm|docker|crictl|curl|wget|dig|nslookup|ping|nc|systemctl|journalctl|cat|grep|ls|cd|export|aws|az|gcloud) \S|for \w{1,40} in |while |date$|hostname$)/;
/** A prompt of one sign: what it quotes has it in front of the next line as well. */
const QUOTE = /^>{1,4} ?$/;
/** More lines are not looked at; prompts stand in all parts of a text. */
const MOST = 5000;

/** A prompt without what changes from one to the next: numbers, the folder. */
const kept = (prompt: string): string =>
  prompt
    .replace(/[ \t]+$/, " ")
    // whether something waits to be committed
    .replace(/(?<=git:\([^()]{1,60}\)) [✗✘*](?= $)/u, "")
    .replaceAll(/(?<=^|[\s:(])[~/][\w./~-]*/g, "~")
    .replaceAll(/\d+/g, "0");

/** The beginnings of a line that end as a prompt does, the shortest first. */
function beginnings(line: string): string[] {
  const head = line.slice(0, 160);
  return [...head.matchAll(SIGN)].slice(0, 8).map(({ index, 0: sign }) => head.slice(0, index + sign.length));
}

/** The prompts of a text that are not plain. */
function adorned(lines: readonly string[]): ReadonlySet<string> {
  const commands = new Map<string, { known: boolean; all: Set<string> }>();
  let looked = 0;
  for (const [i, line] of lines.entries()) {
    if (line.length > 600 || looked > MOST || (isPromptLine(line) && isKnown(withoutPrompt(line)))) continue;
    const next = lines[i + 1] ?? "";
    for (const prompt of beginnings(line)) {
      const command = line.slice(prompt.length);
      const isQuote = QUOTE.test(prompt) ? next.trim() === "" || next.startsWith(">") : BARE.test(prompt);
      if (!/^[a-z/]/.test(command) || TAG.test(prompt) || IN_COMMAND.test(prompt) || isQuote) continue;
      looked++;
      const known = isKnown(command);
      if (!(known || isCommand(command) || TYPED.test(command)) || isProse(command)) continue;
      const found = commands.get(kept(prompt)) ?? { known, all: new Set() };
      commands.set(kept(prompt), { known: found.known || known, all: found.all.add(command) });
    }
  }
  return new Set([...commands].flatMap(([prompt, { known, all }]) => (known && all.size >= (OF_USER.test(prompt) ? 1 : 2) ? [prompt] : [])));
}

/** The line with a plain prompt in the place of one of these; undefined if it has none. */
function plainOf(line: string, prompts: ReadonlySet<string>): string | undefined {
  const prompt = line.length > 4000 ? undefined : beginnings(line).findLast((one) => prompts.has(kept(one)) || (one === line && prompts.has(kept(`${one} `))));
  // a lone sign that waits may be anything
  if (prompt === undefined || (prompt === line && /^[\s>]*$/.test(prompt))) return undefined;
  const host = /(?:^|[^\w.-])[\w.-]{1,64}(?:@|㉿)([\w.*-]{1,64})/u.exec(prompt)?.[1] ?? /^([A-Za-z][\w.-]{0,62})(?::[~/]\S{0,80})?[#$%>] ?$/.exec(prompt)?.[1];
  return `${host === undefined ? "sh-5.0" : `root@${host}:~`}# ${line.slice(prompt.length)}`;
}

/** A prompt and a command of ours in the place of a line that is nothing else, between marks: `**root@node1:~# ip route**`. */
function unmarked(line: string): string {
  const [, , inner = ""] = line.length > 2100 ? [] : (MARKED.exec(line) ?? []);
  const command = inner.replace(/(?<=[^:]):$/, "");
  return command !== "" && beginnings(command).some((prompt) => isKnown(command.slice(prompt.length))) ? command : line;
}

/** The lines with plain prompts; each stays at its place. Pure, linear. */
export function plainPrompts(given: readonly string[]): readonly string[] {
  const lines = given.map(unmarked);
  const hosts = hostsOf(lines, ZSH, HABIT);
  const images = hostsOf(lines, NETSHOOT, 1);
  const prompts = adorned(lines);
  let host = "";
  const plain = lines.map((line, i) => {
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
    const image = NETSHOOT.exec(line);
    if (image !== null && images.has(image[1] ?? "")) return `root@${image[1]}:${image[2]}# ${line.slice(image[0].length)}`;
    return (prompts.size === 0 ? undefined : plainOf(line, prompts)) ?? line.replace(CLOCK, "").replace(COUNTED, "$1:$2$3");
  });
  return wholeCommands(plain, lines);
}

/**
 * The lines with commands in one piece: those that a window cut at its edge, which other lines fill as well, and those of which a mail has the end on the next line,
 * as a quote that is not closed or a pipe into nothing tells. `given`: as they were shown.
 */
function wholeCommands(plain: string[], given: readonly string[]): readonly string[] {
  const widest = given.reduce((most, line) => Math.max(most, line.length), 0);
  const full = given.filter((line) => line.length === widest).length;
  const width = widest >= NARROWEST && widest <= 1000 && full >= (isWindowWidth(widest) ? 2 : 4) ? widest : -1;
  for (let i = 0; i < plain.length; i++) {
    const command = plain[i] ?? "";
    if (command.length > 1000 || (given[i]?.length !== width && !isOpen(command)) || !isPromptLine(command) || isPromptLine(plain[i + 1] ?? "")) continue;
    if (![command, command + (plain[i + 1] ?? "")].some((one) => isKnown(withoutPrompt(one)))) continue;
    for (let next = i + 1; next < i + 8 && (given[next - 1]?.length === width || isOpen(plain[i] ?? "")); next++) {
      const rest = plain[next] ?? "";
      if (rest.trim() === "" || isPromptLine(rest) || signOf(rest) !== undefined || logSignOf(rest) !== undefined) break;
      plain[i] += given[next - 1]?.length === width ? rest : ` ${rest.trim()}`;
      plain[next] = "";
    }
  }
  return plain;
}
/** A pipe at the end, or one quote too few; nothing shorter is wrapped. */
const isOpen = (command: string): boolean => command.length > 50 && (/(?:\||&&)$/.test(command) || hasOpenQuote(command));

/** True if a quote is not closed; between quotes those of the other kind are signs like any other. */
function hasOpenQuote(command: string): boolean {
  let open = "";
  for (let i = 0; i < command.length; i++) {
    const sign = command[i] ?? "";
    if (sign === "\\" && open !== "'") i++;
    else if (open === "" ? sign === '"' || sign === "'" : sign === open) open = open === "" ? sign : "";
  }
  return open !== "";
}

/** The hosts in prompts of this form, in front of at least so many commands of ours, or of one that the text begins with. */
function hostsOf(lines: readonly string[], form: RegExp, least: number): ReadonlySet<string> {
  const counts = new Map<string, Set<string>>();
  const top = lines.findIndex((line) => line.trim() !== "");
  const first = new Set<string>();
  for (const [i, line] of lines.entries()) {
    const match = line.length > 500 ? null : form.exec(line);
    const command = line.slice(match?.[0].length ?? 0);
    if (match === null || !isKnown(command)) continue;
    const host = match[1] ?? "";
    counts.set(host, (counts.get(host) ?? new Set()).add(command));
    if (i === top) first.add(host);
  }
  return new Set([...counts].filter(([host, commands]) => commands.size >= least || first.has(host)).map(([host]) => host));
}
