import { sha256 } from "./audit.ts";
import type { Config } from "./config.ts";
import { milliseconds } from "./config.ts";
import type { Context, TriageResult } from "./context.ts";
import { noteMessage } from "./note.ts";
import { ALERT, alertKey, heard, hearingOf, type KnownAlert, type News, notExamined, placed } from "./page-alert.ts";
import {
  changeStorm,
  giveUp,
  isAbandoned,
  isAllResolved,
  joinStorm,
  keepDrawn,
  postStorm,
  type Shown,
  type Storm,
  stormOf,
  withAlerts,
  withNodes,
  withProblems,
} from "./page-storm.ts";
import { namesOf, nodeOf, type PageRoute, routeOf } from "./page-targets.ts";
import { linkAlert } from "./paged.ts";
import type { Actor, MessageRef, Page, PageAlert, Ports } from "./ports.ts";

/** Who asks for the triages of a page. No person: nothing can be whispered to it, and it approves nothing. */
export const PAGER: Actor = { id: "pager", team: "" };

/** Documents that are changed at the same time. */
const AT_ONCE = 20;
/** Names that are looked up, and messages that are changed, for one delivery. */
const [MAX_LOOKUPS, MAX_STORMS] = [100, 20];

/** What one alert of a delivery means, as a step remembers it. */
interface Told {
  /** Of the alert in the page. */
  readonly index: number;
  readonly news: News;
  readonly channel: string;
  /** Nodes that are to be examined, as the alert names them. */
  readonly names: readonly string[];
  readonly cluster?: string;
  readonly problem?: string;
  /** The message that it stands in already. */
  readonly storm?: string;
}

/**
 * A delivery of a monitoring system. Alerts that are new are told in one message per channel and window, and the nodes that they name are examined in its
 * thread; what was examined just now is not examined again; what is acknowledged or resolved is shown, and closes what belongs to it.
 */
export async function page(context: Context, given: Page): Promise<TriageResult> {
  const { durable, ports } = context;
  const told = await durable
    .step("page-alerts", () => hear(ports, given))
    .catch((error: unknown) => notTold(context, given, "page", [...given.alerts.keys()], error as Error));
  if (told === null) {
    ports.log("error", "a page came, but netcheck.yaml names no channel for pages (pages.channel)", { run: given.id });
    return { outcome: "no-channel" };
  }
  const changed = await tellChanges(context, given, told);
  const fresh = Map.groupBy(
    told.filter(({ news }) => news === "new"),
    ({ channel }) => channel,
  );
  let examined = 0;
  let failed: Error | undefined;
  const storms = new Set<string>(changed);
  for (const [index, [channel, alerts]] of [...fresh].entries()) {
    try {
      const opened = await open(context, given, `page-${index + 1}`, channel, alerts, index === 0);
      storms.add(opened.storm);
      examined += opened.examined;
    } catch (error) {
      // the other channels are told all the same
      failed ??= error as Error;
    }
  }
  const me = deliveryOf(given);
  for (const [index, storm] of [...storms].entries()) await keepDrawn(context, storm, `page-${index + 1}`, me);
  // the execution fails, for operations to see
  if (failed !== undefined) throw failed;
  const outcome = examined > 0 ? "started" : fresh.size > 0 ? "told" : changed.length > 0 ? "changed" : "nothing-new";
  return { outcome };
}

const deliveryOf = ({ source, id }: Page): string => sha256(`${source}\n${id}`).slice(0, 16);

/** Puts on record what is said of each alert; null if pages have no channel. */
async function hear(ports: Ports, given: Page): Promise<Told[] | null> {
  const config = await ports.config();
  const { pages } = config;
  if (pages === undefined) return null;
  const delivery = deliveryOf(given);
  const now = ports.now();
  const seen = new Set<string>();
  const told: Told[] = [];
  const clusters = Object.keys(config.clusters);
  await inChunks([...given.alerts.entries()], async ([index, alert]) => {
    if (seen.has(alert.key)) return;
    seen.add(alert.key);
    const route = routeOf(pages.routes, given.source, alert);
    if (route?.triage === false) return;
    const { names, cluster, problem } = namesOf(alert, route, clusters);
    const known = await ports.store.change<KnownAlert>(ALERT, alertKey(given.source, alert.key), (stored) =>
      heard(stored, { source: given.source, alert, delivery, names, now, cooldownMs: milliseconds(pages.cooldown) }),
    );
    const hearing = hearingOf(known, delivery);
    if (hearing === undefined) return;
    told.push({
      index,
      news: hearing.news,
      channel: route?.channel ?? pages.channel,
      names: hearing.names,
      ...(cluster === undefined ? {} : { cluster }),
      ...(problem === undefined ? {} : { problem }),
      ...(hearing.storm === undefined ? {} : { storm: hearing.storm }),
    });
  });
  return told.sort((a, b) => a.index - b.index);
}

