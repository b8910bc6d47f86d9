import { createHash } from "node:crypto";
import type { Page, Work } from "../triage/ports.ts";
import { isSigned, readPage } from "./generic.ts";

/** An HTTP request and its answer, as Lambda's function URL or HTTP API have them. */
export interface PagerRequest {
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body?: string;
  readonly isBase64Encoded: boolean;
}
export interface PagerResponse {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface PagerOptions {
  /** With what requests are signed. */
  readonly signingSecret: () => Promise<string>;
  readonly work: Work;
  readonly now: () => number;
}

/** A page with fifty targets is far below it. */
const MAX_BODY = 256 * 1024;

/** Takes pages: checks the signature, starts the work, answers. What is refused says why to the sender, and nothing of ours. */
export function pagerHandler({ signingSecret, work, now }: PagerOptions): (request: PagerRequest) => Promise<PagerResponse> {
  return async (request) => {
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
    const body = request.isBase64Encoded ? Buffer.from(request.body ?? "", "base64").toString("utf8") : (request.body ?? "");
    if (Buffer.byteLength(body) > MAX_BODY) return answer(413, `a page has at most ${MAX_BODY} bytes`);
    if (!isSigned(await signingSecret(), headers, body, now())) return answer(401, "the signature or its time is not valid");
    const page = readPage(body);
    if ("problem" in page) return answer(400, page.problem);
    await work.start(pageId(page), { kind: "page", page });
    return answer(202, "accepted");
  };
}

/** Name of a page's execution: the same page, sent again, is the same. */
export const pageId = ({ source, id }: Pick<Page, "source" | "id">): string =>
  `page-${createHash("sha256").update(`${source}\n${id}`).digest("hex").slice(0, 16)}`;

const answer = (statusCode: number, message: string): PagerResponse => ({
  statusCode,
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ message }),
});
