import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Capture } from "../facts/capture.ts";
import { capturesOf } from "../local/nodes.ts";
import { loadCatalogue, loadFile } from "../rules/load.ts";
import { localTransport } from "../transports/local.ts";
import { replayTransport } from "../transports/replay.ts";
import { scripts } from "../transports/script.ts";
import { Config } from "../triage/config.ts";
import { collectionPlan } from "../triage/plan.ts";
import type { Target, Transport } from "../triage/ports.ts";
import { configuredTargets, targetsOf } from "../triage/targets.ts";
import { CommandError } from "./errors.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** One collection, now, from this process: for `collect`, `triage` and recording fixtures. Throws with a sentence for people. */
export async function collectOnce(name: string, configFile = join(root, "functions/local/netcheck.yaml")): Promise<Capture> {
  const config = loadFile(configFile, Config).value;
  const resolution = await configuredTargets(async () => config).resolve(name);
  if (resolution.kind !== "found") {
    if (resolution.kind === "ambiguous")
      throw new CommandError(
        `several targets are called "${name}" in ${configFile}: ${some(resolution.candidates.map((target) => `${target.cluster}/${target.name}`))}`,
      );
    const near = resolution.suggestions.slice(0, 3);
    const hint = near.length > 0 ? `did you mean ${near.join(", ")}?` : `it has ${some(targetsOf(config).map((target) => target.name))}`;
    throw new CommandError(`there is no target "${name}" in ${configFile}; ${hint}`);
  }
  const directory = mkdtempSync(join(tmpdir(), "netcheck-"));
  try {
    const transports: Record<string, Transport> = {
      local: localTransport({ directory: join(directory, "jobs"), enter: () => [] }),
      replay: replayTransport({ directory: join(directory, "replay"), captures: capturesOf(join(root, "runbooks")) }),
    };
    const { target } = resolution;
    const transport = transports[target.transport];
    if (transport === undefined) throw new CommandError(`the CLI cannot reach ${target.name}: transport "${target.transport}"`);
    return await collectFrom(transport, target, config.runbook);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The first few of many names. */
const some = (names: readonly string[]): string =>
  names.length === 0 ? "none" : `${names.slice(0, 10).join(", ")}${names.length > 10 ? ` and ${names.length - 10} more` : ""}`;

/** One collection through any transport. */
export async function collectFrom(transport: Transport, target: Target, runbook = "netcheck"): Promise<Capture> {
  const plan = collectionPlan(loadCatalogue(join(root, "runbooks"), { tolerant: true }), runbook);
  const nonce = randomBytes(16).toString("hex");
  const startedAt = new Date().toISOString();
  const handle = await transport.start(target, { id: `cli-${nonce.slice(0, 12)}`, script: scripts.collect(plan), parameters: {}, nonce });
  for (;;) {
    const state = await transport.poll(target, handle, 5000);
    if (state.state === "running") continue;
    if (state.state !== "done") throw new CommandError(`could not look at ${target.name}: ${state.reason}`);
    return (
      state.capture ?? scripts.readCapture(state.stdout, { nonce, plan, target: target.name, transport: transport.name, startedAt, truncated: state.truncated })
    );
  }
}
