import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { TUNNEL_OF_FLANNEL } from "./former-cni.ts";
import { placed } from "./placed.ts";

/**
 * What flannel told the other nodes about this one (flannel-annotation, or the entry that one of them made of it), where the device does not agree with it: they
 * send to a hardware address that this node does not take.
 *
 *     flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"6e:b9:d5:e1:19:85"}', and flannel.1 has 8e:8f:a1:b5:44:c1
 *     10.244.1.0 dev flannel.1 lladdr 6e:b9:d5:e1:19:85 PERMANENT                       (of another node, in a text of both)
 *     device.go:160] calling AddARP: 10.244.1.0, 6e:b9:d5:e1:19:85                      (flannel on another node, as it makes that entry)
 */
const Announcement = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the annotation or the entry has it. */
  mac: z.string(),
  /** Of the device on this node. */
  deviceMac: z.string(),
  /**
   * "own": the annotation names an address of this node, or was asked of it by name; or it is an entry for the device's own address. "nobody": it names none, and its MAC is that of no entry of the device, as
   * a peer's would be. "unplaced": it names none, no entries were read to tell, and the command names no node.
   */
  whose: z.enum(["own", "nobody", "unplaced"]),
});
/** What flannel told about another node, where this node's tables do not agree with it: what is sent there is not taken. */
const Peer = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the annotation has it. */
  mac: z.string(),
  /** Of the other node. */
  address: z.string(),
  /** To which the forwarding database of this node sends for that node, or the neighbour entry of its range of pods. */
  tableMac: z.string(),
  /** Where the MAC agrees and the forwarding database has it at another address. */
  tableAddress: z.string().optional(),
});
const Announcements = z.object({ rows: z.array(Announcement), peers: z.array(Peer) });
type Announcements = z.infer<typeof Announcements>;

type Entry = Row & { readonly interface: string; readonly mac?: string };
interface Sources {
  readonly link?: { rows: readonly Entry[]; vxlans?: readonly { local?: string }[] };
  readonly "flannel-annotation"?: {
    rows: readonly (Row & { interface: string; mac: string; address?: string; column?: boolean; node?: string; own?: boolean })[];
  };
  readonly "cluster-node"?: { ranges: readonly { prefix: string; node?: string }[] };
  readonly neighbor?: { rows: readonly (Entry & { readonly address: string; readonly state?: string })[] };
  readonly fdb?: { rows: readonly (Entry & { readonly destination?: string })[]; listings: readonly { interface: string }[] };
  readonly address?: { rows: readonly (Row & { address: string; interface: string })[] };
  readonly networkd?: { interfaces: readonly Entry[] };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly "peer-entry"?: { rows: readonly (Row & { interface: string; address: string; mac: string })[] };
}

