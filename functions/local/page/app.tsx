import { type ReactNode, useEffect, useState } from "react";
import { send, useWorkspace } from "./client.ts";
import { Conversation, Thread } from "./conversation.tsx";
import { Icon } from "./icons.tsx";
import { Avatar } from "./message.tsx";
import { Modal } from "./modal.tsx";
import { Monitoring, type Sent } from "./monitoring.tsx";
import { Directory } from "./rich-text.tsx";
import { Sidebar } from "./sidebar.tsx";
import { LiveBlocks } from "./surface.tsx";

const storedUser = "netcheck.user";

/** A place named by an address like /archives/C_INCIDENTS/p1763690000000100?thread_ts=… */
function placeOf(location: Location): { channel: string | undefined; thread: string | undefined } {
  const [, channel, , digits] = /^\/archives\/([^/]+)(\/p(\d{11,}))?/.exec(location.pathname) ?? [];
  const ts = digits === undefined ? undefined : `${digits.slice(0, -6)}.${digits.slice(-6)}`;
  return { channel, thread: new URLSearchParams(location.search).get("thread_ts") ?? ts };
}

/** The whole page. Who one is belongs to the tab, so that two tabs can be two people. */
export function App(): ReactNode {
  const [user, setUser] = useState(() => sessionStorage.getItem(storedUser) ?? "U_ALICE");
  const [open, setOpen] = useState<string | undefined>(() => placeOf(location).channel);
  const [thread, setThread] = useState<string | undefined>(() => placeOf(location).thread);
  const [menu, setMenu] = useState(false);
  const [about, setAbout] = useState<string>();
  const [sent, setSent] = useState<readonly Sent[]>([]);
  const { state, online } = useWorkspace(user);
  const channel = state?.channels.find((one) => one.id === open) ?? state?.channels[0];
  const modal = state?.modals.at(-1);
  const unread = state?.channels.reduce((sum, one) => sum + one.unread + one.messages.reduce((inner, message) => inner + message.unread, 0), 0) ?? 0;
  const home = open === "home";
  const monitoring = open === "monitoring" && state?.samples !== undefined;
  /** Not a conversation. */
  const aside = home || monitoring;

  useEffect(() => sessionStorage.setItem(storedUser, user), [user]);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}${home ? "Home" : monitoring ? "Sample pages" : `#${channel?.name ?? ""}`} – netcheck local workspace`;
  }, [unread, home, monitoring, channel?.name]);
  useEffect(() => {
    const place = channel === undefined || aside ? "/" : `/archives/${channel.id}${thread === undefined ? "" : `/p${thread.replace(".", "")}`}`;
    if (state !== undefined && location.pathname !== place) history.replaceState(null, "", place);
  }, [state, channel, aside, thread]);

  const go = (place: string) => {
    setOpen(place);
    setThread(undefined);
    setMenu(false);
    if (place === "home") void send("home", { user });
  };
  const goThread = (ts: string) => {
    setOpen(channel?.id);
    setThread(ts);
  };
  if (state === undefined || channel === undefined)
    return <p className="loading">{online ? "Loading…" : "The local server does not answer. Is npm start still running?"}</p>;
  return (
    <Directory value={state}>
      <div className={`workspace${thread !== undefined && !aside ? " with-thread" : ""}${menu ? " with-menu" : ""}`}>
        {online ? null : (
          <p className="offline" role="alert">
            <Icon name="alert" /> No connection to the local server. Trying again…
          </p>
        )}
        <Sidebar
          open={home ? "home" : monitoring ? "monitoring" : channel.id}
          onOpen={go}
          onUser={(id) => {
            setUser(id);
            setMenu(false);
          }}
        />
        <button type="button" className="shade" aria-label="Close the menu" onClick={() => setMenu(false)} />
        {home ? (
          <Aside title={`${state.app.name} home`} user={user} onMenu={() => setMenu(true)}>
            <div className="home">
              {state.home === undefined ? (
                <p className="faint">{state.app.name} has nothing to show here yet.</p>
              ) : (
                <LiveBlocks blocks={state.home.blocks} user={user} place={{ viewId: state.home.id }} />
              )}
            </div>
          </Aside>
        ) : monitoring ? (
          <Aside title="Sample pages" user={user} onMenu={() => setMenu(true)}>
            <Monitoring about={about} onAbout={setAbout} sent={sent} onSent={(one) => setSent((all) => [one, ...all].slice(0, 20))} onOpen={go} />
          </Aside>
        ) : (
          <Conversation key={channel.id} channel={channel} onThread={goThread} onMenu={() => setMenu(true)} />
        )}
        {thread === undefined || aside ? null : <Thread key={thread} channel={channel} threadTs={thread} onClose={() => setThread(undefined)} />}
        {modal === undefined ? null : <Modal key={modal.id} view={modal} user={user} />}
      </div>
    </Directory>
  );
}

/** What fills the place of a conversation and is none. */
function Aside({ title, user, onMenu, children }: { title: string; user: string; onMenu: () => void; children: ReactNode }): ReactNode {
  return (
    <main className="conversation">
      <header>
        <button type="button" className="quiet menu" aria-label="Channels and people" onClick={onMenu}>
          <Icon name="menu" />
          <Avatar id={user} />
        </button>
        <h1>{title}</h1>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region has to be reachable by keyboard. */}
      <div className="messages" tabIndex={0}>
        {children}
      </div>
    </main>
  );
}
