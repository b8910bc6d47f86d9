import { z } from "zod";
import type { BpfCgroup } from "./bpf-cgroup.ts";
import type { BpfLink } from "./bpf-link.ts";
import type { BpfMap } from "./bpf-map.ts";
import type { BpfMapDump, BpfMapElement } from "./bpf-map-dump.ts";
import type { BpfProgram } from "./bpf-program.ts";
import { attachNameOf } from "./bpftool.ts";
import { baseName } from "./command.ts";
import { defineDerivedFact, type Row } from "./fact.ts";
import { fromHexIpv6 } from "./ipv6.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Cilium's socket load balancing: programs attached to cgroups that replace a service's address by a backend's when a process calls connect() or
 * sendmsg(), and the maps they look it up in. Decoded here because bytes, structs and "runs before" are not for CEL:
 *
 *     key: ac 11 5d 04 1f 90 01 00 06 00 00 00   172.17.93.4 port 8080, slot 1, protocol 6 (tcp), scope 0
 *     value: d2 01 00 00 00 00 01 98 00 00 00 00   backend 466
 */
const Service = z.object({
  line: z.int(),
  /** The map it was read from; left out if the dump named a path and the path's map is not known. */
  mapId: z.int().optional(),
  pinned: z.string().optional(),
  address: z.string(),
  port: z.int(),
  /** "tcp", "udp", "sctp", "any" or a number. */
  protocol: z.string(),
  /** 1: looked up from inside the cluster where that differs (internalTrafficPolicy), else 0. */
  scope: z.int(),
  /** How many backends the frontend counts. */
  slots: z.int(),
  /** `172.16.149.220:8080`; `unknown backend 466` if its map was not dumped, `missing backend 466` if it is not in its map. */
  backends: z.array(z.string()),
  /** A LocalRedirect policy sends its packets to pods on the node instead. */
  redirected: z.boolean().optional(),
});
const Program = z.object({
  line: z.int(),
  cgroup: z.string(),
  attachType: z.string(),
  programId: z.int(),
  position: z.int(),
  /** Runs first on that attach point: what it does not translate the next one sees. */
  first: z.boolean(),
  mapIds: z.array(z.int()),
  servicesMapId: z.int().optional(),
  backendsMapId: z.int().optional(),
  /** True if its services map is the one pinned where the Cilium agent writes (tc/globals). */
  servicesMapPinned: z.boolean(),
  /** Attached by this bpf_link; left out of attachments that `bpftool cgroup detach` undoes. */
  linkId: z.int().optional(),
  name: z.string().optional(),
});
/** How it is known which of two is stale: only the other one's map is pinned where the agent writes, or the stale one is older. */
const Basis = z.enum(["pin", "age"]);
const pair = {
  line: z.int(),
  /** Of the stale program. */
  cgroup: z.string(),
  attachType: z.string(),
  staleProgramId: z.int(),
  staleMapId: z.int(),
  staleLinkId: z.int().optional(),
  /** What `bpftool cgroup detach` of any version wants: "connect4". */
  staleAttachName: z.string(),
  currentProgramId: z.int(),
  currentMapId: z.int(),
  currentCgroup: z.string(),
  /** Line of the current program among the attached ones; `line` is the stale one's. */
  currentProgramLine: z.int(),
  basis: Basis,
};
const Duplicate = z.object({
  ...pair,
  /** Left out where the maps were not listed: the programs have the names of Cilium's, and no map in common. */
  staleMapId: z.int().optional(),
  currentMapId: z.int().optional(),
  /** Only a stale program that runs first does harm. */
  staleRunsFirst: z.boolean(),
});
const Conflict = z.object({
  ...pair,
  staleBackendsMapId: z.int().optional(),
  currentBackendsMapId: z.int().optional(),
  /** `172.17.93.4:8080/tcp`. */
  service: z.string(),
  staleBackends: z.array(z.string()),
  currentBackends: z.array(z.string()),
  /** Lines of the service in the dumps of the two maps, and which outputs these are. */
  staleLine: z.int(),
  staleOutput: z.int().optional(),
  currentLine: z.int(),
  currentOutput: z.int().optional(),
});
const MapPair = z.object({
  line: z.int(),
  olderMapId: z.int(),
  newerMapId: z.int(),
  olderProgramIds: z.array(z.int()),
  newerProgramIds: z.array(z.int()),
  basis: Basis,
  /** Services whose backends differ, as far as both maps were dumped. */
  differing: z.array(z.string()),
});
const Orphan = z.object({
  /** Of the attached program. */
  line: z.int(),
  cgroup: z.string(),
  attachType: z.string(),
  attachName: z.string(),
  programId: z.int(),
  linkId: z.int().optional(),
  name: z.string(),
  /** no-agent: no Cilium is on the node any more. disabled: the agent says that it does no socket load balancing. */
  reason: z.enum(["no-agent", "disabled"]),
});
const SocketLb = z.object({
  services: z.array(Service),
  programs: z.array(Program),
  /** One row per service whose backends differ between the maps of two programs on one attach point, the stale one running first. */
  conflicts: z.array(Conflict),
  /** Two programs on one attach point that use different services maps, whether or not the maps were dumped. */
  duplicates: z.array(Duplicate),
  /** Two services maps in use while the attachments were not collected, or it is not known which of the two is stale. */
  mapPairs: z.array(MapPair),
  /** Cilium's programs that are attached to the root cgroup, and that no agent keeps. */
  orphans: z.array(Orphan),
  /** What proves that: the agent's word, the interface or the process that stands in Cilium's place. */
  keepers: z.array(z.object({ line: z.int() })),
});
type Service = z.infer<typeof Service> & Row;
type Orphan = z.infer<typeof Orphan> & Row;
type SocketLb = z.infer<typeof SocketLb>;

