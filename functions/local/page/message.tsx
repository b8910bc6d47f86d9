import { type ReactNode, useContext, useState } from "react";
import { parseMrkdwn } from "../mrkdwn.ts";
import type { SeenMessage } from "../workspace.ts";
import { send } from "./client.ts";
import { FileCard } from "./files.tsx";
import { Emoji, Icon } from "./icons.tsx";
import { Menu } from "./menu.tsx";
import { Problem } from "./problem.tsx";
import { Directory, RichText } from "./rich-text.tsx";
import { LiveBlocks } from "./surface.tsx";

interface MessageProps {
  readonly message: SeenMessage;
  readonly user: string;
  /** Goes on where the author's message before it ended: no picture, no name. */
  readonly follows: boolean;
  /** The thread's answers, in a channel; none in a thread. */
  readonly answers?: readonly SeenMessage[];
  readonly onThread?: (ts: string) => void;
}

/** One message with all that hangs on it. */
export function MessageView({ message, user, follows, answers = [], onThread }: MessageProps): ReactNode {
  const directory = useContext(Directory);
  const author = directory?.users.find((one) => one.id === message.user);
  const name = author?.bot === true ? author.name : (author?.realName ?? message.user);
  const shown = answers.filter((one) => one.onlyFor === undefined);
  const last = shown.at(-1);
  const [problem, setProblem] = useState<string>();
  const choose = async (callbackId: string) => {
    const outcome = await send("shortcut", { user, channel: message.channel, ts: message.ts, callbackId });
    setProblem(outcome.ok ? undefined : outcome.error);
  };
  const shortcuts = (directory?.shortcuts ?? []).map((one) => ({ name: one.name, run: () => void choose(one.callbackId) }));
  const reply = onThread === undefined ? [] : [{ name: "Reply in thread", run: () => onThread(message.ts) }];
  const edited =
    message.edited === undefined ? null : (
      <span className="faint edited" title={new Date(Number(message.edited) * 1000).toString()}>
        (edited)
      </span>
    );
  return (
    <article
      className={`message${follows ? " follows" : ""}${message.onlyFor === undefined ? "" : " ephemeral"}`}
      data-ts={message.ts}
      aria-label={`${name}, ${clock(message.ts)}`}
    >
      <div className="gutter">{follows ? <time className="faint">{clock(message.ts)}</time> : <Avatar id={message.user} />}</div>
      <div className="content">
        {message.onlyFor === undefined ? null : (
          <p className="only-you">
            <Icon name="eye" /> Only visible to you
          </p>
        )}
        {follows ? null : (
          <p className="author">
            <b>{name}</b>
            {author?.bot === true ? <span className="badge">app</span> : null}
            <a className="faint" href={message.permalink} title={new Date(Number(message.ts) * 1000).toString()}>
              <time dateTime={new Date(Number(message.ts) * 1000).toISOString()}>{clock(message.ts)}</time>
            </a>
            {edited}
          </p>
        )}
        {message.deleted === true ? (
          <p className="faint">This message was deleted.</p>
        ) : message.blocks === undefined ? (
          <div className="blocks">
            <RichText elements={parseMrkdwn(message.text)} />
          </div>
        ) : (
          <LiveBlocks blocks={message.blocks} user={user} place={{ channel: message.channel, ts: message.ts }} />
        )}
        {follows ? edited : null}
        <Problem text={problem} />
        {message.files.map((file) => (
          <FileCard key={file.id} file={file} />
        ))}
        {message.reactions === undefined ? null : (
          <p className="reactions">
            {message.reactions.map((one) => (
              <span key={one.name} title={one.users.map((id) => directory?.users.find((other) => other.id === id)?.name ?? id).join(", ")}>
                <Emoji name={one.name} /> {one.users.length}
              </span>
            ))}
          </p>
        )}
        {last === undefined || onThread === undefined ? null : (
          <button type="button" className="thread-link" onClick={() => onThread(message.ts)}>
            {[...new Set(shown.map((one) => one.user))].slice(0, 4).map((id) => (
              <Avatar key={id} id={id} />
            ))}
            <b>
              {shown.length} {shown.length === 1 ? "reply" : "replies"}
            </b>
            {message.unread > 0 ? <span className="count">{message.unread} new</span> : null}
            <span className="faint">last at {clock(last.ts)}</span>
          </button>
        )}
      </div>
      {message.onlyFor !== undefined || message.deleted === true ? null : (
        <div className="tools">
          {onThread === undefined ? null : (
            <button type="button" className="quiet" aria-label="Reply in thread" title="Reply in thread" onClick={() => onThread(message.ts)}>
              <Icon name="reply" />
            </button>
          )}
          <Menu label="More about this message" items={[...reply, ...shortcuts]} />
        </div>
      )}
    </article>
  );
}

/** A picture made of a person's initials, or the app's sign. */
export function Avatar({ id }: { id: string }): ReactNode {
  const directory = useContext(Directory);
  if (id === directory?.app.user) return <img className="avatar" src="/assets/icon.svg" alt="" />;
  const user = directory?.users.find((one) => one.id === id);
  const initials = (user?.realName ?? id)
    .split(" ")
    .map((part) => part[0] ?? "")
    .join("")
    .slice(0, 2);
  const people = directory?.users.filter((one) => one.bot !== true) ?? [];
  const index = people.findIndex((one) => one.id === id);
  return (
    <span className={`avatar tint-${index < 0 ? "none" : index % 5}`} aria-hidden="true">
      {initials}
    </span>
  );
}

/** "14:05", in this machine's time zone. */
export function clock(ts: string): string {
  return new Date(Number(ts) * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}
