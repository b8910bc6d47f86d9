import type { Evidence } from "../rules/diagnosis.ts";
import type { Message } from "./ports.ts";

/** Something about a pod or a service that is not as it should be, with the lines that prove it (none where the proof is what is not there). */
export interface Wrong {
  readonly what: string;
  readonly evidence: readonly Evidence[];
}

/** What was seen of a pod or a service. */
export interface Findings {
  /** Lines of a table, each of them short. */
  readonly table: readonly string[];
  readonly wrong: readonly Wrong[];
  /** What could not be checked and why, for people. */
  readonly unchecked: readonly string[];
  /** What to do next where something is wrong. */
  readonly next?: string;
}

/** A chat takes so much of one text, and a person reads no more. */
const MAX_TABLE = 2800;
const MAX_WRONG = 8;
const MAX_LINES = 4;
const MAX_UNCHECKED = 8;

export function workloadMessage(title: string, { table, wrong, unchecked, next }: Findings, note = ""): Message {
  const icon = wrong.length > 0 ? "large_orange_circle" : unchecked.length > 0 ? "grey_question" : "white_check_mark";
  return {
    template: "workload",
    data: {
      icon,
      title,
      table: cut(table),
      wrong: wrong.slice(0, MAX_WRONG).map(({ what, evidence }) => ({ what: what.slice(0, 600), lines: quoted(evidence.slice(0, MAX_LINES)) })),
      more: Math.max(0, wrong.length - MAX_WRONG),
      unchecked: unchecked.slice(0, MAX_UNCHECKED).map((reason) => ({ reason: reason.slice(0, 500) })),
      note: [next, note].filter(Boolean).join(" "),
    },
  };
}

function cut(lines: readonly string[]): string {
  let size = 0;
  const shown: string[] = [];
  for (const line of lines) {
    size += line.length + 1;
    if (size > MAX_TABLE) return [...shown, `… ${lines.length - shown.length} more lines`].join("\n");
    shown.push(line);
  }
  return shown.join("\n");
}

const quoted = (evidence: readonly Evidence[]): string =>
  evidence.map(({ command, line, text }) => `$ ${command.slice(0, 90)}\n${line}: ${text.slice(0, 300)}`).join("\n");
