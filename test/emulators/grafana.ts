import { listen } from "./http.ts";
import { json, type Trouble, troubled } from "./pagerduty.ts";

export interface GrafanaEmulator {
  readonly url: string;
  readonly annotations: { readonly id: number; readonly text: string; readonly tags: readonly string[] }[];
  readonly trouble: { next: Trouble | undefined };
  close(): Promise<void>;
}

export const GRAFANA_TOKEN = "glsa_abcdefghijklmnopqrstuvwxyz012345_deadbeef";

/** Grafana's annotations over HTTP, as its documentation has them: several tags must all be there. */
export async function startGrafana(): Promise<GrafanaEmulator> {
  const annotations: GrafanaEmulator["annotations"] = [];
  const trouble: GrafanaEmulator["trouble"] = { next: undefined };
  const { url, close } = await listen((request, body, response) => {
    const address = new URL(request.url ?? "/", "http://localhost");
    if (troubled(trouble, response, () => ({ message: "Failed to save annotation", traceID: "" }))) return;
    if (request.headers.authorization !== `Bearer ${GRAFANA_TOKEN}`) return json(response, 401, { message: "Invalid API key", messageId: "api-key.invalid" });
    if (address.pathname !== "/api/annotations") return json(response, 404, { message: "Not found" });
    if (request.method === "GET") {
      const wanted = address.searchParams.getAll("tags");
      const limit = Number(address.searchParams.get("limit") ?? 100);
      return json(response, 200, annotations.filter(({ tags }) => wanted.every((tag) => tags.includes(tag))).slice(0, limit));
    }
    const { text, tags = [] } = JSON.parse(body.toString("utf8")) as { text?: unknown; tags?: string[] };
    if (typeof text !== "string" || text === "") return json(response, 400, { message: "Failed to save annotation: text field should not be empty" });
    annotations.push({ id: annotations.length + 1, text, tags });
    json(response, 200, { message: "Annotation added", id: annotations.length });
  });
  return { url, annotations, trouble, close };
}
