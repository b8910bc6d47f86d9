/** The command line is wrong: exit code 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** It could not be done, and the message says why in a sentence for people: exit code 1, without a stack. */
export class CommandError extends Error {
  override readonly name = "CommandError";
}
