import type { Message } from "./ports.ts";

/** A sentence with an icon; `again`: with a button that runs the triage again. */
export const noteMessage = (icon: string, text: string, incident = "", again = false): Message => ({
  template: again ? "note-again" : "note",
  data: { icon, text, incident },
});

/** What netcheck can be asked; `problem`: what was wrong with the question, "" if it was none. */
export const helpMessage = (problem: string): Message => ({ template: "help", data: { problem } });

/** One meaning of a name: what its button says, and the command (without "/netcheck") that asks for it. */
export interface Choice {
  readonly label: string;
  readonly command: string;
}

/**
 * A name means several things, or nothing: buttons for what it may have meant. `ambiguous`: it means each of these.
 * @param thread the thread of a message that names all of them, instead of one name; the one that is chosen is examined there
 */
export function chooseTargetMessage(name: string, ambiguous: boolean, choices: readonly Choice[], thread = ""): Message {
  // what could not be typed has no button
  const able = choices.filter(({ command }) => TYPEABLE.test(command));
  const shown = able.slice(0, MOST_CHOICES).map((choice, index) => ({ ...choice, index }));
  return { template: "choose-target", data: { name, ambiguous, unknown: !ambiguous, choices: shown, more: choices.length - shown.length, thread } };
}

/** Names of targets with blanks between them; Slack takes 2,000 characters as the value of a button. */
const TYPEABLE = /^[A-Za-z0-9][A-Za-z0-9_.:/ -]{0,1500}$/;

/** Buttons that one message shows: more are not read, and Slack takes 25. */
const MOST_CHOICES = 10;
