import type { Diagnosis } from "../rules/diagnosis.ts";
import type { Mute, Store } from "./ports.ts";

/** Kind of the documents, by cluster/target/rule. */
export const MUTE = "mute";
export const muteKey = ({ cluster, target, rule }: Pick<Mute, "cluster" | "target" | "rule">): string => `${cluster}/${target}/${rule}`;
/** Mutes of one node that are read: more than there are rules. */
const MOST = 500;
/** Mutes of all nodes that are read. */
const MOST_STORED = 5000;

/** The mutes of a node that are in force at `at`. */
export async function mutesOn(store: Pick<Store, "list">, cluster: string, target: string, at: Date): Promise<readonly Mute[]> {
  return inForce(await store.list<Mute>(MUTE, { prefix: `${cluster}/${target}/`, limit: MOST }), at);
}

/** All mutes that are in force at `at`, at most `limit`, by cluster, target and rule. */
export async function allMutes(store: Pick<Store, "list">, at: Date, limit: number): Promise<readonly Mute[]> {
  // those that are over are still there
  return inForce(await store.list<Mute>(MUTE, { limit: MOST_STORED }), at).slice(0, limit);
}

const inForce = (found: readonly { readonly value: Mute }[], at: Date): readonly Mute[] =>
  found.map(({ value }) => value).filter(({ until }) => Date.parse(until) > at.getTime());

/** The mutes that hide something of a diagnosis. */
export function hiding(diagnosis: Diagnosis, mutes: readonly Mute[]): readonly Mute[] {
  const found = new Set([...diagnosis.causes, ...diagnosis.symptoms, ...diagnosis.risks].map(({ rule }) => rule));
  return mutes.filter(({ rule }) => found.has(rule));
}

/** A diagnosis without what is muted. Its verdict stays: what is hidden is no reason to call a node healthy. */
export function withoutMuted(diagnosis: Diagnosis, mutes: readonly Mute[] = []): Diagnosis {
  if (mutes.length === 0) return diagnosis;
  const muted = new Set(mutes.map(({ rule }) => rule));
  const heard = <F extends { readonly rule: string }>(findings: readonly F[]): readonly F[] => findings.filter(({ rule }) => !muted.has(rule));
  return { ...diagnosis, causes: heard(diagnosis.causes), symptoms: heard(diagnosis.symptoms), risks: heard(diagnosis.risks) };
}
