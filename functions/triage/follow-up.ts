import type { Diagnosis } from "../rules/diagnosis.ts";
import { sha256 } from "./audit.ts";
import { collect, examine, loadDiagnosis } from "./collect.ts";
import { milliseconds } from "./config.ts";
import { auditDraft, type Context, incidentOf, proposalOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { examineMany, loadFleetBatch } from "./fleet.ts";
import { noteMessage } from "./note.ts";
import { isOver } from "./paged.ts";
import type { Durable, FollowUp, Incident, Place, Ports, Target } from "./ports.ts";
import { incidentsOn } from "./register.ts";
import { poolOf } from "./targets.ts";
import { PAGE_CLOSED } from "./timeline-close.ts";

/** When and how widely, unless `followUps` of netcheck.yaml says so. */
const AFTER: readonly string[] = ["5m", "30m"];
const SPREAD = 10;
/** Newest incidents among which the same cause on other nodes is looked for. */
const RECENT = 200;
/** Nodes that one line names. */
const NAMED = 5;

/**
 * Has a node looked at again some time after its incident ended, by an execution of its own, so that the triage is over. Never fails: the incident's outcome is
 * worth more.
 */
export async function startFollowUp(
  { durable, ports }: Context,
  incident: string,
  { target, proposal, after: why }: { readonly target: Target; readonly proposal: string; readonly after: FollowUp["after"] },
): Promise<void> {
  await durable
    .step("start-follow-up", async () => {
      const { after = AFTER, spread = SPREAD } = (await ports.config()).followUps ?? {};
      const minutes = [...new Set(after.map((duration) => milliseconds(duration) / 60_000))].sort((a, b) => a - b);
      if (minutes.length === 0) return null;
      const { rule } = await proposalOf(ports, proposal);
      const request: FollowUp = { incident, target, rule, after: why, minutes, spread };
      await ports.work.start(`follow-${sha256(incident).slice(0, 16)}`, { kind: "follow-up", followUp: request });
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "no follow-up could be started", { incident, problem: (error as Error).message }));
}

/** What one look came to. */
type Seen = "gone" | "there" | "unsure" | "not-looked";

/**
 * Looks at a node again, at each of the given times, and says in one line of its thread what has become of the cause. It only reads. It ends early when the
 * node is examined anew, when its page is over, or when somebody is working on it here.
 */
export async function followUp(context: Context, request: FollowUp): Promise<TriageResult> {
  const { durable, ports, catalogue } = context;
  const { incident: id, target, rule, after, minutes } = request;
  let passed = 0;
  let before: Seen = after === "fixed" ? "gone" : "there";
  let spreadTo: readonly string[] | undefined;
  for (const [index, minute] of minutes.entries()) {
    const number = index + 1;
    await durable.wait(`wait-${number}`, (minute - passed) * 60);
    passed = minute;
    const going = await durable.step(`still-wanted-${number}`, async () => {
      const incident = await incidentOf(ports, id);
      return { why: await endOf(ports, incident), place: incident.thread === undefined ? null : threadOf(incident.thread) };
    });
    if (going.why !== "") return { outcome: going.why };
    const { place } = going;
    const collected = await collect(durable, ports, catalogue, id, target, `follow-${number}`);
    const look = await durable.step(`look-${number}`, async () => {
      if (!collected.ok) return { seen: "not-looked" as const, detail: collected.reason };
      const { diagnosis } = await examine(ports, catalogue, collected.key);
      return judged(diagnosis, await firstDiagnosis(ports, id), rule);
    });
    const wide = look.seen === "there" ? await lookWide(context, durable, request, number) : undefined;
    const title = catalogue.rules.get(rule)?.file.title ?? rule;
    await durable.step(`tell-${number}`, async () => {
      const { icon, words } = lineOf({ after, before, look, minute, node: target.name, title, wide, spreadTo });
      const data = { rule, minutes: minute, seen: look.seen, others: wide?.nodes ?? [] };
      await ports.store.record(id, [auditDraft(ports, `followed-up/${number}`, SYSTEM, data)]);
      if (place !== null) await tell(ports, `${id}/follow-up-${number}`, place, icon, words);
      return null;
    });
    if (look.seen === "gone" || look.seen === "there") before = look.seen;
    if (wide !== undefined) spreadTo = [...(spreadTo ?? []), ...wide.nodes];
  }
  return { outcome: "followed-up" };
}

const tell = async (ports: Ports, key: string, place: Place, icon: string, words: string): Promise<void> => {
  await ports.chat.post(key, place, noteMessage(icon, words));
};

/** Why nobody needs another look; "" if somebody does. */
async function endOf(ports: Ports, incident: Incident): Promise<string> {
  const { id, target, cluster, createdAt, state } = incident;
  if (state === "awaiting-approval" || state === "fixing" || state === "verifying" || state === "collecting") return "in-hand";
  if ((await isOver(ports, id)) || (await ports.store.audit(id)).some(({ type }) => type === PAGE_CLOSED)) return "page-over";
  const newest = await incidentsOn(ports.store, cluster, target, 3);
  return newest.some((one) => one.incident !== id && one.createdAt > createdAt) ? "run-again" : "";
}

const firstDiagnosis = async (ports: Ports, id: string): Promise<Diagnosis | undefined> => {
  const { diagnosis } = await incidentOf(ports, id);
  return diagnosis === undefined ? undefined : loadDiagnosis(ports, diagnosis).catch(() => undefined);
};

interface Look {
  readonly seen: Seen;
  /** Why it could not be told; or what else was found. */
  readonly detail: string;
}

/** Only what could surely be decided is "gone" or "there". */
function judged(now: Diagnosis, before: Diagnosis | undefined, rule: string): Look {
  // a cause that another one explains now is listed among the symptoms: it is there all the same
  if ([...now.causes, ...now.symptoms].some((finding) => finding.rule === rule)) return { seen: "there", detail: "" };
  const unsure = now.unchecked.find((item) => item.rule === rule);
  if (unsure !== undefined) return { seen: "unsure", detail: unsure.reason };
  const known = new Set([...(before?.causes ?? []), ...(before?.symptoms ?? [])].map((finding) => finding.rule));
  const fresh = now.causes.filter((cause) => !known.has(cause.rule)).map(({ title }) => title);
  return { seen: "gone", detail: fresh.join("; ") };
}

/** Where else the cause is. */
interface Wide {
  /** Names, each once. */
  readonly nodes: readonly string[];
  /** Nodes of the pool that were looked at, of how many; 0 of 0 if it is in no pool. */
  readonly looked: number;
  readonly pool: number;
  readonly poolName: string;
}

/**
 * Looks for the cause on other nodes: in what netcheck found on nodes of the cluster since the incident began, and by looking at up to `spread` nodes of the
 * pool. Never fails: what could not be looked at is not counted.
 */
async function lookWide(context: Context, durable: Durable, { incident: id, target, rule, spread }: FollowUp, number: number): Promise<Wide> {
  const { ports } = context;
  const known = await durable.step(`elsewhere-${number}`, async () => {
    const config = await ports.config();
    const others = poolOf(config, target);
    return {
      nodes: await sameCause(ports, id, rule),
      peers: others.slice(0, spread),
      pool: others.length,
      poolName: config.clusters[target.cluster]?.targets[target.name]?.pool ?? "",
    };
  });
  const found = new Set(known.nodes);
  let looked = 0;
  try {
    const batches = await examineMany({ ...context, durable }, id, `spread-${number}`, known.peers);
    const summaries = await durable.step(`spread-seen-${number}`, async () => {
      const all = await Promise.all(batches.map(async ({ key }) => (key === undefined ? [] : loadFleetBatch(ports, key))));
      return all.flat().map(({ target: name, verdict, causes }) => ({ name, looked: verdict !== "not-collected", has: causes.includes(rule) }));
    });
    for (const { name, has } of summaries) if (has) found.add(name);
    looked = summaries.filter((one) => one.looked).length;
  } catch (error) {
    ports.log("warn", "the pool could not be looked at", { incident: id, problem: (error as Error).message });
  }
  found.delete(target.name);
  return { nodes: [...found].sort(), looked, pool: known.pool, poolName: known.poolName };
}

/** Nodes of the cluster on which netcheck found the same cause since this incident began. */
async function sameCause(ports: Ports, id: string, rule: string): Promise<readonly string[]> {
  const mine = await incidentOf(ports, id);
  const since = (await ports.store.incidents(RECENT)).filter(
    (one) =>
      one.cluster === mine.cluster && one.target !== mine.target && one.createdAt > mine.createdAt && one.state !== "resolved" && one.sources === undefined,
  );
  const found = new Set<string>();
  for (const { target, diagnosis } of since) {
    if (diagnosis === undefined || found.has(target)) continue;
    const causes = await loadDiagnosis(ports, diagnosis).then(
      (seen) => seen.causes,
      () => [],
    );
    if (causes.some((cause) => cause.rule === rule)) found.add(target);
  }
  return [...found];
}

interface Line {
  readonly after: FollowUp["after"];
  /** What the look before this one saw. */
  readonly before: Seen;
  readonly look: Look;
  readonly minute: number;
  readonly node: string;
  readonly title: string;
  readonly wide: Wide | undefined;
  /** Nodes that an earlier look found; undefined if there was none. */
  readonly spreadTo: readonly string[] | undefined;
}

/** One line, for the thread. */
function lineOf({ after, before, look, minute, node, title, wide, spreadTo }: Line): { readonly icon: string; readonly words: string } {
  const when = `${node}, ${minute} min ${after === "fixed" ? "after the fix" : "later"}`;
  const { seen, detail } = look;
  if (seen === "not-looked") {
    return { icon: "grey_question", words: `${when}: netcheck could not look again: ${detail}. That says nothing about its network.` };
  }
  if (seen === "unsure")
    return {
      icon: "grey_question",
      words: `${when}: whether the cause is ${after === "fixed" ? "still gone" : "still there"} could not be checked: ${detail}.`,
    };
  if (seen === "gone") {
    const fresh = detail === "" ? "" : ` But something new was found: ${detail}. Run the triage again.`;
    const icon = fresh === "" ? "white_check_mark" : "warning";
    if (before === "there") {
      const healed = after === "fixed" ? "is gone again" : "is gone, without a fix of netcheck: it healed by itself, or somebody repaired it";
      return { icon, words: `${when}: the cause (${title}) ${healed}.${fresh}` };
    }
    return { icon, words: `${when}: still healthy, the cause has not come back.${fresh}` };
  }
  const back = after === "fixed" && before === "gone" ? "the cause came back" : "the cause is still there";
  return { icon: "red_circle", words: `${when}: ${back} (${title}).${wide === undefined ? "" : wideWords(wide, spreadTo)}` };
}

function wideWords({ nodes, looked, pool, poolName }: Wide, spreadTo: readonly string[] | undefined): string {
  const where = looked === 0 ? "" : ` (${looked} of the ${pool} other nodes of pool ${poolName} were looked at)`;
  const fresh = spreadTo === undefined ? nodes : nodes.filter((name) => !spreadTo.includes(name));
  const listed = fresh.length > NAMED ? `${fresh.slice(0, NAMED).join(", ")} and ${fresh.length - NAMED} more` : fresh.join(", ");
  const count = `${fresh.length} more ${fresh.length === 1 ? "node" : "nodes"}`;
  if (fresh.length > 0)
    return spreadTo === undefined ? ` It is on ${count}, too: ${listed}${where}.` : ` It has spread to ${count} since the last look: ${listed}${where}.`;
  if (nodes.length > 0) return ` It has spread no further${where}.`;
  return looked === 0 ? "" : ` No other node has it${where}.`;
}
