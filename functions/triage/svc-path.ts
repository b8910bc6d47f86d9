import type { Row } from "../facts/fact.ts";
import { addressBits, within } from "../facts/ip-bits.ts";
import type { Link } from "../facts/link.ts";
import type { Neighbor } from "../facts/neighbor.ts";
import type { Route } from "../facts/route.ts";
import type { Facts } from "../rules/evaluate.ts";
import type { ServiceEndpoint, ServicePlace } from "./ports.ts";
import { type Entry, entriesFor, proxiesOf, unreadProxies } from "./svc-entry.ts";
import type { Findings, Wrong } from "./workload-message.ts";

/** The way of a packet to a service: on the node that calls it (is there an entry, and does it lead to ready endpoints?), and on the one that serves it. */

/** Devices by which Cilium and Kube-OVN deliver into the node's own pods, although their routes name a gateway. */
const DELIVERS: ReadonlySet<string> = new Set(["cilium_host", "ovn0"]);
/** More lines than this about endpoints are no table any more. */
const MAX_SHOWN = 25;

/** A node's facts with its name. */
export interface NodeFacts {
  readonly name: string;
  /** What its cluster may call it instead. */
  readonly address?: string;
  readonly facts: Facts;
}

/** What the calling node's proxies do with packets to the service, held against what the cluster says is ready. */
export function clientPath(place: ServicePlace, { name, address: alias, facts }: NodeFacts): Findings {
  const table: string[] = [];
  const wrong: Wrong[] = [];
  const unchecked: string[] = [...place.problems];
  const proofs = (...rows: readonly Row[]) => rows.flatMap((row) => facts.quote(row) ?? []);
  const known = !place.problems.some((problem) => problem.startsWith("its endpoints"));
  const proxies = proxiesOf(facts);
  if (place.addresses.length === 0) table.push("no address of its own (headless): clients get the endpoints' addresses from DNS");
  else if (proxies.length === 0) {
    const why = unreadProxies(facts);
    unchecked.push(`No service proxy was seen on ${name}${why.length === 0 ? "; its rules, tables and maps hold no service" : ` (${why.join("; ")})`}`);
  }
  for (const port of place.ports) {
    const endpoints = place.endpoints.filter((endpoint) => endpoint.portName === port.name && endpoint.protocol === port.protocol);
    const ready = endpoints.filter((endpoint) => endpoint.ready);
    const label = `${port.port}/${port.protocol}${port.name === "" ? "" : ` (${port.name})`}`;
    // of endpoints that were left out one may be ready
    if (known && ready.length === 0 && place.more === 0)
      wrong.push({
        what: `No endpoint of ${place.name}:${label} is ready${endpoints.length === 0 ? "; the cluster lists none at all. Does its selector fit the pods?" : `, of ${endpoints.length}`}. Nothing can answer there.`,
        evidence: [],
      });
    for (const address of proxies.length === 0 ? [] : place.addresses) {
      const mine = endpoints.filter((endpoint) => endpoint.address.includes(":") === address.includes(":"));
      const front = `${show(address, port.port)}/${port.protocol}`;
      const entries = entriesFor(facts, address, port.port, port.protocol.toLowerCase());
      if (entries.length === 0) {
        table.push(`${front}  no entry on ${name}`);
        const partial = proxiesOf(facts, address.includes(":") ? "ipv6" : "ipv4").filter(({ complete }) => !complete);
        if (partial.length === 0)
          wrong.push({ what: `${name} has no entry for ${front}: ${proxies.map(({ by }) => by).join(" and ")} did not write one there.`, evidence: [] });
        else
          unchecked.push(`Whether ${name} has an entry for ${front}: ${partial.map(({ by, reason }) => `${by} is only partly known (${reason})`).join("; ")}`);
      }
      for (const entry of entries) {
        table.push(`${front}  ${entry.by}${entry.refuses === undefined ? "" : REFUSED[entry.refuses]}`, ...rowsOf(mine, entry));
        judge(entry, front, mine);
      }
    }
    if (place.addresses.length === 0 || proxies.length === 0) table.push(`port ${label}`, ...rowsOf(endpoints, undefined));
  }
  if (place.more > 0) table.push(`… and ${place.more} more endpoints, which were not looked at`);
  return { table, wrong, unchecked };

  function judge(entry: Entry, front: string, endpoints: readonly ServiceEndpoint[]): void {
    const ready = endpoints.filter((endpoint) => endpoint.ready);
    const complete = facts.reading(entry.fact)?.complete === true;
    if (!known) return;
    const does = entry.refuses === "rejects" ? "refuses" : "drops";
    const here = ready.filter(({ node }) => node !== undefined && (node === name || node === alias));
    const usable = place.onlyLocal && here.length > 0 ? here : ready;
    // one that leads nowhere says the same in IPVS and in Cilium's maps
    if (place.onlyLocal && here.length === 0 && ready.length > 0 && entry.backends.length === 0 && (complete || entry.refuses !== undefined)) {
      wrong.push({
        what: `${entry.by} on ${name} ${does} packets to ${front}: the service takes only endpoints on the calling node (internalTrafficPolicy Local), and ${entry.by} knows none there.`,
        evidence: proofs(entry.front),
      });
      return;
    }
    if (entry.refuses !== undefined && ready.length > 0)
      wrong.push({
        what: `${entry.by} on ${name} ${does} packets to ${front}, as if nothing${place.onlyLocal ? " on it" : ""} were ready; ${usable.length === 1 ? "1 endpoint is" : `${usable.length} endpoints are`}.`,
        evidence: proofs(entry.front),
      });
    if (entry.refuses !== undefined) return;
    // with endpoints that were left out nobody can say that one is none
    const strangers = place.more > 0 ? [] : entry.backends.filter((backend) => !endpoints.some((endpoint) => same(endpoint, backend)));
    for (const { address, port, row } of strangers.slice(0, 3))
      wrong.push({
        what: `${entry.by} on ${name} sends packets for ${front} to ${show(address, port)}, which is no endpoint of the service (any more).`,
        evidence: proofs(row),
      });
    const missing = usable.filter((endpoint) => !entry.backends.some((backend) => same(endpoint, backend)));
    if (missing.length === 0) return;
    const which = missing.slice(0, 3).map((endpoint) => show(endpoint.address, endpoint.port));
    const list = `${which.join(", ")}${missing.length > 3 ? ` and ${missing.length - 3} more` : ""}`;
    if (!complete) unchecked.push(`Whether ${entry.by} on ${name} leads to ${list}: ${facts.reading(entry.fact)?.reason ?? "it is only partly known"}`);
    // what prefers near endpoints leaves the others out
    else if (place.prefersNear && entry.backends.length > 0)
      unchecked.push(`${list}: not used from ${name}. The service prefers endpoints nearby, so this may be meant`);
    else
      wrong.push({
        what: `${entry.by} on ${name} does not lead to ${list}, which ${missing.length === 1 ? "is" : "are"} ready.`,
        evidence: proofs(entry.front),
      });
  }
}

