import { type Block, type Element, elementsOf, type Inline, optionsOf, type RichTextElement, type Text } from "../slack/block-kit.ts";
import type { Chat, Message } from "./chat.ts";
import { formatDate } from "./date.ts";
import { emojiText } from "./emoji.ts";
import { parseMrkdwn, parsePlain } from "./mrkdwn.ts";

/**
 * A thread (or a channel with all its threads) as plain text, as a person sees it who reads from top to bottom: names, texts with code indented,
 * buttons as `[ Approve & run ]`, files with name and size. Control characters are left out, so a terminal can show it.
 * @param threadTs the thread's first message; absent: all of the channel
 * @param user whose ephemeral messages are shown too; absent: everyone's
 */
export function transcript(chat: Chat, channel: string, threadTs?: string, user?: string): string {
  const all = chat.messages(channel).filter((one) => user === undefined || one.onlyFor === undefined || one.onlyFor === user);
  const roots = all.filter((one) => (threadTs === undefined ? one.threadTs === undefined : one.ts === threadTs));
  const shown = roots.flatMap((root) => [root, ...all.filter((one) => one.threadTs === root.ts)]);
  return shown.map((one) => messageText(chat, one, one.threadTs !== undefined && threadTs === undefined ? "  " : "")).join("\n");
}

function messageText(chat: Chat, message: Message, indent: string): string {
  const marks = [message.edited === undefined ? "" : "edited", message.onlyFor === undefined ? "" : `only visible to ${nameOf(chat, message.onlyFor)}`].filter(
    (mark) => mark !== "",
  );
  const time = new Date(Number(message.ts) * 1000).toISOString().slice(11, 19);
  const head = `${nameOf(chat, message.user)}  ${time}${marks.length === 0 ? "" : `  (${marks.join(", ")})`}`;
  const body = message.blocks === undefined ? richText(chat, parseMrkdwn(message.text)) : message.blocks.flatMap((block) => blockText(chat, block));
  const files = (message.files ?? []).flatMap((id) => chat.files.get(id) ?? []).map((file) => `[file] ${file.name} (${size(file.data?.length ?? 0)})`);
  return [head, ...[...body, ...files].map((line) => `  ${line}`.trimEnd())]
    .map((line) => `${indent}${clean(line)}`.trimEnd())
    .join("\n")
    .concat("\n");
}

function blockText(chat: Chat, block: Block): string[] {
  switch (block.type) {
    case "header":
      return textLines(chat, block.text);
    case "divider":
      return ["----"];
    case "section":
      return [
        ...(block.text === undefined ? [] : textLines(chat, block.text)),
        ...(block.fields ?? []).map((field) => textLines(chat, field).join(" ")),
        ...elementsOf(block).map(elementText),
        ...(block.accessory?.type === "image" ? [`[image] ${block.accessory.alt_text}`] : []),
      ];
    case "context":
      return [block.elements.map((one) => (one.type === "image" ? `[image] ${one.alt_text}` : textLines(chat, one).join(" "))).join("  ")];
    case "actions":
      return [block.elements.map(elementText).join("  ")];
    case "input":
      return [`${block.label.text}: ${elementText(block.element)}`];
    case "image":
      return [`[image] ${block.alt_text}`];
    case "rich_text":
      return richText(chat, block.elements);
    case "markdown":
      return block.text.split("\n");
    case "table":
      return block.rows.map((row) => row.map((cell) => (cell.type === "raw_text" ? cell.text : richText(chat, cell.elements).join(" "))).join(" | "));
  }
}

function textLines(chat: Chat, text: Text): string[] {
  return text.type === "mrkdwn" ? richText(chat, parseMrkdwn(text.text)) : inlineText(chat, parsePlain(text.text)).split("\n");
}

function richText(chat: Chat, elements: readonly RichTextElement[]): string[] {
  return elements.flatMap((element) => {
    switch (element.type) {
      case "rich_text_section":
        return inlineText(chat, element.elements).split("\n");
      case "rich_text_preformatted":
        return inlineText(chat, element.elements)
          .split("\n")
          .map((line) => `    ${line}`);
      case "rich_text_quote":
        return inlineText(chat, element.elements)
          .split("\n")
          .map((line) => `> ${line}`);
      case "rich_text_list":
        return element.elements.map((item, index) => `${element.style === "ordered" ? `${index + 1}.` : "-"} ${inlineText(chat, item.elements)}`);
    }
    return [];
  });
}

function inlineText(chat: Chat, elements: readonly Inline[]): string {
  return elements
    .map((one) => {
      switch (one.type) {
        case "text":
          return one.style?.code === true ? `\`${one.text}\`` : one.text;
        case "link":
          return one.text === undefined || one.text === one.url ? one.url : `${one.text} (${one.url})`;
        case "user":
          return `@${chat.users.get(one.user_id)?.name ?? one.user_id}`;
        case "channel":
          return `#${chat.channels.find((channel) => channel.id === one.channel_id)?.name ?? one.channel_id}`;
        case "usergroup":
          return `@${chat.groups.find((group) => group.id === one.usergroup_id)?.handle ?? one.usergroup_id}`;
        case "broadcast":
          return `@${one.range}`;
        case "date":
          return `${formatDate(one.timestamp, one.format, chat.clock.now(), "UTC")} UTC`;
        case "emoji":
          return emojiText(one.name);
      }
      return "";
    })
    .join("");
}

function elementText(element: Element): string {
  if (element.type === "button") return `[ ${element.text.text} ]`;
  if (element.type === "overflow") return `[ ${element.options.map((one) => one.text.text).join(" | ")} ]`;
  const label = "placeholder" in element ? element.placeholder?.text : undefined;
  const options = optionsOf(element).map((one) => one.text.text);
  return `[ ${[label, options.join(" | ")].filter((part) => part !== undefined && part !== "").join(": ") || element.type.replaceAll("_", " ")} ]`;
}

/** The name a person is shown under. */
function nameOf(chat: Chat, id: string): string {
  const user = chat.users.get(id);
  return user === undefined ? id : user.bot === true ? user.name : user.realName;
}

/** A file's size for people: "512 B", "4.2 KB". */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}

/** Without control characters and changes of writing direction: what a node printed must not steer the terminal. */
function clean(line: string): string {
  return line.replace(/[^\P{Cc}\t]|\p{Bidi_Control}/gu, "");
}
