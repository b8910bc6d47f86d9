import { z } from "zod";
import { hasLetter, isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { readFamily, readMac } from "./mask.ts";
import { isCalled } from "./node-name.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Answers to ARP requests that somebody sent with arping or arp-scan, or for IPv6 with ndisc6. netcheck itself sends none: a node is only read.
 *
 *     Unicast reply from 10.0.0.5 [52:54:00:11:22:33]  0.741ms
 */
const Reply = z.object({
  line: z.int(),
  address: z.string(),
  /** Lower case, colons. */
  mac: z.string(),
  interface: z.string().optional(),
  /** True if it was asked whether the address is in use (-D): of the node's own address any answer is a conflict, of another host's it is normal. */
  duplicateCheck: z.boolean(),
  /** True if the node of the capture is called by this address. */
  own: z.boolean().optional(),
  /** True of what somebody saw with tcpdump: nobody asked for it, and some time may lie between two of them. */
  heard: z.boolean().optional(),
  /** Of what was heard: true if this hardware address spoke for the address before, and another one in between; or if two answered one request. */
  returned: z.boolean().optional(),
});
const Arping = z.object({ rows: z.array(Reply) });
export type ArpAnswer = z.infer<typeof Reply>;

// iputils, and BusyBox, which is the same
const IPUTILS = /^(?:Unicast|Broadcast) reply from (\S{3,40}) \[([^\]\s]{3,24})\]/;
// Thomas Habets' arping
const HABETS = /^\d{1,6} bytes from (\S{3,24}) \(([^)\s]{3,40})\): index=/;
// arp-scan: "10.0.0.5\t52:54:00:11:22:33\tQEMU virtual NIC (DUP: 2)"
const SCANNED = /^(\d{1,3}(?:\.\d{1,3}){3})\s{1,20}([\da-f]{2}(?::[\da-f]{2}){5})(?:\s|$)/i;
const SCAN_FRAME =
  /^(?:Interface: (\S{1,15}), .*|Starting arp-scan .*|Ending arp-scan .*|\d{1,9} packets received by filter, .*|WARNING: .*|Target list from interface network .*)$/;
// tcpdump, with -e and without: "ARP, Reply 10.0.0.5 is-at 52:54:00:11:22:33, length 28", "52:54:00:11:22:33 > ff:ff:ff:ff:ff:ff, …: Request who-has 10.0.0.1 tell 10.0.0.5, length 46"
const HEARD_REPLY = /\breply (\d{1,3}(?:\.\d{1,3}){3}) is-at ([\da-f:]{11,17})\b/i;
const HEARD_REQUEST = /(?:^|\s)([\da-f:]{17}) (?:\(.{1,40}?\) )?> .{0,120}?\bwho-has \S{1,40}(?: \(\S{1,40}\))? tell (\d{1,3}(?:\.\d{1,3}){3})\b/i;
// IPv6, with -e: "52:54:00:11:22:33 > 52:54:00:aa:bb:cc, …: 2001:db8::5 > 2001:db8::1: ICMP6, neighbor advertisement, tgt is 2001:db8::5, length 32"
const HEARD_ADVERTISEMENT =
  /(?:^|\s)([\da-f:]{17}) (?:\(.{1,40}?\) )?> .{0,200}?\bneighbor advertisement, (?:length \d{1,4}, )?tgt is ([\da-f:]{3,45})(?:,|\s|$)/i;
