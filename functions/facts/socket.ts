import { z } from "zod";
import { hasLetter, hasOption, operands } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { readFamily } from "./mask.ts";
import { ranked } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { countsEqual, isLineCount } from "./pipe.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";
import { growth, samples } from "./sampled.ts";

/**
 * Sockets of TCP and UDP: those that listen, and others where they were listed.
 *
 *     tcp   LISTEN 129    128          0.0.0.0:80        0.0.0.0:*    users:(("nginx",pid=811,fd=6))
 *     tcp        0      0 0.0.0.0:22              0.0.0.0:*               LISTEN      812/sshd            (netstat)
 */
const Socket = z.object({
  line: z.int(),
  /** "tcp" or "udp", of both address families. */
  protocol: z.string(),
  /** As ss names it: "LISTEN", "UNCONN", "ESTAB", "CLOSE-WAIT", … */
  state: z.string(),
  /** "0.0.0.0", "::", "*" for any; without brackets and interface. */
  address: z.string(),
  /** Absent where the listing shows a service name. */
  port: z.int().optional(),
  interface: z.string().optional(),
  peerAddress: z.string(),
  peerPort: z.int().optional(),
  /** Bytes; of a listening TCP socket connections that wait to be accepted. */
  receiveQueue: z.int(),
  /** Bytes; of a listening TCP socket in ss the same as `backlog`. */
  sendQueue: z.int(),
  /** How many connections may wait to be accepted (ss, listening TCP sockets only; netstat does not tell). */
  backlog: z.int().optional(),
  /** First of the programs that hold it. */
  process: z.string().optional(),
  pid: z.int().optional(),
  /** Packets dropped since the socket was made (`ss -m`). */
  drops: z.int().optional(),
  /** The same between two samples. */
  dropsDelta: z.int().optional(),
});
/** What was listed completely: a socket that is not among the rows is not there. */
const Shown = z.object({
  line: z.int(),
  protocol: z.string(),
  /** Listening TCP sockets, and UDP sockets without a peer. */
  listening: z.boolean(),
  /** All others. */
  connected: z.boolean(),
  /** Those that the other side has closed and the program has not. */
  closeWait: z.boolean(),
  /** Only sockets on this local port were looked for. */
  port: z.int().optional(),
});
/** Somebody counted them: `netstat -ant | awk '{print $6}' | sort | uniq -c`, or those of one state by something: `… | grep CLOSE_WAIT | awk '{print $7}' | …`. */
const Count = z.object({
  line: z.int(),
  state: z.string(),
  count: z.int(),
  /** Whose they are, if they were counted by program. */
  process: z.string().optional(),
});
const Sockets = z.object({ rows: z.array(Socket), shown: z.array(Shown), counts: z.array(Count) });
type Socket = z.infer<typeof Socket>;
type Sockets = z.infer<typeof Sockets>;

