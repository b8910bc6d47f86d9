import type { Actor, AuditDraft, Incident, Proposal } from "../../functions/triage/ports.ts";

export const ALICE: Actor = { id: "U_ALICE", team: "T_LOCAL" };
export const BOB: Actor = { id: "U_BOB", team: "T_LOCAL" };

/** Samples: an incident, a proposal and an event that one may build upon. */
export function incident(id: string, more: Partial<Incident> = {}): Incident {
  return { id, target: "node1", cluster: "lab", requester: ALICE, createdAt: "2026-01-01T00:00:00.000Z", state: "open", ...more };
}
export function proposal(id: string, of: string, more: Partial<Proposal> = {}): Proposal {
  return {
    id,
    incident: of,
    target: "node1",
    cluster: "lab",
    rule: "forward-drop",
    fix: "accept-forward",
    parameters: { chain: "FORWARD", prefixes: ["10.0.0.0/8"] },
    hash: "a".repeat(64),
    requester: ALICE,
    createdAt: "2026-01-01T00:00:00.000Z",
    expiresAt: "2026-01-01T04:00:00.000Z",
    state: "pending",
    decisions: [],
    ...more,
  };
}
export function draft(key: string, data: Record<string, unknown> = {}): AuditDraft {
  return { key, at: "2026-01-01T00:00:00.000Z", actor: ALICE, type: key.split("/")[0] ?? key, data };
}
