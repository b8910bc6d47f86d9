import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed } from "./fact.ts";
import { epochOf } from "./log-time.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * What the services that set the clock said last in their logs: they say once that they lost their servers, and once that they have one again. And what others
 * told the node's programs of its clock, in numbers.
 *
 *     chronyd[17789]: Can't synchronise: no majority
 *     systemd-timesyncd[412]: Timed out waiting for reply from 192.0.2.7:123 (ntp.example.net).        (again and again)
 *     kubelet[1544]: … Signature expired: 20260618T083941Z is now earlier than 20260618T084206Z (20260618T084706Z - 5 min.)
 */
const Lost = z.object({
  line: z.int(),
  /** "chronyd", "systemd-timesyncd". */
  program: z.string(),
  message: z.string(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const Refusal = z.object({
  line: z.int(),
  program: z.string(),
  message: z.string(),
  /** "server": one of AWS that was asked; "certificate": one that is not valid before a day weeks ahead. */
  by: z.enum(["server", "certificate"]),
  /** How far, in seconds without a sign. */
  seconds: z.number(),
  /** True where the clock is ahead. */
  ahead: z.boolean(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const TimeService = z.object({
  lost: z.array(Lost),
  /** Services that need not tell the kernel, and said last that they follow a server. */
  following: z.array(z.object({ line: z.int(), program: z.string(), message: z.string() })),
  /** Where the clock was found to be far away from the time of others. */
  refusals: z.array(Refusal),
});
type TimeService = z.infer<typeof TimeService>;

interface Sources {
  readonly "agent-log"?: Placed<AgentLog>;
}

/** What each program says without its servers, with one, and how often it has to say the first. */
const WORDS: Readonly<Record<string, { readonly lost: RegExp; readonly found: RegExp; readonly follows?: RegExp; readonly times: number }>> = {
  // it puts the time in front where it writes a log of its own; a new start begins anew
  chronyd: {
    lost: /^(?:\d{4}-\S{10,20} )?Can't synchronise: /,
    found: /^(?:\d{4}-\S{10,20} )?(?:Selected source |chronyd (?:version|exiting))/,
    // without `rtcsync` in its configuration the kernel never hears of it
    follows: /^(?:\d{4}-\S{10,20} )?Selected source /,
    times: 1,
  },
  "systemd-timesyncd": {
    lost: /^Timed out waiting for reply from /,
    found: /^(?:Initial )?(?:clock )?[Ss]ynchroni[sz](?:ed|ation) to (?:time server)?|^Contacted time server /,
    times: 3,
  },
};

export const timeService = defineDerivedFact<TimeService>({
  id: "time-service",
  title: "Time services that said last that they have no server, or have one, and what others said of the clock",
  // the state of the clock itself is what counts: without it the logs are only a part of what there is to know
  from: ["clock", "agent-log"],
  optional: ["agent-log"],
  inPart: ["agent-log"],
  schema: TimeService,
  derive(values) {
    const { rows = [], logs = [] } = (values as Sources)["agent-log"] ?? {};
    const lost: TimeService["lost"] = [];
    const following: TimeService["following"] = [];
    for (const [program, { lost: gone, found, follows, times }] of Object.entries(WORDS)) {
      // of a log that was cut the newest lines are missing
      if (logs.some((log) => log.unit === program && log.cut)) continue;
      const own = rows.filter((row) => row.unit === program && (gone.test(row.message) || found.test(row.message)));
      const dated = own.every((row) => row.age !== undefined);
      const ordered = dated ? own.toSorted((a, b) => (b.age ?? 0) - (a.age ?? 0)) : own;
      const since = ordered.slice(ordered.findLastIndex((row) => found.test(row.message)) + 1);
      const last = ordered.at(-1);
      if (last === undefined) continue;
      const said = { ...placed(last), program, message: last.message };
      if (since.length >= times) lost.push({ ...said, ...present({ age: last.age }) });
      else if (since.length === 0 && follows?.test(last.message)) following.push(said);
    }
    return { lost, following, refusals: refusalsIn(rows) };
  },
});

type LogRow = Placed<AgentLog>["rows"][number];
type Refusal = z.infer<typeof Refusal>;

/** The time of the request, and the server's own. */
const SIGNATURE = /Signature (expired|not yet current): (\d{8}T\d{6}Z) is (?:now earlier|still later) than \d{8}T\d{6}Z \((\d{8}T\d{6}Z) [+-] \d{1,3} min/;
const CERTIFICATE = /is not yet valid: current time (\S{19,40}) is before (\S{19,30})/;
/** Seconds. Nobody makes a certificate that begins weeks later; one that begins in an hour was made by a clock that was ahead. */
const WEEKS = 30 * 86_400;
/** Seconds: a request is sent when it is signed. */
const AT_ONCE = 60;
/** Seconds: the zones of the world are apart by multiples of this. */
const ZONES_APART = 900;

function refusalsIn(rows: readonly LogRow[]): Refusal[] {
  const found: Refusal[] = [];
  /** How far off requests were that may have waited before they were sent, by the time they were signed. */
  const late = new Map<string, { refusal: Refusal; seconds: number }>();
  for (const row of rows) {
    const { message } = row;
    const base = { ...placed(row), program: row.unit, message: message.slice(0, 1000), ...present({ age: row.age }) };
    const [, , signed = "", served = ""] = SIGNATURE.exec(message) ?? [];
    const [own, asked] = [secondsOf(signed), secondsOf(served)];
    if (own !== undefined && asked !== undefined) {
      const refusal: Refusal = { ...base, by: "server", seconds: Math.abs(asked - own), ahead: own > asked };
      if (own > asked || (saidAt(row, own) && !saidAt(row, asked))) found.push(refusal);
      else late.set(signed, { refusal, seconds: asked - own });
    }
    const [, current = "", begins = ""] = CERTIFICATE.exec(message) ?? [];
    const ahead = (Date.parse(begins) - Date.parse(current)) / 1000;
    if (ahead >= WEEKS) found.push({ ...base, by: "certificate", seconds: Math.round(ahead), ahead: false });
  }
  // a queue is worked off: requests that are late by the same time come from a clock that is
  const [first, ...others] = late.values();
  if (found.length === 0 && first !== undefined && others.some(({ seconds }) => Math.abs(seconds - first.seconds) <= 2)) found.push(first.refusal);
  return found;
}

/** True if the line of the log may have been written at that moment, in whatever zone. */
function saidAt({ time = "" }: LogRow, moment: number): boolean {
  const said = epochOf(time, moment);
  if (said === undefined) return false;
  const apart = Math.abs(said - moment) % ZONES_APART;
  return Math.min(apart, ZONES_APART - apart) <= AT_ONCE;
}

/** `20260618T083941Z`. */
function secondsOf(stamp: string): number | undefined {
  const parts = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(stamp)?.slice(1);
  return parts === undefined ? undefined : Date.parse(`${parts.slice(0, 3).join("-")}T${parts.slice(3).join(":")}Z`) / 1000 || undefined;
}
