import { canonical, sha256 } from "./audit.ts";
import { loadCapture, loadDiagnosis } from "./collect.ts";
import { loadComparison } from "./comparison.ts";
import { comparisonMessage } from "./comparison-message.ts";
import type { Config } from "./config.ts";
import { auditDraft, type Context, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { examineMany, type FleetBatch, loadFleetBatch, loadSketches, type NodeSummary } from "./fleet.ts";
import { decideOthers } from "./fleet-decision.ts";
import { fixFleet, type Triage } from "./fleet-fix.ts";
import { fleetHere } from "./fleet-members.ts";
import { fixNode } from "./fleet-node-fix.ts";
import { CLEARLY, compareOdd, MOST_COMPARED, oddOnes, type Sketched } from "./fleet-odd.ts";
import {
  encode,
  endedMessage,
  type FleetResult,
  fleetCsv,
  fleetMarkdown,
  groupsOf,
  headlineOf,
  keyOf,
  keyOfNode,
  loadFleet,
  loadTargets,
  type Odd,
  resultKey,
  runningMessage,
  targetsKey,
  unclearMessage,
  verdictWords,
} from "./fleet-report.ts";
import { poolNameOf, selectionWords, selectNodes } from "./fleet-select.ts";
import { noteMessage } from "./note.ts";
import type { FleetRequest, MessageRef, Ports, Target } from "./ports.ts";
import { diagnosisMessage } from "./report.ts";

/** `/netcheck nodes …`: many nodes, one message. */

type Ask<Kind extends FleetRequest["ask"]["kind"]> = Extract<FleetRequest["ask"], { kind: Kind }>;

/** What somebody wants of many nodes. Whatever happens, the person who asked is told. */
export async function fleet(context: Context, request: FleetRequest, triage: Triage): Promise<TriageResult> {
  const { durable, ports } = context;
  const { ask, place, requester, incident } = request;
  try {
    switch (ask.kind) {
      case "examine":
        return await examineNodes(context, request, ask);
      case "show":
        return await durable.step("show", () => show(context, request, ask));
      case "fix":
        return await fixFleet(context, request, ask, triage);
      case "approve":
      case "dismiss":
        return await decideOthers(context, request, ask);
      case "fix-node":
        return await fixNode(context, request, ask);
    }
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "a fleet failed", { incident, problem });
    await durable.step("failed", async () => {
      const known = ask.kind === "examine" ? await ports.store.incident(incident) : undefined;
      const what = ask.kind === "examine" ? `examine these nodes (${selectionWords(ask.terms)})` : "do that";
      // what a fix changed before is told in its own messages, and on record
      const changed = ask.kind === "examine" || ask.kind === "show" ? " Nothing was changed on a node." : "";
      const text = `netcheck could not ${what}: ${problem}.${changed} Run id: ${incident}`;
      if (known === undefined) await ports.chat.whisper(place, requester, noteMessage("warning", text));
      else {
        await ports.store.update(incident, { state: "failed", problem }, [auditDraft(ports, "failed", SYSTEM, { problem })]);
        await ports.chat.post(`${incident}/failure`, known.thread === undefined ? place : threadOf(known.thread), noteMessage("warning", text));
      }
      return null;
    });
    return { outcome: "failed" };
  }
}

/** Targets of one step's result: 500 letters each at most, and a result holds 256 KB. */
const CHUNK = 250;

