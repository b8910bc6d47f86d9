import { z } from "zod";
import type { ConntrackEntry } from "./conntrack.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import type { Nft } from "./nft-row.ts";
import { hasNftProxy, nftServices } from "./nft-service.ts";
import { placed } from "./placed.ts";

/**
 * Tracked UDP flows to a service of kube-proxy (in its modes iptables and nftables), or to a port that the portmap plugin, Docker or Podman publishes, that are sent to an endpoint which the
 * service or port does not have any more.
 */
const Flow = z.object({
  /** Of the tracked flow. */
  line: z.int(),
  client: z.string(),
  service: z.string(),
  port: z.int(),
  /** Where the flow is sent; the service's own address if it was tracked before the service had endpoints. */
  endpoint: z.string(),
  endpointPort: z.int(),
  /** How many endpoints the service has now; -1 where only the rule that leads to them was seen. */
  endpoints: z.int(),
  /** kube-proxy has no rule for the service any more: it was deleted. */
  gone: z.boolean(),
  /** No reply has come. */
  unreplied: z.boolean(),
  /** The table was listed twice, and nothing used the entry in between: it may just be running out. */
  resting: z.boolean(),
});
/** A rule of kube-proxy for a service that has such flows, or its row in a table of endpoints: what it has now. */
const ServiceRule = z.object({ line: z.int(), service: z.string(), port: z.int() });
const StaleServiceFlow = z.object({ rows: z.array(Flow), rules: z.array(ServiceRule) });
type StaleServiceFlow = z.infer<typeof StaleServiceFlow>;

interface Sources {
  readonly conntrack?: { rows: readonly (ConntrackEntry & Row)[] };
  readonly iptables?: Iptables;
  readonly address?: { readonly rows: readonly { readonly address: string }[] };
  readonly nft?: Nft;
  readonly "cluster-service"?: ClusterService;
}

interface Named {
  readonly name: string;
  readonly namespace?: string;
}
interface ClusterService {
  readonly nodePorts: readonly (Row & Named & { protocol: string; port: number })[];
  readonly addresses: readonly (Row & Named & { address: string; protocol: string; port: number })[];
  readonly endpoints: readonly (Row & Named & { address: string; more?: true; total?: number })[];
}

/** More rows than this are not made: one of each is proof enough. */
const MAX_ROWS = 1000;
/** kube-proxy's deepest way from a service to an endpoint: KUBE-SERVICES → KUBE-EXT → KUBE-SVL → KUBE-SVC → KUBE-SEP. */
const MAX_DEPTH = 6;

export const staleServiceFlow = defineDerivedFact<StaleServiceFlow>({
  id: "stale-service-flow",
  title: "UDP flows to a service that are sent to an endpoint it no longer has",
  from: ["conntrack", "iptables", "nft", "address", "cluster-service"],
  optional: ["nft", "address", "cluster-service"],
  inPart: ["cluster-service"],
  schema: StaleServiceFlow,
  derive: (values) => derive(values as Sources),
  // in its nftables mode kube-proxy needs no iptables
  enough: (values, whole) => whole.has("conntrack") && whole.has("nft") && hasNftProxy((values as Sources).nft),
});

interface Service {
  readonly endpoints: ReadonlySet<string>;
  readonly rules: readonly Row[];
}

function derive(sources: Sources): StaleServiceFlow {
  const result: StaleServiceFlow = { rows: [], rules: [] };
  const { conntrack, iptables } = sources;
  if (conntrack === undefined) return result;
  // some rules of a service that somebody picked (`| grep 10.96.0.10`) do not lead to its endpoints; kube-proxy's chains seen to their end count more than tables
  if (iptables?.chains.some(({ name, complete }) => name.startsWith("KUBE-") && complete) !== true)
    addListed(conntrack.rows, listedServices(sources["cluster-service"], conntrack.rows), result);
  if (iptables !== undefined || hasNftProxy(sources.nft)) addTranslated(sources, conntrack.rows, iptables ?? { chains: [], rows: [] }, result);
  const resting = restingOf(conntrack.rows);
  for (const row of result.rows) row.resting = resting.has(placeOf(row));
  return result;
}

/** Seconds. A resolver asks again after five; what rests for longer has no one who waits for the answer. */
const RESTING = 5;

/**
 * Places of the entries that nothing used between two listings: they were gone, or their timers ran on for as long as any other's. How much later the second listing was made
 * is not known, so it is at least that long.
 */
