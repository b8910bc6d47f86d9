import type { Actor } from "../triage/ports.ts";

/** What a click, a choice or a modal says of whoever did it: the same keys in all of Slack's interaction payloads. */
export interface Interaction {
  /** `team_id`: the person's own workspace; on Enterprise Grid the organisation (E…). */
  readonly user: { readonly id: string; readonly team_id?: string | undefined };
  /** Where it happened; none where the app is installed for a whole organisation. */
  readonly team?: { readonly id: string } | null | undefined;
  readonly enterprise?: { readonly id: string } | null | undefined;
}

/** Who did it. Every listener takes the person from here, so that nobody from outside passes for one of us. */
export const actorIn = ({ user, team, enterprise }: Interaction): Actor => actorOf(user.id, team?.id, enterprise?.id, user.team_id);

/**
 * A person by the workspace where it happened, its organisation, and the person's own. `home` is told only of somebody from outside, in a channel that two
 * companies share: who is of the same workspace or organisation is one of us.
 */
export function actorOf(id: string, workspace: string | undefined, organisation: string | undefined, own: string | undefined): Actor {
  const outside = own !== undefined && own !== "" && workspace !== undefined && own !== workspace && own !== organisation;
  return { id, team: workspace ?? own ?? "", ...(outside ? { home: own } : {}) };
}
