import type { Row } from "../facts/fact.ts";
import { addressBits, within } from "../facts/ip-bits.ts";
import type { Link } from "../facts/link.ts";
import type { Neighbor } from "../facts/neighbor.ts";
import type { Route } from "../facts/route.ts";
import type { Facts } from "../rules/evaluate.ts";
import type { ServiceEndpoint, ServicePlace } from "./ports.ts";
import { type Entry, entriesFor, isUnbound, passedBy, proxiesOf, replacedProxy, runsNoProxy, unreadProxies } from "./svc-entry.ts";
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
  /** Proxies whose entries are not what they should be. */
  const blamed = new Set<Entry["by"]>();
  const known = !place.problems.some((problem) => problem.startsWith("its endpoints"));
  const proxies = proxiesOf(facts);
  if (place.addresses.length === 0) table.push("no address of its own (headless): clients get the endpoints' addresses from DNS");
  else if (proxies.length === 0) {
    const why = unreadProxies(facts);
    unchecked.push(`No service proxy was seen on ${name}${why.length === 0 ? "; its rules, tables and maps hold no service" : ` (${why.join("; ")})`}`);
  }
  if (replacedProxy(facts)?.sure === false)
    unchecked.push(`Whether a kube-proxy works on ${name} beside Cilium: none was seen to run, and its entries, if there are any, were passed over`);
  for (const port of place.ports) {
    const endpoints = place.endpoints.filter((endpoint) => endpoint.portName === port.name && endpoint.protocol === port.protocol);
    const ready = usable(endpoints);
    const label = `${port.port}/${port.protocol}${port.name === "" ? "" : ` (${port.name})`}`;
    // of endpoints that were left out one may be ready
    if (known && ready.length === 0 && place.more === 0 && place.acrossClusters !== true)
      wrong.push({
        what: `No endpoint of ${place.name}:${label} is ready${endpoints.length === 0 ? "; the cluster lists none at all. Does its selector fit the pods?" : `, of ${endpoints.length}`}. Nothing can answer there.`,
        evidence: [],
      });
    if (ready.some((endpoint) => !endpoint.ready)) table.push(`port ${label}: no endpoint is ready; what is ending still answers`);
    for (const address of proxies.length === 0 ? [] : place.addresses) {
      const mine = endpoints.filter((endpoint) => endpoint.address.includes(":") === address.includes(":"));
      const front = `${show(address, port.port)}/${port.protocol}`;
      const entries = entriesFor(facts, address, port.port, port.protocol.toLowerCase());
      if (entries.length === 0) {
        table.push(`${front}  no entry on ${name}`);
        const partial = proxiesOf(facts, address.includes(":") ? "ipv6" : "ipv4").filter(({ complete }) => !complete);
        if (place.leftOut !== undefined) unchecked.push(`${front}: the label ${place.leftOut} of the service keeps kube-proxy from writing an entry`);
        else if (partial.length === 0) {
          for (const { by } of proxies) blamed.add(by);
          wrong.push({ what: `${name} has no entry for ${front}: ${proxies.map(({ by }) => by).join(" and ")} did not write one there.`, evidence: [] });
        } else
          unchecked.push(`Whether ${name} has an entry for ${front}: ${partial.map(({ by, reason }) => `${by} is only partly known (${reason})`).join("; ")}`);
      }
      for (const entry of entries) {
        table.push(`${front}  ${entry.by}${entry.refuses === undefined ? "" : REFUSED[entry.refuses]}`, ...rowsOf(mine, entry));
        if (entries.some(({ redirects }) => redirects))
          unchecked.push(`${front}: a LocalRedirect policy of Cilium's sends it to pods on ${name} instead; whether those answer was not looked at`);
        else judge(entry, front, mine);
        if (entry.by === "kube-proxy (IPVS)" && isUnbound(facts, address)) {
          blamed.add(entry.by);
          wrong.push({
            what: `${address} is not on kube-ipvs0 of ${name}: without it packets for ${front} do not come to IPVS, although it has an entry.`,
            evidence: proofs(entry.front),
          });
        }
      }
    }
    if (place.addresses.length === 0 || proxies.length === 0) table.push(`port ${label}`, ...rowsOf(endpoints, undefined));
  }
  if (place.addresses.length > 0 && passedBy(facts, place.addresses[0]?.includes(":") === true ? "ipv6" : "ipv4")) {
    blamed.add("kube-proxy (iptables)");
    wrong.push({
      what: `PREROUTING of the table nat on ${name} does not call KUBE-SERVICES: packets of pods pass by every entry of kube-proxy (iptables). Something has flushed that chain, and kube-proxy has not written it again.`,
      evidence: [],
    });
  }
  if (place.more > 0) table.push(`… and ${place.more} more endpoints, which were not looked at`);
  const writer = [...blamed].map((by) => (by.startsWith("Cilium") ? "the Cilium agent" : "kube-proxy"))[0];
  const next =
    writer === undefined
      ? undefined
      : writer === "kube-proxy" && runsNoProxy(facts)
        ? `Next: no kube-proxy runs on ${name}. Find out why it has ended; or, where another program does its work (OVN-Kubernetes, Antrea, Calico's eBPF), these are what it left.`
        : `Next: what ${writer} on ${name} logs. It holds its entries against the cluster and writes them anew when it is restarted.`;
  return { table, wrong, unchecked, ...(next === undefined ? {} : { next }) };

  function judge(entry: Entry, front: string, endpoints: readonly ServiceEndpoint[]): void {
    const ready = usable(endpoints);
    const ending = ready.some((endpoint) => !endpoint.ready);
    const [first] = endpoints;
    const seen = proxiesOf(facts, first?.address.includes(":") === true ? "ipv6" : "ipv4").find(({ by }) => by === entry.by);
    const complete = seen?.complete === true;
    if (!known) return;
    const does = entry.refuses === "rejects" ? "refuses" : "drops";
    const here = ready.filter(({ node }) => node !== undefined && (node === name || node === alias));
    const wanted = place.onlyLocal && here.length > 0 ? here : ready;
    // one that leads nowhere says the same in IPVS and in Cilium's maps
    if (place.onlyLocal && here.length === 0 && ready.length > 0 && entry.backends.length === 0 && (complete || entry.refuses !== undefined)) {
      wrong.push({
        what: `${entry.by} on ${name} ${does} packets to ${front}: the service takes only endpoints on the calling node (internalTrafficPolicy Local), and ${entry.by} knows none there.`,
        evidence: proofs(entry.front),
      });
      return;
    }
    if (entry.refuses !== undefined && ready.length > 0) {
      blamed.add(entry.by);
      wrong.push({
        what: `${entry.by} on ${name} ${does} packets to ${front}, as if nothing${place.onlyLocal ? " on it" : ""} were ready; ${wanted.length === 1 ? "1 endpoint is" : `${wanted.length} endpoints are`}${ending ? " ending and still answer" : ""}${ending && wanted.length === 1 ? "s" : ""}.`,
        evidence: proofs(entry.front),
      });
    }
    if (entry.refuses !== undefined) return;
    // with endpoints that were left out nobody can say that one is none
    const strangers =
      place.more > 0 || place.acrossClusters === true ? [] : entry.backends.filter((backend) => !endpoints.some((endpoint) => same(endpoint, backend)));
    if (strangers.length > 0) blamed.add(entry.by);
    for (const { address, port, row } of strangers.slice(0, 3))
      wrong.push({
        what: `${entry.by} on ${name} sends packets for ${front} to ${show(address, port)}, which is no endpoint of the service (any more).`,
        evidence: proofs(row),
      });
    const missing = wanted.filter((endpoint) => !entry.backends.some((backend) => same(endpoint, backend)));
    if (missing.length === 0) return;
    const which = missing.slice(0, 3).map((endpoint) => show(endpoint.address, endpoint.port));
    const list = `${which.join(", ")}${missing.length > 3 ? ` and ${missing.length - 3} more` : ""}`;
    if (!complete) unchecked.push(`Whether ${entry.by} on ${name} leads to ${list}: ${seen?.reason ?? "it is only partly known"}`);
    else if (place.acrossClusters === true && entry.backends.length > 0)
      unchecked.push(`${list}: not used from ${name}. Other clusters serve it, too (global service), and may be preferred`);
    // what prefers near endpoints leaves the others out
    else if (place.prefersNear && entry.backends.length > 0)
      unchecked.push(`${list}: not used from ${name}. The service prefers endpoints nearby, so this may be meant`);
    else {
      blamed.add(entry.by);
      wrong.push({
        what: `${entry.by} on ${name} does not lead to ${list}, which ${missing.length === 1 ? "is" : "are"} ${ending ? `ending and still answer${missing.length === 1 ? "s" : ""}` : "ready"}.`,
        evidence: proofs(entry.front),
      });
    }
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
  // of a pod that has ended its way in may be gone already
  const there = endpoints.filter(({ terminating, serving }) => !terminating || serving === true);
  const addresses = [...new Set(there.map(({ address }) => address))].slice(0, MAX_SHOWN);
  if (routes === undefined && addresses.length > 0) unchecked.push(`The routes of ${name}: ${facts.reading("route")?.reason ?? "they were not collected"}`);
  for (const address of routes === undefined ? [] : addresses) {
    const best = longest(routes ?? [], address);
    const route = best !== undefined && isHost(best.prefix, address) ? best : (ownRoute(routes ?? [], address) ?? best);
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
    // a pod of macvlan or of a card of its own is in the node's network, where its own node may not reach it
    const outside = link?.kind !== "bridge" && (routes ?? []).some((row) => row.interface === out && (row.prefix === "0.0.0.0/0" || row.prefix === "::/0"));
    if ((entry?.state === "FAILED" || entry?.state === "INCOMPLETE") && outside)
      unchecked.push(`${address} did not answer ${name} on ${out}, the node's way out: a pod in the node's own network need not answer its own node`);
    else if (entry?.state === "FAILED" || entry?.state === "INCOMPLETE")
      wrong.push({ what: `${name} asked for ${address} on ${out} and got no answer (${entry.state}).`, evidence: proofs(entry) });
  }
  if (wrong.length === 0) return { table, wrong, unchecked };
  return {
    table,
    wrong,
    unchecked,
    next: `Next: what the CNI plugin's agent on ${name} logs of the pod. A pod that is deleted gets its interface and routes anew.`,
  };
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

/** Those that get packets: what is ready, or, where nothing is, what is ending and still answers. */
function usable(endpoints: readonly ServiceEndpoint[]): readonly ServiceEndpoint[] {
  const ready = endpoints.filter((endpoint) => endpoint.ready);
  return ready.length > 0 ? ready : endpoints.filter(({ terminating, serving }) => terminating && serving === true);
}

/** A route for this address alone, in a table to which a rule for the interface leads: so the VPC CNI does it for pods with security groups of their own. */
const ownRoute = (routes: readonly (Route & Row)[], address: string): (Route & Row) | undefined =>
  routes.find(
    ({ table, prefix, type, gateway, interface: out }) =>
      table !== "main" && table !== "local" && type === "unicast" && gateway === undefined && out !== undefined && isHost(prefix, address),
  );
const isHost = (prefix: string, address: string): boolean => prefix === `${address}/32` || prefix === `${address}/128`;

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
