import type { Row } from "./fact.ts";
import type { Nft } from "./nft-row.ts";
import { present } from "./present.ts";

/**
 * A service as kube-proxy writes it in its nftables mode (IPv4): an element of a verdict map, and the chain that it leads to. Each chain of an endpoint ends in
 * the endpoint's address, so that the chain of the service tells all of them:
 *
 *     10.97.0.10 . udp . 53 : goto service-FY5PMXPG-kube-system/kube-dns/udp/dns
 *     numgen random mod 1 vmap { 0 : goto endpoint-7BJE66LL-kube-system/kube-dns/udp/dns__10.245.0.3/53 }
 */
export interface NftService {
  /** Absent: a port of the node. */
  readonly address?: string;
  readonly port: number;
  readonly protocol: string;
  /** "address:port". Empty: kube-proxy refuses or drops what is sent to it. */
  readonly endpoints: ReadonlySet<string>;
  /** What tells it: the first rules of its chains, or the map of the services that are refused. */
  readonly rows: readonly Row[];
}

const ELEMENT = /^(?:(\d{1,3}(?:\.\d{1,3}){3}) \. )?(tcp|udp|sctp) \. (\d{1,5}) : (?:goto|jump) (\S{1,400})$/;
const CHAIN = /(?:goto|jump) ((?:service|external)-[^\s,{}"]{1,400})/g;
const ENDPOINT = /(?:goto|jump) endpoint-[^\s,{}"]{1,250}?__(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,5})/g;

/** True if kube-proxy of this node works in its nftables mode. */
export const hasNftProxy = (nft: { readonly tables: readonly { readonly family: string; readonly name: string }[] } | undefined): boolean =>
  nft?.tables.some(({ family, name }) => family === "ip" && name === "kube-proxy") === true;

/** The services in the table "ip kube-proxy". Left out are those of which a chain was not seen to its end. */
export function nftServices(nft: Nft): NftService[] {
  const own = <T extends { family: string; table: string }>(list: readonly T[]): T[] =>
    list.filter(({ family, table }) => family === "ip" && table === "kube-proxy");
  const complete = new Set(own(nft.chains).flatMap(({ name, complete: whole }) => (whole ? [name] : [])));
  const rules = Map.groupBy(own(nft.rows), ({ chain }) => chain);
  const services: NftService[] = [];
  for (const map of own(nft.sets)) {
    const refused = map.name === "no-endpoint-services" || map.name === "no-endpoint-nodeports";
    if (!refused && map.name !== "service-ips" && map.name !== "service-nodeports") continue;
    for (const member of map.members ?? []) {
      const [, address, protocol = "", port, target = ""] = ELEMENT.exec(member) ?? [];
      if (port === undefined) continue;
      // a chain for packets from outside leads to the service's own
      const inner = (rules.get(target) ?? []).flatMap(({ spec, target: next }) => [...`${spec} goto ${next}`.matchAll(CHAIN)].map(([, chain = ""]) => chain));
      const chains = refused ? [] : [...new Set([target, ...inner])];
      if (!chains.every((chain) => complete.has(chain))) continue;
      const endpoints = new Set<string>();
      const told = chains.flatMap((chain) => rules.get(chain) ?? []);
      for (const { spec, target: next } of told) for (const [, to, toPort] of `${spec} goto ${next}`.matchAll(ENDPOINT)) endpoints.add(`${to}:${toPort}`);
      const rows = refused
        ? [map]
        : told.filter(({ spec, target: next }) => next !== "mark-for-masquerade" || spec.includes(" daddr ") || spec.startsWith("ip daddr")).slice(0, 4);
      if (refused || endpoints.size > 0) services.push({ ...present({ address }), port: Number(port), protocol, endpoints, rows });
    }
  }
  return services;
}

/** The ports of the node (NodePorts) that the same table serves, whether all chains behind them were seen or not. `row`: the rule that leads to the service, else the map. */
export function nftNodePorts(nft: Nft): { readonly port: number; readonly protocol: string; readonly row: Row }[] {
  const maps = nft.sets.filter(({ family, table, name }) => family === "ip" && table === "kube-proxy" && name === "service-nodeports");
  const leading = new Map<string, Row>();
  for (const row of nft.rows) if (row.table === "kube-proxy" && row.target !== "mark-for-masquerade" && !leading.has(row.chain)) leading.set(row.chain, row);
  return maps.flatMap((map) =>
    (map.members ?? []).flatMap((member) => {
      const [, address, protocol = "", port, target = ""] = ELEMENT.exec(member) ?? [];
      if (port === undefined || address !== undefined) return [];
      return [{ port: Number(port), protocol, row: leading.get(target) ?? map }];
    }),
  );
}
