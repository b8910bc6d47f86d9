import { z } from "zod";
import { hasLetter, isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { readFamily, readMac } from "./mask.ts";
import { present } from "./present.ts";

/**
 * Answers to ARP requests that somebody sent with arping. netcheck itself sends none: a node is only read.
 *
 *     Unicast reply from 10.0.0.5 [52:54:00:11:22:33]  0.741ms
 */
const Reply = z.object({
  line: z.int(),
  address: z.string(),
  /** Lower case, colons. */
  mac: z.string(),
  interface: z.string().optional(),
  /** True if it was asked whether the node's own address is in use elsewhere (-D): any answer is a conflict. */
  duplicateCheck: z.boolean(),
});
const Arping = z.object({ rows: z.array(Reply) });

// iputils, and BusyBox, which is the same
const IPUTILS = /^(?:Unicast|Broadcast) reply from (\S{3,40}) \[([^\]\s]{3,24})\]/;
// Thomas Habets' arping
const HABETS = /^\d{1,6} bytes from (\S{3,24}) \(([^)\s]{3,40})\): index=/;
const FRAME =
  /^(?:ARPING .*|Sent \d{1,9} probe.*|Received \d{1,9} (?:response|reply|repl).*|--- .* statistics ---|\d{1,9} packets transmitted, .*|rtt min\/avg.*|Timeout|Interface ".{1,15}" is down)$/;

export const arping = defineFact({
  id: "arping",
  title: "Answers to ARP requests (arping)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "arping" || argv.length < 2) return undefined;
    return { format: hasLetter(argv, "D") ? "duplicate" : "ask", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
  },
  schema: Arping,
  // -D: exit code 1 means that somebody answered, or nobody did, by version
  answered: ({ exitCode, text }) => exitCode === undefined || exitCode === 0 || text.trim() !== "",
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof Reply>[] = [];
    const name = optionValue(argv, "-I", "-i", "--interface");
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim();
      const iputils = IPUTILS.exec(bare);
      const habets = iputils === null ? HABETS.exec(bare) : null;
      const address = iputils?.[1] ?? habets?.[2];
      const mac = readMac(iputils?.[2] ?? habets?.[1] ?? "");
      if (address !== undefined && readFamily(address, "ipv4") === "ipv4" && mac !== undefined)
        rows.push({ line, address, mac, ...present({ interface: name }), duplicateCheck: view.format === "duplicate" });
      else if (!FRAME.test(bare) && !isPromptLine(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
  merge: (parts) => ({ rows: parts.flatMap((part) => part.value.rows) }),
  whole: () => true,
});
