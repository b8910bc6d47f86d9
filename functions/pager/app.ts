import { createHash } from "node:crypto";
import type { Page, Work } from "../triage/ports.ts";
import { alertmanager } from "./alertmanager.ts";
import { cloudwatch } from "./cloudwatch.ts";
import { generic } from "./generic.ts";
import { grafana } from "./grafana.ts";
import { opsgenie } from "./opsgenie.ts";
import { pagerduty } from "./pagerduty.ts";
import { isOurs, parseJson } from "./read.ts";
import type { Delivery, Source, Visit } from "./source.ts";

/** An HTTP request and its answer, as Lambda's function URL or HTTP API have them. */
export interface PagerRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
  /** Ends with /pager/<source>; without a source it is the generic one. */
  readonly rawPath?: string;
}
export interface PagerResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface PagerOptions {
  /** The pager's secret: field → what its source proves itself with. `doubtful`: the one in memory did not fit, so that it may be an old one. */
  readonly secrets: (doubtful?: boolean) => Promise<Readonly<Record<string, unknown>>>;
  readonly work: Work;
  readonly now: () => number;
  /** Visits an address of SNS; without it no alarm of CloudWatch is taken. */
  readonly visit?: Visit;
  /** What operations should see: which source failed, and why. Never a body, never a header. */
  readonly log?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

/** Bytes. Two hundred alerts with all their labels are below it. */
const MAX_BODY = 1024 * 1024;
/** Of a secret: shorter ones can be guessed. */
const MIN_SECRET = 16;

/**
 * Takes pages: checks who sent them, starts the work, answers. What is refused says why to the sender, and nothing of ours; what is taken or ignored is answered
 * with 2xx, so that it is not sent again; what failed on our side with 503, so that it is.
 */
export function pagerHandler({ secrets, work, now, visit = unable, log = () => undefined }: PagerOptions): (request: PagerRequest) => Promise<PagerResponse> {
  const sources = new Map<string, Source>([pagerduty, alertmanager, grafana, cloudwatch(), opsgenie, generic].map((source) => [source.name, source]));

  /** Undefined if the source is not set up; else whether the request is its own. */
  async function isAuthentic(source: Source, delivery: Delivery): Promise<boolean | undefined> {
    let tried: readonly string[] | undefined;
    for (const doubtful of [false, true]) {
      const held = wordsOf((await secrets(doubtful))[source.field]);
      // a secret that was changed counts at once
      if (held.join(" ") === tried?.join(" ")) return held.length > 0 ? false : undefined;
      if (held.length > 0 && (await source.authentic(delivery, held, visit))) return true;
      tried = held;
    }
    return tried === undefined || tried.length === 0 ? undefined : false;
  }

  return async (request) => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
    const name = /\/pager(?:\/([^/?]{1,40}))?\/?$/.exec(request.rawPath ?? "/pager")?.[1] ?? "generic";
    const source = sources.get(name);
    if (source === undefined) return answer(404, `there is no such source of pages; there are ${[...sources.keys()].join(", ")}`);
    // base64 is a third longer: a long one is not even decoded
    if ((request.body?.length ?? 0) > MAX_BODY * 1.4) return answer(413, `a page has at most ${MAX_BODY} bytes`);
    const body = Buffer.from(request.body ?? "", request.isBase64Encoded ? "base64" : "utf8");
    if (body.length > MAX_BODY) return answer(413, `a page has at most ${MAX_BODY} bytes`);
    const type = (headers["content-type"] ?? "application/json").split(";")[0]?.trim().toLowerCase() ?? "";
    if (!["application/json", ...(source.types ?? [])].includes(type)) return answer(415, "a page is JSON: send it with the content type application/json");
    const delivery: Delivery = { headers, body, now: now() };
    try {
      const authentic = await isAuthentic(source, delivery);
      if (authentic === undefined)
        return answer(
          404,
          `pages from ${name} are not set up here: put ${JSON.stringify(source.field)} into the pager's secret, ${MIN_SECRET} characters or more`,
        );
      if (!authentic) return answer(401, source.proof);
      const value = parseJson(body);
      if (value === undefined) return answer(400, "the body is not JSON");
      const reading = source.read(value, delivery);
      if ("problem" in reading) return answer(400, reading.problem);
      if ("ignored" in reading) {
        if (reading.notable === true) log(reading.ignored, { source: name });
        return answer(202, `ignored: ${reading.ignored}`);
      }
      if ("visit" in reading) {
        await visit(reading.visit);
        return answer(200, "the subscription is confirmed");
      }
      const alerts = reading.page.alerts.filter((alert) => !isOurs(alert));
      if (alerts.length === 0) return answer(202, "ignored: it is what netcheck wrote itself");
      await work.start(pageId(reading.page), { kind: "page", page: { ...reading.page, alerts } });
      return answer(202, "accepted");
    } catch (error) {
      log("a page could not be taken", { source: name, problem: (error as Error).message });
      return answer(503, "the page could not be taken just now; send it again");
    }
  };
}

/** Name of a page's execution: the same page, sent again, is the same. */
export const pageId = ({ source, id }: Pick<Page, "source" | "id">): string =>
  `page-${createHash("sha256").update(`${source}\n${id}`).digest("hex").slice(0, 16)}`;

const wordsOf = (value: unknown): readonly string[] => (typeof value === "string" ? value.split(/\s+/).filter((word) => word.length >= MIN_SECRET) : []);

const unable: Visit = () => Promise.reject(new Error("there is no way to visit an address"));

const answer = (statusCode: number, message: string): PagerResponse => ({
  statusCode,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ message }),
});
