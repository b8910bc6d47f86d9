import { commandLine, isPromptLine, withoutPrompt } from "../facts/command.ts";
import { tellsTime } from "../facts/date-output.ts";
import { isCommand, isKnown } from "./bundle.ts";
import { commandNamed, PROGRAMS } from "./file-names.ts";
import { isLog } from "./log-lines.ts";
import { isProse, isSentence } from "./prose.ts";
import { signOf } from "./unnamed-outputs.ts";

/**
 * Headings that scripts and careful people set above each output: signs on both sides or in front (`===== ip route =====`, `### ip route`, `+ ip route`,
 * `[ip route]`, `2. ip route`), lines of signs above and below, a line of signs below, `<summary>`. Once a text names several commands so, all its headings are
 * known by their signs, those that name nothing that netcheck reads as well: what stands below them is no part of the output above.
 */
export interface Headings {
  /** By the index of its line what a heading names: a command, or "" for anything else. */
  readonly words: ReadonlyMap<number, string>;
  /** The indexes of the lines of signs that belong to them. */
  readonly rulers: ReadonlySet<number>;
}

/** A single `#` begins a comment, or is root's prompt. */
const BETWEEN = /^[ \t]{0,4}([=#*>:~@%-]{2,40}|\+{1,3}|\[[+*i!]\])[ \t]{1,4}(\S.{0,2000}?)(?:[ \t]{1,4}([=#*<:~@%-])[=#*<:~@%-]{1,80})?:?[ \t]{0,4}$/;
const BRACKETS = /^\[([a-z/][^\]]{1,400})\][ \t]{0,4}$/;
const NUMBERED = /^[ \t]{0,4}\d{1,2}[.)] {1,4}(\S.{0,400})$/;
const SUMMARY = /^[ \t]{0,8}(?:<details(?: open)?>)?[ \t]{0,4}<summary>(?:<(?:b|code|strong)>)?(.{1,400}?)(?:<\/(?:b|code|strong)>)?<\/summary>/i;
const WORDED = /^[ \t]{0,4}(?:[Oo]utput of|[Cc]ommand|CMD|[Cc]md|(?:[Rr]unning|[Ee]xecuting)(?: command)?): {0,2}(\S.{0,400})$/;
/** `ip route:`; an output's own lines end so as well, so that only what names a command counts. */
const COLON = /^[ \t]{0,4}([a-z/][^\n]{1,200}):[ \t]{0,4}$/;
const TYPED =
  /^(?:sudo |cat |ls |tail |head |e?grep |sleep |kubectl |docker |crictl |systemctl |journalctl |rpm |dpkg |ps |mount|df|free|top |lsof |ping |curl |dig |nslookup |nc |arping |tcpdump |ethtool |hostname|uptime|date$|lspci|lscpu|sar |mpstat |vmstat|ipsec )/;
