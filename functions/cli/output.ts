/** Prints a list: one JSON array, or a text for each item. */
export function print<T>(json: boolean | undefined, list: readonly T[], line: (item: T) => string): void {
  process.stdout.write(json === true ? `${JSON.stringify(list)}\n` : list.map((item) => `${line(item)}\n`).join(""));
}

/** What the parts of the `netcheck` command share. */
export interface Shared {
  /** The `runbooks/` folder in use. */
  readonly runbooks: string;
  /** Wraps an action: an expected error becomes a sentence on stderr and an exit code, any other one shows its stack. */
  readonly run: <Args extends unknown[]>(action: (...args: Args) => Promise<void> | void) => (...args: Args) => Promise<void>;
}

/** Says on stderr what a list leaves out because it does not load: nobody must believe that it is not there. */
export function warnOfBroken(broken: ReadonlyMap<string, string>): void {
  for (const [id, problem] of broken) process.stderr.write(`netcheck: ${id} is left out, it does not load: ${problem}\n`);
}

/** Their names say that their message is a sentence for people; any other error is a bug and shows its stack. */
const EXPECTED = new Set(["CaptureError", "LoadError", "UsageError", "CommandError", "TransportError"]);

/** True for an error that says what is wrong in words for people. By name, so that nothing has to be loaded to ask. */
export function isExpected(error: unknown): error is Error {
  return error instanceof Error && EXPECTED.has(error.name);
}
