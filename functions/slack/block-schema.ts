import { z } from "zod";

/**
 * Block Kit's limits, written once: the app checks what it renders with it, and the simulated workspace what it is sent.
 * Lengths are those of the text as sent, after escaping, in UTF-16 units (never less than what Slack counts).
 */
export const limits = {
  messageBlocks: 50,
  modalBlocks: 100,
  sectionText: 3000,
  fields: 10,
  fieldText: 2000,
  headerText: 150,
  actions: 25,
  contextElements: 10,
  contextText: 2000,
  buttonText: 75,
  buttonValue: 2000,
  id: 255,
  url: 3000,
  options: 100,
  optionText: 75,
  optionValue: 150,
  viewTitle: 24,
  privateMetadata: 3000,
  /** `text` of chat.postMessage and of chat.update, which is stricter. */
  messageText: 40_000,
  updateText: 4000,
} as const;

const id = z.string().min(1).max(limits.id).optional();
const url = z
  .string()
  .max(limits.url)
  .regex(/^(https?|mailto|slack):/, "invalid url");
const plainText = (max: number) => z.strictObject({ type: z.literal("plain_text"), text: z.string().min(1).max(max), emoji: z.boolean().optional() });
const mrkdwn = (max: number) => z.strictObject({ type: z.literal("mrkdwn"), text: z.string().min(1).max(max), verbatim: z.boolean().optional() });
const anyText = (max: number) => z.discriminatedUnion("type", [plainText(max), mrkdwn(max)]);

const style = z.enum(["primary", "danger"]);
const confirm = z.strictObject({
  title: plainText(100),
  text: anyText(300),
  confirm: plainText(30),
  deny: plainText(30),
  style: style.optional(),
});
const option = z.strictObject({
  text: anyText(limits.optionText),
  value: z.string().max(limits.optionValue),
  description: anyText(limits.optionText).optional(),
  url: url.optional(),
});
const options = z.array(option).min(1).max(limits.options);
const optionGroups = z
  .array(z.strictObject({ label: plainText(75), options }))
  .min(1)
  .max(100);
const placeholder = plainText(150).optional();
const common = { action_id: id, confirm: confirm.optional(), focus_on_load: z.boolean().optional() };

const button = z.strictObject({
  type: z.literal("button"),
  action_id: id,
  text: plainText(limits.buttonText),
  value: z.string().max(limits.buttonValue).optional(),
  url: url.optional(),
  style: style.optional(),
  confirm: confirm.optional(),
  accessibility_label: z.string().max(75).optional(),
});
const staticSelect = z.strictObject({
  type: z.literal("static_select"),
  ...common,
  placeholder,
  options: options.optional(),
  option_groups: optionGroups.optional(),
  initial_option: option.optional(),
});
const multiStaticSelect = z.strictObject({
  type: z.literal("multi_static_select"),
  ...common,
  placeholder,
  options: options.optional(),
  option_groups: optionGroups.optional(),
  initial_options: options.optional(),
  max_selected_items: z.int().min(1).optional(),
});
const usersSelect = z.strictObject({ type: z.literal("users_select"), ...common, placeholder, initial_user: z.string().optional() });
const channelsSelect = z.strictObject({ type: z.literal("channels_select"), ...common, placeholder, initial_channel: z.string().optional() });
const overflow = z.strictObject({ type: z.literal("overflow"), action_id: id, confirm: confirm.optional(), options: z.array(option).min(1).max(5) });
const choices = z.array(option).min(1).max(10);
const checkboxes = z.strictObject({ type: z.literal("checkboxes"), ...common, options: choices, initial_options: choices.optional() });
const radioButtons = z.strictObject({ type: z.literal("radio_buttons"), ...common, options: choices, initial_option: option.optional() });
const datepicker = z.strictObject({ type: z.literal("datepicker"), ...common, placeholder, initial_date: z.iso.date().optional() });
const timepicker = z.strictObject({
  type: z.literal("timepicker"),
  ...common,
  placeholder,
  initial_time: z
    .string()
    .regex(/^\d\d:\d\d$/)
    .optional(),
  timezone: z.string().optional(),
});
const image = z.strictObject({ type: z.literal("image"), image_url: url, alt_text: z.string().min(1).max(2000) });
const typed = {
  action_id: id,
  placeholder,
  focus_on_load: z.boolean().optional(),
  dispatch_action_config: z.strictObject({ trigger_actions_on: z.array(z.enum(["on_enter_pressed", "on_character_entered"])) }).optional(),
};
const plainTextInput = z.strictObject({
  type: z.literal("plain_text_input"),
  ...typed,
  initial_value: z.string().max(limits.sectionText).optional(),
  multiline: z.boolean().optional(),
  min_length: z.int().min(0).max(3000).optional(),
  max_length: z.int().min(1).max(3000).optional(),
});
const numberInput = z.strictObject({
  type: z.literal("number_input"),
  ...typed,
  is_decimal_allowed: z.boolean(),
  initial_value: z.string().optional(),
  min_value: z.string().optional(),
  max_value: z.string().optional(),
});
const emailInput = z.strictObject({ type: z.literal("email_text_input"), ...typed, initial_value: z.string().optional() });
const urlInput = z.strictObject({ type: z.literal("url_text_input"), ...typed, initial_value: z.string().optional() });

