import { loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, incidentOf, proposalOf, SYSTEM, type TriageResult } from "./context.ts";
import type { Ask } from "./fleet-members.ts";
import { loadFleet, loadTargets } from "./fleet-report.ts";
import type { Chat, FleetRequest } from "./ports.ts";
import { registerEnded, registerOpened } from "./register.ts";
import { remediate } from "./remediate.ts";
import { rootMessage } from "./report.ts";
import { rollback } from "./rollback.ts";

/** The chat of one node among many: nothing is posted, so that many nodes are not many messages. What it would have said is on record. */
const quiet = (chat: Chat): Chat => ({
  post: async (_key, place) => ({ channel: place.channel, ts: "" }),
  update: async () => undefined,
  upload: async () => undefined,
  whisper: (...what) => chat.whisper(...what),
  modal: (...what) => chat.modal(...what),
  home: (...what) => chat.home(...what),
});

/** Runs the approved proposal of one node as any other, and answers the batch that waits for it. Where it did not help, the way back is offered in the thread. */
export async function fixNode(context: Context, request: FleetRequest, { fleet, proposal: id, callback }: Ask<"fix-node">): Promise<TriageResult> {
  const { durable, ports } = context;
  const { incident, requester, place } = request;
  let answered = false;
  const answer = async (): Promise<void> => {
    if (answered) return;
    answered = true;
    await durable.step("answer", async () => {
      await registerEnded(ports, incident);
      await ports.work.answer(callback, { incident });
      return null;
    });
  };
  try {
    const begun = await durable.step("node", async () => {
      const proposal = await proposalOf(ports, id);
      if (proposal.incident !== incident || proposal.state !== "approved") throw new Error(`the proposal ${id} is ${proposal.state}`);
      const target = (await loadTargets(ports, fleet)).find((one) => one.cluster === proposal.cluster && one.name === proposal.target);
      const summary = (await loadFleet(ports, fleet)).nodes.find((one) => one.cluster === proposal.cluster && one.target === proposal.target);
      if (target === undefined || summary?.diagnosis === undefined) throw new Error(`${proposal.target} is not among the nodes of ${fleet}`);
      await registerOpened(ports.store, await incidentOf(ports, incident));
      return { target: summary.reached ?? target, diagnosis: summary.diagnosis };
    });
    const approved = {
      request: { incident, target: begun.target.name, requester, place },
      target: begun.target,
      thread: { channel: place.channel, ts: "" },
      proposal: id,
      diagnosis: begun.diagnosis,
    };
    const { state, undo } = await remediate({ ...context, ports: { ...ports, chat: quiet(ports.chat) } }, approved);
    await answer();
    if (undo === undefined) return { outcome: state };
    const thread = await durable.step("node-root", async () => {
      const diagnosis = await loadDiagnosis(ports, begun.diagnosis);
      const root = await ports.chat.post(`${incident}/root`, place, rootMessage(await incidentOf(ports, incident), diagnosis));
      const ref = place.thread === undefined ? root : { ...root, thread: place.thread };
      await ports.store.update(incident, { thread: ref }, []);
      return ref;
    });
    return { outcome: await rollback(context, { ...approved, thread }, undo) };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "the fix of a node failed", { incident, problem });
    await durable.step("failed", async () => {
      const draft = (state: string) => auditDraft(ports, `fix-finished`, SYSTEM, { proposal: id, outcome: state, reason: problem });
      // whether it ran is not known, and it is never run again
      await ports.store.transition(id, ["running"], { state: "unknown" }, draft("unknown"));
      await ports.store.transition(id, ["approved"], { state: "refused" }, draft("refused"));
      await ports.store.update(incident, { state: "failed", problem }, [auditDraft(ports, "failed", SYSTEM, { problem })]);
      return null;
    });
    await answer();
    return { outcome: "failed" };
  }
}