/** More rows than this are not made: one of each is proof enough. */
const MAX_ROWS = 1000;

interface Sources {
  readonly "bpf-map"?: { rows: readonly (BpfMap & Row)[]; pinLookups: readonly unknown[] };
  readonly "bpf-program"?: { rows: readonly (BpfProgram & Row)[] };
  readonly "bpf-map-dump"?: BpfMapDump;
  readonly "bpf-cgroup"?: { rows: readonly (BpfCgroup & Row)[] };
  readonly "bpf-link"?: { rows: readonly (BpfLink & Row)[] };
  readonly link?: { rows: readonly (Row & { interface: string })[] };
  readonly process?: { rows: readonly (Row & { command: string })[]; containers: readonly (Row & { name: string })[]; listings: readonly Row[] };
  readonly "cilium-status"?: { components: readonly (Row & { name: string; value: string; state?: string })[] };
  readonly cni?: { absent: readonly (Row & { cni: string; removed: boolean })[] };
}

export const socketLb = defineDerivedFact<SocketLb>({
  id: "socket-lb",
  title: "Cilium's socket load balancing: services, programs, and programs that contradict each other",
  from: ["bpf-map", "bpf-program", "bpf-map-dump", "bpf-cgroup", "bpf-link", "link", "process", "cilium-status", "cni"],
  optional: ["link", "process", "cilium-status", "cni"],
  inPart: ["link", "process", "cilium-status", "cni"],
  schema: SocketLb,
  enough: (values, whole) => oneOfEach(values as Sources, whole),
  derive: (values, whole) => derive(values as Sources, whole),
});

/**
 * True if every cgroup was listed, no attach point has two of Cilium's programs, one below the other neither, and the agent was asked whether it attached them. One
 * that is no kube-proxy may still translate at sockets, or not.
 */
function oneOfEach(sources: Sources, whole: ReadonlySet<string>): boolean {
  const attached = (sources["bpf-cgroup"]?.rows ?? []).filter(({ name, effective }) => name === undefined || (!effective && /^(?:cil_)?sock/.test(name)));
  const types = new Set(attached.map(({ attachType }) => attachType));
  const asked =
    sources["cilium-status"]?.components.some(({ name, value }) => name === "KubeProxyReplacement" && !/^(?:false|disabled)\b/i.test(value)) === true;
  return whole.has("bpf-cgroup") && asked && types.size > 0 && types.size === attached.length && attached.every(({ name }) => name !== undefined);
}

interface Kind {
  readonly role: "services" | "backends";
  readonly family: 4 | 6;
}

/** What a map of this name holds. Names are cut at 15 characters; pins are not. */
function kindOf(name: string | undefined): Kind | undefined {
  const match = /^cilium_lb([46])_(serv|back)/.exec(name ?? "");
  if (match === null) return undefined;
  return { role: match[2] === "serv" ? "services" : "backends", family: match[1] === "6" ? 6 : 4 };
}

const isAgentPin = (path: string): boolean => /\/tc\/globals\/cilium_lb[46]_/.test(path);

