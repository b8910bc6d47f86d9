import { type Collection, type Comparison, UNLIKE, WORTH_A_LOOK } from "./compare.ts";
import type { Evidence } from "./diagnosis.ts";

/** For a comparison with more differences than {@link UNLIKE}. */
export const NOT_ALIKE = "So many differences mean that these nodes are not built alike. Compare with a healthy node of the same pool.";

const HOUR = 3_600_000;

/**
 * How old the facts of each side are, in one line; empty if no capture tells. Nothing is ever remembered from an earlier triage, but a replayed or
 * imported capture can be of any age.
 */
export function collectedText(collected: readonly Collection[]): string {
  const times = collected.flatMap(({ at }) => (at === undefined ? [] : [Date.parse(at)]));
  if (times.length === 0) return "";
  const days = new Set(collected.flatMap(({ at }) => (at === undefined ? [] : [at.slice(0, 10)])));
  const [day = ""] = days;
  const clock = (at: string): string => `${days.size > 1 ? `${at.slice(0, 10)} ` : ""}${at.slice(11, 19)}`;
  const list = collected.map(({ name, at }) => `${name} ${at === undefined ? "at an unknown time" : clock(at)}`).join(", ");
  const words = collected.every(({ transport }) => transport === "replay") ? "Facts as recorded (replayed nodes)" : "Facts collected";
  const apart = Math.floor((Math.max(...times) - Math.min(...times)) / HOUR);
  const warning = apart < 1 ? "" : ` The oldest and the newest are ${apart} h apart: what changed in between is a difference, too.`;
  return `${words}${days.size === 1 ? ` on ${day}` : ""}: ${list} (UTC).${warning}`;
}

/** What can be said where no difference is worth a look: not more than what was compared. */
export function alikeText({ facts, notCompared }: Pick<Comparison, "facts" | "notCompared">): string {
  if (facts === 0) return "nothing of them could be compared";
  const which = facts === 1 ? "the one fact that could be compared" : `the ${facts} facts that could be compared`;
  return `no difference that matters to traffic${notCompared.length === 0 ? "" : `, in ${which}`}`;
}

/** A comparison as plain text, for a terminal or a file: everything, with the lines of both sides. Control characters of a node's output are replaced. */
export function comparisonText(comparison: Comparison): string {
  const { target, peers, differences, suppressed, notCompared } = comparison;
  const weighty = differences.filter(({ score }) => score >= WORTH_A_LOOK).length;
  const lines = [`${target} compared with ${peers.join(", ")}: ${weighty === 0 ? alikeText(comparison) : `${weighty} worth a look`}`];
  const age = collectedText(comparison.collected);
  if (age !== "") lines.push(age);
  if (weighty > UNLIKE) lines.push(NOT_ALIKE);
  differences.forEach((difference, index) => {
    const { what, why, score, usualIn, here, there, notIn } = difference;
    if (index === weighty) lines.push("", "Hardly matters:");
    lines.push("", `${index + 1}. ${what}`, `   score ${score.toFixed(2)}; usual on ${usualIn.peers} of ${usualIn.of}${why === "" ? "" : `; ${why}`}`);
    lines.push(...side("here", here, difference.change === "missing-here" ? notIn : undefined));
    lines.push(...side(`on ${there[0]?.peer ?? "peers"}`, there, difference.change === "only-here" ? notIn : undefined));
  });
  if (notCompared.length > 0) lines.push("", "NOT COMPARED", ...notCompared.map(({ fact, reason }) => `  ${fact}: ${reason}`));
  const left = [
    suppressed.minor > 0 ? `${suppressed.minor} that do not matter` : "",
    suppressed.noMajority > 0 ? `${suppressed.noMajority} on which the peers do not agree` : "",
    suppressed.overLimit > 0 ? `${suppressed.overLimit} over the limit (--limit)` : "",
  ].filter(Boolean);
  if (left.length > 0) lines.push("", `Left out: ${left.join(", ")}`);
  if (suppressed.momentary.length > 0) lines.push("", `Never compared, because they change from moment to moment: ${suppressed.momentary.join(", ")}`);
  return `${lines.join("\n").replaceAll(/[\p{Cc}\p{Cf}]/gu, (mark) => (mark === "\n" ? mark : "�"))}\n`;
}

function side(label: string, evidence: readonly Evidence[], notIn: string | undefined): string[] {
  if (evidence.length === 0) return notIn === undefined ? [] : [`   ${label}: nothing like it in \`${notIn.length > 90 ? `${notIn.slice(0, 89)}…` : notIn}\``];
  return [
    `   ${label}:`,
    ...evidence.map(({ command, line, text }) => `     ${command.slice(0, 60)}:${line}: ${text.replace(/\s+/g, " ").trim().slice(0, 200)}`),
  ];
}
