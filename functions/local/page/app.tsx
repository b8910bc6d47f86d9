import { type ReactNode, useEffect, useState } from "react";
import { send, useWorkspace } from "./client.ts";
import { Conversation, Thread } from "./conversation.tsx";
import { Icon } from "./icons.tsx";
import { Avatar } from "./message.tsx";
import { Modal } from "./modal.tsx";
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
  const { state, online } = useWorkspace(user);
  const channel = state?.channels.find((one) => one.id === open) ?? state?.channels[0];
  const modal = state?.modals.at(-1);
  const unread = state?.channels.reduce((sum, one) => sum + one.unread + one.messages.reduce((inner, message) => inner + message.unread, 0), 0) ?? 0;
  const home = open === "home";

  useEffect(() => sessionStorage.setItem(storedUser, user), [user]);
  useEffect(() => {
    document.title = `${unread > 0 ? `(${unread}) ` : ""}${home ? "Home" : `#${channel?.name ?? ""}`} – netcheck local workspace`;
  }, [unread, home, channel?.name]);
  useEffect(() => {
    const place = channel === undefined || home ? "/" : `/archives/${channel.id}${thread === undefined ? "" : `/p${thread.replace(".", "")}`}`;
    if (state !== undefined && location.pathname !== place) history.replaceState(null, "", place);
  }, [state, channel, home, thread]);

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
      <div className={`workspace${thread !== undefined && !home ? " with-thread" : ""}${menu ? " with-menu" : ""}`}>
        {online ? null : (
          <p className="offline" role="alert">
            <Icon name="alert" /> No connection to the local server. Trying again…
          </p>
        )}
        <Sidebar
          open={home ? "home" : channel.id}
          onOpen={go}
          onUser={(id) => {
            setUser(id);
            setMenu(false);
          }}
        />
        <button type="button" className="shade" aria-label="Close the menu" onClick={() => setMenu(false)} />
        {home ? (
          <main className="conversation">
            <header>
              <button type="button" className="quiet menu" aria-label="Channels and people" onClick={() => setMenu(true)}>
                <Icon name="menu" />
                <Avatar id={user} />
              </button>
              <h1>{state.app.name} home</h1>
            </header>
            <div className="messages">
              <div className="home">
                {state.home === undefined ? (
                  <p className="faint">{state.app.name} has nothing to show here yet.</p>
                ) : (
                  <LiveBlocks blocks={state.home.blocks} user={user} place={{ viewId: state.home.id }} />
                )}
              </div>
            </div>
          </main>
        ) : (
          <Conversation key={channel.id} channel={channel} onThread={goThread} onMenu={() => setMenu(true)} />
        )}
        {thread === undefined || home ? null : <Thread key={thread} channel={channel} threadTs={thread} onClose={() => setThread(undefined)} />}
        {modal === undefined ? null : <Modal key={modal.id} view={modal} user={user} />}
      </div>
    </Directory>
  );
}
