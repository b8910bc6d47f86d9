import type { Catalogue } from "../rules/load.ts";
import { auditDraft, SYSTEM } from "./context.ts";
import { joined, notTried, type OtherWay, onRecord, otherWay } from "./fallback.ts";
import { type Collected, type Kept, keepAnswer } from "./keep.ts";
import { collectionPlan } from "./plan.ts";
import {
  type Batches,
  type BatchJob,
  type Durable,
  type Job,
  type Plan,
  type Ports,
  type Started,
  type Target,
  type Transport,
  TransportError,
} from "./ports.ts";

/** A node to look at. */
export interface Wanted {
  readonly target: Target;
  /** Names its capture: captures/<incident>/<name>. */
  readonly name: string;
}

/** What it takes to look at many. */
export interface Many {
  readonly ports: Ports;
  readonly catalogue: Catalogue;
  readonly incident: string;
  /** Names the steps. At most 15 letters, digits and "-". */
  readonly phase: string;
}

/** Nodes of one batch where the transport asks each by itself: all at once, in one step. */
const WITHOUT_BATCHES = 10;
/** Batches at work at the same time: each holds one answer in memory, and the service allows few calls per second. */
const AT_ONCE = 4;
/** How long one look may block, in milliseconds, and how long the workflow sleeps between two, in seconds. */
const LOOK_MS = 8000;
const SLEEP_SECONDS = 4;
/** Seconds beyond the script's own time limit until nobody waits for a node any more: to be delivered (60), to start a pod (120), to be reported. */
const PATIENCE_SECONDS = 180;
/** Each look is an operation. With {@link LOOK_MS} and {@link SLEEP_SECONDS}, the patience is over long before. */
const MOST_LOOKS = 60;

/**
 * Runs the collection runbook on many targets and keeps the captures: per batch (SSM: 50 nodes) one step to start it and one poll, whatever the number of
 * nodes. Only keys are remembered. A node that does not answer costs only itself. Results in the order of `wanted`.
 */
export async function collectMany(durable: Durable, many: Many, wanted: readonly Wanted[]): Promise<readonly Collected[]> {
  const results: Collected[] = [];
  for (const { indexes, value } of await inBatches(durable, many, wanted, async (_child, batch) => batch.collected))
    for (const [at, index] of indexes.entries()) results[index] = value?.[at] ?? { ok: false, reason: LOST };
  return results;
}

const LOST = "the collection itself failed";

/** One batch that has been collected. */
export interface CollectedBatch {
  /** From 1. */
  readonly number: number;
  readonly wanted: readonly Wanted[];
  /** In the order of `wanted`. */
  readonly collected: readonly Collected[];
}

/**
 * The same, with something to do after each batch, so that what comes of it need not be held for all. What `then` returns is remembered: keep it small.
 * `indexes`: places in `wanted`; `value` is undefined for a batch whose work failed, and `problem` says why.
 */
export async function inBatches<T>(
  durable: Durable,
  many: Many,
  wanted: readonly Wanted[],
  then: (durable: Durable, batch: CollectedBatch) => Promise<T>,
): Promise<readonly { readonly indexes: readonly number[]; readonly value?: T; readonly problem?: string }[]> {
  const { ports, catalogue, phase } = many;
  if (wanted.length === 0) return [];
  const { runbook, nonce, fallback } = await durable.step(`${phase}-plan`, async () => {
    const config = await ports.config();
    const clusters = new Set(wanted.map(({ target }) => target.cluster));
    return { runbook: config.runbook, nonce: ports.random(32), fallback: [...clusters].some((name) => config.clusters[name]?.fallback !== undefined) };
  });
  const plan = collectionPlan(catalogue, runbook);
  const batches = batchesOf(ports, wanted);
  const run = async (child: Durable, indexes: readonly number[], number: number): Promise<T> => {
    const mine = indexes.flatMap((index) => wanted[index] ?? []);
    const first = await collectBatch(child, many, mine, `${phase}-${number}`, plan, nonce);
    const collected = fallback ? await otherWays(child, many, mine, first, `${phase}-${number}`, plan, nonce) : first;
    return then(child, { number, wanted: mine, collected });
  };
  const [only] = batches;
  if (only !== undefined && batches.length === 1) return [{ indexes: only, value: await run(durable, only, 1) }];
  const branches = batches.map((indexes, at) => ({ name: `${phase}-batch-${at + 1}`, run: (child: Durable) => run(child, indexes, at + 1) }));
  const settled = await durable.all<T>(`${phase}-batches`, branches, AT_ONCE);
  return settled.map((item, at) => ({ indexes: batches[at] ?? [], ...(item.ok ? { value: item.value } : { problem: item.error.message }) }));
}

