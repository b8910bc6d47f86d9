import { randomBytes } from "node:crypto";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { WebClient } from "@slack/web-api";
import { durableHandler } from "../durable/handler.ts";
import { type Catalogue, loadCatalogue, loadFile } from "../rules/load.ts";
import { slackHandler } from "../slack/app.ts";
import { slackChat } from "../slack/chat.ts";
import { loadTemplates } from "../slack/render.ts";
import { loadReport } from "../slack/report.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { localTransport } from "../transports/local.ts";
import { replayTransport } from "../transports/replay.ts";
import { scripts } from "../transports/script.ts";
import { Config } from "../triage/config.ts";
import type { Ports, Target, Transport, Work, WorkEvent } from "../triage/ports.ts";
import { configuredTargets, targetsOf } from "../triage/targets.ts";
import { work } from "../triage/workflow.ts";
import { ClosedCallbackError, Engine } from "./engine.ts";
import { capturesOf, offered } from "./nodes.ts";
import { type LocalServer, startServer } from "./server.ts";
import { Workspace, type WorkspaceOptions } from "./workspace.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));

export interface LocalOptions {
  /** Holds everything that must survive: the engine's and the store's files, jobs. */
  readonly directory: string;
  /** Forget an earlier run. */
  readonly fresh?: boolean;
  /** netcheck.yaml; the demo configuration unless given. */
  readonly config?: string;
  /** 0: any free port. */
  readonly port?: number;
  /** How programs are run "on" a target of the local transport; on this machine unless given. */
  readonly enter?: (target: Target) => readonly string[];
  /** More transports, by name (tests, `npm run lab`). */
  readonly transports?: Readonly<Record<string, Transport>>;
  readonly workspace?: WorkspaceOptions;
  readonly log?: Ports["log"];
}

export interface Local {
  readonly url: string;
  readonly workspace: Workspace;
  readonly engine: Engine;
  readonly store: SqliteStore;
  readonly catalogue: Catalogue;
  close(): Promise<void>;
}

/** Local mode: everything in this process, nothing needed but Node. The same app, workflow, rules and messages as in production. */
export async function startLocal(options: LocalOptions): Promise<Local> {
  const { directory } = options;
  if (options.fresh === true) rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const log =
    options.log ??
    ((level, message, fields) => (level === "info" ? undefined : process.stderr.write(`${level}: ${message} ${JSON.stringify(fields ?? {})}\n`)));
  const configFile = options.config ?? join(root, "functions/local/netcheck.yaml");
  const readConfig = async () => loadFile(configFile, Config).value;
  const names = targetsOf(await readConfig()).map((target) => target.name);
  const catalogue = loadCatalogue(join(root, "runbooks"));
  const render = loadTemplates(join(root, "templates/slack"));
  const store = new SqliteStore(join(directory, "store.sqlite"));
  const engine = new Engine({ file: join(directory, "engine.sqlite") });
  const workspace = new Workspace({ targets: offered.filter(({ name }) => names.includes(name)), ...demoPage(names), ...options.workspace });
  const engineWork = workOn(engine);
  const transports: Record<string, Transport> = {
    local: localTransport({ directory: join(directory, "jobs"), enter: options.enter ?? (() => []) }),
    replay: replayTransport({ directory: join(directory, "replay"), captures: capturesOf(join(root, "runbooks")) }),
    ...options.transports,
  };
  const handler = slackHandler({ signingSecret: workspace.signingSecret, botToken: workspace.botToken, work: engineWork, render });
  const server: LocalServer = await startServer({
    workspace,
    port: options.port ?? 0,
    appHandler: async ({ headers, body }) => {
      const { statusCode, headers: answer, body: text } = await handler({ headers, body, isBase64Encoded: false });
      return { status: statusCode, headers: Object.fromEntries(Object.entries(answer ?? {}).map(([name, value]) => [name, String(value)])), body: text };
    },
  });
  const client = new WebClient(workspace.botToken, { slackApiUrl: `${server.url}/api/`, retryConfig: { retries: 2, minTimeout: 500 } });
  const ports: Ports = {
    work: engineWork,
    targets: configuredTargets(readConfig),
    transport(name) {
      const transport = transports[name];
      if (transport === undefined) throw new Error(`the transport "${name}" is not available in local mode`);
      return transport;
    },
    scripts,
    store,
    chat: slackChat({ client, store, render, log }),
    members: async (group) => (await client.usergroups.users.list({ usergroup: group })).users ?? [],
    config: readConfig,
    now: () => new Date(),
    random: (digits) =>
      randomBytes(Math.ceil(digits / 2))
        .toString("hex")
        .slice(0, digits),
    log,
  };
  const report = loadReport(join(root, "templates/report.md.hbs"));
  engine.start(durableHandler<WorkEvent>((event, durable) => work({ durable, ports, catalogue, report }, event)));
  return {
    url: server.url,
    workspace,
    engine,
    store,
    catalogue,
    async close() {
      await engine.close();
      await server.close();
      store.close();
    },
  };
}

function workOn(engine: Engine): Work {
  return {
    start: async (name, event) => {
      engine.execute(name, event);
    },
    answer: async (callbackId, value) => {
      try {
        engine.succeed(callbackId, JSON.stringify(value));
        return true;
      } catch (error) {
        if (error instanceof ClosedCallbackError) return false;
        throw error;
      }
    },
  };
}

function demoPage(names: readonly string[]): Pick<WorkspaceOptions, "command" | "examples"> {
  return {
    command: { name: "/netcheck", usage: "[target] | help", description: "Examine a node's network" },
    examples: [
      ...offered.filter(({ name }) => names.includes(name)).map(({ name, description }) => ({ command: `/netcheck ${name}`, description })),
      { command: "/netcheck help", description: "what it can do" },
    ],
  };
}
