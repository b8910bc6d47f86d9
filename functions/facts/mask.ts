import { type Family, type Prefix, parseMac, parsePrefix } from "./ip-address.ts";

/**
 * Text that a person painted over before showing it: `10.x.x.x`, `XX.XX.XX.XX/24`, `2001:db8:xxxx::1`, `02:00:5e:xx:xx:xx`, `<redacted>`, `[NODE_IP]`, `***`.
 *
 * A parser keeps such text where an address stands ({@link readPrefix}, {@link readMac}), so that the row does not vanish. It is no address: addressFamily(),
 * parsePrefix() and everything that calculates say "unknown" of it. Two that look alike need not be the same, so the reader notes the fields
 * ({@link noteMasked}), rules cannot compare them (functions/rules/view.ts), and derived facts do not see them ({@link withoutMasked}).
 */

/** What stands for one number or for several: a letter again and again, stars, a word in angle brackets. */
const HOLE = "(?:\\d{0,2}(?:[xX]{1,3}|[*#]{1,3})|([A-WYZa-wyz])\\1{0,2}|<[\\w-]{1,24}>)";
const DOTTED = /^[\w*#<>.-]{7,64}$/;
const PART = new RegExp(`^(?:\\d{1,3}|${HOLE})$`);
/** IPv6, with holes of `x` and `*` in it. */
const COLONS = /^[0-9a-fA-FxX*:.]{3,45}$/;
const HOLED_MAC = /^(?=.{0,16}[xX*#])(?:[0-9a-fA-FxX]{1,2}|[*#]{1,2})(?:[:-](?:[0-9a-fA-FxX]{1,2}|[*#]{1,2})){5}$/;
/** A bridge's id: priority and hardware address. */
const HOLED_BRIDGE = /^[0-9a-f]{4}\.(?=[0-9a-f]{0,11}[xX*])[0-9a-fxX*]{12}$/;
const CLOSED = "redact|masked|hidden|removed|omitted|censor|anonym|scrub|secret|private|public|snip";
const NAMED = "(?:[a-z0-9]{1,16}[-_.]){0,4}(?:ipv?[46]?s?|cidr|addr|address|mac|subnet|prefix|gateway|gw|x{2,4}|host|hostname|node)(?:[-_.]?\\d{1,4})?";
/** A bare word is taken only where it cannot be a state ("masked", "hidden"). */
const WORD = new RegExp(
  `^(?:\\*{3,16}|x{3,16}|(?:redacted|censored|anonymi[sz]ed)[\\w-]{0,24}|[<[({](?:[\\w.-]{0,24}(?:${CLOSED})[\\w.-]{0,24}|${NAMED}|\\*{1,16}|\\.{3})[>\\])}])$`,
  "i",
);
/** Something in an output that may be one: nearly all outputs have none, and need not be looked at field by field. What iptables-save says of itself is none. */
const HINT =
  /[xX*#>]\.[\dxX*#<]|[xX*#]{2}[:/]|:[xX*#]{2}|\*{3}|xxx|\b[A-Za-z]{1,3}\.[A-Za-z]{1,3}\.[A-Za-z]{1,3}\.|(?!\((?:nf_tables|legacy)\))[<[({][\w.*-]{1,64}[>\])}]|redacted|censored|anonymi/i;
/** What every masked text has one of. */
const MAY_BE = /[xX*#<[({]|[A-Za-z]\.[A-Za-z]{1,3}\.|redacted|censored|anonymi/i;
const SUFFIX = /(?:\/\d{1,3})?(?::\d{1,5})?$/;

/** True if the text stands where something was painted over, with or without a prefix length or a port behind it. */
export function isMasked(text: string): boolean {
  if (text.length < 3 || text.length > 80 || !MAY_BE.test(text)) return false;
  const bare = text.replace(SUFFIX, "");
  return shapeOf(bare) !== undefined || HOLED_MAC.test(text) || HOLED_BRIDGE.test(text) || WORD.test(bare);
}

/** The family that a painted-over address shows; undefined if it is none, or does not tell (`<redacted>`). */
function shapeOf(text: string): Family | undefined {
  if (DOTTED.test(text) && text.includes(".")) {
    const parts = text.split(".");
    return parts.length === 4 && parts.every((part) => PART.test(part)) && !parts.every((part) => /^\d+$/.test(part)) ? "ipv4" : undefined;
  }
  const holed = COLONS.test(text) && /[xX*]/.test(text) && text.split(":").length >= 3 && text.split(":").every((group) => group.length <= 4);
  return holed && !HOLED_MAC.test(text) ? "ipv6" : undefined;
}

/**
 * {@link parsePrefix}, and beyond it addresses and prefixes that are painted over, whose text stays as it stands.
 * `expected`: the family where the text itself does not tell, which is then given; without it such a text is not taken.
 */
export function readPrefix(text: string, expected?: Family): Prefix | undefined {
  const parsed = parsePrefix(text);
  if (parsed !== undefined) return parsed;
  if (text.length < 3 || text.length > 80) return undefined;
  const slash = text.lastIndexOf("/");
  const address = slash === -1 ? text : text.slice(0, slash);
  const digits = slash === -1 ? undefined : text.slice(slash + 1);
  const family = shapeOf(address) ?? (WORD.test(address) ? expected : undefined);
  if (family === undefined || (digits !== undefined && !/^(?:\d{1,3}|[xX*]{1,3})$/.test(digits))) return undefined;
  const length = digits === undefined || !/^\d/.test(digits) || Number(digits) > (family === "ipv4" ? 32 : 128) ? undefined : Number(digits);
  return { family, address, length, prefix: text };
}

/** The family of an address, painted over or not, without a length; undefined for anything else. */
export function readFamily(text: string, expected?: Family): Family | undefined {
  const read = readPrefix(text, expected);
  return read === undefined || text.includes("/") ? undefined : read.family;
}

/** {@link parseMac}, or the text as it stands if it is painted over. */
export function readMac(text: string): string | undefined {
  return parseMac(text) ?? (HOLED_MAC.test(text) ? text.toLowerCase() : WORD.test(text) ? text : undefined);
}

/** How far into an output it is looked whether something is painted over at all: nobody does that by hand to more, and a script does it from the start. */
const LOOKED_AT = 30_000;

type Fields = Record<string, unknown>;
const rowLists = (value: unknown): [string, Fields[]][] =>
  Object.entries((value ?? {}) as Fields).flatMap(([name, list]) => (Array.isArray(list) ? [[name, list as Fields[]] as [string, Fields[]]] : []));

/** Notes on each row of a fact's value which of its fields are painted over (`masked`). Returns whether there are any. Linear. */
export function noteMasked(value: unknown, text: string): boolean {
  if (!HINT.test(text.slice(0, LOOKED_AT))) return false;
  let found = false;
  for (const [, rows] of rowLists(value)) {
    for (const row of rows) {
      const masked: string[] = [];
      for (const name in row) {
        const field = row[name];
        if (typeof field === "string" && name !== "text" && isMasked(field)) masked.push(name);
      }
      if (masked.length === 0) continue;
      row["masked"] = masked;
      found = true;
    }
  }
  return found;
}

/** True if a field of any row is painted over. */
export const hasMasked = (value: unknown): boolean => rowLists(value).some(([, rows]) => rows.some((row) => row["masked"] !== undefined));

/**
 * The fact's value without what is painted over. Where that is only a hardware address that a row of the list may lack (`lacksMac`), it goes, else the row:
 * a rule without its source, or a route without its gateway, says something else.
 */
export function withoutMasked<T>(value: T, lacksMac: (list: string) => boolean): T {
  const result: Fields = { ...(value as Fields) };
  let lost = false;
  for (const [name, rows] of rowLists(value)) {
    const known = rows.flatMap((row) => {
      const masked = row["masked"] as readonly string[] | undefined;
      if (masked === undefined) return [row];
      if (masked.some((field) => field !== "mac") || !lacksMac(name)) return [];
      return [Object.fromEntries(Object.entries(row).filter(([field]) => field !== "masked" && field !== "mac"))];
    });
    lost ||= known.length < rows.length;
    result[name] = known;
  }
  // that all of something was listed is not true of what is left
  if (lost && Array.isArray(result["listings"])) result["listings"] = [];
  return result as T;
}
