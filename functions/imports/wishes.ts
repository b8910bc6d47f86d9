import { isLog } from "./log-lines.ts";

/**
 * What a report shows of how it should be: forms ask for it (`### Expected behavior`), and sentences tell of it (`these rules should exist:`). Where the text
 * shows the same output as it is, too, only that one is the node's. People also put what they saw there: without another one it counts.
 */

/** `## Heading`, `**Heading**`, `__Heading__`. */
const HEADING = /^[ \t]{0,4}(?:#{1,6} {0,3}(.{1,120})|\*\*([^*]{1,120})\*\*:?|__([^_]{1,120})__:?)[ \t]{0,4}$/;
const WISHED = /^\W{0,8}(?:(?:describe )?what (?:did|do|had|were|was|have) (?:you|i|we) expect|what (?:you|i|we) expected|expect(?:ed|ation)|desired|should)/i;
const SENTENCE =
  /\b(?:should|ought to|must) (?:exist|be|have|show|see|look|contain|print|read|say|give|return)\b.{0,120}:[ \t]{0,4}$|^\W{0,4}expected(?: \w{1,20}){0,3}:[ \t]{0,4}$/i;

interface Shown {
  readonly command: string;
  readonly from: number;
}

/** The outputs without those that the text wishes for, and also shows as they are. Pure, linear in the lines. */
export function asTheyAre<T extends Shown>(outputs: readonly T[], lines: readonly string[]): readonly T[] {
  const wished = wishedLines(lines);
  if (wished.size === 0) return outputs;
  const real = new Set(outputs.filter(({ from }) => !wished.has(from - 1)).map(nameOf));
  return outputs.filter((output) => !wished.has(output.from - 1) || isLog(output.command) || !real.has(nameOf(output)));
}

const nameOf = ({ command }: Shown): string => command.replace(/^sudo /, "").replace(/ (?:show|list|ls|\| …)$/, "");

/** The indexes of the lines that tell how it should be. */
function wishedLines(lines: readonly string[]): ReadonlySet<number> {
  const wished = new Set<number>();
  let below = false;
  for (const [i, line] of lines.entries()) {
    const heading = line.length > 140 ? null : HEADING.exec(line);
    if (heading !== null) below = WISHED.test(heading[1] ?? heading[2] ?? heading[3] ?? "");
    if (below) wished.add(i);
    else if (line.length <= 300 && SENTENCE.test(line)) for (let next = i + 1; next <= i + 4; next++) wished.add(next);
  }
  return wished;
}
