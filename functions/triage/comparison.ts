import { type Comparison, compare, WORTH_A_LOOK } from "../rules/compare.ts";
import { comparisonText } from "../rules/compare-report.ts";
import { canonical, sha256 } from "./audit.ts";
import { unpackCapture } from "./captures.ts";
import { type Collected, loadDiagnosis } from "./collect.ts";
import { collectMany } from "./collect-many.ts";
import { comparisonMessage, type Pool } from "./comparison-message.ts";
import type { Config } from "./config.ts";
import { auditDraft, type Context, incidentOf, SYSTEM } from "./context.ts";
import { collectEitherWay } from "./fallback.ts";
import type { Durable, Place, Ports, Target } from "./ports.ts";
import { rootMessage } from "./report.ts";
import { poolOf } from "./targets.ts";

/** At most so many peers are looked at for one triage: three make a majority, and each costs a collection on a healthy node. */
const MAX_PEERS = 3;

/** A peer and what became of the look at it. */
interface PeerCollected {
  readonly target: Target;
  readonly collected: Collected;
}

/** Collects a node and its peers at the same time. One that cannot be looked at costs only itself. */
export async function collectAll(
  context: Context,
  incident: string,
  target: Target,
  peers: readonly Target[],
): Promise<{ readonly node: Collected; readonly peers: readonly PeerCollected[] }> {
  const { durable, ports, catalogue } = context;
  const branches = [
    { name: "node", run: async (child: Durable) => [await collectEitherWay(child, ports, catalogue, incident, target, "collect")] },
    { name: "peers", run: (child: Durable) => collectPeers({ ...context, durable: child }, incident, peers) },
  ];
  const [node, others] = await durable.all<readonly Collected[]>("collect-all", branches, 2);
  const of = (settled: typeof node, at: number): Collected =>
    settled?.ok === true ? (settled.value[at] ?? LOST) : { ok: false, reason: settled?.error.message ?? LOST.reason };
  return { node: of(node, 0), peers: peers.map((peer, index) => ({ target: peer, collected: of(others, index) })) };
}

const LOST = { ok: false, reason: "it was not looked at" } as const;

const collectPeers = ({ durable, ports, catalogue }: Context, incident: string, peers: readonly Target[]): Promise<readonly Collected[]> =>
  collectMany(
    durable,
    { ports, catalogue, incident, phase: "peers" },
    peers.map((target, index) => ({ target, name: `peer-${index + 1}` })),
  );

/** For a node without a cause: looks at up to {@link MAX_PEERS} peers of its pool. Empty if it is in no pool. */
export async function collectPool(context: Context, incident: string, target: Target): Promise<readonly PeerCollected[]> {
  const { durable, ports } = context;
  const peers = await durable.step("peers", async () => poolOf(await ports.config(), target).slice(0, MAX_PEERS));
  if (peers.length === 0) return [];
  const collected = await collectPeers(context, incident, peers);
  return peers.map((peer, index) => ({ target: peer, collected: collected[index] ?? LOST }));
}

/**
 * Holds the node against the peers that could be looked at, keeps the comparison and tells the thread.
 * @param automatic netcheck looked by itself, because no rule matched
 */
export async function tellComparison(
  { durable, ports }: Context,
  incident: string,
  place: Place,
  node: { readonly target: Target; readonly capture: string },
  peers: readonly PeerCollected[],
  automatic: boolean,
): Promise<void> {
  const seen = peers.flatMap(({ target, collected }) => (collected.ok ? [{ peer: target.name, key: collected.key }] : []));
  const problems = peers.flatMap(({ target, collected }) => (collected.ok ? [] : [{ peer: target.name, reason: collected.reason }]));
  const compared = await durable.step("compare", async () => {
    const pool = automatic ? poolInfo(await ports.config(), node.target, peers.length) : null;
    if (seen.length === 0) return { key: null, problem: null, pool };
    const named = async (name: string, key: string) => ({ name, capture: unpackCapture(await stored(ports, key)) });
    const here = await named(node.target.name, node.capture);
    const others = await Promise.all(seen.map(({ peer, key }) => named(peer, key)));
    let comparison: Comparison;
    try {
      comparison = compare(here, others);
    } catch (error) {
      // the diagnosis and its fix do not wait for an extra
      ports.log("error", "the comparison failed", { incident, problem: (error as Error).message });
      return { key: null, problem: (error as Error).message, pool };
    }
    const key = `comparisons/${incident}/peers`;
    await ports.store.put(key, new TextEncoder().encode(JSON.stringify(comparison)));
    await ports.store.update(incident, { comparison: key }, [
      auditDraft(ports, "compared", SYSTEM, {
        peers: comparison.peers,
        differences: comparison.differences.length,
        automatic,
        comparison: sha256(canonical(comparison)),
      }),
    ]);
    return { key, problem: null, pool };
  });
  if (compared.problem !== null) problems.push({ peer: "all", reason: `netcheck could not compare them: ${compared.problem}` });
  await durable.step("tell-comparison", async () => {
    const comparison = compared.key === null ? undefined : await loadComparison(ports, compared.key);
    const record = await incidentOf(ports, incident);
    const message = comparisonMessage(record, comparison, problems, compared.pool ?? undefined);
    await ports.chat.post(`${incident}/comparison`, place, message);
    const differs = comparison?.differences.filter(({ score }) => score >= WORTH_A_LOOK).length ?? 0;
    if (automatic && differs > 0 && record.thread !== undefined && record.diagnosis !== undefined)
      await ports.chat.update(record.thread, rootMessage(record, await loadDiagnosis(ports, record.diagnosis), undefined, differs));
    if (comparison !== undefined && message.data["more"] !== 0) {
      const name = `netcheck-${node.target.name}-${incident}-peers.txt`;
      await ports.chat.upload(`${incident}/comparison-list`, place, { name, title: "All differences", content: comparisonText(comparison) });
    }
    return null;
  });
}

/** @param tried how many of its nodes were to be looked at */
function poolInfo(config: Config, target: Target, tried: number): Pool {
  return { name: config.clusters[target.cluster]?.targets[target.name]?.pool ?? "", others: poolOf(config, target).length, tried };
}

/** A stored comparison. */
export async function loadComparison(ports: Pick<Ports, "store">, key: string): Promise<Comparison> {
  return JSON.parse(new TextDecoder().decode(await stored(ports, key))) as Comparison;
}

async function stored(ports: Pick<Ports, "store">, key: string): Promise<Uint8Array> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`${key} is not in the store any more`);
  return data;
}
