import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";

/**
 * Network devices that a tool was asked for and did not find.
 *
 *     Device "vxlan.calico" does not exist.
 *     flannel.1: error fetching interface information: Device not found
 */
const Absent = z.object({ line: z.int(), interface: z.string() });
const AbsentDevices = z.object({ rows: z.array(Absent) });

const SAID =
  /(?:Device "([^"\s]{1,15})" does not exist|^(?:ifconfig: )?([^\s:]{1,15}): error fetching interface information: Device not found|^Cannot find device "?([^"\s]{1,15}))/;

/** What ends a command that asks for everything: options, objects, verbs, tables, kinds, states, addresses. */
const WORDS =
  /^(?:-.{0,40}|a|ad|add|addr|addre|address|l|li|lin|link|r|ro|rou|rout|route|ru|rul|rule|n|ne|nei|neig|neigh|neighbor|neighbour|fdb|vlan|mdb|s|sh|sho|show|ls|lst|list|all|main|local|default|up|permanent|any|.{0,40}[.:/].{0,40}:.{0,40}|\d{1,5}|[\d.]{7,15}(?:\/\d{1,2})?)$/;

const OBJECT = /^(?:a|ad|add|addr|addre|address|l|li|lin|link|r|ro|rou|rout|route|n|ne|nei|neig|neigh|neighbor|neighbour|fdb|vlan|mdb)$/;

export const absentDevice = defineFact({
  id: "absent-device",
  title: "Network devices that a tool did not find (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const [program = "", ...rest] = argv;
    // only who asks for one device may be told that it is not there
    const named = rest.includes("dev") || (rest.length > 0 && !WORDS.test(rest.at(-1) as string));
    // prose begins with such words, too: `ip is bad`
    const tool = program === "ifconfig" || (/^(?:ip|bridge)$/.test(program) && rest.slice(0, -1).some((word) => OBJECT.test(word)));
    if (!tool || !named) return undefined;
    return { format: "text", complete: true, scope: argv.join(" ").slice(0, 200), rank: 1 };
  },
  schema: AbsentDevices,
  // the tool fails, and says it on standard error where the two were kept apart
  answered: () => true,
  parse({ text, stderr }) {
    const rows: z.infer<typeof Absent>[] = [];
    // what else these tools print is about devices that are there
    for (const { line, text: content } of lines(text.length > 2000 ? "" : text)) {
      const match = SAID.exec(content.trim());
      const name = match?.[1] ?? match?.[2] ?? match?.[3];
      if (name !== undefined) rows.push({ line, interface: name });
    }
    const match = rows.length === 0 ? SAID.exec(stderr.slice(0, 400).trim()) : null;
    const name = match?.[1] ?? match?.[2] ?? match?.[3];
    if (name !== undefined) rows.push(Object.assign({ line: 1, interface: name }, { text: stderr.trim().slice(0, 400) }));
    return new UnparsedLines().with({ rows });
  },
});
