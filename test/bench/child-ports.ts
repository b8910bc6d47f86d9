import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { Engine } from "../../functions/local/engine.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { scripts } from "../../functions/transports/script.ts";
import type { Config } from "../../functions/triage/config.ts";
import type { Chat, Ports, Transport } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";

/** The engine, and the ports that its workflows need, of a process that measures: files in the folder, a chat of its own, every target behind one transport. */
export function childPorts(folder: string, config: Config, chat: Chat, transport: Transport): { engine: Engine; ports: Ports } {
  const ports = {
    targets: configuredTargets(async () => config),
    transport: () => transport,
    scripts,
    store: new SqliteStore(join(folder, "store.sqlite")),
    chat,
    members: async () => [],
    config: async () => config,
    now: () => new Date(),
    random: (digits: number) => randomBytes(digits / 2).toString("hex"),
    log: () => undefined,
  } as unknown as Ports;
  return { engine: new Engine({ file: join(folder, "engine.sqlite") }), ports };
}
