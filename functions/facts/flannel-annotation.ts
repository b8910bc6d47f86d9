import { z } from "zod";
import { optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily, parseMac } from "./ip-address.ts";
import { namedWords } from "./kubectl-command.ts";
import { isCalled } from "./node-name.ts";
import { present } from "./present.ts";

/**
 * What flannel or Calico wrote about a node into the cluster, as people paste it: the other nodes send to this hardware address. netcheck itself never asks the cluster.
 *
 *     flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"6e:b9:d5:e1:19:85"}'
 *     flannel.alpha.coreos.com/public-ip: 10.20.0.12
 *     projectcalico.org/IPv4Address: 10.20.0.12/24
 *     projectcalico.org/VXLANTunnelMACAddr: 66:0d:18:52:c9:7e
 *     vxlanTunnelMACAddr: 66:0d:18:52:c9:7e                                                                      (calicoctl get node wk-1 -o yaml)
 *     w1   10.20.0.12   6e:b9:d5:e1:19:85                                                (kubectl get nodes -o json | jq -r '… |fromjson|.VtepMAC …')
 *     {"PublicIP":"10.20.0.12","BackendType":"vxlan","BackendData":{"VNI":1,"VtepMAC":"6e:b9:d5:e1:19:85"}}      (flannel's own etcd)
 */
const Annotation = z.object({
  line: z.int(),
  /** Device of the node: "flannel.1", of the IPv6 annotation "flannel-v6.1"; "vxlan.calico". */
  interface: z.string(),
  /** Of that device, as the cluster has it. */
  mac: z.string(),
  /** Address of the node, where its annotation was printed, too. */
  address: z.string().optional(),
  /** True if that address stands in a column of a table, and which of the node's it is, the command does not tell. */
  column: z.boolean().optional(),
  /** Whose it is, where the command names one node (`kubectl get node wk-1 -o yaml`) or a description begins with its name. */
  node: z.string().optional(),
  /** True if that is what the node of the capture is called, false if that is called otherwise; absent where it is not known whose it is. */
  own: z.boolean().optional(),
});
const Annotations = z.object({ rows: z.array(Annotation) });
type Annotation = z.infer<typeof Annotation>;

const MAC = /VtepMAC\\{0,3}"\s{0,3}:\s{0,3}\\{0,3}"([0-9a-f:]{17})/i;
const CALICO_MAC = /(?:projectcalico\.org\/VXLANTunnelMACAddr|\bvxlanTunnelMACAddr)"?\s{0,40}[:=]\s{0,40}['"]?([0-9a-f:]{17})/i;
const CALICO_ADDRESS = /(?:projectcalico\.org\/IPv4Address|\bipv4Address)"?\s{0,40}[:=]\s{0,40}['"]?([0-9.]{7,15})/;
/** A row of a table that the caller chose the columns of: the node's name, its address, and what flannel wrote, in any order behind the name. */
const IN_TABLE = /^([a-z0-9][a-z0-9.-]{0,252})\s/;
/** The columns that hold the addresses flannel's tunnels use; beside them no other address of the node is asked for. */
const COLUMN = { ipv4: /\/public-ip(?!v6)/, ipv6: /\/public-ipv6/ };
const OTHER_ADDRESS = /status\.addresses|IPv4Address|internal-ip|external-ip|node-ip/;
/** What a filter made of it: the address alone. */
const PICKED = /(VtepMAC)|[vV][xX][lL][aA][nN]TunnelMACAddr/;
const LONE_MAC = /(?:^|[\s"',|])([0-9a-f]{2}(?::[0-9a-f]{2}){5})(?=$|[\s"',|])/i;
const NETWORK = /VNI\\{0,3}"\s{0,3}:\s{0,3}(\d{1,8})/;
const ADDRESS = /flannel\.alpha\.coreos\.com\/public-ip"?\s{0,40}[:=]\s{0,40}['"]?([0-9.]{7,15})/;
/** Where flannel keeps its own etcd, each subnet is one value, and the address stands in front of the hardware address. */
const SUBNETS = /\/network\/subnets\//;
const ADDRESS_IN_ETCD = /"PublicIP"\s{0,3}:\s{0,3}"([0-9.]{7,15})"/;
const NODES = /^nodes(?:\/.{1,253})?$/;
/** All annotations of a node may stand in one line (`-o jsonpath='{.metadata.annotations}'`, `jq -c`): each begins with its name. */
const EACH = /(?=(?:flannel\.alpha\.coreos\.com|projectcalico\.org)\/)/;
/** The first line of `kubectl describe node`. */
const DESCRIBED = /^Name:\s{1,40}([a-z0-9][a-z0-9.-]{0,252})$/;
/** A name that the shell of the node filled in. */
const HERE = "$HOSTNAME";
const ADDRESS_V6 = /flannel\.alpha\.coreos\.com\/public-ipv6"?\s{0,40}[:=]\s{0,40}['"]?([0-9a-fA-F:]{2,39})/;

