import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed, type Row } from "./fact.ts";
import type { ListenQueue } from "./listen-queue.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Sockets whose queue is full because their program does not keep up, and the counters of what was dropped for it.
 */
const Queue = z.object({
  line: z.int(),
  /** "tcp": connections that wait to be accepted. "udp": packets that wait to be read. */
  protocol: z.string(),
  address: z.string(),
  port: z.int().optional(),
  process: z.string().optional(),
  /** Connections or bytes. */
  waiting: z.int(),
  /** Of "tcp": how many may wait. With one more than that nothing is taken any more. Left out where netstat was asked, which does not tell. */
  limit: z.int().optional(),
  /** Of "udp": packets dropped between the samples. */
  dropsDelta: z.int().optional(),
});
const Counter = z.object({ line: z.int(), name: z.string(), value: z.int(), valueDelta: z.int().optional() });
const FullQueue = z.object({
  accept: z.array(Queue),
  receive: z.array(Queue),
  /** Counters of connections that were not accepted: TcpExtListenOverflows, TcpExtListenDrops. */
  acceptCounters: z.array(Counter),
  /** Counters of packets that found a UDP socket's buffer full. */
  receiveCounters: z.array(Counter),
});
type FullQueue = z.infer<typeof FullQueue>;
type Counters = FullQueue["acceptCounters"];

interface Sources {
  readonly "listen-queue"?: { full: readonly (ListenQueue["full"][number] & Row)[]; risen: readonly (ListenQueue["risen"][number] & Row)[] };
  readonly nstat?: { rows: Counters };
  readonly "agent-log"?: Placed<AgentLog>;
  readonly socket?: {
    rows: readonly (Row & {
      protocol: string;
      state: string;
      address: string;
      port?: number;
      process?: string;
      receiveQueue: number;
      backlog?: number;
      dropsDelta?: number;
    })[];
  };
}

const ACCEPT = new Set(["TcpExtListenOverflows", "TcpExtListenDrops"]);
const RECEIVE = new Set(["UdpRcvbufErrors", "Udp6RcvbufErrors", "UdpMemErrors", "UdpSocketDrops"]);
/** A listener that lets fewer wait was made by hand (`nc -l`) or by a test. */
const SMALL_BACKLOG = 5;
/** What programs ask for, and what the kernel allows at most. netstat does not tell the backlog: a queue that is full is one longer, and hardly any other is just as long. */
const USUAL_BACKLOGS: ReadonlySet<number> = new Set([50, 100, 128, 200, 256, 500, 511, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768]);
/** uWSGI watches its own queue: `*** uWSGI listen queue of socket "127.0.0.1:3031" (fd: 3) full !!! (101/100) ***`. */
const UWSGI = /\*\*\* uWSGI listen queue of socket "(\S{0,60}):(\d{1,5})" \(fd: \d{1,6}\) full !!! \((\d{1,9})\/(\d{1,9})\) \*\*\*/;
/** Seconds. A queue that was full before may have been a burst. */
const RECENT = 900;
/** Bytes. The buffer that a UDP socket gets without asking (net.core.rmem_default) is 212,992; a full one shows a little less or more. */
const FULL_BUFFER = 180_000;

export const fullQueue = defineDerivedFact<FullQueue>({
  id: "full-queue",
  title: "Sockets whose queue is full, and the counters of what was dropped",
  from: ["socket", "nstat", "listen-queue", "agent-log"],
  // of a pod, where somebody asked one, and what a server in it says
  optional: ["listen-queue", "agent-log"],
  inPart: ["agent-log"],
  schema: FullQueue,
  derive(values) {
    const sources = values as Sources;
    const counters = sources.nstat?.rows ?? [];
    const result: FullQueue = {
      accept: [],
      receive: [],
      acceptCounters: counters.filter((row) => ACCEPT.has(row.name)),
      receiveCounters: counters.filter((row) => RECEIVE.has(row.name)),
    };
    for (const row of sources.socket?.rows ?? []) {
      const { protocol, state, address, port, process, receiveQueue, backlog, dropsDelta } = row;
      const about = { ...placed(row), protocol, address, ...present({ port, process }), waiting: receiveQueue };
      if (protocol === "tcp" && state === "LISTEN" && backlog !== undefined && backlog >= SMALL_BACKLOG && receiveQueue > backlog) {
        result.accept.push({ ...about, limit: backlog });
      }
      if (protocol === "tcp" && state === "LISTEN" && backlog === undefined && USUAL_BACKLOGS.has(receiveQueue - 1)) result.accept.push(about);
      if (protocol === "udp" && ((dropsDelta !== undefined && dropsDelta > 0) || receiveQueue >= FULL_BUFFER)) {
        result.receive.push({ ...about, ...present({ dropsDelta }) });
      }
    }
    for (const row of sources["agent-log"]?.rows ?? []) {
      const [, address = "", port = "", waiting, limit] = UWSGI.exec(row.message) ?? [];
      if (waiting === undefined || (row.age ?? 0) >= RECENT) continue;
      const queue = { ...placed(row), protocol: "tcp", address, port: Number(port), process: "uwsgi", waiting: Number(waiting), limit: Number(limit) };
      // it says so every second: the newest counts
      result.accept = [...result.accept.filter((other) => other.process !== "uwsgi" || other.port !== queue.port), queue];
    }
    const pods = sources["listen-queue"];
    for (const row of pods?.full ?? []) {
      const { address, port, process, waiting, limit } = row;
      if (limit === undefined ? !USUAL_BACKLOGS.has(waiting - 1) : limit < SMALL_BACKLOG) continue;
      result.accept.push({ ...placed(row), protocol: "tcp", address, port, ...present({ process, limit }), waiting });
    }
    for (const row of pods?.risen ?? []) (RECEIVE.has(row.name) ? result.receiveCounters : result.acceptCounters).push(row);
    return result;
  },
});