const PROC_FILE = procNet("((?:tcp|udp)6?)");
/** The kernel's numbers of the states of TCP, from 1 on. */
const KERNEL_STATES = "ESTAB SYN-SENT SYN-RECV FIN-WAIT-1 FIN-WAIT-2 TIME-WAIT CLOSED CLOSE-WAIT LAST-ACK LISTEN CLOSING NEW-SYN-RECV".split(" ");
const PROC_HEADER = /^sl\s+(?:local_address|remote_address)\s.{1,160}$/;
/** More sockets than this are counted as unread, not kept. */
const MAX_SOCKETS = 200_000;
const STATES = new Set(
  "LISTEN UNCONN ESTAB SYN-SENT SYN-RECV FIN-WAIT-1 FIN-WAIT-2 TIME-WAIT CLOSE-WAIT LAST-ACK CLOSING CLOSED NEW-SYN-RECV BOUND-INACTIVE UNKNOWN".split(" "),
);
/** netstat's names; a UDP socket has none unless it is connected. */
const NETSTAT_STATES: Readonly<Record<string, string>> = {
  ESTABLISHED: "ESTAB",
  SYN_SENT: "SYN-SENT",
  SYN_RECV: "SYN-RECV",
  FIN_WAIT1: "FIN-WAIT-1",
  FIN_WAIT2: "FIN-WAIT-2",
  TIME_WAIT: "TIME-WAIT",
  CLOSE: "CLOSED",
  CLOSE_WAIT: "CLOSE-WAIT",
  LAST_ACK: "LAST-ACK",
  LISTEN: "LISTEN",
  CLOSING: "CLOSING",
};
/** Kinds of sockets that say nothing about IP. */
const OTHER_KINDS = new Set(
  "u_str u_dgr u_seq nl p_raw p_dgr v_str v_dgr ti_rd ti_sq ti_st ti_dg xdp raw raw6 icmp6 icmp mptcp sctp dccp udplite unix ???".split(" "),
);
const SS_HEADER = /^(?:Netid\s+)?(?:State\s+)?Recv-Q\s+Send-Q\s+Local Address:Port/;
/** What ss says above its list where there is no cgroup2, or the kernel has no MPTCP: it lists the rest all the same. */
const SS_SAYS = /^(?:Failed to find cgroup2 mount|RTNETLINK answers: Invalid argument)$/;
const NETSTAT_FRAME =
  /^(?:Active (?:Internet|UNIX domain) (?:connections|sockets) .{0,60}|Proto\s+Re(?:cv-Q|fCnt)\s.*|\(Not all processes could be identified.*|\s*will not be shown, you would have to be root.*|.{0,60}?You would have to be root .*)$/;
/** The title in the language of the node: "Aktive Internetverbindungen (Nur Server)". */
const NETSTAT_TITLE = /^\p{L}[^\d:]{4,80}[(（][^\d:]{2,60}[)）]$/u;
const USERS = /users:\(\("([^"]{1,64})",(?:pid=)?(\d{1,10}),/;
/** `"celery",pid=1`: a part of it, too. */
const QUOTED = /"([^"]{1,64})",(?:pid=)?\d/;
const DROPS = /skmem:\([^)\n]{0,200}?\bd(\d{1,15})\)/;
// "  44012 CLOSE_WAIT", "CLOSE-WAIT 44012", "CLOSE_WAIT: 44012"
const COUNTED = /^(?:(\d{1,9})\s+"?([A-Z][A-Z\d_-]{3,15})"?|([A-Z][A-Z\d_-]{3,15}):?\s+(\d{1,9}))$/;
const PROGRAM = /^(\d{1,10})\/(\S.{0,200})$/;
// "   6214 20114/java", "991 users:((\"celery\",pid=1,fd=7))", "    412 10.0.0.9:443"
const COUNTED_BY = /^(\d{1,9})\s+(\S.{0,200})$/;
/** `awk '{n[$6" "$7]++} END {…}'` counts as `uniq -c` does. */
const COUNTS_IN_AWK = /(?:^|\| )g?awk [^|]{1,300}?(?:\+\+|\+= ?1)/;
/** The one filter of ss whose output is complete in its own way. */
const CLOSE_WAIT = "state close-wait";
/** A search, or a filter of ss, that shows every socket with this local port: `| grep ':53 '`, `sport = :53`. */
const PORT_SEARCH = /^(?:\( ?)?(?:s(?:rc)?port (?:= |== |eq )?)?:?(\d{1,5})(?: ?\)| |\\[bs>])?$/;
const SAVED = "saved";
/** "netstat.txt", "/tmp/ss_tanp.out", "conns.log" */
const LISTING = /(?:^|\/)(?:[\w.-]{0,60}(?:netstat|sockets?|connections?)[\w.-]{0,60}|(?:ss|conns?)[\w-]{0,20}\.(?:txt|log|out))$/i;
/** Options of ss and netstat that turn the output into something else. */
const NOT_A_LIST = ["s", "K", "E", "D", "F", "h", "V", "r", "i"];

