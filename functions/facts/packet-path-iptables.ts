import type { Ipset } from "./ipset.ts";
import { chainStarts } from "./iptables-chains.ts";
import type { Iptables, IptablesChain, IptablesRow } from "./iptables-row.ts";
import {
  type Answer,
  any,
  type Doubt,
  type Flow,
  hasMark,
  inPorts,
  inRange,
  inSourcePorts,
  inStates,
  isInterface,
  type Marks,
  negatedIf,
  u32,
  withMark,
} from "./packet-path-packet.ts";
import { inSet } from "./packet-path-set.ts";
import { type Action, type BaseChain, type PathChain, type PathRule, type Step, stepsOf } from "./packet-path-walk.ts";

type Condition = (flow: Flow, marks: Marks) => Answer;

/** The built-in chains that are walked: nat translates and does not drop, security is SELinux's. */
const BASES: readonly { readonly table: string; readonly chain: string; readonly stage: BaseChain["stage"]; readonly priority: number }[] = [
  { table: "raw", chain: "PREROUTING", stage: "prerouting", priority: -300 },
  { table: "raw", chain: "OUTPUT", stage: "output", priority: -300 },
  { table: "mangle", chain: "PREROUTING", stage: "prerouting", priority: -150 },
  { table: "mangle", chain: "INPUT", stage: "input", priority: -150 },
  { table: "mangle", chain: "FORWARD", stage: "forward", priority: -150 },
  { table: "mangle", chain: "OUTPUT", stage: "output", priority: -150 },
  { table: "mangle", chain: "POSTROUTING", stage: "postrouting", priority: -150 },
  { table: "filter", chain: "INPUT", stage: "input", priority: 0 },
  { table: "filter", chain: "FORWARD", stage: "forward", priority: 0 },
  { table: "filter", chain: "OUTPUT", stage: "output", priority: 0 },
];

/** The base chains of iptables or ip6tables, each backend an owner of its own ("iptables-nft", "iptables-legacy", "iptables" where it is not known). Linear. */
export function iptablesBases(value: Iptables, family: IptablesRow["family"], ipset: Ipset | undefined): BaseChain[] {
  const rows = new Map<string, IptablesRow[]>();
  const starts = chainStarts(value.rows);
  for (const [i, start] of starts.entries()) {
    const row = value.rows[start];
    if (row === undefined || row.table === "nat" || row.family !== family) continue;
    const key = `${row.backend} ${row.table} ${row.chain}`;
    const bucket = rows.get(key) ?? [];
    rows.set(key, bucket);
    for (let at = start; at < (starts[i + 1] as number); at++) bucket.push(value.rows[at] as IptablesRow);
  }
  const chains = new Map<string, IptablesChain>();
  for (const chain of value.chains) if (chain.table !== "nat" && chain.family === family) chains.set(`${chain.backend} ${chain.table} ${chain.name}`, chain);
  const compiled = new Map<string, PathChain | undefined>();
  const bases: BaseChain[] = [];
  for (const { table, chain: name, stage, priority } of BASES) {
    for (const backend of ["legacy", "nft", "unknown"] as const) {
      const row = chains.get(`${backend} ${table} ${name}`);
      if (row === undefined) continue;
      const chain = (called: string): PathChain | undefined => {
        const key = `${backend} ${table} ${called}`;
        if (compiled.has(key)) return compiled.get(key);
        const known = chains.get(key);
        const isChain = (target: string): boolean => chains.has(`${backend} ${table} ${target}`);
        const own = known === undefined ? [] : (rows.get(key) ?? []);
        const shipped = shippedRules(own);
        const rules = own.map((rule) => compile(shipped.get(rule) ?? rule, isChain, ipset, shipped.has(rule)));
        const result = known === undefined ? undefined : { name: called, rules, complete: known.complete };
        compiled.set(key, result);
        return result;
      };
      const owner = backend === "unknown" ? "iptables" : `iptables-${backend}`;
      const policy = row.policy === "ACCEPT" ? "accept" : row.policy === "DROP" ? "drop" : "unknown";
      bases.push({ owner, stage, priority, table, name, policy, row: { ...row, spec: "" }, chain });
    }
  }
  return bases;
}

/**
 * The rules of INPUT that iptables-services (RHEL, CentOS, Oracle's images) come with, found in a listing without -v, which hides that the third is for lo alone: each
 * with what it is then.
 *
 *     ACCEPT     all  --  0.0.0.0/0            0.0.0.0/0            state RELATED,ESTABLISHED
 *     ACCEPT     icmp --  0.0.0.0/0            0.0.0.0/0
 *     ACCEPT     all  --  0.0.0.0/0            0.0.0.0/0
 *     ACCEPT     tcp  --  0.0.0.0/0            0.0.0.0/0            state NEW tcp dpt:22
 *     REJECT     all  --  0.0.0.0/0            0.0.0.0/0            reject-with icmp-host-prohibited
 */
