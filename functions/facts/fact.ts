import type { z } from "zod";

/**
 * The contract of a fact: one noun about a node, read from the output of one or more commands.
 *
 * Facts are raw and strict: no verdicts, no vendor mapping; every line of the output becomes a row, is skipped by an explicit
 * pattern, or lands in `unparsed` with its line number. Values are flat: an object of flat lists of flat rows, so that rules can walk them.
 */

/** A command netcheck runs on a node. Constant: nothing from a chat, a page or a node ever becomes part of it. */
export interface Command {
  /** Program and arguments. `{}` is replaced by each number or name that `each` prints, and by nothing else. */
  readonly argv: readonly string[];
  /** What a person types in its place, where it is nothing to type. */
  readonly byHand?: string;
  /** 2: run twice, the runbook's sampling interval apart, because the output holds counters. */
  readonly samples?: 1 | 2;
  /** A constant POSIX sh snippet that prints numbers (ids), one a line. The command runs once for each; anything that is not a number is ignored. */
  readonly each?: string;
  /** What `each` prints instead of numbers: names of network interfaces. Anything that the kernel or a shell could take for something else is ignored. */
  readonly eachOf?: "interface";
  /**
   * Kernel modules that the command would load: reading must change nothing, so it is run only where all of them are in the kernel. The first one holds
   * what is listed: where it is not in the kernel there is nothing to list, and that is an answer. The others are only the way to it. Variants of
   * iptables-save that use the legacy kernel interface load nothing and are always run.
   */
  readonly modules?: readonly string[];
  /** Run only if the command before it, of one sample, could not be run: it is not installed, or would load a module. */
  readonly instead?: true;
}

/** What one command line shows of a fact. */
export interface View {
  /** Names the layout of the text, so that `parse` need not guess: "json", "save", "list", … */
  readonly format: string;
  /** False if the command line itself shows only part (one chain, one device, a `grep` behind it). Absence is never concluded from a part. */
  readonly complete: boolean;
  /** What part of the fact it shows ("ipv6", "nat", a key): parts with different scopes complement each other, with the same scope they compete. */
  readonly scope: string;
  /** Of competing outputs the highest rank is used: machine formats first, then the ones that show more. */
  readonly rank: number;
  /** True if it was asked for something else, and tells a little of this fact by the way: where the fact is optional, what it leaves open is as if it was not there. */
  readonly hint?: boolean;
}

/** One output, as a fact's `parse` sees it. */
export interface Input {
  readonly text: string;
  /** Program and arguments, wrappers (`sudo`, `timeout`, `chroot /host`) taken off; what kubectl was asked in the one form of kubectl-command.ts. */
  readonly argv: readonly string[];
  readonly view: View;
  /** 1 or 2. */
  readonly sample: number;
  readonly exitCode: number | undefined;
  readonly stderr: string;
  /** When the command began, as far as the capture tells: seconds since 1970. What turns the times of log lines into ages. */
  readonly startedAt?: number | undefined;
  /** Seconds east of UTC of the node's clock, where the time of the capture has an offset. */
  readonly zone?: number;
  /** True if a collector ran the command and noted when; false if a person may have pasted its output later. */
  readonly live?: boolean;
  /** True if `startedAt` is the time of this output although nobody noted when the command began: the capture has several and says when they were taken. */
  readonly timed?: boolean;
  /** True if the end of the text is missing. */
  readonly truncated?: boolean;
  /** The output went through `sort` or the like: the order of its lines tells nothing. */
  readonly sorted?: boolean;
  /** What the output was piped into, if a person wrote the command line: "grep -c CLOSE_WAIT". See pipe.ts. */
  readonly pipe?: string;
  /** What the node of the capture is called, as far as the capture tells. See node-name.ts. */
  readonly names?: readonly string[];
}

/** A line that no pattern of the fact accounts for. `text` is cut at 400 characters. */
export interface UnparsedLine {
  readonly line: number;
  readonly text: string;
}

/** What `parse` returns. `unparsed` holds at most {@link MAX_UNPARSED} lines; `unparsedCount` tells how many there were. */
export interface Parsed<T> {
  readonly value: T;
  readonly unparsed: readonly UnparsedLine[];
  readonly unparsedCount: number;
}

/** Every row of every list carries these. `output` is the index of the output in the capture; it is stamped by the reader, not by `parse`. */
export interface Row {
  /** 1-based line of the output that this row was read from. */
  line: number;
  output?: number;
  /** The verbatim text, where a line is not a good quote (one element of a one-line JSON array). */
  text?: string;
  /**
   * Fields whose text a person painted over (`10.x.x.x`): unknown to rules and derived facts. Noted by the reader, not by `parse`; a row of a derived fact
   * takes it over where it has the field. See mask.ts.
   */
  masked?: readonly string[];
}

