import { isPromptLine } from "./command.ts";
import { lines, type UnparsedLines } from "./fact.ts";
import { jsonElements } from "./json.ts";

const COLUMN = /^([a-z_]{1,40})\s{0,40}: (.*)$/;

/** One row of a database table: each column as the list of its values, maps as "key=value". */
export interface DatabaseRecord {
  readonly line: number;
  readonly text?: string;
  readonly columns: ReadonlyMap<string, readonly string[]>;
}

/** `{"data":[[…],…],"headings":[…]}`. Headings come last, so nothing can be read of an output that was cut. */
export function jsonRecords(text: string, unparsed: UnparsedLines): DatabaseRecord[] {
  return jsonElements(text, unparsed).flatMap(({ value, line, text: quote }) => {
    const { data, headings } = value;
    if (!Array.isArray(data) || !Array.isArray(headings)) {
      unparsed.add(line, quote);
      return [];
    }
    return data.map((row: unknown) => ({
      line,
      text: JSON.stringify(row).slice(0, 4000),
      columns: new Map(headings.map((heading: unknown, i) => [String(heading), jsonCell(Array.isArray(row) ? row[i] : undefined)] as const)),
    }));
  });
}

/** RFC 7047: a scalar, ["uuid", u], ["set", […]] or ["map", [[k, v], …]]. */
function jsonCell(cell: unknown): string[] {
  if (!Array.isArray(cell)) return typeof cell === "string" || typeof cell === "number" || typeof cell === "boolean" ? [String(cell)] : [];
  const [kind, content] = cell as unknown[];
  if (kind === "uuid" && typeof content === "string") return [content];
  if (kind === "set" && Array.isArray(content)) return content.flatMap((item: unknown) => (Array.isArray(item) && item[0] !== "uuid" ? [] : jsonCell(item)));
  if (kind === "map" && Array.isArray(content)) {
    return content.flatMap((pair: unknown) =>
      Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string" ? [`${pair[0]}=${String(pair[1])}`] : [],
    );
  }
  return [];
}

/** Records of "column : value" lines with empty lines between them; the name's line is the one to quote. */
export function listRecords(text: string, unparsed: UnparsedLines): DatabaseRecord[] {
  const records: { line: number; columns: Map<string, string[]> }[] = [];
  let previous = -1;
  for (const { line, text: content } of lines(text)) {
    const column = COLUMN.exec(content);
    if (column === null) {
      if (!isPromptLine(content)) unparsed.add(line, content);
      continue;
    }
    const [, name, cell] = column as unknown as [string, string, string];
    let record = records.at(-1);
    if (record === undefined || line > previous + 1 || record.columns.has(name)) {
      record = { line, columns: new Map() };
      records.push(record);
    }
    if (name === "name") record.line = line;
    record.columns.set(name, cells(cell));
    previous = line;
  }
  return records;
}

/** `--format=csv`: a line of headings, then a line for each record. */
export function csvRecords(text: string, unparsed: UnparsedLines): DatabaseRecord[] {
  let headings: readonly string[] | undefined;
  const records: DatabaseRecord[] = [];
  for (const { line, text: content } of lines(text)) {
    const fields = csvFields(content);
    if (headings === undefined && fields?.every((field) => /^[a-z_]{1,40}$/.test(field))) headings = fields;
    else if (headings !== undefined && fields !== undefined && fields.length === headings.length) records.push({ line, columns: columnsOf(headings, fields) });
    else if (!isPromptLine(content)) unparsed.add(line, content);
  }
  return records;
}

/** The fields of a line of CSV, `""` for a quote between quotes; undefined if a quote stays open. */
function csvFields(content: string): string[] | undefined {
  const fields: string[] = [];
  let field = "";
  let quoted = false;
  for (let i = 0; i < content.length; i++) {
    const char = content[i] as string;
    if (char === '"' && quoted && content[i + 1] === '"') field += content[i++] as string;
    else if (char === '"') quoted = !quoted;
    else if (char === "," && !quoted) {
      fields.push(field);
      field = "";
    } else field += char;
  }
  return quoted ? undefined : [...fields, field];
}

/** `--format=table`: headings, a line of dashes as wide as each column, then a line for each record. */
export function tableRecords(text: string, unparsed: UnparsedLines): DatabaseRecord[] {
  const records: DatabaseRecord[] = [];
  let above = { line: 0, text: "" };
  let headings: readonly string[] = [];
  let starts: readonly number[] = [];
  const slices = (content: string): string[] => starts.map((start, i) => content.slice(start, starts[i + 1]).trim());
  for (const { line, text: content } of lines(text)) {
    if (/^-+(?: -+)*$/.test(content) && above.text !== "") {
      starts = [...content.matchAll(/-+/g)].map(({ index }) => index);
      headings = slices(above.text);
      above = { line: 0, text: "" };
    } else if (headings.length > 0) {
      const cut = starts.some((start) => start > 0 && content.length >= start && content[start - 1] !== " ");
      if (!cut) records.push({ line, columns: columnsOf(headings, slices(content)) });
      else if (!isPromptLine(content)) unparsed.add(line, content);
    } else {
      if (above.text !== "" && !isPromptLine(above.text)) unparsed.add(above.line, above.text);
      above = { line, text: content };
    }
  }
  if (above.text !== "" && !isPromptLine(above.text)) unparsed.add(above.line, above.text);
  return records;
}

const columnsOf = (headings: readonly string[], fields: readonly string[]): ReadonlyMap<string, string[]> =>
  new Map(headings.map((heading, i) => [heading, cells(fields[i] ?? "")]));

/** A cell of a list: `[]`, `[a, "b"]`, `{k=v, k="v"}`, `"text"` or a bare word, as the list of its values without quotes. */
export function cells(cell: string): string[] {
  const first = cell[0];
  if ((first !== "[" && first !== "{") || (!cell.endsWith("]") && !cell.endsWith("}"))) return [unquoted(cell)];
  const items: string[] = [];
  let item = "";
  let quoted = false;
  for (let i = 1; i < cell.length - 1; i++) {
    const char = cell[i] as string;
    if (char === "\\" && quoted) item += cell[++i] ?? "";
    else if (char === '"') quoted = !quoted;
    else if (char === "," && !quoted) {
      items.push(item.trim());
      item = "";
    } else item += char;
  }
  return [...items, item.trim()].filter((text) => text !== "");
}

/** A word without the quotes that OVS puts around what is no identifier. */
export function unquoted(text: string): string {
  if (!text.startsWith('"') || !text.endsWith('"') || text.length < 2) return text;
  return text.slice(1, -1).replace(/\\(.)/g, "$1");
}
