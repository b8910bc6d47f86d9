import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";

/**
 * What flannel told the other nodes about this one (flannel-annotation), where the device does not agree with it: they send to a hardware address that this
 * node does not take.
 *
 *     flannel.alpha.coreos.com/backend-data: '{"VNI":1,"VtepMAC":"6e:b9:d5:e1:19:85"}', and flannel.1 has 8e:8f:a1:b5:44:c1
 */
const Announcement = z.object({
  line: z.int(),
  interface: z.string(),
  /** As the annotation has it. */
  mac: z.string(),
  /** Of the device on this node. */
  deviceMac: z.string(),
  /**
   * "own": the annotation names an address of this node. "nobody": it names none, and its MAC is that of no entry of the device, as a peer's would be.
   * "unplaced": it names none, and no entries were read to tell.
   */
  whose: z.enum(["own", "nobody", "unplaced"]),
});
const Announcements = z.object({ rows: z.array(Announcement) });
type Announcements = z.infer<typeof Announcements>;

type Entry = Row & { readonly interface: string; readonly mac?: string };
interface Sources {
  readonly link?: { rows: readonly Entry[] };
  readonly "flannel-annotation"?: { rows: readonly (Row & { interface: string; mac: string; address?: string })[] };
  readonly neighbor?: { rows: readonly Entry[] };
  readonly fdb?: { rows: readonly Entry[] };
  readonly address?: { rows: readonly { address: string }[] };
}

export const flannelAnnouncement = defineDerivedFact<Announcements>({
  id: "flannel-announcement",
  title: "Hardware addresses that flannel told the other nodes and the device does not have",
  from: ["link", "flannel-annotation", "neighbor", "fdb", "address"],
  optional: ["flannel-annotation", "neighbor", "fdb", "address"],
  schema: Announcements,
  derive(values: Sources): Announcements {
    const { link, "flannel-annotation": annotation, neighbor, fdb, address } = values;
    const told = annotation?.rows ?? [];
    const own = new Set((address?.rows ?? []).map((row) => row.address));
    const rows: Announcements["rows"] = [];
    for (const row of told) {
      const deviceMac = link?.rows.find((other) => other.interface === row.interface)?.mac;
      if (deviceMac === undefined || deviceMac === row.mac) continue;
      const mine = row.address !== undefined && own.has(row.address);
      // whose a lone annotation is, its text does not tell: a peer's would stand in the tables of the device
      const peers = [...(neighbor?.rows ?? []), ...(fdb?.rows ?? [])].filter((other) => other.interface === row.interface && other.mac !== undefined);
      const alone = told.length === 1 && row.address === undefined && peers.every((other) => other.mac !== row.mac);
      const whose = mine ? "own" : peers.length > 0 ? "nobody" : "unplaced";
      if (mine || alone) rows.push({ ...placed(row), interface: row.interface, mac: row.mac, deviceMac, whose });
    }
    return { rows };
  },
});
