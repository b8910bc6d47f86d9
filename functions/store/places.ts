import type { Reserved } from "../triage/ports.ts";

/** Who holds one of a limited number of places, and since when (milliseconds since 1970). */
export interface Place {
  readonly holder: string;
  readonly at: number;
}

/**
 * Takes a place where one is free. Whoever holds one already keeps it, and from now on.
 * @param keepMs milliseconds after which a place is free again; undefined: never by itself
 * @returns `places`: who holds them now, undefined if nothing changed
 */
export function take(
  held: readonly Place[],
  { holder, most, keepMs, at }: { readonly holder: string; readonly most: number; readonly keepMs: number | undefined; readonly at: number },
): Reserved & { readonly places?: readonly Place[] } {
  const taken = held.filter((place) => keepMs === undefined || at - place.at < keepMs);
  const holders = taken.map((place) => place.holder);
  const own = taken.find((place) => place.holder === holder);
  if (own === undefined && taken.length >= most) return { ok: false, holders };
  const since = Math.max(at, own?.at ?? at);
  return { ok: true, holders, places: [...taken.filter((place) => place !== own), { holder, at: since }] };
}
