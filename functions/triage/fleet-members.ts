import { sha256 } from "./audit.ts";
import { auditDraft, type Context, proposalOf, SYSTEM } from "./context.ts";
import type { FleetRequest, Incident, MessageRef, Place, Ports, Proposal } from "./ports.ts";

/** Nodes that one approval is for, besides the first; more are left to the next examination. */
export const MOST_OTHERS = 200;

export type Ask<Kind extends FleetRequest["ask"]["kind"]> = Extract<FleetRequest["ask"], { kind: Kind }>;

/** Kind of the documents, by fleet/rule: what is decided of the others. */
export const KIND = "fleet-fix";
export interface Others {
  readonly state: "pending" | "approved" | "dismissed" | "expired" | "ended";
  /** sha256 of the hashes of all proposals, 16 hex digits: what was shown. */
  readonly hash: string;
  readonly proposals: readonly string[];
  /** Answers whoever waits for the decision. */
  readonly callback?: string;
}

/** One cause of a fleet that is being fixed. */
export interface Whole {
  readonly fleet: string;
  readonly rule: string;
  /** "cluster/name" of the node that was fixed first. */
  readonly first: string;
  /** The fleet's thread. */
  readonly place: Place;
}

/** A node that is to be fixed after the first, or why it cannot be. */
export interface Member {
  readonly node: string;
  readonly incident: string;
  readonly proposal?: string;
  readonly problem?: string;
}

const membersKey = ({ fleet, rule }: Pick<Whole, "fleet" | "rule">): string => `fleets/${fleet}/fix-${rule}`;

/** The nodes besides the first, in the order of the fleet; none before they were proposed. */
export async function loadMembers(ports: Pick<Ports, "store">, whole: Pick<Whole, "fleet" | "rule">): Promise<readonly Member[]> {
  const data = await ports.store.get(membersKey(whole));
  return data === undefined ? [] : (JSON.parse(new TextDecoder().decode(data)) as Member[]);
}

export async function saveMembers(ports: Pick<Ports, "store">, whole: Pick<Whole, "fleet" | "rule">, members: readonly Member[]): Promise<void> {
  await ports.store.put(membersKey(whole), new TextEncoder().encode(JSON.stringify(members)));
}

/** sha256 of the hashes of all proposals, 16 hex digits: what is shown, and decided. */
export const proposalsHash = (proposals: readonly Pick<Proposal, "hash">[]): string =>
  sha256(
    proposals
      .map(({ hash }) => hash)
      .toSorted()
      .join("\n"),
  ).slice(0, 16);

/** The proposals of the members that have one, in their order. */
export async function proposalsOf(ports: Pick<Ports, "store">, members: readonly Member[]): Promise<readonly Proposal[]> {
  return Promise.all(members.flatMap(({ proposal }) => (proposal === undefined ? [] : [proposalOf(ports, proposal)])));
}

/** Closes what is not going to run: nobody goes on with it. */
export async function closeAll({ ports }: Context, whole: Whole, state: "dismissed" | "expired" | "refused", reason = ""): Promise<void> {
  for (const { proposal: id, incident } of await loadMembers(ports, whole)) {
    if (id === undefined) continue;
    const { applied } = await ports.store.transition(
      id,
      ["pending", "approved"],
      { state },
      auditDraft(ports, `closed/${id}`, SYSTEM, { proposal: id, state, reason }),
    );
    const proposal = await proposalOf(ports, id);
    if (applied || proposal.state === state) {
      await ports.store.update(incident, { state: state === "refused" ? "unresolved" : state }, []);
    }
  }
}

/** "1 node", "2 nodes". */
export const plural = (count: number, one: string): string => `${count} ${count === 1 ? one : `${one}s`}`;

/** A fleet of this channel. Undefined if there is none: whoever asks elsewhere learns nothing. */
export async function fleetHere(ports: Pick<Ports, "store">, id: string, place: Place): Promise<(Incident & { readonly thread: MessageRef }) | undefined> {
  const incident = await ports.store.incident(id);
  const { thread } = incident ?? {};
  return incident?.nodes === undefined || thread === undefined || thread.channel !== place.channel ? undefined : { ...incident, thread };
}