function shippedRules(rows: readonly IptablesRow[]): ReadonlyMap<IptablesRow, IptablesRow> {
  const isPlain = (row: IptablesRow | undefined, target: string, protocol: string): row is IptablesRow =>
    row?.packets === undefined &&
    row?.target === target &&
    row.protocol === protocol &&
    row.source === undefined &&
    row.destination === undefined &&
    row.comment === undefined;
  const at = rows.findIndex((row, i) => {
    const [icmp, loopback, ...others] = rows.slice(i + 1, i + 6);
    return (
      row.chain === "INPUT" &&
      isPlain(row, "ACCEPT", "all") &&
      row.states.join() === "RELATED,ESTABLISHED" &&
      isPlain(icmp, "ACCEPT", "icmp") &&
      isPlain(loopback, "ACCEPT", "all") &&
      loopback.states.length === 0 &&
      others.some((other) => isPlain(other, "ACCEPT", "tcp") && other.states.join() === "NEW" && other.destinationPort === "22")
    );
  });
  const last = rows.find(
    (row, i) => i > at + 3 && isPlain(row, "REJECT", "all") && row.states.length === 0 && / reject-with icmp-host-prohibited *$/.test(row.spec),
  );
  const loopback = rows[at + 2];
  if (at === -1 || last === undefined || loopback === undefined || isText(last.spec)) return new Map();
  const known = [...rows.slice(at, at + 3), last];
  return new Map(known.map((row) => [row, row === loopback ? Object.assign(Object.create(row) as IptablesRow, { inInterface: "lo" }) : row]));
}

/**
 * A rule as conditions and an action. Compiled when its chain is entered first, so that the rules that no packet meets cost nothing.
 * @param whole a listing shows all that the rule asks, although it is without interfaces
 */
export function compile(row: IptablesRow, isChain: (name: string) => boolean, ipset: Ipset | undefined, whole = false): PathRule {
  let ready: { readonly conditions: readonly Condition[]; readonly action: Action } | undefined;
  return {
    row,
    steps(flow, marks): readonly Step[] {
      ready ??= {
        conditions: [...fieldConditions(row), ...(isText(row.spec) ? optionConditions(row, ipset) : whole ? [] : listedConditions(row)), ...cutConditions(row)],
        action: actionOf(row, isChain),
      };
      let doubt: Doubt | undefined;
      for (const condition of ready.conditions) {
        const answer = condition(flow, marks);
        if (answer === false) return [];
        if (answer !== true) doubt ??= answer;
      }
      return stepsOf(doubt ?? true, ready.action);
    },
  };
}

/** A rule that refuses packets, and may ask for more than what was seen of its line. */
const cutConditions = ({ cut, target = "" }: IptablesRow): Condition[] =>
  cut === true && (target === "DROP" || target === "REJECT") ? [() => "the end of its line was cut"] : [];

/** True for the text of a rule (`-i eth0 -j DROP`), false for a row of `iptables -L`. */
const isText = (spec: string): boolean => spec === "" || spec.startsWith("-") || spec.startsWith("! -");

/** What every format tells. */
function fieldConditions(row: IptablesRow): Condition[] {
  const conditions: Condition[] = [];
  if (row.protocol !== "all") {
    conditions.push(({ packet }) => negatedIf(row.protocolNegated, packet.protocol === (row.protocol === "ipv4" ? "ipencap" : row.protocol)));
  }
  const { inInterface, outInterface, source, destination, mark } = row;
  if (inInterface !== undefined) conditions.push(({ packet }) => negatedIf(row.inInterfaceNegated, isInterface(packet.inInterface, inInterface, "+")));
  if (outInterface !== undefined) conditions.push(({ packet }) => negatedIf(row.outInterfaceNegated, isInterface(packet.outInterface, outInterface, "+")));
  if (source !== undefined) conditions.push((flow) => negatedIf(row.sourceNegated, inRange(flow.source, source)));
  if (destination !== undefined) conditions.push((flow) => negatedIf(row.destinationNegated, inRange(flow.destination, destination)));
  if (row.states.length > 0) conditions.push(({ packet }, marks) => negatedIf(row.statesNegated, inStates(packet, marks, row.states)));
  if (mark !== undefined) conditions.push(markCondition(mark, row.markNegated));
  const { sourcePort, destinationPort } = row;
  if (sourcePort !== undefined) conditions.push(({ packet }) => negatedIf(row.sourcePortNegated, inSourcePorts(packet.sourcePort, sourcePort)));
  if (destinationPort !== undefined) conditions.push(({ packet }) => negatedIf(row.destinationPortNegated, inPorts(packet.destinationPort, destinationPort)));
  return conditions;
}

