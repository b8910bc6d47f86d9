import type { PreviewStep } from "../rules/fix.ts";

/** Characters of commands in one block: Slack takes 3,000. */
const COMMAND_TEXT = 2800;

const LONGEST = new RegExp(`[\\s\\S]{1,${COMMAND_TEXT}}`, "g");

/** Blocks of commands in a modal, which may have 100 in all. */
const COMMAND_BLOCKS = 8;

/**
 * Commands for people, in pieces that fit into a block each. What will run is never left out in silence.
 * @param most pieces
 * @returns `more`: how many commands are not shown, or not to their end
 */
export function commandTexts(steps: readonly PreviewStep[], most = COMMAND_BLOCKS): { readonly shown: readonly string[]; readonly more: number } {
  const shown: string[] = [];
  let current = "";
  for (const [index, step] of steps.entries()) {
    // a line that is longer than a block goes on in the next
    const lines = commandLines([step])
      .split("\n")
      .flatMap((line) => line.match(LONGEST) ?? [""]);
    for (const line of lines) {
      if (current !== "" && current.length + 1 + line.length > COMMAND_TEXT) {
        shown.push(current);
        current = "";
        if (shown.length === most) return { shown, more: steps.length - index };
      }
      current = current === "" ? line : `${current}\n${line}`;
    }
  }
  return { shown: current === "" ? shown : [...shown, current], more: 0 };
}

/** Commands as a person would type them. */
export function commandLines(steps: readonly PreviewStep[]): string {
  return steps
    .map(({ argv, stdin }) => {
      const command = argv.map((word) => (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
      return stdin === undefined ? command : `${command} <<'EOF'\n${stdin.trimEnd()}\nEOF`;
    })
    .join("\n");
}