export const socket = defineFact({
  id: "socket",
  title: "Sockets of TCP and UDP that listen or are stuck",
  commands: [
    { argv: ["ss", "-lntup"] },
    // -m has the packets that a UDP socket dropped
    { argv: ["ss", "-lnum"], samples: 2 },
    { argv: ["ss", "-tan", "state", "close-wait"] },
  ],
  recognize(argv, search, pipe = ""): View | undefined {
    const program = argv[0];
    // `awk '{print $4}' /proc/net/tcp | sort | uniq -c`: the column of the states
    const column = /^g?awk$/.test(program ?? "") && /^(?:F?NR ?(?:>|!=) ?1 ?)?\{ ?print \\?\$4;? ?\}$/.test(argv[1] ?? "");
    const files = argv.slice(column ? 2 : 1);
    // counted, those of both families are one number
    const both = files.length === 2 && countsEqual(pipe) && files.every((name) => PROC_FILE.exec(name)?.[1]?.startsWith("tcp"));
    const file = (column || program === "cat") && (files.length === 1 || both) ? PROC_FILE.exec(files[0] as string)?.[1] : undefined;
    // IPv4 and IPv6 have files of their own
    if (file !== undefined) return { format: "proc", complete: false, scope: `${file.slice(0, 3)} all ${file.endsWith("6") ? "ipv6" : "ipv4"}`, rank: 1 };
    if (/^[ef]?grep$/.test(program ?? "")) return ofSaved(argv);
    if (program !== "ss" && program !== "netstat") return undefined;
    if (program === "netstat" && argv.length === 1) return undefined;
    if (NOT_A_LIST.some((letter) => (program === "netstat" || letter !== "i") && letter !== "r" && hasLetter(argv, letter))) return undefined;
    if (program === "netstat" && ["r", "g", "M"].some((letter) => hasLetter(argv, letter))) return undefined;
    if (hasOption(argv, "--summary", "--statistics", "--route", "--interfaces", "--kill", "--events")) return undefined;
    const has = (letter: string, ...names: string[]): boolean => hasLetter(argv, letter) || hasOption(argv, ...names);
    const filters = operands(argv);
    const [tcp, udp] = [has("t", "--tcp"), has("u", "--udp")];
    const other = has("x", "--unix") || has("w", "--raw") || has("A") || has("N") || has("f");
    if (other && !tcp && !udp) return undefined;
    const protocols = !tcp && !udp ? ["tcp", "udp"] : [...(tcp ? ["tcp"] : []), ...(udp ? ["udp"] : [])];
    const kind = has("a", "--all") ? "all" : has("l", "--listening") ? "listening" : "connected";
    const family = has("4", "--ipv4", "--inet", "--ip") || has("6", "--ipv6", "--inet6") || argv.some((word) => /^--(?:family|protocol)=inet6?$/.test(word));
    const rank = (program === "ss" ? 4 : 2) + (has("p", "--processes", "--program") ? 1 : 0);
    const searched = filters.length === 0 ? search : program === "ss" && search === undefined ? filters.join(" ") : undefined;
    const port = kind === "connected" || family ? undefined : PORT_SEARCH.exec(searched ?? "")?.[1];
    const scope = [...protocols, kind, ...(has("m", "--memory") ? ["memory"] : []), ...filters, ...(port === undefined ? [] : [`port=${port}`])].join(" ");
    return { format: program, complete: (filters.length === 0 || filters.join(" ") === CLOSE_WAIT) && !family, scope, rank };
  },
  schema: Sockets,
  parse({ text, argv, view, pipe = "", truncated }) {
    const unparsed = new UnparsedLines();
    const rows: Socket[] = [];
    const counting = isLineCount(pipe) || (view.format === SAVED && hasLetter(argv, "c"));
    const named = counting || countsEqual(pipe) ? stateNamed([...pipe.split(/[^\w-]+/), ...argv]) : undefined;
    const countedState = counting ? named : undefined;
    const protocols = view.scope.split(" ").filter((word) => word === "tcp" || word === "udp");
    const only = protocols.length === 1 ? protocols[0] : undefined;
    // `ss state close-wait` leaves the column out
    const state = argv.includes("state") ? askedState(argv[argv.indexOf("state") + 1] ?? "") : undefined;
    const tallied = countsEqual(pipe) || COUNTS_IN_AWK.test(pipe);
    const counts: Sockets["counts"] = [];
    // by what they were counted by: the same again is a later count of it
    const tallies = new Map<string, Tally>();
    let other = false;
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const words = content.split(/\s+/, 24);
      if (countedState !== undefined && /^\d{1,9}$/.test(content)) {
        counts.push({ line, state: countedState, count: Number(content) });
        continue;
      }
      const byNumber = view.format === "proc" ? /^(\d{1,9})\s+(0[\dA-C]|st)$/.exec(content) : null;
      if (byNumber !== null) {
        const kernels = KERNEL_STATES[Number.parseInt(byNumber[2] as string, 16) - 1];
        if (kernels !== undefined) counts.push({ line, state: kernels, count: Number(byNumber[1]) });
        continue;
      }
      const counted = COUNTED.exec(content);
      const beside = counted === null ? undefined : stateOf(counted[2] ?? counted[3] ?? "");
      if (counted !== null && beside !== undefined) {
        counts.push({ line, state: beside, count: Number(counted[1] ?? counted[4]) });
        continue;
      }
      const by = tallied ? tallyOf(words, line) : undefined;
      if (by !== undefined) {
        tallies.set(by.by, by);
        continue;
      }
      const alone = named === undefined ? null : COUNTED_BY.exec(content);
      if (named !== undefined && alone !== null) {
        tallies.set(alone[2] as string, { line, state: named, count: Number(alone[1]), by: alone[2] as string });
        continue;
      }
      const row =
        view.format === "ss"
          ? fromSs(words, content, line, only, state)
          : view.format === "proc"
            ? fromProc(words, line, only ?? "tcp")
            : fromNetstat(words, line);
      if (row !== undefined && rows.length < MAX_SOCKETS) {
        rows.push(row);
        other = false;
      } else if (row === undefined && OTHER_KINDS.has(words[0] as string)) other = true;
      else if (view.format === "ss" && /^\s/.test(raw) && row === undefined) {
        // the second line of a socket: -m, -i, -o
        const drops = DROPS.exec(content)?.[1];
        const last = rows.at(-1);
        if (drops !== undefined && last !== undefined && !other) last.drops = Number(drops);
      } else if (![SS_HEADER, SS_SAYS, NETSTAT_FRAME, NETSTAT_TITLE, PROC_HEADER].some((known) => known.test(content)) && !isPrompt(raw))
        unparsed.add(line, raw);
    }
    counts.push(...summedUp(tallies.values()));
    const port = / port=(\d+)$/.exec(view.scope)?.[1];
    const none = port === undefined || truncated === true || unparsed.count > 0;
    const about = { line: 1, listening: true, connected: false, closeWait: false, port: Number(port) };
    return unparsed.with({ rows, shown: none ? [] : protocols.map((protocol) => ({ ...about, protocol })), counts });
  },
  merge: mergeSockets,
  whole: (parts) => ["tcp", "udp"].every((protocol) => shownBy(parts).some((row) => row.protocol === protocol && row.listening)),
});

