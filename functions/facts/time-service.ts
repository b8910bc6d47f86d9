import { z } from "zod";
import type { AgentLog } from "./agent-log.ts";
import { defineDerivedFact, type Placed } from "./fact.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * What the services that set the clock said last in their logs: they say once that they lost their servers, and once that they have one again.
 *
 *     chronyd[17789]: Can't synchronise: no majority
 *     systemd-timesyncd[412]: Timed out waiting for reply from 192.0.2.7:123 (ntp.example.net).        (again and again)
 */
const Lost = z.object({
  line: z.int(),
  /** "chronyd", "systemd-timesyncd". */
  program: z.string(),
  message: z.string(),
  /** Seconds before the collection, where known. */
  age: z.number().optional(),
});
const TimeService = z.object({
  lost: z.array(Lost),
  /** Services that need not tell the kernel, and said last that they follow a server. */
  following: z.array(z.object({ line: z.int(), program: z.string(), message: z.string() })),
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
  title: "Time services that said last that they have no server, or have one",
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
    return { lost, following };
  },
});
