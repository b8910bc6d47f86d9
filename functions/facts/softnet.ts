import { z } from "zod";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { isPrompt } from "./paste.ts";
import { growth, samples } from "./sampled.ts";

/**
 * What each CPU took from the network cards. All network namespaces of the machine share these numbers.
 *
 *     00017fb4 00000000 0000001a 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
 */
const Cpu = z.object({
  line: z.int(),
  /** As the kernel numbers it where it tells (Linux 5.10 and later), else the number of the line: CPUs that are offline have none. */
  cpu: z.int(),
  /** Packets. The counters have 32 bits and start again at 0. */
  processed: z.int(),
  /** Packets dropped because the backlog (net.core.netdev_max_backlog) was full. */
  dropped: z.int(),
  /** How often the work was broken off with packets left, because the budget or the time was used up. */
  timeSqueeze: z.int(),
  /** Packets dropped because one flow took more than its share of the backlog. */
  flowLimit: z.int().optional(),
  processedDelta: z.int().optional(),
  droppedDelta: z.int().optional(),
  timeSqueezeDelta: z.int().optional(),
  flowLimitDelta: z.int().optional(),
});
const Softnet = z.object({ rows: z.array(Cpu) });
type Cpu = z.infer<typeof Cpu>;
type Softnet = z.infer<typeof Softnet>;

const FILE = /^\/(?:host\/)?proc\/(?:\d{1,10}\/|self\/|thread-self\/)?net\/softnet_stat$/;
// 9 columns before Linux 2.6.35, 15 since 5.10 (the 13th is the CPU), 13 from 5.14 of some vendors
const ROW = /^(?:[0-9a-f]{8} {1,4}){8,19}[0-9a-f]{8}$/;

export const softnet = defineFact({
  id: "softnet",
  title: "Packets that each CPU took, dropped and put off (two samples)",
  commands: [{ argv: ["cat", "/proc/net/softnet_stat"], samples: 2 }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (!["cat", "head", "tail", "grep"].includes(program ?? "") || !rest.some((word) => FILE.test(word))) return undefined;
    return { format: "proc", complete: program === "cat" && rest.length === 1, scope: "", rank: 1 };
  },
  schema: Softnet,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    const rows: Cpu[] = [];
    for (const { line, text: content } of lines(text)) {
      const words = content.trim().split(/\s+/, 24);
      if (ROW.test(words.join(" "))) {
        const numbers = words.map((word) => Number.parseInt(word, 16));
        const [processed = 0, dropped = 0, timeSqueeze = 0] = numbers;
        const flowLimit = numbers[10];
        rows.push({ line, cpu: numbers[12] ?? rows.length, processed, dropped, timeSqueeze, ...(flowLimit === undefined ? {} : { flowLimit }) });
      } else if (!isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
  merge: mergeCpus,
});

const COUNTERS = ["processed", "dropped", "timeSqueeze", "flowLimit"] as const;

/** The newest sample, with what each CPU counted since the one before. */
function mergeCpus(parts: readonly Part<Softnet>[]): Softnet {
  const [pair] = samples(parts);
  if (pair === undefined) return { rows: [] };
  const old = new Map(pair.before?.value.rows.map((row) => [row.cpu, row]));
  return {
    rows: pair.after.value.rows.map((row) => {
      const before = old.get(row.cpu);
      const deltas: Partial<Record<`${(typeof COUNTERS)[number]}Delta`, number>> = {};
      for (const counter of COUNTERS) {
        const now = row[counter];
        const delta = now === undefined ? undefined : growth(before?.[counter], now);
        if (delta !== undefined) deltas[`${counter}Delta`] = delta;
      }
      return { ...row, ...deltas };
    }),
  };
}
