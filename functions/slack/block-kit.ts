import { z } from "zod";
import { block, limits, view } from "./block-schema.ts";
import { elementsOf } from "./elements.ts";

export type { Block, Confirm, Element, Inline, Option, RichTextElement, Text } from "./block-schema.ts";
export { limits } from "./block-schema.ts";
export { elementsOf, optionsOf } from "./elements.ts";

export type Surface = "message" | "modal" | "home";

/**
 * Checks blocks against Block Kit as Slack does, offline.
 * @param blocks what would be sent as `blocks`, any value
 * @returns one line per problem in Slack's own form, `[ERROR] <what> [json-pointer:/blocks/0/text/text]`; empty: Slack takes it.
 */
export function validateBlocks(blocks: unknown, surface: Surface): string[] {
  const most = surface === "message" ? limits.messageBlocks : limits.modalBlocks;
  const parsed = z.array(block).max(most).safeParse(blocks);
  if (!parsed.success) return parsed.error.issues.map((issue) => problem(issue, "/blocks"));
  const problems: string[] = [];
  unique(
    parsed.data.map((one, index) => ({ id: one.block_id, at: `/blocks/${index}/block_id` })),
    "block_id",
    problems,
  );
  unique(
    parsed.data.flatMap((one, index) => elementsOf(one).map((element) => ({ id: element.action_id, at: `/blocks/${index}` }))),
    "action_id",
    problems,
  );
  const tables = parsed.data.filter((one) => one.type === "table").length;
  if (tables > 1) problems.push("[ERROR] only one table allowed per message [json-pointer:/blocks]");
  return problems;
}

/** Checks a modal or Home tab as `validateBlocks` does, with its title, buttons and hidden fields. */
export function validateView(value: unknown): string[] {
  const parsed = view.safeParse(value);
  if (!parsed.success) return parsed.error.issues.map((issue) => problem(issue, "/view"));
  const problems: string[] = [];
  if (parsed.data.type === "modal" && parsed.data.title === undefined) problems.push("[ERROR] missing required field: title [json-pointer:/view]");
  const blocks: unknown = parsed.data["blocks"];
  problems.push(...validateBlocks(blocks, parsed.data.type).map((line) => line.replace("json-pointer:/blocks", "json-pointer:/view/blocks")));
  const asks = Array.isArray(blocks) && (blocks as { type?: unknown }[]).some((one) => one.type === "input");
  if (parsed.data.type === "modal" && asks && parsed.data.submit === undefined) problems.push("[ERROR] missing required field: submit [json-pointer:/view]");
  return problems;
}

function unique(ids: readonly { id: string | undefined; at: string }[], field: string, problems: string[]): void {
  const seen = new Set<string>();
  for (const { id: value, at } of ids) {
    if (value === undefined) continue;
    if (seen.has(value)) problems.push(`[ERROR] ${field} "${value}" already exists [json-pointer:${at}]`);
    seen.add(value);
  }
}

function problem(issue: z.core.$ZodIssue, root: string): string {
  return `[ERROR] ${explain(issue)} [json-pointer:${[root, ...issue.path.map(String)].join("/")}]`;
}

function explain(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case "too_big":
      return issue.origin === "string" ? `must be less than ${Number(issue.maximum) + 1} characters` : `no more than ${issue.maximum} items allowed`;
    case "too_small":
      return issue.origin === "string" ? `must be more than ${Number(issue.minimum) - 1} characters` : `no fewer than ${issue.minimum} items allowed`;
    case "unrecognized_keys":
      return `additional property: ${issue.keys.join(", ")}`;
    case "invalid_union":
      return `unsupported type${"discriminator" in issue && issue.discriminator !== undefined ? "" : " or value"}`;
    case "invalid_type":
      return issue.input === undefined && issue.message.includes("undefined") ? "missing required field" : `must be ${issue.expected}`;
    default:
      return issue.message;
  }
}