function markCondition(text: string, negated: boolean): Condition {
  const [value, mask] = numbers(text);
  if (value === undefined || mask === undefined) return () => `the mark ${text} could not be read`;
  return (_, marks) => negatedIf(negated, hasMark(marks, value, mask));
}

/** `0x4000/0x4000` as value and mask; without a mask all bits count. */
function numbers(text: string): [number | undefined, number | undefined] {
  const [value = "", mask = "0xffffffff"] = text.split("/", 2);
  const number = (word: string) => (/^(?:0x[\da-fA-F]{1,8}|\d{1,10})$/.test(word) ? u32(Number(word)) : undefined);
  return [number(value), number(mask)];
}

/** Options that `row` holds, with their value. Others are matches of their own. */
const HELD = new Set(
  "-p --protocol -s --source -d --destination -i --in-interface -o --out-interface --ctstate --state --dport --dports --destination-ports --sport --sports --source-ports --comment -c".split(
    " ",
  ),
);
/** Matches that are their module's name alone. */
const BARE = new Set(["socket", "rpfilter"]);
/** Matches that ask for something of their own; an `nft` that does not know them prints their names alone. */
const ASKING = new Set(["conntrack", "state", "multiport", "mark", "addrtype", "set"]);

/** The matches that only the text of the rule tells. */
function optionConditions(row: IptablesRow, ipset: Ipset | undefined): Condition[] {
  const words = wordsOf(row.spec);
  const conditions: Condition[] = [];
  let module = "";
  let negated = false;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] as string;
    const values = valuesFrom(words, i + 1);
    if (word === "!") {
      negated = true;
      continue;
    }
    // what follows belongs to the target
    if (word === "-j" || word === "-g") break;
    // a value behind an old-style `!`, which the row holds
    if (!word.startsWith("-")) continue;
    i += values.length;
    const [value = "", second = ""] = values;
    if (word === "-m") {
      module = value;
      if (BARE.has(module)) conditions.push(bare(module, words));
      else if (ASKING.has(module) && /^(?:-[mjg]|undefined)$/.test(String(words[i + 1]))) conditions.push(() => `what the rule asks ${module} is not shown`);
    } else if (word === "--mark" && module === "mark") {
      // held by the row
    } else if (word === "--match-set" || word === "--set") conditions.push(setCondition(ipset, value, second, negated));
    else if (word === "--tcp-flags") conditions.push(flagsCondition(value, second, negated));
    else if (word === "--syn" || word === "--tcp-syn") conditions.push(flagsCondition("FIN,SYN,RST,ACK", "SYN", negated));
    else if (word === "--src-type" || word === "--dst-type") conditions.push(typeCondition(word === "--src-type", value, negated));
    else if (word === "--src-range" || word === "--dst-range") {
      const [source, not_] = [word === "--src-range", negated];
      conditions.push((flow) => negatedIf(not_, inRange(source ? flow.source : flow.destination, value)));
    } else if (word.startsWith("--physdev-")) conditions.push(physdevCondition(word, value, negated));
    else if (word === "--pkt-type") {
      const answer = negatedIf(negated, value === "unicast");
      conditions.push(() => answer);
    } else if (word === "-f") {
      const answer = negated;
      conditions.push(() => answer);
    } else if (module === "owner" || word.endsWith("-owner")) {
      // only what a process of the node sends has an owner
      conditions.push(({ packet }) => packet.hook === "output" && `the rule asks for ${word}`);
    } else if (!HELD.has(word) && !IGNORED.has(word) && !BARE.has(module)) {
      const doubt = `the rule asks for ${module === "" ? word : `${module} ${word}`}`;
      conditions.push(() => doubt);
    }
    negated = false;
  }
  return conditions;
}
/** Options that only refine one that stands beside them; `-4` and `-6` say what the family says. */
const IGNORED = new Set(["--return-nomatch", "-4", "-6", "--limit-iface-in", "--limit-iface-out"]);

function bare(module: string, words: readonly string[]): Condition {
  // A packet that is passed on belongs to no socket of the node. One for the node may.
  if (module === "socket") return ({ packet }) => packet.hook !== "forward" && "the rule asks for a socket";
  // Probes come in by the way on which their answers leave.
  const answer = !words.includes("--invert");
  return () => answer;
}