function restingOf(rows: readonly (ConntrackEntry & Row)[]): ReadonlySet<string> {
  const twice = rows.flatMap((row) =>
    row.timeout === undefined || row.timeoutLater === undefined ? [] : [{ place: placeOf(row), later: row.timeoutLater, ran: row.timeout - row.timeoutLater }],
  );
  const longest = twice.reduce((most, { later, ran }) => (later > 0 ? Math.max(most, ran) : most), 0);
  return new Set(twice.flatMap(({ place, later, ran }) => (later === 0 || (ran >= RESTING && ran >= longest - 1) ? [place] : [])));
}

const placeOf = ({ output, line }: { line: number } & Row): string => `${output} ${line}`;

interface Listed {
  readonly endpoints: ReadonlySet<string>;
  readonly rows: ClusterService["endpoints"];
}

/**
 * UDP services as a person's tables show them (`kubectl get svc`, `kubectl get endpoints`), by "address:port" and "node port:port". Which port of an endpoint belongs
 * to which port of a service is not in them, so only addresses are compared. Services of which the table may name only some endpoints, or none, are left out. A table of endpoints alone
 * tells no service's address; the flows that were answered do.
 */
function listedServices(list: ClusterService | undefined, flows: readonly ConntrackEntry[]): Map<string, Listed> {
  const keyOf = ({ namespace = "default", name }: Named): string => `${namespace}/${name}`;
  const endpoints = Map.groupBy(list?.endpoints ?? [], keyOf);
  const portsOf = new Map(
    [...Map.groupBy(list?.addresses ?? [], keyOf)].map(([key, rows]) => [key, new Set(rows.map((row) => `${row.port}/${row.protocol}`)).size]),
  );
  const services = new Map<string, Listed>();
  const add = (key: string, row: Named & { protocol: string }): void => {
    const rows = endpoints.get(keyOf(row));
    if (row.protocol !== "udp" || rows === undefined || !areAll(rows, portsOf.get(keyOf(row)) ?? 0)) return;
    services.set(key, { endpoints: new Set(rows.map(({ address }) => address)), rows });
  };
  for (const row of list?.addresses ?? []) add(`${row.address}:${row.port}`, row);
  for (const row of list?.nodePorts ?? []) add(`node port:${row.port}`, row);
  const [[, only] = []] = endpoints;
  if (services.size === 0 && endpoints.size === 1 && only !== undefined && areAll(only, 0)) {
    const answered = answeredBy(only, flows);
    const keys = answered.length === 0 && only.every(({ name }) => DNS.test(name)) ? dnsIn(flows) : answered;
    for (const key of keys) services.set(key, { endpoints: new Set(only.map(({ address }) => address)), rows: only });
  }
  return services;
}

/**
 * A table shows three endpoints, each port of each address as one, port by port; where as many are left out as the addresses that were listed have further ports, there is
 * no other address. Where the first address comes again, all of them were listed.
 */
const areAll = (rows: ClusterService["endpoints"], ports: number): boolean => {
  const { size } = new Set(rows.map(({ address }) => address));
  const comesAgain = size > 1 && rows.length > size;
  return rows.every(({ more, total = 0 }) => more !== true || total === ports * size || (comesAgain && total % size === 0));
};

/** What the service of the cluster's DNS is called. */
const DNS = /^(?:kube-dns|coredns|rke2-coredns-rke2-coredns|dns-default)$/;

/** Its address, by custom the tenth of the range: "address:port" of the tracked flows, if they lead to one such. */
function dnsIn(flows: readonly ConntrackEntry[]): string[] {
  const asked = flows.filter(
    ({ protocol, destination, destinationPort, replySource }) =>
      protocol === "udp" && destinationPort === 53 && destination !== replySource && /(?:\.10|::a)$/.test(destination),
  );
  const keys = new Set(asked.map(({ destination }) => `${destination}:53`));
  // who answered there is none of those that were listed: then that address is another service's
  return keys.size === 1 && asked.every(({ unreplied }) => unreplied) ? [...keys] : [];
}

/** Where only the endpoints of one service were listed, its address is the one to which they, and nobody else, answer: "address:port" of the tracked flows. */
function answeredBy(endpoints: readonly { readonly address: string }[], flows: readonly ConntrackEntry[]): string[] {
  const answers = flows.filter(
    (flow) => flow.protocol === "udp" && !flow.unreplied && flow.destinationPort !== undefined && flow.destination !== flow.replySource,
  );
  const answerers = Map.groupBy(answers, (flow) => `${flow.destination}:${flow.destinationPort}`);
  return [...answerers].filter(([, some]) => some.every((flow) => endpoints.some(({ address }) => address === flow.replySource))).map(([key]) => key);
}