/** Looks at all of them, and tells it in one message that is edited as they come in. */
async function examineNodes(context: Context, request: FleetRequest, ask: Ask<"examine">): Promise<TriageResult> {
  const { durable, ports, catalogue } = context;
  const { incident: id, requester, place } = request;
  const words = `nodes ${selectionWords(ask.terms)}`;
  const selected = await durable.step("select", async () => {
    const selection = await selectNodes(ports, ask);
    if (selection.kind === "unclear") {
      await ports.chat.whisper(place, requester, unclearMessage(selection.text, selection.choices));
      return { count: 0, problem: "", cluster: "" };
    }
    await ports.store.put(targetsKey(id), encode(selection.targets));
    const clusters = new Set(selection.targets.map(({ cluster }) => cluster));
    return { count: selection.targets.length, problem: selection.problem, cluster: clusters.size === 1 ? [...clusters].join("") : "several clusters" };
  });
  const { count, problem, cluster } = selected;
  if (count === 0) return { outcome: "unclear" };
  const targets: Target[] = [];
  for (let begin = 0; begin < count; begin += CHUNK)
    targets.push(...(await durable.step(`targets-${begin / CHUNK + 1}`, async () => (await loadTargets(ports, id)).slice(begin, begin + CHUNK))));

  const running = { incident: id, words, requester, total: count, done: 0, causes: 0, lost: 0 };
  const { thread, pools } = await durable.step("open", async () => {
    const now = ports.now().toISOString();
    await ports.store.open(
      { id, target: words, cluster, requester, createdAt: now, state: "collecting", nodes: count },
      auditDraft(ports, "incident-opened", requester, { target: words, cluster, nodes: count, targets: sha256(canonical(targets)) }),
    );
    const root = await ports.chat.post(`${id}/root`, place, runningMessage(running));
    const ref: MessageRef = place.thread === undefined ? root : { ...root, thread: place.thread };
    await ports.store.update(id, { thread: ref }, []);
    return { thread: ref, pools: poolsOf(await ports.config(), targets, ask) };
  });

  const batches = await examineMany(context, id, "fleet", targets, {
    sketched: (target) => pools[keyOf(target)] !== undefined,
    after: async (number, batch) => {
      const now = await countIn(ports, id, number, batch);
      if (now !== undefined) await edit(ports, thread, () => runningMessage({ ...running, ...now }));
    },
  });

  const result = await durable.step("group", async () => {
    const nodes = await allNodes(ports, targets, batches);
    const { odd, left } = await findOdd(ports, id, batches, nodes, pools);
    const notes = [
      ...(problem === "" ? [] : [`Not every list of nodes could be had, so some may be missing: ${problem}.`]),
      ...(left === 0 ? [] : [`${left} more nodes without a cause are not like their pool; only the ${MOST_COMPARED} that differ most were compared with it.`]),
    ];
    const kept: FleetResult = { incident: id, words, at: ports.now().toISOString(), nodes, odd, notes };
    await ports.store.put(resultKey(id), encode(kept));
    const groups = groupsOf(nodes, odd, catalogue).map(({ kind, rule, nodes: mine }) => ({
      kind,
      ...(rule === undefined ? {} : { rule }),
      nodes: mine.length,
    }));
    await ports.store.update(id, { state: "diagnosed" }, [auditDraft(ports, "diagnosed", SYSTEM, { groups, result: sha256(canonical(kept)) })]);
    return { headline: headlineOf(groupsOf(nodes, odd, catalogue)) };
  });
  await durable.step("tell", async () => {
    await ports.chat.update(thread, endedMessage(await loadFleet(ports, id), requester, catalogue));
    return null;
  });
  // the message says all that matters: a table that cannot be attached costs only itself
  await durable
    .step("table", async () => {
      const whole = await loadFleet(ports, id);
      const files = { md: fleetMarkdown(whole, catalogue), csv: fleetCsv(whole, catalogue) };
      for (const [ending, content] of Object.entries(files))
        await ports.chat.upload(`${id}/table.${ending}`, threadOf(thread), {
          name: `netcheck-nodes-${id}.${ending}`,
          title: `All ${count} nodes (${ending})`,
          content,
        });
      return null;
    })
    .catch(async (error: unknown) => {
      ports.log("warn", "the table could not be attached", { incident: id, problem: (error as Error).message });
    });
  ports.log("info", "a fleet was examined", { incident: id, nodes: count, headline: result.headline });
  return { outcome: "diagnosed" };
}

/** How far a fleet is, in the store: batches end at the same time, and a step may be repeated. */
interface Progress {
  readonly batches: Readonly<Record<string, { readonly done: number; readonly causes: number; readonly lost: number }>>;
  /** Milliseconds since 1970 of the last edit, and the batch that made it. */
  readonly editedAt: number;
  readonly editor: number;
}

/** No message is edited more often: Slack allows about one edit a second. */
const PAUSE_MS = 1000;

