import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { isPrompt } from "./paste.ts";

/**
 * What sar says of errors and drops of network interfaces, a second. Of a report with several intervals the averages, or where they are missing the last one.
 *
 *     Average:        IFACE   rxerr/s   txerr/s    coll/s  rxdrop/s  txdrop/s  txcarr/s  rxfram/s  rxfifo/s  txfifo/s
 *     Average:         eno1      0.00      0.00      0.00      0.00      0.00      0.00      0.00   7926.75      0.00
 */
const Rate = z.object({
  line: z.int(),
  interface: z.string(),
  /** As sar names it: "rxfifo/s", "rxdrop/s". */
  name: z.string(),
  /** A second. */
  rate: z.number(),
});
const Sar = z.object({ rows: z.array(Rate) });
type Rate = z.infer<typeof Rate>;

const TITLE = /^(?:Linux \S{1,60} \(.{1,80}\)\s.{1,120}|\^C)$/;
const TIME = /^(?:Average:|\d\d:\d\d:\d\d(?: [AP]M)?)\s+/;
const NUMBER = /^\d{1,15}(?:[.,]\d{1,4})?$/;
const MAX_ROWS = 5000;

export const sar = defineFact({
  id: "sar",
  title: "Errors and drops of network interfaces a second (sar -n EDEV)",
  commands: [],
  recognize(argv): View | undefined {
    // another file is another day, and without an interval it tells of the whole day
    if (
      argv[0] !== "sar" ||
      !argv.some((word) => /^\d{1,5}$/.test(word)) ||
      !argv.some((word) => /^(?:EDEV|ALL|[A-Z\d,]{0,40}\bEDEV\b.{0,40})$/.test(word)) ||
      argv.some((word) => /^-[fo]/.test(word))
    )
      return undefined;
    return { format: "text", complete: false, scope: "", rank: 1 };
  },
  schema: Sar,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    const [rates, averages] = [new Map<string, Rate>(), new Map<string, Rate>()];
    let names: readonly string[] = [];
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const time = TIME.exec(content);
      const words = time === null ? [] : content.slice(time[0].length).split(/\s+/, 24);
      if (time !== null && words[0] === "IFACE") names = words;
      else if (time !== null && words.length > 1 && words.length === names.length && words.slice(1).every((word) => NUMBER.test(word))) {
        const table = time[0].startsWith("Average") ? averages : rates;
        names.forEach((name, i) => {
          const key = `${words[0]} ${name}`;
          if (i === 0 || (!table.has(key) && table.size >= MAX_ROWS)) return;
          table.set(key, { line, interface: words[0] as string, name, rate: Number((words[i] as string).replace(",", ".")) });
        });
      } else if (!TITLE.test(content) && !isPrompt(raw)) unparsed.add(line, raw);
    }
    return unparsed.with({ rows: [...new Map([...rates, ...averages]).values()] });
  },
  merge: (parts) => ({ rows: (parts.toSorted((a, b) => b.sample - a.sample)[0]?.value ?? { rows: [] }).rows }),
  whole: () => true,
});
