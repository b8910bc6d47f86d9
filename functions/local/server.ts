import { readFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import type { PagerRequest, PagerResponse } from "../pager/app.ts";
import { limits } from "../slack/block-kit.ts";
import { type Assets, bundlePage } from "./bundle.ts";
import { SlackError } from "./chat.ts";
import type { Outcome } from "./interactions.ts";
import { isPng } from "./png.ts";
import { SAMPLES, type SamplePages, type SampleSource, type SentSample } from "./sample-pages.ts";
import type { Workspace } from "./workspace.ts";

/** A request of the workspace to the app, as it came over HTTP. */
export interface AppRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
export interface AppResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}
export type AppHandler = (request: AppRequest) => Promise<AppResponse>;

export interface ServerOptions {
  readonly workspace: Workspace;
  /** The app lives elsewhere: its address. */
  readonly appUrl?: string;
  /** The app lives here: called for POST /slack/events, with the signed request unchanged. */
  readonly appHandler?: AppHandler;
  /** Takes pages: called for POST /pager/…, with the request unchanged; and what sends sample pages there. */
  readonly pager?: { readonly handler: (request: PagerRequest) => Promise<PagerResponse>; readonly samples: SamplePages };
  /** 0 (default): any free port. */
  readonly port?: number;
  /** Loopback only: "127.0.0.1" (default), "localhost" or "::1". */
  readonly host?: "127.0.0.1" | "localhost" | "::1";
  /** Told of errors that the caller could not be told of. */
  readonly log?: (message: string) => void;
}

export interface LocalServer {
  /** "http://127.0.0.1:3000" */
  readonly url: string;
  close(): Promise<void>;
}

const bodyBytes = 1024 * 1024;
const uploadBytes = 16 * 1024 * 1024;
/** A file of a person: as large as the app takes. */
const attachBytes = 100 * 1024 * 1024;
const policy =
  "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const contentTypes: Readonly<Record<string, string>> = { js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8", svg: "image/svg+xml" };

const id = z.string().min(1).max(100);
const entered = z.union([z.string().max(4000), z.array(z.string().max(4000)).max(100)]);
const values = z.record(z.string(), z.record(z.string(), entered));
const gestures = {
  command: z.object({ user: id, channel: id, command: z.string().regex(/^\/\S+$/), text: z.string().max(4000, "a command has at most 4,000 characters") }),
  message: z.object({
    user: id,
    channel: id,
    text: z.string().max(limits.messageText, "a message has at most 40,000 characters"),
    threadTs: id.optional(),
    files: z.array(id).max(10).optional(),
  }),
  action: z.object({
    user: id,
    channel: id.optional(),
    ts: id.optional(),
    viewId: id.optional(),
    blockId: z.string().max(255).optional(),
    actionId: z.string().max(255),
    value: entered.optional(),
    values: values.optional(),
  }),
  shortcut: z.object({ user: id, channel: id, ts: id, callbackId: z.string().min(1).max(255) }),
  submit: z.object({ user: id, viewId: id, values }),
  closeModal: z.object({ user: id, viewId: id }),
  home: z.object({ user: id }),
  invite: z.object({ user: id, channel: id }),
  page: z.object({
    source: z.enum(Object.keys(SAMPLES) as SampleSource[]),
    status: z.enum(["firing", "acknowledged", "resolved"]),
    about: z.string().regex(/^[\w.-]{1,100}$/),
    forged: z.boolean(),
  }),
  read: z.object({ user: id, channel: id, threadTs: id.optional() }),
};

/** A request that is refused with an HTTP status. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Serves the workspace: the page, Slack's Web API under /api/, response URLs, files, and the app's door /slack/events. Connects the workspace to the app.
 * Only this machine's own browser pages and programs are answered: the Host must be ours (DNS rebinding) and no other site's page may call.
 * @throws if the port is taken, or the page does not compile
 */
