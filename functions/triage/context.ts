import type { Catalogue, Fix } from "../rules/load.ts";
import type { Actor, AuditDraft, Durable, Incident, MessageRef, Place, Ports, Proposal } from "./ports.ts";

/** How a triage ended. */
export interface TriageResult {
  readonly outcome: string;
}

/** Renders a file that is attached to a thread: the full report (templates/report.md.hbs), or the timeline of an incident. */
export type RenderReport = (data: Record<string, unknown>, name?: "report.md" | "timeline.md" | "timeline.html") => string;

/** Netcheck itself, as the audit trail names it. */
export const SYSTEM: Actor = { id: "netcheck", team: "" };

/** Everything a workflow runs with. */
export interface Context {
  readonly durable: Durable;
  readonly ports: Ports;
  readonly catalogue: Catalogue;
  readonly report: RenderReport;
}

/** An audit event. `key` names the step, so that a repeated step does not repeat it; what stands before a "/" is its type. */
export const auditDraft = (ports: Pick<Ports, "now">, key: string, actor: Actor, data: Record<string, unknown> = {}): AuditDraft => ({
  key,
  at: ports.now().toISOString(),
  actor,
  type: key.replace(/\/.*$/, ""),
  data,
});

/** The fix of a proposal. Throws if it left the catalogue meanwhile. */
export function fixOf(catalogue: Pick<Catalogue, "fixes">, proposal: Proposal): Fix {
  const fix = catalogue.fixes.get(proposal.fix);
  if (fix === undefined) throw new Error(`the fix "${proposal.fix}" is not in the catalogue any more`);
  return fix;
}

/** Where answers to an incident's first message go: below it, or beside it if that is in a thread itself. */
export const threadOf = ({ channel, ts, thread }: MessageRef): Place => ({ channel, thread: thread ?? ts });

/** A stored incident. Throws if there is none. */
export async function incidentOf(ports: Pick<Ports, "store">, id: string): Promise<Incident> {
  const incident = await ports.store.incident(id);
  if (incident === undefined) throw new Error(`there is no incident ${id}`);
  return incident;
}

/** A stored proposal. Throws if there is none. */
export async function proposalOf(ports: Pick<Ports, "store">, id: string): Promise<Proposal> {
  const proposal = await ports.store.proposal(id);
  if (proposal === undefined) throw new Error(`there is no proposal ${id}`);
  return proposal;
}
