import type { IncomingMessage, ServerResponse } from "node:http";
import { listen } from "./http.ts";

/** How an emulated monitoring system answers the next requests instead: a status with its own body, or a connection that is cut. */
export type Trouble = { readonly status: number; readonly times: number } | { readonly cut: true; readonly times: number };

/** Answers a request so, if there is trouble; true if it did. */
export function troubled(trouble: { next: Trouble | undefined }, response: ServerResponse, body: (status: number) => unknown): boolean {
  const { next } = trouble;
  if (next === undefined || next.times <= 0) return false;
  trouble.next = { ...next, times: next.times - 1 };
  if ("cut" in next) response.destroy();
  else response.writeHead(next.status, { "content-type": "application/json" }).end(JSON.stringify(body(next.status)));
  return true;
}

export const json = (response: ServerResponse, status: number, body: unknown): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

export interface PagerDutyEmulator {
  readonly url: string;
  /** Notes by incident; an incident that is not here is unknown. */
  readonly notes: Map<string, { readonly content: string; readonly user: string }[]>;
  /** Who is on call by a schedule, in the order in which PagerDuty lists them. */
  readonly onCalls: Map<string, { readonly level: number; readonly name: string; readonly email: string }[]>;
  /** Events by deduplication key: those that opened or closed something. */
  readonly events: Record<string, unknown>[];
  /** Keys with an open alert. */
  readonly open: Set<string>;
  readonly requests: string[];
  readonly trouble: { next: Trouble | undefined };
  close(): Promise<void>;
}

export const PAGERDUTY_TOKEN = "u+abcdefghijklmnopqr";
export const ROUTING_KEY = "0123456789abcdef0123456789abcdef";
const FROM = "netcheck@example.com";

/** PagerDuty's REST API (notes, who is on call) and its Events API, version 2, as their documentation has them. */
export async function startPagerDuty(): Promise<PagerDutyEmulator> {
  const notes: PagerDutyEmulator["notes"] = new Map();
  const onCalls: PagerDutyEmulator["onCalls"] = new Map();
  const events: Record<string, unknown>[] = [];
  const open = new Set<string>();
  const requests: string[] = [];
  const trouble: PagerDutyEmulator["trouble"] = { next: undefined };
  const refuse = (response: ServerResponse, status: number, message: string, errors: readonly string[] = []): void =>
    json(response, status, { error: { message, code: 2000 + status, errors } });

  const { url, close } = await listen((request, body, response) => {
    const address = new URL(request.url ?? "/", "http://localhost");
    requests.push(`${request.method} ${address.pathname}`);
    if (troubled(trouble, response, (status) => ({ error: { message: status === 429 ? "Rate Limit Exceeded" : "Internal Server Error", code: 2020 } }))) return;
    if (address.pathname === "/v2/enqueue") return enqueue(request, body, response);
    if (request.headers.authorization !== `Token token=${PAGERDUTY_TOKEN}`) return json(response, 401, { error: { message: "Unauthorized", code: 2006 } });
    if (!String(request.headers.accept).includes("application/vnd.pagerduty+json;version=2")) return refuse(response, 400, "Unsupported version");
    const note = /^\/incidents\/([^/]+)\/notes$/.exec(address.pathname);
    if (note !== null) return noted(String(note[1]), request, body, response);
    if (address.pathname === "/oncalls" && request.method === "GET") return onCall(address.searchParams, response);
    return refuse(response, 404, "Not Found");
  });

  function noted(incident: string, request: IncomingMessage, body: Buffer, response: ServerResponse) {
    const known = notes.get(incident);
    if (known === undefined) return refuse(response, 404, "Not Found");
    const shown = ({ content, user }: { content: string; user: string }, index: number) => ({
      id: `PNOTE${index}`,
      user: { type: "user_reference", summary: user },
      content,
      created_at: "2026-11-21T12:00:00Z",
    });
    if (request.method === "GET") return json(response, 200, { notes: known.map(shown) });
    if (request.headers.from !== FROM) return refuse(response, 400, "Invalid Input Provided", ["Requester User Not Found"]);
    const { note } = JSON.parse(body.toString("utf8")) as { note?: { content?: unknown } };
    if (typeof note?.content !== "string" || note.content === "") return refuse(response, 400, "Invalid Input Provided", ["Content cannot be empty"]);
    known.push({ content: note.content, user: FROM });
    json(response, 200, { note: shown({ content: note.content, user: FROM }, known.length) });
  }

  function onCall(query: URLSearchParams, response: ServerResponse) {
    const [schedule = ""] = query.getAll("schedule_ids[]");
    const known = onCalls.get(schedule);
    if (known === undefined) return refuse(response, 404, "Not Found");
    const full = query.getAll("include[]").includes("users");
    json(response, 200, {
      oncalls: known.map(({ level, name, email }) => ({
        escalation_level: level,
        schedule: { id: schedule, type: "schedule_reference" },
        user: { id: "PUSER", type: full ? "user" : "user_reference", summary: name, ...(full ? { name, email } : {}) },
      })),
      limit: 20,
      offset: 0,
      more: false,
    });
  }

  function enqueue(_request: IncomingMessage, body: Buffer, response: ServerResponse) {
    const event = JSON.parse(body.toString("utf8")) as Record<string, unknown>;
    const payload = event["payload"] as Record<string, unknown> | undefined;
    const key = event["dedup_key"];
    const errors: string[] = [];
    if (typeof event["routing_key"] !== "string" || event["routing_key"].length !== 32)
      errors.push("Length of 'routing_key' is incorrect (should be 32 characters)");
    if (typeof key !== "string" || key.length > 255) errors.push("'dedup_key' is missing or too long");
    if (event["event_action"] === "trigger") {
      for (const field of ["summary", "source", "severity"]) if (typeof payload?.[field] !== "string") errors.push(`'payload.${field}' is missing or blank`);
      if (String(payload?.["summary"]).length > 1024) errors.push("'payload.summary' is too long");
      if (!["critical", "error", "warning", "info"].includes(String(payload?.["severity"]))) errors.push("'payload.severity' is invalid");
    } else if (event["event_action"] !== "resolve") errors.push("'event_action' is invalid");
    if (errors.length > 0) return json(response, 400, { status: "invalid event", message: "Event object is invalid", errors });
    events.push(event);
    if (event["event_action"] === "trigger") open.add(String(key));
    else open.delete(String(key));
    json(response, 202, { status: "success", message: "Event processed", dedup_key: key });
  }

  return { url, notes, onCalls, events, open, requests, trouble, close };
}
