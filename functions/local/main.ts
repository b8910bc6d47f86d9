import { join } from "node:path";
import { pagerHandler } from "../pager/app.ts";
import { slackHandler } from "../slack/app.ts";
import { slackClient } from "../slack/client.ts";
import { MESSAGE_TRIAGE } from "../slack/listeners/shortcut.ts";
import { type Assembly, type AssemblyOptions, assemble } from "./assembly.ts";
import { offered } from "./nodes.ts";
import { offerSamples, SamplePages } from "./sample-pages.ts";
import { type LocalServer, startServer } from "./server.ts";
import { Workspace, type WorkspaceOptions } from "./workspace.ts";

export { root } from "./assembly.ts";

export interface LocalOptions extends AssemblyOptions {
  /** 0: any free port. */
  readonly port?: number;
  readonly workspace?: WorkspaceOptions;
}

export interface Local extends Assembly {
  readonly url: string;
  readonly workspace: Workspace;
}

/** Local mode: everything in this process, nothing needed but Node. The same app, workflow, rules and messages as in production. */
export async function startLocal(options: LocalOptions): Promise<Local> {
  const assembly = await assemble(options);
  const { names, work, render, pageChannel } = assembly;
  const workspace = new Workspace({
    file: join(options.directory, "workspace.sqlite"),
    ...demoPage(names),
    shortcuts: [{ name: "Triage this node", callbackId: MESSAGE_TRIAGE }],
    ...(pageChannel === undefined ? {} : { samples: offerSamples(pageChannel, names) }),
    ...options.workspace,
  });
  const now = () => Date.now();
  const samples = new SamplePages(workspace.signingSecret, now);
  const handler = slackHandler({ signingSecret: workspace.signingSecret, botToken: workspace.botToken, work, render });
  const server: LocalServer = await startServer({
    workspace,
    port: options.port ?? 0,
    ...(pageChannel === undefined
      ? {}
      : { pager: { samples, handler: pagerHandler({ secrets: async () => samples.secrets, work, now, visit: samples.visit }) } }),
    appHandler: async ({ headers, body }) => {
      const { statusCode, headers: answer, body: text } = await handler({ headers, body, isBase64Encoded: false });
      return { status: statusCode, headers: Object.fromEntries(Object.entries(answer ?? {}).map(([name, value]) => [name, String(value)])), body: text };
    },
  });
  assembly.start(slackClient(workspace.botToken, `${server.url}/api/`));
  return {
    ...assembly,
    url: server.url,
    workspace,
    async close() {
      await assembly.engine.close();
      await server.close();
      assembly.store.close();
    },
  };
}

function demoPage(names: readonly string[]): Pick<WorkspaceOptions, "command" | "targets" | "examples"> {
  const offers = offered.filter(({ needs }) => needs === undefined || names.includes(needs));
  return {
    command: { name: "/netcheck", usage: "[target] | nodes … | status | help", description: "Examine a node's network" },
    targets: offers.map(({ name, description }) => ({ name, description })),
    examples: offers.filter(({ example }) => example).map(({ name, description }) => ({ command: `/netcheck ${name}`, description })),
  };
}
