import type { Evidence } from "../rules/diagnosis.ts";
import type { Fix } from "../rules/load.ts";
import { canonical, sha256 } from "./audit.ts";
import { loadDiagnosis } from "./collect.ts";
import { type Context, incidentOf, proposalOf } from "./context.ts";
import { fingerprint, type Subject } from "./policy.ts";
import type { Ports, Proposal } from "./ports.ts";

/** What an approval is bound to: a change of any part is another proposal. */
export interface Bound extends Pick<Proposal, "fix" | "parameters" | "target" | "cluster"> {
  readonly kind: "fix" | "rollback";
  /** Of a rollback: the proposal that it undoes. */
  readonly of?: string | undefined;
  /** Of the fix in the catalogue. */
  readonly version: string;
  /** Lines of the diagnosis that the cause was found by. */
  readonly evidence: readonly Evidence[];
  /** sha256 of the policy's statements about it. */
  readonly policy: string;
}

/** The hash that every decision names: sha256 over the canonical JSON of all that is bound. */
export const hashOf = (bound: Bound): string => sha256(canonical(bound));

/** An incident has one fix and one rollback at most, and these are their names: of the proposal, of the job, and of the marker on the node. */
export const proposalId = (incident: string, kind: "fix" | "rollback" = "fix"): string => `${incident}-${kind}`;

/** Audit keys are unique in an incident: those of the fix are plain, those of the rollback name it. */
export const keyOf = (type: string, kind: "fix" | "rollback", id: string): string => (kind === "fix" ? type : `${type}/${id}`);

/** What the policy is asked about. */
export const subjectOf = (proposal: Pick<Proposal, "cluster" | "target" | "fix" | "requester">, fix: Fix): Subject => ({
  cluster: proposal.cluster,
  target: proposal.target,
  fix: proposal.fix,
  requester: proposal.requester,
  risk: fix.file.risk,
});

/** The lines that the cause of a proposal was found by in the incident's first diagnosis; a rollback stands on those of its fix. None if it is not in there. */
export async function evidenceOf(ports: Pick<Ports, "store">, proposal: Pick<Proposal, "incident" | "rule">): Promise<readonly Evidence[]> {
  const { diagnosis } = await incidentOf(ports, proposal.incident);
  if (diagnosis === undefined) return [];
  return (await loadDiagnosis(ports, diagnosis)).causes.find((cause) => cause.rule === proposal.rule)?.evidence ?? [];
}

/** What became of a fix, for the rollback that would undo it. */
const UNDOABLE = new Set<Proposal["state"]>(["succeeded", "failed"]);

/**
 * Why what is asked for is no longer what was proposed, as a clause without its full stop; "" if it still is: same fix of the same version, same parameters,
 * target, evidence and policy. Asked at each decision and right before the run. Throws what the store or the configuration throws.
 */
export async function bindingProblem({ ports, catalogue }: Context, proposal: Proposal): Promise<string> {
  const fix = catalogue.fixes.get(proposal.fix);
  if (fix === undefined) return `the fix "${proposal.fix}" is not in the catalogue any more`;
  if (proposal.version === undefined || proposal.policy === undefined) return "it was proposed by an earlier version of netcheck";
  if (proposal.version !== fix.version)
    return `the fix "${proposal.fix}" in the catalogue is another version now (${fix.version}) than the one that was proposed (${proposal.version})`;
  const policy = fingerprint(await ports.config(), subjectOf(proposal, fix));
  if (policy !== proposal.policy) return "the policy's statements about this fix on this node have changed since it was proposed";
  const { kind = "fix", of, parameters, target, cluster } = proposal;
  const evidence = await evidenceOf(ports, proposal);
  if (hashOf({ kind, of, fix: proposal.fix, version: fix.version, parameters, target, cluster, evidence, policy }) !== proposal.hash)
    return "its parameters, its target or its evidence are not the ones that were proposed";
  if (kind === "rollback") {
    const undone = of === undefined ? undefined : await proposalOf(ports, of);
    if (undone === undefined || !UNDOABLE.has(undone.state)) return `the fix that it would undo is ${undone?.state ?? "not known"}`;
  }
  return "";
}