const selects = [staticSelect, multiStaticSelect, usersSelect, channelsSelect, datepicker, timepicker, checkboxes, radioButtons] as const;
const actionElement = z.discriminatedUnion("type", [button, overflow, ...selects]);
const accessory = z.discriminatedUnion("type", [button, overflow, image, ...selects]);
const inputElement = z.discriminatedUnion("type", [plainTextInput, numberInput, emailInput, urlInput, ...selects]);

const inlineStyle = z
  .strictObject({ bold: z.boolean().optional(), italic: z.boolean().optional(), strike: z.boolean().optional(), code: z.boolean().optional() })
  .optional();
const inline = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text"), text: z.string(), style: inlineStyle }),
  z.strictObject({ type: z.literal("link"), url: z.string(), text: z.string().optional(), style: inlineStyle }),
  z.strictObject({ type: z.literal("user"), user_id: z.string(), style: inlineStyle }),
  z.strictObject({ type: z.literal("channel"), channel_id: z.string(), style: inlineStyle }),
  z.strictObject({ type: z.literal("usergroup"), usergroup_id: z.string(), style: inlineStyle }),
  z.strictObject({ type: z.literal("broadcast"), range: z.enum(["here", "channel", "everyone"]), style: inlineStyle }),
  z.strictObject({
    type: z.literal("date"),
    timestamp: z.int(),
    format: z.string(),
    url: z.string().optional(),
    fallback: z.string().optional(),
    style: inlineStyle,
  }),
  z.strictObject({ type: z.literal("emoji"), name: z.string(), unicode: z.string().optional(), style: inlineStyle }),
]);
const border = z.int().min(0).max(1).optional();
const richSection = z.strictObject({ type: z.literal("rich_text_section"), elements: z.array(inline) });
const richTextElement = z.discriminatedUnion("type", [
  richSection,
  z.strictObject({ type: z.literal("rich_text_preformatted"), elements: z.array(inline), border, language: z.string().optional() }),
  z.strictObject({ type: z.literal("rich_text_quote"), elements: z.array(inline), border }),
  z.strictObject({
    type: z.literal("rich_text_list"),
    style: z.enum(["bullet", "ordered"]),
    elements: z.array(richSection),
    indent: z.int().min(0).max(8).optional(),
    offset: z.int().min(0).optional(),
    border,
  }),
]);

/** One layout block, checked strictly: an unknown property is an error, as it is for Slack. */
export const block = z.discriminatedUnion("type", [
  z
    .strictObject({
      type: z.literal("section"),
      block_id: id,
      text: anyText(limits.sectionText).optional(),
      fields: z.array(anyText(limits.fieldText)).min(1).max(limits.fields).optional(),
      accessory: accessory.optional(),
      expand: z.boolean().optional(),
    })
    .refine((section) => section.text !== undefined || section.fields !== undefined, "missing required field: text or fields"),
  z.strictObject({ type: z.literal("header"), block_id: id, text: plainText(limits.headerText), level: z.int().min(1).max(4).optional() }),
  z.strictObject({ type: z.literal("divider"), block_id: id }),
  z.strictObject({
    type: z.literal("context"),
    block_id: id,
    elements: z
      .array(z.discriminatedUnion("type", [plainText(limits.contextText), mrkdwn(limits.contextText), image]))
      .min(1)
      .max(limits.contextElements),
  }),
  z.strictObject({ type: z.literal("actions"), block_id: id, elements: z.array(actionElement).min(1).max(limits.actions) }),
  z.strictObject({
    type: z.literal("input"),
    block_id: id,
    label: plainText(2000),
    element: inputElement,
    hint: plainText(2000).optional(),
    optional: z.boolean().optional(),
    dispatch_action: z.boolean().optional(),
  }),
  z.strictObject({ type: z.literal("image"), block_id: id, image_url: url, alt_text: z.string().min(1).max(2000), title: plainText(2000).optional() }),
  z.strictObject({ type: z.literal("rich_text"), block_id: id, elements: z.array(richTextElement) }),
  z.strictObject({ type: z.literal("markdown"), block_id: id, text: z.string().min(1).max(12_000) }),
  z.strictObject({
    type: z.literal("table"),
    block_id: id,
    rows: z
      .array(
        z
          .array(
            z.discriminatedUnion("type", [
              z.strictObject({ type: z.literal("raw_text"), text: z.string().min(1) }),
              z.strictObject({ type: z.literal("rich_text"), elements: z.array(richTextElement) }),
            ]),
          )
          .min(1)
          .max(20),
      )
      .min(1)
      .max(100),
    column_settings: z
      .array(z.strictObject({ align: z.enum(["left", "center", "right"]).optional(), is_wrapped: z.boolean().optional() }).nullable())
      .max(20)
      .optional(),
  }),
]);

/** A modal or Home tab without its blocks. */
export const view = z.looseObject({
  type: z.enum(["modal", "home"]),
  title: plainText(limits.viewTitle).optional(),
  submit: plainText(limits.viewTitle).optional(),
  close: plainText(limits.viewTitle).optional(),
  private_metadata: z.string().max(limits.privateMetadata).optional(),
  callback_id: z.string().max(limits.id).optional(),
  external_id: z.string().max(limits.id).optional(),
});

export type Block = z.infer<typeof block>;
/** Any element a user can act on: a button, select, checkbox group, text input … */
export type Element = z.infer<typeof actionElement> | z.infer<typeof inputElement>;
export type Confirm = z.infer<typeof confirm>;
export type Option = z.infer<typeof option>;
export type Text = z.infer<ReturnType<typeof anyText>>;
export type Inline = z.infer<typeof inline>;
export type RichTextElement = z.infer<typeof richTextElement>;
