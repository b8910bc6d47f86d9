import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Locks on files, who has them and who waits for them (lslocks, lsof of one file), and how long a tool of iptables waited in vain for the xtables lock. netcheck itself asks for none.
 *
 *     COMMAND           PID  TYPE SIZE MODE   M BLOCKER PATH
 *     fw-agent        18211 FLOCK   0B WRITE  0         /run/xtables.lock
 *     iptables        20190 FLOCK   0B WRITE* 0   18211 /run/xtables.lock
 */
const Lock = z.object({
  line: z.int(),
  path: z.string(),
  /** As the tool cuts it. */
  program: z.string(),
  pid: z.int(),
  /** It has the file open, and somebody else the lock. */
  waits: z.boolean(),
});
/** `Another app is currently holding the xtables lock. Stopped waiting after 10s.` */
const Refusal = z.object({ line: z.int(), seconds: z.int() });
const Locks = z.object({ rows: z.array(Lock), refusals: z.array(Refusal) });

/** lslocks: program, number, kind, what else it shows, and the path at the end. A star behind the mode says that it waits. */
const LSLOCKS = /^(\S{1,64})\s+(\d{1,10})\s+(?:FLOCK|POSIX|OFDLCK)\s.{0,60}?\b(?:WRITE|READ)(\*?)\s.{0,80}?(\/\S{1,200})$/;
/** lsof: "fw-agent 18211 root 4wW REG 0,25 0 1042 /run/xtables.lock"; the letter behind how it is open tells the lock. */
const LSOF = /^(\S{1,64})\s+(\d{1,10})\s+(?:\d{1,10}\s+)?\S{1,40}\s+\d{1,6}[rwu]([rRwWuUNx]?)\s+REG\s.{1,80}?\s(\/\S{1,200})$/;
const STOPPED = /holding the xtables lock\. Stopped waiting after (\d{1,5})s\./;
const FRAME = /^(?:COMMAND\s.{1,100}|lsof: .{1,200})$/;

export const fileLock = defineFact({
  id: "file-lock",
  title: "Locks on files and who waits for them, and refusals of the xtables lock (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const [program = ""] = argv;
    const scope = argv.join(" ").slice(0, 200);
    if (program === "lslocks") return { format: "list", complete: true, scope, rank: 1 };
    if (program === "lsof" && argv.some((word) => word.endsWith(".lock"))) return { format: "list", complete: true, scope, rank: 1 };
    // without this option none of them waits
    const waits = argv.some((word) => /^(?:-w\d{0,5}|--wait(?:=\d{1,5})?)$/.test(word));
    return waits && /^ip6?tables(?:-nft|-legacy)?(?:-save|-restore)?$/.test(program)
      ? { format: "tool", complete: false, scope, rank: 0, hint: true }
      : undefined;
  },
  schema: Locks,
  // a tool that did not get the lock ends with 4
  answered: () => true,
  parse({ text, stderr, view }) {
    const unparsed = new UnparsedLines();
    const value: z.infer<typeof Locks> = { rows: [], refusals: [] };
    if (view.format === "tool") {
      for (const { line, text: content } of lines(`${text}\n${stderr}`)) {
        const seconds = content.length > 600 ? undefined : STOPPED.exec(content)?.[1];
        if (seconds !== undefined) value.refusals.push({ line, seconds: Number(seconds), ...present({ text: content.trim() }) });
      }
      return unparsed.with(value);
    }
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const listed = LSLOCKS.exec(content);
      const opened = listed === null ? LSOF.exec(content) : null;
      const [, program, pid, mark = "", path = ""] = listed ?? opened ?? [];
      if (program !== undefined) value.rows.push({ line, path, program, pid: Number(pid), waits: listed === null ? mark === "" : mark === "*" });
      else if (!FRAME.test(content) && !isPrompt(raw) && !/^\S{1,64}\s+\d{1,10}\s/.test(content)) unparsed.add(line, raw);
    }
    return unparsed.with(value);
  },
  ...eachOnItsOwn,
});
