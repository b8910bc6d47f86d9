import { turnsOnMachines } from "../facts/command-loop.ts";
import { tellsTime } from "../facts/date-output.ts";
import { present } from "../facts/present.ts";
import { asPrinted } from "./as-printed.ts";
import { type Draft, type DraftOutput, isCommand, isKnown, onlyLines } from "./bundle.ts";
import { blocksOf } from "./code-blocks.ts";
import { uncommented } from "./commented.ts";
import { printsConfiguration } from "./configuration.ts";
import { ansibleHost } from "./host-prefix.ts";
import { isLog, logSignOf } from "./log-lines.ts";
import { byMachine, type Machine, ofHost, ofRemote } from "./machines.ts";
import { inPod, isPromptEnd, type NamedOutput, namedOutputs } from "./named-outputs.ts";
import { tablesOfOthers } from "./neighbor-tables.ts";
import { plainPrompts } from "./prompts.ts";
import { isSentence } from "./prose.ts";
import { lastLine } from "./tail.ts";
import { signOf, unnamedOutputs } from "./unnamed-outputs.ts";
import { asTheyAre } from "./wishes.ts";

/**
 * What a person copied out of a terminal, an issue or a chat: prompts with commands and what they printed, `kubectl debug` sessions, blocks in Markdown,
 * headings and sentences that name the command. Where nothing names it, the text itself may: iptables-save signs its work, and each line of a log says what it is.
 */

/** What is shown of an output; lines from 1, inclusive. */
interface Section {
  readonly command: string;
  readonly from: number;
  readonly to: number;
  readonly machine: Machine | undefined;
  readonly guessed?: true;
  /** Further stretches of the same output. */
  readonly more?: readonly { readonly from: number; readonly to: number }[];
}

/** What is read together, and what was also seen on other machines, by machine. */
export interface Transcript extends Draft {
  readonly others: readonly Draft[];
}

/**
 * The outputs in a pasted text. Empty if it names no command and shows none. Pure, total, linear.
 * `named`: commands that the file's name may mean, for a text that names none.
 */
export function readTranscript(text: string, file: string, named: readonly string[] = []): Transcript {
  const blocks = uncommented(blocksOf(plainPrompts(asPrinted(text))));
  const { lines, block, edges, unclosed } = blocks;
  const { outputs, commands, machines, target } = namedOutputs(
    blocks,
    named.find((command) => OTHER_BOOT.test(command)) ?? named.find(isKnown) ?? named.find(tellsTime),
  );
  const told = outputs
    .map((output, i) => ({ ...output, to: outputs[i + 1]?.command === output.command ? beforePause(lines, output) : output.to }))
    .map((output) => ({
      ...output,
      to: beforeLog(lines, block[output.from - 1] === 0 ? { ...output, to: beforeSentence(lines, output) } : output),
    }));
  const claims = claimsOf(told, lines);
  const unnamed = unnamedOutputs({
    lines,
    free: (i) => claims.get(i) ?? "all",
    stop: (i) => edges.has(i) || commands.has(i) || isPromptEnd(lines[i] ?? ""),
    block: (i) => block[i] ?? 0,
  }).map((output) => {
    const machine = machines[output.from - 1];
    return { ...output, machine, guessed: true as const, command: machine?.pod === true ? inPod(output.command) : output.command };
  });
  const first = new Set(told.flatMap(({ from }) => [from - 1, from]));
  const shown = lines.map((line, i) => (line.length < 600 && (NOTICE.test(line) || (first.has(i) && LABEL.test(line))) ? "" : line));
  const draft = ({ command, from, to, more = [], machine, guessed }: Section): DraftOutput => ({
    command,
    file,
    ...present({ guessed }),
    ...(several && machine?.name !== undefined ? { machine: machine.name } : {}),
    text: printed(onlyLines(more.length === 0 ? shown : keeping(shown, [{ from, to }, ...more]), from, lastLine(shown, from, more.at(-1)?.to ?? to, command))),
    // the end of a block that nobody closed was cut off; of a log there is always more
    truncated: unclosed !== 0 && block[to - 1] === unclosed && to >= lines.length - 1 && !isLog(command),
  });
  const quoted = asTheyAre([...told.flatMap((output) => byHost(output, lines)), ...joined(unnamed)], lines).toSorted((a, b) => a.from - b.from);
  const sections = pieced(quoted, lines);
  const [together, ...others] = byMachine(sections);
  const several = new Set(together?.outputs.map(({ machine }) => machine?.name)).size > 1;
  const textOf = ({ from, to }: Section): string => lines.slice(from - 1, to).join("\n");
  const elsewhere = (name: string | undefined, own: readonly Section[]): Section[] =>
    name === undefined || others.length === 0 || others.length > MAX_COMPARED ? [] : tablesOfOthers(name, own, sections, textOf);
  return {
    target,
    outputs: [...(together?.outputs ?? []), ...(several ? [] : elsewhere(target, together?.outputs ?? []))].map(draft),
    others: others.map(({ name, outputs: own }) => ({ target: name, outputs: [...own, ...elsewhere(name, own)].map(draft) })),
  };
}

