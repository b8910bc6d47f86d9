import { createHash } from "node:crypto";
import { type Call, call, firstLine, records, text } from "./call.ts";

export interface GrafanaOptions {
  /** Of the instance, without "/" at its end. */
  readonly api: string;
  /** Token of a service account that may read and create annotations. */
  readonly token: () => Promise<string>;
}

/**
 * Grafana: an annotation of the organisation with the tag `netcheck`, that any dashboard can show. A rule of Grafana's alerting takes no notes, and neither does
 * Alertmanager: there this is the place beside it.
 */
export function grafana({ api, token }: GrafanaOptions) {
  const rest = async (method: Call["method"], path: string, body?: unknown): Promise<unknown> =>
    call({
      service: "grafana",
      what: "leave an annotation",
      method,
      url: `${api}${path}`,
      headers: { authorization: `Bearer ${await token()}` },
      ...(body === undefined ? {} : { body }),
      key: "The token (pagers.grafana.tokenSecret) must be of a service account with annotations:read and annotations:create",
    });
  return {
    /** Leaves an annotation now, unless there is one with the same first line. @param rule uid of the rule, of an alert of Grafana's own */
    async note(rule: string | undefined, note: string): Promise<void> {
      // found again by a tag, which Grafana looks up: not by reading what others wrote
      const own = `netcheck-${createHash("sha256").update(firstLine(note)).digest("hex").slice(0, 16)}`;
      const found = records(await rest("GET", `/api/annotations?${new URLSearchParams({ tags: own, limit: "1", type: "annotation" })}`));
      if (found.some(({ tags }) => Array.isArray(tags) && tags.map(text).includes(own))) return;
      const tags = ["netcheck", own, ...(rule === undefined ? [] : [`rule:${rule.slice(0, 100)}`])];
      await rest("POST", "/api/annotations", { tags, text: html(note) });
    },
  };
}

/** Grafana shows HTML. */
const html = (note: string): string => note.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", "<br/>");
