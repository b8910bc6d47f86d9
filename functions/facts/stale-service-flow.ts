import { z } from "zod";
import type { ConntrackEntry } from "./conntrack.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { placed } from "./placed.ts";

/**
 * Tracked UDP flows to a service of kube-proxy (iptables mode) that are sent to an endpoint which the service does not have any more.
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
  /** How many endpoints the service has now. */
  endpoints: z.int(),
  /** No reply has come. */
  unreplied: z.boolean(),
});
/** A rule of kube-proxy for a service that has such flows: what it has now. */
const ServiceRule = z.object({ line: z.int(), service: z.string(), port: z.int() });
const StaleServiceFlow = z.object({ rows: z.array(Flow), rules: z.array(ServiceRule) });
type StaleServiceFlow = z.infer<typeof StaleServiceFlow>;

interface Sources {
  readonly conntrack?: { rows: readonly (ConntrackEntry & Row)[] };
  readonly iptables?: Iptables;
}

/** More rows than this are not made: one of each is proof enough. */
const MAX_ROWS = 1000;
/** kube-proxy's deepest way from a service to an endpoint: KUBE-SERVICES → KUBE-EXT → KUBE-SVL → KUBE-SVC → KUBE-SEP. */
const MAX_DEPTH = 6;

export const staleServiceFlow = defineDerivedFact<StaleServiceFlow>({
  id: "stale-service-flow",
  title: "UDP flows to a service that are sent to an endpoint it no longer has",
  from: ["conntrack", "iptables"],
  schema: StaleServiceFlow,
  derive: (values) => derive(values as Sources),
});

interface Service {
  readonly endpoints: ReadonlySet<string>;
  readonly rules: readonly IptablesRow[];
}

function derive({ conntrack, iptables }: Sources): StaleServiceFlow {
  const result: StaleServiceFlow = { rows: [], rules: [] };
  if (conntrack === undefined || iptables === undefined) return result;
  const services = servicesOf(iptables);
  const told = new Set<string>();
  for (const flow of conntrack.rows) {
    const { destination, destinationPort: port, replySource, replySourcePort = 0 } = flow;
    if (flow.protocol !== "udp" || port === undefined || result.rows.length >= MAX_ROWS) continue;
    const key = `${destination}:${port}`;
    // what was sent to this port of another node is not translated here
    const service = services.get(key) ?? (destination === replySource ? undefined : services.get(`node port:${port}`));
    if (service === undefined || service.endpoints.has(`${replySource}:${replySourcePort}`)) continue;
    // not translated, and there is nowhere to: the service refuses it
    if (destination === replySource && service.endpoints.size === 0) continue;
    result.rows.push({
      ...placed(flow),
      client: flow.source,
      service: destination,
      port,
      endpoint: replySource,
      endpointPort: replySourcePort,
      endpoints: service.endpoints.size,
      unreplied: flow.unreplied,
    });
    if (told.has(key)) continue;
    told.add(key);
    for (const rule of service.rules) result.rules.push({ ...placed(rule), service: destination, port });
  }
  return result;
}

/** UDP services by address and port, with the endpoints they lead to. Services of which a chain was not seen to its end are left out. */
function servicesOf(iptables: Iptables): Map<string, Service> {
  const chains = new Map<string, IptablesRow[]>();
  const complete = new Set<string>();
  const keyOf = (row: { family: string; backend: string }, chain: string): string => `${row.family} ${row.backend} ${chain}`;
  for (const chain of iptables.chains) if (chain.table === "nat" && chain.complete) complete.add(keyOf(chain, chain.name));
  const entrances: IptablesRow[] = [];
  const refusals: IptablesRow[] = [];
  for (const row of iptables.rows) {
    if (row.table === "nat" && row.chain.startsWith("KUBE-")) {
      const key = keyOf(row, row.chain);
      const rules = chains.get(key);
      if (rules === undefined) chains.set(key, [row]);
      else rules.push(row);
    }
    if (isNodePort(row)) entrances.push(row);
    if (row.chain !== "KUBE-SERVICES" && row.chain !== "KUBE-EXTERNAL-SERVICES") continue;
    if (row.protocol !== "udp" || row.destination === undefined || row.destinationNegated || !/^\d{1,5}$/.test(row.destinationPort ?? "")) continue;
    if (row.table === "nat" && row.target?.startsWith("KUBE-") && row.target !== "KUBE-MARK-MASQ" && row.target !== "KUBE-MARK-DROP") entrances.push(row);
    else if (row.target === "REJECT" || (row.table === "filter" && row.target === "DROP")) refusals.push(row); // a save through grep names no table, and only filter has REJECT
  }
  const services = new Map<string, Service>();
  const addressOf = (row: IptablesRow): string =>
    row.destination === undefined ? `node port:${row.destinationPort}` : `${(row.destination as string).replace(/\/(?:32|128)$/, "")}:${row.destinationPort}`;
  for (const row of refusals) services.set(addressOf(row), { endpoints: new Set(), rules: [row] });
  for (const row of entrances) {
    const endpoints = new Set<string>();
    const seen = new Set<string>();
    let known = true;
    let level = [row.target as string];
    for (let depth = 0; depth < MAX_DEPTH && level.length > 0; depth++) {
      const next: string[] = [];
      for (const name of level) {
        const key = keyOf(row, name);
        if (seen.has(key)) continue;
        seen.add(key);
        if (!complete.has(key)) known = false;
        for (const rule of chains.get(key) ?? []) {
          if (rule.toDestination !== undefined) endpoints.add(rule.toDestination);
          else if (rule.target?.startsWith("KUBE-SEP-") || /^KUBE-(?:SVC|SVL|XLB|EXT|FW)-/.test(rule.target ?? "")) next.push(rule.target as string);
        }
      }
      level = next;
    }
    if (known && endpoints.size > 0) {
      const rules = [row, ...(chains.get(keyOf(row, row.target as string)) ?? []).filter((rule) => rule.target?.startsWith("KUBE-SEP-")).slice(0, 3)];
      services.set(addressOf(row), { endpoints, rules });
    } else if (!known) services.delete(addressOf(row));
  }
  return services;
}

/** The entrance of a UDP service by a port of the node (30000 to 32767 by default): whatever address of the node the packet was sent to. */
const isNodePort = (row: IptablesRow): boolean =>
  row.table === "nat" &&
  row.chain === "KUBE-NODEPORTS" &&
  row.protocol === "udp" &&
  row.destination === undefined &&
  /^\d{5}$/.test(row.destinationPort ?? "") &&
  /^KUBE-(?:SVC|SVL|XLB|EXT)-/.test(row.target ?? "");
