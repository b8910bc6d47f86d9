import { canonical, sha256 } from "./audit.ts";
import { examine } from "./collect.ts";
import { inBatches } from "./collect-many.ts";
import { auditDraft, type Context, SYSTEM } from "./context.ts";
import { insteadWords } from "./fallback.ts";
import { type Sketch, sketchOf } from "./fleet-odd.ts";
import { allMutes, hiding, withoutMuted } from "./muted.ts";
import type { Capture, Ports, Target } from "./ports.ts";

/** What became of one node of many. */
export interface NodeSummary {
  readonly target: string;
  readonly cluster: string;
  /** Verdict of its diagnosis; "not-collected" if it could not be looked at, with the reason. */
  readonly verdict: string;
  /** Ids of the rules that are causes, best first. */
  readonly causes: readonly string[];
  /** Ids of the rules that are symptoms, where there is no cause. At most five. */
  readonly symptoms?: readonly string[];
  /** Id of the fix that the first cause has, if it can be offered on this node. */
  readonly fix?: string;
  readonly reason?: string;
  /** Why it was looked at through another transport than usual, for people. */
  readonly note?: string;
  /** Ids of rules that were found and that somebody muted on this node: they are not among the causes and symptoms. */
  readonly muted?: readonly string[];
  /** The node by another transport than usual, if it was that one which reached it: a fix goes the same way. */
  readonly reached?: Target;
  /** Keys in the store. */
  readonly capture?: string;
  readonly diagnosis?: string;
}

/** A batch of nodes: where its summaries are, and how many nodes came to each verdict. All that an execution remembers of them. */
export interface FleetBatch {
  /** Key of the summaries in the store; absent if the batch failed as a whole, for the reason in `problem`. */
  readonly key?: string;
  readonly problem?: string;
  readonly nodes: number;
  readonly verdicts: Readonly<Record<string, number>>;
}

/** Mutes that are read for a batch. */
const MOST_MUTES = 2000;

/** What else is done on the way. */
export interface Along {
  /** Is this node's sketch wanted, if no cause is found on it? They are kept per batch: see {@link loadSketches}. */
  readonly sketched?: (target: Target) => boolean;
  /** After each batch, from 1, in its step: may be called again after a crash. Never fails. */
  readonly after?: (number: number, batch: FleetBatch) => Promise<void>;
}

/**
 * Collects and diagnoses many nodes. Per batch of up to 50: a step to start, a poll, a step to diagnose; captures, diagnoses and summaries go to the store one
 * at a time. 1,000 nodes on SSM take about 200 of the 3,000 operations of an execution. A node, or a batch, that fails costs only itself.
 * @param phase names the steps: at most 15 letters, digits and "-"; unique in the execution
 * @param targets as a step remembered them: the same on every replay
 */
export async function examineMany(
  context: Context,
  incident: string,
  phase: string,
  targets: readonly Target[],
  along: Along = {},
): Promise<readonly FleetBatch[]> {
  const { durable, ports, catalogue } = context;
  const wanted = targets.map((target, index) => ({ target, name: `${phase}/node-${index + 1}` }));
  const batches = await inBatches<FleetBatch>(durable, { ports, catalogue, incident, phase }, wanted, (child, { number, wanted: mine, collected }) =>
    child.step(`${phase}-${number}-diagnose`, async () => {
      const summaries: NodeSummary[] = [];
      const sketches: Record<string, Sketch> = {};
      const mutes = await allMutes(ports.store, ports.now(), MOST_MUTES);
      for (const [at, { target }] of mine.entries()) {
        const { name, cluster } = target;
        const one = collected[at];
        if (one?.ok !== true) {
          summaries.push({ target: name, cluster, verdict: "not-collected", causes: [], reason: one?.reason ?? "" });
          continue;
        }
        let capture: Capture | undefined;
        const { key, diagnosis } = await examine(ports, catalogue, one.key, (loaded) => {
          capture = loaded;
          return loaded;
        });
        const muted = hiding(
          diagnosis,
          mutes.filter((mute) => mute.cluster === cluster && mute.target === name),
        );
        const heard = withoutMuted(diagnosis, muted);
        const causes = heard.causes.map(({ rule }) => rule);
        const symptoms = causes.length > 0 ? [] : heard.symptoms.slice(0, 5).map(({ rule }) => rule);
        const fix = heard.causes[0]?.fix?.id;
        const note = insteadWords(target, one);
        summaries.push({
          target: name,
          cluster,
          verdict: diagnosis.verdict,
          causes,
          ...(symptoms.length === 0 ? {} : { symptoms }),
          ...(fix === undefined ? {} : { fix }),
          ...(muted.length === 0 ? {} : { muted: muted.map(({ rule }) => rule) }),
          ...(one.instead === undefined ? {} : { reached: one.instead.target }),
          capture: one.key,
          diagnosis: key,
          ...(note === "" ? {} : { note }),
        });
        if (causes.length === 0 && capture !== undefined && along.sketched?.(target) === true) sketches[`${cluster}/${name}`] = sketchOf(capture);
      }
      const key = `fleets/${incident}/${phase}/${number}`;
      await ports.store.put(key, new TextEncoder().encode(JSON.stringify(summaries)));
      if (Object.keys(sketches).length > 0) await ports.store.put(`${key}-sketches`, new TextEncoder().encode(JSON.stringify(sketches)));
      const verdicts = count(summaries.map(({ verdict }) => verdict));
      await ports.store.record(incident, [
        auditDraft(ports, `diagnosed-many/${phase}-${number}`, SYSTEM, { nodes: summaries.length, verdicts, summaries: sha256(canonical(summaries)) }),
      ]);
      const batch = { key, nodes: summaries.length, verdicts };
      await along.after?.(number, batch);
      return batch;
    }),
  );
  return batches.map(
    ({ indexes, value, problem }) => value ?? { problem: problem ?? "", nodes: indexes.length, verdicts: { "not-collected": indexes.length } },
  );
}

/** The summaries of a batch. Throws if they are not in the store any more. */
export async function loadFleetBatch(ports: Pick<Ports, "store">, key: string): Promise<readonly NodeSummary[]> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`the summaries ${key} are not in the store any more`);
  return JSON.parse(new TextDecoder().decode(data)) as NodeSummary[];
}

/** The sketches of a batch, by "cluster/name"; none if none were wanted. */
export async function loadSketches(ports: Pick<Ports, "store">, key: string): Promise<Readonly<Record<string, Sketch>>> {
  const data = await ports.store.get(`${key}-sketches`);
  return data === undefined ? {} : (JSON.parse(new TextDecoder().decode(data)) as Record<string, Sketch>);
}

function count(words: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const word of words) counts[word] = (counts[word] ?? 0) + 1;
  return counts;
}
