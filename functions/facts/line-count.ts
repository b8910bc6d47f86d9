import { z } from "zod";
import { bpftoolCall } from "./bpftool.ts";
import { CONNTRACK_TABLE } from "./conntrack.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { ipCommand } from "./ip-command.ts";
import { metricsAs, metricsView } from "./node-metrics.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";

/**
 * How many lines a listing had of which a person kept nothing but their number. Options and filters may have left lines out: there are at least as many.
 *
 *     $ conntrack -L | wc -l
 *     131066
 *     $ wc -l /proc/net/arp
 *     1025 /proc/net/arp
 *     node_arp_entries{device="eth0"} 786                               (node_exporter, of each device with one)
 *     $ bpftool map dump id 411 | tail -1
 *     Found 65536 elements
 *     $ iptables-legacy-save | grep -c KUBE-
 *     412
 *     $ iptables -L -n | grep "kubernetes firewall for dropping marked packets" | wc -l
 *     4190
 */
const Count = z.object({
  line: z.int(),
  /** What each line stood for. */
  of: z.enum(["connections", "neighbors", "elements", "rules", "copies"]),
  /** Of neighbours, where it was asked for one family, and of copies. */
  family: z.enum(["ipv4", "ipv6"]).optional(),
  /** Of rules: which of the two iptables, where the command says it, and the chains that were counted: what somebody searched for ("KUBE-SEP"). Chains count, too. */
  backend: z.enum(["legacy", "nft"]).optional(),
  /** Of copies: the comment of a rule that is there once, or for a few tables and chains once each; or the address of node-local-dns. */
  search: z.string().optional(),
  /** Of elements, how the command named their BPF map: "id 411", "pinned /sys/fs/bpf/tc/globals/cilium_lb4_services_v2". */
  map: z.string().optional(),
  count: z.int(),
});
const LineCount = z.object({ rows: z.array(Count) });

