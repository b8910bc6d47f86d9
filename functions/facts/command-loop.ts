import { listedAgain } from "./asked-again.ts";
import type { Output } from "./capture.ts";
import { commandLine, words } from "./command.ts";
import { commandsOf, EXPANDED, inQuotes, parted } from "./command-list.ts";
import type { Share } from "./shared-text.ts";

/** Loops over names (`for i in eth0 eth1; do …; done`), and which turn printed what. */

/** `for i in eth0 eth1; do echo "== $i"; ethtool -S $i; done` */
const FOR =
  /^\s{0,8}for\s{1,8}(\w{1,40})\s{1,8}in\s{1,8}([^;\n]{1,2000}?)\s{0,8}[;\n]\s{0,8}do\s{1,8}(.{1,2000}?)\s{0,8}[;\n]\s{0,8}done(?:\s{0,8}(?:2>&1|2>\/dev\/null|\|\s{0,4}tee(?:\s-a)?\s[\w./-]{1,100}|;))*\s{0,8}$/s;

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
export function turnsOf(output: Output): readonly Output[] | undefined {
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
export function toldApart(line: string): string | undefined {
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
