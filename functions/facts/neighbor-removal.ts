import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { readFamily } from "./mask.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Neighbour entries that somebody deleted by hand. netcheck itself deletes none while it reads.
 *
 *     # ip neigh del 10.61.101.240 dev eth0
 *     # arp -d 172.30.0.10
 */
const Removal = z.object({
  /** Where the command stands among the outputs: it prints nothing when it works. */
  line: z.int(),
  address: z.string(),
  interface: z.string().optional(),
});
const Removals = z.object({ rows: z.array(Removal) });

const DELETED = /^ip (?:-\S{1,12} )*n(?:eigh(?:bou?rs?|s)?)? d(?:el(?:ete)?)? /;
/** There was no such entry, or who asked was not allowed to. */
const REFUSED = /RTNETLINK|SIOCDARP|No ARP entry|Operation not permitted|No such file|Cannot find device|Error|Usage|not found/i;

export const neighborRemoval = defineFact({
  id: "neighbor-removal",
  title: "Neighbour entries that somebody deleted by hand (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const deletes = argv[0] === "arp" ? argv.some((word) => word === "-d" || word === "--delete") : DELETED.test(`${argv.join(" ").slice(0, 200)} `);
    return deletes && addressIn(argv) !== undefined ? { format: "text", complete: true, scope: argv.join(" "), rank: 1 } : undefined;
  },
  schema: Removals,
  // nothing is printed when it worked
  answered: () => true,
  parse({ text, argv }) {
    for (const { text: content } of lines(text)) if (REFUSED.test(content)) return new UnparsedLines().with({ rows: [] });
    const at = argv.findIndex((word) => word === "dev" || word === "-i");
    const row = {
      line: Math.max(text.split("\n").length - 1, 1),
      address: addressIn(argv) as string,
      ...present({ interface: at === -1 ? undefined : argv[at + 1] }),
    };
    return new UnparsedLines().with({ rows: [row] });
  },
  ...eachOnItsOwn,
});

const addressIn = (argv: readonly string[]): string | undefined => argv.find((word, i) => i > 0 && readFamily(word) !== undefined);