// to whom an answer goes: an announcement goes to everybody
const ANSWERED = /(?:^|\s)[\da-f:]{17} (?:\(.{1,40}?\) )?> ([\da-f:]{17})\b/i;
const ASKED_FOR = /\bwho-has (\d{1,3}(?:\.\d{1,3}){3})\b(?:.{0,60}? tell (\d{1,3}(?:\.\d{1,3}){3}|[\w.-]{1,80}))?/;
const EVERYBODY = "ff:ff:ff:ff:ff:ff";
/** When tcpdump saw a packet: "19:47:54.271451", with -tttt behind the date. */
const SEEN = /^(?:\d{4}-\d{2}-\d{2} )?(\d{2}):(\d{2}):(\d{2}\.\d{3,9}) /;
/** Seconds within which an answer follows its request: what is announced at this very moment would be a rare chance. */
const AT_ONCE = 0.02;
const MAX_HEARD = 500;
/** Who answers for more addresses of others does so on purpose. */
const MAX_SHARED = 2;
// ndisc6: "Target link-layer address: 52:54:00:11:22:33", and in the next line " from fe80::1", the address that was asked for
const TARGET = /^Target link-layer address: ([\da-fA-F:]{11,17})$/;
const FROM = /^from ([\da-fA-F:.]{2,45})(?:%\S{1,15})?$/;
const NDISC_FRAME = /^(?:Soliciting .*|Timed out\.?|No response\.?|\(\d{1,3}\/\d{1,3}\).*)$/;
const FRAME =
  /^(?:ARPING .*|Sent \d{1,9} probe.*|Received \d{1,9} (?:response|reply|repl).*|--- .* statistics ---|\d{1,9} packets transmitted, .*|rtt min\/avg.*|Timeout|Interface ".{1,15}" is down)$/;