/** A fact's value as derived facts see it: the rows of its lists know where they were read. */
export type Placed<T> = {
  readonly [List in keyof T]: T[List] extends readonly (infer R extends object)[] | undefined ? readonly (R & Row)[] | Extract<T[List], undefined> : T[List];
};

/** One parsed output, ready to be merged with the others of the same fact. */
export interface Part<T> {
  readonly value: T;
  readonly view: View;
  readonly sample: number;
  /** False if filtered, truncated, or with unparsed lines. */
  readonly complete: boolean;
  /** Seconds since the capture began, where known: samples of counters are divided by the difference. Only a collector notes it. */
  readonly at: number | undefined;
  /** True if the end of the output is missing. */
  readonly truncated?: boolean;
}

export interface Fact<T = unknown> {
  readonly id: string;
  /** One line for `netcheck facts list`. */
  readonly title: string;
  /** What the runbook runs. The first is the preferred one; all are run. */
  readonly commands: readonly Command[];
  /** What a person types to show all of it, where the first of the commands is nothing to type. */
  readonly byHand?: string;
  /**
   * Says whether and what an arbitrary command line shows of this fact, in every spelling people use. `search` is the pattern of the one `| grep` behind it, if
   * that is all that stands there; `pipe` is all of it ("grep KUBE- | wc -l").
   */
  readonly recognize: (argv: readonly string[], search?: string, pipe?: string) => View | undefined;
  readonly schema: z.ZodType<T>;
  /** Pure, total (never throws on any text), linear in the text. */
  readonly parse: (input: Input) => Parsed<T>;
  /** Puts the parts together. The default takes, scope by scope, the best-ranked part and concatenates lists of different scopes. */
  readonly merge?: (parts: readonly Part<T>[]) => T;
  /** True if the parts together show everything. Default: a complete part of the empty scope, or every scope that is there is complete. */
  readonly whole?: (parts: readonly Part<T>[]) => boolean;
  /**
   * The kernel module that holds everything the fact shows, and a module that the kernel's build cannot do without then: `module` selects it, or depends on
   * it (Kconfig). A complete lsmod with `needs` and without `module` proves that `module` is neither loaded nor built in: the fact is empty.
   */
  readonly heldBy?: { readonly module: string; readonly needs: string };
  /**
   * What other facts prove of it. `values` holds those of `from` that are completely known; `proves` is called only with all of them, and where the fact was
   * not read or is partial. True: what its own outputs show (nothing at all where `own` is undefined) is everything there is.
   */
  // biome-ignore lint/suspicious/noExplicitAny: each fact narrows its own sources
  readonly provenBy?: { readonly from: readonly string[]; readonly proves: (own: T | undefined, values: Readonly<Record<string, any>>) => boolean };
  /** It is about what programs met with, wherever they ran: an output of a pod (`kubectl exec`, `ip netns exec`) counts, too. */
  readonly anywhere?: true;
  /** It is about pods, which have sockets and counters of their own: only outputs of a pod count. */
  readonly elsewhere?: true;
  /** It is about what other nodes say of this one: only outputs of a neighbour count (node-name.ts). */
  readonly ofNeighbours?: true;
  /** True of counters that nothing collects, and that are compared where people paste them twice. */
  readonly counters?: true;
  /**
   * It holds lines of logs. Nobody has a log from its beginning: where it is optional, a part of it leaves no more open than none. "newest": it is about the
   * newest lines alone, so that a pipe which keeps them (`| tail`) leaves nothing out.
   */
  readonly log?: "newest" | "all";
  /**
   * True of a question that is always answered with something: where nothing was kept, as in a file of a script that let the error go to the terminal, it was not
   * seen.
   */
  readonly neverEmpty?: (view: View) => boolean;
  /** True if an output with this exit code is an answer, not a failure. By default {@link answeredByDefault}. */
  readonly answered?: (input: Pick<Input, "exitCode" | "text" | "stderr"> & { readonly command?: string }) => boolean;
}

/** True of exit code 0, and of any with text on stdout: tools end with others, too, although they told what they know. */
export const answeredByDefault = ({ exitCode, text }: Pick<Input, "exitCode" | "text">): boolean =>
  exitCode === undefined || exitCode === 0 || text.trim() !== "";

/** A fact whatever its value: what lists hold. */
// biome-ignore lint/suspicious/noExplicitAny: parts of a fact are only ever given back to the same fact
export type AnyFact = Fact<any>;