/** Places of targets that can be asked together: of one cluster and transport, as many as it takes. */
function batchesOf(ports: Pick<Ports, "transport">, wanted: readonly Wanted[]): readonly (readonly number[])[] {
  const groups = new Map<string, number[]>();
  for (const [index, { target }] of wanted.entries()) {
    const key = `${target.transport} ${target.cluster}`;
    groups.set(key, [...(groups.get(key) ?? []), index]);
  }
  return [...groups.values()].flatMap((indexes) => {
    const [first = 0] = indexes;
    const size = ports.transport(wanted[first]?.target.transport ?? "").batches?.size ?? WITHOUT_BATCHES;
    return Array.from({ length: Math.ceil(indexes.length / size) }, (_, at) => indexes.slice(at * size, (at + 1) * size));
  });
}

/** Looks once more, through the cluster's other transport, at the nodes of a batch that could not be looked at. */
async function otherWays(
  durable: Durable,
  many: Many,
  wanted: readonly Wanted[],
  first: readonly Collected[],
  label: string,
  plan: Plan,
  nonce: string,
): Promise<readonly Collected[]> {
  const { ports, incident } = many;
  const reasons = first.map((one) => (one.ok ? undefined : one.reason));
  if (reasons.every((reason) => reason === undefined)) return first;
  let ways: readonly (OtherWay | null)[];
  try {
    ways = await durable.step(`${label}-other-ways`, async () => {
      const found: (OtherWay | null)[] = [];
      // one after the other: the first asks the cluster, and its answer is kept
      for (const [at, { target }] of wanted.entries()) found.push(reasons[at] === undefined ? null : await otherWay(ports, target));
      const nodes = found.flatMap((way, at) => (way === null || wanted[at] === undefined ? [] : [onRecord(wanted[at].target, reasons[at] ?? "", way)]));
      if (nodes.length > 0) await ports.store.record(incident, [auditDraft(ports, `fell-back/${label}`, SYSTEM, { nodes })]);
      return found;
    });
  } catch (error) {
    ports.log("warn", "another transport could not be chosen", { incident, problem: (error as Error).message });
    return first;
  }
  const open = ways.flatMap((way, at) => (way?.kind === "open" && wanted[at] !== undefined ? [{ at, way, from: wanted[at] }] : []));
  const results = first.map((one, at) => {
    const [way, from] = [ways[at], wanted[at]];
    return !one.ok && way?.kind === "closed" && from !== undefined ? notTried(from.target, one.reason, way) : one;
  });
  const size = open[0] === undefined ? 0 : (ports.transport(open[0].way.target.transport).batches?.size ?? WITHOUT_BATCHES);
  for (let begin = 0; begin < open.length; begin += size) {
    const part = open.slice(begin, begin + size);
    const again = part.map(({ way, from }) => ({ ...from, target: way.target }));
    const second = await collectBatch(durable, many, again, `${label}-other-${begin / size + 1}`, plan, nonce);
    for (const [index, { at, way, from }] of part.entries())
      results[at] = joined(from.target, reasons[at] ?? "", way, second[index] ?? { ok: false, reason: LOST });
  }
  return results;
}

