import type { Command } from "../facts/fact.ts";

/** A sentence in which commands of more than 160 characters, between backticks, are cut: one that lists every key it reads hides the rest. */
export const withShortCommands = (text: string): string => text.replace(/`([^`]{159})[^`]{2,}`/g, "`$1…`");

/** A command as one types it: words that the shell would take apart are quoted. `{}` stands for the ids of a command that runs once for each. */
export function commandText({ argv }: Pick<Command, "argv">): string {
  return argv.map((word) => (/^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word}'`)).join(" ");
}
