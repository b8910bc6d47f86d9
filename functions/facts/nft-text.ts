import { COLORS, ESCAPE, type UnparsedLines } from "./fact.ts";
import { isFamily, isVerdict, MAX_MEMBERS, memberText, type Nft, type NftChain, type NftFamily, type NftRow, type NftSet, type NftStray } from "./nft-row.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

const NAME = /^(?:"[^"\s]{1,256}"|[^\s"{};#]{1,256})$/;
/** `chain PREROUTING { # handle 1` */
const OPENING = /^(.{1,400}?) \{(?: # handle \d{1,15})?$/;
const HOOK =
  /^type (filter|nat|route) hook ([a-z]{1,16})(?: devices? (?:= )?(\{[^}]{1,4096}\}|"?[^\s;"]{1,64}"?))? priority ([^;]{1,64});(?: policy ([a-z]{1,16});)?$/;
/** What stands in a set besides its elements. */
const SET_LINE = /^(?:type|typeof|flags|timeout|gc-interval|size|policy|auto-merge|comment|counter|quota|limit|last|ct count|expires)(?:[ ;].*)?$/;
/** What `grep -B` shows of the chains around, and prints between two places. */
const AROUND = /^(?:--|\}|chain \S{1,128} \{(?: # handle \d{1,15})?)$/;
const TABLE_LINE = /^(?:comment "|flags )/;
const CHAIN_LINE = /^(?:comment "[^"]{0,256}"|flags [a-z]{1,16};?)$/;
/** iptables-nft puts such a remark above each of its tables; other lines with # are remarks of people. */
const REMARK = /^#/;
const OBJECT = /^(?:ct helper|ct timeout|ct expectation|counter|quota|limit|flowtable|synproxy|secmark|tunnel) /;
/** Words a rule can begin with. */
const STARTS = new Set(
  `meta ip ip6 ether arp vlan tcp udp udplite sctp dccp th icmp icmpv6 igmp ah esp comp gre gretap geneve vxlan frag dst hbh mh srh exthdr rt ipsec
   iif iifname iiftype iifgroup oif oifname oiftype oifgroup ibrname obrname ibriport obriport ibrpvid ibrvproto sdif sdifname iifkind oifkind
   mark skuid skgid cgroup cpu pkttype priority protocol nfproto l4proto length nftrace random rtclassid secpath secmark time day hour
   ct fib socket osf numgen jhash symhash counter limit quota last log accept drop reject return jump goto queue continue dup fwd dnat snat masquerade
   redirect tproxy synproxy notrack flow add update delete set map xt`.split(/\s+/),
);

interface Place {
  readonly family: NftFamily;
  readonly table: string;
}
type Block =
  | { readonly kind: "table" }
  | { readonly kind: "chain"; readonly chain: NftChain; position: number; broken: boolean }
  | { readonly kind: "set"; readonly set: NftSet; elements: number; readonly members: string[] }
  | { readonly kind: "object" };

/**
 * Reads `nft list …` as text: blocks in braces, one rule a line (or more, if it holds a set that is broken over lines). A chain is complete if its brace
 * is closed and each of its lines was read. `rules`: the command shows the rules of the chains that it shows; `searched`: what stands around them may be gone.
 */
export function readText(text: string, elements: boolean, rules: boolean, searched: boolean, unparsed: UnparsedLines): Nft {
  const result: Nft = { tables: [], chains: [], rows: [], sets: [] };
  const strays: NftStray[] = [];
  let place: Place | undefined;
  const blocks: Block[] = [];
  /** A rule whose set is not closed yet. */
  let open: { line: number; parts: string[]; scan: Scan } | undefined;
  /** The elements of a set while they are not closed. */
  let counting: Scan | undefined;
  let last = 0;
  /** nft sets rules in: then what stands at the margin is the rest of one that a window or a mail wrapped. */
  let setIn = false;
  for (const { line, text: content, ended, flush } of trimmedLines(text)) {
    last = line;
    const block = blocks.at(-1);
    if (block?.kind === "chain" && flush && setIn && content !== "}" && open === undefined) {
      unparsed.add(line, content);
      block.broken = true;
      continue;
    }
    setIn ||= block?.kind === "chain" && !flush;
    if (!ended && block !== undefined && content !== "}") unparsed.add(line, content);
    else if (open !== undefined) {
      open.parts.push(content);
      if (scan(content, open.scan).depth <= 0) {
        addRule(open.line, open.parts.join(" "));
        open = undefined;
      }
    } else if (counting !== undefined && block?.kind === "set") {
      block.elements += countElements(content, counting, block.members);
      if (counting.depth <= 0) counting = undefined;
    } else if (block === undefined && isPrompt(content)) continue;
    else if (content === "}") close(line);
    else if (block === undefined) openTable(line, content);
    else if (block.kind === "table") openBlock(line, content);
    else if (block.kind === "object") openNested(content);
    else if (block.kind === "set") {
      if (content.startsWith("elements = {")) {
        const begun: Scan = newScan();
        block.elements += countElements(content.slice("elements = ".length), begun, block.members);
        if (begun.depth > 0) counting = begun;
      } else if (!SET_LINE.test(content)) unparsed.add(line, content);
    } else if (content.startsWith("type ") && HOOK.test(content)) Object.assign(block.chain, hookOf(content), { hookLine: line });
    else if (!CHAIN_LINE.test(content)) {
      const state = scan(content, newScan());
      if (state.depth > 0) open = { line, parts: [content], scan: state };
      else addRule(line, content);
    }
  }
  if (open !== undefined) unparsed.add(open.line, open.parts.join(" "));
  if (blocks.length > 0) unparsed.add(last, "a block is not closed: the output was cut");
  return strays.length === 0 ? result : { ...result, strays };

  function openTable(line: number, content: string): void {
    const head = OPENING.exec(content)?.[1];
    const [word, family, name, ...rest] = (head ?? content).split(" ", 5);
    if (word === "table" && isFamily(family) && name !== undefined && NAME.test(name) && rest.length === 0) {
      place = { family, table: bare(name) };
      result.tables.push({ line, family, name: bare(name) });
      // `nft list tables` names them only.
      if (head !== undefined) blocks.push({ kind: "table" });
    } else if (!REMARK.test(content)) addStray(line, content);
  }

  function addStray(line: number, content: string): void {
    if (searched && AROUND.test(content)) return;
    const rule = searched && scan(content, newScan()).depth === 0 ? ruleOf(content) : undefined;
    if (rule === undefined) unparsed.add(line, content);
    else strays.push({ line, spec: rule.spec, ...present({ target: rule.target }) });
  }

  function openBlock(line: number, content: string): void {
    const head = OPENING.exec(content)?.[1] ?? "";
    const [word = "", name = "", ...rest] = head.split(" ");
    const here = place as Place;
    const named = NAME.test(name) && rest.length === 0;
    if (word === "chain" && named) {
      const chain: NftChain = { line, ...here, name: bare(name), complete: false };
      result.chains.push(chain);
      blocks.push({ kind: "chain", chain, position: 0, broken: false });
    } else if ((word === "set" || word === "map" || word === "meter") && named) {
      const set: NftSet = { line, ...here, name: bare(name), kind: word };
      result.sets.push(set);
      blocks.push({ kind: "set", set, elements: 0, members: [] });
    } else if (OBJECT.test(head)) blocks.push({ kind: "object" });
    else if (OBJECT.test(content) && content.endsWith("}")) return;
    else if (!TABLE_LINE.test(content) && !REMARK.test(content)) unparsed.add(line, content);
  }

  /** Of objects without rules only the braces count. */
  function openNested(content: string): void {
    const { depth } = scan(content, newScan());
    for (let i = 0; i < depth; i++) blocks.push({ kind: "object" });
    for (let i = depth; i < 0; i++) blocks.pop();
  }

  function close(line: number): void {
    const block = blocks.pop();
    if (block === undefined) addStray(line, "}");
    else if (block.kind === "chain") block.chain.complete = rules && !block.broken;
    else if (block.kind === "set" && elements) {
      block.set.elements = block.elements;
      block.set.members = block.members;
    }
  }

  function addRule(line: number, content: string): void {
    const block = blocks.at(-1);
    if (block?.kind !== "chain") return;
    const rule = ruleOf(content);
    if (rule === undefined) {
      if (REMARK.test(content)) return;
      unparsed.add(line, content);
      block.broken = true;
      return;
    }
    block.position++;
    const { family, table } = place as Place;
    result.rows.push({ line, family, table, chain: block.chain.name, position: block.position, ...rule });
  }
}

/** The lines of a text that are not blank, uncut: sets stand in one line however long. `ended`: with a newline; `flush`: no blank stands in front. */
function* trimmedLines(text: string): Generator<{ line: number; text: string; ended: boolean; flush: boolean }> {
  const coloured = text.includes(ESCAPE);
  let line = 0;
  for (let start = 0; start < text.length; ) {
    const newline = text.indexOf("\n", start);
    const end = newline === -1 ? text.length : newline;
    line++;
    const content = (coloured ? text.slice(start, end).replace(COLORS, "") : text.slice(start, end)).trim();
    if (content !== "") yield { line, text: content, ended: newline !== -1, flush: !/^\s/.test(text.slice(start, start + 1)) };
    start = end + 1;
  }
}

/** A name without its quotes. */
export const bare = (name: string): string => (name.startsWith('"') ? name.slice(1, -1) : name);

function hookOf(content: string) {
  const [, type, hook, devices, priority, policy] = HOOK.exec(content) as unknown as [string, string, string, string?, string?, string?];
  const device = devices?.replace(/["{}\s]/g, "");
  return present({ type, hook, priority, policy, device });
}

/** How far a text is inside braces and quotes. */
interface Scan {
  depth: number;
  quoted: boolean;
  /** What stands behind the last comma, from the lines before. */
  member: string;
}
const newScan = (): Scan => ({ depth: 0, quoted: false, member: "" });

/** Counts braces outside quotes. A quote does not go over the end of a line. */
function scan(content: string, state: Scan): Scan {
  state.quoted = false;
  for (let i = 0; i < content.length; i++) {
    const code = content.charCodeAt(i);
    if (code === 34 /* " */) state.quoted = !state.quoted;
    else if (state.quoted) continue;
    else if (code === 123 /* { */) state.depth++;
    else if (code === 125 /* } */) state.depth--;
  }
  return state;
}

/** How many elements of `{ a, b, c }` end in this line: those behind which a comma or the closing brace stands. They go to `members`, as far as it may grow. */
function countElements(content: string, state: Scan, members: string[]): number {
  let count = 0;
  let start = 0;
  state.quoted = false;
  const end = (at: number): void => {
    const text = `${state.member} ${content.slice(start, at)}`.trim();
    state.member = "";
    start = at + 1;
    if (text === "") return;
    count++;
    if (members.length < MAX_MEMBERS) members.push(memberText(text.slice(0, 1000)));
  };
  for (let i = 0; i < content.length; i++) {
    const code = content.charCodeAt(i);
    if (code === 34 /* " */) state.quoted = !state.quoted;
    else if (state.quoted) continue;
    else if (code === 123 /* { */) {
      if (state.depth++ === 0) start = i + 1;
    } else if (code === 125 /* } */) {
      if (--state.depth > 0) continue;
      end(i);
      return count;
    } else if (code === 44 /* , */ && state.depth === 1) end(i);
  }
  // bounded: an element is no longer than a line or two
  state.member = `${state.member} ${content.slice(start)}`.slice(0, 1000);
  return count;
}

/** One rule; undefined if the line is none. */
function ruleOf(content: string): (Pick<NftRow, "spec"> & Partial<NftRow>) | undefined {
  const words = wordsOf(content);
  const first = words[0]?.text ?? "";
  const remark = first.startsWith("#");
  if (remark ? !words.some((word) => word.text === "counter") : !STARTS.has(first) && !first.startsWith("@")) return undefined;
  const found: Partial<NftRow> = {};
  /** What is left of the text, from its end on: each part is copied once, however many counters a line has. */
  const kept: string[] = [];
  let keptFrom = content.length;
  for (let i = words.length - 1; i >= 0; i--) {
    const { text, from, end } = words[i] as Word;
    const value = words[i + 1]?.text ?? "";
    if (text === "#" && value === "handle" && i === words.length - 3 && /^\d{1,15}$/.test(words[i + 2]?.text ?? "")) {
      found.handle = Number(words[i + 2]?.text);
      keptFrom = from;
    } else if (text === "counter" && value === "packets" && words[i + 3]?.text === "bytes") {
      const [packets, bytes] = [Number(words[i + 2]?.text), Number(words[i + 4]?.text)];
      if (!Number.isSafeInteger(packets) || !Number.isSafeInteger(bytes)) return undefined;
      found.packets = packets;
      found.bytes = bytes;
      kept.push(content.slice((words[i + 4] as Word).end, keptFrom));
      keptFrom = end;
    } else if (text === "comment" && value.startsWith('"')) found.comment = value.slice(1, -1);
    else if (found.verdict === undefined && isVerdict(text) && words[i - 1]?.text !== "target") {
      found.verdict = text;
      if ((text === "jump" || text === "goto") && value !== "") found.target = bare(value);
    }
  }
  kept.push(content.slice(0, keptFrom));
  return { ...found, spec: kept.reverse().join("").trimEnd().replace(/ {2,}/g, " ") };
}

interface Word {
  readonly text: string;
  readonly from: number;
  readonly end: number;
}

/** The words of a rule outside braces; a quoted text is one word. */
function wordsOf(content: string): Word[] {
  const words: Word[] = [];
  let depth = 0;
  for (let i = 0; i < content.length; ) {
    const code = content.charCodeAt(i);
    const from = i;
    if (code <= 32) {
      i++;
      continue;
    }
    if (code === 34) {
      const close = content.indexOf('"', i + 1);
      i = close === -1 ? content.length : close + 1;
    } else if (code === 123 || code === 125) {
      depth += code === 123 ? 1 : -1;
      i++;
      continue;
    } else while (i < content.length && content.charCodeAt(i) > 32 && content.charCodeAt(i) !== 123 && content.charCodeAt(i) !== 125) i++;
    if (depth === 0) words.push({ text: content.slice(from, i), from, end: i });
  }
  return words;
}