export const flannelAnnouncement = defineDerivedFact<Announcements>({
  id: "flannel-announcement",
  title: "Hardware addresses that flannel told the other nodes and the device does not have",
  // flannel's log alone is enough for the rule about systemd's policy: it tells both addresses
  from: ["link", "flannel-annotation", "neighbor", "fdb", "address", "agent-log", "networkd", "peer-entry", "cluster-node"],
  optional: ["flannel-annotation", "neighbor", "fdb", "address", "agent-log", "networkd", "peer-entry", "cluster-node"],
  // rows of these only ever add what does not agree
  inPart: ["peer-entry", "cluster-node"],
  schema: Announcements,
  // where nothing was announced, a part of the tables that it is held against will do; else all entries of the devices in question
  enough(values: Sources, whole) {
    const [told, listed] = [values["flannel-annotation"]?.rows, new Set((values.fdb?.listings ?? []).map((row) => row.interface))];
    if (told === undefined) return whole.has("link");
    const others = ["link", "flannel-annotation", "neighbor", "address"].every((id) => whole.has(id));
    return others && told.every((row) => listed.has("*") || listed.has(row.interface));
  },
  derive(values: Sources, whole): Announcements {
    const { link, "flannel-annotation": annotation, neighbor, fdb, address, networkd } = values;
    const devices = [...(link?.rows ?? []), ...(networkd?.interfaces ?? [])];
    const told = annotation?.rows ?? [];
    // a tunnel begins at an address of the node
    const own = new Set([...(address?.rows ?? []).map((row) => row.address), ...(link?.vxlans ?? []).flatMap(({ local }) => local ?? [])]);
    const rows: Announcements["rows"] = [];
    for (const row of told) {
      const deviceMac = devices.find((other) => other.interface === row.interface && other.mac !== undefined)?.mac;
      // where one of several agrees with the device it is this node's, whatever the others are
      if (deviceMac === undefined || told.some((other) => other.interface === row.interface && other.mac === deviceMac)) continue;
      const mine = row.own === true || (row.address !== undefined && own.has(row.address));
      // whose a lone annotation is, its text does not tell: a peer's would stand in the tables of the device
      const peers = [...(neighbor?.rows ?? []), ...(fdb?.rows ?? [])].filter((other) => other.interface === row.interface && other.mac !== undefined);
      const alone = told.length === 1 && row.address === undefined && peers.every((other) => other.mac !== row.mac);
      const whose = mine ? "own" : peers.length > 0 ? "nobody" : "unplaced";
      // that of a node with another name is a peer's, which this device has no reason to agree with
      if (mine || (alone && !(whose === "unplaced" && row.own === false)))
        rows.push({ ...placed(row), interface: row.interface, mac: row.mac, deviceMac, whose });
    }
    // what another node was asked for
    const asked = values["peer-entry"]?.rows ?? [];
    // an old entry of the forwarding database may stay beside the right one
    const right = new Set(asked.map((entry) => `${entry.interface} ${entry.address} ${entry.mac}`));
    for (const entry of asked) {
      const deviceMac = devices.find((other) => other.interface === entry.interface && other.mac !== undefined)?.mac;
      if (own.has(entry.address) && deviceMac !== undefined && !right.has(`${entry.interface} ${entry.address} ${deviceMac}`))
        rows.push({ ...placed(entry), interface: entry.interface, mac: entry.mac, deviceMac, whose: "own" });
    }
    // no node has an entry for an address of its own: it is another node's. Where all addresses were listed the text is of one node, and the entry is from before
    if (!whole.has("address")) {
      // a listing that has `lo` was one of all addresses, even if its end is missing
      const listed = new Set((address?.rows ?? []).flatMap((row) => (row.interface === "lo" ? [row.output] : [])));
      const single = (address?.rows ?? []).filter((row) => !listed.has(row.output));
      const entries = (neighbor?.rows ?? []).filter((row) => row.state === "PERMANENT");
      for (const entry of [...entries, ...loggedIn(values["agent-log"]?.rows ?? [], single)]) {
        const deviceMac = devices.find((other) => other.interface === entry.interface && other.mac !== undefined)?.mac;
        const mine = TUNNEL_OF_FLANNEL.test(entry.interface) && single.some((row) => row.interface === entry.interface && row.address === entry.address);
        if (!mine || entry.mac === undefined || deviceMac === undefined || entry.mac === deviceMac) continue;
        rows.push({ ...placed(entry), interface: entry.interface, mac: entry.mac, deviceMac, whose: "own" });
      }
    }
    const peers: Announcements["peers"] = [];
    for (const row of told) {
      if (row.address === undefined || row.own === true || own.has(row.address)) continue;
      const entries = (fdb?.rows ?? []).filter((other) => other.interface === row.interface && other.destination === row.address && other.mac !== undefined);
      if (entries.some((other) => other.mac === row.mac)) continue;
      // what the annotation's MAC is sent to; of flannel, whose annotation has the address that its tunnels use
      const moved = (fdb?.rows ?? []).find((other) => other.interface === row.interface && other.mac === row.mac && other.destination !== undefined);
      const comparable = TUNNEL_OF_FLANNEL.test(row.interface) && row.column !== true && moved?.destination?.includes(":") === row.address.includes(":");
      const entry = entries[0] ?? (comparable ? moved : undefined) ?? entryOfRange(row, values);
      if (entry?.mac === undefined) continue;
      const elsewhere = moved !== undefined && entry === moved ? { tableAddress: moved.destination } : {};
      peers.push({ ...placed(row), interface: row.interface, mac: row.mac, address: row.address, tableMac: entry.mac, ...elsewhere });
    }
    return { rows, peers };
  },
});

const ADDED = /^(?:calling Add(?:V6)?ARP: ([\d.a-f:]{2,45}), |adding subnet: ([\d.a-f:]{2,45})\/\d{1,3} .{0,200}VtepMAC: )([0-9a-f]{2}(?::[0-9a-f]{2}){5})$/;

/** Entries that flannel's log says it made, the newest for each address. It makes none for the node's own. */
function loggedIn(log: Placed<AgentLog>["rows"], addresses: readonly { address: string; interface: string }[]): (Entry & { address: string; mac: string })[] {
  const devices = new Map(addresses.flatMap((row) => (TUNNEL_OF_FLANNEL.test(row.interface) ? [[row.address, row.interface]] : [])));
  const newest = new Map<string, Entry & { address: string; mac: string }>();
  for (const entry of log) {
    const [, gateway, subnet, mac] = ADDED.exec(entry.message) ?? [];
    const address = gateway ?? subnet;
    const name = address === undefined ? undefined : devices.get(address);
    if (address !== undefined && mac !== undefined && name !== undefined) newest.set(address, { ...placed(entry), interface: name, address, mac });
  }
  return [...newest.values()];
}

/** Where flannel's forwarding database was not read: the entry of the first address of the range that the cluster gave that node, which is the gateway to its pods. */
function entryOfRange(
  row: { readonly interface: string; readonly mac: string; readonly node?: string },
  { neighbor, "cluster-node": nodes }: Sources,
): Entry | undefined {
  const first = nodes?.ranges.find((range) => row.node !== undefined && range.node === row.node)?.prefix.split("/")[0];
  const entries = (neighbor?.rows ?? []).filter((other) => other.interface === row.interface && TUNNEL_OF_FLANNEL.test(other.interface));
  // elsewhere it has the right one: the range is another node's by now
  if (first === undefined || entries.some((other) => other.mac === row.mac)) return undefined;
  return entries.find((other) => other.address === first && other.state === "PERMANENT");
}
