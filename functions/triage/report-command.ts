import { distance } from "fastest-levenshtein";
import { sha256 } from "./audit.ts";
import { auditDraft, type Context, type TriageResult, threadOf } from "./context.ts";
import { loadTimeline } from "./incident-timeline.ts";
import { noteMessage } from "./note.ts";
import type { Incident, Place, Ports, ReportRequest } from "./ports.ts";

/** Incidents among which a wrong id is looked for. */
const RECENT = 500;
/** Letters that may differ between an id and what was typed: more is another id. */
const TYPOS = 4;

/**
 * `/netcheck report INC`: the timeline of an incident, as Markdown and HTML, into its thread. Only in the channel where the incident is: who may read it
 * there may read its report. From elsewhere the answer is the same for an incident of another channel and for one that does not exist, and only the asker sees it,
 * so nobody learns what goes on in a channel that is not theirs.
 */
export async function reportIncident({ durable, ports, catalogue, report }: Context, request: ReportRequest): Promise<TriageResult> {
  const { incident: run, about, requester, place } = request;
  try {
    return await durable.step("report", async () => {
      const incident = await ports.store.incident(about);
      if (incident === undefined || !isHere(incident, place)) {
        await ports.chat.whisper(place, requester, noteMessage("grey_question", await notHere(ports, about, place)));
        return { outcome: "unknown" };
      }
      const timeline = await loadTimeline(ports.store, catalogue, about, ports.now().toISOString());
      if (timeline === undefined || incident.thread === undefined) throw new Error(`${about} has no record`);
      const thread = threadOf(incident.thread);
      const files = { md: report({ ...timeline }, "timeline.md"), html: report({ ...timeline }, "timeline.html") };
      // a file is found again by its name, so that a repeated step does not bring it twice; another request is another file
      const name = `netcheck-${incident.target}-${about}-timeline-${sha256(run).slice(0, 6)}`;
      for (const [ending, content] of Object.entries(files))
        await ports.chat.upload(`${run}/report.${ending}`, thread, { name: `${name}.${ending}`, title: `Timeline of ${about} (${ending})`, content });
      const data = { events: timeline.chain.events, whole: timeline.chain.whole, markdown: sha256(files.md), html: sha256(files.html) };
      await ports.store.record(about, [auditDraft(ports, `reported/${run}`, requester, data)]);
      const broken = timeline.chain.whole ? "" : " Its audit trail is broken: the end of the report says where.";
      const text = `The timeline of ${about} is in its thread, as Markdown and as HTML.${broken}`;
      await ports.chat.whisper(place, requester, noteMessage(broken === "" ? "page_facing_up" : "warning", text));
      return { outcome: "reported" };
    });
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "a report could not be made", { run, problem });
    await durable.step("tell-failure", async () => {
      await ports.chat.whisper(place, requester, noteMessage("warning", `The report on ${about} could not be made: ${problem}. Run id: ${run}`));
      return null;
    });
    return { outcome: "failed" };
  }
}

const isHere = ({ thread }: Incident, { channel }: Place): boolean => thread?.channel === channel;

/** Ids of other channels are never suggested. */
async function notHere(ports: Ports, about: string, place: Place): Promise<string> {
  const here = (await ports.store.incidents(RECENT)).filter((incident) => isHere(incident, place)).map(({ id }) => id);
  const near = here
    .map((id) => ({ id, away: distance(id, about) }))
    .filter(({ away }) => away <= TYPOS)
    .sort((a, b) => a.away - b.away)
    .slice(0, 3);
  const meant = near.length === 0 ? "" : ` Did you mean ${near.map(({ id }) => id).join(" or ")}?`;
  const where = `A report is given only in the channel of its incident: search Slack for the id, its first message has it, and ask there.`;
  return `There is no incident ${about} in this channel.${meant} ${where}`;
}
