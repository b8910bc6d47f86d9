import { type ReactNode, useContext } from "react";
import { Icon } from "./icons.tsx";
import { Avatar } from "./message.tsx";
import { Directory } from "./rich-text.tsx";

interface SidebarProps {
  /** What is open: a channel's id, "home" or "monitoring". */
  readonly open: string;
  readonly onOpen: (place: string) => void;
  readonly onUser: (user: string) => void;
}

/** Where one can go, and who one is. */
export function Sidebar({ open, onOpen, onUser }: SidebarProps): ReactNode {
  const directory = useContext(Directory);
  if (directory === undefined) return null;
  const people = directory.users.filter((user) => user.bot !== true);
  const me = people.find((user) => user.id === directory.me);
  const place = (id: string, icon: ReactNode, name: string, unread: number) => (
    <li key={id}>
      <button type="button" className={`place${unread > 0 ? " unread" : ""}`} aria-current={open === id ? "page" : undefined} onClick={() => onOpen(id)}>
        {icon}
        <span>{name}</span>
        {unread > 0 ? <span className="count">{unread}</span> : null}
      </button>
    </li>
  );
  const unreadIn = (id: string) => {
    const channel = directory.channels.find((one) => one.id === id);
    return (channel?.unread ?? 0) + (channel?.messages.reduce((sum, one) => sum + one.unread, 0) ?? 0);
  };
  return (
    <nav className="sidebar" aria-label="Workspace">
      <header>
        <img src="/assets/icon.svg" alt="" width="28" height="28" />
        <div>
          <b>{directory.app.name}</b>
          <span className="faint">{directory.team.name}</span>
        </div>
      </header>
      <div className="places">
        <h2>Channels</h2>
        <ul>{directory.channels.filter((one) => one.kind === "channel").map((one) => place(one.id, <Icon name="hash" />, one.name, unreadIn(one.id)))}</ul>
        <h2>App</h2>
        <ul>
          {directory.channels
            .filter((one) => one.kind === "im")
            .map((one) => place(one.id, <Avatar id={directory.app.user} />, `${one.name} (direct)`, unreadIn(one.id)))}
          {place("home", <Avatar id={directory.app.user} />, `${directory.app.name} home`, 0)}
        </ul>
        {directory.samples === undefined ? null : (
          <>
            <h2>Monitoring</h2>
            <ul>{place("monitoring", <Icon name="bell" />, "Sample pages", 0)}</ul>
          </>
        )}
      </div>
      <fieldset className="people">
        <legend>
          You are <b>{me?.realName}</b>
        </legend>
        {people.map((user) => (
          <label key={user.id} className={user.id === directory.me ? "is-me" : ""}>
            <input type="radio" name="me" value={user.id} checked={user.id === directory.me} onChange={() => onUser(user.id)} />
            <Avatar id={user.id} />
            <span>
              <b>{user.realName}</b>
              <span className="faint">{user.title}</span>
            </span>
            {user.id === directory.me ? <span className="badge">you</span> : null}
          </label>
        ))}
      </fieldset>
    </nav>
  );
}
