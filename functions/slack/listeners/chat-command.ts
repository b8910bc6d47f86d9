const COMMANDS = /^\s*(?:status|history|rules|mute|unmute)(?:\s|$)/i;
/** Characters that are handed over; a reason has 300. */
const MOST = 1000;

/**
 * Is it a command that examines no node? Then its words; undefined if the first one is none of these. A target that is called so is typed with its cluster.
 * What stands behind is read by the worker (functions/triage/chat-words.ts): the function that acknowledges stays small.
 */
export function parseChatCommand(text: string): { readonly kind: "command"; readonly text: string } | undefined {
  return COMMANDS.test(text) ? { kind: "command", text: text.trim().slice(0, MOST) } : undefined;
}
