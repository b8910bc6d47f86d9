import { listen } from "./http.ts";
import { json, type Trouble, troubled } from "./pagerduty.ts";

export interface OpsgenieEmulator {
  readonly url: string;
  /** Notes by alert; an alert that is not here is unknown. */
  readonly notes: Map<string, { readonly note: string; readonly owner: string }[]>;
  /** E-mail addresses by schedule. */
  readonly onCalls: Map<string, readonly string[]>;
  readonly trouble: { next: Trouble | undefined };
  close(): Promise<void>;
}

export const GENIE_KEY = "eb243592-0000-4ba2-a551-1afdf565c889";

/** Opsgenie's Alert and Schedule APIs, version 2, as their documentation has them: a note is accepted (202) and there at once. */
export async function startOpsgenie(): Promise<OpsgenieEmulator> {
  const notes: OpsgenieEmulator["notes"] = new Map();
  const onCalls: OpsgenieEmulator["onCalls"] = new Map();
  const trouble: OpsgenieEmulator["trouble"] = { next: undefined };
  const said = (message: string) => ({ message, took: 0.001, requestId: "ec7e1d8e-1c75-442e-a271-731070a7fa4d" });
  const { url, close } = await listen((request, body, response) => {
    const address = new URL(request.url ?? "/", "http://localhost");
    if (troubled(trouble, response, (status) => said(status === 429 ? "You are making too many requests!" : "Internal Server Error"))) return;
    if (request.headers.authorization !== `GenieKey ${GENIE_KEY}`) return json(response, 401, said("Could not authenticate"));
    const alert = /^\/v2\/alerts\/([^/]+)\/notes$/.exec(address.pathname)?.[1];
    if (alert !== undefined) {
      const known = notes.get(alert);
      if (known === undefined) return json(response, 404, said("Alert does not exist"));
      if (request.method === "GET")
        return json(response, 200, { data: known.toReversed().map((one, index) => ({ ...one, offset: String(index) })), ...said("") });
      const { note, user } = JSON.parse(body.toString("utf8")) as { note?: unknown; user?: unknown };
      if (typeof note !== "string" || note === "" || note.length > 25_000) return json(response, 422, said("Note can not be empty."));
      known.push({ note, owner: String(user) });
      return json(response, 202, { result: "Request will be processed", took: 0.302, requestId: "43a29c5c-3dbf-4fa4-9c26-f4f71023e120" });
    }
    const schedule = /^\/v2\/schedules\/([^/]+)\/on-calls$/.exec(address.pathname)?.[1];
    const known = schedule === undefined ? undefined : onCalls.get(schedule);
    if (known === undefined) return json(response, 404, said("Schedule does not exist"));
    if (address.searchParams.get("flat") !== "true") return json(response, 200, { data: { onCallParticipants: [] } });
    json(response, 200, { data: { _parent: { id: schedule, enabled: true }, onCallRecipients: known }, took: 0.1, requestId: "x" });
  });
  return { url, notes, onCalls, trouble, close };
}
