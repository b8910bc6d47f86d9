import { isPromptLine, withoutPrompt } from "../facts/command.ts";
import { readersOf } from "../facts/shared-text.ts";
import type { Blocks } from "./code-blocks.ts";
import { NO_HOST, POD_WORD } from "./machines.ts";

/**
 * Lines that by themselves could be anything, and are names of machines because the same is asked below each of them: `alpha` … `beta`, `--- gw1 ---`, `**db**`,
 * `Good:` … `Bad:`, and sentences that tell machines apart: "Now the second node:". Without them two machines would be read as two looks at one.
 */

/** A name alone, or "node A", perhaps framed. Groups: what stands before, the name, what stands behind. */
const LABEL =
  /^[ \t]{0,4}((?:[#=*~_-]{1,20}[ \t]{0,4}|[[(<])?(?:(?:[Oo]n|[Ff]rom|[Aa]t) )?)((?:(?:[Nn]ode|[Hh]ost|[Ss]erver|[Mm]achine|[Ww]orker|[Mm]aster|[Vv][Mm])[ _-])?[A-Za-z0-9][\w.-]{0,62}(?: (?:node|host|server|machine|worker))?)(:?[ \t]{0,4}(?:[=*~_-]{1,20}|[\])>])?:?)[ \t]{0,4}$/;
/** Looks at one machine, one after the other; what a command shows of it; the inside of it. */
const NO_MACHINE =
  /^(?:after|again|attempt|before|begin\w*|broken|case|container|earlier|end|final\w*|first|fix\w*|fourth|initial\w*|ipv[46]|later|legacy|looks?|morning|nft|now|outputs?|phase|pods?|reading|results?|round|run|samples?|second|start|steps?|take|tests?|then|third|today|tr(?:y|ies)|v\d|yesterday|[t#]?\d{1,4}(?:st|nd|rd|th|s|min)?)(?![a-z])|^\d{1,4}[:.]\d\d|netns/i;
const MACHINE =
  "(?:nodes?|hosts?|servers?|machines?|workers?|masters?|vms?|instances?|box(?:es)?|peers?|gateways?|routers?|clients?|hypervisors?|sites?|pi|nodo|knoten|rechner|节点|主机|服务器|机器|узел|сервер|хост)";
const ROLE = "(?:control[ -]?plane|master|worker|agent|client|server|gateway|router|primary|secondary|hypervisor)";
/** What in a sentence tells one machine from another. The first that matches counts. */
const APART: readonly RegExp[] = [
  // "on kube-node-1", "Node: ip-10-0-1-5"; a command asks from addresses, too
  /(?:^|\s)(?:on|at|node|host|machine|server|vm):? [`*"']{0,2}((?:\d{1,3}\.){3}\d{1,3})(?![\w/.-])/i,
  /(?:^|\s)(?:on|from|at|in|node|host|machine|server|vm):? [`*"']{0,2}([a-z][a-z0-9]{0,20}(?:-[a-z0-9]{1,20}){0,5}-[a-z]{0,8}\d{1,4})(?![\w/-])/i,
  // "node1", "Site A", "节点 2"
  new RegExp(`(?<![a-z])(${MACHINE}[ _-]?(?:#? ?\\d{1,3}(?!\\d|\\.\\d)|(?<=[ _-])(?:[A-Z]|one|two)(?![\\w.])))`, "i"),
  // "the second node", "the client machine", "the non-working host"
  new RegExp(
    `(?<![a-z])((?:first|second|third|fourth|1st|2nd|3rd|other|another|this|client|server|gateway|source|destination|sending|receiving|remote|local|(?:not |non-?|un)?(?:working|broken|failing|good|bad|healthy|affected)|${ROLE}|new|old|azure|aws|on-?prem) ${MACHINE})(?![a-z])`,
    "i",
  ),
  // "the node that runs the client", "the host where it works"
  new RegExp(`(?<![a-z])${MACHINE} ((?:that|which|where|with|without|behind|running|hosting) [^.,:;]{2,80})`, "i"),
  // "The control plane shows", "1. master", "## On the gateway"
  new RegExp(`^(?:[#*-]{1,6} |\\d{1,2}[.)] )?\\*{0,2}(?:(?:on|from|at|and|then|now),? )*(?:the )?(${ROLE})(?![\\w/-])`, "i"),
  // "ip rule (master)", "ip rule (bad)"
  new RegExp(`\\(((?:on )?(?:the )?(?:${ROLE}|good|bad|(?:non-?)?working|broken|failing|(?:un)?healthy))\\)`, "i"),
  // in Chinese what it is stands alone: the main node, the one that works
  /((?:主|从|工作|控制|管理|计算)节点)/,
];
/** What shows a label as one: "<summary>node1</summary>". */
const TAG = /<\/?(?:details|summary|p|b|strong|em|li|h\d|div|span|td|code)(?: [^<>]{0,60})?>/gi;
/** One machine at two times; what ssh says. */
const TIMES = /\b(?:again|later|once more|re-?boot\w*|re-?start\w*|re-?run|upgrade\w*)\b|^Last login/i;
/** In other words (`ip r` and `ip route show table all`) it is the same question, too; of two interfaces only one is. */
const ALIKE = 3;
/** Between a label and the first prompt below it. */
const MAX_GAP = 4;
/** Somebody who asks more than that below one label asked the same among the first. */
const MAX_COMMANDS = 60;

interface Labelled {
  readonly line: number;
  readonly name: string;
}

/** The names of machines, by the index of the line that is such a label. Linear in the text. */
export function pairedLabels({ lines, edges, block }: Blocks): ReadonlyMap<number, string> {
  const shapes = new Map<string, Labelled[]>();
  const announced = new Map<string, Labelled[]>();
  for (const [line, raw] of lines.entries()) {
    if (raw.length > 300 || edges.has(line)) continue;
    const text = raw.replaceAll(TAG, "");
    const [, before = "", name = "", behind = ""] = text.length > 120 ? [] : (LABEL.exec(text) ?? []);
    const told = block[line] === 0 && !isPromptLine(text) ? apart(text) : undefined;
    if (name === "" && told === undefined) continue;
    // a word without any frame may be the last line of what a command printed
    const stands = line === 0 || text !== raw || (lines[line - 1] ?? "").trim() === "" || block[line - 1] !== block[line];
    const first = nextFilled(lines, edges, line + 1);
    if (told !== undefined && first !== undefined && block[first] !== 0 && !isPromptLine(lines[first] ?? "")) {
      const question = questionOf(text, told);
      const labels = announced.get(question) ?? [];
      labels.push({ line, name: slug(told) });
      announced.set(question, labels);
    }
    if (!(stands || (name !== "" && before + behind !== "")) || first === undefined || !isPromptLine(lines[first] ?? "")) continue;
    for (const [shape, said] of [[`${before.trim()} ${behind.trim()}`, name] as const, [TOLD, told ?? ""] as const]) {
      if (said === "") continue;
      const labels = shapes.get(shape) ?? [];
      labels.push({ line, name: slug(said) });
      shapes.set(shape, labels);
    }
  }
  const found = new Map<number, string>();
  // "`ip rule` on node1:" and "`ip rule` on node2:", each with its block
  if ([...announced.values()].some((labels) => new Set(labels.map(({ name }) => name)).size > 1))
    for (const { line, name } of [...announced.values()].flat()) found.set(line, name);
  const askedBelow = questions(lines);
  for (const [shape, labels] of shapes) {
    const isOther = shape !== TOLD && labels.some(({ name }) => NO_MACHINE.test(name) || NO_HOST.test(name));
    if (new Set(labels.map(({ name }) => name)).size < 2 || isOther) continue;
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

/** The shape of a sentence that tells machines apart: any. */
const TOLD = "sentence";

/** What in such a sentence tells the machine apart; undefined in any other. */
function apart(line: string): string | undefined {
  if (TIMES.test(line)) return undefined;
  const words = line.replaceAll(CODE, "");
  for (const form of APART) {
    const said = form.exec(words)?.[1];
    // "on the client pod", "in a container on node1"; but "on the node that runs the client pod"
    if (said !== undefined && !NO_HOST.test(said)) return POD_WORD.test(words.replace(said, "")) ? undefined : said;
  }
  return undefined;
}

/** A command in a sentence, rather than a name. */
const CODE = /`[^`\s]{1,80} [^`\n]{1,300}`/g;

/** What such a sentence announces, on whichever machine. */
const questionOf = (line: string, told: string): string =>
  slug(line.match(CODE)?.[0] ?? line.replace(told, "").replace(/^[#*\s-]{0,8}(?:\d{1,2}[.)]?){0,3} {0,3}(?:(?:and|then|now|also)\b)?/i, ""));

/** A name of what somebody wrote. */
const slug = (words: string): string =>
  words
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}.-]+/gu, "-")
    .replaceAll(/^-|-$/g, "");

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
