import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** An HTTP server on 127.0.0.1 and a free port. `close` ends open connections too. */
export async function listen(
  handle: (request: IncomingMessage, body: Buffer, response: ServerResponse) => void | Promise<void>,
): Promise<{ url: string; close: () => Promise<void> }> {
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      Promise.resolve()
        .then(() => handle(request, Buffer.concat(chunks), response))
        .catch((error: unknown) => {
          // an emulator's own bug must be loud: 501 is retried by no SDK
          response.writeHead(501).end(`emulator: ${error instanceof Error ? error.stack : String(error)}`);
        });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** True when the request is signed for that AWS service: a Signature Version 4 header with all its parts. The signature itself is not checked. */
export function isSigned(request: IncomingMessage, service: string): boolean {
  const header = request.headers.authorization ?? "";
  return new RegExp(`^AWS4-HMAC-SHA256 Credential=[^/]+/\\d{8}/[a-z0-9-]+/${service}/aws4_request, SignedHeaders=[a-z0-9;-]+, Signature=[0-9a-f]{64}$`).test(
    header,
  );
}

/** The id of the access key that signed a request; "" if none did. */
export const accessKeyOf = (request: IncomingMessage): string => /Credential=([^/]+)\//.exec(request.headers.authorization ?? "")?.[1] ?? "";

/** What a service whose clock is ahead of ours by `offset` ms says of a request that is more than five minutes off; undefined if it is not. */
export function skewOf(request: IncomingMessage, offset: number): string | undefined {
  const stamp = String(request.headers["x-amz-date"]);
  const at = Date.parse(stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"));
  const now = Date.now() + offset;
  if (Math.abs(now - at) <= 300_000) return undefined;
  const time = (ms: number) => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, "");
  return now > at
    ? `Signature expired: ${stamp} is now earlier than ${time(now - 300_000)} (${time(now)} - 5 min.)`
    : `Signature not yet current: ${stamp} is still later than ${time(now + 300_000)} (${time(now)} + 5 min.)`;
}
