import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, type TriageResult } from "./context.ts";
import { withoutMuted } from "./muted.ts";
import { noteMessage } from "./note.ts";
import type { FeedbackRequest, Message, Ports } from "./ports.ts";
import { FEEDBACK, precisions, type StoredVote, voteKey } from "./votes.ts";

/** Somebody says whether the named cause is the right one: one vote for each person and incident, which may be changed; stored, on record, and answered. */
export async function feedback({ durable, ports }: Context, request: FeedbackRequest): Promise<TriageResult> {
  try {
    const message = await durable.step("vote", () => count(ports, request));
    await durable.step("tell", async () => {
      await ports.chat.whisper(request.place, request.requester, message);
      return null;
    });
    return { outcome: "counted" };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "feedback failed", { run: request.incident, problem });
    await durable.step("tell-failure", async () => {
      await ports.chat.whisper(request.place, request.requester, noteMessage("warning", `That did not work: ${problem}. Run id: ${request.incident}`));
      return null;
    });
    return { outcome: "failed" };
  }
}

async function count(ports: Ports, { incident: run, about, vote, requester }: FeedbackRequest): Promise<Message> {
  const incident = await ports.store.incident(about);
  if (incident?.diagnosis === undefined) throw new Error("this button belongs to no diagnosis that netcheck knows");
  // what the message named: the first cause that is not muted
  const [cause] = withoutMuted(await loadDiagnosis(ports, incident.diagnosis), incident.muted).causes;
  if (cause === undefined) throw new Error("this diagnosis names no cause");
  const key = voteKey(cause.rule, about, requester.id);
  const before = await ports.store.kept<StoredVote>(FEEDBACK, key);
  if (before?.vote !== vote) {
    await ports.store.record(about, [
      auditDraft(ports, `feedback/${run}`, requester, { rule: cause.rule, vote, ...(before === undefined ? {} : { before: before.vote }) }),
    ]);
    await ports.store.change<StoredVote>(FEEDBACK, key, () => ({ vote, at: ports.now().toISOString() }));
  }
  const [precision] = await precisions(ports.store, cause.rule);
  const so = precision === undefined ? "" : ` So far ${precision.right} of ${precision.votes} votes say that ${cause.rule} named the right cause.`;
  const words = before === undefined || before.vote === vote ? "Thank you, that counts" : "Thank you, your vote was changed";
  const next = vote === "wrong" ? ` Say in the thread what it was: whoever looks after the rules reads it there.` : "";
  return noteMessage(vote === "right" ? "thumbsup" : "thumbsdown", `${words}: ${vote} cause.${so}${next}`);
}
