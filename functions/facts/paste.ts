import { isPromptLine } from "./command.ts";

/** True for a line that a terminal added to an output: a shell prompt, with a command behind it or without (the last line of many pastes). */
export function isPrompt(line: string): boolean {
  return isPromptLine(`${line} x`);
}

/** `text` with the prompts in front of it and behind it blanked out, line numbers kept. For formats that are not read line by line (JSON). */
export function withoutPrompts(text: string): string {
  let start = 0;
  let newlines = 0;
  for (;;) {
    const end = text.indexOf("\n", start);
    const first = text.slice(start, end === -1 ? Math.min(text.length, start + 400) : Math.min(end, start + 400));
    if (end === -1 || !(first.trim() === "" || isPrompt(first))) break;
    newlines++;
    start = end + 1;
  }
  let end = text.trimEnd().length;
  const last = text.lastIndexOf("\n", end - 1);
  if (last >= start && end - last < 400 && isPrompt(text.slice(last + 1, end))) end = last;
  return "\n".repeat(newlines) + text.slice(start, end);
}
