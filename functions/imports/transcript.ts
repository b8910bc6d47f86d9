import { commandLine, isPromptLine, withoutPrompt } from "../facts/command.ts";
import { printsNothing } from "../facts/several-commands.ts";
import { type Draft, type DraftOutput, isKnown, onlyLines } from "./bundle.ts";
import { blocksOf } from "./code-blocks.ts";
import { withoutColors } from "./colors.ts";
import { logSignOf } from "./log-lines.ts";
import { byMachine, type Machine, ofLabel, ofPrompt, ofRemote } from "./machines.ts";
import { isProse, isSentence } from "./prose.ts";
import { signOf, unnamedOutputs } from "./unnamed-outputs.ts";

/**
 * What a person copied out of a terminal, an issue or a chat: prompts with commands and what they printed, `kubectl debug` sessions, blocks in Markdown,
 * headings and sentences that name the command. Where nothing names it, the text itself may: iptables-save signs its work, and each line of a log says what it is.
 */

/** A prompt in front of a command; the first group is the host, if it names one. */
const PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@([\w.*-]{1,64})[^\]\n]{0,80}\]|[\w.-]{1,64}@([\w.*-]{1,64})(?::[^\s#$%]{0,80})?|([\w.*-]{1,64}):[~/][^\s#$%>]{0,80}|(?:ba|k|z|da)?sh-[\d.]{1,8}|(?:\/[\w.-]{0,40}){1,6}|\([\w.-]{1,40}\))[ \t]{0,4}[#$%>][ \t]{1,8}(?=\S)/;
/** What stands there when the last command has ended. */
const EMPTY_PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@[\w.*-]{1,64}[^\]\n]{0,80}\]|[\w.-]{1,64}@[\w.*-]{1,64}(?::[^\s#$%]{0,80})?|(?:ba)?sh-[\d.]{1,8})[ \t]{0,4}[#$%][ \t]{0,8}$/;
/** A line that names the command: `=== ip route ===`, `*** Output of conntrack -S ***`, `## iptables -L`, `Output of "ip rule":`, `+ ip route`. */
const HEADING =
  /^[ \t]{0,4}(?:[=*#+>-]{1,12}[ \t]{0,4})?(?:[Oo]utput of:? {0,2}|[Cc]ommand:? {0,2}|[Rr]unning:? {0,2})?[`"']?([a-z][^`"'\n]{1,300}?)[`"']?:?[ \t]{0,4}(?:[=*#-]{2,40})?:?[ \t]{0,4}$/;
/** No sentence has a pipe into such a program: `netstat -na | awk '{print $6}' | sort | uniq -c`. */
const PIPED = /^[ \t]{0,4}[a-z][\w./-]{1,40} [^|]{1,400}\| {0,2}(?:[ef]?grep|awk|sort|uniq|wc|head|tail|sed|cut|less|jq)\b/;
/** A shell inside of something else: what follows is not the node's until `exit`. */
const SHELL = /(?:^|[\s/])(?:ba|da|z|a)?sh(?:\s+-[il]+)?$/;
const NODE = /(?:\bdebug\s+(?:-\S+\s+)*nodes?\/|\bdebugging pod \S+ with container \S+ on node )([\w.-]{0,252}\w)/;

interface Section {
  readonly command: string;
  /** 1-based line of the first line that it printed. */
  readonly from: number;
  readonly to: number;
  readonly machine?: Machine | undefined;
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
  const { lines, block, edges, unclosed } = blocksOf(withoutColors(text.replaceAll("\r\n", "\n")).split("\n"));
  const sections: Section[] = [];
  const commands = new Set<number>();
  let target: string | undefined;
  const meant = named.find(isKnown);
  // a file that is named after a command is its output from the first line on, unless a prompt says otherwise
  let open: { command: string; from: number; machine?: Machine | undefined } | undefined = meant === undefined ? undefined : { command: meant, from: 1 };
  // the block whose first line is a command without a prompt: further ones have none either
  let bare = 0;
  // how deep in shells of other namespaces
  const shells: boolean[] = [];
  const heads = promptHeads(lines);
  let machine: Machine | undefined;
  const machines: (Machine | undefined)[] = [];
  const close = (end: number): void => {
    const to = heads.has(lines[end - 1] ?? "") ? end - 1 : end;
    if (open !== undefined && (to >= open.from || printsNothing(open.command))) sections.push({ ...open, to });
    open = undefined;
  };
  const isBlank = (from: number, to: number): boolean => lines.slice(from, to).every((line) => line.trim() === "");
  lines.forEach((line, i) => {
    if (block[i] === 0 && !isIndented(lines, block, i + 1)) machine = ofLabel(line) ?? machine;
    machines[i] = machine;
    if (line.length > 4000) return;
    const node = NODE.exec(line)?.[1];
    if (node !== undefined) target = node;
    const begins = block[i] !== 0 && block[i] !== block[i - 1];
    if (begins || (block[i] === 0 && (block[i - 1] ?? 0) !== 0)) {
      // a heading or a prompt right above a block names it
      const above = begins && open !== undefined && isBlank(open.from - 1, i) ? open : undefined;
      if (above === undefined) close(i);
      const command = above?.command ?? (begins ? announcedBy(lines.slice(Math.max(0, i - 3), i), firstOf(lines, block, i)) : undefined);
      if (command !== undefined) open = { command: machine?.pod === true ? inPod(command) : command, from: edges.has(i) ? i + 2 : i + 1, machine };
    }
    if (edges.has(i)) return;
    if (EMPTY_PROMPT.test(line)) {
      close(i);
      return;
    }
    const prompt = PROMPT.exec(line);
    const first = block[i] !== 0 && (begins || edges.has(i - 1));
    const typed =
      prompt !== null
        ? unmarked(line.slice(prompt[0].length))
        : isPromptLine(line)
          ? plausible(unmarked(withoutPrompt(line)))
          : (headingOf(line, open) ?? ((first || (bare !== 0 && block[i] === bare) || PIPED.test(line)) && isTyped(line.trim()) ? line.trim() : undefined));
    if (typed === undefined) return;
    if (first && prompt === null && typed === line.trim()) bare = block[i] ?? 0;
    commands.add(i);
    close(i);
    target ??= prompt?.[1] ?? prompt?.[2] ?? prompt?.[3];
    const host = prompt?.[1] ?? prompt?.[2] ?? prompt?.[3];
    if (host !== undefined) machine = ofPrompt(host);
    const inner = commandLine(typed);
    if (typed === "exit" || typed === "logout") shells.pop();
    else if (SHELL.test(typed) || /^(?:sudo )?chroot \S+$/.test(typed))
      shells.push(inner.foreign || /^(?:kubectl|docker|crictl|podman|nerdctl)\s+exec\b|\bnetns exec\b/.test(typed));
    else open = { command: shells.includes(true) || machine?.pod === true ? inPod(typed) : typed, from: i + 2, machine: ofRemote(typed) ?? machine };
  });
  close(lines.length);
  const told = sections.map((section) => (block[section.from - 1] === 0 ? { ...section, to: beforeSentence(lines, section) } : section));
  const claims = new Map<number, string>();
  for (const { command, from, to } of told) {
    // what a command of no interest printed ends with the first blank line; sentences follow
    const end = isKnown(command) || commandLine(command).foreign ? to : from - 1 + lines.slice(from - 1, to).findIndex((line) => line.trim() === "");
    for (let i = from - 1; i < (end < from - 1 ? to : end); i++) claims.set(i, command);
  }
  const unnamed = unnamedOutputs({
    lines,
    free: (i) => isFree(claims.get(i)),
    stop: (i) => edges.has(i) || commands.has(i) || /^[ \t]{0,8}\$ \S/.test(lines[i] ?? "") || EMPTY_PROMPT.test(lines[i] ?? ""),
    block: (i) => block[i] ?? 0,
  });
  const found = unnamed.map((section) => {
    const at = machines[section.from - 1];
    return { ...section, machine: at, command: at?.pod === true ? inPod(section.command) : section.command };
  });
  const output = ({ command, from, to, more = [] }: Section): DraftOutput => ({
    command,
    file,
    text: printed(onlyLines(more.length === 0 ? lines : keeping(lines, [{ from, to }, ...more]), from, withoutTail(lines, from, more.at(-1)?.to ?? to))),
    // the end of a block that nobody closed was cut off; of a log there is always more
    truncated: unclosed !== 0 && block[to - 1] === unclosed && to >= lines.length - 1 && isListing(command),
  });
  const [together, ...others] = byMachine([...told, ...joined(found)].sort((a, b) => a.from - b.from));
  return {
    target,
    outputs: together?.outputs.map(output) ?? [],
    others: others.map(({ name, outputs }) => ({ target: name, outputs: outputs.map(output) })),
  };
}

/** True for a line that belongs to the one above it, as the names do below `Containers:` of `kubectl describe`. */
function isIndented(lines: readonly string[], block: readonly number[], i: number): boolean {
  const line = lines[i] ?? "";
  return block[i] === 0 && /^[ \t]+\S/.test(line) && signOf(line.trim()) === undefined && !isPromptLine(line);
}

/** A command that another network namespace than the node's answered. */
const inPod = (command: string): string =>
  commandLine(command).foreign || LOGS.test(command) || /^(?:kubectl|oc|crictl|docker) /.test(command) ? command : `nsenter -t 0 -n ${command}`;

/**
 * The upper lines of prompts of two lines (`user in ~/work` above `$ ip rule`): the same above several prompts, and the first time with nothing before it that it
 * could be the end of.
 */
function promptHeads(lines: readonly string[]): ReadonlySet<string> {
  const seen = new Map<string, number>();
  for (let i = 0; i + 1 < lines.length; i++) {
    const line = lines[i] ?? "";
    if (line.trim() === "" || line.length > 200 || !/^[ \t]{0,8}[$#%❯➜λ] \S/.test(lines[i + 1] ?? "")) continue;
    const known = seen.get(line);
    if (known !== undefined || ((lines[i - 1] ?? "").trim() === "" && signOf(line) === undefined)) seen.set(line, (known ?? 0) + 1);
  }
  return new Set([...seen].flatMap(([line, count]) => (count > 1 ? [line] : [])));
}

/** `# ` begins comments, too, and `$ ` prices: behind a bare sign only a command that netcheck reads, or that a person types all the time, counts. */
const TYPED =
  /^(?:sudo |cd |ls\b|cat |kubectl |docker |crictl |systemctl |journalctl |exit$|chroot |nsenter |ip |ping |curl |tcpdump |grep |echo |uname\b|date$|dmesg\b)/;
const plausible = (command: string): string | undefined => (!isProse(command) && (isKnown(command) || TYPED.test(command)) ? command : undefined);

/** Only a heading whose words are a command of ours: prose is full of colons. One word is not enough, except between signs. */
function headingOf(line: string, open: unknown): string | undefined {
  const match = HEADING.exec(line);
  const command = match?.[1]?.trim();
  if (command === undefined || !/^[a-z]/.test(command)) return undefined;
  const framed = /^[ \t]{0,4}[=*#+>`-]/.test(line) || /[Oo]utput of|[Cc]ommand|[Rr]unning/.test(line);
  if (!framed && (open !== undefined || !command.includes(" "))) return undefined;
  return isKnown(command) && !isProse(command) ? command : undefined;
}

function withoutTail(lines: readonly string[], from: number, to: number): number {
  let end = to;
  while (end > from && (lines[end - 1] ?? "").trim() === "") end--;
  return end;
}

/** What people write where a command printed nothing. */
const NOTHING = /^\s*[(<[]?(?:empty|no output|nothing|none|no result)[)>\]]?\s*$/i;
const printed = (text: string): string => (text.length < 200 && NOTHING.test(text) ? "\n" : text);

/** The last line of an output outside of blocks: a sentence behind a blank line is no part of it. */
function beforeSentence(lines: readonly string[], { from, to }: Section): number {
  for (let i = from; i < to; i++) if ((lines[i - 1] ?? "").trim() === "" && signOf(lines[i] ?? "") === undefined && isSentence(lines[i] ?? "")) return i;
  return to;
}

/** Programs that show what somebody kept: what they printed may be anything. */
const SHOWS = /^(?:sudo )?(?:cat|less|more|head|tail|[ef]?grep|z(?:cat|grep)|awk|sed|vi|vim|nano|sh|bash|\.\/\S+)(?:\s|$)/;

/** What of a line below this command nothing else claims: all of it, a line of a log at most, or nothing. */
function isFree(command: string | undefined): "all" | "logs" | "nothing" {
  if (command === undefined || (SHOWS.test(command) && !isKnown(command))) return "all";
  return isKnown(command) || commandLine(command).foreign ? "nothing" : "logs";
}

const LOGS = /^(?:dmesg|journalctl|stern|kubectl (?:logs|describe|get events)|tail \/var\/log\/)/;
const isListing = (command: string): boolean => !LOGS.test(command);

/** Lines of one log, and single rules and flows, are quoted piece by piece; of other outputs a second one is another state of the node, or another node. */
const PIECES = /^(?:iptables -S|conntrack -L)(?: \| …)?$/;

function joined(sections: readonly Section[]): Section[] {
  const all: Section[] = [];
  for (const section of sections) {
    const place = all.findIndex(
      ({ command, machine }) => command === section.command && machine?.name === section.machine?.name && (LOGS.test(command) || PIECES.test(command)),
    );
    const first = all[place];
    if (first === undefined) all.push(section);
    else all[place] = { ...first, more: [...(first.more ?? []), section] };
  }
  return all;
}

/** The lines with those blank that belong to none of the stretches. */
function keeping(lines: readonly string[], stretches: readonly { readonly from: number; readonly to: number }[]): string[] {
  const kept = lines.map(() => "");
  for (const { from, to } of stretches) for (let i = from - 1; i < to; i++) kept[i] = lines[i] ?? "";
  return kept;
}

/** The first line of the block at this index that holds something. */
function firstOf(lines: readonly string[], block: readonly number[], start: number): string {
  let i = start;
  while (block[i] === block[start] && (lines[i] ?? "").trim() === "") i++;
  return block[i] === block[start] ? (lines[i] ?? "") : "";
}

/** A file that is named in a sentence: `/etc/resolv.conf`, `10-calico.conflist`. */
const PATH = /(?:^|[\s`"'(])(\/(?:etc|proc|sys|run|usr\/lib|var\/l(?:og|ib))\/[\w./@-]{1,200}\w)/g;
const CNI_FILE = /(?:^|[\s`"'(])(\d{1,4}-[\w.-]{1,60}\.conf(?:list)?)/;

/**
 * The command that the last sentence above a block names in backticks, or the file whose text it is. `first`, the block's first line, may tell that it is something
 * else.
 */
function announcedBy(above: readonly string[], first: string): string | undefined {
  const sentence = above.findLast((line) => line.trim() !== "") ?? "";
  const codes = [...sentence.matchAll(/`([^`\n]{2,300})`/g)].map(([, code = ""]) => code.trim());
  const typed = codes.findLast((code) => /^[a-z/]/.test(code) && (isKnown(code) || commandLine(code).foreign));
  const path = [...sentence.matchAll(PATH)].map(([, file = ""]) => `cat ${file}`).findLast(isKnown);
  const [, conflist] = CNI_FILE.exec(sentence) ?? [];
  const command = typed ?? (conflist === undefined ? path : `cat /etc/cni/net.d/${conflist}`);
  const signed = signOf(first) ?? logSignOf(first);
  const program = (line: string): string => commandLine(line).argv[0] ?? "";
  return command !== undefined && (signed === undefined || program(signed) === program(command)) ? command : undefined;
}

/** A command as it stands in bold: `**ip route**:`. */
const unmarked = (command: string): string => command.trim().replace(/^\*\*(.{1,400}?)\*\*:?$/, "$1");

/** True for the first line of a block that is a command of ours, without a prompt. */
const isTyped = (line: string): boolean => /^[a-z/]/.test(line) && signOf(line) === undefined && !isProse(line) && isKnown(line);