/** How many sockets of one state one program, one peer or the like has. */
interface Tally {
  readonly line: number;
  readonly state: string;
  readonly count: number;
  /** What stands beside the number: "CLOSE_WAIT 20114/java", "10.0.0.9:443". */
  readonly by: string;
}

/** `27614 CLOSE_WAIT 20114/java`, `ESTAB 10.0.0.9:443 12`: the number first or last, and one state among the other words. */
function tallyOf(words: readonly string[], line: number): Tally | undefined {
  const [number = "", rest] = /^\d{1,9}$/.test(words[0] ?? "") ? [words[0], words.slice(1)] : [words.at(-1), words.slice(0, -1)];
  const [state, ...more] = rest.flatMap((word) => stateOf(word) ?? []);
  if (state === undefined || more.length > 0 || !/^\d{1,9}$/.test(number)) return undefined;
  return { line, state, count: Number(number), by: rest.join(" ") };
}

/** One number for each program; of those in use, and where no program is named, one for all: a program has many peers. */
function summedUp(tallies: Iterable<Tally>): Sockets["counts"] {
  const sums = new Map<string, Sockets["counts"][number]>();
  for (const { line, state, count, by } of tallies) {
    const process = state === "ESTAB" ? undefined : (/(?:^|\s)\d{1,10}\/(\S.{0,200})$/.exec(by)?.[1] ?? QUOTED.exec(by)?.[1]);
    const key = `${state} ${process ?? ""}`;
    const sum = sums.get(key);
    if (sum === undefined) sums.set(key, present({ line, state, count, process }));
    else sum.count += count;
  }
  return [...sums.values()];
}

