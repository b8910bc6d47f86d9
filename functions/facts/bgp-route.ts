import { z } from "zod";
import { operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { isPrompt } from "./paste.ts";

/**
 * Routes that GoBGP (kube-router) learned, as people paste them: `gobgp global rib`. Whether the kernel has them is in the fact `route`.
 *
 *     *> 100.96.0.0/24        10.77.20.10                               18d 02:11:09 [{Origin: i} {LocalPref: 100}]
 */
const BgpRoute = z.object({
  line: z.int(),
  prefix: z.string(),
  /** "0.0.0.0" for the node's own. */
  nextHop: z.string(),
  /** The one that is used. */
  best: z.boolean(),
});
const BgpRoutes = z.object({ rows: z.array(BgpRoute) });

/** Flags (`*>`, `S*>`, `* `), prefix, next hop. */
const ROW = /^([A-Z*>\s]{0,6}\*>?\s{0,6})([0-9a-fA-F.:]{2,45}\/\d{1,3})\s{1,40}([0-9a-fA-F.:]{2,45})(?:\s|$)/;
const FRAME = /^(?:Network\s+Next Hop\b.{0,100}|Network not in table|Table .{1,60}|Destination: .{1,60}|Peer\s+AS\s.{1,100})$/;

export const bgpRoute = defineFact({
  id: "bgp-route",
  title: "Routes that GoBGP learned (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const words = operands(argv);
    if (argv[0] !== "gobgp" || words[0] !== "global" || words[1] !== "rib") return undefined;
    return { format: "rib", complete: words.length === 2, scope: words.slice(2).join(" "), rank: 1 };
  },
  schema: BgpRoutes,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof BgpRoute>[] = [];
    for (const { line, text: content } of lines(text)) {
      const [, flags = "", prefix = "", nextHop = ""] = ROW.exec(content) ?? [];
      if (addressFamily(nextHop) !== undefined) rows.push({ line, prefix, nextHop, best: flags.includes(">") });
      else if (!FRAME.test(content.trim()) && !isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
});