async function collectBatch(
  durable: Durable,
  { ports, incident }: Many,
  wanted: readonly Wanted[],
  label: string,
  plan: Plan,
  nonce: string,
): Promise<readonly Collected[]> {
  const transport = ports.transport(wanted[0]?.target.transport ?? "");
  const ways = transport.batches ?? oneByOne(transport);
  const job: Job = { id: `${incident}-${label}`, script: ports.scripts.collect(plan), parameters: {}, nonce };
  const progress = new Progress(ports, `captures/${incident}/${label}/progress`, wanted);
  const failed = (error: unknown): readonly Collected[] => wanted.map(() => ({ ok: false, reason: (error as Error).message }));

  let started: { readonly at: string; readonly nodes: readonly Started[] };
  try {
    started = await durable.step(`${label}-start`, async () => {
      const at = ports.now().toISOString();
      try {
        return {
          at,
          nodes: await ways.start(
            wanted.map(({ target }) => target),
            job,
          ),
        };
      } catch (error) {
        // a collection may be started again: what was started before is found by its id
        throw error instanceof TransportError ? error : new TransportError((error as Error).message, { retryable: true, cause: error });
      }
    });
  } catch (error) {
    return failed(error);
  }

  const jobs = started.nodes.flatMap((node, index) => {
    const target = wanted[index]?.target;
    return node.ok && target !== undefined ? [{ index, job: { target, handle: node.handle } }] : [];
  });
  const refused = new Map<number, Kept>();
  for (const [index, node] of started.nodes.entries()) if (!node.ok) refused.set(index, { collected: { ok: false, reason: node.reason } });
  const seconds = job.script.timeoutSeconds + PATIENCE_SECONDS;
  const noAnswer = `no answer came within ${seconds} s, so the collection was stopped`;
  /** What is known of every node; what runs still is stopped and given up. */
  const conclude = async (known: Map<number, Kept>, reason: string): Promise<readonly Collected[]> => {
    const open = jobs.filter(({ index }) => !known.has(index));
    if (open.length > 0)
      await stop(
        ports,
        ways,
        open.map((item) => item.job),
      );
    for (const { index } of open) known.set(index, { collected: { ok: false, reason } });
    for (const [index, kept] of refused) known.set(index, kept);
    const all = wanted.map((_, index) => known.get(index) ?? { collected: { ok: false as const, reason: LOST } });
    const nodes = all.map(({ collected, facts }, index) => ({
      target: wanted[index]?.target.name,
      ...(collected.ok ? facts : { problem: collected.reason.slice(0, MAX_REASON) }),
    }));
    await ports.store.record(incident, [auditDraft(ports, `collected/${label}`, SYSTEM, { transport: transport.name, nodes })]);
    return all.map(({ collected }) => (collected.ok ? collected : { ok: false, reason: collected.reason.slice(0, MAX_REASON) }));
  };

  let collected: readonly Collected[];
  try {
    collected = await durable.poll(`${label}-poll`, MOST_LOOKS, async () => {
      const known = await progress.load();
      const open = jobs.filter(({ index }) => !known.has(index));
      try {
        for await (const { job: ended, state } of ways.poll(
          open.map((item) => item.job),
          LOOK_MS,
        )) {
          const index = open.find((item) => item.job === ended)?.index;
          const node = index === undefined ? undefined : wanted[index];
          if (index === undefined || node === undefined || state.state === "running") continue;
          const about = { nonce, plan, target: node.target.name, transport: transport.name, startedAt: started.at };
          const kept: Kept =
            state.state === "done"
              ? await keepAnswer(ports, `captures/${incident}/${node.name}`, state, about)
              : { collected: { ok: false, reason: state.reason } };
          known.set(index, kept);
        }
      } finally {
        // whatever stopped us: what is kept is not fetched again
        await progress.save(known);
      }
      const late = ports.now().getTime() - Date.parse(started.at) > seconds * 1000;
      if (!late && jobs.some(({ index }) => !known.has(index))) return { done: false, afterSeconds: SLEEP_SECONDS };
      return { done: true, value: await conclude(known, noAnswer) };
    });
  } catch (error) {
    collected = await durable
      .step(`${label}-give-up`, async () => conclude(await progress.load(), (error as Error).name === "TimeoutError" ? noAnswer : (error as Error).message))
      .catch((problem: unknown) => failed(problem));
  }
  if (transport.release !== undefined)
    await releaseAll(
      durable,
      ports,
      transport,
      label,
      jobs.map((item) => item.job),
    );
  return collected;
}