/** One dumped map of services or backends. */
interface Dump {
  readonly kind: Kind;
  mapId: number | undefined;
  readonly pinned: string | undefined;
  readonly rows: readonly BpfMapElement[];
}

function derive(sources: Sources, whole: ReadonlySet<string>): SocketLb {
  const maps = new Map((sources["bpf-map"]?.rows ?? []).map((map) => [map.id, map]));
  const programs = new Map((sources["bpf-program"]?.rows ?? []).map((program) => [program.id, program]));
  const dumps = dumpsOf(sources["bpf-map-dump"], maps);
  const agentMaps = agentMapsOf(maps, dumps);
  const uses = usesOf(programs, maps, dumps);
  const services = servicesOf(dumps, uses, agentMaps);
  const byMap = new Map<number, Map<string, Service>>();
  for (const service of services) {
    if (service.mapId === undefined) continue;
    const list = byMap.get(service.mapId) ?? new Map<string, Service>();
    byMap.set(service.mapId, list.set(labelOf(service), service));
  }
  const links = sources["bpf-link"]?.rows ?? [];
  const attached = attachedOf(sources["bpf-cgroup"]?.rows ?? linkedRows(links, programs), links, programs, uses);
  const found = pairsOf(attached, uses, agentMaps, byMap);
  found.duplicates.push(...namedPairs(attached, uses, programs));
  // where the attachments were read and these programs are not among them, they run elsewhere (another mount namespace) or not at all: no pair
  const undecided =
    sources["bpf-cgroup"] === undefined && attached.length === 0
      ? unattachedPairs(maps, programs, uses, sources["bpf-program"] !== undefined)
      : found.undecided;
  return {
    services,
    programs: attached.map(({ row, programId, linkId }) => {
      const used = uses.get(programId);
      const servicesMapId = used?.services.get(familyOf(row.attachType)) ?? used?.services.get(4) ?? used?.services.get(6);
      const backendsMapId = used?.backends.get(familyOf(row.attachType))?.[0] ?? used?.backends.get(4)?.[0] ?? used?.backends.get(6)?.[0];
      return {
        ...placed(row),
        cgroup: row.cgroup,
        attachType: row.attachType,
        programId,
        position: row.position,
        first: row.position === 1,
        mapIds: programs.get(programId)?.mapIds ?? [],
        ...present({ servicesMapId, backendsMapId }),
        servicesMapPinned: servicesMapId !== undefined && agentMaps.has(servicesMapId),
        ...present({ linkId, name: row.name }),
      };
    }),
    conflicts: found.conflicts,
    duplicates: found.duplicates,
    mapPairs: undecided.map((pair) => mapPairOf(pair, maps, uses, agentMaps, byMap)),
    ...orphansOf(attached, programs, sources, whole),
  };
}

/** Attachments as the links tell of them, where `bpftool cgroup` was not asked: the cgroup has a number instead of a path, and a link of a lower id was made, and runs, first. */
function linkedRows(links: readonly (BpfLink & Row)[], programs: ReadonlyMap<number, BpfProgram>): (BpfCgroup & Row)[] {
  const positions = new Map<string, number>();
  return links
    .filter((link) => link.cgroupId !== undefined && link.attachType !== undefined && link.programId !== undefined)
    .toSorted((a, b) => a.id - b.id)
    .map((link) => {
      const [cgroup, attachType, programId] = [`cgroup_id ${link.cgroupId}`, link.attachType as string, link.programId as number];
      const point = `${cgroup} ${attachType}`;
      const position = (positions.get(point) ?? 0) + 1;
      positions.set(point, position);
      const name = programs.get(programId)?.name;
      return { ...placed(link), cgroup, attachType, programId, position, effective: false, ...present({ name }) };
    });
}

/** Cilium's names, cut at 15 characters in old listings. Others have programs on the same attach points, by other names. */
const CILIUM_PROGRAM = /^(?:cil_)?sock[46]_(?:connect|conne|sendmsg|sendm)/;
const ROOT_CGROUPS = /^(?:\/host)?(?:\/sys\/fs\/cgroup(?:\/unified|\/cgroup2)?|(?:\/var)?\/run\/cilium\/cgroupv2)$/;
const CILIUM_INTERFACE = /^(?:cilium_|lxc)/;
/** The agent, by its own name and as Google's distribution has it. */
const CILIUM_AGENT = /cilium|^anetd?$/;

