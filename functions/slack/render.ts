import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Handlebars from "handlebars";
import type { Message } from "../triage/ports.ts";
import { validateBlocks } from "./block-kit.ts";
import { cut, mrkdwn, plain, user } from "./escape.ts";

/**
 * Messages from templates/slack/*.json. The block structure is parsed first, then each string leaf is rendered by Handlebars, so data can never add or
 * break a block. Two structural keys: `{"$if": "path", "then": […], "else": […]}` and `{"$each": "path", "as": […]}` stand where array elements do; a property
 * whose value is `{"$if": "path", "then": …}` is there only if that is true.
 */

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type Scope = Record<string, unknown>;
/** How the leaf is read by Slack: as mrkdwn, or literally. */
type Kind = "mrkdwn" | "plain";

/** What is sent to Slack. */
export interface Rendered {
  readonly text: string;
  readonly blocks: Record<string, unknown>[];
  /** Frame of a modal. */
  readonly view?: Record<string, unknown>;
}

/** Renders a message. What is too long is cut after escaping; if blocks would still be refused by Slack, throws and names the limit. */
export type Renderer = (message: Message) => Rendered;

/** Loads and checks all templates of a folder. Throws at the first bad one, naming the file. */
export function loadTemplates(folder: string): Renderer {
  const handlebars = Handlebars.create();
  const templates = new Map<string, { text: string; blocks: Json[]; view?: { [key: string]: Json } }>();
  for (const file of readdirSync(folder).filter((name) => name.endsWith(".json"))) {
    try {
      templates.set(file.slice(0, -5), JSON.parse(readFileSync(join(folder, file), "utf8")));
    } catch (cause) {
      throw new Error(`${join(folder, file)}: could not parse the template: ${(cause as Error).message}`, { cause });
    }
  }
  const compiled = new Map<string, HandlebarsTemplateDelegate>();
  const leaf = (template: string, scope: Scope, kind: Kind): string => {
    if (!template.includes("{{")) return template;
    const key = `${kind} ${template}`;
    let render = compiled.get(key);
    if (render === undefined) {
      // escaping is done on the data beforehand, by kind: Handlebars' own is for HTML
      render = handlebars.compile(template, { noEscape: true, strict: true, knownHelpersOnly: true, knownHelpers: { user: true, users: true, date: true } });
      compiled.set(key, render);
    }
    return render(kind === "mrkdwn" ? deep(scope, mrkdwn) : deep(scope, plain), { helpers: HELPERS });
  };
  return (message) => {
    const template = templates.get(message.template);
    if (template === undefined) throw new Error(`there is no template "${message.template}" in ${folder}`);
    const scope = message.data as Scope;
    const blocks = expand(template.blocks, scope, leaf) as Record<string, unknown>[];
    const view = template.view === undefined ? undefined : (expand(template.view, scope, leaf) as Record<string, unknown>);
    const most = view === undefined ? MESSAGE_BLOCKS : MODAL_BLOCKS;
    const fitted = blocks.length <= most ? blocks : [...blocks.slice(0, most - 1), ...blocks.slice(-1)];
    const problems = validateBlocks(fitted, view === undefined ? "message" : view["type"] === "home" ? "home" : "modal");
    if (problems.length > 0) throw new Error(`template "${message.template}": Slack would refuse it: ${problems.join("; ")}`);
    return { text: cut(leaf(template.text, scope, "mrkdwn"), 3000), blocks: fitted, ...(view === undefined ? {} : { view }) };
  };
}

/** Slack's limits. */
const MESSAGE_BLOCKS = 50;
const MODAL_BLOCKS = 100;

const HELPERS = {
  user: (id: string) => user(id),
  users: (ids: readonly string[]) => (Array.isArray(ids) ? ids.map((id) => user(String(id))).join(", ") : ""),
  // shown in each reader's own time zone
  date: (seconds: number, fallback: string) => `<!date^${Math.floor(Number(seconds))}^{date_short_pretty} {time}|${fallback}>`,
};

/** Limits by place, from Slack's Block Kit reference: header 150, button and title text 75 and 24, section text 3000, option text 75, context, label and hint text 2000. */
function limitOf(container: string): number {
  if (container === "header") return 150;
  if (container === "button" || container === "static_select") return 75;
  if (container === "title" || container === "submit" || container === "close") return 24;
  if (container === "confirm") return 300;
  if (container === "context" || container === "label" || container === "hint") return 2000;
  return 3000;
}

function expand(
  node: Json,
  scope: Scope,
  leaf: (template: string, scope: Scope, kind: Kind) => string,
  parent: { [key: string]: Json } = {},
  container = "",
): unknown {
  if (Array.isArray(node)) return node.flatMap((item) => expandItem(item, scope, leaf, container));
  if (typeof node === "string") {
    const kind: Kind = parent["type"] === "mrkdwn" ? "mrkdwn" : "plain";
    const text = leaf(node, scope, kind);
    // Slack refuses empty text objects
    return cut(text === "" ? " " : text, limitOf(container));
  }
  if (typeof node !== "object" || node === null) return node;
  const result: Record<string, unknown> = {};
  for (const [key, given] of Object.entries(node)) {
    const value = present(given, scope);
    if (value === undefined) continue;
    const inside =
      typeof value === "object" && value !== null && !Array.isArray(value) && ["title", "submit", "close", "confirm", "label", "hint"].includes(key)
        ? key
        : typeof node["type"] === "string"
          ? node["type"]
          : container;
    const isText = typeof value === "string" && key === "text";
    result[key] =
      typeof value === "string" && !isText ? leaf(value, scope, "plain") : expand(value, scope, leaf, node, isText && container !== "" ? container : inside);
  }
  return result;
}

function expandItem(item: Json, scope: Scope, leaf: (template: string, scope: Scope, kind: Kind) => string, container: string): unknown[] {
  if (typeof item === "object" && item !== null && !Array.isArray(item)) {
    if ("$if" in item) {
      const branch = truthy(lookup(scope, item["$if"] as string)) ? item["then"] : (item["else"] ?? []);
      return expand(branch as Json, scope, leaf, {}, container) as unknown[];
    }
    if ("$each" in item) {
      const list = lookup(scope, item["$each"] as string);
      return (Array.isArray(list) ? list : []).flatMap((entry: unknown) => {
        const inner = typeof entry === "object" && entry !== null ? { ...scope, ...entry } : { ...scope, item: entry };
        return expand(item["as"] as Json, inner, leaf, {}, container) as unknown[];
      });
    }
  }
  return [expand(item, scope, leaf, {}, container)];
}

/** The value of a property; undefined if it is there on a condition that does not hold. */
function present(value: Json, scope: Scope): Json | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value) || !("$if" in value)) return value;
  return truthy(lookup(scope, value["$if"] as string)) ? value["then"] : value["else"];
}

const truthy = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value));

/** Own properties only: data cannot reach a prototype. */
function lookup(scope: Scope, path: string): unknown {
  let value: unknown = scope;
  for (const key of path.split(".")) value = typeof value === "object" && value !== null && Object.hasOwn(value, key) ? (value as Scope)[key] : undefined;
  return value;
}

/** Every string of the data, through a function. */
function deep(value: unknown, through: (text: string) => string): unknown {
  if (typeof value === "string") return through(value);
  if (Array.isArray(value)) return value.map((item) => deep(item, through));
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, deep(item, through)]));
  return value;
}
