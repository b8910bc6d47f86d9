/** What stands at the end of an output and is none of it. */

/** Lines of signs between one output and the next, what a pager says at the end, an empty field of a collector's, a stage of a build. */
const BEHIND = /^(?:[-=_*#~]{5,200}|\(END\)|stderr:?|\[Pipeline\] .{1,80})?$/i;
/** What the shell says of the time that a command took. */
const TOOK = /^(?:real|user|sys)\s{1,8}\d{1,6}m?[\d.,]{1,8}s?$/;
/** Where the time is what was asked for. */
const TIMED = /^(?:sudo )?time (?!(?:sudo )?(?:curl|wget|nc|ncat|dig|nslookup|host|ping|getent)\b)/;

/** The last line (1-based) of an output from one line to another, that holds something of it; the first one if none does. */
export function lastLine(lines: readonly string[], from: number, to: number, command = ""): number {
  const isBehind = (line: string): boolean => BEHIND.test(line.trim()) || (TOOK.test(line) && TIMED.test(command));
  let end = to;
  while (end > from && isBehind(lines[end - 1] ?? "")) end--;
  return end;
}
