import type { Message } from "../../functions/local/chat.ts";
import type { Outcome } from "../../functions/local/interactions.ts";
import type { Workspace } from "../../functions/local/workspace.ts";

/** What people do in the simulated workspace, each gesture a signed request to whoever answers now. */
export const ALICE = "U_ALICE";
export const BOB = "U_BOB";
export const CAROL = "U_CAROL";

/** `/netcheck <target>`, by Alice. */
export const ask = (workspace: Workspace, channel: string, target: string): Promise<Outcome> =>
  workspace.command({ user: ALICE, channel, command: "/netcheck", text: target });

interface Element {
  readonly action_id?: string;
}
interface Block {
  readonly type: string;
  readonly block_id?: string;
  readonly label?: { readonly text?: string };
  readonly element?: Element;
  readonly elements?: readonly Element[];
}

/** The newest message of a channel that has a button of that name, for all to see. */
export function withButton(workspace: Workspace, channel: string, action: string): Message | undefined {
  const has = ({ blocks = [] }: Message): boolean => (blocks as readonly Block[]).some(({ elements = [] }) => elements.some((one) => one.action_id === action));
  return workspace.chat
    .messages(channel)
    .filter((message) => message.onlyFor === undefined && has(message))
    .at(-1);
}

/**
 * Somebody approves: presses the button, and where that opened a modal reads it and sends it off, with the node's name and a reason wherever it asks for text.
 * @param opened resolves when what the press set off has come to rest, so that a modal that is to open is open
 */
export async function approve(workspace: Workspace, channel: string, user: string, target: string, opened: () => Promise<void>): Promise<Outcome> {
  const message = withButton(workspace, channel, "approve");
  if (message === undefined) return { ok: false, error: "there is no button" };
  const pressed = await workspace.click({ user, channel, ts: message.ts, actionId: "approve" });
  if (!pressed.ok) return pressed;
  await opened();
  const view = workspace.chat.modals(user).at(-1);
  if (view === undefined) return pressed;
  const values: Record<string, Record<string, string>> = {};
  for (const block of view.blocks as readonly Block[]) {
    if (block.type !== "input" || block.block_id === undefined || block.element?.action_id === undefined) continue;
    values[block.block_id] = { [block.element.action_id]: /reason|why/i.test(block.label?.text ?? "") ? "the network is down" : target };
  }
  const sent = await workspace.submit({ user, viewId: view.id, values });
  // a modal that could not be sent off is closed, and the person begins again
  for (const left of workspace.chat.modals(user)) if (!sent.ok) await workspace.closeView(user, left.id);
  return sent;
}
