import { withoutEntities } from "../facts/paste.ts";
import { isCommand } from "./bundle.ts";

/**
 * Commands with what they printed in the rows of a table: of a spreadsheet (CSV), of a page (HTML), of Markdown, whose lines end with `<br>`.
 *
 *     host,command,output
 *     n1,"ip rule","0:	from all lookup local
 *     32766:	from all lookup main"
 */
export interface TableRow {
  readonly node: string | undefined;
  readonly command: string;
  readonly text: string;
}

const HEAD = /^"?[A-Za-z][\w .-]{0,60}"?(?:([,;\t])"?[A-Za-z][\w .-]{0,60}"?){1,20}\r?$/;
const NODE = /^"?(?:node|host)(?:[ _-]?name)?"?$/i;
const isTyped = (text: string): boolean => text.length < 2000 && /^[a-z/]/.test(text) && isCommand(text);

/** The rows of such a table that have a command and an output; none if the text is no table. Pure, total, linear. */
export function tableRows(text: string): TableRow[] {
  const [head = [], ...rows] = tableOf(text);
  const node = head.findIndex((cell) => NODE.test(cell.trim()));
  return rows.flatMap((row): TableRow[] => {
    const at = row.findIndex((cell) => isTyped(bare(cell)));
    const printed = row.slice(at + 1).reduce((longest, cell) => (cell.length > longest.length ? cell : longest), "");
    const name = row[node]?.trim() ?? "";
    if (at === -1 || at === row.length - 1) return [];
    return [{ node: /^[\w.-]{1,253}$/.test(name) ? name : undefined, command: bare(row[at] ?? ""), text: printed.endsWith("\n") ? printed : `${printed}\n` }];
  });
}

const bare = (cell: string): string => cell.trim().replace(/^`(.*)`$/, "$1");

function tableOf(text: string): string[][] {
  const lines = text.trim().split("\n");
  const first = lines[0] ?? "";
  if (HEAD.test(first)) {
    const rows = spreadsheet(text.trim(), HEAD.exec(first)?.[1] ?? ",");
    // a greeting has commas, too
    return rows.every((row) => row.length === rows[0]?.length) ? rows : [];
  }
  if (/^<(?:table|tr|html|body|!doctype)\b/i.test(first)) {
    const parts = (from: string, start: RegExp, end: RegExp): string[] =>
      from
        .split(start)
        .slice(1)
        .map((part) => part.split(end, 1)[0] ?? "");
    const rows = parts(text, /<tr\b[^<>]{0,200}>/i, /<\/tr>/i).map((row) => parts(row, /<t[dh]\b[^<>]{0,200}>/i, /<\/t[dh]>/i).map(shown));
    return [[], ...rows];
  }
  const isTable = /^\|[\s:|-]{3,400}$/.test(lines[1]?.trimEnd() ?? "") && lines.every((line) => line.startsWith("|"));
  return isTable
    ? lines.map((line) =>
        line
          .split(/(?<!\\)\|/)
          .slice(1, -1)
          .map((cell) => shown(cell.replaceAll("\\|", "|").trim())),
      )
    : [];
}

/** A cell as a page shows it. */
const shown = (cell: string): string =>
  withoutEntities(cell.replaceAll(/<br ?\/?>/gi, "\n").replaceAll(/<\/?(?:pre|code|b|tt|p|span|div)(?:\s[^<>]{0,200})?>/gi, ""));

/** Rows of CSV: a cell between quotes may have commas, lines, and quotes as two. */
function spreadsheet(text: string, comma: string): string[][] {
  const rows: string[][] = [];
  for (let at = 0; at < text.length; ) {
    const row: string[] = [];
    for (;;) {
      if (text[at] === '"') {
        let end = at + 1;
        while (end < text.length && (text[end] !== '"' || text[end + 1] === '"')) end += text[end] === '"' ? 2 : 1;
        row.push(text.slice(at + 1, end).replaceAll('""', '"'));
        at = end + 1;
      } else {
        const start = at;
        while (at < text.length && text[at] !== comma && text[at] !== "\n") at++;
        row.push(text.slice(start, at).replace(/\r$/, ""));
      }
      if (text[at] === "\r") at++;
      if (text[at] !== comma) break;
      at++;
    }
    rows.push(row);
    while (at < text.length && text[at] !== "\n") at++;
    at++;
  }
  return rows;
}