/** A reason is for people; what the service adds to it is not wanted whole. 50 of them must fit a step's result. */
const MAX_REASON = 1000;

/** Which nodes of a batch have answered, kept in the store: a poll remembers nothing between two looks. */
class Progress {
  readonly #ports: Pick<Ports, "store">;
  readonly #key: string;
  readonly #size: number;
  #saved = 0;

  constructor(ports: Pick<Ports, "store">, key: string, wanted: readonly Wanted[]) {
    this.#ports = ports;
    this.#key = key;
    this.#size = wanted.length;
  }

  async load(): Promise<Map<number, Kept>> {
    const data = await this.#ports.store.get(this.#key);
    const entries = data === undefined ? [] : (JSON.parse(new TextDecoder().decode(data)) as [number, Kept][]);
    this.#saved = entries.length;
    return new Map(entries.filter(([index]) => index < this.#size));
  }

  async save(known: ReadonlyMap<number, Kept>): Promise<void> {
    if (known.size === this.#saved) return;
    await this.#ports.store.put(this.#key, new TextEncoder().encode(JSON.stringify([...known])));
    this.#saved = known.size;
  }
}

async function stop(ports: Pick<Ports, "log">, ways: Batches, jobs: readonly BatchJob[]): Promise<void> {
  try {
    await ways.cancel(jobs);
  } catch (error) {
    // it ends by its own time limit
    ports.log("warn", "could not stop a collection", { nodes: jobs.length, problem: (error as Error).message });
  }
}

async function releaseAll(durable: Durable, ports: Pick<Ports, "log">, transport: Transport, label: string, jobs: readonly BatchJob[]): Promise<void> {
  await durable.step(`${label}-release`, async () => {
    for (const { target, handle } of jobs) {
      try {
        await transport.release?.(target, handle);
      } catch (error) {
        const problem = (error as Error).message;
        ports.log("warn", "could not clear away what a job left behind; it will expire", { target: target.name, handle, problem });
      }
    }
    return null;
  });
}

/** For transports that ask each node by itself: all nodes of a batch at the same time. */
function oneByOne(transport: Transport): Batches {
  const startOne = async (target: Target, job: Job): Promise<Started & { readonly retryable?: boolean }> => {
    try {
      return { ok: true, handle: (await transport.find(target, job.id, true)) ?? (await transport.start(target, job)) };
    } catch (error) {
      return { ok: false, reason: (error as Error).message, retryable: error instanceof TransportError && error.retryable };
    }
  };
  return {
    size: WITHOUT_BATCHES,

    async start(targets: readonly Target[], job: Job): Promise<readonly Started[]> {
      const all = await Promise.all(targets.map((target, index) => startOne(target, { ...job, id: `${job.id}-${index + 1}` })));
      const [first] = all;
      // it is not the nodes
      if (first?.ok === false && all.every((node) => !node.ok && node.retryable === true)) throw new TransportError(first.reason, { retryable: true });
      return all.map((node) => (node.ok ? node : { ok: false, reason: node.reason }));
    },

    async *poll(jobs: readonly BatchJob[], waitMs: number) {
      const looks = jobs.map(async (job) => {
        try {
          return { job, state: await transport.poll(job.target, job.handle, waitMs) };
        } catch (error) {
          if (error instanceof TransportError && !error.retryable) return { job, state: { state: "lost" as const, reason: error.message } };
          return { job, state: { state: "running" as const, detail: (error as Error).message } };
        }
      });
      for (const look of looks) {
        const { job, state } = await look;
        if (state.state !== "running") yield { job, state };
      }
    },

    async cancel(jobs: readonly BatchJob[]): Promise<void> {
      for (const { target, handle } of jobs) await transport.cancel?.(target, handle);
    },
  };
}
