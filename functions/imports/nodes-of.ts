import { tellsTime } from "../facts/date-output.ts";
import { isKnown } from "./bundle.ts";
import { commandNamed } from "./file-names.ts";

/**
 * Which node each of some saved files is of: `node1/ip_route.txt` and `node2/ip_route.txt`, `node1_ip_route.txt` and `node2_ip_route.txt`, `ip_route-node1.txt` and
 * `ip_route-node2.txt`. Outputs of two nodes are never two samples of one.
 */

/** The files of one node. */
export interface NodeFiles {
  /** What the node is called, where the names tell. */
  readonly node: string | undefined;
  /** By file what is left of its name without the node's. */
  readonly files: ReadonlyMap<string, string>;
}

/** Where the node stands in a name, and the rest. */
type Split = (name: string) => { readonly node: string; readonly rest: string } | undefined;

/** Folders of two moments of one node. */
const MOMENT = /^(?:(?:t|run|sample|round)[\s._-]?)?\d$/i;
/** What others than nodes are called; index.ts leaves these out. */
const OTHER = /^(?:pod|container|peer|client|router|gateway|switch|fabric)[a-z\d]{0,3}$/i;
/** `ethtool_-S_eth0`, `iptables_-t_nat_-S_KUBE-SVC-7`. */
const DEVICE = /^(?:eth|ens|enp|eno|bond|lo|cni|docker|vxlan|flannel|tunl|br|veth|cali|lxc|eni|kube-ipvs|KUBE|CNI|cilium)[\w.-]*\d$/;
/** So many commands of two nodes must be the same: two folders with an `ip_route.txt` may be anything. */
const SAME = 3;
/** Folders with such names are machines, whatever is in them. */
const MACHINE =
  /^(?:i-[\da-f]{8}(?:[\da-f]{9})?|ip-\d{1,3}(?:-\d{1,3}){3}(?:\.[\w.-]{1,200})?|\d{1,3}(?:\.\d{1,3}){3}|(?:[\w.-]{1,200}[._-])?(?:node|worker|master|control-?plane|host|vm)[._-]?\d{1,4})$/i;

/**
 * The files by node; one group where the names tell of no node. `apart`: true if these folders, by their names of two moments of one node, are of times too far
 * from each other for two samples.
 */
export function nodesOf(names: readonly string[], apart: (moments: readonly NodeFiles[]) => boolean): NodeFiles[] {
  const memory = new Map<string, boolean>();
  const known = (name: string): boolean => {
    const found = memory.get(name) ?? commandNamed(name).some((command) => isKnown(command) || tellsTime(command));
    memory.set(name, found);
    return found;
  };
  for (const split of [folder(0), folder(1)]) {
    const machines = grouped(names, split).filter(({ node }) => MACHINE.test(node ?? ""));
    if (machines.length > 1 && shared(machines, known) > 0) return withCommon(machines, names);
  }
  for (const split of [folder(0), folder(1), inside(known), prefix(known), suffix(known)]) {
    const groups = grouped(names, split).filter(({ files }) => files.size >= SAME);
    if (groups.length < 2 || shared(groups, known) < SAME) continue;
    if (!groups.every(({ node }) => MOMENT.test(node ?? ""))) return withCommon(groups, names);
    if (apart(groups)) return groups;
  }
  const [first] = grouped(names, prefix(known)).toSorted((one, other) => other.files.size - one.files.size);
  const plain = names.filter((name) => known(name)).length;
  // two are enough where there are no others
  const enough = (files: ReadonlyMap<string, string>): boolean => files.size >= Math.min(SAME, names.length) && files.size > 1;
  if (first?.node !== undefined && enough(first.files) && first.files.size * 2 > names.length && plain * 5 < first.files.size)
    return withCommon([begun(first.node, first.files, names)], names);
  const [last] = grouped(names, suffix(known)).toSorted((one, other) => other.files.size - one.files.size);
  if (last !== undefined && enough(last.files) && last.files.size * 2 > names.length) return withCommon([last], names);
  return [{ node: undefined, files: new Map(names.map((name) => [name, name])) }];
}

