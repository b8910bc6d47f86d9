/** A Markdown table. Cells are escaped where they are not code. */
export function table(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] {
  const line = (cells: readonly (string | number)[]): string => `| ${cells.map((item) => cell(String(item))).join(" | ")} |`;
  return [line(head), `|${" --- |".repeat(head.length)}`, ...rows.map(line)];
}

const cell = (text: string): string => prose(text).replaceAll("|", "\\|");

/** Text on one line in which nothing passes for HTML; what stands between backquotes is left as it is. */
export function prose(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .trim()
    .split(/(`[^`]*`)/)
    .map((part, i) => (i % 2 === 1 ? part : part.replaceAll("<", "&lt;")))
    .join("");
}