function setCondition(ipset: Ipset | undefined, name: string, directions: string, negated: boolean): Condition {
  return (flow) => negatedIf(negated, inSet(ipset, name, directions.split(","), flow));
}

/** A first packet has SYN alone, later ones ACK alone. */
function flagsCondition(mask: string, wanted: string, negated: boolean): Condition {
  const names = (text: string) => (text === "ALL" ? ["FIN", "SYN", "RST", "PSH", "ACK", "URG"] : text === "NONE" || text === "" ? [] : text.split(","));
  return ({ packet }) => {
    if (packet.protocol !== "tcp") return false;
    if (packet.state === "INVALID" || packet.state === "UNTRACKED") return "the rule asks for TCP flags";
    const set = [packet.state === "NEW" ? "SYN" : "ACK"];
    const seen = names(mask).filter((flag) => set.includes(flag));
    return negatedIf(negated, seen.length === names(wanted).length && names(wanted).every((flag) => seen.includes(flag)));
  };
}

/** Addresses of probes are neither of broadcasts nor of multicasts; they are the node's own at "input" (destination) and "output" (source). */
function typeCondition(source: boolean, types: string, negated: boolean): Condition {
  return ({ packet }) => {
    const local = source ? packet.hook === "output" : packet.hook === "input";
    return negatedIf(
      negated,
      any(
        types
          .split(",")
          .map((type) =>
            type === "LOCAL"
              ? local
              : type === "UNICAST"
                ? !local
                : type === "UNSPEC"
                  ? false
                  : /^(?:BROADCAST|MULTICAST|ANYCAST)$/.test(type)
                    ? false
                    : `the rule asks for addresses of type ${type}`,
          ),
      ),
    );
  };
}

function physdevCondition(option: string, value: string, negated: boolean): Condition {
  return ({ packet: { bridged } }) => {
    if (option === "--physdev-is-bridged") return negatedIf(negated, bridged !== undefined);
    // A packet that came in over a bridge port and is routed has one too, but a probe of a bridge is asked with "bridged".
    if (bridged === undefined) return option === "--physdev-is-in" || option === "--physdev-in" ? `the rule asks for ${option}` : negated;
    if (option === "--physdev-is-in" || option === "--physdev-is-out") return !negated;
    const port = option === "--physdev-in" ? bridged.inPort : bridged.outPort;
    if (port === undefined) return `the rule asks for the bridge port ${value}`;
    return negatedIf(negated, isInterface(port, value, "+"));
  };
}

/** The matches that `iptables -L` prints in words behind the columns. What is not understood is in doubt. */
function listedConditions(row: IptablesRow): Condition[] {
  // without -v neither counters nor interfaces are shown: a rule that looks as if it took everything may be for lo alone
  if (row.packets === undefined) return [() => "the listing does not show for which interfaces the rule is (`iptables -L` without -v)"];
  const words = row.spec.replace(COMMENT, " ").split(/\s+/);
  const source = words.findIndex((word, i) => ADDRESS.test(word) && ADDRESS.test(words[i + 1] ?? ""));
  if (source === -1) return [() => "the columns of the listing could not be told apart"];
  let rest = ` ${words.slice(source + 2).join(" ")} `;
  const conditions: Condition[] = [];
  for (const [pattern, condition] of LISTED) {
    if (!pattern.test(rest)) continue;
    if (condition !== undefined) conditions.push(condition);
    rest = rest.replace(pattern, " ");
  }
  const doubt = `the rule asks for ${rest.trim()}`;
  if (rest.trim() !== "") conditions.push(() => doubt);
  return conditions;
}
const COMMENT = /\/\*.*?\*\//g;
const ADDRESS = /^!?(?:anywhere|(?=[^/]*[.:])[\da-fA-F.:]{2,45}(?:\/[\d.]{1,15})?)$/;
/** What the details of a listing show, in the order in which it is taken away. Without a condition: the row holds it, or it belongs to the target. */
const LISTED: readonly (readonly [RegExp, Condition | undefined])[] = [
  [
    / (?:LOG flags|LOG level|nflog-|NFLOG|TCPMSS|MARK (?:set|xset|and|or|xor)|CONNMARK (?:set|save|restore|xset|and|or)|CT notrack|NOTRACK|DSCP set|CHECKSUM|CLASSIFY) .*$/,
    undefined,
  ],
  [/ reject-with \S+/, undefined],
  [/ to:\S+/, undefined],
  [/ random(?:-fully)?(?= )/g, undefined],
  [/ \[goto\]/, undefined],
  [/ (?:ct)?state \S+/, undefined],
  [/ multiport !?(?: ?[ds]ports !?(?: ?)\S+)/g, undefined],
  [/ (?:tcp|udp|sctp|udplite)?(?: [ds]pts?:!?\S+)+/g, undefined],
  [/ mark match !?(?: ?)0x\S+/, undefined],
  [/ ADDRTYPE match dst-type LOCAL/, ({ packet }) => packet.hook === "input"],
  [/ ADDRTYPE match dst-type !LOCAL/, ({ packet }) => packet.hook !== "input"],
  [/ ADDRTYPE match src-type LOCAL/, ({ packet }) => packet.hook === "output"],
  [/ owner (?:UID|GID) match \S+/, ({ packet }) => packet.hook === "output" && "the rule asks for the owner"],
  [/ rpfilter(?: loose)?(?: validmark)? invert/, () => false],
  [/ (?:tcp|udp)(?= )/g, undefined],
];

