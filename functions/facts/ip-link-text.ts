import { lines, type UnparsedLines } from "./fact.ts";
import { readFamily, readMac } from "./mask.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/** One interface of `ip link` or `ip addr`, as its text forms show it. */
export interface LinkText {
  readonly line: number;
  readonly interface: string;
  readonly peer?: string;
  readonly index?: number;
  readonly flags: string[];
  mtu?: number;
  qdisc?: string;
  master?: string;
  state?: string;
  mac?: string;
  peerNamespace?: string;
  alias?: string;
  /** The words of the `-d` lines, each of which begins with the kind: `vxlan id 42 …`, `bridge_slave state forwarding …`. */
  details: { line: number; words: string[] }[];
  /** Counters by column name ("bytes", "packets", …), with the line of the numbers. */
  rx?: Counters;
  tx?: Counters;
}

export interface Counters {
  readonly line: number;
  readonly values: Record<string, number>;
}

/** A line that tells of an address (`inet 10.0.0.5/24 …`), left to the address fact. */
export interface AddressText {
  readonly line: number;
  readonly interface: string;
  /** From `inet` or `inet6` on. */
  readonly words: string[];
}

const INDEX = /^\d{1,10}:$/;
/** Stands where an index was not copied: the kernel counts from 1. */
const UNCOPIED = "0:";
const NAME = /^[^\s/]{1,127}$/;
const FLAGS = /^<[A-Z0-9_,-]{0,400}>$/;
/** Words of the first line that a value stands behind. */
const HEADER_PAIRS = new Set(["mtu", "qdisc", "master", "vrf", "state", "mode", "group", "qlen", "event", "protodown", "protodown_reason", "portid"]);
// `ip -4 addr` leaves the line of the hardware address out, and puts what would end it here
HEADER_PAIRS.add("link-netns").add("link-netnsid");
const HEADER_WORD = /^(?:xdp(?:generic|offload|multi)?(?:\/id:\d{1,10})?|DEFAULT|UNKNOWN)$/;
const LINK_PAIRS = new Set(["brd", "peer", "permaddr", "link-netns", "link-netnsid", "link-index", "new-netns", "new-netnsid", "new-ifindex"]);
/** Words that begin the details of a link line; versions add to what follows them. */
const DETAIL = /^(?:promiscuity|allmulti|minmtu|maxmtu|addrgenmode|numtxqueues|numrxqueues|gso_max_size)$/;
const KINDS = new Set(
  (
    "amt bareudp batadv bond bridge can dsa dummy erspan geneve gre gretap gtp hsr ifb ip6erspan ip6gre ip6gretap ip6tnl ipip ipoib ipvlan ipvtap lowpan macsec " +
    "macvlan macvtap netdevsim netkit nlmon openvswitch ovpn pfcp ppp rmnet sit team tun vcan veth virt_wifi vlan vrf vti vti6 vxcan vxlan wireguard wwan xfrm"
  ).split(" "),
);
const MEMBER = /^[a-z][a-z0-9]{1,15}_slave$/;
/** Lines that say nothing the facts hold: other names, virtual functions, attached XDP programs, lifetimes. */
const SKIPPED = /^(?:altname \S+|vf \d+ .*|prog\/xdp .*|valid_lft (?:forever|\d+sec) preferred_lft (?:forever|\d+sec))$/;
const ADDRESS_WORD = /^(?:inet6?)$/;
const HUMAN = /^(\d{1,17})(?:\.(\d{1,3}))?([kMGTP]i?)?$/;
const POWERS: Record<string, number> = { k: 1, M: 2, G: 3, T: 4, P: 5 };

/**
 * Reads the text forms of `ip link` and `ip addr` (plain, `-d`, `-s` old and new, `-o`, BusyBox). Lines it cannot account for go to `unparsed`.
 * `asked`: the one interface that the command names, whose details are told without its header, too (`ip -d link show flannel.1 | grep vxlan`).
 */