const alertAt = (given: Page, { index }: Told): PageAlert => given.alerts[index] as PageAlert;
const shownOf = (given: Page, told: Told): Shown => ({ ...alertAt(given, told), source: given.source });

/** What is known alerts' new status, in the messages where they stand. Returns the ids of these messages. */
async function tellChanges({ durable, ports }: Context, given: Page, told: readonly Told[]): Promise<readonly string[]> {
  const known = told.filter(({ news, storm }) => storm !== undefined && news !== "new" && news !== "old");
  const byStorm = [...Map.groupBy(known, ({ storm }) => storm as string)].slice(0, MAX_STORMS);
  if (byStorm.length === 0) return [];
  return durable.step("page-changes", async () => {
    const changed: string[] = [];
    for (const [id, alerts] of byStorm) {
      const before = await stormOf(ports, id);
      if (before?.root === undefined) continue;
      const now = alerts.map((one) => shownOf(given, one));
      // most deliveries say only that it still fires
      const same = JSON.stringify(withAlerts(before, now).alerts) === JSON.stringify(before.alerts);
      const storm = same ? before : ((await changeStorm(ports, id, (stored) => stored && withAlerts(stored, now))) ?? before);
      const over = isAllResolved(storm) && alerts.some(({ news }) => news === "resolved");
      if (!same || over) changed.push(id);
      if (!over) continue;
      const number = Object.keys(storm.alerts).length;
      const words = number === 1 ? "The alert is resolved." : `All ${number} alerts of this page are resolved.`;
      await ports.chat.post(`${id}/resolved`, threadOf(before.root), noteMessage("white_check_mark", words));
    }
    const over = told.filter(({ news }) => news === "resolved").map((one) => alertKey(given.source, alertAt(given, one).key));
    const known = await Promise.all(over.map((key) => ports.store.kept<KnownAlert>(ALERT, key)));
    await close(
      ports,
      known.filter((one) => one !== undefined),
    );
    return changed;
  });
}

/** Closes what belongs to alerts that are over: for each incident one of them is enough. */
async function close(ports: Ports, over: readonly KnownAlert[]): Promise<void> {
  const closed = new Set<string>();
  for (const { source, key, title, at, incidents } of over) {
    const open = incidents.filter((incident) => !closed.has(incident));
    if (open.length === 0) continue;
    for (const incident of open) closed.add(incident);
    await ports.work.start(`close-${sha256(`${source}\n${key}\n${at}`).slice(0, 16)}`, { kind: "close-page", closing: { source, key, title, at } });
  }
}

const threadOf = ({ channel, ts }: MessageRef) => ({ channel, thread: ts });

/**
 * New alerts of one channel: into the message of the window, which is posted by whoever opens it, and their nodes into its thread. Returns the message's id, and
 * how many triages this delivery started.
 */
async function open(
  context: Context,
  given: Page,
  name: string,
  channel: string,
  told: readonly Told[],
  first: boolean,
): Promise<{ readonly storm: string; readonly examined: number }> {
  const { durable, ports } = context;
  try {
    const { id, root } = await join(context, given, name, channel, told, first);
    const found = await durable
      .step(`${name}-nodes`, () => lookUp(ports, given, told, true))
      .catch(() => durable.step(`${name}-nodes-so-far`, () => lookUp(ports, given, told, false)));
    const examined = await durable.step(`${name}-start`, () => start(ports, given, id, root, told, found));
    return { storm: id, examined };
  } catch (error) {
    return await notTold(
      context,
      given,
      name,
      told.map(({ index }) => index),
      error as Error,
      channel,
    );
  }
}

