import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { Engine } from "../../functions/local/engine.ts";
import { root } from "../../functions/local/main.ts";
import { workOn } from "../../functions/local/work.ts";
import { slackHandler } from "../../functions/slack/app.ts";
import { loadTemplates } from "../../functions/slack/render.ts";

/**
 * The acknowledging handler in a process of its own: `node ack-server.ts <folder> <signing secret>`. What it takes is durable before it answers (the embedded
 * engine's file, one fsync each); nothing of it is worked on. Tells its address, and when asked the names of what it took.
 */
const [folder = "", signingSecret = ""] = process.argv.slice(2);
const engine = new Engine({ file: join(folder, "engine.sqlite") });
const handler = slackHandler({ signingSecret, work: workOn(engine), render: loadTemplates(join(root, "templates/slack")) });

const server = createServer((request, response) => {
  void read(request).then(async (body) => {
    const { statusCode, body: answer } = await handler({ headers: request.headers as Record<string, string>, body, isBase64Encoded: false });
    response.writeHead(statusCode).end(answer);
  });
}).listen(0, "127.0.0.1", () => process.send?.({ port: (server.address() as AddressInfo).port }));
// else a request may meet a connection that is being closed because it was idle for five seconds
server.keepAliveTimeout = 120_000;

async function read(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8") as AsyncIterable<string>) body += chunk;
  return body;
}

process.on("message", (names: readonly string[]) => {
  process.send?.({ missing: names.filter((name) => engine.execution(name) === undefined) });
});
process.on("disconnect", () => process.exit(0));
