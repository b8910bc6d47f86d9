import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";

const PAGE = new URL("../../docs/reliability.md", import.meta.url);

/** One line of a table of docs/reliability.md. `ok`: whether what must hold did; absent where it is only a number. */
export interface Line {
  readonly what: string;
  readonly measured: string;
  readonly must: string;
  readonly ok?: boolean;
}

/** The lines as a table, with the machine they were measured on. */
export function tableOf(lines: readonly Line[]): string {
  const verdict = (ok: boolean | undefined): string => (ok === undefined ? "" : ok ? " ✓" : " ✗ missed");
  const rows = lines.map(({ what, measured, must, ok }) => `| ${what} | ${measured} | ${must}${verdict(ok)} |`);
  const cores = cpus();
  const machine = `Node ${process.version} on ${cores.length} × ${cores[0]?.model.trim() || "unknown CPU"}, ${process.platform} ${process.arch}.`;
  return `| What | Measured | What must hold |\n| --- | --- | --- |\n${rows.join("\n")}\n\n${machine}\n`;
}

/** Puts a table between `<!-- name -->` and `<!-- /name -->` of docs/reliability.md. @throws if the page has no such place */
export function writeTable(name: string, table: string): void {
  const marks = new RegExp(`(<!-- ${name} -->\\n)[\\s\\S]*(<!-- /${name} -->)`);
  const page = readFileSync(PAGE, "utf8");
  if (!marks.test(page)) throw new Error(`docs/reliability.md has no place for the table of "${name}"`);
  writeFileSync(
    PAGE,
    page.replace(marks, (_all, before: string, after: string) => `${before}\n${table}\n${after}`),
  );
}

export const seconds = (milliseconds: number): string =>
  milliseconds >= 120_000 ? `${(milliseconds / 60_000).toFixed(1)} min` : `${(milliseconds / 1000).toFixed(1)} s`;
