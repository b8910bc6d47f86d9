import { z } from "zod";
import { hasLetter, operands, optionValue, SINCE_NOTED } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { type Metric, metricsAs, metricsView } from "./node-metrics.ts";
import { isPrompt } from "./paste.ts";
import { procNet } from "./proc-net.ts";
import { counterOf, fell, growth, isTimeLine, samples, withinOneText } from "./sampled.ts";

/**
 * Counters of the protocols (IP, ICMP, TCP, UDP) of the network namespace.
 *
 *     TcpExtListenOverflows           129                0.0
 *     TcpExt: SyncookiesSent … ListenOverflows ListenDrops …        (/proc/net/netstat: a line of names, then a line of values)
 *         129 times the listen queue of a socket overflowed         (netstat -s)
 */
const Counter = z.object({
  line: z.int(),
  /** As nstat names it: "TcpExtListenOverflows", "UdpRcvbufErrors", "IpExtInOctets". A sentence of `netstat -s` without such a name stays as it is. */
  name: z.string(),
  /** Since boot (since the last run, where somebody ran nstat without -a); beyond 2^53 cut to that. Some are levels: TcpCurrEstab. */
  value: z.int(),
  /** Growth between the samples; left out without a second sample, or if the counter was reset between. */
  valueDelta: z.int().optional(),
});
const Nstat = z.object({ rows: z.array(Counter) });
type Counter = z.infer<typeof Counter>;
type Nstat = z.infer<typeof Nstat>;

const FILE = procNet("(netstat|snmp6?)");
// nstat: name, value, rate
const NSTAT = /^([A-Z]\w{1,79})\s+(-?\d{1,20})(?:\s+(?:[\d.]{1,20}|nan|-nan|inf))?$/;
const NSTAT_JSON = /"([A-Z]\w{1,79})"\s{0,8}:\s{0,8}(-?\d{1,20})/g;
const SECTION = /^([A-Z][A-Za-z0-9]{1,15}):((?:\s+\S{1,80}){1,400})$/;
const SNMP6 = /^((?:Ip|Icmp|Udp|UdpLite)6\w{1,60})\s+(-?\d{1,20})$/;
// netstat -s
const HEADING = /^([A-Z][A-Za-z0-9]{1,15}):$/;
const PAIR = /^([A-Za-z]\w{0,79}): (-?\d{1,20})$/;
const HISTOGRAM = /^([a-z][a-z -]{2,40}): (\d{1,20})$/;
const COUNT_FIRST = /^(-?\d{1,20}) (\S.{0,200})$/;
const COUNT_INSIDE = /^([A-Z][^\d]{2,120}?) (\d{1,20})( times| \S.{0,80})?$/;
const NETSTAT_FRAME = /^(?:ICMP (?:in|out)put histogram:|Forwarding is (?:en|dis)abled)$/;

