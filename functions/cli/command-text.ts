import type { Command } from "../facts/fact.ts";

/** A command as one types it: words that the shell would take apart are quoted. `{}` stands for the ids of a command that runs once for each. */
export function commandText({ argv }: Pick<Command, "argv">): string {
  return argv.map((word) => (/^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word}'`)).join(" ");
}
