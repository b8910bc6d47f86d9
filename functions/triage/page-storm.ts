import { canonical, sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import type { Context } from "./context.ts";
import type { Incident, Message, MessageRef, PageAlert, Ports } from "./ports.ts";
import { rootMessage } from "./report.ts";

/**
 * Alerts that come within one window, in one channel: one message, which is edited, with one thread. However many deliveries there are, one of their
 * executions at a time draws the message, and never more often than every two seconds.
 */

/** Documents of this kind: by `now/<channel>` which window is open, by `storm/<id>` all of it. */
const STORM = "storm";
const keyOf = (id: string): string => `storm/${id}`;

export interface Storm {
  readonly id: string;
  readonly channel: string;
  readonly openedAt: string;
  /** The delivery that posts the message, and since when it is the one; "" if it could not. */
  readonly opener: string;
  readonly openerAt: string;
  readonly root?: MessageRef;
  /** Short hash of an alert → its status: "f", "a", "r". At most a thousand. */
  readonly alerts: Readonly<Record<string, string>>;
  /** Those that are shown. */
  readonly shown: readonly { readonly hash: string; readonly source: string; readonly title: string; readonly severity: PageAlert["severity"] }[];
  /** cluster/name → the incident that examines it; without one there were too many. */
  readonly nodes: Readonly<Record<string, StormNode>>;
  /** What could not be found out, for people. */
  readonly problems: readonly string[];
  /** Delivery → alerts that it left out. */
  readonly left: Readonly<Record<string, number>>;
  /** Alerts for which somebody else is called if nobody takes them on. */
  readonly escalated: readonly string[];
  /** Counts changes. */
  readonly changed: number;
  readonly drawn?: { readonly hash: string; readonly at: number };
  /** Who draws, and until when it is believed to (milliseconds since 1970). */
  readonly drawer?: { readonly by: string; readonly until: number };
}
export interface StormNode {
  readonly incident?: string;
  /** The delivery that brought it. */
  readonly by: string;
  readonly at: number;
}

/** Of one message: the document stays far below its 100 KB. */
const [MAX_ALERTS, MAX_SHOWN, MAX_NODES, MAX_PROBLEMS, MAX_DELIVERIES] = [1000, 10, 200, 10, 100];
/** Milliseconds after which another delivery posts the message that the first one did not. */
const OPENER_MS = 60_000;
/** Milliseconds between two edits of a message: Slack takes about one a second and channel. */
const PACE_MS = 2000;
/** Milliseconds that whoever draws may be silent: three times its longest pause. */
const DRAWER_MS = 90_000;
/** Seconds between two looks, rising; then the last one again. And looks, which make a quarter of an hour. */
const PAUSES = [2, 3, 5, 5, 10, 10, 15, 20, 30] as const;
const MAX_LOOKS = 40;
/** Milliseconds after which an incident that never opened is not waited for. */
const NEVER_MS = 120_000;

/** An alert as a message shows it. */
export interface Shown {
  readonly source: string;
  readonly key: string;
  readonly title: string;
  readonly severity: PageAlert["severity"];
  readonly status: PageAlert["status"];
}
const hashOf = ({ source, key }: Pick<Shown, "source" | "key">): string => sha256(`${source}\n${key}`).slice(0, 10);

/** The window that is open in a channel, with these alerts in it; opens one if there is none. */
export async function joinStorm(
  { store }: Pick<Ports, "store">,
  {
    channel,
    delivery,
    alerts,
    left,
    now,
    windowMs,
  }: { channel: string; delivery: string; alerts: readonly Shown[]; left: number; now: Date; windowMs: number },
): Promise<Storm> {
  const at = now.toISOString();
  const open = await store.change<{ id: string; openedAt: string }>(STORM, `now/${channel}`, (stored) =>
    stored !== undefined && now.getTime() - Date.parse(stored.openedAt) < windowMs
      ? stored
      : { id: `page-${sha256(`${channel}\n${at}\n${delivery}`).slice(0, 12)}`, openedAt: at },
  );
  const { id, openedAt } = open as { id: string; openedAt: string };
  return changeStorm({ store }, id, (stored) => {
    const old: Storm = stored ?? {
      id,
      channel,
      openedAt,
      opener: delivery,
      openerAt: at,
      alerts: {},
      shown: [],
      nodes: {},
      problems: [],
      left: {},
      escalated: [],
      changed: 0,
    };
    const more = left > 0 && Object.keys(old.left).length < MAX_DELIVERIES ? { [delivery]: left } : {};
    // one at a time: two that post at the same moment would be two messages
    const taken = isAbandoned(old, now) ? { opener: delivery, openerAt: at } : {};
    return { ...withAlerts(old, alerts), ...taken, left: { ...old.left, ...more } };
  }) as Promise<Storm>;
}

/** True if whoever was to post the message has given up, or is silent for too long. */
export const isAbandoned = ({ root, opener, openerAt }: Storm, now: Date): boolean =>
  root === undefined && (opener === "" || now.getTime() - Date.parse(openerAt) >= OPENER_MS);

/** A delivery could not post the message of a channel's window: the next one is to try. */
export async function giveUp(ports: Pick<Ports, "store">, channel: string, delivery: string): Promise<void> {
  const open = await ports.store.kept<{ id: string }>(STORM, `now/${channel}`);
  if (open !== undefined)
    await changeStorm(ports, open.id, (stored) => (stored?.opener === delivery && stored.root === undefined ? { ...stored, opener: "" } : stored));
}

/** Changes a message's document; undefined if there is none, and `change` is told so. */
export async function changeStorm(
  { store }: Pick<Ports, "store">,
  id: string,
  change: (stored: Storm | undefined) => Storm | undefined,
): Promise<Storm | undefined> {
  return store.change<Storm>(STORM, keyOf(id), (stored) => {
    const made = change(stored);
    return made && { ...made, changed: (stored?.changed ?? 0) + 1 };
  });
}
export const stormOf = async ({ store }: Pick<Ports, "store">, id: string): Promise<Storm | undefined> => store.kept<Storm>(STORM, keyOf(id));

/** What alerts have become. One that is not in it yet is added. */
export function withAlerts(storm: Storm, alerts: readonly Shown[]): Storm {
  const all = new Map(Object.entries(storm.alerts));
  const shown = [...storm.shown];
  const worstFirst = [...alerts].sort((a, b) => RANK.indexOf(a.severity) - RANK.indexOf(b.severity));
  for (const alert of worstFirst) {
    const hash = hashOf(alert);
    if (!all.has(hash) && all.size >= MAX_ALERTS) continue;
    all.set(hash, alert.status.charAt(0));
    if (shown.length < MAX_SHOWN && !shown.some((one) => one.hash === hash))
      shown.push({ hash, source: alert.source, title: alert.title.slice(0, 150), severity: alert.severity });
  }
  return { ...storm, alerts: Object.fromEntries(all), shown };
}

/** Takes nodes in: the first `most` of a message are examined, by the delivery that brought them. */
export function withNodes(storm: Storm, nodes: readonly string[], { delivery, most, now }: { delivery: string; most: number; now: Date }): Storm {
  const all = new Map(Object.entries(storm.nodes));
  for (const name of nodes) {
    const known = all.get(name);
    const room = [...all.values()].filter(({ incident }) => incident !== undefined).length < most;
    if (known?.incident !== undefined || (known === undefined && all.size >= MAX_NODES) || (known !== undefined && !room)) continue;
    const incident = `inc-${sha256(`${storm.id}\n${name}`).slice(0, 12)}`;
    all.set(name, { ...(room ? { incident } : {}), by: delivery, at: now.getTime() });
  }
  return { ...storm, nodes: Object.fromEntries(all) };
}

export const withProblems = (storm: Storm, problems: readonly string[]): Storm => ({
  ...storm,
  problems: [...new Set([...storm.problems, ...problems])].slice(0, MAX_PROBLEMS),
});

/** True if none of its alerts fires any more. */
export const isAllResolved = ({ alerts }: Storm): boolean => Object.values(alerts).every((status) => status === "r");

/** Posts the message, once. */
export async function postStorm(ports: Ports, storm: Storm): Promise<Storm> {
  const message = stormMessage(storm, []);
  const root = await ports.chat.post(`${storm.id}/root`, { channel: storm.channel }, message);
  const drawn = { hash: sha256(canonical(message.data)), at: ports.now().getTime() };
  return (await changeStorm(ports, storm.id, (stored) => stored && { ...stored, root, drawn })) as Storm;
}

/**
 * Draws the message anew as long as something changes in it: alerts, nodes, what their triages find. Returns at once if another execution does.
 * @param name of the steps: unique in the execution @param me of the execution
 */
export async function keepDrawn({ durable, ports }: Context, id: string, name: string, me: string): Promise<void> {
  for (let look = 1; look <= MAX_LOOKS; look++) {
    const seconds = await durable.step(`${name}-draw-${look}`, () => draw(ports, id, me, look));
    if (seconds === 0) return;
    await durable.wait(`${name}-drawn-${look}`, seconds);
  }
  await durable.step(`${name}-draw-no-more`, async () => {
    await changeStorm(ports, id, (stored) => stored && without(stored, me));
    return null;
  });
}

function without(storm: Storm, me: string): Storm {
  const { drawer, ...rest } = storm;
  return drawer?.by === me ? rest : storm;
}

/** Draws once, if this execution may. Returns after how many seconds to look again; 0: no more. */
async function draw(ports: Ports, id: string, me: string, look: number): Promise<number> {
  const now = ports.now().getTime();
  let mine = false;
  const storm = await ports.store.change<Storm>(STORM, keyOf(id), (stored) => {
    mine = stored?.root !== undefined && (stored.drawer === undefined || stored.drawer.by === me || stored.drawer.until < now);
    return mine && stored !== undefined ? { ...stored, drawer: { by: me, until: now + DRAWER_MS } } : stored;
  });
  if (!mine || storm?.root === undefined) return 0;
  const pause = PAUSES[Math.min(look, PAUSES.length) - 1] ?? 30;
  const wait = storm.drawn === undefined ? 0 : storm.drawn.at + PACE_MS - now;
  if (wait > 0) return Math.max(1, Math.ceil(wait / 1000));
  const rows = await rowsOf(ports, storm);
  const message = stormMessage(storm, rows);
  const hash = sha256(canonical(message.data));
  if (hash !== storm.drawn?.hash) await ports.chat.update(storm.root, message);
  const settled = rows.every((row) => row.settled);
  let more = false;
  await ports.store.change<Storm>(STORM, keyOf(id), (stored) => {
    more = !settled || (stored !== undefined && stored.changed !== storm.changed);
    const drawn = stored && { ...stored, drawn: { hash, at: hash === storm.drawn?.hash ? storm.drawn.at : now } };
    return drawn && (more ? drawn : without(drawn, me));
  });
  return more ? pause : 0;
}

/** A node that is examined, as the message has it. */
interface Row {
  readonly name: string;
  readonly icon: string;
  readonly words: string;
  readonly settled: boolean;
}

const UNDER_WAY: ReadonlySet<Incident["state"]> = new Set(["open", "collecting"]);

async function rowsOf(ports: Ports, storm: Storm): Promise<readonly Row[]> {
  const examined = Object.entries(storm.nodes).filter(([, { incident }]) => incident !== undefined);
  return Promise.all(
    examined.map(async ([name, { incident: id, at }]) => {
      const incident = await ports.store.incident(id as string);
      if (incident === undefined) return { name, icon: "hourglass_flowing_sand", words: "being examined", settled: ports.now().getTime() - at > NEVER_MS };
      if (UNDER_WAY.has(incident.state)) return { name, icon: "hourglass_flowing_sand", words: "being examined", settled: false };
      if (incident.diagnosis === undefined) return { name, icon: "grey_question", words: incident.problem ?? "it could not be looked at", settled: true };
      // what was found stays true; what became of it since is in the thread
      const { icon, state, headline } = rootMessage({ ...incident, state: "diagnosed" }, await loadDiagnosis(ports, incident.diagnosis)).data;
      const words = headline === "" ? String(state) : `${String(state)}: ${String(headline)}`;
      return { name, icon: String(icon), words, settled: true };
    }),
  );
}

const STATUS_WORDS: Readonly<Record<string, string>> = { f: "firing", a: "acknowledged", r: "resolved" };
const SEVERITY_ICONS: Readonly<Record<PageAlert["severity"], string>> = { critical: "rotating_light", warning: "warning", info: "information_source" };
const RANK: readonly PageAlert["severity"][] = ["critical", "warning", "info"];
/** Names of nodes that are not examined. */
const MAX_SKIPPED = 10;

const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? "" : "s"}`;

function stormMessage(storm: Storm, rows: readonly Row[]): Message {
  const statuses = Object.values(storm.alerts);
  const leftOut = Object.values(storm.left).reduce((sum, more) => sum + more, 0);
  const nodes = Object.entries(storm.nodes);
  const skipped = nodes.filter(([, { incident }]) => incident === undefined).map(([name]) => name);
  const triages = nodes.length - skipped.length;
  const over = statuses.length >= MAX_ALERTS ? "more than " : "";
  const summary = `${over}${count(statuses.length + leftOut, "alert")}, ${count(nodes.length, "node")}, ${count(triages, "triage")}`;
  const worst = RANK.find((severity) => storm.shown.some((one) => one.severity === severity)) ?? "warning";
  const firing = statuses.filter((status) => status === "f").length;
  const icon = isAllResolved(storm) ? "white_check_mark" : firing === 0 ? "eyes" : SEVERITY_ICONS[worst];
  const [first] = storm.shown;
  const alone = statuses.length === 1 && leftOut === 0 && first !== undefined;
  const counted = ["f", "a", "r"].flatMap((status) => {
    const number = statuses.filter((one) => one === status).length;
    return number === 0 ? [] : [`${number} ${STATUS_WORDS[status] ?? ""}`];
  });
  return {
    template: "page",
    data: {
      icon,
      headline: alone ? first.title : summary,
      counts: alone ? `${counted.join("").replace(/^1 /, "")} · ${count(nodes.length, "node")}, ${count(triages, "triage")}` : counted.join(" · "),
      alerts: alone
        ? [{ icon: SEVERITY_ICONS[first.severity], title: first.severity, words: `by ${first.source}` }]
        : storm.shown.map(({ hash, source, title, severity }) => {
            const status = storm.alerts[hash] ?? "f";
            const mark = status === "r" ? "white_check_mark" : status === "a" ? "eyes" : SEVERITY_ICONS[severity];
            return { icon: mark, title, words: `${source}, ${severity}, ${STATUS_WORDS[status] ?? ""}` };
          }),
      alertsMore: Math.max(0, statuses.length - storm.shown.length) + leftOut,
      nodes: rows.map(({ name, icon: mark, words }) => ({ icon: mark, name, words: words.slice(0, 300) })),
      skipped: skipped.slice(0, MAX_SKIPPED).join(", "),
      skippedMore: Math.max(0, skipped.length - MAX_SKIPPED),
      triages,
      problems: storm.problems,
      run: storm.id,
    },
  };
}
