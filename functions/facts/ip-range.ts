import { addressFamily, type Family } from "./ip-address.ts";
import { addressBits, widthOf } from "./ip-bits.ts";

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
  const slash = text.indexOf("/");
  const address = slash === -1 ? text : text.slice(0, slash);
  const family = addressFamily(address);
  if (family === undefined) return undefined;
  const width = widthOf(family);
  const length = slash === -1 ? width : Number(text.slice(slash + 1));
  if (!Number.isInteger(length) || length < 0 || length > width || slash === text.length - 1) return undefined;
  const value = addressBits(address) as bigint;
  const rest = (1n << BigInt(width - length)) - 1n;
  return { family, low: value & ~rest, high: value | rest };
}

/** How `inner` lies in `outer`; apart if they are of different families. */
export function overlap(inner: Range, outer: Range): Overlap {
  if (inner.family !== outer.family || inner.high < outer.low || inner.low > outer.high) return "apart";
  return inner.low >= outer.low && inner.high <= outer.high ? "inside" : "partly";
}
