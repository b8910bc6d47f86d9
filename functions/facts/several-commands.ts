import type { Output } from "./capture.ts";
import { type CommandLine, commandLine, substitutionEnd, words } from "./command.ts";
import { type AnyFact, MAX_UNPARSED, type Parsed, type View } from "./fact.ts";
import { facts } from "./index.ts";
import { unadorned } from "./paste.ts";
import { isTimeLine } from "./sampled.ts";
import { folderAfter, inFolder } from "./working-folder.ts";

/** `ip rule; ip route; ip -br link` on one line: people save themselves the Enter, and what was printed stands in one piece. */

/** Words that a shell does not run as they stand. */
const COMPOUND = /(?:^|[;&]\s{0,40})(?:(?:for|while|until|if|case|select|function)\s|[{(])/;
/** What hands a line in quotes behind it to a shell. */
const SHELL = /sh\s{1,8}-[a-z]{0,4}c\s{1,8}$|(?:^|\s)(?:ssh|watch|pdsh|clush)\s/;
/** More are not told apart: each one more doubles the ways to divide the lines. */
const MAX_COMMANDS = 6;
/** Longer outputs are not divided, for the same reason; nobody pastes them. */
const MAX_LINES = 10_000;

/**
 * The commands of a line that runs one after the other (`a; b && c`, also inside of `sh -c '…'` and `ssh node '…'`), each as it would be typed alone. The
 * line itself if there is one, or if it is a loop or a condition.
 */
export function commandsOf(line: string): readonly string[] {
  if (!/[;&]/.test(line)) return [line];
  const quoted = inQuotes(line);
  if (quoted !== undefined) return commandsOf(quoted.inner).map((command) => `${quoted.before}${quoted.quote}${command}${quoted.quote}`);
  return COMPOUND.test(line) ? [line] : joined(whereTyped(parted(line)));
}

/** The parts of a line between the signs that end a command. */
function parted(line: string): readonly string[] {
  const commands: string[] = [];
  let quote = "";
  let start = 0;
  for (let i = 0; i < line.length; i++) {
    const char = line[i] as string;
    if (quote !== "") {
      if (char === quote) quote = "";
    } else if (char === "'" || char === '"') quote = char;
    else if (char === "\\") i++;
    else if (char === "$" && line[i + 1] === "(") i = substitutionEnd(line, i) - 1;
    else if (char === ";" || (char === "&" && line[i + 1] === "&")) {
      commands.push(line.slice(start, i));
      if (char === "&") i++;
      start = i + 1;
    }
  }
  commands.push(line.slice(start));
  return commands.map((command) => command.trim()).filter((command) => command !== "");
}

/** Behind `cd /etc/cni/net.d` the files of that folder are meant. */
function whereTyped(commands: readonly string[]): readonly string[] {
  let folder: string | undefined;
  const all = commands.map((command) => {
    folder = folderAfter(command, folder);
    return folder === undefined ? command : inFolder(command, folder);
  });
  return all.every((command, i) => command === commands[i]) ? commands : all.filter((command) => !/^cd\s/.test(command));
}

/** `ssh node1 'a; b'`: what stands before the quotes, and in them. */
function inQuotes(line: string): { readonly before: string; readonly quote: string; readonly inner: string } | undefined {
  const end = line.trimEnd().length - 1;
  const quote = line[end] ?? "";
  const start = quote === "'" || quote === '"' ? line.indexOf(quote) : end;
  const before = line.slice(0, start);
  const inner = line.slice(start + 1, end);
  return start === end || inner.includes(quote) || !SHELL.test(before) ? undefined : { before, quote, inner };
}

/** One value each: `cat /proc/sys/a; cat /proc/sys/b` prints what `cat /proc/sys/a /proc/sys/b` prints. */
function joined(commands: readonly string[]): readonly string[] {
  const all: string[] = [];
  for (const command of commands) {
    const [, values] = VALUES.exec(command) ?? [];
    const last = values === undefined ? undefined : all.at(-1);
    if (last !== undefined && VALUES.test(last)) all[all.length - 1] = `${last} ${values}`;
    else all.push(command);
  }
  return all;
}
const VALUES = /^(?:sudo )?cat ((?:\/(?:proc\/sys|sys)\/[\w.*{},/-]{1,200} ?){1,20})$/;

/** What stands in front of a command that a pod's network namespace answered, where nothing else says so (imports/named-outputs.ts). */
const IN_POD = "nsenter -t 0 -n ";

/**
 * What a person's line of several commands printed, as an output of each of them; lines keep their numbers. The output itself if there is one command, or nobody
 * can tell which printed what.
 */
export function eachCommand(output: Output): readonly Output[] {
  if (output.argv !== undefined) {
    const line = scriptOf(output.argv);
    const parts = line === undefined ? [] : eachCommand({ ...output, argv: undefined, command: line });
    return parts.length > 1 ? parts : [output];
  }
  // a loop that was typed in a pod: so is each of its turns
  if (output.command.startsWith(`${IN_POD}for `)) {
    const inside = eachCommand({ ...output, command: output.command.slice(IN_POD.length) });
    return inside.length === 1 ? [output] : inside.map((turn) => (commandLine(turn.command).foreign ? turn : { ...turn, command: `${IN_POD}${turn.command}` }));
  }
  const turns = turnsOf(output);
  if (turns !== undefined) return turns.flatMap(eachCommand);
  const tables = tablesOf(output);
  if (tables !== undefined) return tables.flatMap(eachCommand);
  const told = toldApart(output.command);
  if (told !== undefined) return [{ ...output, command: told }];
  const commands = commandsOf(output.command);
  const silent = commands.length > 1 ? commands.filter(printsNothing) : [];
  if (silent.length > 0) {
    const rest = commands.filter((command) => !silent.includes(command));
    const done = FAILED.test(output.text) ? [] : silent.map((command) => ({ ...output, command, text: "" }));
    return rest.length === 0 ? done : [...done, ...eachCommand({ ...output, command: rest.join("; ") })];
  }
  const [command = output.command, ...others] = commands;
  if (others.length === 0) return command === output.command ? [output] : [{ ...output, command }];
  const lines = withoutTime(commands, withoutEchoes(output.command, output.text.split("\n")));
  const shares = sharesOf(output.command, lines) ?? [{ command: output.command, from: 0, to: lines.length }];
  return shares.map(({ from, to, ...share }, i) => ({
    ...output,
    ...share,
    text: `${"\n".repeat(from)}${lines.slice(from, to).join("\n")}${to < lines.length ? "\n" : ""}`,
    truncated: output.truncated && i === shares.length - 1,
  }));
}

/** The line that a person would type for the words of a command which hands several ones to a shell (`["nsenter", "-t", "1", "-n", "sh", "-c", "ip rule; ip route"]`). */
function scriptOf(argv: readonly string[]): string | undefined {
  const [program = "", option = "", script = ""] = argv.slice(-3);
  const before = argv.slice(0, -1);
  if (!/^(?:\S{0,40}\/)?(?:ba|da|a|z|k)?sh$/.test(program) || !/^-[a-z]{0,3}c$/.test(option) || !/[;&]/.test(script)) return undefined;
  const quote = script.includes("'") ? '"' : "'";
  return script.includes(quote) || !before.every((word) => /^[\w@%+=:,./-]{1,200}$/.test(word)) ? undefined : `${before.join(" ")} ${quote}${script}${quote}`;
}

/** True of what only restarts something: what stands below it was printed by the others. */
export const printsNothing = (command: string): boolean => {
  const readers = readersOf(command);
  return readers.length > 0 && readers.every(({ fact }) => fact.id === "manual-restart");
};
/** Except what systemctl says of a failure. */
const FAILED = /^(?:Failed to (?:re|try-re|force-re)|Job for \S{1,200} failed|Unit \S{1,200} not (?:found|loaded))/m;

/** `for i in eth0 eth1; do echo "== $i"; ethtool -S $i; done` */
const FOR =
  /^\s{0,8}for\s{1,8}(\w{1,40})\s{1,8}in\s{1,8}([^;\n]{1,2000}?)\s{0,8}[;\n]\s{0,8}do\s{1,8}(.{1,2000}?)\s{0,8}[;\n]\s{0,8}done(?:\s{0,8}(?:2>&1|2>\/dev\/null|\|\s{0,4}tee(?:\s-a)?\s[\w./-]{1,100}|;))*\s{0,8}$/s;
/** The words of a loop that are a pattern or another command's output: which they were is told by the headings alone. */
const EXPANDED = /[$`*?[{]/;
/** `echo "$i: $(cat /sys/class/net/$i/mtu)"`: the same as the two one behind the other. */
const ECHOED = /\becho\s{1,4}"([^"`()]{1,100})\$\(([^()"`]{1,200})\)"/g;
/** A loop over more is no person's. */
const MAX_TURNS = 200;

/** What a turn of a loop runs, of one over names some word in the place of the variable. Empty if the command is no loop that can be divided. */
export function commandsOfTurn(line: string): readonly string[] {
  const listed = listedAgain(line);
  if (listed !== undefined) return [listed];
  const { before, loop, behind } = loopIn(inQuotes(line)?.inner ?? line);
  const [, variable, , body = ""] = FOR.exec(loop) ?? [];
  if (variable === undefined) return [];
  const turn = commandsOf(body.replaceAll(/\n/g, ";")).map((command) => command.replaceAll(usesOf(variable), () => TURN));
  return [...commandsOf(before), ...turn, ...commandsOf(behind)];
}

/** Where a loop begins and ends. */
const KEYWORD = /(?<=^\s{0,8}|[;&\n]\s{0,8})(?:for\s|done(?=[\s;&|]|$))/g;

/** The one loop of a line, and what stands in front of it and behind it: `ip rule; for t in 100 200; do echo "$t:"; ip route show table $t; done; ip neigh`. */
function loopIn(line: string): { readonly before: string; readonly loop: string; readonly behind: string } {
  const [first, last, ...more] = line.length > 4000 ? [] : [...line.matchAll(KEYWORD)];
  const [, behind = ""] = /^(?:;|&&)\s*(\S.*)$/s.exec(line.slice((last?.index ?? 0) + 4).trimStart()) ?? [];
  if (first?.[0].startsWith("for") !== true || last?.[0] !== "done" || more.length > 0) return { before: "", loop: line, behind: "" };
  return { before: line.slice(0, first.index).replace(/[;&\s]+$/, ""), loop: line.slice(first.index, behind === "" ? undefined : last.index + 4), behind };
}

const usesOf = (variable: string): RegExp => new RegExp(`\\$(?:${variable}\\b|\\{${variable}\\})`, "g");

/**
 * What a loop over names printed, as an output of each turn with the name in the place of the variable, where an `echo` in the loop says which turn it is; of a loop that asks the
 * same again the first and the last turn. Undefined if the command is no such loop, or the headings are not there: which answer is whose nobody knows then.
 */
function turnsOf(output: Output): readonly Output[] | undefined {
  const quoted = inQuotes(output.command);
  if (quoted !== undefined) {
    const { before, quote } = quoted;
    return turnsOf({ ...output, command: quoted.inner })?.map((turn) => ({ ...turn, command: `${before}${quote}${turn.command}${quote}` }));
  }
  const lines = output.text.split("\n");
  const { before, loop, behind } = loopIn(output.command);
  const divided = divideLoop(loop, lines);
  if (divided === undefined) return undefined;
  const { turns, rest, uses } = divided;
  if (turns.some(({ name }) => rest.some((command) => isOfOthers(command, uses, name)))) return undefined;
  // `for i in 1 2; do echo run $i; nstat -asz; sleep 10; done`: the same again
  const again = !rest.some((command) => command.search(uses) !== -1);
  if (again && before + behind !== "") return undefined;
  const begin = turns[0]?.from ?? 0;
  const head = before === "" ? [] : [{ ...output, command: before, text: `${lines.slice(0, begin).join("\n")}\n`, truncated: false }];
  const answers = turns.flatMap(({ command, from, to, first }, i) => {
    const last = i === turns.length - 1;
    if (again && i !== 0 && !last) return [];
    const text = `${"\n".repeat(from)}${[first, ...lines.slice(from + 1, to)].join("\n")}${to < lines.length ? "\n" : ""}`;
    const asked = last && behind !== "" ? `${command}; ${behind}` : command;
    return [{ ...output, command: asked, text, truncated: output.truncated && last, ...(again ? { sample: i === 0 ? 1 : 2 } : {}) }];
  });
  return [...head, ...answers];
}

/**
 * The command of a loop, or behind `| xargs`, whose answers tell themselves whose they are: together they are what it prints for all of them at once. Undefined of
 * another one, and where something else is printed in the loop.
 */
function toldApart(line: string): string | undefined {
  const handed = HANDED.exec(line)?.[1];
  if (handed !== undefined) return INSPECTS.test(handed) ? handed : undefined;
  const [, variable, , body = ""] = FOR.exec(line) ?? [];
  if (variable === undefined) return undefined;
  const [command, ...others] = commandsOf(body);
  const named = command !== undefined && others.length === 0 && (INSPECTS.test(command) || LINKS.test(command)) && command.search(usesOf(variable)) !== -1;
  return named ? command : undefined;
}
/** `docker ps -q | xargs docker inspect -f '{{.Name}} …'` */
const HANDED = /^[^|;&]{1,400}\|\s{0,4}(?:sudo )?xargs (?:-\S{1,12} (?:\d{1,3} )?){0,4}((?:sudo )?docker .{1,1000})$/;
/** `docker inspect -f '{{.Name}} …' $c` */
const INSPECTS = /^(?:sudo )?docker (?:container )?inspect .{0,400}\{\{ ?\.Name ?\}\}/;
/** `ip -br addr show $i`, `ip -o link show dev $i` */
const LINKS = /^(?:sudo )?ip (?:-\S{1,8} ){0,4}(?:a|addr|address|l|link) (?:s|sh|show|ls|list) (?:dev )?["']?\$/;

/** What each turn of a loop over machines printed (`for h in node1 node2; do echo "== $h"; ssh $h "ip rule; ip neigh"; done`): a command with the name in it, and its lines, 0-based, `to` exclusive. */
export function turnsOnMachines(command: string, lines: readonly string[]): readonly Share[] {
  const { turns = [], rest = [] } = divideLoop(command, lines) ?? {};
  return rest.length === 1 ? turns.map((turn) => ({ command: turn.command, from: turn.from + 1, to: turn.to })) : [];
}

interface Turn extends Share {
  readonly name: string;
  /** What stands behind the heading in its line. */
  readonly first: string;
}

/** A loop by its headings. Undefined if the command is none, or they are not there. */
function divideLoop(
  loop: string,
  lines: readonly string[],
): { readonly turns: readonly Turn[]; readonly rest: readonly string[]; readonly uses: RegExp } | undefined {
  const [, variable, among = "", body = ""] = FOR.exec(loop) ?? [];
  if (variable === undefined) return undefined;
  const flat = body.replaceAll(/\n/g, ";").replaceAll(ECHOED, 'echo -n "$1"; $2');
  // a heading in front of `ssh $h "a; b"` is not the far end's
  const commands = /[;&]/.test(inQuotes(flat)?.before ?? "") ? parted(flat) : commandsOf(flat);
  const uses = usesOf(variable);
  const found = commands.map((command) => headingOf(command, uses)).find((pattern) => pattern !== undefined);
  // without one, the name may stand in front of each answer
  const before = found === undefined ? commands.map((command) => prefixOf(command, uses)).find((pattern) => pattern !== undefined) : undefined;
  const heading = found ?? before;
  const rest = commands.filter((command) => !(words(command)[0] === "echo" || (before !== undefined && words(command)[0] === "printf")));
  if (heading === undefined || rest.length === 0) return undefined;
  const named = EXPANDED.test(among) ? undefined : new Set(words(among));
  const starts = lines.flatMap((line, at) => {
    const name = heading.exec(line.trim())?.[1];
    return name === undefined || !(named?.has(name) ?? (!heading.source.startsWith("^(") || /[A-Za-z]/.test(name))) ? [] : [{ name, at }];
  });
  if (starts.length === 0 || starts.length > MAX_TURNS || new Set(starts.map(({ name }) => name)).size < starts.length) return undefined;
  const turns = starts.map(({ name, at }, i) => ({
    name,
    command: rest.map((one) => one.replaceAll(uses, () => name)).join("; "),
    from: at,
    to: starts[i + 1]?.at ?? lines.length,
    first: before === undefined ? "" : (lines[at] as string).trim().replace(before, ""),
  }));
  return { turns, rest, uses };
}

/** `while sleep 5; do ss -ltn; done`, `for i in 1 2 3; do date; netstat -ltn; sleep 1; done` */
const AGAIN = /^\s{0,8}(?:while|until|for)\s((?:[^$`]|\$\(seq(?: \d{1,4}){1,2}\)){1,200}?)[;\n]\s{0,8}do\s{1,8}([^$`]{1,500}?)\s{0,8}[;\n]\s{0,8}done\s{0,8}$/s;
const WAITS: ReadonlySet<string | undefined> = new Set(["sleep", "date", "echo", "clear", "true", ":"]);
/** The first line of a table of sockets: a table has one. */
const TABLE = /^(?:(?:Netid +)?State +Recv-Q +Send-Q |Active Internet connections )/;

/** What lists rules, with their counters. */
const RULES = /^(?:ip6?tables(?:-nft|-legacy)?(?:-save)?|nft)$/;

/** The one command of a loop that asks for the sockets, or for rules, again and again, or of a line that asks for the same rules more than once. */
function listedAgain(line: string): string | undefined {
  const typed = askedAgain(line);
  if (typed.length > 1) return typed[0];
  const [command, ...others] = commandsOf(AGAIN.exec(line)?.[2] ?? "").filter((one) => !WAITS.has(words(one)[0]));
  if (command === undefined || others.length > 0) return undefined;
  return /^(?:sudo )?(?:ss|netstat) [^|]*$/.test(command) || RULES.test(commandLine(command).argv[0] ?? "") ? command : undefined;
}

/** `iptables -nvxL FORWARD 1; sleep 15; iptables -nvxL FORWARD 1`: the command, as often as it was typed. Empty of a line that asks for something else, too, or once. */
function askedAgain(line: string): readonly string[] {
  if (!/[;&]/.test(line)) return [];
  const typed = commandsOf(line).filter((one) => !WAITS.has(words(one)[0]));
  const same = typed.length > 1 && typed.every((one) => one === typed[0]);
  return same && RULES.test(commandLine(typed[0] as string).argv[0] ?? "") ? typed : [];
}

/** What such a loop printed: the first answer and the last, as two samples. Undefined if there is one, or if nobody can tell where each begins. */
function tablesOf(output: Output): readonly Output[] | undefined {
  const command = listedAgain(output.command);
  if (command === undefined) return undefined;
  const lines = output.text.split("\n");
  const tables = lines.flatMap((line, at) => (TABLE.test(line) ? [at] : []));
  const isAnswer = tables.length > 0 ? isRow : isRuleLine;
  const starts = tables.length > 0 ? tables : answersOf(lines, output.command);
  const [first, second] = starts;
  const last = starts.at(-1);
  if (first === undefined || second === undefined || last === undefined) return undefined;
  // what stands between two answers is the time, or what an `echo` printed
  const part = (from: number, to: number) => `${"\n".repeat(from)}${lines.slice(from, to).filter(isAnswer).join("\n")}\n`;
  // it is left with Ctrl-C, which may cut the last one
  const cut = output.truncated || lines.slice(last).filter(isAnswer).length < lines.slice(first, second).filter(isAnswer).length;
  return [
    { ...output, command, text: part(first, second), truncated: false, sample: 1 },
    { ...output, command, text: part(last, lines.length), truncated: cut, sample: 2 },
  ];
}

/** Where the answers of a loop over rules begin: each with the same line, but for its counters, and all are as long. What a search left may begin so twice, so that the number of turns must be known. */
function answersOf(lines: readonly string[], loop: string): readonly number[] {
  const rows = lines.flatMap((line, at) => (isRuleLine(line) ? [{ at, shape: line.trim().replace(/\d+[KMGT]?/g, "#") }] : []));
  const begins = rows.flatMap(({ shape }, i) => (shape === rows[0]?.shape ? [i] : []));
  const lengths = begins.map((from, i) => (begins[i + 1] ?? rows.length) - from);
  const turns = askedAgain(loop).length || turnsAsked(AGAIN.exec(loop)?.[1] ?? "");
  const known = turns === begins.length || (turns === undefined && !/\|\s*\w/.test(loop));
  const alike = lengths.every((length, i) => length === lengths[0] || (i === lengths.length - 1 && turns === undefined && length < (lengths[0] as number)));
  return known && alike ? begins.map((i) => (rows[i] as { at: number }).at) : [];
}

/** How often a loop runs: `i in 1 2 3`, `i in {1..3}`, `i in $(seq 3)`, `i in $(seq 1 3)`. */
function turnsAsked(head: string): number | undefined {
  const among = /^\s{0,8}\w{1,40}\s{1,8}in\s{1,8}(\S.*)$/.exec(head)?.[1]?.trim();
  if (among === undefined) return undefined;
  const range = /^(?:\{(\d{1,4})\.\.(\d{1,4})\}|\$\(seq (?:(\d{1,4}) )?(\d{1,4})\))$/.exec(among);
  if (range !== null) return Number(range[2] ?? range[4]) - Number(range[1] ?? range[3] ?? 1) + 1;
  return EXPANDED.test(among) ? undefined : words(among).length;
}
const isRow = (line: string): boolean => TABLE.test(line) || /:(?:\d{1,5}|\*|[a-z][\w-]{1,30})\s/.test(line) || /^(?:Proto|\s)/.test(line);
/** Not the time, an empty line, a line drawn between two answers or the end of the loop. */
const isRuleLine = (line: string): boolean => !isTimeLine(line) && !/^\s{0,40}(?:[-=*#_+~]{0,200}|\^C)\s{0,40}$/.test(line);

/**
 * True if the names of a loop are those of machines, clusters or containers (`ssh $n ip route`, `kubectl --context $c get nodes`): then not all turns tell of this node, and nobody knows
 * which does. What is known to be of a container's own network may be divided.
 */
function isOfOthers(command: string, uses: RegExp, name: string): boolean {
  const turn = commandLine(command.replaceAll(uses, () => name));
  if (turn.foreign) return false;
  const asked = commandLine(command.replaceAll(uses, TURN));
  const count = (text: string): number => text.split(TURN).length;
  return CLUSTER_TOOLS.has(asked.argv[0] ?? "") || count(asked.argv.join(" ")) < count(command.replaceAll(uses, TURN).replace(/\|.*$/s, ""));
}
const TURN = "the.turn";
const CLUSTER_TOOLS: ReadonlySet<string> = new Set(["kubectl", "oc", "aws", "az", "gcloud", "eksctl", "talosctl", "calicoctl", "curl", "ssh"]);

/** What such an `echo` prints, with the name in its place; undefined if it is none, or prints the name alone in front of something else. */
function headingOf(command: string, uses: RegExp): RegExp | undefined {
  const [program, ...all] = words(command);
  const printed = (all[0] === "-e" ? all.slice(1) : all)
    .join(" ")
    .replaceAll(/^(?:\\n)+|(?:\\n)+$/g, "")
    .trim();
  const parts = printed.split(uses);
  if (program !== "echo" || parts.length !== 2 || /^-[neE]/.test(printed) || /[$`|>\\]/.test(parts.join(""))) return undefined;
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[\\^.*+?()[\]{}|]/g, "\\$&")).join("([\\w.@:/-]{1,64})")}$`);
}

/** What such an `echo -n "$f: "` or `printf '%s: ' $f` puts in front of the answer, with the name in its place. Undefined if it is none, or nothing parts the two. */
function prefixOf(command: string, uses: RegExp): RegExp | undefined {
  const [program, option = "", ...all] = words(command);
  // `printf "$s "`, `printf '%s ' $s`
  const filled = all.length === 1 ? option.replace("%s", all[0] as string) : option;
  const printed = program === "printf" ? filled : option === "-n" ? all.join(" ") : "";
  const parts = printed.split(uses);
  if (!(program === "echo" || program === "printf") || parts.length !== 2 || !/[\s=]$/.test(printed) || /[$`|>\\%]/.test(parts.join(""))) return undefined;
  return new RegExp(`^${parts.map((part) => part.replaceAll(/[\\^.*+?()[\]{}|]/g, "\\$&")).join("([\\w.@:/-]{1,64}?)")}`);
}

/** The lines without those that an `echo` of the command line printed (`echo; echo --- rules ---; ip rule`): blank, so that the others keep their numbers. */
function withoutEchoes(line: string, lines: readonly string[]): readonly string[] {
  const echoes = commandsOf(line)
    .map((command) => words(command))
    .filter(([program, ...rest]) => program === "echo" && rest.every((word) => !/[$`|>]/.test(word)));
  const printed = new Set(echoes.map(([, ...rest]) => rest.join(" ")));
  return printed.size === 0 ? lines : lines.map((text) => (printed.has(text.trimEnd()) ? "" : text));
}

/** The lines without what `date` printed in front of the others or behind them (`date; ip rule`): blank, too. */
function withoutTime(commands: readonly string[], lines: readonly string[]): readonly string[] {
  const filled = (line: string): boolean => line.trim() !== "";
  const ends = [DATE.test(commands[0] ?? "") ? lines.findIndex(filled) : -1, DATE.test(commands.at(-1) ?? "") ? lines.findLastIndex(filled) : -1];
  const times = ends.filter((at) => isTimeLine(lines[at] ?? ""));
  return times.length === 0 ? lines : lines.map((line, at) => (times.includes(at) ? "" : line));
}
const DATE = /^date(?:\s|$)/;

interface Reader {
  readonly fact: AnyFact;
  readonly view: View;
  readonly line: CommandLine;
}

/** The facts that read what a command prints on the node. */
export function readersOf(command: string): Reader[] {
  const line = commandLine(command);
  if (line.argv.length === 0 || line.foreign) return [];
  return facts.flatMap((fact) => {
    const view = fact.recognize(line.argv);
    return view === undefined ? [] : [{ fact, view, line }];
  });
}

/** What one command of the line printed: the lines `from`…`to` (0-based, `to` exclusive). */
interface Share {
  readonly command: string;
  readonly from: number;
  readonly to: number;
}

/**
 * Divides what a line of several commands printed among those of them that netcheck reads, so that the fewest lines remain which nobody can read. What netcheck
 * does not know prints lines that are unreadable to all of them.
 *
 * Undefined, and the text is the first one's as before, where that cannot be told: one command, or a first one that can read every line (a log, `iptables -S;
 * iptables -t nat -S`). A command to which no line falls may have printed nothing, or another one took its lines: it gets no share.
 */
function sharesOf(line: string, lines: readonly string[]): readonly Share[] | undefined {
  const known = commandsOf(line)
    .map((command) => ({ command, readers: readersOf(command) }))
    .filter(({ readers }) => readers.length > 0);
  if (known.length < 2 || known.length > MAX_COMMANDS || lines.length > MAX_LINES) return undefined;
  const shares = divided(known, lines, 0).shares.filter(({ from, to }) => lines.slice(from, to).some((text) => text.trim() !== ""));
  return shares.length < 2 && (shares[0]?.command ?? known[0]?.command) === known[0]?.command ? undefined : shares;
}

interface Known {
  readonly command: string;
  readonly readers: readonly Reader[];
}

function divided(known: readonly Known[], lines: readonly string[], from: number): { readonly shares: readonly Share[]; readonly unread: number } {
  const [first, ...others] = known as [Known, ...Known[]];
  const all = unreadBy(first, lines, from);
  const best = { shares: [{ command: first.command, from, to: lines.length }] as readonly Share[], unread: all.count };
  if (others.length === 0) return best;
  const own = valuesEnd(first.command, lines, from) ?? routeEnd(first.command, lines, from) ?? templateEnd(first.command, lines, from);
  if (own !== undefined) {
    const rest = divided(others, lines, own);
    return { shares: [{ command: first.command, from, to: own }, ...rest.shares], unread: rest.unread };
  }
  return boundaries(all.lines, lines, from).reduce((least, to) => {
    const rest = divided(others, lines, to);
    const unread = all.lines.filter((at) => at < to).length + rest.unread;
    return unread < least.unread ? { shares: [{ command: first.command, from, to }, ...rest.shares], unread } : least;
  }, best);
}

/**
 * Where the settings end that a command prints one to a line without their names (`cat /proc/sys/net/ipv4/ip_forward`, `sysctl -n net.ipv4.ip_forward`): read together with
 * what follows them nobody could tell whose they are. Undefined of another command, and where other lines stand there.
 */
function valuesEnd(command: string, lines: readonly string[], from: number): number | undefined {
  const { argv, filtered } = commandLine(command);
  const [program, ...rest] = argv;
  const asked = program === "cat" ? rest : program === "sysctl" && rest[0] === "-n" ? rest.slice(1) : [];
  const key = program === "cat" ? /^\/proc\/sys\/[\w./-]{1,200}$/ : /^[a-z][\w./-]{1,200}$/;
  if (filtered || asked.length === 0 || !asked.every((word) => key.test(word))) return undefined;
  let at = from;
  for (let seen = 0; at < lines.length && seen < asked.length; at++) {
    const line = (lines[at] as string).trim();
    if (line === "") continue;
    if (!/^-?\d{1,20}(?:\s{1,20}-?\d{1,20}){0,3}$/.test(line)) return undefined;
    seen++;
  }
  return at;
}

/** Where the one answer of `ip route get ADDRESS` ends, whose later lines are indented: one of `ip neigh` looks like another. Undefined of another command. */
function routeEnd(command: string, lines: readonly string[], from: number): number | undefined {
  const { argv, filtered } = commandLine(command);
  if (filtered || argv[0] !== "ip" || !/^(?:-[46od]{1,3} )*r(?:o(?:ute?)?)? g(?:et?)? [0-9a-f.:]{3,45}(?: |$)/.test(argv.slice(1).join(" "))) return undefined;
  const start = lines.findIndex((line, i) => i >= from && line.trim() !== "");
  if (start === -1) return undefined;
  const next = lines.findIndex((line, i) => i > start && !/^\s/.test(line));
  return next === -1 ? lines.length : next;
}

/** Where the answer of `kubectl get node n1 -o jsonpath='{.spec.podCIDR}{"\\n"}'` ends: the template says how many lines it is. Undefined of another command, and of a template that goes through a list. */
function templateEnd(command: string, lines: readonly string[], from: number): number | undefined {
  const { argv } = commandLine(command);
  const template = argv[0] === "kubectl" && argv.includes("get") ? /\bjsonpath=(.{1,1000})/s.exec(argv.join(" "))?.[1] : undefined;
  if (template === undefined || /\{\s{0,4}range\b|\[\*\]/.test(template)) return undefined;
  const ends = template.match(/\{["']\\n["']\}/g)?.length ?? 0;
  return ends === 0 || from + ends > lines.length ? undefined : from + ends;
}

/** Where the next command's lines may begin: behind the last line that the first one can read, or with the first that it cannot. */
function boundaries(unread: readonly number[], lines: readonly string[], from: number): number[] {
  const [firstUnread] = unread;
  if (firstUnread === undefined) return [];
  const set = new Set(unread);
  let behind = lines.length;
  while (behind > from && (set.has(behind - 1) || (lines[behind - 1] ?? "").trim() === "")) behind--;
  return unread.length >= MAX_UNPARSED || behind === firstUnread ? [firstUnread] : [behind, firstUnread];
}

/** No command prints it. A fact that leaves it aside in silence looks for one message among lines that are not its own (`absent-device`). */
const NONSENSE = "?~ ~? ~~ ??";

const parsedBy = ({ fact, view, line }: Reader, text: string): Parsed<unknown> =>
  fact.parse({ text, argv: line.argv, view, sample: 1, exitCode: undefined, stderr: "", sorted: line.sorted });

/** The lines from `from` on that no fact of the command can read, at most {@link MAX_UNPARSED} of them; of its facts the one that reads most. */
function unreadBy({ readers }: Known, lines: readonly string[], from: number): { readonly lines: readonly number[]; readonly count: number } {
  const text = unadorned(lines.slice(from).join("\n"));
  const choosy = readers.filter((reader) => parsedBy(reader, NONSENSE).unparsedCount > 0);
  const parsed = (choosy.length > 0 ? choosy : readers).map((reader) => parsedBy(reader, text));
  const best = parsed.reduce((least, one) => (one.unparsedCount < least.unparsedCount ? one : least));
  return { lines: best.unparsed.map(({ line }) => from + line - 1), count: best.unparsedCount };
}