function addListed(flows: readonly (ConntrackEntry & Row)[], services: ReadonlyMap<string, Listed>, result: StaleServiceFlow): void {
  const told = new Set<Listed>();
  for (const flow of flows) {
    const { destination: service, destinationPort: port, replySource: endpoint, replySourcePort: endpointPort = 0 } = flow;
    // an entry that is not translated may be of a pod's own network, where it never is
    if (flow.protocol !== "udp" || port === undefined || service === endpoint || result.rows.length >= MAX_ROWS) continue;
    const listed = services.get(`${service}:${port}`) ?? services.get(`node port:${port}`);
    if (listed === undefined || listed.endpoints.has(endpoint)) continue;
    const { unreplied, source: client } = flow;
    result.rows.push({
      ...placed(flow),
      client,
      service,
      port,
      endpoint,
      endpointPort,
      endpoints: listed.endpoints.size,
      gone: false,
      unreplied,
      resting: false,
    });
    if (!told.has(listed)) result.rules.push(...listed.rows.slice(0, 3).map((row) => ({ ...placed(row), service, port })));
    told.add(listed);
  }
}

function addTranslated(
  { nft, address }: Sources,
  flows: readonly (ConntrackEntry & Row)[],
  iptables: Pick<Iptables, "chains" | "rows">,
  result: StaleServiceFlow,
): void {
  const rules = serviceRules(iptables);
  const services = servicesOf(rules, nft);
  // kube-proxy has such a rule for a service with endpoints only
  const entrances = new Map(
    rules.entrances.flatMap((row) => (row.target?.startsWith("KUBE-SVC-") && behind(row, rules) === undefined ? [[addressOf(row), row]] : [])),
  );
  const ports = publishedPorts(iptables);
  // kube-proxy in its nftables mode may have left the chains of the time before
  const networks = hasNftProxy(nft) ? undefined : serviceNetworks(iptables);
  const listed = new Set(rulesOf(iptables.rows, "KUBE-SERVICES").map((row) => row.destination?.replace(/\/32$/, "")));
  const isService = (address: string): boolean => listed.has(address) || networks?.prefixes.has(twoBytes(address)) === true;
  const mine = new Set(address?.rows.map((row) => row.address));
  const isOwn = (to: string, published: Published | undefined): boolean => (to.startsWith("127.") ? published?.loopback === true : mine.has(to));
  const told = new Set<string>();
  for (const flow of flows) {
    const { destination, destinationPort: port, replySource, replySourcePort = 0 } = flow;
    if (flow.protocol !== "udp" || port === undefined || result.rows.length >= MAX_ROWS) continue;
    const key = `${destination}:${port}`;
    const translated = destination !== replySource;
    const published = destination.includes(":") ? undefined : ports.get(port);
    // what was sent to this port of another node is not translated here
    const nodePort = translated ? (services.get(`node port:${port}`) ?? (isService(destination) ? undefined : published)) : undefined;
    // tracked before something published the port: to the node itself, as long as packets come
    // a rule that leads to endpoints, whichever they are, would have translated it
    const led = !translated && flow.unreplied ? entrances.get(key) : undefined;
    const service =
      services.get(key) ??
      nodePort ??
      (!translated && isOwn(destination, published) ? published : undefined) ??
      (led && { endpoints: undefined, rules: [led] });
    const gone = service === undefined && translated && flow.unreplied && networks !== undefined && isGone(networks, destination);
    if (!gone && (service === undefined || service.endpoints?.has(endpointOf(replySource, replySourcePort)) === true)) continue;
    // not translated, and there is nowhere to: the service refuses it
    if (!translated && service?.endpoints?.size === 0) continue;
    result.rows.push({
      ...placed(flow),
      client: flow.source,
      service: destination,
      port,
      endpoint: replySource,
      endpointPort: replySourcePort,
      endpoints: service === undefined ? 0 : (service.endpoints?.size ?? -1),
      gone,
      unreplied: flow.unreplied,
      resting: false,
    });
    if (told.has(key)) continue;
    told.add(key);
    for (const rule of service?.rules ?? []) result.rules.push({ ...placed(rule), service: destination, port });
  }
}

/** As iptables writes it behind --to-destination: `10.244.1.2:53`, `[fd00:10:244:1::2]:53`. */
const endpointOf = (address: string, port: number): string => `${address.includes(":") ? `[${address}]` : address}:${port}`;

interface ServiceNetworks {
  /** The first two bytes of the addresses that services have. */
  readonly prefixes: ReadonlySet<string>;
  /** Addresses that a rule of nat names. */
  readonly named: ReadonlySet<string>;
}

