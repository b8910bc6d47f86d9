import type { IptablesRow } from "./iptables-row.ts";

/**
 * Rules by chain. Nearly every question is about the few rules of one chain, and a node has 100,000: the list is walked once for all of them. The rules of a chain
 * stand together in every format, so what is kept is where the chain changes.
 */
interface Runs {
  /** Where each begins; behind the last one the number of rules. */
  readonly starts: readonly number[];
  /** The last run of each name, and of each run the one before it of the same name (-1: none). */
  readonly last: ReadonlyMap<string, number>;
  readonly before: readonly number[];
}

/** Lists live as long as the facts of one capture. */
const known = new WeakMap<readonly IptablesRow[], Runs>();

function runsOf(rows: readonly IptablesRow[]): Runs {
  const earlier = known.get(rows);
  if (earlier !== undefined) return earlier;
  const starts: number[] = [];
  const last = new Map<string, number>();
  const before: number[] = [];
  let first: IptablesRow | undefined;
  for (let i = 0; i < rows.length; i++) {
    const row = rows[i] as IptablesRow;
    if (first !== undefined && row.chain === first.chain && row.table === first.table && row.backend === first.backend && row.family === first.family) continue;
    before.push(last.get(row.chain) ?? -1);
    last.set(row.chain, starts.length);
    starts.push(i);
    first = row;
  }
  starts.push(rows.length);
  const runs = { starts, last, before };
  known.set(rows, runs);
  return runs;
}

/** Places between which the rules are of one chain of one table: each begins a chain, the last one is behind the last rule. `[0]` for no rules. */
export const chainStarts = (rows: readonly IptablesRow[]): readonly number[] => runsOf(rows).starts;

/** The rules of the chains of that name (in every table, family and backend), in their order. */
export function rulesOf<R extends IptablesRow>(rows: readonly R[], chain: string): R[] {
  const { starts, last, before } = runsOf(rows);
  const runs: R[][] = [];
  for (let run = last.get(chain) ?? -1; run !== -1; run = before[run] as number) runs.push(rows.slice(starts[run], starts[run + 1]));
  return runs.reverse().flat();
}