/** Whether the serving node can hand packets to the endpoints on it: a route of its own, an interface that is up, a neighbor that answers. */
export function serverPath(endpoints: readonly ServiceEndpoint[], { name, facts }: NodeFacts): Findings {
  const table: string[] = [];
  const wrong: Wrong[] = [];
  const unchecked: string[] = [];
  const rows = <T>(id: string): readonly (T & Row)[] | undefined => {
    const reading = facts.reading(id);
    return reading?.status === "read" ? (reading.value as { rows: (T & Row)[] }).rows : undefined;
  };
  const [routes, links, neighbors] = [rows<Route>("route"), rows<Link>("link"), rows<Neighbor>("neighbor")];
  const proofs = (...from: readonly Row[]) => from.flatMap((row) => facts.quote(row) ?? []);
  const addresses = [...new Set(endpoints.map(({ address }) => address))].slice(0, MAX_SHOWN);
  if (routes === undefined && addresses.length > 0) unchecked.push(`The routes of ${name}: ${facts.reading("route")?.reason ?? "they were not collected"}`);
  for (const address of routes === undefined ? [] : addresses) {
    const route = longest(routes ?? [], address);
    if (route?.type === "local") {
      table.push(`${name}  ${address}  is the node's own address`);
      continue;
    }
    const out = route?.interface;
    const inside =
      route?.type === "unicast" &&
      out !== undefined &&
      (route?.gateway === undefined || DELIVERS.has(out)) &&
      route?.prefix !== "0.0.0.0/0" &&
      route?.prefix !== "::/0";
    if (route === undefined || !inside) {
      table.push(`${name}  ${address}  no way into the pod`);
      if (facts.reading("route")?.complete === true)
        wrong.push({
          what: `${name} has no route into the pod ${address}${route === undefined ? "" : route.type === "unicast" ? `: it sends such packets out through ${out ?? "?"} again` : `: a route of type ${route.type} takes such packets`}. The CNI plugin has not made it, or has lost it.`,
          evidence: route === undefined ? [] : proofs(route),
        });
      else unchecked.push(`The route of ${name} to ${address}: ${facts.reading("route")?.reason ?? "not all routes are known"}`);
      continue;
    }
    const link = links?.find((row) => row.interface === out);
    const entry = neighbors?.find((row) => row.address === address && row.interface === out);
    const state = link === undefined ? "" : link.up ? (link.carrier ? "  up" : "  no carrier") : "  down";
    table.push(`${name}  ${address}  dev ${out}${state}${entry === undefined ? "" : `  ${entry.state}`}`);
    if (links !== undefined && link === undefined && facts.reading("link")?.complete === true)
      wrong.push({ what: `The route of ${name} to ${address} leads to ${out}, an interface that is not there.`, evidence: proofs(route) });
    if (link !== undefined && (!link.up || !link.carrier))
      wrong.push({ what: `${out} on ${name}, which leads to ${address}, ${link.up ? "has no carrier" : "is down"}.`, evidence: proofs(route, link) });
    if (entry?.state === "FAILED" || entry?.state === "INCOMPLETE")
      wrong.push({ what: `${name} asked for ${address} on ${out} and got no answer (${entry.state}).`, evidence: proofs(entry) });
  }
  return { table, wrong, unchecked };
}