/** Counts a batch in, once. Returns what to show, if it is time for an edit and this batch makes it. Never fails: progress is worth less than what it is of. */
async function countIn(ports: Ports, id: string, number: number, batch: FleetBatch): Promise<{ done: number; causes: number; lost: number } | undefined> {
  const mine = { done: batch.nodes, causes: batch.verdicts["cause-found"] ?? 0, lost: batch.verdicts["not-collected"] ?? 0 };
  const now = ports.now().getTime();
  try {
    const stored = await ports.store.change<Progress>("fleet", id, (old) => {
      const batches = { ...old?.batches, [number]: mine };
      const due = old?.batches[number] === undefined && now - (old?.editedAt ?? 0) >= PAUSE_MS;
      return { batches, editedAt: due ? now : (old?.editedAt ?? 0), editor: due ? number : (old?.editor ?? 0) };
    });
    if (stored?.editor !== number || stored.editedAt !== now) return undefined;
    const all = Object.values(stored.batches);
    const sum = (of: "done" | "causes" | "lost"): number => all.reduce((total, one) => total + one[of], 0);
    return { done: sum("done"), causes: sum("causes"), lost: sum("lost") };
  } catch (error) {
    ports.log("warn", "a fleet's progress could not be counted", { incident: id, problem: (error as Error).message });
    return undefined;
  }
}

async function edit(ports: Ports, ref: MessageRef, message: () => ReturnType<typeof runningMessage>): Promise<void> {
  try {
    await ports.chat.update(ref, message());
  } catch (error) {
    ports.log("warn", "a fleet's progress could not be shown", { problem: (error as Error).message });
  }
}

/** The pool of each node, by "cluster/name", where it has one: that of netcheck.yaml, else what was asked for by a label, within its cluster. */
function poolsOf(config: Config, targets: readonly Target[], { terms }: Ask<"examine">): Readonly<Record<string, string>> {
  const labels = terms.flatMap((term) => (term.by === "label" && term.name !== "cluster" ? [`${term.name}=${term.value}`] : []));
  const pools: Record<string, string> = {};
  for (const target of targets) {
    const pool = poolNameOf(config, target) ?? (labels.length === 0 ? undefined : labels.join(" "));
    if (pool !== undefined) pools[keyOf(target)] = `${target.cluster} ${pool}`;
  }
  return pools;
}

/** All nodes in the order of the targets. Those of a batch that failed as a whole could not be looked at, for its reason. */
async function allNodes(ports: Ports, targets: readonly Target[], batches: readonly FleetBatch[]): Promise<readonly NodeSummary[]> {
  const found = new Map<string, NodeSummary>();
  for (const { key } of batches) if (key !== undefined) for (const node of await loadFleetBatch(ports, key)) found.set(keyOfNode(node), node);
  const problems = [...new Set(batches.flatMap(({ key, problem }) => (key === undefined && problem !== undefined ? [problem.slice(0, 500)] : [])))];
  const reason = problems.join("; ") || "it was not looked at";
  return targets.map((target) => found.get(keyOf(target)) ?? { target: target.name, cluster: target.cluster, verdict: "not-collected", causes: [], reason });
}