/** Nobody pastes the tables of more machines, and each one's are held against all. */
const MAX_COMPARED = 20;

/** A log of another time than that of the other outputs: known, and left aside. */
const OTHER_BOOT = /^journalctl (?:.{0,200} )?(?:-\w{0,4}b|--boot)[ =]?-\d/;

/** What kubectl, oc and ssh say on the way to a node and back. */
const NOTICE =
  /^(?:Creating debugging pod \S+ with container \S+ on node \S+|If you don't see a command prompt, try pressing enter\.|Starting pod\/\S+ \.\.\.|To use host binaries, run `chroot \/host`.{0,80}|Removing debug pod \.\.\.|Temporary namespace \S+ is .{1,80}|Pod IP: \S+|Defaulted container "[^"]{1,63}" out of: .{1,400}|Connection to \S+ closed\.|Warning: Permanently added .{1,300} to the list of known hosts\.|spawning "nsenter-\S+" on "\S+"|Script (?:started|done) on \d{4}-.{1,200}|\[sudo\] password for [\w.-]{1,64}: ?|Last login: .{1,120})\r?$/;

/** Between a line that names the command and what it printed. */
const LABEL = /^\s{0,8}[*_#>]{0,4} {0,2}(?:output|result|stdout) ?:[*_]{0,4}\s*$/i;

/** What of each line that belongs to a command may be claimed still, by the index of the line. What a command of no interest printed ends with the first blank line: sentences follow. */
function claimsOf(outputs: readonly NamedOutput[], lines: readonly string[]): ReadonlyMap<number, "all" | "logs" | "nothing"> {
  const claims = new Map<number, "all" | "logs" | "nothing">();
  for (const { command, from, to } of outputs) {
    const free = isFree(command);
    const blank = isCommand(command) ? -1 : lines.slice(from - 1, to).findIndex((line) => line.trim() === "");
    for (let i = from - 1; i < (blank === -1 ? to : from - 1 + blank); i++) claims.set(i, free);
  }
  return claims;
}

/** What people write where a command printed nothing. */
const NOTHING = /^\s*[(<[]?(?:empty|no output|nothing|none|no result)[)>\]]?\s*$/i;
const printed = (text: string): string => (text.length < 200 && NOTHING.test(text) ? "\n" : text);

/** The last line of an output outside of blocks: a sentence behind a blank line is no part of it. */
function beforeSentence(lines: readonly string[], { from, to }: NamedOutput): number {
  const isWords = (line: string): boolean => signOf(line) === undefined && !REMARK.test(line) && (isSentence(line) || LEADS.test(line));
  for (let i = from; i < to; i++) if ((lines[i - 1] ?? "").trim() === "" && isWords(lines[i] ?? "")) return i;
  return to;
}

/** "10 s later:", "after a minute", "=== second sample": what people write between two answers to the same question. */
const PAUSE =
  /^\W{0,8}(?:[a-z]{1,12},? ){0,4}(?:(?:\d{1,4}|an?|one|two|five|ten|thirty|few|some) ?(?:s|secs?|seconds?|sekunden|m|mins?|minutes?|minuten?|h|hours?|moments?)(?:,? (?:later|after(?:wards)?|apart|on|später))?|(?:again|later|once more|(?:second|2nd|next) (?:sample|run|time|reading|try)|(?:sample|run) (?:2|two)))\W{0,8}$/i;

/** The last line of an output of counters that was asked for again: what tells how much time went by is no part of it. */
function beforePause(lines: readonly string[], { from, to }: NamedOutput): number {
  const end = lastLine(lines, from, to);
  const last = lines[end - 1] ?? "";
  return end > from && last.length < 80 && PAUSE.test(last) ? end - 1 : to;
}

/** What iptables-save and exporters of metrics say themselves. */
const REMARK = /^# (?:Completed on|Generated by|Warning:|HELP|TYPE) /;

/** What a list of people's own begins with: "As a consequence:". */
const LEADS =
  /^(?:As|So|But|And|Then|Also|After|Before|When|While|Because|Since|Now|However|Therefore|This|These|It|We|I)(?: [\w'(),./-]{1,40}){2,14}:[ \t]{0,4}$/;

/** What lists the state of the network and never a message of a log. */
const NO_LOG = /^(?:sudo )?(?:ss|netstat|ip|conntrack|sysctl|ethtool|ip6?tables(?:-save)?|lsof|nstat|uptime|cat \/proc\/\S+)(?:\s|$)/;
/** Messages of the kernel and lines of the journal begin like no line of such a list. */
const NOTED = new Set(["dmesg", "dmesg -T", "journalctl"]);

/** The last line of an output in front of messages that somebody copied behind it, and of the words above them. */
function beforeLog(lines: readonly string[], { command, from, to }: NamedOutput): number {
  if (!NO_LOG.test(command)) return to;
  for (let i = from; i < to; i++) {
    if (!NOTED.has(logSignOf(lines[i] ?? "") ?? "")) continue;
    let end = i;
    while (end > from && i - end < 3 && /^\s*$|:\s*$/.test(lines[end - 1] ?? "")) end--;
    return end === i ? to : end;
  }
  return to;
}

/** Programs that show what somebody kept: what they printed may be anything. */
const SHOWS = /^(?:sudo )?(?:cat|less|more|head|tail|[ef]?grep|z(?:cat|grep)|awk|sed|vi|vim|nano|sh|bash|\.\/\S+)(?:\s|$)/;

/** What several machines answered to one command of Ansible's, each with the line that names it, and to a loop over them; any other output as it is. */
function byHost(output: NamedOutput, lines: readonly string[]): NamedOutput[] {
  if (/^for .{1,400} ssh /.test(output.command)) {
    const turns = turnsOnMachines(output.command, lines.slice(output.from - 1, output.to));
    const asked = turns.map(({ command, from, to }) => ({ command, from: output.from + from, to: output.from + to - 1, machine: ofRemote(command) }));
    return asked.length > 0 && asked.every(({ machine }) => machine !== undefined) ? asked : [output];
  }
  if (!/^(?:sudo )?ansible /.test(output.command)) return [output];
  const heads = Array.from({ length: output.to - output.from + 1 }, (_, i) => output.from + i).filter(
    (line) => ansibleHost(lines[line - 1] ?? "") !== undefined,
  );
  if (heads.length < 2) return [output];
  return heads.map((from, i) => ({ ...output, from, to: (heads[i + 1] ?? output.to + 1) - 1, machine: ofHost(ansibleHost(lines[from - 1] ?? "") ?? "") }));
}

/** What of a line below this command nothing else claims: all of it, a line of a log at most, or nothing. */
function isFree(command: string): "all" | "logs" | "nothing" {
  if (SHOWS.test(command) && !isKnown(command)) return printsConfiguration(command) ? "nothing" : "all";
  // a log that is known and left aside is of another time: `journalctl -b -1`
  return isCommand(command) || isLog(command) ? "nothing" : "logs";
}

/** Lines of one log, and single rules and flows, are quoted piece by piece; of other outputs a second one is another state of the node, or another node. */
const PIECES = /^(?:iptables -S|conntrack -L)(?: \| …)?$/;

function joined(sections: readonly Section[]): Section[] {
  const all: Section[] = [];
  for (const section of sections) {
    const place = all.findIndex(
      ({ command, machine }) => command === section.command && machine?.name === section.machine?.name && (isLog(command) || PIECES.test(command)),
    );
    const first = all[place];
    if (first === undefined) all.push(section);
    else all[place] = { ...first, more: [...(first.more ?? []), section] };
  }
  return all;
}

/** Lists of all interfaces. */
const LINKS = /^(?:sudo )?ip (?:-(?:d|s|details|statistics|4|6) ){0,3}(?:a|addr|address|l|link)(?: (?:show|list|ls|s))?$/;

/** Such lists, which always begin with `lo`, in one where they have no interface in common: what people quote of one list, and no later look at the node. */
function pieced(sections: readonly Section[], lines: readonly string[]): Section[] {
  const all: Section[] = [];
  const lists = new Map<string, { readonly at: number; readonly seen: Set<string> }>();
  for (const section of sections) {
    const listed = !LINKS.test(section.command)
      ? []
      : lines.slice(section.from - 1, section.to).flatMap((line) => /^(\d{1,9}): ([\w.-]{1,40})[@:]/.exec(line)?.slice(1) ?? []);
    const key = `${section.machine?.name ?? ""} ${section.command}`;
    const list = lists.get(key);
    const first = list === undefined ? undefined : all[list.at];
    if (list !== undefined && first !== undefined && listed.length > 0 && !listed.some((one) => list.seen.has(one))) {
      all[list.at] = { ...first, more: [...(first.more ?? []), section] };
      for (const one of listed) list.seen.add(one);
    } else {
      if (listed.length > 0) lists.set(key, { at: all.length, seen: new Set(listed) });
      all.push(section);
    }
  }
  return all;
}

/** The lines with those blank that belong to none of the stretches. */
function keeping(lines: readonly string[], stretches: readonly { readonly from: number; readonly to: number }[]): string[] {
  const kept = lines.map(() => "");
  for (const { from, to } of stretches) for (let i = from - 1; i < to; i++) kept[i] = lines[i] ?? "";
  return kept;
}