/**
 * Programs that still translate services although nobody keeps their maps. Only the root cgroup of the node: what stands deeper may belong to a node
 * that is a container (kind), with an agent of its own.
 */
function orphansOf(
  attached: readonly Attached[],
  programs: ReadonlyMap<number, BpfProgram>,
  sources: Sources,
  whole: ReadonlySet<string>,
): Pick<SocketLb, "orphans" | "keepers"> {
  const { link, process } = sources;
  const said = (sources["cilium-status"]?.components ?? []).filter((row) => row.name === "Socket LB");
  // settings that were changed since the agent started are not its own
  const replaces = sources["cilium-status"]?.components.some((row) => row.name === "KubeProxyReplacement" && /^(?:true|strict)\b/i.test(row.value));
  const disabled = replaces === true ? undefined : said.find((row) => row.state === "disabled");
  const runs = (process?.rows ?? []).some((row) => CILIUM_AGENT.test(row.command)) || (process?.containers ?? []).some((row) => CILIUM_AGENT.test(row.name));
  // an agent makes cilium_host and cilium_net before anything else
  const bare = whole.has("link") && link?.rows.some((row) => CILIUM_INTERFACE.test(row.interface)) === false;
  // the cluster's list of pods has another CNI's agent on this node, and none of Cilium's
  const removed = sources.cni?.absent.find((row) => row.cni === "cilium" && row.removed);
  const gone = (bare || removed !== undefined) && !runs && said.length === 0;
  // what stands in its place proves it; a load balancer of Cilium's without pods may have none of its interfaces
  const keeper =
    disabled ?? removed ?? process?.listings[0] ?? link?.rows.find((row) => /^(?:flannel|cni0|cali|vxlan\.calico|weave|kube-bridge)/.test(row.interface));
  if (keeper === undefined || (disabled === undefined && !gone)) return { orphans: [], keepers: [] };
  const orphans: Orphan[] = attached.flatMap(({ row, programId, linkId }) => {
    const name = row.name ?? programs.get(programId)?.name ?? "";
    if (!ROOT_CGROUPS.test(row.cgroup) || !CILIUM_PROGRAM.test(name)) return [];
    const { cgroup, attachType } = row;
    const reason = disabled === undefined ? ("no-agent" as const) : ("disabled" as const);
    return [{ ...placed(row), cgroup, attachType, attachName: attachNameOf(attachType), programId, name, reason, ...present({ linkId }) }];
  });
  return { orphans: orphans.slice(0, MAX_ROWS), keepers: orphans.length === 0 ? [] : [placed(keeper)] };
}

/** The dumps of service and backend maps, each map once. A dump by path gets the id of its map where the pins or equal contents tell it. */
function dumpsOf(dump: BpfMapDump | undefined, maps: ReadonlyMap<number, BpfMap>): Dump[] {
  const byName = new Map<string, BpfMapElement[]>();
  for (const row of dump?.rows ?? []) {
    const list = byName.get(row.map);
    if (list === undefined) byName.set(row.map, [row]);
    else list.push(row);
  }
  const byPin = new Map<string, number>();
  for (const map of maps.values()) for (const path of map.pinned) byPin.set(path, map.id);
  const byId = new Map<number, Dump>();
  const byPath: Dump[] = [];
  for (const { map, mapId, pinned } of dump?.maps ?? []) {
    const id = mapId ?? (pinned === undefined ? undefined : byPin.get(pinned));
    const kind =
      kindOf(pinned === undefined ? undefined : baseName(pinned)) ??
      kindOf(id === undefined ? undefined : maps.get(id)?.name) ??
      kindOf(map.replace(/^name /, ""));
    if (kind === undefined) continue;
    const found: Dump = { kind, mapId: id, pinned, rows: byName.get(map) ?? [] };
    if (mapId !== undefined) byId.set(mapId, { ...found, pinned: byId.get(mapId)?.pinned });
    else byPath.push(found);
  }
  const dumps = [...byId.values()];
  for (const candidate of byPath) {
    if (candidate.mapId === undefined && candidate.rows.length > 0) {
      const content = contentOf(candidate);
      const equal = dumps.filter((other) => other.mapId !== undefined && sameKind(other.kind, candidate.kind) && contentOf(other) === content);
      if (equal.length === 1) candidate.mapId = equal[0]?.mapId;
    }
    // The same map by id is there already: what is learnt is where it is pinned.
    const twin = dumps.findIndex((other) => other.mapId !== undefined && other.mapId === candidate.mapId);
    if (twin === -1) dumps.push(candidate);
    else dumps[twin] = { ...(dumps[twin] as Dump), pinned: dumps[twin]?.pinned ?? candidate.pinned };
  }
  return dumps;
}

