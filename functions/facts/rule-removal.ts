import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";

/**
 * Routing rules that somebody saw go: in `ip monitor`, or as the difference between two listings. netcheck itself watches nothing.
 *
 *     Deleted 1020:   from 192.0.2.16/28 lookup 203        (ip monitor rule)
 *     < 512:  from all to 10.44.9.12 lookup main           (diff before after)
 */
const Removal = z.object({
  line: z.int(),
  priority: z.int(),
  /** What the rule asked and did. */
  spec: z.string(),
});
const Removals = z.object({ rows: z.array(Removal) });

// "Deleted [nsid current]", "[RULE]Deleted"; of a diff the file before is the left one
const GONE = /^(?:(?:\[[^\]]{1,40}\]\s?){0,2}Deleted |< |-)(\d{1,10}):\s{1,8}((?:not )?from .{1,300})$/;
const MAX_ROWS = 500;

export const ruleRemoval = defineFact({
  id: "rule-removal",
  title: "Routing rules that somebody saw go: ip monitor, diff (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const watched = argv[0] === "ip" && argv.includes("monitor");
    return watched || argv[0] === "diff" ? { format: "text", complete: true, scope: argv.join(" ").slice(0, 400), rank: 1 } : undefined;
  },
  schema: Removals,
  // diff: 1 where the files differ; a watch ends with the key that stops it
  answered: () => true,
  parse({ text }) {
    const rows: z.infer<typeof Removal>[] = [];
    for (const { line, text: content } of lines(text)) {
      const [, priority, rest] = GONE.exec(content.trim()) ?? [];
      if (priority !== undefined && rest !== undefined && rows.length < MAX_ROWS) rows.push({ line, priority: Number(priority), spec: rest });
    }
    return new UnparsedLines().with({ rows });
  },
  ...eachOnItsOwn,
});
