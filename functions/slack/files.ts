import { createHash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream } from "node:stream/web";
import type { WebClient } from "@slack/web-api";
import type { SharedFile } from "../triage/ports.ts";

/** A larger file is refused. Slack itself takes up to 1 GB. */
export const MAX_FILE = 100 * 1024 * 1024;
/** Milliseconds for one file. */
const PATIENCE_MS = 120_000;
/** Where Slack keeps files: the token is sent to no other host. */
const HOSTS = new Set(["files.slack.com", "slack.com", "files.slack-gov.com", "slack-gov.com"]);
/** Told wherever Slack hides a file from the bot. */
const SCOPE = "does the app have the scope files:read, and is it a member of that conversation?";

/** Fetches a file into `path`, which it creates readable by its owner only. Says what it wrote. */
export type FetchFile = (file: SharedFile, path: string) => Promise<{ readonly bytes: number; readonly sha256: string }>;

/**
 * Fetches files of Slack with the client's token, or the one that `token` names where tokens rotate. The address comes from a request that Slack signed, and is still not trusted: only https on Slack's
 * file hosts, or exactly the origin of the API that the client talks to; redirects are not followed; nothing longer than {@link MAX_FILE} is taken.
 * Throws a sentence for people, `retryable` where waiting may help.
 */
export function slackFiles(client: WebClient, token = async () => client.token ?? "", maxBytes = MAX_FILE): FetchFile {
  const api = new URL(client.slackApiUrl).origin;
  return async (file, path) => {
    const url = allowed(file.url ?? (await ask(client, file)), api);
    if ((file.size ?? 0) > maxBytes) throw tooLarge(maxBytes, file.size);
    const response = await fetch(url, {
      headers: { authorization: `Bearer ${await token()}` },
      redirect: "manual",
      signal: AbortSignal.timeout(PATIENCE_MS),
    }).catch((cause: unknown) => {
      throw later(`it could not be fetched from Slack: ${(cause as Error).message}`, cause);
    });
    try {
      check(response, file.name, maxBytes);
      const hash = createHash("sha256");
      let bytes = 0;
      const counted = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          bytes += chunk.length;
          hash.update(chunk);
          if (bytes > maxBytes) done(tooLarge(maxBytes));
          else done(null, chunk);
        },
      });
      await pipeline(Readable.fromWeb(response.body as ReadableStream), counted, createWriteStream(path, { mode: 0o600, flags: "wx" })).catch(
        (cause: unknown) => {
          throw bytes > maxBytes ? cause : later(`the connection to Slack broke while it was fetched: ${(cause as Error).message}`, cause);
        },
      );
      return { bytes, sha256: hash.digest("hex") };
    } finally {
      if (!response.bodyUsed) await response.body?.cancel();
    }
  };
}

/** The address of a file that an event only names (Slack Connect). */
async function ask(client: WebClient, { id }: SharedFile): Promise<string> {
  const { file } = await client.files.info({ file: id }).catch((cause: unknown) => {
    throw new Error(`Slack does not show it to netcheck (${(cause as Error).message}); ${SCOPE}`, { cause });
  });
  const url = file?.url_private_download ?? file?.url_private;
  if (url === undefined) throw new Error(`Slack does not show it to netcheck; ${SCOPE}`);
  return url;
}

function allowed(text: string, api: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const own = url !== undefined && url.origin === api;
  const slack = url?.protocol === "https:" && url.port === "" && HOSTS.has(url.hostname);
  if (url === undefined || !(own || slack) || url.username !== "" || url.password !== "")
    throw new Error("it is not kept by Slack itself (such as a file of Google Drive), and netcheck fetches nothing from elsewhere; upload the file");
  return url;
}

/** @throws unless the answer is the file */
function check(response: Response, name: string, maxBytes: number): void {
  const { status, headers } = response;
  // Slack asks who may not see a file to log in, sometimes with status 200
  const login = (headers.get("content-type") ?? "").startsWith("text/html") && !/\.html?$/i.test(name);
  if ((status >= 300 && status < 400) || status === 401 || status === 403 || (status === 200 && login))
    throw new Error(`Slack does not let netcheck fetch it (HTTP ${status}); ${SCOPE}`);
  if (status === 404 || status === 410) throw new Error("Slack does not have it any more");
  if (status === 429 || status >= 500) throw later(`Slack could not deliver it (HTTP ${status})`);
  if (status !== 200 || response.body === null) throw new Error(`Slack answered with HTTP ${status} instead of the file`);
  const length = Number(headers.get("content-length") ?? 0);
  if (length > maxBytes) throw tooLarge(maxBytes, length);
}

const megabytes = (bytes: number): string => `${Math.ceil(bytes / 1024 / 1024)} MB`;

const tooLarge = (most: number, bytes?: number): Error =>
  new Error(
    `it is larger than ${megabytes(most)}${bytes === undefined ? "" : ` (${megabytes(bytes)})`}; drop only the part about the network, or run "netcheck diagnose" on it where it is`,
  );

const later = (message: string, cause?: unknown): Error => Object.assign(new Error(message, { cause }), { retryable: true });