export async function startServer(options: ServerOptions): Promise<LocalServer> {
  const { workspace } = options;
  const host = options.host ?? "127.0.0.1";
  const assets = await bundlePage();
  const page = {
    html: await readFile(new URL("page/index.html", import.meta.url)),
    icon: await readFile(new URL("page/icon.svg", import.meta.url)),
  };
  const log = options.log ?? ((message: string) => process.stderr.write(`${message}\n`));
  const site = { workspace, assets, page, hosts: new Set<string>(), streams: new Set<ServerResponse>(), appHandler: options.appHandler, pager: options.pager };
  const server = createServer((request, response) => {
    serve(site, request, response).catch((error: unknown) => {
      const refusal = error instanceof Refusal ? error : new Refusal(500, "Internal error");
      if (!(error instanceof Refusal))
        log(`local workspace: could not answer ${request.method} ${request.url}: ${error instanceof Error ? error.stack : String(error)}`);
      if (response.headersSent) response.destroy();
      // The body may not have been read: do not leave it to be taken for the next request.
      else send(response, refusal.status, { "content-type": "application/json", connection: "close" }, JSON.stringify({ ok: false, error: refusal.message }));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port ?? 0, host, resolve);
  });
  const { port } = server.address() as AddressInfo;
  for (const name of ["127.0.0.1", "localhost", "[::1]"]) site.hosts.add(`${name}:${port}`);
  const url = `http://${host === "::1" ? "[::1]" : host}:${port}`;
  workspace.chat.url = url;
  workspace.connect(options.appUrl ?? `${url}/slack/events`);
  let told = false;
  const stop = workspace.chat.onChange(() => {
    // Many changes of one moment are one notice.
    if (told) return;
    told = true;
    setImmediate(() => {
      told = false;
      for (const stream of site.streams) stream.write(`data: ${workspace.chat.version}\n\n`);
    });
  });
  return {
    url,
    close: async () => {
      stop();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
      workspace.close();
    },
  };
}

interface Site {
  readonly workspace: Workspace;
  readonly assets: Assets;
  readonly page: { readonly html: Buffer; readonly icon: Buffer };
  /** What may stand in a Host header. */
  readonly hosts: Set<string>;
  readonly streams: Set<ServerResponse>;
  readonly appHandler: AppHandler | undefined;
  readonly pager: ServerOptions["pager"];
}

async function serve(site: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = guard(site, request);
  const [, first = "", ...rest] = url.pathname.split("/");
  const reading = request.method === "GET" || request.method === "HEAD";
  if (first === "api") return webApi(site, request, response, rest.join("/"), url);
  if (first === "slack" && rest[0] === "events") return appDoor(site, request, response);
  if (first === "pager") return pagerDoor(site, request, response, url);
  if (first === "response") return respond(site, request, response, rest[0] ?? "");
  if (first === "upload") return upload(site, request, response, rest[0] ?? "");
  if (first === "workspace" && rest[0] === "upload" && !reading) return attach(site, request, response, url);
  if (first === "workspace" && !reading) return gesture(site, request, response, rest.join("/"));
  if (!reading) throw new Refusal(405, "Method not allowed");
  if (first === "workspace") return watch(site, response, rest.join("/"), url);
  if (first === "files") return file(site, request, response, rest[0] ?? "");
  if (first === "assets") return asset(site, response, rest.join("/"));
  if (url.pathname === "/" || first === "archives") return send(response, 200, { "content-type": "text/html; charset=utf-8" }, site.page.html);
  throw new Refusal(404, "Not found");
}

/** Refuses what comes under a foreign name, or from a page of another site. */
function guard(site: Site, request: IncomingMessage): URL {
  const { host, origin, "sec-fetch-site": from, "sec-fetch-mode": mode } = request.headers;
  if (host === undefined || !site.hosts.has(host)) throw new Refusal(421, "Unknown host");
  if (origin !== undefined && !(origin.startsWith("http://") && site.hosts.has(origin.slice("http://".length)))) throw new Refusal(403, "Foreign origin");
  // Following a link to the page from elsewhere is fine, anything else is not.
  const link = request.method === "GET" && mode === "navigate";
  if (from !== undefined && from !== "same-origin" && from !== "none" && !link) throw new Refusal(403, "Foreign site");
  if (!URL.canParse(request.url ?? "/", `http://${host}`)) throw new Refusal(400, "Bad request");
  return new URL(request.url ?? "/", `http://${host}`);
}

async function webApi(site: Site, request: IncomingMessage, response: ServerResponse, method: string, url: URL): Promise<void> {
  const body = (await readBody(request, bodyBytes)).toString("utf8");
  const json = (request.headers["content-type"] ?? "").startsWith("application/json");
  const args = { ...Object.fromEntries(url.searchParams), ...(json ? parseJson(body) : Object.fromEntries(new URLSearchParams(body))) };
  const answer = site.workspace.api(method, args, bearer(request));
  if (answer.how === "hang") return;
  if (answer.how === "break") request.socket.destroy();
  else send(response, answer.status, { "content-type": "application/json; charset=utf-8", ...answer.headers }, JSON.stringify(answer.body));
}

async function appDoor(site: Site, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (site.appHandler === undefined) throw new Refusal(404, "Not found");
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  const body = (await readBody(request, bodyBytes)).toString("utf8");
  const answer = await site.appHandler({ method: "POST", path: "/slack/events", headers: headersOf(request), body });
  send(response, answer.status, { ...answer.headers }, answer.body ?? "");
}

/** A request's headers by name, each as one text. */
const headersOf = (request: IncomingMessage): Record<string, string> =>
  Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(",") : (value ?? "")]));

