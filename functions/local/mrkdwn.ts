import type { Inline, RichTextElement } from "../slack/block-schema.ts";

type Style = NonNullable<Extract<Inline, { type: "text" }>["style"]>;

/**
 * Reads Slack's mrkdwn as Slack's own client does and gives it as rich text elements, so that page and transcript share one reading.
 * Code is verbatim: nothing inside backticks is formatting. Entities (`&lt;`) are decoded last, so they never become markup; the one exception is
 * Slack's own: a line that starts with `&gt;` is a quote too.
 */
export function parseMrkdwn(text: string): RichTextElement[] {
  const elements: RichTextElement[] = [];
  const parts = text.split("```");
  // A fence that nothing closes is plain text.
  if (parts.length % 2 === 0) parts.push([parts.pop(), parts.pop()].reverse().join("```"));
  for (const [index, part] of parts.entries()) {
    if (index % 2 === 0) elements.push(...prose(part));
    else elements.push({ type: "rich_text_preformatted", elements: [{ type: "text", text: decode(part.replace(/^\n/, "").replace(/\n$/, "")) }] });
  }
  return elements;
}

/** Plain text (`plain_text` objects): only emoji codes are read. */
export function parsePlain(text: string): Inline[] {
  return emojis(text, undefined);
}

function prose(text: string): RichTextElement[] {
  const elements: RichTextElement[] = [];
  let lines: string[] = [];
  let quoted = false;
  const flush = () => {
    const body = lines.join("\n");
    lines = [];
    // The newline that parts a paragraph from a code block or quote is not an empty line.
    if (quoted) elements.push({ type: "rich_text_quote", elements: inlines(body, undefined) });
    else if (body.trim() !== "") elements.push({ type: "rich_text_section", elements: inlines(body.replace(/^\n|\n$/g, ""), undefined) });
  };
  for (const line of text.split("\n")) {
    const quote = /^(?:>|&gt;) ?/.exec(line);
    if ((quote !== null) !== quoted) {
      flush();
      quoted = quote !== null;
    }
    lines.push(quote === null ? line : line.slice(quote[0].length));
  }
  flush();
  return elements;
}

// Code first (verbatim), then <…>, then the three styles: delimiters hug their text and stand at word borders.
const markup = /`([^`\n]+)`|<([^<>\n]+)>|(?<![\w*_~])([*_~])(?=\S)([^\n]*?\S)\3(?![\w*_~])/gu;
const styles = { "*": "bold", _: "italic", "~": "strike" } as const;

function inlines(text: string, style: Style | undefined): Inline[] {
  const found: Inline[] = [];
  let at = 0;
  for (const match of text.matchAll(markup)) {
    found.push(...emojis(text.slice(at, match.index), style));
    at = match.index + match[0].length;
    const [, code, reference, delimiter, inner] = match;
    if (code !== undefined) found.push({ type: "text", text: decode(code), style: { ...style, code: true } });
    else if (reference !== undefined) found.push(resolve(reference, style));
    else found.push(...inlines(inner ?? "", { ...style, [styles[(delimiter ?? "*") as keyof typeof styles]]: true }));
  }
  found.push(...emojis(text.slice(at), style));
  return found;
}

/** `<@U1>`, `<#C1|name>`, `<!here>`, `<!subteam^S1>`, `<!date^…|fallback>`, `<https://…|label>`. Anything else is shown as it stands. */
function resolve(reference: string, style: Style | undefined): Inline {
  const [target = "", label] = reference.split(/\|(.*)/s);
  const as = style === undefined ? {} : { style };
  if (/^@[UW]\w+$/.test(target)) return { type: "user", user_id: target.slice(1), ...as };
  if (/^#[CG]\w+$/.test(target)) return { type: "channel", channel_id: target.slice(1), ...as };
  if (target.startsWith("!subteam^")) return { type: "usergroup", usergroup_id: target.slice("!subteam^".length), ...as };
  if (target === "!here" || target === "!channel" || target === "!everyone")
    return { type: "broadcast", range: target.slice(1) as "here" | "channel" | "everyone", ...as };
  const date = /^!date\^(\d+)\^([^^]+)/.exec(target);
  if (date !== null) return { type: "date", timestamp: Number(date[1]), format: date[2] ?? "", fallback: decode(label ?? ""), ...as };
  if (/^(https?:\/\/|mailto:)/.test(target)) return { type: "link", url: decode(target), text: decode(label ?? target), ...as };
  return { type: "text", text: decode(`<${reference}>`), ...as };
}

function emojis(text: string, style: Style | undefined): Inline[] {
  const as = style === undefined ? {} : { style };
  return text
    .split(/(?<![\w:]):([a-z0-9_+-]+):(?![\w:])/)
    .flatMap((part, index): Inline[] =>
      index % 2 === 1 ? [{ type: "emoji", name: part, ...as }] : part === "" ? [] : [{ type: "text", text: decode(part), ...as }],
    );
}

function decode(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}
