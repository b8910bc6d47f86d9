import { auditDraft, type Context, incidentOf, proposalOf, SYSTEM, type TriageResult } from "./context.ts";
import { batchSize, type Ended, othersMessage } from "./fleet-fix-message.ts";
import { closeAll, KIND, loadMembers, type Others, type Whole } from "./fleet-members.ts";
import type { FleetRequest, Ports } from "./ports.ts";

/** How long a batch waits for one node, in seconds: locks, collecting three times, the fix and its settling are minutes. */
const NODE_SECONDS = 3600;

/** Runs the approved proposals, some at a time. After a batch in which one did not end well no other one begins. */
export async function runBatches(
  context: Context,
  request: FleetRequest,
  whole: Whole,
  about: { readonly key: string; readonly left: number },
): Promise<TriageResult> {
  const { durable, ports } = context;
  const { members, size } = await durable.step("others-plan", async () => {
    const all = (await loadMembers(ports, whole)).filter(({ proposal }) => proposal !== undefined);
    const lead = await proposalOf(ports, all[0]?.proposal ?? "");
    return { members: all.map(({ node, incident, proposal = "" }) => ({ node, incident, proposal })), size: await batchSize(context, lead) };
  });
  const done: Ended[] = [];
  const show = async (words: string): Promise<null> => {
    const failed = done.filter(({ ok }) => !ok);
    const message = await othersMessage(context, whole, { open: false, words, left: about.left, failed });
    await ports.chat.update(await ports.chat.post(about.key, whole.place, message), message);
    return null;
  };
  for (let begin = 0; begin < members.length && done.every(({ ok }) => ok); begin += size) {
    const batch = members.slice(begin, begin + size);
    const number = begin / size + 1;
    await durable.step(`batch-${number}-tell`, () => show(`${progress(done.length, members.length)}; now ${batch.map(({ node }) => node).join(", ")}`));
    await durable.all<null>(
      `batch-${number}`,
      batch.map(({ incident, proposal }, at) => ({
        name: `batch-${number}-${at + 1}`,
        run: async (child) => {
          await child.callback<unknown>(`node-${begin + at + 1}`, NODE_SECONDS, async (callback) => {
            const ask = { kind: "fix-node" as const, fleet: whole.fleet, proposal, callback };
            await ports.work.start(incident, { kind: "fleet", request: { incident, requester: request.requester, place: whole.place, ask } });
          });
          return null;
        },
      })),
      batch.length,
    );
    // what is on record counts: a node whose answer was lost may be fixed, and one that answered may not
    done.push(
      ...(await durable.step(`batch-${number}-ended`, async () => {
        const ended: Ended[] = [];
        for (const { node, incident } of batch) ended.push(await endOf(ports, node, incident));
        return ended;
      })),
    );
  }
  const bad = done.filter(({ ok }) => !ok);
  const rest = members.slice(done.length);
  await durable.step("others-ended", async () => {
    if (rest.length > 0) await closeAll(context, whole, "refused", `stopped after ${bad.map(({ node }) => node).join(", ")}`);
    await ports.store.change<Others>(KIND, `${whole.fleet}/${whole.rule}`, (old) => (old === undefined ? undefined : { ...old, state: "ended" }));
    const data = { rule: whole.rule, fixed: done.length - bad.length, failed: bad.map(({ node }) => node), untouched: rest.length };
    await ports.store.record(whole.fleet, [auditDraft(ports, `others-ended/${whole.rule}`, SYSTEM, data)]);
    const words =
      bad.length === 0
        ? `All ${members.length} are fixed and verified`
        : `Stopped: ${done.length - bad.length} fixed and verified, ${bad.length} not, ${rest.length} not touched`;
    return show(words);
  });
  return { outcome: bad.length === 0 ? "resolved" : "unresolved" };
}

const progress = (done: number, total: number): string => `${done} of ${total} fixed and verified`;

/** What became of a node, by its incident, and the words of the last event that say why. */
async function endOf(ports: Pick<Ports, "store">, node: string, incident: string): Promise<Ended> {
  const { state, problem } = await incidentOf(ports, incident);
  if (state === "resolved") return { node, ok: true, reason: "" };
  const events = (await ports.store.audit(incident)).toReversed();
  const ran = events.find(({ type }) => type === "fix-finished")?.data;
  const verified = events.find(({ type }) => type === "verified")?.data["words"];
  const words = [
    ran?.["outcome"] === "succeeded" ? "the fix ran" : ran === undefined ? "" : `the fix: ${String(ran["outcome"])}`,
    ran?.["reason"],
    verified,
    problem,
  ];
  const reason = words.filter((one): one is string => typeof one === "string" && one !== "").join("; ");
  return { node, ok: false, reason: (reason === "" ? `no end is on record (${state})` : reason).slice(0, 500) };
}
