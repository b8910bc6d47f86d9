import { createHash } from "node:crypto";
import { isSigned, listen } from "./http.ts";

/** A stored object, and how many more reads pretend that it is not there yet. */
interface Stored {
  body: Buffer;
  modified: Date;
  hidden: number;
}

export interface S3Emulator {
  /** For `AWS_ENDPOINT_URL_S3`. */
  url: string;
  /** Store an object without HTTP. Reads answer NoSuchKey `hidden` times first (by default none), as an upload that is not through yet does. */
  put(bucket: string, key: string, body: string | Uint8Array, hidden?: number): void;
  /** The object's bytes, hidden or not. */
  get(bucket: string, key: string): Buffer | undefined;
  /** Keys of a bucket, sorted. */
  keys(bucket: string): string[];
  close(): Promise<void>;
}

/**
 * Amazon S3 in one process: PutObject (with If-None-Match: *), GetObject (with Range), HeadObject and ListObjectsV2, path-style, over HTTP.
 * The SDK turns to path-style by itself when the endpoint is an IP address. Buckets exist when they are used.
 */
export async function startS3(): Promise<S3Emulator> {
  const buckets = new Map<string, Map<string, Stored>>();
  const objects = (bucket: string) => {
    const found = buckets.get(bucket) ?? new Map<string, Stored>();
    buckets.set(bucket, found);
    return found;
  };

  const { url, close } = await listen((request, body, response) => {
    const fail = (status: number, code: string, message: string) => {
      const text = request.method === "HEAD" ? "" : `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>${message}</Message></Error>`;
      response.writeHead(status, { "content-type": "application/xml" }).end(text);
    };
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://s3");
    const [bucket = "", ...rest] = pathname.slice(1).split("/");
    const key = decodeURIComponent(rest.join("/"));
    const stored = objects(bucket);
    if (!isSigned(request, "s3")) return fail(403, "AccessDenied", "Access Denied");

    if (key === "") {
      if (request.method !== "GET" || searchParams.get("list-type") !== "2") return fail(501, "NotImplemented", "The emulator has no such operation");
      response.writeHead(200, { "content-type": "application/xml" }).end(listing(bucket, stored, searchParams));
      return;
    }
    if (request.method === "PUT") {
      if (request.headers["if-none-match"] === "*" && stored.has(key))
        return fail(412, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold");
      const chunked = String(request.headers["x-amz-content-sha256"]).startsWith("STREAMING-");
      const content = chunked ? unchunk(body) : body;
      stored.set(key, { body: content, modified: new Date(), hidden: 0 });
      response.writeHead(200, { etag: etag(content) }).end();
      return;
    }
    if (request.method !== "GET" && request.method !== "HEAD") return fail(501, "NotImplemented", "The emulator has no such operation");
    const object = stored.get(key);
    if (object === undefined || object.hidden > 0) {
      if (object !== undefined) object.hidden -= 1;
      return fail(404, "NoSuchKey", "The specified key does not exist.");
    }
    const headers = {
      etag: etag(object.body),
      "last-modified": object.modified.toUTCString(),
      "content-type": "application/octet-stream",
      "accept-ranges": "bytes",
    };
    const part = range(request.headers.range, object.body.length);
    if (part === "unsatisfiable") return fail(416, "InvalidRange", "The requested range is not satisfiable");
    const content = part === undefined ? object.body : object.body.subarray(part.start, part.end + 1);
    const partial = part === undefined ? {} : { "content-range": `bytes ${part.start}-${part.end}/${object.body.length}` };
    response.writeHead(part === undefined ? 200 : 206, { ...headers, ...partial, "content-length": content.length });
    response.end(request.method === "HEAD" ? undefined : content);
  });

  return {
    url,
    close,
    put: (bucket, key, body, hidden = 0) => objects(bucket).set(key, { body: Buffer.from(body), modified: new Date(), hidden }),
    get: (bucket, key) => objects(bucket).get(key)?.body,
    keys: (bucket) => [...objects(bucket).keys()].sort(),
  };
}

const etag = (body: Buffer): string => `"${createHash("md5").update(body).digest("hex")}"`;

/** "bytes=2-5", "bytes=2-" or "bytes=-3" of an object of that size. Anything else is ignored, as S3 does. */
function range(header: string | undefined, size: number): { start: number; end: number } | "unsatisfiable" | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  const [, first = "", last = ""] = match ?? [];
  if (match === null || (first === "" && last === "")) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size - 1 : Math.min(Number(last), size - 1);
  return start >= size || end < start ? "unsatisfiable" : { start, end };
}

/** The payload of an aws-chunked body: `<hex size>[;chunk-signature=…]\r\n<bytes>\r\n` … `0\r\n<trailers>`. */
function unchunk(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.toString("latin1", at, line), 16);
    if (line === -1 || !(size > 0)) return Buffer.concat(parts);
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

function listing(bucket: string, stored: Map<string, Stored>, query: URLSearchParams): string {
  const prefix = query.get("prefix") ?? "";
  const limit = Math.min(Number(query.get("max-keys") ?? 1000), 1000);
  const after = query.get("continuation-token") ?? query.get("start-after") ?? "";
  const matching = [...stored]
    .filter(([key, object]) => key.startsWith(prefix) && key > after && object.hidden === 0)
    .sort(([left], [right]) => (left < right ? -1 : 1));
  const page = matching.slice(0, limit);
  const more = matching.length > page.length;
  const contents = page
    .map(
      ([key, { body, modified }]) =>
        `<Contents><Key>${xml(key)}</Key><LastModified>${modified.toISOString()}</LastModified><ETag>${xml(etag(body))}</ETag><Size>${body.length}</Size></Contents>`,
    )
    .join("");
  const next = more ? `<NextContinuationToken>${xml(page.at(-1)?.[0] ?? "")}</NextContinuationToken>` : "";
  return `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult><Name>${bucket}</Name><Prefix>${xml(prefix)}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${limit}</MaxKeys><IsTruncated>${more}</IsTruncated>${next}${contents}</ListBucketResult>`;
}

const xml = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
