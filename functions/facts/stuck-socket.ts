import { z } from "zod";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";
import { socket } from "./socket.ts";

/**
 * How many connections in CLOSE-WAIT one output of a pod shows, which has sockets of its own. netcheck itself looks into no pod.
 *
 *         991 CLOSE-WAIT         (`kubectl exec … -- ss -tan | awk '{print $1}' | sort | uniq -c`)
 */
const Stuck = z.object({
  /** The number, or the first of the connections. */
  line: z.int(),
  /** "CLOSE-WAIT". */
  state: z.string(),
  count: z.int(),
  /** The program that most of them belong to, where it is told. */
  process: z.string().optional(),
});
const StuckSockets = z.object({ rows: z.array(Stuck) });
const CLOSE_WAIT = "CLOSE-WAIT";

export const stuckSocket = defineFact({
  id: "stuck-socket",
  title: "Connections of pods in CLOSE-WAIT (pasted only)",
  commands: [],
  elsewhere: true,
  recognize(argv): View | undefined {
    const view = socket.recognize(argv);
    // those that listen are none of these
    const shows = view !== undefined && !/(?:^| )listening(?: |$)|^udp (?:all|connected)/.test(view.scope);
    return shows ? { ...view, scope: argv.join(" ").slice(0, 400), complete: true } : undefined;
  },
  schema: StuckSockets,
  parse(input) {
    // the kinds of sockets stand in the scope of the other fact
    const view = socket.recognize(input.argv);
    const { rows, counts } = view === undefined ? { rows: [], counts: [] } : socket.parse({ ...input, view }).value;
    const counted = counts.filter((row) => row.state === CLOSE_WAIT);
    const listed = rows.filter((row) => row.state === CLOSE_WAIT);
    const first = listed.find((row) => row.process !== undefined) ?? listed[0];
    const all = first === undefined ? [] : [present({ line: first.line, state: CLOSE_WAIT, count: listed.length, process: first.process })];
    return new UnparsedLines().with({ rows: counted.length > 0 ? counted : all });
  },
  ...eachOnItsOwn,
});
