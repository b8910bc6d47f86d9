import { readFileSync } from "node:fs";
import Handlebars from "handlebars";
import { plain } from "./escape.ts";

/** Loads templates/report.md.hbs: the full report as Markdown. Node output stands only in indented blocks and code spans. */
export function loadReport(file: string): (data: Record<string, unknown>) => string {
  const handlebars = Handlebars.create();
  const template = handlebars.compile(readFileSync(file, "utf8"), { noEscape: true, knownHelpersOnly: true, knownHelpers: { indent: true, code: true } });
  const helpers = {
    indent: (text: unknown) => plain(String(text)).replaceAll("\n", "\n    "),
    code: (text: unknown) => plain(String(text)).replaceAll("`", "'").replaceAll("\n", " "),
  };
  return (data) => template(data, { helpers }).replaceAll(/\n{3,}/g, "\n\n");
}
