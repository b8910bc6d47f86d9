import type { MessageRef, Page, PageAlert } from "./ports.ts";

/** Documents of this kind, by source/key: what is known of an alert over its whole life. */
export const ALERT = "alert";
export const alertKey = (source: string, key: string): string => `${source}/${key}`.slice(0, 500);

/** What a delivery means for an alert. */
export type News =
  /** It is to be examined. */
  | "new"
  /** It fires, still or again, and was examined on the same nodes just now. */
  | "again"
  | "acknowledged"
  | "resolved"
  /** Older than what is known already, or of an alert that never fired here. */
  | "old";

/** What is known of an alert. What the monitoring system said is hostile. */
export interface KnownAlert {
  readonly source: Page["source"];
  readonly key: string;
  readonly title: string;
  readonly severity: PageAlert["severity"];
  readonly status: PageAlert["status"];
  readonly ref?: string;
  readonly url?: string;
  /** Since when it has that status, by the sender's clock; ISO. */
  readonly at: string;
  /** How often it was to be examined. */
  readonly times: number;
  /** Node, as the alert names it → when it was last to be examined, ISO by our clock; "" is an alert that names none. */
  readonly examined: Readonly<Record<string, string>>;
  /** Ids, the newest last. */
  readonly incidents: readonly string[];
  /** Id of the page message that it stands in (page-storm.ts), and that message. */
  readonly storm?: string;
  readonly thread?: MessageRef;
  /** The last deliveries, the newest last, and what they meant: repeated they mean the same. */
  readonly heard: readonly Hearing[];
}
export interface Hearing {
  readonly delivery: string;
  readonly news: News;
  /** Nodes that are to be examined. */
  readonly names: readonly string[];
  readonly storm?: string;
}

/** Nodes and incidents that are remembered of one alert. */
const MAX_REMEMBERED = 50;
/** Deliveries that are. */
const MAX_HEARD = 5;

export interface Heard {
  readonly source: Page["source"];
  readonly alert: PageAlert;
  /** Names the delivery: the same, repeated, changes nothing. */
  readonly delivery: string;
  /** Of its nodes. */
  readonly names: readonly string[];
  readonly now: Date;
  readonly cooldownMs: number;
}

/** What is known after a delivery; undefined: still nothing. */
export function heard(known: KnownAlert | undefined, { source, alert, delivery, names, now, cooldownMs }: Heard): KnownAlert | undefined {
  if (hearingOf(known, delivery) !== undefined) return known;
  const { key, title, severity, status, ref, url, at } = alert;
  if (known === undefined && status !== "firing") return undefined;
  const from = known?.storm === undefined ? {} : { storm: known.storm };
  // deliveries overtake each other
  if (known !== undefined && known.status !== status && at < known.at)
    return { ...known, heard: [...known.heard, { delivery, news: "old" as const, names: [], ...from }].slice(-MAX_HEARD) };
  const examined = known?.examined ?? {};
  const due = status === "firing" ? (names.length === 0 ? [""] : names).filter((name) => !isRecent(examined, name, now, cooldownMs)) : [];
  const news: News = status !== "firing" ? status : due.length > 0 ? "new" : "again";
  return {
    source,
    key,
    title,
    severity,
    status,
    ...(ref === undefined ? {} : { ref }),
    ...(url === undefined ? {} : { url }),
    at,
    times: (known?.times ?? 0) + (news === "new" ? 1 : 0),
    examined: newest({ ...examined, ...Object.fromEntries(due.map((name) => [name, now.toISOString()])) }),
    incidents: known?.incidents ?? [],
    ...from,
    ...(known?.thread === undefined ? {} : { thread: known.thread }),
    heard: [...(known?.heard ?? []), { delivery, news, names: due.filter((name) => name !== ""), ...from }].slice(-MAX_HEARD),
  };
}

/** What a delivery meant; undefined if it was not heard, or long ago. */
export const hearingOf = (known: KnownAlert | undefined, delivery: string): Hearing | undefined => known?.heard.find((one) => one.delivery === delivery);

const isRecent = (examined: KnownAlert["examined"], name: string, now: Date, cooldownMs: number): boolean =>
  Object.hasOwn(examined, name) && now.getTime() - Date.parse(examined[name] ?? "") < cooldownMs;

const newest = (examined: KnownAlert["examined"]): KnownAlert["examined"] =>
  Object.fromEntries(
    Object.entries(examined)
      .sort(([, a], [, b]) => (a < b ? 1 : -1))
      .slice(0, MAX_REMEMBERED),
  );

/** It stands in a page message now, and these incidents answer it. */
export const placed = (known: KnownAlert | undefined, storm: string, thread: MessageRef, incidents: readonly string[]): KnownAlert | undefined =>
  known && { ...known, storm, thread, incidents: [...new Set([...known.incidents, ...incidents])].slice(-MAX_REMEMBERED) };

/** What was to be examined was not, for a fault of ours: the next delivery counts as the first. */
export function notExamined(known: KnownAlert | undefined, delivery: string): KnownAlert | undefined {
  const hearing = hearingOf(known, delivery);
  if (known === undefined || hearing === undefined) return known;
  const undone = new Set(hearing.names.length === 0 ? [""] : hearing.names);
  const examined = Object.fromEntries(Object.entries(known.examined).filter(([name]) => !undone.has(name)));
  return { ...known, examined, heard: known.heard.filter((one) => one !== hearing) };
}