/** A search for one state in a file that is named after what lists sockets: somebody kept a listing, and counts in it. */
function ofSaved(argv: readonly string[]): View | undefined {
  const [pattern = "", file = "", ...more] = operands(argv);
  const saved = stateOf(pattern.toUpperCase()) !== undefined && LISTING.test(file) && more.length === 0 && !hasLetter(argv, "v");
  return saved ? { format: SAVED, complete: false, scope: `${SAVED} ${argv.slice(1).join(" ")}`.slice(0, 200), rank: 0 } : undefined;
}

/** The one state that a filter names: `grep -c CLOSE_WAIT`, `ss -tan state close-wait | wc -l`. */
function stateNamed(asked: readonly string[]): string | undefined {
  // `grep CLOSE` finds those in CLOSE-WAIT: a socket that is closed has hardly any other name in a listing
  const states = new Set(asked.flatMap((word) => (word === "CLOSE" ? "CLOSE-WAIT" : (stateOf(word.toUpperCase()) ?? []))));
  return states.size === 1 ? [...states][0] : undefined;
}

/** The state that `ss state …` asks for; two of them have longer names there than in the column. */
function askedState(word: string): string | undefined {
  const state = { established: "ESTAB", listening: "LISTEN" }[word.toLowerCase()] ?? word.toUpperCase();
  return STATES.has(state) ? state : undefined;
}

/** The name that ss has for a state, whichever tool's it is; undefined for other words. */
function stateOf(word: string): string | undefined {
  return STATES.has(word) ? word : Object.hasOwn(NETSTAT_STATES, word) ? NETSTAT_STATES[word] : undefined;
}

/** `tcp LISTEN 0 128 0.0.0.0:22 0.0.0.0:* users:(…)`; with one kind of sockets the first column is left out, with one state the second. */
function fromSs(words: readonly string[], content: string, line: number, only: string | undefined, state: string | undefined): Socket | undefined {
  let at = 0;
  const netid = /^(?:tcp|udp)6?$/.test(words[0] ?? "") ? (words[at++] as string).slice(0, 3) : only;
  const shown = STATES.has(words[at] ?? "") ? words[at++] : state;
  if (netid === undefined || shown === undefined) return undefined;
  const [receive, send] = [words[at], words[at + 1]];
  const local = endpoint(words[at + 2] ?? "");
  // of a listener the column of its peers may be left out: there is none
  const peer = endpoint(words[at + 3] ?? (shown === "LISTEN" && words.length === at + 3 ? "*:*" : ""));
  if (!/^\d{1,12}$/.test(receive ?? "") || !/^\d{1,12}$/.test(send ?? "") || local === undefined || peer === undefined) return undefined;
  const users = USERS.exec(content);
  const drops = DROPS.exec(content)?.[1];
  return present({
    line,
    protocol: netid,
    state: shown,
    ...local,
    peerAddress: peer.address,
    peerPort: peer.port,
    receiveQueue: Number(receive),
    sendQueue: Number(send),
    backlog: netid === "tcp" && shown === "LISTEN" ? Number(send) : undefined,
    process: users?.[1],
    pid: users === null ? undefined : Number(users[2]),
    drops: drops === undefined ? undefined : Number(drops),
  });
}

