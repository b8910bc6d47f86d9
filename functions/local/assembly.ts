import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { WebClient } from "@slack/web-api";
import { assembly } from "../assembly.ts";
import { durableHandler } from "../durable/handler.ts";
import { sharedImporter } from "../imports/shared.ts";
import { type Catalogue, loadCatalogue, loadFile, ownSecrets } from "../rules/load.ts";
import { loadPicture } from "../slack/diagram.ts";
import { slackFiles } from "../slack/files.ts";
import { type Pace, unpaced } from "../slack/pace.ts";
import { loadTemplates, type Renderer } from "../slack/render.ts";
import { loadReport } from "../slack/report.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { debugPodTransport } from "../transports/debug-pod.ts";
import { localTransport } from "../transports/local.ts";
import { podCluster } from "../transports/pod-clusters.ts";
import { replayTransport } from "../transports/replay.ts";
import { scripts } from "../transports/script.ts";
import { ssmTransport } from "../transports/ssm.ts";
import { Config } from "../triage/config.ts";
import type { Ports, Target, Transport, Work, WorkEvent, Workloads } from "../triage/ports.ts";
import { targetsOf } from "../triage/targets.ts";
import { work } from "../triage/workflow.ts";
import { Engine, EngineLockedError } from "./engine.ts";
import { capturesOf } from "./nodes.ts";
import { workOn } from "./work.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));

export interface AssemblyOptions {
  /** Holds everything that must survive: the engine's and the store's files, jobs. */
  readonly directory: string;
  /** Forget earlier runs: what local mode kept in the folder goes, and nothing else that lies there. */
  readonly fresh?: boolean;
  /** netcheck.yaml; the demo configuration unless given. */
  readonly config?: string;
  /** The folder of rules, fixes and collection runbooks; the repository's unless given. */
  readonly runbooks?: string;
  /** How programs are run "on" a target of the local transport; on this machine unless given. */
  readonly enter?: (target: Target) => readonly string[];
  /** Where pods and services are looked up; nowhere unless given. */
  readonly workloads?: Workloads;
  /** More transports, by name; they replace ours. */
  readonly transports?: Readonly<Record<string, Transport>>;
  readonly log?: Ports["log"];
}

/** Everything but a chat, in this process. */
export interface Assembly {
  readonly engine: Engine;
  readonly store: SqliteStore;
  readonly catalogue: Catalogue;
  readonly render: Renderer;
  readonly work: Work;
  /** Names of all targets. */
  readonly names: readonly string[];
  /** Id of the channel where pages are answered; undefined: none is taken. */
  readonly pageChannel: string | undefined;
  /** Goes to work with this chat, first on what an earlier process left unfinished. @param pace when a message may go; at once unless given */
  start(client: WebClient, pace?: Pace): void;
  close(): Promise<void>;
}

/** Wires engine, store, catalogue and transports. @throws if a file of the catalogue or the configuration is wrong */
export async function assemble(options: AssemblyOptions): Promise<Assembly> {
  const { directory } = options;
  if (options.fresh === true) await forget(directory);
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const log: Ports["log"] =
    options.log ??
    ((level, message, fields) => (level === "info" ? undefined : process.stderr.write(`${level}: ${message} ${JSON.stringify(fields ?? {})}\n`)));
  const configFile = options.config ?? join(root, "functions/local/netcheck.yaml");
  const config = async () => loadFile(configFile, Config).value;
  const first = await config();
  const catalogue = loadCatalogue(options.runbooks ?? join(root, "runbooks"), { tolerant: true });
  const render = loadTemplates(join(root, "templates/slack"));
  const draw = loadPicture(join(root, "templates/diagram.svg.hbs"));
  const report = loadReport(join(root, "templates/report.md.hbs"));
  const store = new SqliteStore(join(directory, "store.sqlite"));
  const engine = new Engine({ file: join(directory, "engine.sqlite") });
  const engineWork = workOn(engine);
  const incoming = join(directory, "incoming");
  // of a process that was killed; none lives, or the engine would not have started
  rmSync(incoming, { recursive: true, force: true });
  const transports: Record<string, Transport> = {
    local: localTransport({ directory: join(directory, "jobs"), enter: options.enter ?? (() => []) }),
    replay: replayTransport({ directory: join(directory, "replay"), captures: capturesOf(join(root, "runbooks")) }),
    ssm: ssmTransport({ cluster: (name) => first.clusters[name] }),
    "debug-pod": debugPodTransport({ cluster: (name) => podCluster(name, first.clusters[name]?.debugPods, tokenOf) }),
    ...options.transports,
  };
  return {
    engine,
    store,
    catalogue,
    render,
    work: engineWork,
    names: targetsOf(first).map((target) => target.name),
    pageChannel: first.pages?.channel,
    start(client, pace = unpaced) {
      const ports: Ports = {
        work: engineWork,
        ...assembly({ client, pace, store, render, draw, log, config, transports, unavailable: "in local mode", secret: tokenOf }),
        ...(options.workloads === undefined ? {} : { workloads: options.workloads }),
        scripts,
        importer: sharedImporter({ fetch: slackFiles(client), directory: incoming, secrets: ownSecrets(catalogue) }),
        store,
      };
      engine.start(durableHandler<WorkEvent>((event, durable) => work({ durable, ports, catalogue, report }, event)));
    },
    async close() {
      await engine.close();
      store.close();
    },
  };
}

/** What local mode and its runs with --once keep in their folder. */
const KEPT = /^(?:(?:store|engine|workspace)\.sqlite(?:-wal|-shm|-journal)?|jobs|replay|incoming|once-\d+)$/;

/** Takes away what earlier runs left. Whoever names a folder of something else loses nothing of it. @throws {EngineLockedError} if another process works there */
async function forget(directory: string): Promise<void> {
  const file = join(directory, "engine.sqlite");
  if (existsSync(file)) {
    try {
      await new Engine({ file }).close(0);
    } catch (error) {
      // one that cannot be read is to go, too
      if (error instanceof EngineLockedError) throw error;
    }
  }
  if (!existsSync(directory)) return;
  for (const name of readdirSync(directory)) if (KEPT.test(name)) rmSync(join(directory, name), { recursive: true, force: true });
}

/** Of a cluster that is reached with a token: from the environment. @throws if the variable is not set */
async function tokenOf(variable: string): Promise<string> {
  const token = process.env[variable];
  if (token === undefined || token === "") throw new Error(`the environment variable ${variable} (tokenSecret in netcheck.yaml) is not set`);
  return token;
}
