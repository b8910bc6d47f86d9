import type { Store, Vote } from "./ports.ts";

/** Kind of the documents: one for each person and incident, by rule/incident/user. */
export const FEEDBACK = "feedback";
export interface StoredVote {
  readonly vote: Vote;
  readonly at: string;
}
export const voteKey = (rule: string, incident: string, user: string): string => `${rule}/${incident}/${user}`;

/** How often people said that a rule named the right cause. */
export interface Precision {
  readonly rule: string;
  readonly right: number;
  readonly votes: number;
}

/** Votes that are counted in one question; the ones of further rules are left out. */
const MOST = 5000;

/** The precision of rules, those with the most votes first. @param rule only of this one */
export async function precisions(store: Pick<Store, "list">, rule?: string): Promise<readonly Precision[]> {
  const stored = await store.list<StoredVote>(FEEDBACK, { ...(rule === undefined ? {} : { prefix: `${rule}/` }), limit: MOST });
  return count(stored.map(({ key, value }) => ({ rule: key.slice(0, key.indexOf("/")), vote: value.vote })));
}

/** The same from events of the audit trail, in order: of one person and incident the last vote counts. Anything else among them is passed over. */
export function precisionsIn(events: Iterable<unknown>): readonly Precision[] {
  const last = new Map<string, { readonly rule: string; readonly vote: Vote }>();
  for (const event of events) {
    const { type, incident, actor, data } = (event ?? {}) as { type?: unknown; incident?: unknown; actor?: { id?: unknown }; data?: Record<string, unknown> };
    const { rule, vote } = data ?? {};
    if (type !== "feedback" || typeof rule !== "string" || (vote !== "right" && vote !== "wrong")) continue;
    last.set(voteKey(rule, String(incident), String(actor?.id)), { rule, vote });
  }
  return count([...last.values()]);
}

function count(votes: readonly { readonly rule: string; readonly vote: Vote }[]): readonly Precision[] {
  const rules = new Map<string, { right: number; votes: number }>();
  for (const { rule, vote } of votes) {
    const so = rules.get(rule) ?? { right: 0, votes: 0 };
    rules.set(rule, { right: so.right + (vote === "right" ? 1 : 0), votes: so.votes + 1 });
  }
  return [...rules].map(([rule, counts]) => ({ rule, ...counts })).sort((a, b) => b.votes - a.votes || (a.rule < b.rule ? -1 : 1));
}