const sameKind = (a: Kind, b: Kind): boolean => a.role === b.role && a.family === b.family;

function contentOf(dump: Dump): string {
  return dump.rows
    .map((row) => `${row.key ?? row.keyFields}=${row.value ?? row.valueFields}`)
    .sort()
    .join();
}

/** The maps pinned where the Cilium agent keeps the ones it writes. */
function agentMapsOf(maps: ReadonlyMap<number, BpfMap>, dumps: readonly Dump[]): Set<number> {
  const ids = new Set<number>();
  for (const map of maps.values()) if (map.pinned.some(isAgentPin)) ids.add(map.id);
  for (const dump of dumps) if (dump.mapId !== undefined && dump.pinned !== undefined && isAgentPin(dump.pinned)) ids.add(dump.mapId);
  return ids;
}

/** The service and backend maps a program uses, per address family. */
interface Uses {
  readonly services: Map<4 | 6, number>;
  readonly backends: Map<4 | 6, number[]>;
}

function usesOf(programs: ReadonlyMap<number, BpfProgram>, maps: ReadonlyMap<number, BpfMap>, dumps: readonly Dump[]): Map<number, Uses> {
  const kinds = new Map<number, Kind>();
  for (const dump of dumps) if (dump.mapId !== undefined) kinds.set(dump.mapId, dump.kind);
  for (const map of maps.values()) {
    const kind = kindOf(map.name);
    if (kind !== undefined) kinds.set(map.id, kind);
  }
  const uses = new Map<number, Uses>();
  for (const program of programs.values()) {
    const used: Uses = { services: new Map(), backends: new Map() };
    for (const mapId of program.mapIds) {
      const kind = kinds.get(mapId);
      if (kind?.role === "services") used.services.set(kind.family, mapId);
      else if (kind !== undefined) used.backends.set(kind.family, [...(used.backends.get(kind.family) ?? []), mapId]);
    }
    if (used.services.size > 0) uses.set(program.id, used);
  }
  return uses;
}

/** Every service of every dumped services map. */
function servicesOf(dumps: readonly Dump[], uses: ReadonlyMap<number, Uses>, agentMaps: ReadonlySet<number>): Service[] {
  const backendDumps = dumps.filter((dump) => dump.kind.role === "backends").map((dump) => ({ dump, table: backendTable(dump) }));
  const services: Service[] = [];
  for (const dump of dumps) {
    if (dump.kind.role !== "services") continue;
    const { family } = dump.kind;
    const ids = new Set<number>();
    for (const used of uses.values()) {
      if (dump.mapId !== undefined && used.services.get(family) === dump.mapId) for (const id of used.backends.get(family) ?? []) ids.add(id);
    }
    const byAgent = (candidate: Dump) =>
      (candidate.mapId !== undefined && agentMaps.has(candidate.mapId)) || (candidate.pinned !== undefined && isAgentPin(candidate.pinned));
    const tables = backendDumps
      .filter(({ dump: other }) => other.kind.family === family && ((other.mapId !== undefined && ids.has(other.mapId)) || (byAgent(dump) && byAgent(other))))
      .map(({ table }) => table);
    for (const service of frontends(dump, tables)) services.push(service);
  }
  return services;
}

/** Backend id → `address:port`. */
function backendTable(dump: Dump): Map<number, string> {
  const table = new Map<number, string>();
  const addressDigits = dump.kind.family === 4 ? 8 : 32;
  for (const { key, value } of dump.rows) {
    // The key is the backend's id: 4 bytes, 2 in old versions.
    if (key === undefined || value === undefined || key.length > 8 || value.length < addressDigits + 6) continue;
    const address = addressOf(value.slice(0, addressDigits));
    const port = bigEndian(value, addressDigits / 2);
    table.set(littleEndian(key, 0, key.length / 2), dump.kind.family === 4 ? `${address}:${port}` : `[${address}]:${port}`);
  }
  return table;
}

