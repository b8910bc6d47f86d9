import type { Input, Parsed } from "./fact.ts";
import type { Request } from "./iptables-command.ts";
import { changed, type Iptables } from "./iptables-row.ts";
import { orphanChain, Reader } from "./iptables-text.ts";

/** `   2871 -A INPUT …`: what `uniq -c` puts in front. Group 1: how often. */
const COUNTED = /^\s{0,20}(\d{1,9}) (?=[-[:*#A-Z])/;

/**
 * Reads rules that went through `sort` (and `uniq -c`): which tables and chains there are, where a chain ends, and which rule stands before which is lost. So
 * rules have position 0, and no chain is complete. Of a listing (-L) only those rules are read that tell their chain. Lines keep their numbers.
 */
export function readSorted(input: Input, request: Request): Parsed<Iptables> {
  const copies: (number | undefined)[] = [];
  const rules = input.text.split("\n").map((line) => {
    const count = COUNTED.exec(line);
    copies.push(count === null ? undefined : Number(count[1]));
    const rule = count === null ? line.trimStart() : line.slice(count[0].length);
    const known = request.format === "list" ? orphanChain(rule, request.table) !== undefined : /^(?:\[\d{1,20}:\d{1,20}\] )?-A /.test(rule);
    return known ? rule : "";
  });
  const parsed = new Reader({ ...input, text: rules.join("\n"), view: { ...input.view, complete: false } }, request).read();
  const rows = parsed.value.rows.map((row) => {
    const count = copies[row.line - 1];
    return changed(row, { position: 0, ...(count === undefined ? {} : { copies: count }) });
  });
  const chains = parsed.value.chains.map((chain) => ({ ...chain, complete: false }));
  return { ...parsed, value: { ...parsed.value, chains, rows, programs: [] } };
}
