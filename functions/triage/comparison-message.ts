import { type Comparison, UNLIKE, WORTH_A_LOOK } from "../rules/compare.ts";
import { alikeText, collectedText, NOT_ALIKE } from "../rules/compare-report.ts";
import type { Evidence } from "../rules/diagnosis.ts";
import type { Incident, Message } from "./ports.ts";
import { byCommand } from "./report.ts";

/** Differences worth a look in one message; if there are more of any kind, all of them are in a file. */
const SHOWN_DIFFERENCES = 4;

/** Of a comparison that nobody asked for, less is told. */
const SHOWN_UNASKED = 3;

/** A pool whose nodes netcheck looked at by itself, because no rule found a cause on one of them. */
export interface Pool {
  readonly name: string;
  /** How many other nodes are in it. */
  readonly others: number;
  /** How many of them netcheck tried to look at. */
  readonly tried: number;
}

/** How much was compared, and what never is. */
function extentText({ facts, suppressed }: Comparison): string {
  const never = suppressed.momentary.length === 0 ? "" : "; connections, neighbours, log lines and counters are not: healthy nodes differ in them, too";
  return `${facts} ${facts === 1 ? "fact was" : "facts were"} compared${never}.`;
}

const NO_PEER =
  "No rule found a cause, and no other node of the pool could be looked at. Compare with a node that can: `/netcheck` with two names and `vs` between them.";

/** Why peers were looked at, what a difference is worth, and what to do with it. */
function unaskedText({ name, others, tried }: Pool, differences: number): string {
  const which = others === tried ? `the other ${others === 1 ? "node" : `${others} nodes`}` : `${tried} of the other ${others} nodes`;
  const looked = `No rule found a cause, so netcheck compared this node with ${which} of the pool ${name}.`;
  if (differences === 0) return looked;
  return `${looked} A difference is a hint, not a proof, and netcheck has no fix for it. Begin with the first: find out who made it, and what for, before you undo it.`;
}

/**
 * A node held against its peers.
 * @param comparison undefined if no peer could be looked at
 * @param problems peers that could not be looked at
 * @param pool undefined if somebody asked for the comparison
 */
export function comparisonMessage(
  incident: Incident,
  comparison: Comparison | undefined,
  problems: readonly { readonly peer: string; readonly reason: string }[],
  pool: Pool | undefined,
): Message {
  const weighty = comparison?.differences.filter(({ score }) => score >= WORTH_A_LOOK) ?? [];
  // what hardly matters would only stand beside what does
  const shown = weighty.slice(0, pool === undefined ? SHOWN_DIFFERENCES : SHOWN_UNASKED);
  const left = (comparison?.differences.length ?? 0) - shown.length;
  const peers = comparison?.peers ?? problems.map(({ peer }) => peer);
  const headline =
    comparison === undefined
      ? "could not be compared"
      : weighty.length === 0
        ? alikeText(comparison)
        : `${weighty.length} ${weighty.length === 1 ? "difference" : "differences"} worth a look`;
  return {
    template: "comparison",
    data: {
      incident: incident.id,
      target: incident.target,
      peers: peers.join(", "),
      icon: weighty.length > 0 ? "mag" : (comparison?.facts ?? 0) === 0 ? "grey_question" : "white_check_mark",
      headline,
      hint: weighty.length > UNLIKE ? NOT_ALIKE : pool === undefined ? "" : comparison === undefined ? NO_PEER : unaskedText(pool, weighty.length),
      footing: comparison === undefined ? "" : [collectedText(comparison.collected), extentText(comparison)].filter(Boolean).join(" "),
      differences: shown.map(({ what, why, here, there, notIn, change }, index) => ({
        number: index + 1,
        what,
        why,
        here: sideText(here, change === "missing-here" ? notIn : undefined),
        there: sideText(there, change === "only-here" ? notIn : undefined),
        peer: there[0]?.peer ?? (peers.length === 1 ? (peers[0] as string) : "the peers"),
      })),
      // of a comparison that nobody asked for, and that found nothing, no list is kept in the thread
      more: pool !== undefined && weighty.length === 0 ? 0 : left,
      notCompared: (comparison?.notCompared ?? []).slice(0, 4).map(({ fact, reason }) => ({ fact, reason: reason.slice(0, 300) })),
      notComparedMore: Math.max(0, (comparison?.notCompared.length ?? 0) - 4),
      problems,
    },
  };
}

/** The lines of one side under the command that printed them, or where nothing like it was found. */
function sideText(evidence: readonly Evidence[], notIn: string | undefined): string {
  if (evidence.length === 0) return notIn === undefined ? "" : `nothing like it in: ${notIn.slice(0, 90)}`;
  return byCommand(evidence)
    .map(({ command, lines }) => `$ ${command}\n${lines}`)
    .join("\n");
}