/** Where the addresses of services are, if kube-proxy's list of them was seen to its end and names each (IPVS keeps them in a set). */
function serviceNetworks(iptables: Pick<Iptables, "chains" | "rows">): ServiceNetworks | undefined {
  const list = iptables.chains.filter((chain) => chain.table === "nat" && chain.name === "KUBE-SERVICES" && chain.family === "ipv4");
  if (list.length !== 1 || list[0]?.complete !== true) return undefined;
  const prefixes = new Set<string>();
  const named = new Set<string>();
  for (const row of iptables.rows) {
    if (row.table !== "nat" || row.family !== "ipv4") continue;
    if (row.spec.includes("match-set")) return undefined;
    if (row.destination !== undefined) named.add(row.destination.replace(/\/32$/, ""));
    if (row.chain === "KUBE-SERVICES" && row.comment?.endsWith(" cluster IP")) prefixes.add(twoBytes(row.destination ?? ""));
  }
  return { prefixes, named };
}

const twoBytes = (address: string): string => address.split(".", 2).join(".");
const isGone = ({ prefixes, named }: ServiceNetworks, address: string): boolean => prefixes.has(twoBytes(address)) && !named.has(address);

interface Published {
  readonly endpoints: Set<string>;
  readonly rules: IptablesRow[];
  /** Whether it is translated for 127.0.0.0/8, too; Docker leaves that to its proxy, except for the ports of a swarm. */
  loopback: boolean;
}

/** Chains of the portmap plugin, of netavark (Podman) and of a swarm's ingress network. */
const PORT_CHAIN = /^(?:CNI-DN-|NETAVARK-DN-|DOCKER-INGRESS$)/;

/** UDP ports of the node that the portmap plugin, Docker, Podman, CRI-O or kubenet translate (IPv4), with all addresses they lead to. */
function publishedPorts(iptables: Pick<Iptables, "rows">): Map<number, Published> {
  const ports = new Map<number, Published>();
  const kubenet = new Map(rulesOf(iptables.rows, "KUBE-HOSTPORTS").map((row) => [row.target, row.destinationPort]));
  for (const row of iptables.rows) {
    if (row.family !== "ipv4") continue;
    const published = PORT_CHAIN.test(row.chain) || (row.chain === "DOCKER" && row.target === "DNAT");
    // of kubenet and CRI-O the port stands where the chain is entered
    const hostPort = published ? row.destinationPort : row.chain.startsWith("KUBE-HP-") ? kubenet.get(row.chain) : undefined;
    if (row.protocol !== "udp" || row.toDestination === undefined || !/^\d{1,5}$/.test(hostPort ?? "")) continue;
    const port = Number(hostPort);
    // everything talks to port 53 of something
    if (port === 53) continue;
    const known = ports.get(port) ?? { endpoints: new Set(), rules: [], loopback: false };
    known.endpoints.add(row.toDestination);
    known.rules.push(row);
    known.loopback ||= row.chain !== "DOCKER";
    ports.set(port, known);
  }
  return ports;
}

/** What of the table nat tells of UDP services. */
interface ServiceRules {
  /** Rules of kube-proxy's chains, by {@link chainKey}. */
  readonly chains: ReadonlyMap<string, readonly IptablesRow[]>;
  /** The chains that were seen to their end. */
  readonly complete: ReadonlySet<string>;
  /** Rules that lead to a service's chains, by its address or by a port of the node. */
  readonly entrances: readonly IptablesRow[];
  /** Rules that refuse a service without endpoints. */
  readonly refusals: readonly IptablesRow[];
}

const chainKey = (row: { readonly family: string; readonly backend: string }, chain: string): string => `${row.family} ${row.backend} ${chain}`;
/** The address and port that an entrance is for. */
const addressOf = ({ destination, destinationPort }: IptablesRow): string =>
  `${destination === undefined ? "node port" : destination.replace(/\/(?:32|128)$/, "")}:${destinationPort}`;

/** UDP services by address and port, with the endpoints they lead to. Services of which a chain was not seen to its end are left out. */
function servicesOf(rules: ServiceRules, nft: Nft | undefined): Map<string, Service> {
  const services = new Map<string, Service>();
  for (const row of rules.refusals) services.set(addressOf(row), { endpoints: new Set(), rules: [row] });
  for (const row of rules.entrances) {
    const service = behind(row, rules);
    if (service === undefined) services.delete(addressOf(row));
    else if (service.endpoints.size > 0) services.set(addressOf(row), service);
  }
  for (const { address = "node port", port, protocol, endpoints, rows } of nft === undefined ? [] : nftServices(nft)) {
    if (protocol !== "udp") continue;
    // chains of the mode before may be left: what either of them leads to is an endpoint
    const other = services.get(`${address}:${port}`);
    services.set(`${address}:${port}`, { endpoints: other === undefined ? endpoints : new Set([...endpoints, ...other.endpoints]), rules: rows });
  }
  return services;
}

