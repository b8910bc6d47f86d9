import { type FormEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { SeenView } from "../workspace.ts";
import { send } from "./client.ts";
import { Icon } from "./icons.tsx";
import { Problem } from "./problem.tsx";
import { type Entered, LiveBlocks, valuesOf } from "./surface.tsx";

/** The app's modal on top of the page. Escape and the cross close it, Enter sends it off. */
export function Modal({ view, user }: { view: SeenView; user: string }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [entered, setEntered] = useState<Entered>(new Map());
  const [errors, setErrors] = useState<Readonly<Record<string, string>>>({});
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    element?.querySelector<HTMLElement>("[data-focus]")?.focus();
    // Closed before it is taken away: only then the focus goes back to where it was.
    return () => element?.close();
  }, []);
  // What is wrong is read out, and can be mended at once.
  useEffect(() => {
    if (Object.keys(errors).length > 0) dialog.current?.querySelector<HTMLElement>(".wrong :is(input, textarea, select)")?.focus();
  }, [errors]);
  const close = () => void send("close-modal", { user, viewId: view.id });
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(undefined);
    const outcome = await send("submit", { user, viewId: view.id, values: valuesOf(view.blocks, entered) });
    setBusy(false);
    setErrors(outcome.ok ? {} : (outcome.errors ?? {}));
    if (!outcome.ok) setProblem(outcome.error);
  };
  const label = (name: "title" | "submit" | "close") => (view.payload[name] as { text?: string } | undefined)?.text;
  const send_ = label("submit");
  return (
    <dialog
      className="modal"
      ref={dialog}
      aria-label={label("title")}
      onCancel={(event) => {
        // The server takes it away, so that the app can be told.
        event.preventDefault();
        close();
      }}
    >
      <form onSubmit={(event) => void submit(event)} noValidate>
        <header>
          <img src="/assets/icon.svg" alt="" width="24" height="24" />
          <h2>{label("title")}</h2>
          <button type="button" className="quiet" aria-label="Close" onClick={close}>
            <Icon name="close" />
          </button>
        </header>
        <div className="modal-body">
          <LiveBlocks blocks={view.blocks} user={user} place={{ viewId: view.id }} entered={entered} onEnter={setEntered} errors={errors} />
          <Problem text={problem} />
        </div>
        <footer>
          <button type="button" className="button" onClick={close}>
            {label("close") ?? (send_ === undefined ? "Close" : "Cancel")}
          </button>
          {send_ === undefined ? null : (
            <button type="submit" className="button primary" disabled={busy} aria-busy={busy}>
              {busy ? <span className="spinner" /> : null}
              {send_}
            </button>
          )}
        </footer>
      </form>
    </dialog>
  );
}
