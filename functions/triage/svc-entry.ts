import type { Row } from "../facts/fact.ts";
import type { Iptables } from "../facts/iptables-row.ts";
import type { Nft } from "../facts/nft-row.ts";
import type { Facts } from "../rules/evaluate.ts";

/** What the service proxies of a node do with packets to an address and port of a service: found in the rules, tables and maps that they wrote. */

/** One proxy's word on one address and port. */
export interface Entry {
  readonly by: Proxy;
  /** The fact it was read from. */
  readonly fact: string;
  /** The row that takes the packet. */
  readonly front: Row;
  readonly backends: readonly Backend[];
  /** It takes the packet and leads nowhere: no endpoint was ready when it was written, or (dropped) none of those on the node, which alone may be used. */
  readonly refuses: "rejects" | "drops" | undefined;
  /** A policy of Cilium's (LocalRedirect) sends the packets to pods on the node instead, such as a DNS cache. */
  readonly redirects?: true;
}
export interface Backend {
  readonly address: string;
  readonly port: number | undefined;
  readonly row: Row;
}
export type Proxy = "kube-proxy (iptables)" | "kube-proxy (IPVS)" | "kube-proxy (nftables)" | "Cilium" | "Cilium (socket)";

/** A proxy that works on the node. `complete`: all of what it wrote was seen, so that what is not there is missing; else why not. */
export interface Seen {
  readonly by: Proxy;
  readonly complete: boolean;
  readonly reason: string;
}

interface Ipvs {
  services: readonly (Row & { protocol: string; address: string; port?: number })[];
  servers: readonly (Row & { protocol: string; serviceAddress: string; servicePort?: number; address: string; port?: number; weight?: number })[];
}
interface CiliumServices {
  rows: readonly (Row & {
    address: string;
    port: number;
    protocol?: string;
    type?: string;
    backendAddress?: string;
    backendPort?: number;
    backendState?: string;
  })[];
}
interface SocketServices {
  services: readonly (Row & { address: string; port: number; protocol: string; backends: readonly string[]; redirected?: boolean })[];
}

const FACTS: Readonly<Record<Proxy, string>> = {
  "kube-proxy (iptables)": "iptables",
  "kube-proxy (IPVS)": "ipvs",
  "kube-proxy (nftables)": "nft",
  Cilium: "cilium-service",
  "Cilium (socket)": "socket-lb",
};

const known = <T>(facts: Facts, id: string): T | undefined => {
  const reading = facts.reading(id);
  return reading?.status === "read" ? (reading.value as T) : undefined;
};

/**
 * Cilium does kube-proxy's work on this node, and no kube-proxy is seen to run: what one has left stands behind Cilium's programs and gets no packet for a service.
 * `sure`: Cilium says so, or all processes were listed, or kube-proxy has left nothing.
 */
export function replacedProxy(facts: Facts): { readonly sure: boolean } | undefined {
  const modes = known<{ modes: readonly { mode: string; source: string }[] }>(facts, "service-proxy")?.modes ?? [];
  if (modes[0]?.mode === "cilium") return { sure: true };
  const entries =
    (known<CiliumServices>(facts, "cilium-service")?.rows.length ?? 0) > 0 || (known<SocketServices>(facts, "socket-lb")?.services.length ?? 0) > 0;
  const runs = proxyPrograms(facts).length > 0 || modes.some(({ source }) => source === "endpoint" || source === "process" || source === "log");
  return entries && !runs ? { sure: runsNoProxy(facts) || !writersOf(facts).some((by) => by.startsWith("kube-proxy")) } : undefined;
}

/** The proxies that have written anything on this node. */
function writersOf(facts: Facts): readonly Proxy[] {
  const found: Proxy[] = [];
  const chains = known<Iptables>(facts, "iptables")?.chains ?? [];
  // in the mode IPVS there are chains of kube-proxy, too, but none of a service; the service of the API itself is always there
  if (chains.some(({ name }) => name === "KUBE-SERVICES") && chains.some(({ name }) => /^KUBE-(?:SVC|SVL|SEP)-/.test(name)))
    found.push("kube-proxy (iptables)");
  if ((known<Ipvs>(facts, "ipvs")?.services.length ?? 0) > 0) found.push("kube-proxy (IPVS)");
  if (known<Nft>(facts, "nft")?.tables.some(({ name }) => name === "kube-proxy") === true) found.push("kube-proxy (nftables)");
  if ((known<CiliumServices>(facts, "cilium-service")?.rows.length ?? 0) > 0) found.push("Cilium");
  if ((known<SocketServices>(facts, "socket-lb")?.services.length ?? 0) > 0) found.push("Cilium (socket)");
  return found;
}