/** `tcp 0 0 0.0.0.0:22 0.0.0.0:* LISTEN 812/sshd: /usr/sbin`; UDP without the state; BusyBox the same. */
function fromNetstat(words: readonly string[], line: number): Socket | undefined {
  const [proto = "", receive = "", send = "", here = "", there = "", word = ""] = words;
  const local = endpoint(here);
  const peer = endpoint(there);
  if (!/^(?:tcp|udp)6?$/.test(proto) || !/^\d{1,12}$/.test(receive) || !/^\d{1,12}$/.test(send) || local === undefined || peer === undefined) return undefined;
  const protocol = proto.slice(0, 3);
  const state = Object.hasOwn(NETSTAT_STATES, word) ? NETSTAT_STATES[word] : protocol === "udp" ? "UNCONN" : undefined;
  if (state === undefined) return undefined;
  const program = words
    .slice(5)
    .map((item) => PROGRAM.exec(item))
    .find((match) => match !== null);
  return present({
    line,
    protocol,
    state,
    ...local,
    peerAddress: peer.address,
    peerPort: peer.port,
    receiveQueue: Number(receive),
    sendQueue: Number(send),
    process: program?.[2],
    pid: program === undefined ? undefined : Number(program[1]),
  });
}

/**
 * `133: 00000000:076C 00000000:0000 07 00000000:00800700 00:00000000 00000000 111 0 401221 2 0000000000000000 5512093`: number, local, remote, state, queues
 * (send:receive), timer, retransmits, uid, timeout, inode, references, pointer; of UDP the packets dropped.
 */
function fromProc(words: readonly string[], line: number, protocol: string): Socket | undefined {
  const [number = "", here = "", there = "", shown = "", queues = ""] = words;
  const [local, peer] = [kernelEndpoint(here), kernelEndpoint(there)];
  const queue = /^([\dA-F]{8}):([\dA-F]{8})$/.exec(queues);
  if (!/^\d{1,8}:$/.test(number) || local === undefined || peer === undefined || queue === null || !/^[\dA-F]{2}$/.test(shown)) return undefined;
  const state = KERNEL_STATES[Number.parseInt(shown, 16) - 1];
  if (state === undefined) return undefined;
  const drops = protocol === "udp" && words.length === 13 && /^\d{1,15}$/.test(words[12] as string) ? Number(words[12]) : undefined;
  return present({
    line,
    protocol,
    state: protocol === "udp" && state === "CLOSED" ? "UNCONN" : state,
    ...local,
    peerAddress: peer.address,
    peerPort: peer.port === 0 ? undefined : peer.port,
    receiveQueue: Number.parseInt(queue[2] as string, 16),
    sendQueue: Number.parseInt(queue[1] as string, 16),
    drops,
  });
}

/** `0100007F:0035`: an address as the kernel keeps it (words of 32 bits, on most machines the last byte first) and a port. */
function kernelEndpoint(text: string): { address: string; port: number } | undefined {
  const match = /^((?:[\dA-F]{8}){1,4}):([\dA-F]{4})$/.exec(text);
  const hex = match?.[1] ?? "";
  if (match === null || (hex.length !== 8 && hex.length !== 32)) return undefined;
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => (word.match(/../g) ?? []).toReversed());
  const port = Number.parseInt(match[2] as string, 16);
  const decimal = bytes.slice(-4).map((byte) => Number.parseInt(byte, 16));
  if (hex.length === 8 || hex.startsWith("0000000000000000FFFF0000")) return { address: decimal.join("."), port };
  if (/^0+$/.test(hex)) return { address: "::", port };
  const groups = Array.from({ length: 8 }, (_, i) => Number.parseInt(`${bytes[2 * i]}${bytes[2 * i + 1]}`, 16).toString(16));
  return { address: groups.join(":"), port };
}

/** A number, the name of a service, or what a person put in its place (`<port>`, `[PORT]`, `****`). */
const PORT = /^(?:\*{1,5}|\d{1,5}|[a-z][\w+.-]{0,31}|<[\w .-]{1,40}>|\[?[A-Z_]{2,20}\]?)$/i;