/** Sentences of `netstat -s`, by protocol: the words behind the number. Older and newer wordings both. */
const SENTENCES: Readonly<Record<string, string>> = {
  "Ip total packets received": "IpInReceives",
  "Ip forwarded": "IpForwDatagrams",
  "Ip with invalid headers": "IpInHdrErrors",
  "Ip with invalid addresses": "IpInAddrErrors",
  "Ip with unknown protocol": "IpInUnknownProtos",
  "Ip incoming packets discarded": "IpInDiscards",
  "Ip incoming packets delivered": "IpInDelivers",
  "Ip requests sent out": "IpOutRequests",
  "Ip outgoing packets dropped": "IpOutDiscards",
  "Ip dropped because of missing route": "IpOutNoRoutes",
  "Ip fragments dropped after timeout": "IpReasmTimeout",
  "Ip reassemblies required": "IpReasmReqds",
  "Ip packets reassembled ok": "IpReasmOKs",
  "Ip packet reassembles failed": "IpReasmFails",
  "Ip packet reassemblies failed": "IpReasmFails",
  "Ip fragments received ok": "IpFragOKs",
  "Ip fragments failed": "IpFragFails",
  "Ip fragments created": "IpFragCreates",
  "Icmp ICMP messages received": "IcmpInMsgs",
  "Icmp input ICMP message failed": "IcmpInErrors",
  "Icmp input ICMP message failed.": "IcmpInErrors",
  "Icmp ICMP messages sent": "IcmpOutMsgs",
  "Icmp ICMP messages failed": "IcmpOutErrors",
  "Tcp active connection openings": "TcpActiveOpens",
  "Tcp active connections openings": "TcpActiveOpens",
  "Tcp passive connection openings": "TcpPassiveOpens",
  "Tcp failed connection attempts": "TcpAttemptFails",
  "Tcp connection resets received": "TcpEstabResets",
  "Tcp connections established": "TcpCurrEstab",
  "Tcp segments received": "TcpInSegs",
  "Tcp segments sent out": "TcpOutSegs",
  "Tcp segments send out": "TcpOutSegs",
  "Tcp segments retransmitted": "TcpRetransSegs",
  "Tcp segments retransmited": "TcpRetransSegs",
  "Tcp bad segments received": "TcpInErrs",
  "Tcp bad segments received.": "TcpInErrs",
  "Tcp resets sent": "TcpOutRsts",
  "Udp packets received": "UdpInDatagrams",
  "Udp packets to unknown port received": "UdpNoPorts",
  "Udp packets to unknown port received.": "UdpNoPorts",
  "Udp packet receive errors": "UdpInErrors",
  "Udp packets sent": "UdpOutDatagrams",
  "Udp receive buffer errors": "UdpRcvbufErrors",
  "Udp send buffer errors": "UdpSndbufErrors",
  "Udp RcvbufErrors": "UdpRcvbufErrors",
  "TcpExt times the listen queue of a socket overflowed": "TcpExtListenOverflows",
  "TcpExt SYNs to LISTEN sockets dropped": "TcpExtListenDrops",
  "TcpExt SYNs to LISTEN sockets ignored": "TcpExtListenDrops",
  "TcpExt packets pruned from receive queue because of socket buffer overrun": "TcpExtPruneCalled",
  "TcpExt packets pruned from receive queue": "TcpExtRcvPruned",
  "TcpExt packets collapsed in receive queue due to low socket buffer": "TcpExtTCPRcvCollapsed",
  "TcpExt packets dropped from prequeue": "TcpExtTCPPrequeueDropped",
  "TcpExt packets dropped from out-of-order queue because of socket buffer overrun": "TcpExtOfoPruned",
  "TcpExt connections aborted due to memory pressure": "TcpExtTCPAbortOnMemory",
  "TcpExt connections aborted due to timeout": "TcpExtTCPAbortOnTimeout",
  "TcpExt resets received for embryonic SYN_RECV sockets": "TcpExtEmbryonicRsts",
  "TcpExt SYN cookies sent": "TcpExtSyncookiesSent",
  "TcpExt invalid SYN cookies received": "TcpExtSyncookiesFailed",
  "TcpExt TCP sockets finished time wait in fast timer": "TcpExtTW",
  "TcpExt fast retransmits": "TcpExtTCPFastRetrans",
  "TcpExt other TCP timeouts": "TcpExtTCPTimeouts",
};

const VALUED = new Set(["-t"]);

