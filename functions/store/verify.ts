import { verifyChain } from "../triage/audit.ts";
import type { AuditEvent, Store } from "../triage/ports.ts";

/** The last event of a chain, remembered apart from it. `incident` is undefined for the chain over all incidents. */
export interface Head {
  readonly incident: string | undefined;
  readonly sequence: number;
  readonly hash: string;
}

/** A store that knows where its chains should end. */
export interface AuditedStore extends Store {
  heads(): Promise<readonly Head[]>;
}

/**
 * Checks all events of a store (`store.audit()`, in global order): each chain, and that it ends where it should. Returns what is wrong, as
 * sentences; empty if nothing is.
 * @param heads the ends of all chains, from the same store: they show what was cut off or added at the end
 * @param anchors earlier heads, kept where nobody can change them (an export under Object Lock): they show a store that was rewritten as a whole
 */
export function verifyAudit(events: readonly AuditEvent[], heads: readonly Head[], anchors: readonly Head[] = []): string[] {
  const incidents = Map.groupBy(events, (event) => event.incident);
  const problems = verifyChain(events, "global");
  for (const chain of incidents.values()) problems.push(...verifyChain(chain, "incident"));

  const chainOf = (incident: string | undefined) => (incident === undefined ? events : (incidents.get(incident) ?? []));
  const number = (event: AuditEvent, incident: string | undefined) => (incident === undefined ? event.globalSequence : event.sequence);
  const nameOf = (incident: string | undefined) => (incident === undefined ? "the audit trail" : `the audit trail of ${incident}`);

  for (const { incident, sequence, hash } of heads) {
    const last = chainOf(incident).at(-1);
    const end = last === undefined ? 0 : number(last, incident);
    if (end !== sequence)
      problems.push(`${nameOf(incident)} ends with event ${end}, but ${sequence} were written: events were ${end < sequence ? "cut off" : "added"}`);
    else if (last?.hash !== hash) problems.push(`${nameOf(incident)} does not end with the event that was written last`);
  }
  const ends = new Set(heads.map(({ incident }) => incident));
  for (const incident of [undefined, ...incidents.keys()]) {
    if (chainOf(incident).length > 0 && !ends.has(incident)) problems.push(`${nameOf(incident)} has no recorded end`);
  }
  for (const { incident, sequence, hash } of anchors) {
    const event = chainOf(incident).find((one) => number(one, incident) === sequence);
    if (event?.hash !== hash) problems.push(`${nameOf(incident)} does not contain event ${sequence} as it was exported: it was rewritten or cut off`);
  }
  return problems;
}

/** Checks the audit trail of a store, as `verifyAudit` does. */
export async function verifyStore(store: AuditedStore, anchors: readonly Head[] = []): Promise<string[]> {
  return verifyAudit(await store.audit(), await store.heads(), anchors);
}
