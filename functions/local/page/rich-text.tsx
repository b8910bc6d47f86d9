import { createContext, type ReactNode, useContext, useState } from "react";
import type { Inline, RichTextElement, Text as TextObject } from "../../slack/block-schema.ts";
import { formatDate } from "../date.ts";
import { parseMrkdwn, parsePlain } from "../mrkdwn.ts";
import type { WorkspaceState } from "../workspace.ts";
import { Emoji, Icon, withEmoji } from "./icons.tsx";

/** Who and what mentions refer to. */
export const Directory = createContext<WorkspaceState | undefined>(undefined);

/** A text object, or mrkdwn as text. */
export function Text({ text }: { text: TextObject }): ReactNode {
  return text.type === "mrkdwn" ? <RichText elements={parseMrkdwn(text.text)} /> : <Inlines elements={parsePlain(text.text)} />;
}

/** Slack's rich text. */
export function RichText({ elements }: { elements: readonly RichTextElement[] }): ReactNode {
  return elements.map((element, index) => {
    const key = `${index}`;
    switch (element.type) {
      case "rich_text_section":
        return (
          <p className="prose" key={key}>
            <Inlines elements={element.elements} />
          </p>
        );
      case "rich_text_preformatted":
        return <Code key={key} text={element.elements.map((one) => ("text" in one ? (one.text ?? "") : "")).join("")} />;
      case "rich_text_quote":
        return (
          <blockquote key={key}>
            <Inlines elements={element.elements} />
          </blockquote>
        );
      case "rich_text_list": {
        const List = element.style === "ordered" ? "ol" : "ul";
        return (
          <List key={key} start={element.style === "ordered" ? (element.offset ?? 0) + 1 : undefined}>
            {element.elements.map((item, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: items of a list have no other identity.
              <li key={at}>
                <Inlines elements={item.elements} />
              </li>
            ))}
          </List>
        );
      }
    }
    return null;
  });
}

/** Verbatim text, scrollable by keyboard, to be copied with one click. */
export function Code({ text }: { text: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  const copy = () =>
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return (
    <div className="code">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region has to be reachable by keyboard. */}
      <pre tabIndex={0}>
        {text.split("\n").map((line, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity.
          <span className="line" key={index}>
            {line === "" ? <br /> : unbroken(line)}
          </span>
        ))}
      </pre>
      <button
        type="button"
        className="quiet copy"
        onClick={() => void copy()}
        onBlur={() => setCopied(false)}
        aria-label={copied ? "Copied" : "Copy"}
        title={copied ? "Copied" : "Copy"}
      >
        <Icon name={copied ? "check" : "copy"} />
      </button>
    </div>
  );
}

/** A line whose words with hyphens do not break at them: `-j DROP` stays readable as an option. */
function unbroken(line: string): ReactNode {
  const words = line.split(/([^\s-]*-\S*)/);
  return words.map((word, index) =>
    index % 2 === 0 ? (
      word
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: words have no other identity.
      <span className="word" key={index}>
        {word}
      </span>
    ),
  );
}

function Inlines({ elements }: { elements: readonly Inline[] }): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other identity.
  return elements.map((one, index) => <Styled key={index} one={one} />);
}

function Styled({ one }: { one: Inline }): ReactNode {
  let shown = <InlinePart one={one} />;
  if (one.style?.code === true) shown = <code>{shown}</code>;
  if (one.style?.strike === true) shown = <s>{shown}</s>;
  if (one.style?.italic === true) shown = <em>{shown}</em>;
  return one.style?.bold === true ? <strong>{shown}</strong> : shown;
}

function InlinePart({ one }: { one: Inline }): ReactNode {
  const directory = useContext(Directory);
  switch (one.type) {
    case "text":
      return one.style?.code === true ? one.text : withEmoji(one.text);
    case "link":
      // a message of this workspace opens here
      return (
        <a
          href={/^(https?:|mailto:)/.test(one.url) ? one.url : undefined}
          target={one.url.startsWith(`${location.origin}/`) ? undefined : "_blank"}
          rel="noreferrer"
        >
          {one.text ?? one.url}
        </a>
      );
    case "user":
      return (
        <span className={`mention${one.user_id === directory?.me ? " me" : ""}`}>
          @{directory?.users.find((user) => user.id === one.user_id)?.realName ?? one.user_id}
        </span>
      );
    case "channel":
      return <span className="mention">#{directory?.channels.find((channel) => channel.id === one.channel_id)?.name ?? one.channel_id}</span>;
    case "usergroup":
      return <span className="mention">@{directory?.groups.find((group) => group.id === one.usergroup_id)?.handle ?? one.usergroup_id}</span>;
    case "broadcast":
      return <span className="mention me">@{one.range}</span>;
    case "date":
      return (
        <time dateTime={new Date(one.timestamp * 1000).toISOString()} title={new Date(one.timestamp * 1000).toString()}>
          {formatDate(one.timestamp, one.format, Date.now())}
        </time>
      );
    case "emoji":
      return <Emoji name={one.name} />;
  }
  return null;
}