export const nstat = defineFact({
  id: "nstat",
  title: "Counters of IP, ICMP, TCP and UDP (two samples)",
  commands: [
    // -s: the history that nstat keeps in /tmp stays as it is
    { argv: ["nstat", "-asz"], samples: 2 },
    { argv: ["cat", "/proc/net/netstat", "/proc/net/snmp"], samples: 2 },
    { argv: ["cat", "/proc/net/snmp6"], samples: 2 },
  ],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (program === "nstat" || program === "rtacct") {
      if (["h", "V", "n", "r", "d"].some((letter) => hasLetter(argv, letter))) return undefined;
      const names = operands(argv, VALUED);
      const absolute = hasLetter(argv, "a") || argv.includes("--ignore");
      const format =
        hasLetter(argv, "j") || argv.includes("--json")
          ? "nstat-json"
          : absolute
            ? "nstat"
            : argv.includes(SINCE_NOTED)
              ? "nstat-noted"
              : keepsHistory(argv)
                ? "nstat-since"
                : "nstat-each";
      return { format, complete: names.length === 0 && absolute, scope: names.join(" "), rank: absolute ? 5 : 2 };
    }
    if (program === "netstat") {
      if (!hasLetter(argv, "s") && !argv.includes("--statistics")) return undefined;
      // of single protocols, or of an interface, or again and again
      const part = ["t", "u", "w", "x", "U", "S"].some((letter) => hasLetter(argv, letter)) || argv.some((word) => /^--(?:tcp|udp|raw)/.test(word));
      if (hasLetter(argv, "i") || hasLetter(argv, "c") || optionValue(argv, "-I") !== undefined) return undefined;
      return { format: "netstat", complete: !part, scope: part ? rest.join(" ") : "", rank: 3 };
    }
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    const files = rest.filter((word) => FILE.test(word));
    if (files.length === 0 || !["cat", "grep", "head", "tail"].includes(program ?? "")) return undefined;
    const kinds = new Set(files.map((file) => FILE.exec(file)?.[1]));
    const whole = program === "cat" && files.length === rest.length;
    if (whole && kinds.has("netstat") && kinds.has("snmp")) return { format: "proc", complete: true, scope: "", rank: 4 };
    return { format: "proc", complete: whole, scope: ["netstat", "snmp", "snmp6"].filter((kind) => kinds.has(kind)).join(" "), rank: 4 };
  },
  schema: Nstat,
  parse({ text, view, argv }) {
    const unparsed = new UnparsedLines();
    if (view.format === "proc") return unparsed.with({ rows: withinOneText(readProc(text, unparsed)) });
    if (view.format === "netstat") return unparsed.with({ rows: withinOneText(readNetstat(text, unparsed, argv)) });
    const rows: Counter[] = [];
    for (const { line, text: content } of lines(view.format === "metrics" ? metricsAs(text, counterLine) : text)) {
      const match = NSTAT.exec(content.trim());
      if (match !== null) rows.push({ line, name: match[1] as string, value: counterOf(match[2] as string) });
      else if (/^[\s{}\]"A-Za-z]{0,12}[{"]/.test(content)) {
        const known = rows.length;
        for (const [quote, name, value] of content.matchAll(NSTAT_JSON)) {
          rows.push(Object.assign({ line, name: name as string, value: counterOf(value as string) }, { text: quote }));
        }
        if (rows.length === known && !/^\s*(?:\{\s*)?"(?:kernel|-?\d+\.?\d*)"?\s*:?\s*(?:\{\s*(?:\}\s*)*)?$/.test(content) && content.trim() !== "{")
          unparsed.add(line, content);
      } else if (!/^#|^\}+$/.test(content.trim()) && !isTimeLine(content) && !isPrompt(content)) unparsed.add(line, content);
    }
    if (view.format === "nstat-noted") return unparsed.with({ rows: rows.map((row) => ({ ...row, valueDelta: row.value })) });
    return unparsed.with({ rows: view.format === "nstat-each" ? eachGrowth(rows) : withinOneText(rows) });
  },
  merge: mergeCounters,
  // what IPv6 counts besides is extra
  whole: (parts) => {
    const scopes = new Set(parts.filter((part) => part.complete).map((part) => part.view.scope));
    return scopes.has("") || (scopes.has("netstat") && scopes.has("snmp"));
  },
});

/** `node_netstat_Udp_RcvbufErrors 7` of node_exporter, as nstat says it. */
const counterLine = ({ name, value }: Metric): string | undefined =>
  name.startsWith("netstat_") ? `${name.slice("netstat_".length).replace("_", "")} ${value} 0.0` : undefined;

/** Whether nstat leaves its history as it is (-s), so that the next run counts from the same moment. */
const keepsHistory = (argv: readonly string[]): boolean => hasLetter(argv, "s") || argv.includes("--noupdate");

/** Run without -a and -s, nstat shows what grew since its last run: of the first run of a paste nobody knows since when; the later ones are growth. */
function eachGrowth(rows: readonly Counter[]): Counter[] {
  const found = new Map<string, Counter>();
  for (const row of rows) found.set(row.name, found.has(row.name) ? { ...row, valueDelta: row.value } : row);
  return [...found.values()];
}

/** /proc/net/netstat and snmp: a line of names and a line of values, both with the protocol in front; /proc/net/snmp6: a name and a value a line. */
function readProc(text: string, unparsed: UnparsedLines): Counter[] {
  const rows: Counter[] = [];
  let header: { protocol: string; names: string[]; line: number; text: string } | undefined;
  for (const { line, text: raw } of lines(text)) {
    // grep of several files
    const content = raw.trim().replace(/^\/[\w/]{1,60}:/, "");
    const single = SNMP6.exec(content);
    const section = single === null ? SECTION.exec(content) : null;
    if (single !== null) rows.push({ line, name: single[1] as string, value: counterOf(single[2] as string) });
    else if (section !== null) {
      const protocol = section[1] as string;
      const words = (section[2] as string).trim().split(/\s+/);
      const values = words.every((word) => /^-?\d{1,20}$/.test(word));
      if (!values) {
        if (header !== undefined) unparsed.add(header.line, header.text);
        header = { protocol, names: words, line, text: raw };
      } else if (header?.protocol === protocol && header.names.length === words.length) {
        const { names } = header;
        words.forEach((word, i) => {
          rows.push({ line, name: protocol + names[i], value: counterOf(word) });
        });
        header = undefined;
      } else unparsed.add(line, raw);
    } else if (!/^(?:MPTcpExt|\w{2,16}):$/.test(content) && !isTimeLine(raw) && !isPrompt(raw)) unparsed.add(line, raw);
  }
  if (header !== undefined) unparsed.add(header.line, header.text);
  return rows;
}