/** Nobody was told: the next delivery must not be taken for a repetition. Throws the error. */
async function notTold({ durable, ports }: Context, given: Page, name: string, indexes: readonly number[], error: Error, channel = ""): Promise<never> {
  const delivery = deliveryOf(given);
  await durable.step(`${name}-not-told`, async () => {
    ports.log("error", "a page could not be told", { channel, run: delivery, problem: error.message });
    if (channel !== "") await giveUp(ports, channel, delivery);
    await inChunks(indexes, async (index) => {
      const key = alertKey(given.source, (given.alerts[index] as PageAlert).key);
      await ports.store.change<KnownAlert>(ALERT, key, (stored) => notExamined(stored, delivery));
    });
    return null;
  });
  throw error;
}

/** The message of the window that is open, posted by this delivery if it is the first; if the first one could not, the next one that waits for it does. */
async function join(
  { durable, ports }: Context,
  given: Page,
  name: string,
  channel: string,
  told: readonly Told[],
  first: boolean,
): Promise<{ readonly id: string; readonly root: MessageRef }> {
  const delivery = deliveryOf(given);
  for (const attempt of ["", "-again", "-once-more"]) {
    const { id, mine } = await durable.step(`${name}-join${attempt}`, async () => {
      const windowMs = milliseconds((await pagesOf(ports)).window);
      const alerts = told.map((one) => shownOf(given, one));
      const storm = await joinStorm(ports, { channel, delivery, alerts, left: first ? given.more : 0, now: ports.now(), windowMs });
      return { id: storm.id, mine: storm.opener === delivery };
    });
    if (mine)
      return { id, root: await durable.step(`${name}-post${attempt}`, async () => rootOf(await postStorm(ports, (await stormOf(ports, id)) as Storm))) };
    const root = await durable.poll(`${name}-root${attempt}`, 60, async () => {
      const storm = await stormOf(ports, id);
      if (storm?.root !== undefined) return { done: true as const, value: storm.root };
      return storm === undefined || isAbandoned(storm, ports.now()) ? { done: true as const, value: null } : { done: false as const, afterSeconds: 2 };
    });
    if (root !== null) return { id, root };
  }
  throw new Error("the message of the page was not posted by any of its deliveries");
}

function rootOf({ root }: Storm): MessageRef {
  if (root === undefined) throw new Error("the message of the page is not in the store");
  return root;
}

/** Throws if pages have been taken out of the configuration meanwhile. */
async function pagesOf(ports: Pick<Ports, "config">): Promise<NonNullable<Config["pages"]>> {
  const { pages } = await ports.config();
  if (pages === undefined) throw new Error("netcheck.yaml has no pages any more");
  return pages;
}

/** Which nodes the names mean: by name and cluster as they were said, and what could not be found out. */
interface LookedUp {
  readonly nodes: Readonly<Record<string, string>>;
  readonly problems: readonly string[];
  /** Names of which nobody knows what they mean: the list that has them could not be had. */
  readonly unasked: readonly string[];
}
const nameKey = (name: string, cluster: string | undefined): string => `${cluster ?? ""} ${name}`;

/** @param patient what may pass is thrown, to be asked again */
async function lookUp(ports: Ports, given: Page, told: readonly Told[], patient: boolean): Promise<LookedUp> {
  const wanted = new Map(told.flatMap(({ names, cluster }) => names.map((name) => [nameKey(name, cluster), { name, cluster }] as const)));
  const nodes: Record<string, string> = {};
  const problems = told.flatMap((one) => (one.problem === undefined ? [] : [`“${alertAt(given, one).title.slice(0, 100)}”: ${one.problem}.`]));
  const unasked: string[] = [];
  await inChunks([...wanted].slice(0, MAX_LOOKUPS), async ([key, { name, cluster }]) => {
    const found = await nodeOf(ports, name, cluster, patient);
    if ("target" in found) nodes[key] = `${found.target.cluster}/${found.target.name}`;
    else problems.push(`${name}: ${found.problem}.`);
    if ("unasked" in found) unasked.push(key);
  });
  if (wanted.size > MAX_LOOKUPS) problems.push(`${wanted.size - MAX_LOOKUPS} more names of nodes were not looked up.`);
  return { nodes, problems, unasked };
}

