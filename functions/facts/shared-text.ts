import { type CommandLine, commandLine } from "./command.ts";
import { commandsOf } from "./command-list.ts";
import { type AnyFact, MAX_UNPARSED, type Parsed, type View } from "./fact.ts";
import { facts } from "./index.ts";
import { unadorned } from "./paste.ts";

/** Which of the commands of a line printed which of the lines below it. */

/** More are not told apart: each one more doubles the ways to divide the lines. */
const MAX_COMMANDS = 6;

/** Longer outputs are not divided, for the same reason; nobody pastes them. */
const MAX_LINES = 10_000;

interface Reader {
  readonly fact: AnyFact;
  readonly view: View;
  readonly line: CommandLine;
}

/** The facts that read what a command prints on the node. */
export function readersOf(command: string): readonly Reader[] {
  const known = remembered.get(command);
  if (known !== undefined) return known;
  if (remembered.size >= MAX_REMEMBERED) remembered.clear();
  const line = commandLine(command);
  const readers =
    line.argv.length === 0 || line.foreign
      ? []
      : facts.flatMap((fact) => {
          const view = fact.recognize(line.argv);
          return view === undefined ? [] : [{ fact, view, line }];
        });
  remembered.set(command, readers);
  return readers;
}
/** Of one text several modules ask this of the same lines, and all facts are asked each time. */
const remembered = new Map<string, readonly Reader[]>();
const MAX_REMEMBERED = 500;

/** What one command of the line printed: the lines `from`…`to` (0-based, `to` exclusive). */
export interface Share {
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
export function sharesOf(line: string, lines: readonly string[]): readonly Share[] | undefined {
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