/** The services of one dump: the entry of slot 0 is the frontend, the others name its backends. */
function frontends(dump: Dump, tables: readonly Map<number, string>[]): Service[] {
  const digits = dump.kind.family === 4 ? 8 : 32;
  const found = new Map<string, { service: Service; slots: Map<number, number>; place: number }>();
  for (const row of dump.rows) {
    const { key, value } = row;
    if (key?.length !== digits + 16 || value === undefined || value.length < 16) continue;
    const slot = littleEndian(key, digits / 2 + 2, 2);
    const identity = key.slice(0, digits + 4) + key.slice(digits + 8, digits + 12);
    let entry = found.get(identity);
    if (entry === undefined) {
      const service: Service = {
        ...placed(row),
        ...present({ mapId: dump.mapId, pinned: dump.pinned }),
        address: addressOf(key.slice(0, digits)),
        port: bigEndian(key, digits / 2),
        protocol: protocolOf(littleEndian(key, digits / 2 + 4, 1)),
        scope: littleEndian(key, digits / 2 + 5, 1),
        slots: 0,
        backends: [],
      };
      entry = { service, slots: new Map(), place: slot };
      found.set(identity, entry);
    }
    // behind backend, count and the number for the way back: two bytes of flags
    if (slot === 0 && (littleEndian(value, 9, 1) & 1) === 1) entry.service.redirected = true;
    if (slot === 0) entry.service.slots = littleEndian(value, 4, 2);
    else {
      entry.slots.set(slot, littleEndian(value, 0, 4));
      // The line to show is the one that names the first backend.
      if (entry.place === 0 || slot < entry.place) {
        Object.assign(entry.service, placed(row));
        entry.place = slot;
      }
    }
  }
  return [...found.values()].map(({ service, slots }) => {
    const ids = [...slots].sort(([a], [b]) => a - b).filter(([slot]) => service.slots === 0 || slot <= service.slots);
    const named = ids.map(([, id]) => tables.find((table) => table.has(id))?.get(id) ?? `${tables.length === 0 ? "unknown" : "missing"} backend ${id}`);
    return { ...service, backends: named };
  });
}

const byteAt = (hex: string, index: number): number => Number.parseInt(hex.slice(2 * index, 2 * index + 2), 16);
const bigEndian = (hex: string, index: number): number => byteAt(hex, index) * 256 + byteAt(hex, index + 1);
function littleEndian(hex: string, index: number, bytes: number): number {
  let number = 0;
  for (let i = bytes - 1; i >= 0; i--) number = number * 256 + byteAt(hex, index + i);
  return number;
}

function addressOf(hex: string): string {
  return hex.length === 8 ? [0, 1, 2, 3].map((index) => byteAt(hex, index)).join(".") : fromHexIpv6(hex);
}

const PROTOCOLS: Readonly<Record<number, string>> = { 0: "any", 6: "tcp", 17: "udp", 132: "sctp" };
const protocolOf = (number: number): string => PROTOCOLS[number] ?? String(number);

/** `172.17.93.4:8080/tcp`, with `/i` for the internal scope, as `cilium bpf lb list` writes it. */
function labelOf({ address, port, protocol, scope }: Service): string {
  return `${address.includes(":") ? `[${address}]` : address}:${port}/${protocol}${scope === 1 ? "/i" : ""}`;
}

/** A program that does socket load balancing, on its attach point. */
interface Attached {
  readonly row: BpfCgroup & Row;
  readonly programId: number;
  readonly linkId: number | undefined;
}

function attachedOf(
  rows: readonly (BpfCgroup & Row)[],
  links: readonly BpfLink[],
  programs: ReadonlyMap<number, BpfProgram>,
  uses: ReadonlyMap<number, Uses>,
): Attached[] {
  // A listing of what is in effect repeats what is attached above: it only serves where nothing else was captured.
  const own = rows.filter((row) => !row.effective);
  return (own.length > 0 ? own : rows)
    .filter((row) => uses.has(row.programId) || /^(?:cil_)?sock[46]_/.test(row.name ?? programs.get(row.programId)?.name ?? ""))
    .map((row) => {
      const link = links.find((candidate) => candidate.programId === row.programId && (candidate.attachType ?? row.attachType) === row.attachType);
      return { row, programId: row.programId, linkId: link?.id };
    });
}

const familyOf = (attachType: string): 4 | 6 => (/(?:inet|udp)6/.test(attachType) ? 6 : 4);
const isInside = (cgroup: string, outer: string): boolean => cgroup === outer || cgroup.startsWith(outer === "/" ? "/" : `${outer}/`);
/** Of a cgroup's programs the kernel runs its own first, then its parents'. */
const runsBefore = (a: BpfCgroup, b: BpfCgroup): boolean => (a.cgroup === b.cgroup ? a.position < b.position : isInside(a.cgroup, b.cgroup));

