import { auditDraft, type Context, type TriageResult } from "./context.ts";
import { noteMessage } from "./note.ts";
import { PAGER } from "./page.ts";
import type { Actor, Place, WorkEvent } from "./ports.ts";

const STRANGER =
  "netcheck does not take requests from your workspace, so nothing was done. Its operators name the workspaces that it serves under `slack.teams` in netcheck.yaml.";

/**
 * Stops what a person of another workspace or company wants (`slack.teams` of netcheck.yaml), before anything else is looked at: the person is told, and a
 * click is on record with its incident. Undefined: it may go on. What no person of a chat asked for (a page, the command line) always may.
 * A configuration that cannot be read lets nobody pass, and is told, too.
 */
export async function stopOutsider({ durable, ports }: Context, event: WorkEvent): Promise<TriageResult | undefined> {
  if (isOwn(event)) return undefined;
  const { actor, place } = event.kind === "click" ? event.click : { actor: event.request.requester, place: event.request.place };
  if (place === undefined || actor.id === PAGER.id) return undefined;
  try {
    const outcome = await durable.step("whose-workspace", () => whose({ ports }, event, place, actor));
    return outcome === "" ? undefined : { outcome };
  } catch (error) {
    const run = event.kind === "click" ? event.click.id : event.request.incident;
    await durable.step("tell-whose-workspace", async () => {
      await ports.chat.whisper(place, actor, noteMessage("warning", `That did not work: ${(error as Error).message}. Run id: ${run}`));
      return null;
    });
    return { outcome: "failed" };
  }
}

/** Says "refused" of somebody from outside, who is told; "" of anybody else. */
async function whose({ ports }: Pick<Context, "ports">, event: Theirs, place: Place, actor: Actor): Promise<"" | "refused"> {
  const teams = (await ports.config()).slack?.teams;
  if (serves(teams, actor)) return "";
  const data = { statement: "slack.teams", decision: event.kind === "click" ? event.click.action : event.kind, team: actor.team, home: actor.home ?? "" };
  ports.log("warn", "stopped: not of a workspace that is served", { ...data, actor: actor.id });
  if (event.kind === "click" && (await ports.store.incident(event.click.incident)) !== undefined)
    await ports.store.record(event.click.incident, [auditDraft(ports, `refused/${event.click.id}`, actor, data)]);
  // not everybody from outside can be whispered to
  await ports.chat.whisper(place, actor, noteMessage("no_entry", STRANGER)).catch((error: unknown) => {
    ports.log("warn", "who was stopped could not be told", { problem: (error as Error).message });
  });
  return "refused";
}

/** What no person of a chat asks for. */
const OWN = ["page", "answer-page", "escalate", "close-page", "follow-up", "digest", "remind"] as const;
type Own = Extract<WorkEvent, { kind: (typeof OWN)[number] }>;
type Theirs = Exclude<WorkEvent, Own>;
const isOwn = (event: WorkEvent): event is Own => (OWN as readonly string[]).includes(event.kind);

/** @param teams of the configuration; without a list everybody is served who is not known to be from outside */
export const serves = (teams: readonly string[] | undefined, { team, home }: Actor): boolean =>
  teams === undefined ? home === undefined : teams.includes(home ?? team);