/** `netstat -s`: sections by protocol, sentences with a number. A counter that has a name keeps it. */
function readNetstat(text: string, unparsed: UnparsedLines, argv: readonly string[]): Counter[] {
  const rows: Counter[] = [];
  let protocol = "";
  // `netstat -su | grep …`: the one protocol with counts of its own is the one that was asked for
  const asked = hasLetter(argv, "u") === hasLetter(argv, "t") ? "" : hasLetter(argv, "u") ? "Udp" : "Tcp";
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim();
    const heading = HEADING.exec(content)?.[1];
    const pair = PAIR.exec(content);
    const counted = pair === null ? COUNT_FIRST.exec(content) : null;
    const histogram = pair === null && counted === null ? HISTOGRAM.exec(content) : null;
    const inside = pair === null && counted === null && histogram === null ? COUNT_INSIDE.exec(content) : null;
    if (heading !== undefined) protocol = heading;
    else if (pair !== null) {
      if (protocol === "" && pair[1] === "InCsumErrors") protocol = asked;
      const sentence = `${protocol} ${pair[1]}`;
      rows.push({ line, name: Object.hasOwn(SENTENCES, sentence) ? (SENTENCES[sentence] as string) : protocol + pair[1], value: counterOf(pair[2] as string) });
    } else if (counted !== null) {
      const sentence = `${protocol} ${counted[2]}`;
      // a section may be cut off above
      const name = Object.hasOwn(SENTENCES, sentence) ? SENTENCES[sentence] : protocol === "" ? anySection(counted[2] as string) : undefined;
      rows.push({ line, name: name ?? (counted[2] as string), value: counterOf(counted[1] as string) });
    } else if (histogram !== null) rows.push({ line, name: histogram[1] as string, value: counterOf(histogram[2] as string) });
    else if (inside !== null) {
      const sentence = `${inside[1]}${inside[3] ?? ""}`;
      rows.push({ line, name: sentence === "TCP ran low on memory times" ? "TcpExtTCPMemoryPressures" : sentence, value: counterOf(inside[2] as string) });
    } else if (!NETSTAT_FRAME.test(content) && !isTimeLine(raw) && !isPrompt(raw)) unparsed.add(line, raw);
  }
  return rows;
}

/** The name of a sentence whose protocol is not shown (`netstat -s | grep …`), if only one protocol has it. */
function anySection(sentence: string): string | undefined {
  return SECTIONS.map((section) => SENTENCES[`${section} ${sentence}`]).find((name) => name !== undefined);
}
const SECTIONS = ["Ip", "Icmp", "Tcp", "Udp", "TcpExt"];

/** What does not only grow. */
const GAUGE = /CurrEstab$|^TcpRto|MaxConn$|DefaultTTL$|Forwarding$|ReasmTimeout$/;

/** Name by name the best output; what grew comes from the two samples of one command. */
function mergeCounters(parts: readonly Part<Nstat>[]): Nstat {
  const rows = new Map<string, Counter>();
  for (const { before, after } of samples(parts, true)) {
    const old = new Map(before?.value.rows.map((row) => [row.name, row.value]));
    const each = after.view.format === "nstat-each";
    // all of them begin with the machine
    const other = !each && after.value.rows.some((row) => !GAUGE.test(row.name) && fell(old.get(row.name), row.value));
    // these leave counters of zero out
    const zero = before?.complete === true && (after.view.format === "nstat" || after.view.format === "netstat") ? 0 : undefined;
    for (const row of after.value.rows) {
      const known = rows.get(row.name);
      if (known !== undefined && (known.valueDelta !== undefined || before === undefined)) continue;
      const valueDelta = before === undefined || other ? undefined : each ? row.value : growth(old.get(row.name) ?? zero, row.value);
      rows.set(row.name, valueDelta === undefined ? row : { ...row, valueDelta });
    }
  }
  // what another search of the same showed
  for (const row of parts.flatMap((part) => part.value.rows)) if (!rows.has(row.name)) rows.set(row.name, row);
  return { rows: [...rows.values()] };
}
