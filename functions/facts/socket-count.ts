import { z } from "zod";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import { Complaint, complaints } from "./kernel-complaint.ts";
import type { KernelLog } from "./kernel-log.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * How many TCP sockets are stuck, by state and program.
 */
const Stuck = z.object({
  /** One of the sockets. */
  line: z.int(),
  /** "CLOSE-WAIT": the other side has closed, the program has not. "DETACHED": it holds a socket that carries no connection any more (lsof tells). */
  state: z.string(),
  /** Of the program most of them belong to, where the listing names it. */
  process: z.string().optional(),
  count: z.int(),
});
/** Where a summary of all sockets was read. */
const Total = z.object({
  line: z.int(),
  /** Without a program; -1 where it was not told. */
  orphaned: z.int(),
  /** Made and not given back, in all network namespaces, without those in TIME-WAIT; -1 where it was not told. */
  allocated: z.int(),
  /** Among these the ones that carry no connection in this network namespace (`ss -s`); -1 where it was not told. */
  closed: z.int(),
  /** Among these the ones that neither are established nor closed nor orphaned: they listen or are half closed (`ss -s`); -1 where it was not told. */
  others: z.int(),
});
const SocketCount = z.object({
  rows: z.array(Stuck),
  /** One row if the connections in CLOSE-WAIT were listed completely: none among the rows means that there is none. */
  looked: z.array(z.object({ line: z.int() })),
  totals: z.array(Total),
  /** At most one: connections in use, by whichever output shows the most of them. */
  established: z.array(z.object({ line: z.int(), count: z.int() })),
  /** The kernel's complaints that there are too many orphans. */
  complaints: z.array(Complaint),
});
type SocketCount = z.infer<typeof SocketCount>;

/** As a person counted them. */
type Counted = Row & { state: string; count: number; process?: string };

interface Sources {
  readonly socket?: {
    rows: readonly (Row & { protocol: string; state: string; process?: string })[];
    shown: readonly (Row & { protocol: string; closeWait: boolean })[];
    counts: readonly Counted[];
  };
  readonly "stuck-socket"?: { rows: readonly Counted[] };
  readonly "socket-summary"?: { rows: readonly (Row & { protocol: string; established?: number; orphaned?: number; allocated?: number; closed?: number })[] };
  readonly "kernel-log"?: Placed<KernelLog>;
  readonly lsof?: { rows: readonly (Row & { program: string; named: number; closeWait: number; detached: number })[] };
}

const COMPLAINT = /^(?:TCP: )?too many (?:of )?orphaned sockets/i;
const STUCK = new Set(["CLOSE-WAIT", "FIN-WAIT-2", "LAST-ACK"]);

export const socketCount = defineDerivedFact<SocketCount>({
  id: "socket-count",
  title: "TCP sockets that are stuck, by state and program",
  from: ["socket", "socket-summary", "kernel-log", "lsof", "stuck-socket"],
  optional: ["lsof", "stuck-socket"],
  schema: SocketCount,
  derive(values) {
    const sources = values as Sources;
    const groups = new Map<string, { place: Row; count: number; programs: Map<string, number> }>();
    for (const row of sources.socket?.rows ?? []) {
      if (row.protocol !== "tcp" || !STUCK.has(row.state)) continue;
      const group = groups.get(row.state) ?? { place: placed(row), count: 0, programs: new Map<string, number>() };
      group.count++;
      if (row.process !== undefined) group.programs.set(row.process, (group.programs.get(row.process) ?? 0) + 1);
      groups.set(row.state, group);
    }
    const held = sources.lsof?.rows ?? [];
    const waiting = groups.has("CLOSE-WAIT") ? [] : held.filter((row) => row.closeWait > 0);
    const [most] = waiting.toSorted((a, b) => b.closeWait - a.closeWait);
    const fromLsof =
      most === undefined
        ? []
        : [
            {
              ...placed(most),
              state: "CLOSE-WAIT",
              ...(most.program === "" ? {} : { process: most.program }),
              count: waiting.reduce((sum, row) => sum + row.closeWait, 0),
            },
          ];
    // the sockets of a program in another network namespace look the same: it is in this one if some of its connections are
    const detached = held.filter((row) => row.detached > 0 && row.named > 0);
    // of some of them the sockets were shown, too
    const own = (sources.socket?.counts ?? []).filter((row) => STUCK.has(row.state) && row.count > (groups.get(row.state)?.count ?? 0));
    // of more in a pod, which has sockets of its own
    const known = Math.max(groups.get("CLOSE-WAIT")?.count ?? 0, ...own.map((row) => (row.state === "CLOSE-WAIT" ? row.count : 0)));
    const counted = [...own, ...(sources["stuck-socket"]?.rows ?? []).filter((row) => row.count > known)];
    return {
      rows: [...groups]
        .filter(([state]) => !counted.some((row) => row.state === state))
        .map(([state, { place, count, programs }]) => {
          const [process] = topOf(programs);
          return { ...place, state, count, ...present({ process }) };
        })
        .concat(
          counted.map((row) => {
            const process = row.process ?? topOf(groups.get(row.state)?.programs)[0];
            return { ...placed(row), state: row.state, count: row.count, ...present({ process }) };
          }),
        )
        .concat(counted.some((row) => row.state === "CLOSE-WAIT") ? [] : fromLsof)
        .concat(detached.map((row) => ({ ...placed(row), state: "DETACHED", process: row.program, count: row.detached }))),
      looked: (sources.socket?.shown ?? [])
        .filter((row) => row.protocol === "tcp" && row.closeWait)
        .slice(0, 1)
        .map(placed),
      totals: (sources["socket-summary"]?.rows ?? [])
        .filter((row) => row.protocol === "tcp")
        .map((row) => ({ ...placed(row), orphaned: row.orphaned ?? -1, allocated: row.allocated ?? -1, closed: row.closed ?? -1, others: othersOf(row) })),
      established: establishedOf(sources),
      complaints: complaints(sources["kernel-log"], COMPLAINT),
    };
  },
});

/** A summary, a count by state, or the connections themselves. */
function establishedOf({ socket, "socket-summary": summary }: Sources): { line: number; count: number }[] {
  const listed = (socket?.rows ?? []).filter(({ protocol, state }) => protocol === "tcp" && state === "ESTAB");
  const [first] = listed;
  return [
    ...(summary?.rows ?? []).flatMap((row) => (row.protocol === "tcp" && row.established !== undefined ? [{ ...placed(row), count: row.established }] : [])),
    ...(socket?.counts ?? []).flatMap((row) => (row.state === "ESTAB" ? [{ ...placed(row), count: row.count }] : [])),
    ...(first === undefined ? [] : [{ ...placed(first), count: listed.length }]),
  ]
    .toSorted((a, b) => b.count - a.count)
    .slice(0, 1);
}

/** ss leaves them to be reckoned from the rest. Since Linux 6.11 those in CLOSE-WAIT are counted as established. */
function othersOf(row: { established?: number; orphaned?: number; allocated?: number; closed?: number }): number {
  const { established, orphaned, allocated, closed } = row;
  if (established === undefined || orphaned === undefined || allocated === undefined || closed === undefined) return -1;
  return Math.max(0, allocated - established - closed - orphaned);
}

/** The program that occurs most, and how often; empty if none is known. */
function topOf(programs: ReadonlyMap<string, number> | undefined): [string, number] | [] {
  return [...(programs ?? [])].toSorted(([a, m], [b, n]) => n - m || (a < b ? -1 : 1))[0] ?? [];
}