/** Compares the oddest nodes without a cause with the majority of their pools. `left`: how many more are clearly not like theirs, and were not compared. */
async function findOdd(
  ports: Ports,
  id: string,
  batches: readonly FleetBatch[],
  nodes: readonly NodeSummary[],
  pools: Readonly<Record<string, string>>,
): Promise<{ readonly odd: readonly Odd[]; readonly left: number }> {
  const byKey = new Map(nodes.map((node) => [keyOfNode(node), node]));
  const byPool = new Map<string, Sketched<NodeSummary>[]>();
  for (const { key } of batches) {
    for (const [name, sketch] of key === undefined ? [] : Object.entries(await loadSketches(ports, key))) {
      const [node, pool] = [byKey.get(name), pools[name]];
      if (node !== undefined && pool !== undefined) byPool.set(pool, [...(byPool.get(pool) ?? []), { node, sketch }]);
    }
  }
  const candidates = [...byPool].flatMap(([pool, members]) => oddOnes(members).map((one) => ({ ...one, pool })));
  const ranked = candidates.toSorted((a, b) => b.excess - a.excess);
  const chosen = ranked.slice(0, MOST_COMPARED);
  const odd: Odd[] = [];
  // one after the other: four captures are in memory at a time
  for (const { node, peers, pool } of chosen) {
    try {
      const load = async (one: NodeSummary) => loadCapture(ports, one.capture ?? "");
      const there = await Promise.all(peers.map(async (peer) => ({ name: peer.target, capture: await load(peer) })));
      const { comparison, worth } = compareOdd(node.target, await load(node), there);
      const key = `comparisons/${id}/${odd.length + 1}`;
      await ports.store.put(key, encode(comparison));
      odd.push({ node: keyOfNode(node), pool, peers: comparison.peers, worth, what: comparison.differences[0]?.what ?? "", comparison: key });
    } catch (error) {
      ports.log("warn", "a node could not be compared with its pool", { incident: id, node: node.target, problem: (error as Error).message });
    }
  }
  return { odd, left: ranked.slice(MOST_COMPARED).filter(({ excess }) => excess > CLEARLY).length };
}

/** What a fleet knows of one of its nodes, into the thread; once. */
async function show(context: Context, request: FleetRequest, { fleet: id, node: wanted }: Ask<"show">): Promise<TriageResult> {
  const { ports, catalogue } = context;
  const { requester, place } = request;
  const whisper = async (text: string): Promise<TriageResult> => {
    await ports.chat.whisper(place, requester, noteMessage("grey_question", text));
    return { outcome: "unknown" };
  };
  // who may read it there may ask for it there: nobody learns what goes on in another channel
  const incident = await fleetHere(ports, id, place);
  if (incident === undefined) return whisper(`There is no run "${id}" of many nodes in this channel.`);
  const result = await loadFleet(ports, id);
  const lower = wanted.toLowerCase();
  const hits = result.nodes.filter((node) => [node.target, keyOfNode(node)].some((name) => name.toLowerCase() === lower));
  const [node] = hits;
  if (node === undefined) return whisper(`${wanted} is not among the nodes of ${id} (${result.words}). Their names are in its table.`);
  if (hits.length > 1) return whisper(`${hits.length} nodes of ${id} are called ${wanted}: ${hits.map(keyOfNode).join(", ")}. Name the one that you mean.`);
  const name = keyOfNode(node);
  const key = `${id}/node/${sha256(name).slice(0, 12)}`;
  const thread = threadOf(incident.thread);
  if ((await ports.store.recall(`${key}/shown`)) !== undefined) {
    await ports.chat.whisper(place, requester, noteMessage("information_source", `What was found on ${node.target} is in this thread already, above.`));
    return { outcome: "shown-before" };
  }
  const first = await ports.chat.post(key, thread, {
    template: "fleet-node",
    data: {
      target: node.target,
      cluster: node.cluster,
      words: verdictWords(node.verdict),
      reason: node.reason ?? "",
      note: node.note ?? "",
      collected: node.capture !== undefined,
      incident: id,
      command: name,
      at: Math.floor(Date.parse(result.at) / 1000),
      atText: result.at,
      requester: requester.id,
    },
  });
  if (node.diagnosis !== undefined) {
    const drawn = diagnosisMessage({ ...incident, target: node.target, cluster: node.cluster }, await loadDiagnosis(ports, node.diagnosis), catalogue);
    // "Run again" is about the incident, which is all of them; the button above is about this node
    await ports.chat.post(`${key}/diagnosis`, thread, { ...drawn, data: { ...drawn.data, again: false } });
  }
  const odd = result.odd.find((one) => one.node === name);
  if (odd !== undefined) {
    const pool = { name: odd.pool.split(" ").slice(1).join(" "), others: odd.peers.length, tried: odd.peers.length };
    await ports.chat.post(
      `${key}/comparison`,
      thread,
      comparisonMessage({ ...incident, target: node.target }, await loadComparison(ports, odd.comparison), [], pool),
    );
  }
  await ports.store.remember(`${key}/shown`, first);
  await ports.store.record(id, [auditDraft(ports, `shown/${request.incident}`, requester, { node: name })]);
  return { outcome: "shown" };
}