/** A fact computed from other facts, for what CEL should not do. Its rows keep the `line` and `output` of the rows they came from. */
export interface DerivedFact<T = unknown> {
  readonly id: string;
  readonly title: string;
  readonly from: readonly string[];
  /** Those of `from` that can only add something: where they were not read, the derived fact is no less complete. */
  readonly optional?: readonly string[];
  /** Those of `from` of which a part is as good: from what is not in them it concludes only where `whole` names them. */
  readonly inPart?: readonly string[];
  /** Those of `from` whose painted-over rows (mask.ts) it wants too, because it takes such an address for unknown itself. Of the others it gets none. */
  readonly masked?: readonly string[];
  readonly schema: z.ZodType<T>;
  /**
   * `values` holds the facts named in `from`; those that could not be read are absent. `whole` names those of them that are complete: only of these anything may
   * be concluded from what is not there. `machineOf`: whose a row is, where a text shows several machines.
   */
  readonly derive: (
    // biome-ignore lint/suspicious/noExplicitAny: each derived fact narrows its own inputs
    values: Readonly<Record<string, any>>,
    whole: ReadonlySet<string>,
    machineOf: (row: { output?: number | undefined }) => string | undefined,
  ) => T;
  /**
   * True: nothing can be missing, although one of `from` is partial or was not read, because of what the others show (without a kubelet its settings tell
   * nothing). Called with what `derive` is called with, and only where something is missing; all of the facts may be.
   */
  // biome-ignore lint/suspicious/noExplicitAny: each derived fact narrows its own inputs
  readonly enough?: (values: Readonly<Record<string, any>>, whole: ReadonlySet<string>) => boolean;
}

/** Checks the shape at compile time and returns the fact as it is. */
export function defineFact<T>(fact: Fact<T>): Fact<T> {
  return fact;
}

/** Checks the shape at compile time and returns the derived fact as it is. */
export function defineDerivedFact<T>(fact: DerivedFact<T>): DerivedFact<T> {
  return fact;
}

/** More unparsed lines than this are counted, not kept. */
export const MAX_UNPARSED = 200;
/** Longer lines are cut: no tool we read prints one, and patterns must not run over megabytes. iptables rules and JSON are read otherwise. */
export const MAX_LINE = 65_536;

/** Collects the lines that no pattern took, bounded. */
export class UnparsedLines {
  readonly kept: UnparsedLine[] = [];
  count = 0;

  add(line: number, text: string): void {
    this.count++;
    if (this.kept.length < MAX_UNPARSED) this.kept.push({ line, text: text.length > 400 ? `${text.slice(0, 400)}…` : text });
  }

  /** The result of a parse. */
  with<T>(value: T): Parsed<T> {
    return { value, unparsed: this.kept, unparsedCount: this.count };
  }
}

/** The character that colours and cursor moves begin with, which people paste with a terminal's output. */
export const ESCAPE = String.fromCharCode(27);
export const COLORS = new RegExp(`${ESCAPE}\\[[0-9;?]{0,16}[A-Za-z]`, "g");

/**
 * The lines of a text with their 1-based numbers, one at a time: carriage returns, ANSI colours and trailing blanks taken off, blank lines left out,
 * lines over {@link MAX_LINE} cut. Never copies the text as a whole.
 */
export function* lines(text: string): Generator<{ line: number; text: string }> {
  let line = 0;
  for (let start = 0; start < text.length; ) {
    let end = text.indexOf("\n", start);
    if (end === -1) end = text.length;
    line++;
    let content = text.slice(start, Math.min(end, start + MAX_LINE));
    if (content.includes(ESCAPE)) content = content.replace(COLORS, "");
    content = content.trimEnd();
    if (content !== "") yield { line, text: content };
    start = end + 1;
  }
}

/** The default merge: per scope and sample 1 the best-ranked part; lists of different scopes are concatenated, other fields come from the best part. */
export function mergeParts<T>(parts: readonly Part<T>[]): T {
  const best = new Map<string, Part<T>>();
  for (const part of parts) {
    if (part.sample !== 1) continue;
    const rival = best.get(part.view.scope);
    if (rival === undefined || rankOf(part) > rankOf(rival)) best.set(part.view.scope, part);
  }
  const chosen = [...best.values()].sort((a, b) => rankOf(b) - rankOf(a));
  const [first, ...rest] = chosen;
  if (first === undefined) return (parts[0] as Part<T>).value;
  const merged: Record<string, unknown> = { ...(first.value as Record<string, unknown>) };
  for (const part of rest) {
    for (const [key, value] of Object.entries(part.value as Record<string, unknown>)) {
      const present = merged[key];
      if (Array.isArray(present) && Array.isArray(value)) merged[key] = present.concat(value);
      else if (present === undefined) merged[key] = value;
    }
  }
  return merged as T;
}

/** Complete parts beat partial ones, then the rank of the view decides. */
export function rankOf(part: Pick<Part<unknown>, "complete" | "view">): number {
  return (part.complete ? 1000 : 0) + part.view.rank;
}