export const arping = defineFact({
  id: "arping",
  title: "Answers to ARP requests (arping, arp-scan, ndisc6)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] === "tcpdump") return { format: "heard", complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 0 };
    if (argv[0] === "arp-scan") return { format: "scan", complete: false, scope: argv.join(" ").slice(0, 200), rank: 1 };
    if (argv[0] === "ndisc6" && argv.length > 2) return { format: "ndisc", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
    if (argv[0] !== "arping" || argv.length < 2) return undefined;
    return { format: hasLetter(argv, "D") ? "duplicate" : "ask", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
  },
  schema: Arping,
  parse({ text, argv, view, names = [] }) {
    const unparsed = new UnparsedLines();
    const rows: ArpAnswer[] = [];
    const name =
      optionValue(argv, "-I", "-i", "--interface") ??
      argv[argv.findIndex((word) => view.format === "heard" && /^-[a-zA-Z]{1,8}i$/.test(word)) + 1 || argv.length];
    if (view.format === "scan") return scanned(text, name);
    if (view.format === "heard") return unparsed.with({ rows: heardIn(text, name === "any" ? undefined : name) });
    // of ndisc6: the address stands in the line behind
    let told: { line: number; mac: string } | undefined;
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim();
      if (view.format === "ndisc") {
        const mac = readMac(TARGET.exec(bare)?.[1] ?? "");
        const from = FROM.exec(bare)?.[1]?.toLowerCase();
        if (mac !== undefined) told = { line, mac };
        else if (told !== undefined && from !== undefined && readFamily(from, "ipv6") === "ipv6") {
          rows.push({ ...told, address: from, ...present({ interface: argv.at(-1) }), duplicateCheck: false, ...(isCalled(names, from) ? { own: true } : {}) });
          told = undefined;
        } else if (!NDISC_FRAME.test(bare) && !isPromptLine(content)) unparsed.add(line, content);
        continue;
      }
      const iputils = IPUTILS.exec(bare);
      const habets = iputils === null ? HABETS.exec(bare) : null;
      const address = iputils?.[1] ?? habets?.[2];
      const mac = readMac(iputils?.[2] ?? habets?.[1] ?? "");
      if (address !== undefined && readFamily(address, "ipv4") === "ipv4" && mac !== undefined)
        rows.push({
          line,
          address,
          mac,
          ...present({ interface: name }),
          duplicateCheck: view.format === "duplicate",
          ...(isCalled(names, address) ? { own: true } : {}),
        });
      else if (!FRAME.test(bare) && !isPromptLine(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
  ...eachOnItsOwn,
});

/** Who answered the questions for all addresses of a subnet. The node itself does not. */
function scanned(text: string, asked: string | undefined) {
  const unparsed = new UnparsedLines();
  const rows: ArpAnswer[] = [];
  let name = asked;
  for (const { line, text: content } of lines(text)) {
    const [, address, written = ""] = SCANNED.exec(content.trim()) ?? [];
    const mac = readMac(written);
    const frame = SCAN_FRAME.exec(content.trim());
    if (frame?.[1] !== undefined) name = frame[1];
    if (address !== undefined && mac !== undefined && readFamily(address, "ipv4") === "ipv4")
      rows.push({ line, address, mac, ...present({ interface: name }), duplicateCheck: false });
    else if (frame === null && content.trim() !== "" && !isPromptLine(content)) unparsed.add(line, content);
  }
  // a router with proxy ARP answers beside everybody
  const owners = Map.groupBy(rows, (row) => row.address);
  const beside = rows.filter((row) => owners.get(row.address)?.some((other) => other.mac !== row.mac));
  const proxies = new Set([...Map.groupBy(beside, (row) => row.mac)].filter(([, own]) => own.length > MAX_SHARED).map(([mac]) => mac));
  return unparsed.with({ rows: rows.filter((row) => !proxies.has(row.mac)) });
}

/** Who spoke for which address. All other packets are about other things. */
function heardIn(text: string, name: string | undefined): ArpAnswer[] {
  const rows: ArpAnswer[] = [];
  // who answered whom since an address was last asked for: of one request only one host answers
  const answers = new Map<string, { at: number | undefined; given: { to: string; mac: string }[] }>();
  for (const { line, text: content } of lines(text)) {
    if (content.length > 600 || rows.length >= MAX_HEARD) continue;
    const [, target, asker] = ASKED_FOR.exec(content) ?? [];
    // an address that asks for itself is announced
    if (target !== undefined) answers.set(target, { at: asker === target ? undefined : seenAt(content), given: [] });
    const reply = HEARD_REPLY.exec(content);
    const request = reply === null ? (HEARD_REQUEST.exec(content) ?? HEARD_ADVERTISEMENT.exec(content)) : null;
    const address = reply?.[1] ?? request?.[2]?.toLowerCase();
    const mac = readMac(reply?.[2] ?? request?.[1] ?? "");
    if (address === undefined || mac === undefined || readFamily(address, address.includes(":") ? "ipv6" : "ipv4") === undefined) continue;
    const before = rows.filter((row) => row.address === address).map((row) => row.mac);
    const first = before.indexOf(mac);
    const question = answers.get(address);
    // without -e it is not shown to whom; on several interfaces one answer may be seen twice, and a bond changes the hardware address in it
    const unknown = name !== undefined && isAtOnce(question?.at, seenAt(content)) ? "" : EVERYBODY;
    const to = reply === null ? EVERYBODY : (ANSWERED.exec(content)?.[1]?.toLowerCase() ?? unknown);
    const known = to === EVERYBODY ? undefined : question?.given;
    const both = known?.some((other) => other.to === to && other.mac !== mac) ?? false;
    known?.push({ to, mac });
    // several hosts may have one anycast address of IPv6
    const returned = both || (!address.includes(":") && first !== -1 && before.slice(first).some((other) => other !== mac));
    rows.push({ line, address, mac, ...present({ interface: name }), duplicateCheck: false, heard: true, ...(returned ? { returned } : {}) });
  }
  return rows;
}

/** Seconds of the day. */
function seenAt(content: string): number | undefined {
  const [, hours, minutes, seconds] = SEEN.exec(content) ?? [];
  return hours === undefined ? undefined : Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
}

const isAtOnce = (asked: number | undefined, answered: number | undefined): boolean =>
  asked !== undefined && answered !== undefined && answered >= asked && answered - asked < AT_ONCE;
