import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import Handlebars from "handlebars";
import { plain } from "./escape.ts";

/**
 * Loads the files that are attached to a thread: templates/report.md.hbs, and beside it, by name, timeline.md.hbs and timeline.html.hbs.
 * In Markdown, node output stands only in indented blocks and code spans, and every other text is escaped with `md`; in HTML, Handlebars escapes all.
 * @throws if a template is missing or wrong
 */
export function loadReport(file: string): (data: Record<string, unknown>, name?: ReportName) => string {
  const templates = Object.fromEntries(REPORTS.map((name) => [name, compile(name === "report.md" ? file : join(dirname(file), `${name}.hbs`))]));
  return (data, name = "report.md") => {
    const text = templates[name]?.(data) ?? "";
    return name.endsWith(".md") ? text.replaceAll(/\n{3,}/g, "\n\n") : text;
  };
}

const REPORTS = ["report.md", "timeline.md", "timeline.html"] as const;
type ReportName = (typeof REPORTS)[number];

function compile(file: string): (data: Record<string, unknown>) => string {
  const html = file.endsWith(".html.hbs");
  const template = Handlebars.create().compile(readFileSync(file, "utf8"), { noEscape: !html, knownHelpersOnly: true, knownHelpers: html ? {} : KNOWN });
  return (data) => template(html ? visible(data) : data, html ? {} : { helpers: HELPERS });
}

/** What Markdown would act on, HTML included; and what GitHub makes links of without being asked. */
const ACTIVE = /[\\`*_{}[\]<>#&|~]|(?<=:)\/(?=\/)|(?<=\bwww)\./gi;

const HELPERS = {
  indent: (text: unknown) => plain(String(text)).replaceAll("\n", "\n    "),
  code: (text: unknown) => plain(String(text)).replaceAll("`", "'").replaceAll("\n", " "),
  md: (text: unknown) =>
    plain(String(text))
      .replaceAll(/\s*\n\s*/g, " ")
      .replaceAll(ACTIVE, String.raw`\$&`),
};
const KNOWN = { indent: true, code: true, md: true };

/** The data without what cannot be seen. */
function visible(value: unknown): unknown {
  if (typeof value === "string") return plain(value);
  if (Array.isArray(value)) return value.map(visible);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, visible(item)]));
  return value;
}
