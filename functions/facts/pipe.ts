import { givenToShell, keepsLines, words } from "./command.ts";

/** What a person piped an output into, its words joined with single blanks: "grep CLOSE_WAIT | wc -l"; "" if into nothing. Commands behind `;` and `&&` are cut off. */
export function pipeOf(command: string): string {
  const all = words(givenToShell(command));
  const start = all.indexOf("|");
  if (start === -1) return "";
  const behind = all.slice(start + 1);
  const end = behind.findIndex((word) => word === ";" || word === "&");
  return (end === -1 ? behind : behind.slice(0, end)).join(" ");
}

/** True if the newest lines came through as they were: `| tail -n 40`, `| tee kubelet.log`. */
export const keepsNewest = (pipe: string): boolean => pipe !== "" && pipe.split(" | ").every((one) => NEWEST.test(one));
const NEWEST = /^(?:tail(?: (?:-n|--lines[= ]|-n?|\+)?\+?\d{0,9}){0,2}|cat|less|more|tee [^|]{1,200})$/;

/** True if no line was lost or moved on the way: `| jq .`, `| tee pods.json`, or no pipe at all. */
export const showsAll = (pipe: string): boolean => pipe === "" || keepsLines(pipe);

/** True if `| head -n 40` or `| tail` had fewer lines to show than it would have shown, so that none was lost. */
export function cutsNothing(pipe: string, text: string): boolean {
  const stages = pipe.split(" | ");
  if (!stages.every((stage) => ENDS.test(stage) || showsAll(stage)) || !stages.some((stage) => ENDS.test(stage))) return false;
  const limit = Math.min(...stages.flatMap((stage) => (ENDS.test(stage) ? [Number(ENDS.exec(stage)?.[1] ?? SHOWN)] : [])));
  const shown = text.trim();
  return shown !== "" && shown.split("\n", limit + 1).length < limit;
}
const ENDS = /^(?:head|tail)(?: (?:-n ?|--lines[= ]|-)(\d{1,4}))?$/;
/** Lines that head and tail show unless told (POSIX). */
const SHOWN = 10;

const COUNTS = /(?:^|\| )(?:wc -l|[ef]?grep (?:-[a-zA-Z]{1,8} ){0,4}?-[a-zA-Z]{0,6}c[a-zA-Z]{0,6} .{1,200})$/;

/** True if all that is left behind the pipe is the number of lines: `… | wc -l`, `… | grep -c CLOSE_WAIT`. */
export const isLineCount = (pipe: string): boolean => COUNTS.test(pipe);

/** The command without the count, `ip rule | grep 10.1.44.19` of `ip rule | grep -c 10.1.44.19`, where none was counted: it looked for something and found nothing. */
export const countedNone = (command: string, text: string): string | undefined =>
  text.trim() === "0" ? COUNTED.exec(command)?.slice(1).join("").replace("- ", "") : undefined;
const COUNTED =
  /^((?:sudo )?(?:\S{0,20}\/)?(?:ip|route|arp|bridge) [^|;&]{0,400}\| ?[ef]?grep (?:-\S{1,10} ){0,3}?-[a-zA-Z]{0,4})c([a-zA-Z]{0,4} [^|;&]{1,200})$/;

/** The text without the number of lines, where that is all that the pipe left: a listing of which nothing was seen. */
export const withoutLineCount = (text: string, pipe: string): string => (isLineCount(pipe) ? text.replaceAll(COUNT, "") : text);
const COUNT = /^[ \t]{0,20}\d{1,9}[ \t\r]{0,20}$/gm;

/** True if equal lines are counted: `… | sort | uniq -c`. */
export const countsEqual = (pipe: string): boolean => EQUAL.test(pipe);
const EQUAL = /(?:^|\| )uniq (?:-[a-z]{0,3}c[a-z]{0,3}|--count)(?: |$)/;

const NUMBERED =
  /(?:^|\| )(?:[ef]?grep (?:-\S{1,40} ){0,4}?(?:-[a-zA-Z]{0,6}n[a-zA-Z]{0,6}|--line-number) .{1,200}|cat -[a-zA-Z]{0,3}n[a-zA-Z]{0,3}(?: \|.{1,200})?|nl(?: .{1,200})?)$/;

/** The text without the number that `cat -n`, `| grep -n`, `| cat -n` or `| nl` put in front of each line. */
export const withoutLineNumbers = (text: string, pipe: string, argv: readonly string[]): string =>
  (pipe !== "" && NUMBERED.test(pipe)) || (argv[0] === "cat" && argv.some((word) => /^-[a-zA-Z]{0,3}[nb]/.test(word)))
    ? text.replace(/^(?:\d{1,9}[:-]|[ \t]{0,9}\d{1,9}\t)/gm, "")
    : text;

/** The text without the signs that grep sets between groups of lines (`| grep -A3 eth`); the others keep their numbers. In listings of rules they part what belongs together. */
export const withoutSeparators = (text: string, pipe: string, argv: readonly string[]): string =>
  SINGLE_LINES.has(argv[0]) && SURROUNDED.test(pipe) ? text.replace(/^--$/gm, "") : text;
const SINGLE_LINES: ReadonlySet<string | undefined> = new Set(["ip", "sysctl", "ifconfig", "ethtool", "nstat", "netstat"]);
const SURROUNDED = /(?:^|\| )[ef]?grep (?:[^|\s]\S{0,60} ){0,6}?(?:-[a-zA-Z]{0,6}[ABC][ \d]|-\d{1,4}(?: |$)|--(?:(?:after|before)-)?context[ =])/;

const TAKES_PARTS =
  /(?:^|\| )(?:g?awk (?:-F ?\S{1,8} )?(?:\/[^/|]{1,80}\/ ?|NR ?>=? ?\d{1,2} ?)?\{ ?print \$[1-9]|[ef]?grep (?:-(?!-? |e )\S{1,8} ){0,4}?-[a-zA-Z]{0,6}o|cut (?:(?:-d ?|--delimiter=).{0,3}? )?(?:-f ?|--fields=)(?:\d{1,4}[-,]){0,20}\d{1,4}(?= |$))/;
const WIDTH = /(?:^|\| )cut (?:-[cb] ?|--(?:characters|bytes)=)1?-(\d{1,4})(?= |$)/;

/** True if only some columns of each line came through, so that different lines may look alike: `| cut -d' ' -f1-4`, `| awk '{print $2}'`, `| grep -o …`. What `cut -f2-` leaves goes to the end. */
export const takesParts = (pipe: string): boolean => TAKES_PARTS.test(pipe);

/** How long a line may be behind the pipe, where longer ones were cut: 120 of `| cut -c1-120`. */
export const cutAt = (pipe: string): number | undefined => {
  const width = WIDTH.exec(pipe)?.[1];
  return width === undefined ? undefined : Number(width);
};