async function pagerDoor(site: Site, request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
  if (site.pager === undefined) throw new Refusal(404, "Not found");
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  const body = (await readBody(request, bodyBytes)).toString("base64");
  const { statusCode, headers, body: text } = await site.pager.handler({ headers: headersOf(request), body, isBase64Encoded: true, rawPath: url.pathname });
  send(response, statusCode, headers, text);
}

async function respond(site: Site, request: IncomingMessage, response: ServerResponse, responseId: string): Promise<void> {
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  const answer = site.workspace.respond(responseId, parseJson((await readBody(request, bodyBytes)).toString("utf8")));
  send(response, answer.status, { "content-type": "application/json; charset=utf-8" }, JSON.stringify(answer.body));
}

async function upload(site: Site, request: IncomingMessage, response: ServerResponse, fileId: string): Promise<void> {
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  const raw = await readBody(request, uploadBytes);
  const type = request.headers["content-type"] ?? "";
  const data = type.startsWith("multipart/form-data") ? await firstFile(raw, type) : raw;
  if (!site.workspace.upload(fileId, data)) throw new Refusal(400, "No such upload, or not the announced length");
  send(response, 200, { "content-type": "text/plain" }, `OK - ${data.length}`);
}

/** A person's file, as it is, for a message that is to come. */
async function attach(site: Site, request: IncomingMessage, response: ServerResponse, url: URL): Promise<void> {
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  // as with gestures: a page of another site cannot send this type without asking first
  if (request.headers["content-type"] !== "application/octet-stream") throw new Refusal(415, "application/octet-stream only");
  const [user, name] = [url.searchParams.get("user") ?? "", url.searchParams.get("name") ?? ""];
  if (name.length > 255 || !site.workspace.chat.users.has(user)) throw new Refusal(400, "A file needs a user and a name of at most 255 characters");
  const data = await readBody(request, attachBytes);
  try {
    send(response, 200, { "content-type": "application/json; charset=utf-8" }, JSON.stringify({ ok: true, file: site.workspace.attach(user, name, data) }));
  } catch (error) {
    throw error instanceof SlackError ? new Refusal(400, "The file is empty, or has no name") : error;
  }
}

