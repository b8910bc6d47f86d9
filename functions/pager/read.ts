import { createHash } from "node:crypto";
import { PAGE_MARK, type Page, type PageAlert } from "../triage/ports.ts";
import type { Delivery } from "./source.ts";

/** What others send, taken apart without trust: what is not as expected is left out, and everything is bounded. */

/** Alerts of one page, labels of one alert, characters of one value. */
const [MAX_ALERTS, MAX_LABELS, MAX_VALUE] = [200, 64, 1000];
/** Characters of all labels of one alert, and of a page as JSON: it becomes the payload of an execution (256 KB), and an alert a document in the store (100 KB). */
const [MAX_LABEL_CHARACTERS, MAX_PAGE] = [16_000, 200_000];
/** Names that mean something to JavaScript. */
const RESERVED = new Set(["__proto__", "constructor", "prototype"]);

type Fields = Readonly<Record<string, unknown>>;
/** The fields of an object; none of anything else. */
export const fields = (value: unknown): Fields => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {});
export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
/** A text or a number as text, cut; "" of anything else. */
export const text = (value: unknown, most = MAX_VALUE): string =>
  typeof value === "string" ? value.slice(0, most) : typeof value === "number" || typeof value === "boolean" ? String(value) : "";

/** Undefined of what is no JSON. */
export function parseJson(body: Buffer | string): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

/** How many alerts of a group are read at all, and how many more there are. */
export function alertsOf(group: Fields): { readonly alerts: readonly unknown[]; readonly left: number } {
  const all = list(group["alerts"]);
  const alerts = all.slice(0, MAX_READ);
  const cut = group["truncatedAlerts"];
  return { alerts, left: all.length - alerts.length + (typeof cut === "number" ? Math.floor(cut) : 0) };
}
const MAX_READ = 2000;

/** Labels from several objects; of two with one name the first counts. Values that are no texts are left out, and what is beyond the limits. */
export function labels(...objects: readonly unknown[]): Record<string, string> {
  const found = new Map<string, string>();
  let room = MAX_LABEL_CHARACTERS;
  for (const [name, given] of objects.flatMap((object) => Object.entries(fields(object)))) {
    const value = text(given);
    room -= name.length + value.length;
    if (name === "" || name.length > 100 || RESERVED.has(name) || value === "" || found.has(name) || found.size >= MAX_LABELS || room < 0) continue;
    found.set(name, value);
  }
  return Object.fromEntries(found);
}

/** ISO; of what is no time: now. A time that is still to come is now, too: else one alert of a clock that is wrong would hide all that come after it. */
export function time(value: unknown, now: number): string {
  const at = typeof value === "number" ? value : Date.parse(text(value, 64));
  return new Date(Number.isFinite(at) && at > 0 ? Math.min(at, now) : now).toISOString();
}

/** The severity that the words of many systems mean: "page", "P1", "sev2", "high". What nobody knows is a warning. */
export function severity(...words: readonly string[]): PageAlert["severity"] {
  const said = words.join(" ").toLowerCase();
  if (/\b(?:critical|crit|page|emergency|fatal|disaster|error|high|p-?[12]|sev-?[012])\b/.test(said)) return "critical";
  return /\b(?:info|informational|notice|none|low|debug|p-?[45]|sev-?[45])\b/.test(said) ? "info" : "warning";
}

/** An address that may be shown; undefined of any other. */
export const link = (value: unknown): { url?: string } => {
  const url = text(value, 2000);
  return /^https?:\/\/[^\s<>|"]+$/.test(url) ? { url } : {};
};

/** A key within its limits; a longer one by its hash. */
export const keyed = (key: string): string => (key.length <= 300 ? key : `sha256:${sha256(key)}`);

/** Id of a delivery that has none of its own: its bytes, within ten minutes. Who gets no answer sends the same again at once; what comes later is news. */
export const deliveryId = ({ body, now }: Delivery): string => `${sha256(body).slice(0, 32)}-${Math.floor(now / 600_000)}`;

/** A page within all limits. Firing alerts come first, so that none is left out for one that is over. */
export function pageOf(source: string, id: string, alerts: readonly PageAlert[], left = 0): Page {
  const firing = alerts.filter(({ status }) => status === "firing");
  const sorted = [...firing, ...alerts.filter(({ status }) => status !== "firing")];
  const taken: PageAlert[] = [];
  let room = MAX_PAGE;
  for (const alert of sorted.slice(0, MAX_ALERTS)) {
    room -= JSON.stringify(alert).length;
    if (room < 0) break;
    taken.push(alert);
  }
  return { source, id, alerts: taken, more: Math.min(1_000_000, Math.max(0, left) + alerts.length - taken.length) };
}

/** Where our own mark may stand, besides title and key. */
const MARKED = ["incident_key", "dedup_key", "alias"];
/** True of what netcheck itself wrote into the monitoring system. */
export const isOurs = ({ key, title, labels: given }: PageAlert): boolean =>
  [key, title, ...MARKED.map((name) => given[name] ?? "")].some((words) => words.trimStart().toLowerCase().startsWith(PAGE_MARK));

export const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");
