import type { Store } from "../../functions/triage/ports.ts";

type Places = Pick<Store, "reserve">;

/** Somebody else's fix runs on the node ("cluster/name") from a moment on. */
export async function occupy(store: Places, node: string, proposal: string, at: Date): Promise<void> {
  const { ok } = await store.reserve(`node/${node}`, proposal, 1, undefined, at);
  if (!ok) throw new Error(`${node} is taken`);
}

/** Who holds the node; undefined: it is free for the next fix. However long ago it was taken. */
export async function holderOf(store: Places, node: string): Promise<string | undefined> {
  const { holders } = await store.reserve(`node/${node}`, "nobody, and no place is left", 0, undefined, new Date(0));
  return holders[0];
}
