import { createHash } from "node:crypto";
import type { AuditDraft, AuditEvent } from "./ports.ts";

/** JSON with sorted keys and no blanks: the same data gives the same bytes everywhere. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`)
      .join(",")}}`;
  }
  return JSON.stringify(value) ?? "null";
}

/** sha256 of a text or of bytes, hex. */
export const sha256 = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

/** Links a draft behind the last event of its incident and of the store. */
export function chain(incident: string, draft: AuditDraft, last: AuditEvent | undefined, globalLast: AuditEvent | undefined): AuditEvent {
  const unsealed = {
    key: draft.key,
    at: draft.at,
    actor: draft.actor,
    type: draft.type,
    data: draft.data,
    incident,
    sequence: (last?.sequence ?? 0) + 1,
    previous: last?.hash ?? "",
    globalSequence: (globalLast?.globalSequence ?? 0) + 1,
    globalPrevious: globalLast?.hash ?? "",
  };
  return { ...unsealed, hash: sha256(canonical(unsealed)) };
}

/** What is wrong with a chain, in the order of the events; empty if it is whole. */
export function verifyChain(events: readonly AuditEvent[], scope: "incident" | "global"): string[] {
  const problems: string[] = [];
  let previous: AuditEvent | undefined;
  for (const event of events) {
    const { hash, ...unsealed } = event;
    const name = `event ${scope === "global" ? event.globalSequence : event.sequence} (${event.type} of ${event.incident})`;
    if (sha256(canonical(unsealed)) !== hash) problems.push(`${name} was changed: its hash does not fit its content`);
    const [sequence, link] = scope === "global" ? [event.globalSequence, event.globalPrevious] : [event.sequence, event.previous];
    const before = scope === "global" ? previous?.globalSequence : previous?.sequence;
    if (sequence !== (before ?? 0) + 1) problems.push(`${name} does not follow number ${before ?? 0}: events were removed, inserted or reordered`);
    else if (link !== (previous?.hash ?? "")) problems.push(`${name} is not linked to the event before it`);
    previous = event;
  }
  return problems;
}