async function gesture(site: Site, request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
  // A page of another site cannot send this type without asking first.
  if (request.method !== "POST") throw new Refusal(405, "Method not allowed");
  if (!(request.headers["content-type"] ?? "").startsWith("application/json")) throw new Refusal(415, "JSON only");
  const body = parseJson((await readBody(request, bodyBytes)).toString("utf8"));
  const { workspace } = site;
  const run: Readonly<Record<string, () => Promise<Outcome | SentSample>>> = {
    command: () => workspace.command(checked(gestures.command, body)),
    message: () => workspace.message(checked(gestures.message, body)),
    action: () => workspace.click(checked(gestures.action, body)),
    shortcut: () => workspace.shortcut(checked(gestures.shortcut, body)),
    submit: () => workspace.submit(checked(gestures.submit, body)),
    "close-modal": () => {
      const { user, viewId } = checked(gestures.closeModal, body);
      return workspace.closeView(user, viewId);
    },
    home: () => workspace.openHome(checked(gestures.home, body).user),
    invite: () => {
      const { user, channel } = checked(gestures.invite, body);
      return workspace.invite(user, channel);
    },
    page: async () => {
      if (site.pager === undefined) throw new Refusal(404, "Not found");
      return site.pager.samples.send(workspace.chat.url, checked(gestures.page, body));
    },
    read: async () => {
      const { user, channel, threadTs } = checked(gestures.read, body);
      workspace.read(user, channel, threadTs);
      return { ok: true };
    },
  };
  const chosen = Object.hasOwn(run, name) ? run[name] : undefined;
  if (chosen === undefined) throw new Refusal(404, "Not found");
  send(response, 200, { "content-type": "application/json; charset=utf-8" }, JSON.stringify(await chosen()));
}

function watch(site: Site, response: ServerResponse, name: string, url: URL): void {
  if (name === "state") {
    const user = url.searchParams.get("user") ?? "";
    if (!site.workspace.chat.users.has(user)) throw new Refusal(404, "No such user");
    send(response, 200, { "content-type": "application/json; charset=utf-8" }, JSON.stringify(site.workspace.state(user)));
    return;
  }
  if (name !== "events") throw new Refusal(404, "Not found");
  response.writeHead(200, { ...safe, "content-type": "text/event-stream" });
  response.write(`data: ${site.workspace.chat.version}\n\n`);
  site.streams.add(response);
  response.on("close", () => site.streams.delete(response));
}

function file(site: Site, request: IncomingMessage, response: ServerResponse, fileId: string): void {
  // The page's own requests, or the app with its token, as with Slack's private URLs.
  const from = request.headers["sec-fetch-site"];
  if (from !== "same-origin" && from !== "none" && bearer(request) !== site.workspace.botToken) throw new Refusal(403, "Not allowed");
  const found = site.workspace.chat.files.get(fileId);
  if (found?.data === undefined) throw new Refusal(404, "Not found");
  // by what it is, not by what it is called: only pictures are shown in place
  const picture = isPng(found.data);
  const headers = {
    "content-type": picture ? "image/png" : "text/plain; charset=utf-8",
    "content-disposition": `${picture ? "inline" : "attachment"}; filename*=UTF-8''${encodeURIComponent(found.name)}`,
    "content-security-policy": "sandbox; default-src 'none'",
  };
  send(response, 200, headers, found.data);
}

function asset(site: Site, response: ServerResponse, name: string): void {
  const content = name === "icon.svg" ? site.page.icon : site.assets.get(name);
  if (content === undefined) throw new Refusal(404, "Not found");
  send(response, 200, { "content-type": contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream" }, content);
}

// ---- small things ----------------------------------------------------------------------------------------------------------------------------

const safe = {
  "cache-control": "no-store",
  "content-security-policy": policy,
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
};

function send(response: ServerResponse, status: number, headers: Readonly<Record<string, string>>, body: string | Buffer): void {
  response.writeHead(status, { ...safe, ...headers, "content-length": Buffer.byteLength(body) });
  response.end(body);
}

async function readBody(request: IncomingMessage, most: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > most) throw new Refusal(413, "Too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function parseJson(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Told below, as any other text that is no object.
  }
  throw new Refusal(400, "Not a JSON object");
}

function checked<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (!parsed.success) throw new Refusal(400, parsed.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; "));
  return parsed.data;
}

async function firstFile(raw: Buffer, type: string): Promise<Buffer> {
  const form = await new Response(new Uint8Array(raw), { headers: { "content-type": type } }).formData();
  const found = [...form.values()].find((value) => typeof value !== "string");
  if (found === undefined || typeof found === "string") throw new Refusal(400, "No file in the form");
  return Buffer.from(await found.arrayBuffer());
}

function bearer(request: IncomingMessage): string | undefined {
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? "")?.[1];
}
