import picomatch from "picomatch";
import type { Config, Statement } from "./config.ts";
import type { Members } from "./policy.ts";
import type { Actor, Incident } from "./ports.ts";

/** What the policy makes of one person, whatever is to be approved: for lists and mutes. Whether a certain fix may be approved is policy.ts's business. */
export interface Standing {
  readonly actor: Actor;
  /** Statements that name the person as an approver, in the order of the file. */
  readonly allows: readonly Statement[];
  /** Statements that keep the person from approving anything where they hold, always. Also those of which that cannot be ruled out. */
  readonly denies: readonly Statement[];
  /** User groups that could not be resolved, for people: they may hold the person. */
  readonly doubts: readonly string[];
}

/** A person by all statements of the policy. Each user group is resolved once. */
export async function standingOf({ policy }: Config, actor: Actor, members: Members): Promise<Standing> {
  const groups = new Map<string, Promise<boolean | string>>();
  const holds = (group: string): Promise<boolean | string> => {
    const asked =
      groups.get(group) ??
      // a function of its own: also what throws at once becomes a doubt
      (async () => (await members(group)).includes(actor.id))().catch(
        (error: unknown) => `the members of the user group ${group} could not be looked up (${(error as Error).message})`,
      );
    groups.set(group, asked);
    return asked;
  };
  const allows: Statement[] = [];
  const denies: Statement[] = [];
  const doubts = new Set<string>();
  for (const statement of policy) {
    const { approvers, effect } = statement;
    const answers = await Promise.all(approvers.filter((id) => id.startsWith("S")).map(holds));
    const named = approvers.includes("*") || approvers.includes(actor.id) || answers.includes(true);
    const unknown = answers.filter((answer) => typeof answer === "string");
    for (const doubt of unknown) doubts.add(doubt);
    if (effect === "allow" && named) allows.push(statement);
    if (effect === "deny" && (named || unknown.length > 0) && always(statement)) denies.push(statement);
  }
  return { actor, allows, denies, doubts: [...doubts] };
}

/** It is about every fix, of everybody, at all times. */
const always = ({ fixes, risks, requesters, freezeWindows }: Statement): boolean =>
  fixes.includes("*") && risks.length === 2 && requesters.includes("*") && freezeWindows === undefined;

interface Node {
  readonly cluster: string;
  readonly target: string;
}
const isAbout =
  ({ cluster, target }: Node) =>
  ({ clusters, targets }: Statement): boolean =>
    picomatch.isMatch(cluster, [...clusters]) && picomatch.isMatch(target, [...targets]);

/**
 * May the person decide what others are told of a node? Only who may approve something there: a mute hides a finding from everybody, so who merely asks for
 * triages must not be able to. A deny wins.
 */
export function mayMute(standing: Standing, node: Node): { readonly ok: true; readonly statement: string } | { readonly ok: false; readonly reason: string } {
  const denied = standing.denies.find(isAbout(node));
  if (denied !== undefined) return { ok: false, reason: `the policy statement "${denied.id}" denies it to you, or that cannot be ruled out` };
  const allowed = standing.allows.find(isAbout(node));
  if (allowed !== undefined) return { ok: true, statement: allowed.id };
  if (standing.doubts.length > 0) return { ok: false, reason: `it is not known whether you may: ${standing.doubts.join("; ")}. Try again later` };
  return { ok: false, reason: `only who may approve a fix on ${node.target} in ${node.cluster} may, and no policy statement names you` };
}

/**
 * Is an incident shown to the person outside of its channel? Only to who asked, and to who may approve something on its node: nobody else learns what goes
 * on in a channel that may not be theirs.
 */
export const isShownTo = ({ actor, allows }: Standing, { requester, cluster, target }: Pick<Incident, "requester" | "cluster" | "target">): boolean =>
  requester.id === actor.id || allows.some(isAbout({ cluster, target }));