export function readLinkText(
  text: string,
  unparsed: UnparsedLines,
  asked?: string,
): { links: LinkText[]; addresses: AddressText[]; headless: Pick<LinkText, "interface" | "details">[] } {
  const headless: Pick<LinkText, "interface" | "details">[] = [];
  const links: LinkText[] = [];
  const addresses: AddressText[] = [];
  let current: LinkText | undefined;
  /** The columns of the numbers on the next line. */
  let columns: { direction: "rx" | "tx"; names: string[] } | undefined;
  /** Behind a line of a virtual function stand its counters, which are not the interface's. */
  let ofFunction = false;
  for (const { line, text: content } of lines(text)) {
    for (const segment of content.includes("\\") ? content.split(/\\(?=[ \t])/) : [content]) {
      const trimmed = segment.trim();
      const words = withIndex(trimmed.split(/\s+/));
      const first = words[0] as string;
      if (first === "") continue;
      if (INDEX.test(first)) {
        columns = undefined;
        current = undefined;
        ofFunction = false;
        const name = words[1] ?? "";
        if (ADDRESS_WORD.test(words[2] ?? "") && NAME.test(name)) addresses.push({ line, interface: split(name).interface, words: words.slice(2) });
        else {
          current = header(line, words);
          if (current === undefined) unparsed.add(line, segment);
          else links.push(current);
        }
      } else if (current === undefined && labelOf(words) !== undefined) {
        // `ip addr | grep inet`
        addresses.push({ line, interface: labelOf(words) as string, words });
      } else if (current === undefined && asked !== undefined && KINDS.has(first)) {
        headless.push({ interface: asked, details: [{ line, words }] });
      } else if (current === undefined) {
        if (!isPrompt(segment) && !(SKIPPED.test(trimmed) && addresses.length > 0)) unparsed.add(line, segment);
      } else if (columns !== undefined) {
        // the counters of a function are only checked for being such
        if (!counters(ofFunction ? { ...current } : current, columns, line, words)) unparsed.add(line, segment);
        columns = undefined;
      } else if (first === "RX:" || first === "TX:") columns = { direction: first === "RX:" ? "rx" : "tx", names: words.slice(1) };
      else if ((first === "RX" || first === "TX") && words[1] === "errors:") {
        columns = {
          direction: first === "RX" ? "rx" : "tx",
          names: words.slice(2).map((name) => (name === "overrun" || name === "missed" ? name : `error ${name}`)),
        };
      } else if (ADDRESS_WORD.test(first)) addresses.push({ line, interface: current.interface, words });
      else if (first === "alias") current.alias = trimmed.slice(6).trim();
      else if (KINDS.has(first) || MEMBER.test(first)) current.details.push({ line, words });
      else if (first.startsWith("link/")) {
        if (!linkLine(current, words)) unparsed.add(line, segment);
      } else if (SKIPPED.test(trimmed)) ofFunction ||= first === "vf";
      else if (!isPrompt(segment)) unparsed.add(line, segment);
    }
  }
  return { links, addresses, headless };
}

/**
 * The interface of an address whose header was left out: an IPv4 address ends with its label, which begins with the interface's name (`… scope global eth0:1`). Of
 * IPv6 nothing tells.
 */
function labelOf(words: readonly string[]): string | undefined {
  const [label, before] = [words.at(-1) ?? "", words.at(-2) ?? ""];
  const told =
    words[0] === "inet" &&
    words.length > 3 &&
    words.includes("scope") &&
    before !== "scope" &&
    !/^(?:secondary|dynamic|noprefixroute|deprecated|tentative|permanent)$/.test(label);
  return told && NAME.test(label) ? label.replace(/:[^:]{0,15}$/, "") : undefined;
}

/** Whoever copies one interface out of a list often leaves its index behind: `flannel.1: <BROADCAST,MULTICAST> mtu 1450 …` gets one that says nothing. */
const withIndex = (words: string[]): string[] =>
  words[2] === "mtu" && (words[0] ?? "").endsWith(":") && FLAGS.test(words[1] ?? "") ? [UNCOPIED, ...words] : words;