function actionOf(row: IptablesRow, isChain: (name: string) => boolean): Action {
  const { target } = row;
  if (target === undefined) return { kind: "none" };
  if (row.goto) return { kind: "goto", chain: target };
  switch (target) {
    case "ACCEPT":
      return { kind: "accept" };
    case "DROP":
      return { kind: "drop" };
    case "REJECT":
      return { kind: "reject" };
    case "RETURN":
      return { kind: "return" };
    case "MARK":
      return { kind: "none", marks: markChange(row.setMark) };
    case "CONNMARK":
      return { kind: "none", marks: connmarkChange(row.spec) };
    case "NOTRACK":
      return { kind: "none", marks: untrack };
    case "CT":
      return /--notrack|NOTRACK|CT notrack/.test(row.spec) ? { kind: "none", marks: untrack } : { kind: "none" };
    case "NFQUEUE":
    case "QUEUE":
    case "TPROXY":
    case "SYNPROXY":
      return { kind: "unknown", doubt: `${target} hands the packet to a program` };
    default:
      if (isChain(target)) return { kind: "jump", chain: target };
      if (PASSING.has(target)) return { kind: "none" };
      return { kind: "unknown", doubt: `what ${target} does is not known`, ...(NEVER_ACCEPTS.test(target) ? { neverAccepts: true } : {}) };
  }
}
/** Chains of kube-proxy that may refuse a packet of a probe, and accept none: health check ports are no probe's. */
const NEVER_ACCEPTS = /^KUBE-(?:FIREWALL|PROXY-FIREWALL|NODEPORTS|NODE-PORT|EXTERNAL-SERVICES|SERVICES)$/;
/** Targets behind which the next rule is looked at. */
const PASSING = new Set(
  "LOG NFLOG ULOG TRACE TCPMSS CLASSIFY DSCP TOS TTL HL CHECKSUM SET CONNSECMARK SECMARK AUDIT RATEEST ACCOUNT IDLETIMER LED TEE ECN TCPOPTSTRIP HMARK".split(
    " ",
  ),
);

const untrack = (marks: Marks): Marks => ({ ...marks, untracked: true });

function markChange(text: string | undefined): (marks: Marks) => Marks {
  const [value, mask] = numbers(text ?? "?");
  if (value === undefined || mask === undefined) return (marks) => ({ ...marks, mark: 0, unknown: 0xffffffff });
  return (marks) => withMark(marks, value, mask);
}

/** `--restore-mark` copies bits of the connection's mark, which nobody knows. */
function connmarkChange(spec: string): (marks: Marks) => Marks {
  if (!/--restore-mark|CONNMARK restore/.test(spec)) return (marks) => marks;
  const [, mask] = /(?:--nfmask|--mask|mask) (0x[\da-fA-F]{1,8})/.exec(spec) ?? [];
  const bits = mask === undefined ? 0xffffffff : u32(Number(mask));
  return (marks) => ({ ...marks, mark: u32(marks.mark & ~bits), unknown: u32(marks.unknown | bits) });
}

/** The words of a rule; a quoted text is one. */
function wordsOf(spec: string): string[] {
  const words: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|(\S+)/g;
  for (let match = pattern.exec(spec); match !== null; match = pattern.exec(spec)) words.push(match[2] ?? `"${match[1] ?? ""}`);
  return words;
}

/** The words behind an option up to the next one. */
function valuesFrom(words: readonly string[], from: number): string[] {
  const values: string[] = [];
  for (let i = from; i < words.length; i++) {
    const word = words[i] as string;
    if ((word.startsWith("-") && word.length > 1) || word === "!") break;
    values.push(word);
  }
  return values;
}
