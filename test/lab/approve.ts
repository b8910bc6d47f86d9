import { expect } from "vitest";
import type { Workspace } from "../../functions/local/workspace.ts";
import { elementsOf } from "../../functions/slack/elements.ts";
import type { Proposal } from "../../functions/triage/ports.ts";

/** What a person types where the modal asks for it. */
export interface Typed {
  /** The name of the node; the right one unless given. */
  readonly target?: string;
  readonly reason?: string;
}

/**
 * Somebody approves a proposal as in Slack, all of it as signed requests: presses its button, reads the modal, fills it in and sends it off. Where the modal
 * came too late (Slack gives three seconds, and a lab is busy) the person clicks again, as told.
 * @param opened resolves when what the click set off has come to rest
 * @returns whether a modal was there to be sent off: who may not approve is shown none
 */
export function approve(
  workspace: Workspace,
  proposal: Pick<Proposal, "message" | "target" | "id">,
  user: string,
  opened: () => Promise<void>,
  typed: Typed = {},
): Promise<boolean> {
  // a person has one window at a time: the next one would replace it
  const key = turns.get(workspace) ?? new Map<string, Promise<unknown>>();
  turns.set(workspace, key);
  const mine = (key.get(user) ?? Promise.resolve()).then(() => approveNow(workspace, proposal, user, opened, typed));
  key.set(
    user,
    mine.catch(() => undefined),
  );
  return mine;
}
const turns = new WeakMap<Workspace, Map<string, Promise<unknown>>>();

async function approveNow(
  workspace: Workspace,
  proposal: Pick<Proposal, "message" | "target" | "id">,
  user: string,
  opened: () => Promise<void>,
  typed: Typed,
): Promise<boolean> {
  const { channel = "", ts = "" } = proposal.message ?? {};
  const late = () => workspace.chat.messages(channel).filter(({ onlyFor, text }) => onlyFor === user && text.includes("could not be opened in time")).length;
  for (let tries = 0; tries < 5; tries += 1) {
    const before = late();
    expect(await workspace.click({ user, channel, ts, actionId: "approve" })).toEqual({ ok: true });
    const here = () => workspace.chat.modals(user).findLast(({ payload }) => JSON.stringify(payload).includes(proposal.id));
    let rested = false;
    const rest = opened().then(() => {
      rested = true;
    });
    // whichever is first: others may be at work for long
    while (!rested && here() === undefined) await Promise.race([rest, new Promise((resolve) => setTimeout(resolve, 20))]);
    const view = here();
    if (view === undefined && late() > before) continue;
    if (view === undefined) return false;
    const answers: Record<string, string> = { typed: typed.target ?? proposal.target, reason: typed.reason ?? "It cannot wait." };
    const asked = view.blocks.flatMap((block) => (block.type === "input" ? elementsOf(block).map(() => block.block_id ?? "") : []));
    const values = Object.fromEntries(asked.map((id) => [id, { [id]: answers[id] ?? "" }]));
    expect(await workspace.submit({ user, viewId: view.id, values })).toEqual({ ok: true });
    return true;
  }
  throw new Error("the modal came too late five times");
}
