import { loadDiagnosis } from "./collect.ts";
import { type Context, incidentOf, type TriageResult } from "./context.ts";
import type { DigestRequest, Incident, Ports } from "./ports.ts";
import { openIncidents } from "./register.ts";
import { rootMessage } from "./report.ts";

/** Incidents that one message lists; of more it gives the number. Slack takes 50 blocks, and nobody reads 50. */
const SHOWN = 15;
/** Channels that are told, the fullest first. */
const MOST_CHANNELS = 50;
/** Newest incidents among which those are looked for whose break-glass approval nobody reviewed. */
const RECENT = 500;

/** Incidents of one channel. */
interface Listed {
  readonly channel: string;
  /** Ids of those that are shown, oldest first. */
  readonly incidents: readonly string[];
  readonly more: number;
}

/**
 * Sums up what is open, once a day, in each channel that has any. Without a day it is asked whether it is time: at the hour that `digest` of netcheck.yaml names
 * the day's own execution is started, whose name is the day, so that however often this is asked there is one. A channel without open incidents is told nothing.
 */
export async function digest(context: Context, { day }: DigestRequest): Promise<TriageResult> {
  const { durable, ports } = context;
  if (day === undefined) return { outcome: await durable.step("due", () => startIfDue(ports)) };
  const channels = await durable.step("open-incidents", () => channelsOf(ports));
  let failed = 0;
  for (const [index, listed] of channels.entries()) {
    try {
      await durable.step(`digest-${index + 1}`, async () => {
        await ports.chat.post(`digest/${day}/${listed.channel}`, { channel: listed.channel }, { template: "digest", data: await digestData(ports, listed) });
        return null;
      });
    } catch (error) {
      failed += 1;
      // a channel that the bot has left keeps no other from its digest
      ports.log("warn", "a digest could not be posted", { channel: listed.channel, problem: (error as Error).message });
    }
  }
  return { outcome: channels.length === 0 ? "nothing-open" : failed === channels.length ? "failed" : "told" };
}

async function startIfDue(ports: Ports): Promise<"off" | "not-now" | "started"> {
  const { digest: wanted } = await ports.config();
  if (wanted === undefined) return "off";
  const now = ports.now();
  if (!isDue(now, wanted)) return "not-now";
  const { day } = localTime(now, wanted.timeZone);
  await ports.work.start(`digest-${day}`, { kind: "digest", digest: { day } });
  return "started";
}

/** True in the hour that is wanted; where a change of the clocks leaves that hour out, in the one after it. */
export function isDue(now: Date, { hour, timeZone }: { readonly hour: number; readonly timeZone: string }): boolean {
  const here = localTime(now, timeZone);
  const before = localTime(new Date(now.getTime() - 60 * 60_000), timeZone);
  return here.hour === hour || (here.day === before.day && before.hour < hour && hour < here.hour);
}

/** Date and hour of a moment in a time zone. */
export function localTime(at: Date, timeZone: string): { readonly day: string; readonly hour: number } {
  const options = { timeZone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", hourCycle: "h23" } as const;
  const parts = Object.fromEntries(new Intl.DateTimeFormat("en", options).formatToParts(at).map(({ type, value }) => [type, value]));
  return { day: `${parts["year"]}-${parts["month"]}-${parts["day"]}`, hour: Number(parts["hour"]) };
}

/** What is open or not reviewed, by channel. */
async function channelsOf(ports: Ports): Promise<readonly Listed[]> {
  const open = (await openIncidents(ports.store, ports.now())).map(({ incident }) => incident);
  const unreviewed = (await ports.store.incidents(RECENT)).filter(({ review }) => review === "pending").map(({ id }) => id);
  const byChannel = new Map<string, Incident[]>();
  for (const id of new Set([...open, ...unreviewed])) {
    const incident = await ports.store.incident(id);
    const channel = incident?.thread?.channel;
    if (incident !== undefined && channel !== undefined && channel !== "cli") byChannel.set(channel, [...(byChannel.get(channel) ?? []), incident]);
  }
  return [...byChannel]
    .sort(([, a], [, b]) => b.length - a.length)
    .slice(0, MOST_CHANNELS)
    .map(([channel, incidents]) => {
      // what waits for a person comes first
      const sorted = incidents.sort((a, b) => urgency(b) - urgency(a) || (a.createdAt < b.createdAt ? -1 : 1));
      return { channel, incidents: sorted.slice(0, SHOWN).map(({ id }) => id), more: Math.max(0, incidents.length - SHOWN) };
    });
}

const urgency = ({ state, review }: Incident): number => (state === "awaiting-approval" ? 2 : 0) + (review === "pending" ? 1 : 0);

async function digestData(ports: Ports, { incidents, more }: Listed): Promise<Record<string, unknown>> {
  const items = [];
  for (const id of incidents) {
    const incident = await incidentOf(ports, id);
    const diagnosis = incident.diagnosis === undefined ? undefined : await loadDiagnosis(ports, incident.diagnosis).catch(() => undefined);
    const { icon, state, headline } = rootMessage(incident, diagnosis).data;
    const link = incident.thread === undefined ? undefined : await ports.chat.link?.(incident.thread).catch(() => undefined);
    const since = Math.floor(Date.parse(incident.createdAt) / 1000);
    items.push({
      id,
      target: incident.target,
      icon,
      state,
      headline,
      link: link ?? "",
      since,
      sinceText: incident.createdAt,
      approval: await approvalData(ports, incident),
    });
  }
  return { items, more, count: items.length + more, one: items.length + more === 1 };
}

/** Until when an approval is waited for; null if none is. */
async function approvalData(ports: Ports, { state, proposal: id }: Incident): Promise<{ readonly until: number; readonly untilText: string } | null> {
  const proposal = state === "awaiting-approval" && id !== undefined ? await ports.store.proposal(id) : undefined;
  return proposal?.state === "pending" ? { until: Math.floor(Date.parse(proposal.expiresAt) / 1000), untilText: proposal.expiresAt } : null;
}