/** Two services maps of which one should not be in use. */
interface UndecidedPair {
  readonly a: number;
  readonly b: number;
}

/** Programs on one attach point (the same cgroup, or one inside the other) that use different services maps. */
function pairsOf(
  attached: readonly Attached[],
  uses: ReadonlyMap<number, Uses>,
  agentMaps: ReadonlySet<number>,
  byMap: ReadonlyMap<number, ReadonlyMap<string, Service>>,
): { conflicts: SocketLb["conflicts"]; duplicates: SocketLb["duplicates"]; undecided: UndecidedPair[] } {
  const conflicts: SocketLb["conflicts"] = [];
  const duplicates: SocketLb["duplicates"] = [];
  const undecided = new Map<string, UndecidedPair>();
  const seen = new Set<string>();
  for (const [attachType, group] of Map.groupBy(attached, ({ row }) => row.attachType)) {
    for (const family of [familyOf(attachType), familyOf(attachType) === 4 ? 6 : 4] as const) {
      const mapOf = (one: Attached): number | undefined => uses.get(one.programId)?.services.get(family);
      const current = newestOf(group, mapOf, agentMaps);
      if (current === undefined) continue;
      const currentMapId = mapOf(current) as number;
      const basis = agentMaps.has(currentMapId) ? "pin" : "age";
      for (const stale of group) {
        const staleMapId = mapOf(stale);
        if (staleMapId === undefined || staleMapId === currentMapId) continue;
        if (!isInside(stale.row.cgroup, current.row.cgroup) && !isInside(current.row.cgroup, stale.row.cgroup)) continue;
        const staleRunsFirst = runsBefore(stale.row, current.row);
        if (basis === "age" && !staleRunsFirst) {
          // The newer one runs first and no pin tells which one the agent writes: either may be the stale one.
          undecided.set(`${staleMapId} ${currentMapId}`, { a: staleMapId, b: currentMapId });
          continue;
        }
        const pair = { ...pairOf(stale, current), staleMapId, currentMapId, basis } as const;
        const key = `${stale.row.cgroup} ${attachType} ${stale.programId}`;
        if (!seen.has(key) && duplicates.length < MAX_ROWS) duplicates.push({ ...pair, staleRunsFirst });
        seen.add(key);
        if (!staleRunsFirst || !/connect|sendmsg/.test(attachType)) continue;
        const backends = present({
          staleBackendsMapId: uses.get(stale.programId)?.backends.get(family)?.[0],
          currentBackendsMapId: uses.get(current.programId)?.backends.get(family)?.[0],
        });
        for (const difference of differences(byMap.get(staleMapId), byMap.get(currentMapId))) {
          if (conflicts.length >= MAX_ROWS) break;
          conflicts.push({ ...pair, ...backends, ...conflictOf(difference) });
        }
      }
    }
  }
  return { conflicts, duplicates, undecided: [...undecided.values()] };
}

/** Of the programs on one attach point the one whose map the agent writes, or else the one with the newest map; undefined if none has one. */
function newestOf(group: readonly Attached[], mapOf: (one: Attached) => number | undefined, agentMaps: ReadonlySet<number>): Attached | undefined {
  const maps = group.flatMap((one) => {
    const id = mapOf(one);
    return id === undefined ? [] : [{ one, id, pinned: Number(agentMaps.has(id)) }];
  });
  return maps.sort((a, b) => b.pinned - a.pinned || b.id - a.id)[0]?.one;
}

/** Two programs on one attach point, of which one is left over. */
function pairOf({ row, programId, linkId }: Attached, current: Attached) {
  return {
    ...placed(row),
    cgroup: row.cgroup,
    attachType: row.attachType,
    staleProgramId: programId,
    ...present({ staleLinkId: linkId }),
    staleAttachName: attachNameOf(row.attachType),
    currentProgramId: current.programId,
    currentCgroup: current.row.cgroup,
    currentProgramLine: current.row.line,
  };
}

/** A service that leads elsewhere in the two maps. */
const conflictOf = ({ service, old, now }: Difference) => ({
  service,
  staleBackends: old.backends,
  currentBackends: now.backends,
  staleLine: old.line,
  ...present({ staleOutput: old.output }),
  currentLine: now.line,
  ...present({ currentOutput: now.output }),
});

