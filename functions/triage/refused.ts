import { type Context, fixOf } from "./context.ts";
import type { Proposal } from "./ports.ts";
import { proposalMessage } from "./proposal-message.ts";

/**
 * A click showed that it is no longer what was proposed: the buttons go, and the message says why. Told by the click and by the workflow that it wakes, because
 * either may fail; both say the same.
 */
export async function showRefused({ ports, catalogue }: Context, proposal: Proposal): Promise<void> {
  if (proposal.message === undefined) return;
  const events = await ports.store.audit(proposal.incident);
  const refusal = events.findLast(({ type, data }) => type === "refused" && data["statement"] === "binding" && data["proposal"] === proposal.id);
  const reason = refusal?.data["reason"];
  const detail = typeof reason === "string" ? `${reason.charAt(0).toUpperCase()}${reason.slice(1)}.` : "";
  const closing = { icon: "no_entry_sign", by: "", people: [], words: "It is no longer what was proposed, and was not run.", detail, again: true };
  await ports.chat.update(proposal.message, proposalMessage(proposal, fixOf(catalogue, proposal), [], closing));
}
