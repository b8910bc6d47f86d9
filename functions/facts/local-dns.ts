import { z } from "zod";
import type { Address } from "./address.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { placed } from "./placed.ts";

/**
 * A DNS cache on a link-local address of the node (NodeLocal DNSCache, AKS localdns), and what is missing of it. A row stands where the NOTRACK rule of the
 * cache stands, or the setting (or argument) of the kubelet that names its address.
 *
 *     -A PREROUTING -d 169.254.20.10/32 -p udp -m udp --dport 53 -j NOTRACK
 */
const LocalDns = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      address: z.string(),
      /** rule: packets to it are kept from connection tracking. kubelet: pods are told to ask it. */
      by: z.enum(["rule", "kubelet"]),
      /** "yes" or "no": some interface has the address. "unknown": not all addresses were seen, it is not among them, and nobody asked for the cache's device in vain. */
      present: z.enum(["yes", "no", "unknown"]),
      /** "yes" or "no": a program listens on UDP port 53 of it. "unknown": not all listeners were seen, and it is not among them. */
      listening: z.enum(["yes", "no", "unknown"]),
    }),
  ),
  /** NOTRACK rules for port 53 of other addresses, written the same way: the DNS service's address, that no interface has but the cache's. kube-proxy cannot translate such packets. */
  services: z.array(z.object({ line: z.int(), address: z.string() })),
});
type LocalDns = z.infer<typeof LocalDns>;
type Known = LocalDns["rows"][number]["present"];

interface Sources {
  readonly iptables?: Iptables;
  readonly address?: { rows: readonly (Address & Row)[] };
  readonly socket?: {
    rows: readonly (Row & { protocol: string; address: string; port?: number })[];
    shown: readonly { protocol: string; listening: boolean; port?: number }[];
  };
  readonly "resolv-conf"?: { clusterDns: readonly (Row & { address: string })[] };
  readonly process?: { rows: readonly (Row & { command: string; arguments?: string })[] };
  readonly "absent-device"?: { rows: readonly { interface: string }[] };
}

/** The device that a cache makes for its address. */
const DEVICE = /^(?:nodelocaldns|localdns)$/;
/** Its remark beside each of its rules. */
const REMARK = /^NodeLocal DNS Cache/;
const ANY = new Set(["0.0.0.0", "*", "::"]);
/** Programs that are, or hold, a kubelet: of a node without one nobody tells pods anything. */
const KUBELET = /^(?:kubelet|hyperkube|k3s|rke2|kubelite|k0s)/;
const ARGUMENT = /(?:^|\s)--cluster-dns[= ]["']?([0-9a-fA-F.:,]{3,400})(?=["']?(?:\s|$))/;

export const localDns = defineDerivedFact<LocalDns>({
  id: "local-dns",
  title: "DNS cache on a link-local address of the node: its rules, its address, its listener",
  from: ["iptables", "address", "socket", "resolv-conf", "process", "absent-device"],
  optional: ["process", "absent-device"],
  schema: LocalDns,
  derive: (values, whole) => derive(values as Sources, whole),
  enough: (values, whole) => enough(values as Sources, whole),
});

/**
 * True if all rows are there. Who has the addresses and who listens is asked only of them, and each row says what is not known of it. The kubelet's settings
 * add nothing where no kubelet runs, or where it was started with the addresses, which count more than its settings.
 */
function enough({ process }: Sources, whole: ReadonlySet<string>): boolean {
  if (!whole.has("iptables")) return false;
  if (whole.has("resolv-conf")) return true;
  const alone = process !== undefined && whole.has("process") && !process.rows.some(({ command }) => KUBELET.test(command));
  return alone || toldBy(process).length > 0;
}

/** The addresses that kubelets were started with, and where their processes are listed. */
function toldBy(process: Sources["process"]): { row: Row; address: string }[] {
  return (process?.rows ?? []).flatMap((row) => {
    const list = row.command === "kubelet" ? ARGUMENT.exec(row.arguments ?? "")?.[1] : undefined;
    return list === undefined ? [] : list.split(",", 16).map((address) => ({ row, address }));
  });
}

function derive(sources: Sources, whole: ReadonlySet<string>): LocalDns {
  const written = sources.iptables?.rows ?? [];
  // the cache writes them straight into the built-in chains; Cilium and Calico have chains of their own for theirs
  const rules = [...rulesOf(written, "PREROUTING"), ...rulesOf(written, "OUTPUT")].filter(isNotrack).sort((a, b) => a.line - b.line);
  const held = new Map((sources.address?.rows ?? []).map((row) => [row.address, row]));
  const listeners = (sources.socket?.rows ?? []).filter((row) => row.protocol === "udp" && row.port === 53);
  const listed = (sources.socket?.shown ?? []).some((row) => row.protocol === "udp" && row.listening && (row.port ?? 53) === 53);
  const noDevice = (sources["absent-device"]?.rows ?? []).some((row) => DEVICE.test(row.interface));
  const known = (seen: boolean, all: boolean): Known => (seen ? "yes" : all ? "no" : "unknown");
  const describe = (row: Row, address: string, by: "rule" | "kubelet"): LocalDns["rows"][number] => {
    const own = held.get(address);
    const listening = listeners.some((socket) => socket.address === address || ANY.has(socket.address));
    return {
      ...placed(row),
      address,
      by,
      // who listens on an address has it
      present: known(own !== undefined || listeners.some((socket) => socket.address === address), whole.has("address") || noDevice),
      listening: known(listening, listed),
    };
  };
  const sure = rules.filter(isOfCache);
  // a search for the service's address leaves only the rules for that: where the cache's device has it, and no other one, they are the cache's
  const ofDevice = (address: string): boolean => {
    const holders = (sources.address?.rows ?? []).filter((row) => row.address === address);
    return holders.length > 0 && holders.every((row) => DEVICE.test(row.interface));
  };
  const own = sure.length > 0 ? sure : rules.filter((row) => REMARK.test(row.comment ?? "") && ofDevice(addressOf(row)));
  const rows = own.map((row) => describe(row, addressOf(row), "rule"));
  const started = toldBy(sources.process);
  const told = started.length > 0 ? started : (sources["resolv-conf"]?.clusterDns ?? []).map((row) => ({ row, address: row.address }));
  for (const { row, address } of told) if (isLinkLocal(address)) rows.push(describe(row, address, "kubelet"));
  // the cache's interface holds the service's address, too
  const caches = new Set(rows.map(({ address }) => held.get(address)?.interface));
  const foreign = (address: string): boolean => held.has(address) && !caches.has(held.get(address)?.interface);
  const services = rules.filter((row) => !own.includes(row) && !foreign(addressOf(row)) && whole.has("address"));
  return { rows, services: services.map((row) => ({ ...placed(row), address: addressOf(row) })) };
}

function isNotrack(row: IptablesRow & Row): boolean {
  const untracked = row.target === "NOTRACK" || (row.target === "CT" && /notrack/i.test(row.spec));
  return untracked && row.destinationPort === "53" && row.destination !== undefined && !row.destinationNegated;
}

const addressOf = (row: IptablesRow): string => (row.destination ?? "").replace(/\/(?:32|128)$/, "");
const isLinkLocal = (address: string): boolean => address.startsWith("169.254.");
/** Of IPv6 there is no usual address: the cache's own remark tells its rules. All addresses that it writes rules for are its device's. */
const isOfCache = (row: IptablesRow): boolean => isLinkLocal(addressOf(row)) || (row.family === "ipv6" && REMARK.test(row.comment ?? ""));