/** `0.0.0.0:22`, `*:22`, `[::]:22`, `:::22`, `127.0.0.53%lo:53`, `[fe80::1]%eth0:546`, `10.0.0.1:https`, `*:*`. */
function endpoint(text: string): { address: string; port?: number; interface?: string } | undefined {
  const colon = text.lastIndexOf(":");
  if (colon === -1) return undefined;
  const port = text.slice(colon + 1);
  const shown = text.slice(0, colon);
  const masked = readFamily(shown, "ipv4") !== undefined;
  const [host = "", dev] = masked ? [shown] : shown.replace(/[[\]]/g, "").split("%");
  if (!(masked || /^(?:\*|[\da-fA-F:.]{1,45})$/.test(host) || readFamily(host) !== undefined) || !PORT.test(port)) return undefined;
  return present({
    address: host.startsWith("::ffff:") ? host.slice("::ffff:".length) : host,
    port: /^\d/.test(port) ? Number(port) : undefined,
    interface: dev === undefined || dev === "" ? undefined : dev,
  });
}

/** What the complete listings show. */
function shownBy(parts: readonly Part<Sockets>[]): Sockets["shown"] {
  return parts.flatMap((part) => {
    const words = part.view.scope.split(" ");
    if (!part.complete) return [];
    const place = placed(part.value.rows[0] ?? { line: 1 });
    const filtered = part.view.scope.includes(CLOSE_WAIT);
    const [listening, connected] = [words.includes("all") || words.includes("listening"), words.includes("all") || words.includes("connected")];
    const about = { listening: listening && !filtered, connected: connected && !filtered, closeWait: connected };
    return words.filter((word) => word === "tcp" || word === "udp").map((protocol) => ({ ...place, protocol, ...about }));
  });
}

const keyOf = (row: Socket): string => `${row.protocol} ${row.state} ${row.address} ${row.port} ${row.interface} ${row.peerAddress} ${row.peerPort}`;

/** Listings complement each other: each socket once, with what the others tell of it. Several sockets may share an address. */
function mergeSockets(parts: readonly Part<Sockets>[]): Sockets {
  const dropped = new Map<string, number>();
  const newer = new Map<Part<Sockets>, Part<Sockets>>();
  for (const { before, after } of samples(parts)) {
    // what waits changes from moment to moment: of a listing that was made twice the second tells how it is
    if (before !== undefined) newer.set(before, { ...after, sample: 1 });
    const old = numbered(before?.value.rows ?? []);
    for (const [key, row] of numbered(after.value.rows)) {
      const delta = row.drops === undefined || before === undefined ? undefined : growth(old.get(key)?.drops, row.drops);
      if (delta !== undefined && !dropped.has(key)) dropped.set(key, delta);
    }
  }
  const merged = new Map<string, Socket>();
  const now = ranked(parts.map((one) => newer.get(one) ?? one));
  for (const part of now) {
    for (const [key, row] of numbered(part.value.rows)) {
      const known = merged.get(key);
      const dropsDelta = dropped.get(key);
      const full = dropsDelta === undefined || row.drops === undefined ? row : { ...row, dropsDelta };
      // the line with the counter is the one to quote for it, so the row that has it stays; the program's name is added
      if (known === undefined || (known.drops === undefined && full.drops !== undefined)) merged.set(key, { ...completing(known), ...full });
      else merged.set(key, { ...completing(full), ...known });
    }
  }
  const counts = now.flatMap((part) => part.value.counts);
  const first = parts.filter((part) => part.sample === 1);
  return { rows: [...merged.values()], shown: [...shownBy(first), ...first.flatMap((part) => part.value.shown)], counts };
}

/** What another listing may add to a socket. */
const completing = (row: Socket | undefined): Partial<Socket> => present({ process: row?.process, pid: row?.pid, backlog: row?.backlog });

/** Rows by key; the second of two with the same key gets a number. */
function numbered(rows: readonly Socket[]): Map<string, Socket> {
  const seen = new Map<string, number>();
  const result = new Map<string, Socket>();
  for (const row of rows) {
    const key = keyOf(row);
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    result.set(count === 1 ? key : `${key} #${count}`, row);
  }
  return result;
}
