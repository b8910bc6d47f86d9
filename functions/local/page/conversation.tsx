import { type ReactNode, useContext, useEffect, useRef, useState } from "react";
import type { SeenMessage, WorkspaceState } from "../workspace.ts";
import { send } from "./client.ts";
import { Composer } from "./composer.tsx";
import { Icon } from "./icons.tsx";
import { Avatar, MessageView } from "./message.tsx";
import { Problem } from "./problem.tsx";
import { Directory } from "./rich-text.tsx";

type SeenChannel = WorkspaceState["channels"][number];

/** A channel: what was said in it outside of threads, and a place to type. */
export function Conversation({ channel, onThread, onMenu }: { channel: SeenChannel; onThread: (ts: string) => void; onMenu: () => void }): ReactNode {
  const directory = useContext(Directory);
  const roots = channel.messages.filter((one) => one.threadTs === undefined);
  const direct = channel.kind === "im";
  const me = directory?.users.find((one) => one.id === directory.me);
  useMarkRead(channel.id, undefined, channel.unread);
  return (
    <main className="conversation">
      <header>
        <button type="button" className="quiet menu" aria-label="Channels and people" onClick={onMenu}>
          <Icon name="menu" />
          <Avatar id={directory?.me ?? ""} />
        </button>
        <h1>
          {direct ? null : <Icon name="hash" />}
          {channel.name}
        </h1>
        <p className="faint topic">{direct ? "Direct messages with the app" : channel.topic}</p>
      </header>
      <MessageList messages={roots} empty={<Welcome channel={channel} />}>
        {(message, follows) => {
          const answers = channel.messages.filter((one) => one.threadTs === message.ts);
          // What has a thread of its own stands on its own.
          return (
            <MessageView
              key={message.ts}
              message={message}
              user={directory?.me ?? ""}
              follows={follows && answers.length === 0}
              answers={answers}
              onThread={onThread}
            />
          );
        }}
      </MessageList>
      <Composer
        key={`${channel.id} ${directory?.me}`}
        channel={channel.id}
        placeholder={`Message ${direct ? "" : "#"}${channel.name} as ${me?.realName.split(" ")[0] ?? ""}, or type /`}
      />
    </main>
  );
}

/** A thread in the side panel. */
export function Thread({ channel, threadTs, onClose }: { channel: SeenChannel; threadTs: string; onClose: () => void }): ReactNode {
  const directory = useContext(Directory);
  const root = channel.messages.find((one) => one.ts === threadTs);
  const messages = channel.messages.filter((one) => one.ts === threadTs || one.threadTs === threadTs);
  useMarkRead(channel.id, threadTs, root?.unread ?? 0);
  return (
    <section className="thread" aria-label="Thread">
      <header>
        <h2>Thread</h2>
        <p className="faint topic">
          {channel.kind === "im" ? "" : "#"}
          {channel.name}
        </p>
        <button type="button" className="quiet" aria-label="Close thread" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      <MessageList replies messages={messages} empty={<p className="faint empty">This thread is no longer there.</p>}>
        {(message, follows) => (
          <MessageView key={message.ts} message={message} user={directory?.me ?? ""} follows={follows && message.threadTs !== undefined} />
        )}
      </MessageList>
      {root === undefined ? null : <Composer key={`${threadTs} ${directory?.me}`} channel={channel.id} threadTs={threadTs} placeholder="Reply…" />}
    </section>
  );
}

/** Messages with the days between them. Follows new ones as long as the reader is at the end. */
function MessageList(props: {
  messages: readonly SeenMessage[];
  empty: ReactNode;
  /** The first one is a thread's beginning. */
  replies?: boolean;
  children: (message: SeenMessage, follows: boolean) => ReactNode;
}): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const filled = props.messages.length > 0;
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    // Heights change with messages, fonts and the window: one observer for all of it.
    const follow = () => {
      if (atEnd.current && filled) element.scrollTop = element.scrollHeight;
    };
    const observer = new ResizeObserver(follow);
    for (const child of element.children) observer.observe(child);
    observer.observe(element);
    return () => observer.disconnect();
  }, [filled]);
  const rows: ReactNode[] = [];
  let before: SeenMessage | undefined;
  for (const message of props.messages) {
    const day = dayOf(message.ts);
    if (before === undefined || dayOf(before.ts) !== day) {
      rows.push(
        <div className="day" key={`day ${message.ts}`}>
          <span>{day}</span>
        </div>,
      );
      before = undefined;
    }
    const follows =
      before?.user === message.user &&
      before.onlyFor === message.onlyFor &&
      Number(message.ts) - Number(before.ts) < 300 &&
      before.threadTs === message.threadTs;
    rows.push(props.children(message, follows));
    if (props.replies === true && message === props.messages[0] && props.messages.length > 1) {
      const count = props.messages.length - 1;
      rows.push(
        <div className="day replies" key="replies">
          <span>{count === 1 ? "1 reply" : `${count} replies`}</span>
        </div>,
      );
    }
    before = message;
  }
  return (
    <div
      className="messages"
      ref={box}
      role="log"
      aria-live="polite"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region has to be reachable by keyboard.
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        atEnd.current = scrollHeight - scrollTop - clientHeight < 40;
      }}
    >
      <div className="messages-inner">{rows.length === 0 ? props.empty : rows}</div>
    </div>
  );
}

/** What to type, when nothing has been said yet. */
function Welcome({ channel }: { channel: SeenChannel }): ReactNode {
  const directory = useContext(Directory);
  const [running, setRunning] = useState<string>();
  const [problem, setProblem] = useState<string>();
  if (directory === undefined) return null;
  const run = async (line: string) => {
    const [, command, text] = /^(\/\S+)\s*(.*)$/s.exec(line) ?? [];
    setRunning(line);
    setProblem(undefined);
    const outcome = await send("command", { user: directory.me, channel: channel.id, command, text: text ?? "" });
    setRunning(undefined);
    if (!outcome.ok) setProblem(outcome.error);
  };
  return (
    <div className="welcome">
      <img src="/assets/icon.svg" alt="" width="56" height="56" />
      <h2>{channel.kind === "im" ? `Ask ${directory.app.name}` : `This is #${channel.name}`}</h2>
      <p>
        Type <code>{`${directory.command.name} ${directory.command.usage}`}</code>
        {channel.kind === "im" ? (
          ", or drop a file here"
        ) : (
          <>
            {" "}
            below, or drop a file here and mention <code>{`@${directory.app.name}`}</code>
          </>
        )}
        {directory.examples.length === 0 ? "." : ". Or start with one of these:"}
      </p>
      <ul>
        {directory.examples.map((one) => (
          <li key={one.command}>
            <button type="button" className="example" disabled={running !== undefined} onClick={() => void run(one.command)}>
              {running === one.command ? <span className="spinner" /> : <Icon name="play" />}
              <code>{one.command}</code>
              <span className="faint">{one.description}</span>
            </button>
          </li>
        ))}
      </ul>
      <Problem text={problem} />
    </div>
  );
}

/** What is on the screen of a person who looks counts as read. */
function useMarkRead(channel: string, threadTs: string | undefined, unread: number): void {
  const directory = useContext(Directory);
  const me = directory?.me;
  useEffect(() => {
    if (unread === 0 || me === undefined) return;
    const mark = () => {
      if (document.visibilityState === "visible") void send("read", { user: me, channel, threadTs });
    };
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [channel, threadTs, unread, me]);
}

function dayOf(ts: string): string {
  return new Date(Number(ts) * 1000).toLocaleDateString("en-GB", { weekday: "long", day: "numeric", month: "long" });
}