/** All neighbours of IPv4, below a headline. */
const ARP = procNet("arp");
const NUMBER = /^(\d{1,9})(?: \/\S{1,80})?$/;
/** Says conntrack on stderr. */
const SUMMARY = /^conntrack v[\d.]{1,12} \(conntrack-tools\): \d{1,12} flow entries have been shown\.$/;
const FOUND = /^Found (\d{1,9}) elements?$/;
/** What leaves a number that is the one of the elements: an element may stand on several lines, but has one key. */
const KEYS = /(?:^|\| )(?:[ef]?grep -[a-z]{0,3}c[a-z]{0,3} \S{0,4}key\S{0,4}|jq \S{0,4}length\S{0,2})$/;
/** `iptables-legacy-save -t nat`, and what leaves the number of the lines that name a chain of Kubernetes or of a CNI. */
const SAVE = /^iptables-(legacy|nft)-save$/;
const CHAINS = /^[ef]?grep -[a-z]{0,3}c[a-z]{0,3}(?: --)? ['"]?(?:-A )?(KUBE[A-Z-]{0,20}|cali-?|CILIUM_?|FLANNEL-?)['"]?$/;
/** `iptables -L -n | grep "kubernetes firewall for dropping marked packets" | wc -l`: comments that kubelet and kube-proxy give to one rule, or to a handful of jumps. */
const COMMENT = /^(?:[ef]?grep (?:-[a-bd-uw-z]{1,3} )?(.{1,80}?) \| wc -l|[ef]?grep -[a-bd-uw-z]{0,3}c[a-bd-uw-z]{0,3}(?: --)? (.{1,80}))$/;
const SINGLES: ReadonlySet<string> = new Set([
  "kubernetes firewall for dropping marked packets",
  "block incoming localnet connections",
  "kubernetes postrouting rules",
  "kubernetes forwarding rules",
  "kubernetes service portals",
  "kubernetes service traffic requiring SNAT",
]);
/** The usual addresses of node-local-dns (Kubespray has the second), of which there are a dozen rules. */
const LOCAL_DNS = /^169\.254\.2[05]\.10$/;
const LISTING = /^ip(6)?tables(?:-(legacy|nft))?(?:-save)?$/;
/** Says iptables on stderr. */
const REMARK = /^# Warning: ip6?tables-legacy tables present/;
/** A number stands alone, but for a prompt and what conntrack adds: a listing has more lines. */
const MAX_LINES = 6;

export const lineCount = defineFact({
  id: "line-count",
  title: "How many connections, neighbours, rules or elements of a BPF map there are, where only their number was kept (pasted only)",
  commands: [],
  recognize(argv, _, pipe = ""): View | undefined {
    const [program = "", ...rest] = argv;
    const last = rest.at(-1) ?? "";
    if (
      (program === "cat" && rest.length === 1 && CONNTRACK_TABLE.test(last)) ||
      (program === "wc" && rest[0] === "-l" && rest.length === 2 && CONNTRACK_TABLE.test(last))
    )
      return { format: "connections", complete: false, scope: "connections", rank: 1 };
    if ((program === "cat" || (program === "wc" && rest[0] === "-l")) && rest.length === (program === "wc" ? 2 : 1) && ARP.test(last))
      return { format: "neighbors ipv4 headline", complete: false, scope: "ipv4", rank: 1 };
    const metrics = metricsView(argv, "metrics");
    if (metrics !== undefined) return metrics;
    if (program === "conntrack" && rest.some((word) => word === "-L" || word === "--dump"))
      return { format: "connections", complete: false, scope: "connections", rank: 1 };
    const backend = SAVE.exec(program)?.[1];
    const listing = LISTING.exec(program);
    if (
      listing !== null &&
      backend === undefined &&
      singleIn(pipe) !== undefined &&
      (program.endsWith("-save") || rest.some((word) => /^(?:-[a-zA-Z]{0,6}[LS]|--list)/.test(word)))
    )
      return {
        format: `copies ${listing[1] === "6" ? "ipv6" : "ipv4"} ${listing[2] ?? ""}`.trim(),
        complete: false,
        scope: argv.join(" ").slice(0, 200),
        rank: 1,
      };
    if (backend !== undefined || (program === "iptables-save" && CHAINS.test(pipe)))
      return { format: `rules ${backend ?? ""}`.trim(), complete: false, scope: argv.join(" ").slice(0, 200), rank: 1 };
    if (program === "arp" && rest.length > 0 && rest.every((word) => /^-[aenv]{1,4}$/.test(word)))
      return { format: "neighbors ipv4", complete: false, scope: "ipv4", rank: 1 };
    const call = bpftoolCall(argv);
    if (call?.object === "map" && call.command === "dump" && call.rest.length >= 2)
      return { format: "elements", complete: false, scope: call.rest.slice(0, 2).join(" "), rank: 1 };
    const command = ipCommand(argv);
    // `nud all` counts permanent entries, too, which do not count towards the limit: only where the number is the very limit it tells (neighbor-table)
    if (command?.object !== "neighbor" || command.json || command.family === undefined || !/^(?:nud all)?$/.test(command.filters.join(" "))) return undefined;
    return { format: `neighbors ${command.family}`, complete: false, scope: command.family, rank: 1 };
  },
  schema: LineCount,
  parse({ text, view, pipe = "" }) {
    const unparsed = new UnparsedLines();
    if (view.format === "metrics") return unparsed.with({ rows: arpEntries(text) });
    const [shown, ...about] = view.format.split(" ") as ["connections" | "neighbors" | "elements" | "rules" | "copies", ...string[]];
    const single = shown === "rules" || shown === "copies" ? singleIn(pipe) : undefined;
    const of = single === undefined ? shown : "copies";
    const search = single ?? (of === "rules" ? CHAINS.exec(pipe)?.[1] : undefined);
    // the listing itself, which other facts read
    if ((of === "rules" || of === "copies") && search === undefined) return unparsed.with({ rows: [] });
    const read = (line: string): string | undefined => (of !== "elements" || KEYS.test(pipe) ? NUMBER : FOUND).exec(line)?.[1];
    const found: { line: number; count: number }[] = [];
    let seen = 0;
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim();
      if (bare === "" || isPrompt(bare) || SUMMARY.test(bare) || REMARK.test(bare)) continue;
      const number = read(bare);
      if (++seen > MAX_LINES || number === undefined) return unparsed.with({ rows: [] });
      found.push({ line, count: Number(number) });
    }
    const [only] = found;
    return unparsed.with({
      rows:
        only === undefined || found.length > 1
          ? []
          : [
              {
                ...only,
                count: Math.max(0, only.count - Number(about.includes("headline"))),
                of,
                ...said(of, about),
                ...present({ search }),
                ...(of === "elements" ? { map: view.scope } : {}),
              },
            ],
    });
  },
  whole: () => false,
});

/** The entries of all devices, as node_exporter counts the lines of /proc/net/arp; of a device that stands there twice the later number. */
function arpEntries(text: string): z.infer<typeof Count>[] {
  const devices = new Map<string, { line: number; count: number }>();
  const counts = metricsAs(text, ({ name, labels, value }) => (name === "arp_entries" ? `${value} ${labels["device"] ?? ""}` : undefined)).split("\n");
  for (const [i, content] of counts.entries()) {
    const [count = "", device = ""] = content.split(" ");
    if (count !== "") devices.set(device, { line: i + 1, count: Number(count) });
  }
  const [first, ...others] = devices.values();
  return first === undefined ? [] : [{ line: first.line, of: "neighbors", family: "ipv4", count: others.reduce((sum, { count }) => sum + count, first.count) }];
}

/** The comment that somebody searched for, if it is one of those that stand once, or a few times. */
function singleIn(pipe: string): string | undefined {
  const [, listed, counted] = COMMENT.exec(pipe) ?? [];
  const comment = (listed ?? counted)?.replaceAll(/^["']|["']$/g, "");
  const address = comment?.replaceAll("\\.", ".") ?? "";
  return comment !== undefined && SINGLES.has(comment) ? comment : LOCAL_DNS.test(address) ? address : undefined;
}

/** What the format of the view says besides: the family of neighbours, the backend of rules. */
function said(of: string, words: readonly string[]): { family?: "ipv4" | "ipv6"; backend?: "legacy" | "nft" } {
  const family = words.find((word) => word === "ipv4" || word === "ipv6");
  const backend = words.find((word) => word === "legacy" || word === "nft");
  return {
    ...(family === undefined || (of !== "neighbors" && of !== "copies") ? {} : { family }),
    ...(backend === undefined || (of !== "rules" && of !== "copies") ? {} : { backend }),
  };
}