const RULER = /^[ \t]{0,4}(?:[=#_~:-]{5,200}|\*{5,200}|[┌└╔╚╭╰]?[─━═]{5,200}[┐┘╗╝╮╯]?)[ \t]{0,4}$/u;
/** What programs rule themselves: chronyc, ntpq. */
const RULED = /^[ \t]{0,8}(?:MS Name\/IP address|remote {3,20}refid) /;
/** Behind a command: that what follows is what it printed. */
export const SAYS = /(?<=\S) (?:command )?(?:outputs?|results?|shows|gives|returns|prints|says)$/i;
/** What stands behind it: when it ran, how it ended. */
const AFTER = /[ \t]{1,4}[([@](?:[A-Z][a-z]{2} [A-Z][a-z]{2} |\d{4}-\d{2}-\d{2}[T ]|\d{2}:\d{2}:\d{2}|rc\b|exit\b|status\b)[^()[\]]{0,40}[)\]]?$/;
/** `watch` above what it shows; the host and the time stand at the right edge of the window. */
const WATCHED = /^Every [\d.,]{1,8}s: (\S.{0,400}?)(?: {2,200}[\w.-]{1,64}: .{10,40})?$/;
const FILE = /^(?:\S{0,200}\/)?[^\s/]{2,120}\.(?:txt|log|out)$/;
/** `minikube logs` names each part by whose log it is, that of a container with its id (which older ones left out). */
const PART = /^(?:\* )?==> ([A-Za-z][\w-]{1,40}(?: [a-z]{4,10})?)( \[[0-9a-f]{12,64}\])? <==$/;
const PARTS: Readonly<Record<string, string>> = {
  // the warnings of it alone
  dmesg: "dmesg -PH -L=never --level warn,err,crit,alert,emerg",
  Docker: "journalctl -u docker",
  containerd: "journalctl -u containerd",
  "CRI-O": "journalctl -u crio",
  kubelet: "journalctl -u kubelet",
  "describe nodes": "kubectl describe nodes",
};
const SYSTEM_POD = /^(?:coredns|etcd|kindnet|kube-(?:apiserver|controller-manager|proxy|scheduler))$/;
/** What people put around a command in a heading. */
const BEFORE =
  /^(?:\p{Extended_Pictographic}\uFE0F? {1,2})?(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?:? (?:[-–|] )?)?(?:[[(]?\d{1,3}(?:\/\d{1,3})?[\]).:]{1,2} {1,4})?(?:(?:[Oo]utput of|BEGIN|START|[Cc]ommand(?! -)|COMMAND|CMD|[Cc]md|(?:[Rr]unning|[Ee]xecuting)(?: command)?):? {1,2})?(?:\$ )?/u;
const QUOTED = /^([`"'])(.{1,400})\1:?$/;
/** Any other signs, and a word or two between them: `• ip route`, `[INFO] Running: ip route`, `(3/9) ip route`, `[ ip route ]`. */
const OTHERWISE = new RegExp(
  String.raw`^((?=[^a-z]*[^\sa-z])(?:[^\p{L}]|(?<=\d)[TZ]){0,40}?(?:[A-Z][A-Za-z]{1,12}\]?:? {1,3}[^\p{L}/]{0,20}){0,2}(?:(?:running|executing|exec|run|cmd)?(?: ?command)?: {1,3}[\x60'"]?)?)((?:\/(?:usr\/)?s?bin\/)?(?:${PROGRAMS})(?:[\s-][^\n]{0,2000}|\W{0,80})?)$`,
  "u",
);
/** Prompts, and what is known above. */
const PROMPT_SIGN = /^[ \t]{0,8}[#$%>][ \t]{0,4}$/;
const CLOSING: Readonly<Record<string, string>> = { "'": "'", '"': '"', "`": "`", "*": "*", "<": ">", "[": "]", "(": ")", "{": "}", "│": "│" };
/** " on the second node:", " (w1)" */
const PLACE = /^\*{0,2} (?:\([^()`]{1,60}\)|(?:on|from|at|in|of) [^`.,;]{1,60}?)\*{0,2}:?[ \t]{0,4}$/;
/** What stands behind it without a sign that opened it. */
const TRAILING = /[ \t]{1,4}[=#*~─━═│|:<>.…+-]{1,100}[ \t]{0,4}$|[:…]$|\.{3}$|([=#*~-])\1{2,100}$/u;

interface Found {
  readonly line: number;
  readonly signs: string;
  readonly words: string;
  readonly rulers: readonly number[];
}

/** How many different commands must stand in the same signs before these make a heading; one is enough where the text begins with them. */
const HABIT: Readonly<Record<string, number>> = { box: 1, under: 2, "<summary>": 1, file: 1, part: 1, watch: 1 };

/** `### ip route`: two commands are enough, because comments of a script name few that only read. */
const HASHES = /^#{2,6} $/;
/** `===== ip route =====`: no sentence looks so. (ping tells of its statistics between `---`.) */
const BOTH_SIDES = /^([=#*])\1{2,39} \1$/;

/** Finds the headings of a text. Pure, total, linear. */
export function headingsOf(lines: readonly string[]): Headings {
  const found = alone(lines.flatMap((_, i) => headingAt(lines, i) ?? []));
  const known = new Map<string, Set<string>>();
  for (const { signs, words } of found) if (words !== "") known.set(signs, (known.get(signs) ?? new Set()).add(words));
  const first = lines.findIndex((line) => line.trim() !== "");
  const top = found.find(({ line, rulers }) => line === first || rulers[0] === first)?.signs;
  const habit = (signs: string): number => (signs === top ? 1 : (HABIT[signs] ?? (BOTH_SIDES.test(signs) ? 1 : HASHES.test(signs) ? 2 : 3)));
  const headings = found.filter(({ signs }) => (known.get(signs)?.size ?? 0) >= habit(signs));
  const words = new Map(headings.map(({ line, words }) => [line, words]));
  return { words: words.size === 0 ? bareOf(lines) : words, rulers: new Set(headings.flatMap(({ rulers }) => rulers)) };
}

/** Nothing but a program and its words, behind a blank line. */
const BARE = new RegExp(String.raw`^(?:\/(?:usr\/)?s?bin\/)?(?:${PROGRAMS})(?:[\s-][^\n]{0,2000})?$`);

/**
 * The commands of a text without a prompt and without signs: each behind a blank line, what it printed right below or behind another one; or between two outputs
 * without a blank line, where what stands right below is what it prints. None if there is but one.
 */
function bareOf(lines: readonly string[]): ReadonlyMap<number, string> {
  const named = (i: number): string =>
    (lines[i] ?? "").length < 2200 && BARE.test(lines[i] ?? "") && signOf(lines[i] ?? "") === undefined ? commandIn(lines[i] ?? "") : "";
  const below = (i: number): number => ((lines[i + 1] ?? "").trim() === "" ? i + 2 : i + 1);
  const found = lines.flatMap((_, i): [number, string][] => {
    const command = named(i);
    if (command === "") return [];
    const spaced = (lines[i - 1] ?? "").trim() === "" && (lines[below(i)] ?? "").trim() !== "" && named(below(i)) === "";
    return spaced || isPrintedBy(command, lines[i + 1] ?? "") ? [[i, command]] : [];
  });
  const prompts = lines.some((line) => line.length < 500 && isPromptLine(line) && isKnown(withoutPrompt(line)));
  return new Map(prompts || found.length < 2 ? [] : found);
}

/** True for a line that only this program prints: the value of the file under /proc/sys, or what the output's lines are known by. */
function isPrintedBy(command: string, line: string): boolean {
  if (/^(?:sudo )?cat \/proc\/sys\/\S{1,200}$/.test(command)) return /^-?\d{1,12}(?:[ \t]-?\d{1,12}){0,3}[ \t]{0,4}$/.test(line);
  const sign = signOf(line);
  if (sign === undefined) return false;
  const { argv } = commandLine(command);
  const printed = commandLine(sign).argv;
  return argv[0] === printed[0] && (argv[0] !== "cat" || argv[1] === printed[1]);
}

/** One line of output between two headings has lines of signs above and below as well, but those are theirs. */
function alone(found: readonly Found[]): readonly Found[] {
  const taken = new Set(found.flatMap(({ words, rulers }) => (words === "" ? [] : rulers)));
  return found.filter(({ words, rulers }) => {
    if (words !== "") return true;
    if (rulers.some((line) => taken.has(line))) return false;
    for (const line of rulers) taken.add(line);
    return true;
  });
}

function headingAt(lines: readonly string[], line: number): Found | undefined {
  const text = lines[line] ?? "";
  if (text.length > 2200 || text.trim() === "" || RULER.test(text) || RULED.test(text)) return undefined;
  const isRuler = (sign = ""): boolean => RULER.test(sign) || (/^[=-]{4}$/.test(sign) && text.trim().length === 4);
  const [above, below] = [lines[line - 1], lines[line + 1]].map(isRuler);
  const bare = text.trim().replace(/^[#*|│║=-]{1,4} {1,4}|(?: {1,4}[#*|│║=-]{1,4})$/gu, "");
  if (below && above) return { line, signs: "box", words: commandIn(bare), rulers: [line - 1, line + 1] };
  if (below && (lines[line - 1] ?? "").trim() === "") return { line, signs: "under", words: commandIn(bare), rulers: [line + 1] };
  const [, part, id] = PART.exec(text.trim()) ?? [];
  if (part !== undefined)
    return { line, signs: "part", words: id !== undefined || SYSTEM_POD.test(part) ? `kubectl -n kube-system logs ${part}` : (PARTS[part] ?? ""), rulers: [] };
  const [, before, between, behind = ""] = BETWEEN.exec(text) ?? [];
  // `head` and `tail` of files in a folder; those of absolute ones are the parts of one output (`tail /var/log/…`)
  const file = before === "==>" && behind === "<" && FILE.test(between ?? "") && !between?.startsWith("/");
  const signs = before === undefined ? undefined : file ? "file" : `${before} ${behind}`;
  const others = (
    [
      ["[]", BRACKETS],
      // steps to reproduce a fault are numbered as well: a heading has its output right below
      ...(isStep(lines[line + 1] ?? "") ? [] : [["1.", NUMBERED] as const]),
      ["Command:", WORDED],
      [":", COLON],
      ["<summary>", SUMMARY],
      ["watch", WATCHED],
    ] as const
  ).map(([name, pattern]) => [name, pattern.exec(text)?.[1]] as const);
  const [name, words] = [[signs, between] as const, ...others].find(([, inside]) => inside !== undefined) ?? otherwise(text);
  if (name === undefined || words === undefined) return undefined;
  const command = commandIn(words);
  return name === ":" && command === "" && !TYPED.test(words) ? undefined : { line, signs: name, words: command, rulers: [] };
}

/** The signs and the words between them, where they are none of those above. */
function otherwise(text: string): readonly [string, string] | readonly [] {
  const [, before = "", words = ""] = OTHERWISE.exec(text) ?? [];
  if (words === "" || PROMPT_SIGN.test(before) || NUMBERED.test(text)) return [];
  const close = CLOSING[/^[[(│]/u.test(before.trim()) ? (before.trim().at(-1) ?? "") : (before.at(-1) ?? "")];
  // words behind a command in backticks are no part of it: where it ran, or a sentence, which is no heading
  const [code = "", place] = before.endsWith("`") ? (/^([^`]{1,400})`(?=.{0,400}[\p{L}\d])(.{0,400})$/u.exec(words)?.slice(1) ?? []) : [];
  if (place !== undefined) return PLACE.test(place) ? [`${before.replaceAll(/\d+/g, "0")} place`, code.trim()] : [];
  let last = close === undefined ? -1 : words.lastIndexOf(close);
  // `**ip route**`
  while (last > 0 && words[last - 1] === close) last--;
  const end = last > 0 && /^[^\w/]{0,80}$/.test(words.slice(last)) ? last : (TRAILING.exec(words)?.index ?? words.length);
  return [
    `${before.replaceAll(/\d+/g, "0")} ${words
      .slice(end)
      .trim()
      .replaceAll(/(.)\1+/g, "$1")}`,
    words.slice(0, end).trim(),
  ];
}

/** True for what stands below a step that tells what to do: nothing, the next step, a remark (`# Generated by iptables-save …` is none). */
const isStep = (next: string): boolean => next.trim() === "" || NUMBERED.test(next) || (isSentence(next) && signOf(next) === undefined);

/** The command that these words are, the node's or a pod's; "" if they are none that netcheck reads. */
function commandIn(words: string): string {
  // `head -n 500 *` and `tail` name the file
  const named = FILE.test(words.trim()) ? commandNamed(words.trim()).find(isKnown) : undefined;
  const command = named ?? words.trim().replace(BEFORE, "").replace(AFTER, "").replace(QUOTED, "$2").replace(/:$/, "").replace(SAYS, "");
  return /^[a-z/]/.test(command) && !isProse(command) && (isCommand(command) || tellsTime(command) || isLog(command)) ? command : "";
}