/** Takes `eth0@if3:` apart. `@NONE` means that there is no peer. */
export function split(name: string): { interface: string; peer?: string } {
  const bare = name.endsWith(":") ? name.slice(0, -1) : name;
  const at = bare.lastIndexOf("@");
  if (at <= 0) return { interface: bare };
  const peer = bare.slice(at + 1);
  return { interface: bare.slice(0, at), ...(peer === "NONE" || peer === "" ? {} : { peer }) };
}

/** `3: eth0@if2: <UP> mtu 1400 qdisc noqueue master br0 state UP mode DEFAULT group default qlen 1000` */
function header(line: number, words: readonly string[]): LinkText | undefined {
  const [index, name, flags] = words as [string, string?, string?];
  if (name === undefined || flags === undefined || !name.endsWith(":") || !NAME.test(name) || !FLAGS.test(flags)) return undefined;
  const pairs: Record<string, string> = {};
  for (let i = 3; i < words.length; i++) {
    const word = words[i] as string;
    if (HEADER_PAIRS.has(word) && i + 1 < words.length) pairs[word] = words[++i] as string;
    else if (!HEADER_WORD.test(word)) return undefined;
  }
  const mtu = Number(pairs["mtu"] ?? "");
  if (pairs["mtu"] === undefined || !Number.isSafeInteger(mtu)) return undefined;
  const number = index === UNCOPIED ? undefined : Number(index.slice(0, -1));
  const peerNamespace = pairs["link-netns"] ?? pairs["link-netnsid"];
  const values = present({ index: number, qdisc: pairs["qdisc"], master: pairs["master"] ?? pairs["vrf"], state: pairs["state"], peerNamespace });
  const named = split(name);
  // BusyBox looks the peer's number up among the interfaces here, and finds this one: the peer is in another namespace
  if (named.peer === named.interface && number !== undefined) named.peer = `if${number}`;
  return { line, ...named, flags: flags.slice(1, -1).split(",").filter(Boolean), mtu, ...values, details: [] };
}

/** `link/ether fa:24:fc:e6:d1:45 brd ff:ff:ff:ff:ff:ff link-netns pod1 promiscuity 1 …` */
function linkLine(link: LinkText, words: readonly string[]): boolean {
  let i = 1;
  const address = words[1];
  if (address !== undefined && !LINK_PAIRS.has(address) && !DETAIL.test(address)) {
    // tunnels have an IP address here
    const mac = readMac(address);
    if (mac === undefined && !/^[0-9a-fA-F:.]{2,64}$/.test(address) && readFamily(address) === undefined) return false;
    if (mac !== undefined) link.mac = mac;
    i = 2;
  }
  for (; i < words.length; i++) {
    const word = words[i] as string;
    if (DETAIL.test(word)) return true;
    const value = words[i + 1];
    if (!LINK_PAIRS.has(word) || value === undefined) return false;
    if (word === "link-netns" || word === "link-netnsid") link.peerNamespace = value;
    i++;
  }
  return true;
}

function counters(link: LinkText, { direction, names }: { direction: "rx" | "tx"; names: readonly string[] }, line: number, words: readonly string[]): boolean {
  const values: Record<string, number> = {};
  if (words.length !== names.length || names.length > 32) return false;
  for (const [i, word] of words.entries()) {
    const match = HUMAN.exec(word);
    if (match === null) return false;
    const unit = match[3] === undefined ? 1 : (match[3].endsWith("i") ? 1024 : 1000) ** (POWERS[match[3][0] as string] ?? 0);
    const number = Math.round(Number(`${match[1]}.${match[2] ?? "0"}`) * unit);
    values[names[i] as string] = Math.min(number, Number.MAX_SAFE_INTEGER);
  }
  // The errors broken down (`-s -s`) complete the counters above them.
  link[direction] = { line: link[direction]?.line ?? line, values: { ...link[direction]?.values, ...values } };
  return true;
}