export const flannelAnnotation = defineFact({
  id: "flannel-annotation",
  title: "Hardware addresses of flannel's and Calico's devices as the cluster has them (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] === "etcdctl" && argv.includes("get") && argv.some((word) => SUBNETS.test(word)))
      return { format: "annotations", complete: true, scope: argv.find((word) => SUBNETS.test(word)) ?? "", rank: 1 };
    const [program, verb, kind = ""] = argv;
    if (program === "calicoctl" && verb === "get" && /^nodes?$/.test(kind) && /^-?-?o(?:utput)?=?\s?(?:yaml|json)$|^(?:yaml|json)$/.test(argv.at(-1) ?? ""))
      return { format: "annotations", complete: true, scope: argv.slice(2).join(" "), rank: 1 };
    if (program !== "kubectl" || !(verb === "get" || verb === "describe") || !NODES.test(kind)) return undefined;
    // a table of nodes shows no annotation
    const shown = verb === "describe" || /^(?:yaml$|json|custom-columns|go-template)/.test(optionValue(argv, "-o") ?? "");
    return shown ? { format: "annotations", complete: true, scope: argv.slice(2).join(" "), rank: 1 } : undefined;
  },
  schema: Annotations,
  parse({ text, argv, names, pipe = "" }) {
    const rows: Annotation[] = [];
    const picked = PICKED.exec(pipe);
    let node = namedNode(argv);
    let calico: string | undefined;
    const table = picked !== null || /^(?:custom-columns|jsonpath|go-template)/.test(optionValue(argv, "-o") ?? "");
    // a value alone has no name; of several in a line the first is read
    const asked = argv.join(" ");
    const asksForV6 = /^(?:(?!backend-data).)*backend-v6-data/.test(asked);
    // the rest of a node's description is about other things
    for (const { line, text: content, whole } of pieces(text)) {
      const mac = parseMac((MAC.exec(content) ?? CALICO_MAC.exec(content) ?? (picked === null ? null : LONE_MAC.exec(content)))?.[1] ?? "");
      // Calico's address stands before: the names are sorted
      calico = CALICO_ADDRESS.exec(content)?.[1] ?? calico;
      const ofCalico = mac !== undefined && (CALICO_MAC.test(content) || (picked !== null && picked[1] === undefined));
      const address = ADDRESS.exec(content)?.[1];
      node = DESCRIBED.exec(content)?.[1] ?? node;
      const row = table && mac !== undefined ? IN_TABLE.exec(whole) : null;
      if (row !== null) node = row[1];
      const v6Device = content.includes("backend-v6-data") || (asksForV6 && !content.includes("backend-data"));
      const family = v6Device ? "ipv6" : "ipv4";
      // the row of one node, which the command names, need not begin with its name
      const told = COLUMN[family].test(asked) && !OTHER_ADDRESS.test(asked);
      const inRow = table && content === whole && (row !== null || told);
      const inTable = inRow
        ? content
            .split(/\s+/)
            .find((word) => addressFamily(word) === family)
            ?.toLowerCase()
        : ADDRESS_IN_ETCD.exec(content)?.[1];
      if (mac !== undefined)
        rows.push({
          line,
          interface: ofCalico ? "vxlan.calico" : `flannel${v6Device ? "-v6" : ""}.${NETWORK.exec(content)?.[1] ?? "1"}`,
          mac,
          ...(ofCalico && calico !== undefined
            ? { address: calico }
            : inTable === undefined
              ? {}
              : { address: inTable, ...(inRow && !told ? { column: true } : {}) }),
          ...present({ node }),
          ...(node === undefined || names === undefined ? {} : { own: node === HERE || isCalled(names, node) }),
        });
      if (ofCalico) calico = undefined;
      const v6 = ADDRESS_V6.exec(content)?.[1];
      const last = rows.findLastIndex((row) => row.interface.includes("-v6"));
      if (v6 !== undefined && last !== -1 && addressFamily(v6) === "ipv6") rows[last] = { ...(rows[last] as Annotation), address: v6.toLowerCase() };
      // the names of annotations are sorted: the address comes behind the hardware addresses of its node
      if (address === undefined || addressFamily(address) === undefined) continue;
      const seen = new Set<string>();
      for (let i = rows.length - 1; i >= 0; i--) {
        const row = rows[i] as Annotation;
        // of another node, or already told
        if (row.address !== undefined || seen.has(row.interface)) break;
        seen.add(row.interface);
        rows[i] = { ...row, address };
      }
    }
    return new UnparsedLines().with({ rows: ofOne(rows, names) });
  },
});

/** Every annotation apart, with its line. */
function* pieces(text: string): Generator<{ line: number; text: string; whole: string }> {
  for (const { line, text: whole } of lines(text)) for (const piece of whole.split(EACH)) yield { line, text: piece, whole };
}

/** A paste from several hosts knows all of them by their prompts: then the node is the one that the capture is about, or none of them. */
function ofOne(rows: readonly Annotation[], names: readonly string[] | undefined): Annotation[] {
  const hosts = new Set(rows.flatMap((row) => (row.own === true && row.node !== undefined ? [row.node] : [])));
  if (hosts.size < 2) return [...rows];
  return rows.map((row) => {
    const { own, ...rest } = row;
    return own === true && row.node !== HERE ? { ...rest, own: isCalled((names ?? []).slice(0, 1), row.node ?? "") } : row;
  });
}

/** The one node that a command names: `kubectl get node wk-1 -o yaml`, `oc get -o yaml node/wk-1`. Undefined for several, or for all. */
function namedNode(argv: readonly string[]): string | undefined {
  const asked = argv[0] === "calicoctl" ? argv.slice(2).filter((word) => !/^-|^(?:yaml|json)$/.test(word)) : namedWords(argv);
  const [kind = "", ...others] = asked[0] === "node" ? ["nodes", ...asked.slice(1)] : asked;
  const names = [kind.split("/")[1] ?? "", ...others].filter((word) => word !== "");
  if (!NODES.test(kind) || names.length !== 1) return undefined;
  if (/^["'`]?\$?[({]?(?:hostname|HOSTNAME)[)}]?[`'"]?$/.test(names[0] as string)) return HERE;
  return /^[a-z0-9][a-z0-9.-]{0,252}$/i.test(names[0] as string) ? names[0] : undefined;
}
