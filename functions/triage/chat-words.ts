import type { ChatCommand } from "./ports.ts";

/** What was typed, read; or why it cannot be, for people. */
export type Read = { readonly ok: true; readonly command: ChatCommand } | { readonly ok: false; readonly problem: string };

/** What a DNS name, an instance id or an address may hold, with the name of its cluster before it: as slack/listeners/netcheck-command.ts takes it. */
const NAME = /^(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,252}\/)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$/;
const RULE = /^[a-z0-9](?:[a-z0-9-]{0,78}[a-z0-9])?$/;
const MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60, d: 24 * 60 };
/** People forget a mute: no longer than a quarter of a year. */
const MOST_DAYS = 90;
/** Characters of a reason: it stands in messages and in the audit trail. */
const REASON = 300;

const MUTE_HELP = 'Write it as in "mute conntrack-table-full on node1 for 7d because the table is being enlarged".';

const no = (problem: string): Read => ({ ok: false, problem });
const yes = (command: ChatCommand): Read => ({ ok: true, command });

/** Reads `status`, `rules`, `history TARGET`, `mute RULE on TARGET for 7d because REASON` and `unmute RULE on TARGET`. */
export function readChatCommand(text: string): Read {
  const [first = "", ...rest] = text.trim().split(/\s+/);
  switch (first.toLowerCase()) {
    case "status":
      return rest.length === 0 ? yes({ name: "status" }) : no('"status" stands alone. The triages of one node are shown by "history node1".');
    case "rules":
      return rest.length === 0 ? yes({ name: "rules" }) : no('"rules" stands alone.');
    case "history":
      return history(rest);
    case "mute":
      return mute(text.trim().slice("mute".length));
    case "unmute":
      return unmute(rest);
    default:
      return no(`"${first.slice(0, 80)}" is no command that netcheck knows.`);
  }
}

function history(words: readonly string[]): Read {
  const [target, ...more] = words;
  if (target === undefined) return no('The history of which node? Write it as in "history node1".');
  if (more.length > 0 || !NAME.test(target)) return no(`"${words.join(" ").slice(0, 80)}" cannot be the name of a target; write it as in "history node1".`);
  return yes({ name: "history", target });
}

function unmute(words: readonly string[]): Read {
  const [rule = "", on = "", target = "", ...more] = words;
  if (on.toLowerCase() !== "on" || more.length > 0) return no('Write it as in "unmute conntrack-table-full on node1".');
  return misnamed(rule, target) ?? yes({ name: "unmute", rule, target });
}

function mute(text: string): Read {
  const match = /^\s+(\S+)\s+on\s+(\S+)\s+for\s+(\S+)(?:\s+because\b[\s:]*([\s\S]*))?$/i.exec(text);
  if (match === null) return no(`A mute needs a rule, a node, a time and a reason. ${MUTE_HELP}`);
  const [, rule = "", target = "", time = "", reason = ""] = match;
  const wrong = misnamed(rule, target);
  if (wrong !== undefined) return wrong;
  const [, count = "", unit = ""] = /^([1-9]\d{0,5})([mhd])$/.exec(time.toLowerCase()) ?? [];
  const minutes = Number(count) * (MINUTES[unit] ?? 0);
  if (minutes === 0) return no(`"${time.slice(0, 40)}" is no time; write minutes, hours or days as in "45m", "12h" or "7d". ${MUTE_HELP}`);
  if (minutes > MOST_DAYS * 24 * 60) return no(`A rule can be muted for ${MOST_DAYS} days at most.`);
  const because = reason.trim();
  if (because === "") return no(`A mute needs a reason: whoever looks at the node next reads it. ${MUTE_HELP}`);
  if (because.length > REASON) return no(`The reason may have ${REASON} characters; this one has ${because.length}.`);
  return yes({ name: "mute", rule, target, minutes, reason: because });
}

function misnamed(rule: string, target: string): Read | undefined {
  if (!RULE.test(rule)) return no(`"${rule.slice(0, 80)}" cannot be the id of a rule: it has small letters, digits and "-", as in the diagnosis.`);
  return NAME.test(target) ? undefined : no(`"${target.slice(0, 80)}" cannot be the name of a target.`);
}
