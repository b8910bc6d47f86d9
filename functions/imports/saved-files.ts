import { words } from "../facts/command.ts";

/** `ss -tanp > /tmp/socks`, `iptables-save 2>/dev/null | tee rules.now`; not `>>`, which leaves in the file what was there. */
const SAVES = /^([^<>;&]{2,400}?)(?: 2>(?:&1| ?\/dev\/null))? ?(?:>|\| ?(?:sudo )?tee) ?([^\s<>;&|'"$]{1,200})(?: 2>(?:&1| ?\/dev\/null))?$/;
/** What shows the file as it is, and the programs that show some of its lines or count them, with the number of words they take besides options. */
const SHOWS = /^(?:cat|less|more)$/;
const OPERANDS = new Map(Object.entries({ grep: 1, egrep: 1, fgrep: 1, awk: 1, gawk: 1, sed: 1, head: 0, tail: 0, sort: 0, wc: 0 }));
/** What leaves something else in a file: from then on it is not known what that is. */
const EDITS = /^(?:sudo )?(?:sed (?:-[a-zA-Z]{1,4} ){0,2}-i|(?:n?vim?|nano|mv|cp|scp|rsync) )/;
/** Options with a number behind them, of grep, head and tail. */
const COUNTED = /^-[ABCmn]$/;

/**
 * Files that a person kept an output in, and looked into afterwards:
 *
 *     $ ss -tanp > /tmp/socks
 *     $ grep -c CLOSE-WAIT /tmp/socks
 *     4120
 */
export class SavedFiles {
  /** By machine and file the command; undefined where it filled two files: one of them may show how it was before. */
  private readonly commands = new Map<string, string | undefined>();
  private readonly files = new Map<string, string>();

  /** Notes what a command line keeps in a file. */
  note(command: string, machine = ""): void {
    if (this.commands.size > 0 && EDITS.test(command)) for (const word of words(command.slice(0, 1000))) this.commands.delete(`${machine} ${word}`);
    const [, kept, file] = SAVES.exec(command) ?? [];
    if (kept === undefined || file === undefined) return;
    const [key, by] = [`${machine} ${file}`, `${machine} ${kept}`];
    const other = this.files.get(by) ?? key;
    this.commands.set(key, other === key ? kept : undefined);
    if (other !== key) this.commands.set(other, undefined);
    this.files.set(by, other);
  }

  /** A command line that looks into such a file, as a pipe behind the command that filled it: `ss -tanp | grep -c CLOSE-WAIT`. Undefined if it looks into none. */
  asPipe(command: string, machine = ""): string | undefined {
    if (this.commands.size === 0 || command.length > 1000) return undefined;
    for (const { 0: word, index: at } of command.matchAll(/[^\s<]+/g)) {
      const kept = this.commands.get(`${machine} ${word}`);
      if (kept === undefined) continue;
      const [before, behind] = [
        command
          .slice(0, at)
          .replace(/^sudo /, "")
          .replace(/< ?$/, "")
          .trim(),
        command.slice(at + word.length).trim(),
      ];
      const [program = "", ...rest] = words(before);
      if (rest.includes("|") || rest.includes(";") || (behind !== "" && !behind.startsWith("| "))) return undefined;
      const operands = rest.filter((other, i) => !other.startsWith("-") && !(COUNTED.test(rest[i - 1] ?? "") && /^\+?\d{1,9}$/.test(other)));
      if (program === "sed" && rest[0] !== "-n") return undefined;
      if (SHOWS.test(program)) return rest.length === 0 ? `${kept} ${behind}`.trim() : undefined;
      return operands.length === OPERANDS.get(program) ? `${kept} | ${before} ${behind}`.trim() : undefined;
    }
    return undefined;
  }
}
