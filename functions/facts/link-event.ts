import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { byWord } from "./by-word.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { KernelLog } from "./kernel-log.ts";
import { epochOf } from "./log-time.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Interfaces of which the kernel said that the line went down or came up, as drivers word it; where its log is silent, what systemd-networkd or
 * NetworkManager said.
 *
 *     e1000e 0000:00:1f.6 eno1: NIC Link is Down
 *     bond0: (slave ens1f0): link status definitely down, disabling slave
 *     eno1: Lost carrier
 *     /sys/class/net/eno1/carrier_down_count:4567                      (twice: what it grew by)
 */
const Event = z.object({
  line: z.int(),
  interface: z.string(),
  event: z.enum(["down", "up"]),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const Flap = z.object({
  /** Line of the newest "down"; of the newest "up" where the log has no "down" of the interface. */
  line: z.int(),
  interface: z.string(),
  /** Changes to "down" within an hour before the collection. In a log that has only "up" of the interface each after the first tells of one. */
  downs: z.int(),
  /** In how many of the 24 hours before the collection there was such a change. */
  hours: z.int(),
  /** Changes to "down" in the whole log whose age is not known. */
  undatedDowns: z.int(),
  /** How often the line was lost between two samples, by the count of the kernel, of bonding or of the card's driver. */
  counted: z.int().optional(),
});
const LinkEvents = z.object({ rows: z.array(Event), interfaces: z.array(Flap) });
type Event = z.infer<typeof Event>;
type Flap = z.infer<typeof Flap>;

/** mlx5 and others, in `ethtool -S`. */
const COUNTER = /^link_down_events(?:_phy)?$/;

interface Sources {
  readonly "carrier-count"?: { rows: readonly (Row & { interface: string; downsDelta?: number })[] };
  readonly "ethtool-statistics"?: { rows: readonly (Row & { interface: string; name: string; valueDelta?: number })[] };
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly "agent-log"?: Placed<AgentLog>;
}

const NAME = "([A-Za-z][A-Za-z0-9_.@-]{0,14})";
const PATTERNS: readonly RegExp[] = [
  // igb, ixgbe, e1000e, ena, virtio_net, r8169, tg3, mlx4: "eth0: NIC Link is Down", "eth0: Link is Down", "r8169 0000:02:00.0 eth0: Link is Down"; bnx2: "eth0: NIC Copper Link is Down"
  new RegExp(`(?:^|\\s)${NAME}:? (?:NIC (?:(?:Copper|SerDes) )?)?Link is (Down|Up)\\b`, "i"),
  // mlx5_core 0000:3b:00.0 ens1f0np0: Link down
  new RegExp(`(?:^|\\s)${NAME}: Link (down|up)\\b`, "i"),
  // bonding, old and new wording
  new RegExp(`link status (?:definitely )?(down|up) for (?:interface )?${NAME}`, "i"),
  new RegExp(`\\(slave ${NAME}\\): link status (?:definitely )?(down|up)\\b`, "i"),
  // vmxnet3, hv_netvsc: "ens192: NIC Link is Up 10000 Mbps" is above; "hv_netvsc …: eth0: Link down" too
  new RegExp(`(?:^|\\s)${NAME}: (?:carrier|link) (lost|down|up|acquired)\\b`, "i"),
  // r8152 and other USB cards: "r8152 2-2:1.0 enx00e04c680a11: carrier off"
  new RegExp(`(?:^|\\s)${NAME}: carrier (off|on)\\b`),
  // "atlantic 0000:02:00.0 enp2s0: atlantic: link change old 10000 new 0", "ax88179_178a 2-1:1.0 eth1: ax88179 - Link status is: 0"
  new RegExp(`(?:^|\\s)${NAME}: (?:atlantic: link change old \\d{1,6} new|ax88179 - Link status is:) (\\d{1,6})$`),
  // "[qede_link_update:2311(ens1f0)]Link is down"
  new RegExp(`^\\[qede_link_update:\\d{1,6}\\(${NAME}\\)\\]Link is (down|up)\\b`),
];
const DOWN = new Set(["down", "lost", "off", "0"]);
// ovs|00012|bond|INFO|interface eth2: link state down
const OVS = new RegExp(`interface ${NAME}: link state (down|up)\\b`);

const NETWORKD = new RegExp(`^${NAME}: (Lost|Gained) carrier$`);
/** The interface was switched off or on, or the card was taken out of the machine or put in: a line that is lost changes the carrier alone. */
const SWITCHED = new RegExp(`^${NAME}: Link (UP|DOWN)$`);

/** A change that lasts some seconds, as NetworkManager tells it. */
const NETWORK_MANAGER = new RegExp(
  `device \\(${NAME}\\): (?:carrier: link (connected|disconnected)|state change: [a-z-]{1,20} -> unavailable \\(reason 'carrier-changed')`,
);

const PATTERN_OF = byWord<RegExp>({ "systemd-networkd": NETWORKD, NetworkManager: NETWORK_MANAGER, "ovs-vswitchd": OVS });
const UP = new Set(["Gained", "connected", "up"]);

/** The window within which changes count, in seconds. */
const WINDOW = 3600;
const HOURS = 24;
/** A driver may say twice that the line came up: once more when it has agreed on the speed. A line that was really lost is back after more seconds than these. */
const ONE_START = 30;
/** While a machine starts, its driver and the other side agree on the line, which may be lost some times within these seconds; `uptime` tells only the minute. */
const START = 60;
const MAX_ROWS = 1000;

export const linkEvent = defineDerivedFact({
  id: "link-event",
  title: "Interfaces whose line went down or came up, from logs and counters",
  from: ["kernel-log", "agent-log", "carrier-count", "ethtool-statistics"],
  optional: ["agent-log", "carrier-count", "ethtool-statistics"],
  // whichever counter somebody looked at twice tells of itself alone
  inPart: ["carrier-count", "ethtool-statistics"],
  schema: LinkEvents,
  derive(values: Sources) {
    const rows: (Event & Row)[] = [];
    // seconds by the kernel's clock, to compare two lines of one log
    const times = new Map<Event, number | undefined>();
    const start = values["kernel-log"]?.rows.findLast(({ message }) => message.startsWith("Linux version "));
    // where nobody knows when the log was read, its first line tells how long ago the start was to the others
    const began = start?.time === undefined || start.age !== undefined ? undefined : epochOf(start.time, 0);
    const uptime = start?.age ?? values["kernel-log"]?.clocks?.[0]?.uptime;
    const starting = new Set<Event>();
    for (const entry of values["kernel-log"]?.rows ?? []) {
      const { message, age, seconds, time } = entry;
      const found = message.length > 400 || !/link|carrier/i.test(message) ? undefined : eventOf(message);
      if (found === undefined || rows.length >= MAX_ROWS) continue;
      const row = { ...placed(entry), ...found, ...present({ age }) };
      rows.push(row);
      times.set(row, seconds ?? (time === undefined ? undefined : epochOf(time, 0)));
      const since = seconds ?? (uptime !== undefined && age !== undefined ? Math.abs(uptime - age) : (times.get(row) ?? Number.NaN) - (began ?? Number.NaN));
      if (since >= 0 && since < START) starting.add(row);
    }
    // both tell of the same change
    const told = new Set(rows.map((row) => row.interface));
    const off = new Set<string>();
    for (const entry of values["agent-log"]?.rows ?? []) {
      const switched = entry.unit === "systemd-networkd" && entry.message.length < 200 ? SWITCHED.exec(entry.message) : null;
      if (switched?.[2] === "DOWN") off.add(switched[1] as string);
      else if (switched !== null) off.delete(switched[1] as string);
      const pattern = PATTERN_OF[entry.unit];
      const match = entry.message.length < 200 ? pattern?.exec(entry.message) : undefined;
      if (match === null || match === undefined || told.has(match[1] as string) || rows.length >= MAX_ROWS) continue;
      const event = UP.has(match[2] ?? "") ? "up" : "down";
      if (event === "down" && off.has(match[1] as string)) continue;
      rows.push({ ...placed(entry), interface: match[1] as string, event, ...present({ age: entry.age }) });
    }
    const interfaces = new Map<string, Flap & Row>();
    // a restarted NetworkManager says again that the line is there; a driver says so when it comes up
    const fallen = new Set(rows.flatMap((row) => (row.event === "down" || !told.has(row.interface) ? [row.interface] : [])));
    const latest = new Map<string, Event>();
    const hours = new Map<string, Set<number>>();
    for (const row of rows) {
      const before = latest.get(row.interface);
      latest.set(row.interface, row);
      // a bond and its driver both tell of the same change
      const lost = fallen.has(row.interface)
        ? row.event === "down" && before?.event !== "down"
        : before !== undefined && (times.get(row) ?? 0) - (times.get(before) ?? Number.POSITIVE_INFINITY) > ONE_START;
      if (!lost || starting.has(row)) continue;
      const known = interfaces.get(row.interface);
      const recent = row.age !== undefined && row.age < WINDOW ? 1 : 0;
      const undated = row.age === undefined ? 1 : 0;
      interfaces.set(row.interface, {
        ...placed(row),
        interface: row.interface,
        downs: (known?.downs ?? 0) + recent,
        hours: hoursOf(row, hours),
        undatedDowns: (known?.undatedDowns ?? 0) + undated,
      });
    }
    for (const [row, counted] of countedBy(values)) {
      if (counted === 0) continue;
      const { interface: name } = row;
      interfaces.set(name, { ...placed(row), interface: name, downs: 0, hours: 0, undatedDowns: 0, ...interfaces.get(name), counted });
    }
    return { rows, interfaces: [...interfaces.values()] };
  },
});

/** Notes the hour of this change, and counts those of its interface. */
function hoursOf({ interface: name, age }: Event, noted: Map<string, Set<number>>): number {
  const hours = noted.get(name) ?? new Set();
  noted.set(name, hours);
  const hour = age === undefined ? HOURS : Math.floor(age / WINDOW);
  if (hour < HOURS) hours.add(hour);
  return hours.size;
}

/** Counters that were read twice, with their growth. */
function countedBy(values: Sources): (readonly [Row & { interface: string }, number])[] {
  return [
    ...(values["ethtool-statistics"]?.rows ?? []).flatMap((row) => (COUNTER.test(row.name) ? [[row, row.valueDelta ?? 0] as const] : [])),
    ...(values["carrier-count"]?.rows ?? []).map((row) => [row, row.downsDelta ?? 0] as const),
  ];
}

function eventOf(message: string): Pick<Event, "interface" | "event"> | undefined {
  for (const [i, pattern] of PATTERNS.entries()) {
    const match = pattern.exec(message);
    if (match === null) continue;
    const [name, word] = i === 2 ? [match[2], match[1]] : [match[1], match[2]];
    const lower = (word as string).toLowerCase();
    return { interface: name as string, event: DOWN.has(lower) ? "down" : "up" };
  }
  return undefined;
}