/** Has the nodes examined that this delivery brought, and puts on record which alerts each triage answers. Returns how many were started. */
async function start(ports: Ports, given: Page, id: string, root: MessageRef, told: readonly Told[], found: LookedUp): Promise<number> {
  const { nodes, problems, unasked } = found;
  const config = await ports.config();
  const pages = await pagesOf(ports);
  const delivery = deliveryOf(given);
  const now = ports.now();
  const wanted = [...new Set(Object.values(nodes))];
  const storm = await changeStorm(
    ports,
    id,
    (stored) => stored && withEscalations(withProblems(withNodes(stored, wanted, { delivery, most: pages.maxTargets, now }), problems), given, told, pages),
  );
  if (storm === undefined) throw new Error(`there is no page ${id}`);
  const because = new Map<string, string>();
  /** What came meanwhile and did not know where the alert stands. */
  const overtaken: KnownAlert[] = [];
  await inChunks(told, async (one) => {
    const alert = alertAt(given, one);
    const route = routeOf(pages.routes, given.source, alert);
    const incidents: string[] = [];
    for (const name of one.names) {
      const node = nodes[nameKey(name, one.cluster)];
      const incident = node === undefined ? undefined : storm.nodes[node]?.incident;
      if (node === undefined || incident === undefined) continue;
      incidents.push(incident);
      if (!because.has(node)) because.set(node, alert.title);
      await linkAlert(ports, incident, { source: given.source, ...alert, ...(route?.onCall === undefined ? {} : { onCall: route.onCall }) });
    }
    const known = await ports.store.change<KnownAlert>(ALERT, alertKey(given.source, alert.key), (stored) => {
      const stands = placed(stored, id, root, incidents);
      return one.names.some((name) => unasked.includes(nameKey(name, one.cluster))) ? notExamined(stands, delivery) : stands;
    });
    if (known !== undefined && known.status !== "firing") overtaken.push(known);
    await startEscalation(ports, given, alert, route, storm, root);
  });
  let started = 0;
  for (const node of wanted) {
    const { incident, by } = storm.nodes[node] ?? {};
    if (incident === undefined) continue;
    if (by === delivery) started += 1;
    const words = because.get(node);
    // also what another delivery brought, which may have failed here: the same name is the same triage
    await ports.work.start(incident, {
      kind: "triage",
      request: { incident, target: node, requester: PAGER, place: threadOf(root), ...(words === undefined ? {} : { because: words }) },
    });
  }
  if (overtaken.length > 0) await changeStorm(ports, id, (stored) => stored && withAlerts(stored, overtaken));
  await close(
    ports,
    overtaken.filter(({ status }) => status === "resolved"),
  );
  ports.log("info", "a page was taken", {
    run: delivery,
    source: given.source,
    alerts: given.alerts.length,
    nodes: wanted.length,
    clusters: Object.keys(config.clusters).length,
  });
  return started;
}

/** True if somebody else is to be called where nobody takes it on. */
const escalates = (alert: PageAlert, route: PageRoute | undefined): boolean => alert.severity === "critical" && route?.escalate !== undefined;

/** As many alerts of one message are escalated as nodes are examined: a storm calls nobody forty times. */
function withEscalations(storm: Storm, given: Page, told: readonly Told[], { routes, maxTargets }: NonNullable<Config["pages"]>): Storm {
  const keys = told
    .map((one) => alertAt(given, one))
    .filter((alert) => escalates(alert, routeOf(routes, given.source, alert)))
    .map(({ key }) => alertKey(given.source, key));
  return { ...storm, escalated: [...new Set([...storm.escalated, ...keys])].slice(0, maxTargets) };
}

async function startEscalation(ports: Ports, given: Page, alert: PageAlert, route: PageRoute | undefined, storm: Storm, root: MessageRef): Promise<void> {
  const { source } = given;
  const { key, title, severity, url } = alert;
  if (route?.escalate === undefined || !escalates(alert, route) || !storm.escalated.includes(alertKey(source, key))) return;
  const { after, by, to } = route.escalate;
  await ports.work.start(`escalate-${sha256(`${storm.id}\n${source}\n${key}`).slice(0, 16)}`, {
    kind: "escalate",
    escalation: {
      source,
      key,
      title,
      severity,
      place: threadOf(root),
      afterMinutes: milliseconds(after) / 60_000,
      by,
      ...(to === undefined ? {} : { to }),
      ...(route.onCall === undefined ? {} : { onCall: route.onCall }),
      ...(url === undefined ? {} : { url }),
    },
  });
}

/** Not all at once: a store has its limits. */
async function inChunks<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += AT_ONCE) await Promise.all(items.slice(at, at + AT_ONCE).map(run));
}
