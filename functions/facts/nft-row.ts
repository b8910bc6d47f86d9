import { z } from "zod";

const FAMILY_NAMES = ["ip", "ip6", "inet", "arp", "bridge", "netdev"] as const;
const Family = z.enum(FAMILY_NAMES);
export type NftFamily = z.infer<typeof Family>;
export const FAMILIES: ReadonlySet<string> = new Set(FAMILY_NAMES);
export const isFamily = (word: string | undefined): word is NftFamily => word !== undefined && FAMILIES.has(word);

/** What ends a rule. Statements that translate addresses are not verdicts here: they stand in `spec`. */
const VERDICT_NAMES = ["accept", "drop", "reject", "return", "jump", "goto", "queue"] as const;
const Verdict = z.enum(VERDICT_NAMES);
export type NftVerdict = z.infer<typeof Verdict>;
const VERDICTS: ReadonlySet<string> = new Set(VERDICT_NAMES);
export const isVerdict = (word: string): word is NftVerdict => VERDICTS.has(word);

/** `table inet firewall {` */
const NftTable = z.object({
  line: z.int(),
  family: Family,
  name: z.string(),
  /** The whole ruleset was seen, so that there is no other table. Known when all outputs are put together. */
  whole: z.boolean().optional(),
});

/**
 * A chain; one with a hook is entered by packets, the others by jumps.
 *
 *     chain PREROUTING {
 *         type nat hook prerouting priority dstnat; policy accept;
 */
const NftChain = z.object({
  line: z.int(),
  family: Family,
  table: z.string(),
  name: z.string(),
  type: z.string().optional(),
  hook: z.string().optional(),
  /** As printed: a number in JSON, `dstnat`, `filter - 10` or a number in text. */
  priority: z.string().optional(),
  policy: z.string().optional(),
  /** The line of hook, priority and policy, where it is not the chain's own (text). */
  hookLine: z.int().optional(),
  /** Of chains at ingress and egress; several are separated by commas. */
  device: z.string().optional(),
  /** All rules of the chain were seen. */
  complete: z.boolean(),
});

/**
 * A rule.
 *
 *     ip daddr 100.67.30.133 tcp dport 80 counter packets 2 bytes 120 jump KUBE-SVC-3IL52ANAN3BQ2L74 # handle 7
 *     {"rule": {"family": "ip", "table": "nat", "chain": "KUBE-SERVICES", "handle": 7, "expr": […]}}
 */
const NftRow = z.object({
  line: z.int(),
  family: Family,
  table: z.string(),
  chain: z.string(),
  /** 1-based in its chain, among the rules that were read. */
  position: z.int(),
  /** JSON, and text with `-a`. */
  handle: z.int().optional(),
  /** The rule as text, without counter values, handle and (from JSON) comment. JSON is rendered close to the text form, not equal to it. */
  spec: z.string(),
  /** Absent if the rule goes on, or decides by a verdict map. */
  verdict: Verdict.optional(),
  /** The chain of a jump or goto. */
  target: z.string().optional(),
  packets: z.int().optional(),
  bytes: z.int().optional(),
  /** Between two samples, of a rule that stands in both at the same place with the same text. */
  packetsDelta: z.int().optional(),
  comment: z.string().optional(),
});

/** A named set, map or meter. */
const NftSet = z.object({
  line: z.int(),
  family: Family,
  table: z.string(),
  name: z.string(),
  kind: z.enum(["set", "map", "meter"]),
  /** Absent if the command does not show elements (`-t`), or the output was cut inside them. */
  elements: z.int().optional(),
  /** The elements as text (`10.0.0.1 . tcp . 80 : goto reject-chain`), without timeouts and counters; the first {@link MAX_MEMBERS}. Absent if `elements` is. */
  members: z.array(z.string()).optional(),
});

/** More elements of one set than this are counted, not kept. */
export const MAX_MEMBERS = 2000;

/** An element without what does not tell which one it is. */
export const memberText = (text: string): string =>
  text
    .replace(/ (?:timeout|expires) \S{1,40}| counter packets \d{1,20} bytes \d{1,20}| comment "[^"]{0,256}"/g, "")
    .replace(/\s{1,80}/g, " ")
    .trim()
    .slice(0, 400);

/**
 * A rule that somebody searched for in the whole ruleset (`nft list ruleset | grep "dport 3001"`): which chain it stands in, the search did not show.
 *
 *     tcp dport 3001 dnat ip to 10.88.0.20:3001
 */
const NftStray = z.object({ line: z.int(), spec: z.string(), target: z.string().optional() });

export const Nft = z.object({
  tables: z.array(NftTable),
  chains: z.array(NftChain),
  rows: z.array(NftRow),
  sets: z.array(NftSet),
  strays: z.array(NftStray).optional(),
});
export type Nft = z.infer<typeof Nft>;
export type NftChain = z.infer<typeof NftChain>;
export type NftRow = z.infer<typeof NftRow>;
export type NftSet = z.infer<typeof NftSet>;
export type NftStray = z.infer<typeof NftStray>;
