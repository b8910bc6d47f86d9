import type { Family } from "./ip-address.ts";
import { prefixBits, widthOf } from "./ip-bits.ts";

/** Addresses from `low` to `high`, both included, as numbers. */
export interface Range {
  readonly family: Family;
  readonly low: bigint;
  readonly high: bigint;
}

/** How two ranges lie: every address of the first is in the second, none is, or some are. */
export type Overlap = "inside" | "apart" | "partly";

/** The range of an address (`10.0.0.5`), a prefix (`10.0.0.0/8`, host bits allowed) or a range (`10.0.0.5-10.0.0.9`). Undefined for anything else. */
export function rangeOf(text: string): Range | undefined {
  const dash = text.indexOf("-");
  if (dash !== -1) {
    const [from, to] = [rangeOf(text.slice(0, dash)), rangeOf(text.slice(dash + 1))];
    if (from === undefined || to?.family !== from.family || to.high < from.low) return undefined;
    return { family: from.family, low: from.low, high: to.high };
  }
  const prefix = prefixBits(text);
  if (prefix === undefined) return undefined;
  const { family, network, length } = prefix;
  return { family, low: network, high: network + (1n << BigInt(widthOf(family) - length)) - 1n };
}

/** How `inner` lies in `outer`; apart if they are of different families. */
export function overlap(inner: Range, outer: Range): Overlap {
  if (inner.family !== outer.family || inner.high < outer.low || inner.low > outer.high) return "apart";
  return inner.low >= outer.low && inner.high <= outer.high ? "inside" : "partly";
}
