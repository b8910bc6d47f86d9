import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { parseMac } from "./ip-address.ts";

/**
 * To which hardware addresses a neighbouring node sends through its tunnel, by its own tables: somebody asked it through ssh or a debug pod. Pasted only.
 *
 *     10.244.1.0 dev flannel.1 lladdr 6e:b9:d5:e1:19:85 PERMANENT        (ssh wk-1 ip neigh)
 *     6e:b9:d5:e1:19:85 dst 10.20.0.12 self permanent                    (ssh wk-1 bridge fdb show dev flannel.1)
 *     ? (10.244.1.0) at 6e:b9:d5:e1:19:85 [ether] PERM on flannel.1      (ssh wk-1 arp -an)
 */
const Entry = z.object({
  line: z.int(),
  /** The tunnel, which has the same name on all nodes. */
  interface: z.string(),
  /** Of the node that is sent to: that of its tunnel, or the one that the tunnel ends at. */
  address: z.string(),
  mac: z.string(),
});
const Entries = z.object({ rows: z.array(Entry) });

const TUNNEL = /^(?:flannel(?:-v6)?\.\d{1,8}|vxlan(?:-v6)?\.calico)$/;
const NEIGHBOR = /^([0-9a-f.:]{2,45}) (?:dev (\S{1,15}) )?lladdr ([0-9a-f:]{17})(?: router)? PERMANENT\s{0,4}$/i;
const ARP = /^\S{1,253} \(([0-9.]{7,15})\) at ([0-9a-f:]{17}) \[ether\] PERM on (\S{1,15})\s{0,4}$/i;
const ARP_TABLE = /^([0-9.]{7,15})\s{1,40}ether\s{1,8}([0-9a-f:]{17})\s{1,8}CM\s{1,40}(\S{1,15})\s{0,4}$/i;
const FDB = /^([0-9a-f:]{17}) (?:dev (\S{1,15}) )?dst ([0-9a-f.:]{2,45}) (?:via \S{1,15} )?(?:link-netnsid \d{1,9} )?self permanent\s{0,4}$/i;

export const peerEntry = defineFact({
  id: "peer-entry",
  title: "To which hardware addresses a neighbouring node sends through its tunnel (pasted only)",
  commands: [],
  ofNeighbours: true,
  recognize(argv): View | undefined {
    const words = operands(argv);
    const asked = (argv[0] === "ip" && /^n(?:eigh(?:bou?r)?)?$/.test(words[0] ?? "")) || (argv[0] === "bridge" && words[0] === "fdb") || argv[0] === "arp";
    return asked ? { format: words[words.indexOf("dev") + 1 || words.length] ?? "", complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 } : undefined;
  },
  schema: Entries,
  parse({ text, view }) {
    const rows: z.infer<typeof Entry>[] = [];
    for (const { line, text: content } of lines(text)) {
      if (isPromptLine(content)) continue;
      const [, address, at = view.format, mac] = NEIGHBOR.exec(content) ?? [];
      const [, hardware, on = view.format, end] = FDB.exec(content) ?? [];
      const [, neighbor, sentTo, behind = ""] = ARP.exec(content) ?? ARP_TABLE.exec(content) ?? [];
      const [name, to, via] = neighbor !== undefined ? [behind, neighbor, sentTo] : mac === undefined ? [on, end, hardware] : [at, address, mac];
      const known = parseMac(via ?? "");
      // what else stands in these tables is that node's own business
      if (known !== undefined && to !== undefined && TUNNEL.test(name)) rows.push({ line, interface: name, address: to.toLowerCase(), mac: known });
    }
    return new UnparsedLines().with({ rows });
  },
});