/** The proxies that have written anything on this node, and work. `complete`: for an address of this family. */
export function proxiesOf(facts: Facts, family: "ipv4" | "ipv6" = "ipv4"): readonly Seen[] {
  const found = writersOf(facts);
  const working = replacedProxy(facts) !== undefined ? found.filter((by) => by.startsWith("Cilium")) : found;
  return working.map((by) => {
    const reading = facts.reading(FACTS[by]);
    // the two families are two listings, and one of them may be all that was read
    const other = by === "kube-proxy (iptables)" && known<Iptables>(facts, "iptables")?.chains.some((chain) => chain.family === family) !== true;
    if (other) return { by, complete: false, reason: `its rules for ${family === "ipv6" ? "IPv6" : "IPv4"} were not seen` };
    // the fact is whole once all of IPv4 was seen
    if (by === "kube-proxy (iptables)" && family === "ipv6" && isCut(facts, /^ip6tables/))
      return { by, complete: false, reason: "its rules for IPv6 were cut" };
    return { by, complete: reading?.complete === true, reason: reading?.reason ?? "" };
  });
}

/** Packets of pods do not come to kube-proxy's entries in iptables, where those are the node's only ones: PREROUTING does not call them, and all rules were seen. */
export function passedBy(facts: Facts, family: "ipv4" | "ipv6"): boolean {
  const [only, ...others] = proxiesOf(facts, family);
  if (only?.by !== "kube-proxy (iptables)" || !only.complete || others.length > 0) return false;
  const { chains = [], rows = [] } = known<Iptables>(facts, "iptables") ?? {};
  const has = (name: string): boolean => chains.some((chain) => chain.table === "nat" && chain.family === family && chain.name === name);
  const called = rows.some((row) => row.table === "nat" && row.family === family && row.chain === "PREROUTING" && row.target === "KUBE-SERVICES");
  return has("KUBE-SERVICES") && has("PREROUTING") && !called;
}

/** Programs that are a kube-proxy or have one in them, or write entries as it does. */
const KUBE_PROXY = /^(?:kube-proxy|hyperkube|k3s|rke2|k0s|kubelite|kube-router|openshift-sdn)/;

/** All processes of the node were listed, and no kube-proxy is among them. */
export function runsNoProxy(facts: Facts): boolean {
  const listed = (known<Processes>(facts, "process")?.listings.length ?? 0) > 0 && facts.reading("process")?.complete === true;
  return listed && proxyPrograms(facts).length === 0;
}

interface Processes {
  rows: readonly { command: string; defunct: boolean }[];
  listings: readonly unknown[];
}
const proxyPrograms = (facts: Facts): Processes["rows"] =>
  (known<Processes>(facts, "process")?.rows ?? []).filter(({ command, defunct }) => !defunct && KUBE_PROXY.test(command));

/** kube-proxy has bound other services' addresses to its device, and this one not: only what is the node's own comes to IPVS. */
export function isUnbound(facts: Facts, address: string): boolean {
  const rows = known<{ rows: readonly { interface: string; address: string }[] }>(facts, "address")?.rows ?? [];
  const bound = rows.filter((row) => row.interface === "kube-ipvs0" && row.address.includes(":") === address.includes(":"));
  return facts.reading("address")?.complete === true && bound.length > 0 && !rows.some((row) => row.address === address);
}

const isCut = (facts: Facts, command: RegExp): boolean => facts.capture.outputs.some((output) => output.truncated && command.test(output.command));

/** Why nothing can be said of a node on which no proxy was seen: what of it was not read. */
export function unreadProxies(facts: Facts): readonly string[] {
  return Object.values(FACTS).flatMap((id) => {
    const reading = facts.reading(id);
    return reading?.status === "read" ? [] : [`${id}: ${reading?.reason ?? "it was not collected"}`];
  });
}

/**
 * All entries for an address and port.
 * @param protocol "tcp", "udp", "sctp"
 */
export function entriesFor(facts: Facts, address: string, port: number, protocol: string): readonly Entry[] {
  return [
    ...(replacedProxy(facts) !== undefined ? [] : kubeProxyEntries(facts, address, port, protocol)),
    ...ciliumEntries(facts, address, port, protocol),
    ...socketEntries(facts, address, port, protocol),
  ];
}

const kubeProxyEntries = (facts: Facts, ...of: [address: string, port: number, protocol: string]): readonly Entry[] => [
  ...iptablesEntries(facts, ...of),
  ...ipvsEntries(facts, ...of),
  ...nftEntries(facts, ...of),
];

/** "10.0.0.1:80" or "[fd00::1]:80". */
function endpointOf(text: string): { address: string; port: number | undefined } {
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:]+))(?::(\d{1,5}))?(?:\/.*)?$/.exec(text) ?? [];
  return { address: bracketed ?? plain ?? text, port: port === undefined ? undefined : Number(port) };
}

