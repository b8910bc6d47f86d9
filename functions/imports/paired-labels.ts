import { isPromptLine, withoutPrompt } from "../facts/command.ts";
import { readersOf } from "../facts/shared-text.ts";
import type { Blocks } from "./code-blocks.ts";
import { NO_HOST } from "./machines.ts";

/**
 * Lines that by themselves could be anything, and are names of machines because the same is asked below each of them: `alpha` … `beta`, `--- gw1 ---`, `**db**`,
 * `Good:` … `Bad:`. Without them two machines would be read as two looks at one.
 */

/** A name alone, or "node A", perhaps framed. Groups: what stands before, the name, what stands behind. */
const LABEL =
  /^[ \t]{0,4}((?:[#=*~_-]{1,20}[ \t]{0,4}|[[(<])?(?:(?:[Oo]n|[Ff]rom|[Aa]t) )?)((?:(?:[Nn]ode|[Hh]ost|[Ss]erver|[Mm]achine|[Ww]orker|[Mm]aster|[Vv][Mm])[ _-])?[A-Za-z0-9][\w.-]{0,62}(?: (?:node|host|server|machine|worker))?)(:?[ \t]{0,4}(?:[=*~_-]{1,20}|[\])>])?:?)[ \t]{0,4}$/;
/** Looks at one machine, one after the other; what a command shows of it; the inside of it. */
const NO_MACHINE =
  /^(?:after|again|attempt|before|begin\w*|broken|case|container|earlier|end|final\w*|first|fix\w*|fourth|initial\w*|ipv[46]|later|legacy|looks?|morning|nft|now|outputs?|phase|pods?|reading|results?|round|run|samples?|second|start|steps?|take|tests?|then|third|today|tr(?:y|ies)|v\d|yesterday|[t#]?\d{1,4}(?:st|nd|rd|th|s|min)?)(?![a-z])|^\d{1,4}[:.]\d\d|netns/i;
/** In other words (`ip r` and `ip route show table all`) it is the same question, too; of two interfaces only one is. */
const ALIKE = 3;
/** Between a label and the first prompt below it. */
const MAX_GAP = 3;
/** Somebody who asks more than that below one label asked the same among the first. */
const MAX_COMMANDS = 60;

interface Labelled {
  readonly line: number;
  readonly name: string;
}

/** The names of machines, by the index of the line that is such a label. Linear in the text. */
export function pairedLabels({ lines, edges, block }: Blocks): ReadonlyMap<number, string> {
  const shapes = new Map<string, Labelled[]>();
  for (const [line, text] of lines.entries()) {
    const [, before = "", name = "", behind = ""] = text.length > 120 || edges.has(line) ? [] : (LABEL.exec(text) ?? []);
    // a word without any frame may be the last line of what a command printed
    const stands = before + behind !== "" || line === 0 || (lines[line - 1] ?? "").trim() === "" || block[line - 1] !== block[line];
    if (name === "" || !stands) continue;
    const first = nextFilled(lines, edges, line + 1);
    if (first === undefined || !isPromptLine(lines[first] ?? "")) continue;
    const shape = `${before.trim()} ${behind.trim()}`;
    const labels = shapes.get(shape) ?? [];
    labels.push({ line, name: name.toLowerCase().replaceAll(/[^a-z0-9.-]+/g, "-") });
    shapes.set(shape, labels);
  }
  const found = new Map<number, string>();
  const askedBelow = questions(lines);
  for (const labels of shapes.values()) {
    if (new Set(labels.map(({ name }) => name)).size < 2 || labels.some(({ name }) => NO_MACHINE.test(name) || NO_HOST.test(name))) continue;
    const asked = labels.map(({ line }, i) => askedBelow(line, labels[i + 1]?.line ?? lines.length));
    const [first, ...others] = asked;
    for (const [i, { line, name }] of labels.entries()) {
      const own = asked[i];
      if (first === undefined || own === undefined) continue;
      if (i === 0 ? others.some((other) => isAlike(first, other)) : isAlike(first, own)) found.set(line, name);
    }
  }
  return found;
}

function nextFilled(lines: readonly string[], edges: ReadonlySet<number>, from: number): number | undefined {
  for (let i = from; i < Math.min(lines.length, from + MAX_GAP); i++) if ((lines[i] ?? "").trim() !== "" && !edges.has(i)) return i;
  return undefined;
}

/** What was asked below a label: the first commands, and the facts that they show. */
interface Asked {
  readonly commands: ReadonlySet<string>;
  readonly facts: ReadonlySet<string>;
}

/** What was asked between two lines. The prompts are looked for once, and each command is recognized once: a text may have as many kinds of labels as lines. */
function questions(lines: readonly string[]): (after: number, before: number) => Asked {
  const prompts: number[] = [];
  /** By line how many prompts stand above it. */
  const above = lines.map((line, i) => (line.length < 500 && isPromptLine(line) ? prompts.push(i) - 1 : prompts.length));
  const known = new Map<string, readonly string[]>();
  const factsOf = (command: string): readonly string[] => {
    const ids = known.get(command) ?? readersOf(command).map(({ fact }) => fact.id);
    known.set(command, ids);
    return ids;
  };
  return (after, before) => {
    const start = above[after + 1] ?? prompts.length;
    const below = prompts.slice(start, Math.min(start + MAX_COMMANDS, above[before] ?? prompts.length));
    const commands = below.map((line) => withoutPrompt(lines[line] ?? "").trim());
    return { commands: new Set(commands), facts: new Set(commands.flatMap(factsOf)) };
  };
}

const isAlike = (one: Asked, other: Asked): boolean =>
  [...other.commands].some((command) => one.commands.has(command)) || [...other.facts].filter((id) => one.facts.has(id)).length >= ALIKE;
