import ipaddr from "ipaddr.js";

/**
 * Takes out of a text what differs from node to node without meaning anything: addresses, MACs, ids, times, names made for one pod or one endpoint.
 * What is the same on every node by its nature stays: 0.0.0.0/0, loopback, link-local and multicast prefixes.
 *
 *     -A KUBE-SEP-OAQPXBQCZ2RBB4R7 -p tcp -j DNAT --to-destination 100.96.54.247:80
 *     -A KUBE-SEP-* -p tcp -j DNAT --to-destination <ipv4>:80
 */
export function abstracted(text: string): string {
  if (!SUSPICIOUS.test(text)) return text;
  return REPLACEMENTS.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement as string), text);
}

// Plain words and short numbers need no look at all.
const SUSPICIOUS = /\d[.:-]\w|:[0-9a-f]|[0-9a-fA-F]{7}|[A-Z0-9]{16}|(?:veth|lxc|cali|azv|eni|tap|vnet|br-|pod)\w/;

type Replacement = string | ((...found: string[]) => string);

// In this order: each takes what the later ones would misread. All are linear: no pattern repeats what it may also skip.
const REPLACEMENTS: readonly (readonly [RegExp, Replacement])[] = [
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?/g, "<time>"],
  [/\bpod[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}\b/g, "pod*"],
  [/\b[0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12}\b/gi, "<id>"],
  [/(?<![0-9a-f:])[0-9a-f]{1,2}(?::[0-9a-f]{1,2}){5}(?![0-9a-f:])/gi, "<mac>"],
  // chains of one service, endpoint, pod or policy: kube-proxy, the CNI plugins, Calico
  [/\b(KUBE-(?:SVC|SEP|SVL|FW|XLB|EXT))-[A-Z0-9]{16}\b/g, "$1-*"],
  [/\b(CNI(?:-DN|-SN|-HOSTPORT-DNAT)?)-[0-9a-f]{12,40}\b/g, "$1-*"],
  [/\b(cali-(?:tw|fw|sm|pi|po|pri|pro))-[\w.-]{4,40}/g, "$1-*"],
  [/\bcali[4-6]?0?(?:s|t|st|-s|-t)?:[\w-]{16,24}/g, "<id>"],
  // interfaces made for one pod or container; lxc_health is Cilium's own, and `lxc+` a pattern
  [/\b(veth|lxc(?!_health))[0-9a-zA-Z]\w{0,14}/g, "$1*"],
  [/\b(cali|azv|eni|tap|vnet|br-)-?(?=[0-9a-f]{0,7}\d)[0-9a-f]{1,15}\b/g, "$1*"],
  [/(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:\/\d{1,2})?(?![\w.])/g, address],
  [/(?<![\w:.])(?:[0-9a-f]{1,4})?::?(?:[0-9a-f]{0,4}:){0,7}[0-9a-f]{0,4}(?:\/\d{1,3})?(?![\w:])/gi, address],
  [/\b(?=[0-9a-f]{0,63}\d)[0-9a-f]{12,64}\b/g, "<id>"],
];

/** True if the address lies in the prefix; false of anything that is neither. */
export function inPrefix(address: string, prefix: string): boolean {
  if (!ipaddr.isValid(address) || !ipaddr.isValidCIDR(prefix)) return false;
  const parsed = ipaddr.parse(address);
  const [network, length] = ipaddr.parseCIDR(prefix);
  return parsed.kind() === network.kind() && parsed.match(network, length);
}

/** An address or prefix: literal if it means the same on every node, otherwise its family and length. */
function address(text: string): string {
  const [host = "", bits] = text.split("/");
  if (!ipaddr.isValid(host)) return text;
  const parsed = ipaddr.parse(host);
  const range = parsed.range();
  const own = parsed.kind() === "ipv6" && range === "linkLocal" && !/^fe80::$/i.test(host);
  if (!own && COMMON.has(range)) return text;
  const full = parsed.kind() === "ipv4" ? "32" : "128";
  return `<${own ? "fe80" : parsed.kind()}>${bits === undefined || bits === full ? "" : `/${bits}`}`;
}

const COMMON: ReadonlySet<string> = new Set(["unspecified", "loopback", "linkLocal", "multicast", "broadcast"]);