function serviceRules(iptables: Pick<Iptables, "chains" | "rows">): ServiceRules {
  const chains = new Map<string, IptablesRow[]>();
  const complete = new Set(iptables.chains.flatMap((chain) => (chain.table === "nat" && chain.complete ? [chainKey(chain, chain.name)] : [])));
  const entrances: IptablesRow[] = [];
  const refusals: IptablesRow[] = [];
  for (const row of iptables.rows) {
    if (row.table === "nat" && row.chain.startsWith("KUBE-")) {
      const key = chainKey(row, row.chain);
      const rules = chains.get(key);
      if (rules === undefined) chains.set(key, [row]);
      else rules.push(row);
    }
    if (isNodePort(row)) entrances.push(row);
    if (row.chain !== "KUBE-SERVICES" && row.chain !== "KUBE-EXTERNAL-SERVICES") continue;
    if (row.protocol !== "udp" || row.destination === undefined || row.destinationNegated || !/^\d{1,5}$/.test(row.destinationPort ?? "")) continue;
    const { table, target = "" } = row;
    // a save through grep names no table: only nat has chains of services, and only filter has REJECT
    if ((table === "nat" || isServiceChain(target)) && target.startsWith("KUBE-") && target !== "KUBE-MARK-MASQ" && target !== "KUBE-MARK-DROP")
      entrances.push(row);
    else if (target === "REJECT" || (table === "filter" && target === "DROP")) refusals.push(row);
  }
  return { chains, complete, entrances, refusals };
}

/** The endpoints to which the chains behind an entrance lead; undefined if one of them was not seen to its end. */
function behind(entrance: IptablesRow, { chains, complete }: ServiceRules): Service | undefined {
  const target = entrance.target as string;
  const rulesIn = (name: string): readonly IptablesRow[] => chains.get(chainKey(entrance, name)) ?? [];
  // whichever way a packet came in, the service has the endpoints of its own chains, and no others
  const own = OUTER.exec(target)?.[1];
  const inner = own === undefined ? [] : [`KUBE-SVC-${own}`, `KUBE-SVL-${own}`].filter((name) => rulesIn(name).length > 0);
  const endpoints = new Set<string>();
  const seen = new Set<string>();
  let level = [target, ...inner];
  for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
    const next: string[] = [];
    for (const name of level) {
      if (seen.has(name)) continue;
      seen.add(name);
      if (!complete.has(chainKey(entrance, name)) && !(OUTER.test(name) && inner.length > 0)) return undefined;
      for (const rule of rulesIn(name)) {
        if (rule.toDestination !== undefined) endpoints.add(rule.toDestination);
        else if (rule.target?.startsWith("KUBE-SEP-") || /^KUBE-(?:SVC|SVL|XLB|EXT|FW)-/.test(rule.target ?? "")) next.push(rule.target as string);
      }
    }
    level = next;
  }
  const telling = [target, ...inner].flatMap(rulesIn).filter(leadsToEndpoint);
  return { endpoints, rules: [entrance, ...telling.slice(0, 3)] };
}

/** Chains before a service's own, of the same name: for addresses from outside, for a load balancer's, for both of old. Rules in them may lack the service's name. */
const OUTER = /^KUBE-(?:EXT|FW|XLB)-(\w{1,32})$/;
const leadsToEndpoint = (rule: IptablesRow): boolean => rule.target?.startsWith("KUBE-SEP-") === true;

const isServiceChain = (target: string | undefined): boolean => /^KUBE-(?:SVC|SVL|EXT|FW|XLB)-/.test(target ?? "");

/** The entrance of a UDP service by a port of the node (30000 to 32767 by default): whatever address of the node the packet was sent to. */
const isNodePort = (row: IptablesRow): boolean =>
  row.table === "nat" &&
  row.chain === "KUBE-NODEPORTS" &&
  row.protocol === "udp" &&
  row.destination === undefined &&
  /^\d{5}$/.test(row.destinationPort ?? "") &&
  /^KUBE-(?:SVC|SVL|XLB|EXT)-/.test(row.target ?? "");