/** Programs of one name on one attach point of which no map is known by name, and that have no map in common: of two generations, the older one first. */
function namedPairs(attached: readonly Attached[], uses: ReadonlyMap<number, Uses>, programs: ReadonlyMap<number, BpfProgram>): SocketLb["duplicates"] {
  const pairs: SocketLb["duplicates"] = [];
  const nameOf = ({ row, programId }: Attached): string => row.name ?? programs.get(programId)?.name ?? "";
  const mapsOf = ({ programId }: Attached): readonly number[] => (uses.has(programId) ? [] : (programs.get(programId)?.mapIds ?? []));
  for (const [i, stale] of attached.entries()) {
    const maps = mapsOf(stale);
    if (maps.length === 0 || !CILIUM_PROGRAM.test(nameOf(stale)) || !/connect|sendmsg/.test(stale.row.attachType)) continue;
    for (const current of attached.slice(i + 1)) {
      const others = mapsOf(current);
      const { cgroup, attachType, position } = stale.row;
      if (current.row.cgroup !== cgroup || current.row.attachType !== attachType || nameOf(current) !== nameOf(stale) || others.length === 0) continue;
      if (maps.some((id) => others.includes(id)) || stale.programId >= current.programId || position >= current.row.position || pairs.length >= MAX_ROWS)
        continue;
      pairs.push({ ...pairOf(stale, current), basis: "age", staleRunsFirst: true });
    }
  }
  return pairs;
}

interface Difference {
  readonly service: string;
  readonly old: Service;
  readonly now: Service;
}

/** Services that both maps know, with other backends. Nothing is concluded from backends whose map was not dumped. */
function* differences(stale: ReadonlyMap<string, Service> | undefined, current: ReadonlyMap<string, Service> | undefined): Generator<Difference> {
  for (const [service, old] of stale ?? []) {
    const now = current?.get(service);
    if (now === undefined || [...old.backends, ...now.backends].some((backend) => backend.startsWith("unknown "))) continue;
    if (old.backends.toSorted().join() !== now.backends.toSorted().join()) yield { service, old, now };
  }
}

/** Where no attach point was captured: two services maps of one name and shape, both in use by programs of cgroups. */
function unattachedPairs(
  maps: ReadonlyMap<number, BpfMap>,
  programs: ReadonlyMap<number, BpfProgram>,
  uses: ReadonlyMap<number, Uses>,
  programsKnown: boolean,
): UndecidedPair[] {
  const used = new Set<number>();
  for (const [id, { services }] of uses) if (programs.get(id)?.type.startsWith("cgroup_sock")) for (const mapId of services.values()) used.add(mapId);
  const candidates = [...maps.values()].filter((map) => kindOf(map.name)?.role === "services" && (!programsKnown || used.has(map.id)));
  const shape = (map: BpfMap) => `${map.name} ${map.type} ${map.keyBytes} ${map.valueBytes}`;
  const pairs: UndecidedPair[] = [];
  for (const [i, a] of candidates.entries()) {
    for (const b of candidates.slice(i + 1)) if (shape(a) === shape(b) && pairs.length < 20) pairs.push({ a: a.id, b: b.id });
  }
  return pairs;
}

function mapPairOf(
  { a, b }: UndecidedPair,
  maps: ReadonlyMap<number, BpfMap & Row>,
  uses: ReadonlyMap<number, Uses>,
  agentMaps: ReadonlySet<number>,
  byMap: ReadonlyMap<number, ReadonlyMap<string, Service>>,
): SocketLb["mapPairs"][number] {
  const byPin = agentMaps.has(a) !== agentMaps.has(b);
  const newer = byPin ? (agentMaps.has(a) ? a : b) : Math.max(a, b);
  const older = newer === a ? b : a;
  const programsOf = (mapId: number) => [...uses].filter(([, { services }]) => [...services.values()].includes(mapId)).map(([id]) => id);
  return {
    ...placed(maps.get(older) ?? { line: 1 }),
    olderMapId: older,
    newerMapId: newer,
    olderProgramIds: programsOf(older),
    newerProgramIds: programsOf(newer),
    basis: byPin ? "pin" : "age",
    differing: [...differences(byMap.get(older), byMap.get(newer))].slice(0, MAX_ROWS).map(({ service }) => service),
  };
}
