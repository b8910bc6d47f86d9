import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { ipCommand, ROUTE_TABLES } from "./ip-command.ts";
import { isPrompt } from "./paste.ts";

/**
 * Routing tables that were asked for by their name or number and have no route: a listing without a line, or the kernel's word that there is no such table.
 *
 *     Error: ipv4: FIB table does not exist.
 */
const Empty = z.object({ line: z.int(), family: z.enum(["ipv4", "ipv6"]), table: z.string() });
const EmptyTables = z.object({ rows: z.array(Empty) });

const NO_TABLE = /^(?:Error: ipv[46]: FIB table does not exist\.?|Dump terminated)$/;
const EVERY = new Set(["all", "0", "cache"]);

/** The table that a command lists as a whole, and nothing else. */
function askedTable(argv: readonly string[]): { family: "ipv4" | "ipv6"; table: string } | undefined {
  const command = ipCommand(argv);
  const [word, value] = command?.filters ?? [];
  if (command?.object !== "route" || command.json || command.filters.length !== 2 || word !== "table" || value === undefined || EVERY.has(value))
    return undefined;
  return { family: command.family ?? "ipv4", table: ROUTE_TABLES.get(value) ?? value };
}

export const emptyTable = defineFact({
  id: "empty-table",
  title: "Routing tables that were asked for and are empty (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const asked = askedTable(argv);
    return asked === undefined ? undefined : { format: "text", complete: true, scope: `${asked.family} ${asked.table}`, rank: 1 };
  },
  schema: EmptyTables,
  // where the table does not exist the tool fails
  answered: () => true,
  parse({ text, argv, view, stderr, exitCode, truncated }) {
    const asked = askedTable(argv);
    const said = [...lines(text)].filter(({ text: content }) => content.trim() !== "" && !isPrompt(content));
    const missing = said.find(({ text: content }) => NO_TABLE.test(content.trim()));
    const whole = said.every(({ text: content }) => NO_TABLE.test(content.trim()));
    // a tool that failed for another reason printed nothing either
    const answered = missing !== undefined || exitCode === undefined || exitCode === 0 || stderr.slice(0, 400).includes("FIB table does not exist");
    const rows = asked !== undefined && whole && answered && view.complete && truncated !== true ? [{ line: missing?.line ?? 1, ...asked }] : [];
    return new UnparsedLines().with({ rows });
  },
  merge: (parts) => ({ rows: parts.flatMap((part) => part.value.rows) }),
  whole: () => true,
});
