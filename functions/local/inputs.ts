import type { Block, Element } from "../slack/block-schema.ts";
import { elementsOf, optionsOf } from "../slack/elements.ts";

/** What a person entered, by block id and action id: a text, an option's value, a user's id, a date; a list where several can be chosen. */
export type Values = Readonly<Record<string, Readonly<Record<string, string | readonly string[]>>>>;

/**
 * An element's state as Slack sends it: `{type, value}`, `{type, selected_option}`, … Only options the app itself offered can come out.
 * @param entered what the person entered; absent: what the element started with
 */
export function stateOf(element: Element, entered: string | readonly string[] | undefined): Record<string, unknown> {
  const one = typeof entered === "string" ? entered : entered?.[0];
  const many = entered === undefined ? undefined : typeof entered === "string" ? [entered] : entered;
  const { type } = element;
  switch (type) {
    case "button":
      return {
        type,
        text: element.text,
        ...(element.value === undefined ? {} : { value: element.value }),
        ...(element.style === undefined ? {} : { style: element.style }),
      };
    case "static_select":
    case "radio_buttons":
      return {
        type,
        selected_option: optionsOf(element).find((option) => option.value === one) ?? (entered === undefined ? (element.initial_option ?? null) : null),
      };
    case "overflow":
      return { type, selected_option: element.options.find((option) => option.value === one) ?? null };
    case "multi_static_select":
    case "checkboxes":
      return {
        type,
        selected_options: many === undefined ? (element.initial_options ?? []) : optionsOf(element).filter((option) => many.includes(option.value)),
      };
    case "users_select":
      return { type, selected_user: one ?? element.initial_user ?? null };
    case "channels_select":
      return { type, selected_channel: one ?? element.initial_channel ?? null };
    case "datepicker":
      return { type, selected_date: one ?? element.initial_date ?? null };
    case "timepicker":
      return { type, selected_time: one ?? element.initial_time ?? null };
    case "plain_text_input":
    case "number_input":
    case "email_text_input":
    case "url_text_input": {
      const value = one ?? element.initial_value ?? "";
      return { type, value: value === "" ? null : value };
    }
  }
}

/** The state of all inputs of some blocks, as Slack sends it in `state.values`. Buttons and overflow menus have none. */
export function statesOf(blocks: readonly Block[], values: Values): Record<string, Record<string, unknown>> {
  const states: Record<string, Record<string, unknown>> = {};
  for (const block of blocks) {
    for (const element of elementsOf(block)) {
      if (element.type === "button" || element.type === "overflow") continue;
      const [blockId, actionId] = [block.block_id ?? "", element.action_id ?? ""];
      states[blockId] = { ...states[blockId], [actionId]: stateOf(element, values[blockId]?.[actionId]) };
    }
  }
  return states;
}

/** What Slack itself finds wrong before the app is asked, by block id: what is missing, too short, not a number, not an address. */
export function problemsOf(blocks: readonly Block[], values: Values): Record<string, string> {
  const problems: Record<string, string> = {};
  for (const block of blocks) {
    if (block.type !== "input") continue;
    const { element } = block;
    const { type: _type, ...state } = stateOf(element, values[block.block_id ?? ""]?.[element.action_id ?? ""]);
    const value = Object.values(state)[0];
    const problem =
      value === null || (Array.isArray(value) && value.length === 0)
        ? block.optional === true
          ? undefined
          : "Please complete this required field."
        : malformed(element, value);
    if (problem !== undefined) problems[block.block_id ?? ""] = problem;
  }
  return problems;
}

function malformed(element: Element, value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  switch (element.type) {
    case "plain_text_input":
      if (value.length < (element.min_length ?? 0)) return `Please enter at least ${element.min_length} characters.`;
      if (value.length > (element.max_length ?? 3000)) return `Please enter at most ${element.max_length ?? 3000} characters.`;
      return undefined;
    case "number_input": {
      const number = Number(value);
      if (Number.isNaN(number)) return "Please enter a number.";
      if (!element.is_decimal_allowed && !Number.isInteger(number)) return "Please enter a whole number.";
      if (element.min_value !== undefined && number < Number(element.min_value)) return `Please enter a number of at least ${element.min_value}.`;
      if (element.max_value !== undefined && number > Number(element.max_value)) return `Please enter a number of at most ${element.max_value}.`;
      return undefined;
    }
    case "email_text_input":
      return /^\S+@\S+\.\S+$/.test(value) ? undefined : "Please enter an email address.";
    case "url_text_input":
      return URL.canParse(value) ? undefined : "Please enter a link.";
    default:
      return undefined;
  }
}
