import { protocolName } from "./iptables-row.ts";
import { numbered } from "./service-name.ts";

/**
 * What `nft -n list …` prints as numbers, in the words of the plain listing, so that the readers meet only those; and the numbers of ports of which `nft -S list …`
 * prints the names:
 *
 *     ct state 0x2,0x4 accept                      ct state established,related accept
 *     ct state vmap { 0x1 : drop, 0x2 : accept }   ct state vmap { invalid : drop, established : accept }
 *     10.96.0.10 . 17 . 53 : goto c                10.96.0.10 . udp . 53 : goto c
 *     tcp dport { "http", "https" } accept         tcp dport { 80, 443 } accept
 *
 * Lines stay lines. What no reader asks for (types of ICMP, flags of TCP) stays a number.
 */
export function inWords(given: string): string {
  const text = NAMED.test(given)
    ? given
        .replace(NAMED_PORTS, (ports) => numbered(ports.replaceAll('"', "")))
        .replace(NAMED_BEHIND, (_all, before: string, name: string) => before + numbered(name))
    : given;
  if (!NUMERIC.test(text)) return text;
  return text
    .replace(COMPARED, (_all, key: string, relation: string, values: string) => {
      const name = NAMES[key.startsWith("fib ") ? "fib" : key] as Name;
      return `${key}${relation} ${values.replace(MEMBER, (_member, before: string, number: string) => before + (name(Number(number)) ?? number))}`;
    })
    .replace(REJECTED, (_all, family: string, code: string) => `reject with ${family} ${REJECTIONS[family]?.(Number(code)) ?? code}`)
    .replace(IN_TUPLE, protocolName);
}

type Name = (value: number) => string | undefined;
const names =
  (known: Readonly<Record<number, string>>): Name =>
  (value) =>
    known[value];
const protocol: Name = (value) => protocolName(String(value));
const ethertype = names({ 2048: "ip", 2054: "arp", 33024: "vlan", 34525: "ip6" });

/** By what is compared; the type that `fib` finds an address to be is the one of `iptables -m addrtype`. */
const NAMES: Readonly<Record<string, Name>> = {
  "ct state": names({ 1: "invalid", 2: "established", 4: "related", 8: "new", 64: "untracked" }),
  "ct status": names({ 1: "expected", 2: "seen-reply", 4: "assured", 8: "confirmed", 16: "snat", 32: "dnat", 512: "dying" }),
  "meta l4proto": protocol,
  "ip protocol": protocol,
  "ip6 nexthdr": protocol,
  "meta nfproto": names({ 2: "ipv4", 10: "ipv6" }),
  "meta protocol": ethertype,
  "ether type": ethertype,
  "meta pkttype": names({ 0: "unicast", 1: "broadcast", 2: "multicast" }),
  fib: names({ 1: "unicast", 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast", 6: "blackhole", 7: "unreachable", 8: "prohibit" }),
};
/** Codes of ICMP, as `reject with icmp 3` has them. */
const REJECTIONS: Readonly<Record<string, Name>> = {
  icmp: names({
    0: "net-unreachable",
    1: "host-unreachable",
    2: "prot-unreachable",
    3: "port-unreachable",
    9: "net-prohibited",
    10: "host-prohibited",
    13: "admin-prohibited",
  }),
  icmpv6: names({ 0: "no-route", 1: "admin-prohibited", 3: "addr-unreachable", 4: "port-unreachable" }),
  icmpx: names({ 0: "no-route", 1: "port-unreachable", 2: "host-unreachable", 3: "admin-prohibited" }),
};

const NUMBER = String.raw`(?:0x[\da-f]{1,8}|\d{1,10})`;
const KEY = String.raw`ct state|ct status|meta l4proto|ip protocol|ip6 nexthdr|meta nfproto|meta protocol|ether type|meta pkttype|fib [sd]addr(?: \. [a-z]{1,8}){0,3} type|fib result type flags [sd]addr(?:, [a-z]{1,8}){0,3}`;
const NUMERIC = new RegExp(String.raw`\b(?:${KEY})(?: (?:!=|==|vmap))? (?:\{ ?)?${NUMBER}|[{,.\s]\d{1,3} \. \d`);
const COMPARED = new RegExp(String.raw`\b(${KEY})((?: (?:!=|==|vmap))?) (\{[^{}\n]{1,4000}\}|${NUMBER}(?:(?:, ?| [|] | / )${NUMBER}){0,12}(?![\w.:/-]))`, "g");
/** A number that is a member of a set, a key of a map, or stands alone. */
const MEMBER = new RegExp(`(^|[{,|/] ?)(${NUMBER})(?=$| ?[:,}]| [|/])`, "g");
const REJECTED = /\breject with (icmp|icmpv6|icmpx) (?:type )?(\d{1,3})\b/g;
/** The protocol before a port. */
const IN_TUPLE = /(?<![\w.:/-])(?:6|17|33|132|136)(?= \. \d)/g;
/** A port by its name, which `nft -S` puts in quotes. */
const NAMED = /(?:port (?:!= )?(?:\{ ?)?| \. |:)"[a-z]/;
const NAMED_PORTS = /(?<=\b[sd]port (?:!= )?)(?:\{[^{}\n]{1,4000}\}|"[\w-]{1,40}")/g;
/** Behind the protocol of a tuple, and of what `dnat` leads to. */
const NAMED_BEHIND = /( \. |:)"([a-z][\w-]{0,40})"/g;
