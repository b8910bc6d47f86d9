import { defineFact, type View } from "./fact.ts";
import { type Request, requestOf } from "./iptables-command.ts";
import { merge, tableKnown } from "./iptables-merge.ts";
import { Iptables } from "./iptables-row.ts";
import { readSorted } from "./iptables-sorted.ts";
import { Reader } from "./iptables-text.ts";

export const iptables = defineFact<Iptables>({
  id: "iptables",
  title: "Rules and chains of iptables and ip6tables, of both backends",
  commands: [
    { argv: ["iptables-save", "-c"], samples: 2 },
    { argv: ["ip6tables-save", "-c"] },
    { argv: ["iptables-legacy-save", "-c"] },
    { argv: ["ip6tables-legacy-save", "-c"] },
  ],
  recognize(argv): View | undefined {
    const request = requestOf(argv);
    if (request === undefined) return undefined;
    const { family, backend, format, table, chain, verbose, numeric } = request;
    const rank = (format === "save" ? 7 : format === "rules" ? 5 : numeric ? 3 : 1) + (verbose ? 1 : 0);
    const scope = [backend === "unknown" ? family : `${family}/${backend}`, table, chain].filter((part) => part !== undefined).join(" ");
    // One chain is a scope of its own, and complete in it: a filter or a cut, which only the reader of the capture knows, must not look like that.
    return { format, complete: true, scope, rank };
  },
  schema: Iptables,
  parse(input) {
    const request = requestOf(input.argv) ?? requestOf(["iptables-save"]);
    if (input.sorted === true) return readSorted(input, request as Request);
    return new Reader(input, request as Request).read();
  },
  merge,
  whole: (parts) => tableKnown(parts, "filter") && tableKnown(parts, "nat"),
});