function iptablesEntries(facts: Facts, address: string, port: number, protocol: string): Entry[] {
  const rows = known<Iptables>(facts, "iptables")?.rows ?? [];
  const fronts = rows.filter(
    (row) =>
      row.chain === "KUBE-SERVICES" &&
      row.destination?.replace(/\/(?:32|128)$/, "") === address &&
      row.destinationPort === String(port) &&
      row.protocol === protocol &&
      (row.target === "REJECT" || row.target === "DROP" || /^KUBE-(?:SVC|SVL|FW|EXT|XLB)-/.test(row.target ?? "")),
  );
  return fronts.map((front) => {
    const refuses = front.target === "REJECT" ? "rejects" : front.target === "DROP" ? "drops" : undefined;
    const same = rows.filter((row) => row.table === "nat" && row.family === front.family && row.backend === front.backend);
    const chains = new Set([front.target ?? ""]);
    // FW and EXT lead to SVC, SVC to SEP
    for (const chain of chains)
      for (const { chain: from, target } of same) if (from === chain && /^KUBE-(?:SVC|SVL|SEP|EXT)-/.test(target ?? "")) chains.add(target ?? "");
    const backends = same
      .filter((row) => row.chain.startsWith("KUBE-SEP-") && chains.has(row.chain) && row.toDestination !== undefined)
      .map((row) => ({ ...endpointOf(row.toDestination ?? ""), row }));
    return { by: "kube-proxy (iptables)", fact: "iptables", front, backends: refuses === undefined ? backends : [], refuses };
  });
}

function ipvsEntries(facts: Facts, address: string, port: number, protocol: string): Entry[] {
  const ipvs = known<Ipvs>(facts, "ipvs");
  return (ipvs?.services ?? [])
    .filter((row) => row.address === address && row.port === port && row.protocol === protocol)
    .map((front) => ({
      by: "kube-proxy (IPVS)",
      fact: "ipvs",
      front,
      // weight 0 gets no new connection
      backends: (ipvs?.servers ?? [])
        .filter((row) => row.serviceAddress === address && row.servicePort === port && row.protocol === protocol && row.weight !== 0)
        .map((row) => ({ address: row.address, port: row.port, row })),
      refuses: undefined,
    }));
}

function nftEntries(facts: Facts, address: string, port: number, protocol: string): Entry[] {
  const nft = known<Nft & { sets: readonly Row[]; rows: readonly Row[] }>(facts, "nft");
  if (nft === undefined) return [];
  const key = `${address} . ${protocol} . ${port} `;
  const maps = nft.sets.filter(({ table }) => table === "kube-proxy") as (Nft["sets"][number] & Row)[];
  const rows = nft.rows as (Nft["rows"][number] & Row)[];
  return maps
    .filter(({ name }) => name === "service-ips" || name === "no-endpoint-services")
    .flatMap((map) => (map.members ?? []).filter((member) => member.startsWith(key)).map((member) => ({ map, member })))
    .map(({ map, member }) => {
      const chain = /goto ((?:service|local|external)-\S+)/.exec(member)?.[1];
      const backends = rows
        // both families' tables, and their chains, have the same names
        .filter((row) => row.table === "kube-proxy" && row.family === map.family && row.chain === chain)
        // the name of an endpoint's chain ends in its address: endpoint-7BJE66LL-shop/web/tcp/http__10.244.1.7/8080, of fd00::7 in fd00..7/8080
        .flatMap((row) =>
          [...row.spec.matchAll(/endpoint-[^\s,{}"]{1,250}?__([0-9a-fA-F.:]{2,45})\/(\d{1,5})/g)].map(([, to = "", toPort]) => ({
            address: /^\d{1,3}(?:\.\d{1,3}){3}$/.test(to) ? to : to.replaceAll(".", ":"),
            port: Number(toPort),
            row,
          })),
        );
      const refuses = map.name === "service-ips" ? undefined : member.endsWith(" : drop") ? "drops" : "rejects";
      return { by: "kube-proxy (nftables)", fact: "nft", front: map, backends, refuses };
    });
}

function ciliumEntries(facts: Facts, address: string, port: number, protocol: string): Entry[] {
  const all = known<CiliumServices>(facts, "cilium-service")?.rows ?? [];
  const rows = all.filter((row) => row.address === address && row.port === port && (row.protocol === undefined || row.protocol === protocol));
  const [front] = rows;
  if (front === undefined) return [];
  // one that is ending is kept for its connections, and gets new ones only where there is no other
  const active = rows.filter(({ backendState }) => backendState !== "terminating");
  const taken = active.some(({ backendAddress }) => backendAddress !== undefined) ? active : rows;
  const backends = taken.flatMap((row) => (row.backendAddress === undefined ? [] : [{ address: row.backendAddress, port: row.backendPort, row }]));
  const redirects = rows.some(({ type }) => type === "LocalRedirect");
  return [{ by: "Cilium", fact: "cilium-service", front, backends, refuses: undefined, ...(redirects ? { redirects } : {}) }];
}

function socketEntries(facts: Facts, address: string, port: number, protocol: string): Entry[] {
  return (known<SocketServices>(facts, "socket-lb")?.services ?? [])
    .filter((row) => row.address === address && row.port === port && (row.protocol === protocol || row.protocol === "any"))
    .map((front) => ({
      by: "Cilium (socket)",
      fact: "socket-lb",
      front,
      // "unknown backend 466": its map was not dumped
      backends: front.backends.filter((text) => !text.includes(" ")).map((text) => ({ ...endpointOf(text), row: front })),
      refuses: undefined,
      ...(front.redirected === true ? { redirects: true as const } : {}),
    }));
}
