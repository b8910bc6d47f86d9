import { useEffect, useState } from "react";
import type { Outcome } from "../interactions.ts";
import type { Sample, SentSample } from "../sample-pages.ts";
import type { WorkspaceState } from "../workspace.ts";

/** What the page can do in the workspace; the names are those of the server's paths. */
export type Gesture = "command" | "message" | "action" | "submit" | "close-modal" | "home" | "read" | "shortcut" | "invite";

/** Tells the server what the person did. Never throws: a server that cannot be reached is an outcome too. */
export async function send(gesture: Gesture, body: Record<string, unknown>): Promise<Outcome> {
  try {
    const response = await fetch(`/workspace/${gesture}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    return (await response.json()) as Outcome;
  } catch {
    return { ok: false, error: "The local server does not answer. Is npm start still running?" };
  }
}

/** Has a sample page sent. What was sent and answered, or a sentence for the person. */
export async function sendPage(sample: Sample): Promise<SentSample | { readonly error: string }> {
  try {
    const response = await fetch("/workspace/page", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sample) });
    return (await response.json()) as SentSample | { readonly error: string };
  } catch {
    return { error: "The local server does not answer. Is npm start still running?" };
  }
}

/** Uploads a file for a message that is to come. The id of the file, or a sentence for the person. */
export async function attach(user: string, file: File): Promise<{ readonly id: string } | { readonly error: string }> {
  try {
    const where = new URLSearchParams({ user, name: file.name });
    const response = await fetch(`/workspace/upload?${where}`, { method: "POST", headers: { "content-type": "application/octet-stream" }, body: file });
    const answer = (await response.json()) as { file?: string; error?: string };
    return answer.file === undefined ? { error: `${file.name}: ${answer.error ?? "it was not taken"}` } : { id: answer.file };
  } catch {
    return { error: `${file.name} could not be read, or the local server does not answer.` };
  }
}

/**
 * The workspace as `user` sees it, kept up to date: the server announces each change, the page then asks for the whole.
 * `online` is false while the server cannot be reached.
 */
export function useWorkspace(user: string): { state: WorkspaceState | undefined; online: boolean } {
  const [state, setState] = useState<WorkspaceState>();
  const [online, setOnline] = useState(true);
  useEffect(() => {
    let ended = false;
    let loading = false;
    let again = false;
    const load = async () => {
      if (loading) {
        again = true;
        return;
      }
      loading = true;
      do {
        again = false;
        try {
          const response = await fetch(`/workspace/state?user=${encodeURIComponent(user)}`);
          const fresh = (await response.json()) as WorkspaceState;
          if (!ended) setState(fresh);
        } catch {
          if (!ended) setOnline(false);
        }
      } while (again && !ended);
      loading = false;
    };
    const events = new EventSource("/workspace/events");
    events.onmessage = () => {
      setOnline(true);
      void load();
    };
    // The browser connects again by itself.
    events.onerror = () => setOnline(false);
    return () => {
      ended = true;
      events.close();
    };
  }, [user]);
  // What was loaded for another person is not shown to this one.
  return { state: state?.me === user ? state : undefined, online };
}