const REFUSED = { rejects: ": refused", drops: ": dropped" } as const;

const same = (endpoint: ServiceEndpoint, backend: { address: string; port: number | undefined }): boolean =>
  endpoint.address === backend.address && (backend.port === undefined || endpoint.port === backend.port);

const show = (address: string, port: number | undefined): string =>
  `${address.includes(":") ? `[${address}]` : address}${port === undefined ? "" : `:${port}`}`;

/** One line per endpoint: where it is, and whether the entry leads to it. */
function rowsOf(endpoints: readonly ServiceEndpoint[], entry: Entry | undefined): string[] {
  const lines = endpoints.slice(0, MAX_SHOWN).map((endpoint) => {
    const state = endpoint.ready ? "ready" : endpoint.terminating ? "ending" : "not ready";
    const used = entry === undefined ? "" : entry.backends.some((backend) => same(endpoint, backend)) ? "entry found" : "no entry";
    return `  ${[show(endpoint.address, endpoint.port).padEnd(22), state.padEnd(9), endpoint.node ?? "no node", endpoint.pod ?? "", used].filter(Boolean).join("  ")}`;
  });
  return endpoints.length > MAX_SHOWN ? [...lines, `  … ${endpoints.length - MAX_SHOWN} more`] : lines;
}

/** Types of routes that take a packet: also those that throw it away, as Calico's blackhole does for its whole block. */
const TAKING: ReadonlySet<string> = new Set(["unicast", "local", "blackhole", "unreachable", "prohibit"]);
/** The route of table main (or local) that takes an address: the longest prefix. */
function longest(routes: readonly (Route & Row)[], address: string): (Route & Row) | undefined {
  if (addressBits(address) === undefined) return undefined;
  const lengthOf = ({ prefix }: Route): number => Number(/\/(\d{1,3})$/.exec(prefix)?.[1] ?? (prefix.includes(":") ? 128 : 32));
  return routes
    .filter(({ table, prefix, type }) => (table === "main" || table === "local") && TAKING.has(type) && within(address, prefix))
    .toSorted((a, b) => lengthOf(b) - lengthOf(a) || Number(a.table === "main") - Number(b.table === "main") || (a.metric ?? 0) - (b.metric ?? 0))[0];
}
