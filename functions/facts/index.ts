import type { AnyFact, DerivedFact } from "./fact.ts";
import { neighbor } from "./neighbor.ts";

/** Every fact, one line each: the list that runbooks, rules, the CLI and the docs share. */
export const facts: readonly AnyFact[] = [neighbor];

/** Facts computed from others. A derived fact stands behind the ones that it is derived from. */
export const derivedFacts: readonly DerivedFact[] = [];