/** With the files that begin alike and are named after something that netcheck does not read. */
function begun(node: string, files: ReadonlyMap<string, string>, names: readonly string[]): NodeFiles {
  const others = names.filter((name) => !files.has(name) && name.startsWith(node) && /^[_\s-]/.test(name.slice(node.length)));
  return { node, files: new Map([...files, ...others.map((name): [string, string] => [name, name.slice(node.length).replace(/^[_\s-]{1,2}/, "")])]) };
}

function grouped(names: readonly string[], split: Split): NodeFiles[] {
  const groups = new Map<string, Map<string, string>>();
  for (const name of names) {
    const found = split(name);
    if (found === undefined) continue;
    const files = groups.get(found.node) ?? new Map<string, string>();
    groups.set(found.node, files.set(name, found.rest));
  }
  return [...groups].map(([node, files]) => ({ node, files }));
}

/** How many commands were asked of two nodes. */
function shared(groups: readonly NodeFiles[], known: (name: string) => boolean): number {
  const counts = new Map<string, number>();
  for (const { files } of groups) for (const rest of new Set(files.values())) counts.set(rest, (counts.get(rest) ?? 0) + 1);
  return [...counts].filter(([rest, count]) => count > 1 && known(rest)).length;
}

/** What the cluster told is of interest for each node; the remaining files are of a node that nobody names. */
function withCommon(groups: readonly NodeFiles[], names: readonly string[]): NodeFiles[] {
  const taken = new Set(groups.flatMap(({ files }) => [...files.keys()]));
  const left = names.filter((name) => !taken.has(name));
  const common = left.filter((name) => /(?:^|\/)(?:kubectl|oc)[\s_-]/.test(name));
  const others = left.filter((name) => !common.includes(name));
  const pairs = (list: readonly string[]): [string, string][] => list.map((name) => [name, name]);
  const own = groups.map(({ node, files }) => ({ node, files: new Map([...files, ...pairs(common)]) }));
  return others.length === 0
    ? own
    : own.length === 1
      ? [{ node: own[0]?.node, files: new Map([...(own[0]?.files ?? []), ...pairs(others)]) }]
      : [...own, { node: undefined, files: new Map(pairs(others)) }];
}

const folder =
  (depth: number): Split =>
  (name) => {
    const parts = name.split("/");
    const node = parts[depth];
    return node === undefined || parts.length < depth + 2 ? undefined : { node, rest: parts.toSpliced(depth, 1).join("/") };
  };

/** `ip_route/node1.txt` */
const inside =
  (known: (name: string) => boolean): Split =>
  (name) => {
    const [, rest = "", node = "", end = ""] = /^((?:[^/]+\/)*[^/]+)\/([\w.-]{1,63}?)(\.(?:txt|log|out|md))?$/.exec(name) ?? [];
    return node === "" || known(node) || OTHER.test(node) || !known(rest + end) ? undefined : { node, rest: rest + end };
  };

const prefix =
  (known: (name: string) => boolean): Split =>
  (name) => {
    const [, path = "", bare = ""] = /^((?:.*\/)?)([^/]+)$/.exec(name) ?? [];
    if (bare.length > 250 || known(bare)) return undefined;
    for (const { index } of bare.matchAll(/[_\s.-]{1,2}(?=[a-z])/g)) {
      const rest = bare.slice(index).replace(/^[_\s.-]{1,2}/, "");
      const node = bare.slice(0, index);
      if (/^[\w.-]{1,63}$/.test(node) && known(rest)) return OTHER.test(node) ? undefined : { node, rest: path + rest };
    }
    return undefined;
  };

const suffix =
  (known: (name: string) => boolean): Split =>
  (name) => {
    const [, bare = "", end = ""] = /^(.{2,250}?)(\.(?:txt|log|out|md))?$/.exec(name) ?? [];
    for (const { index } of bare.matchAll(/[_@\s.-](?=[A-Za-z][A-Za-z\d.-]{0,62}\d$)/g)) {
      const node = bare.slice(index + 1);
      // the second of two moments
      if (/\.\d$/.test(node)) continue;
      const rest = bare.slice(0, index) + end;
      // `nstat_-az-node1`: the option is none of the node's
      if (!/[_@\s-]$/.test(bare.slice(0, index)) && known(rest)) return DEVICE.test(node) ? undefined : { node, rest };
    }
    return undefined;
  };
