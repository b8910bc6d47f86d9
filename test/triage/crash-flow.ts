import { appendFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { durableHandler } from "../../functions/durable/handler.ts";
import { Engine, type Execution } from "../../functions/local/engine.ts";
import { workOn } from "../../functions/local/work.ts";
import { slackChat } from "../../functions/slack/chat.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { scripts } from "../../functions/transports/script.ts";
import type { Config } from "../../functions/triage/config.ts";
import type { Ports, Transport, WorkEvent } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { work } from "../../functions/triage/workflow.ts";
import { pass, VirtualClock } from "../local/virtual-clock.ts";
import { FileNode } from "./file-node.ts";
import { FileSlack } from "./file-slack.ts";
import { ALICE, BOB, CHANNEL, configOf, importerOf, report } from "./harness.ts";
import { intercept } from "./intercept.ts";
import { catalogueOf, root } from "./runbooks.ts";

const catalogue = catalogueOf();
/** A later look at the node is an execution of its own, after the story that is cut off here. */
const USUAL: Config = { ...configOf(), followUps: { after: [], spread: 0 } };
const render = loadTemplates(join(root, "templates/slack"));

/** The things outside that a life leaves behind: what is on the node, in the channel and in the store. */
export const remains = (directory: string, reached: (point: string) => void = () => undefined) => ({
  node: new FileNode(join(directory, "node"), reached),
  slack: new FileSlack(join(directory, "slack.jsonl"), reached),
});

/**
 * One life of a netcheck process on a folder: Alice asks, Bob approves as soon as there is a button (and again in each life: the same click delivered
 * again), the fix runs and is verified; if it did not help and can be undone, Bob approves that, too. Goes on where an earlier life was cut off.
 * @param reached called with a name before and after everything that leaves a trace outside of the process: calls of ports, and checkpoints
 * @param other another configuration than the usual one, and its ways to the node
 */
export async function live(
  directory: string,
  reached: (point: string) => void,
  other: { readonly config: Config; readonly transport: (name: string, node: FileNode) => Transport } = { config: USUAL, transport: (_, node) => node },
): Promise<{ triage: Execution | undefined; click: Execution | undefined }> {
  mkdirSync(directory, { recursive: true });
  appendFileSync(join(directory, "lives"), "x");
  const life = readFileSync(join(directory, "lives"), "utf8").length;
  // each life begins ten minutes after the one before it
  const clock = new VirtualClock(Date.parse("2026-01-01T00:00:00Z") + life * 600_000);
  const watched = <T extends object>(name: string, port: T): T =>
    intercept(name, port, async (method, _, go) => {
      reached(`before ${method}`);
      const result = await go();
      reached(`after ${method}`);
      return result;
    });

  const engine = new Engine({ file: join(directory, "engine.sqlite"), clock });
  const checkpoint = engine.checkpoint.bind(engine);
  engine.checkpoint = async (request) => {
    reached("before checkpoint");
    const answer = await checkpoint(request);
    reached("after checkpoint");
    return answer;
  };
  const realStore = new SqliteStore(join(directory, "store.sqlite"));
  const store = watched("store", realStore);
  const { node, slack } = remains(directory, reached);
  let dice = life * 1000;
  const ports: Ports = {
    work: watched("work", workOn(engine)),
    targets: configuredTargets(async () => other.config),
    transport: (name) => watched("transport", other.transport(name, node)),
    scripts,
    importer: importerOf({}),
    store,
    chat: watched("chat", slackChat({ client: slack.client, store, render, draw: async () => Buffer.from("a picture"), log: () => undefined })),
    members: async () => [BOB.id],
    config: async () => other.config,
    now: () => new Date(clock.now()),
    random: (digits) => String(++dice).padStart(digits, "0"),
    log: () => undefined,
  };
  engine.start(durableHandler<WorkEvent>((event, durable) => work({ durable, ports, catalogue, report }, event)));
  reached("before the request");
  engine.execute("inc-1", { kind: "triage", request: { incident: "inc-1", target: "node2", requester: ALICE, place: { channel: CHANNEL } } });
  reached("after the request");
  await pass(engine, clock, 60);
  if (slack.keys.includes("inc-1-fix/proposal")) {
    const place = { channel: CHANNEL, thread: "1.000" };
    const hash = (await realStore.proposal("inc-1-fix"))?.hash ?? "";
    reached("before the click");
    engine.execute("click-1", {
      kind: "click",
      click: { id: "click-1", action: "confirm", incident: "inc-1", proposal: "inc-1-fix", actor: BOB, place, triggerId: undefined, hash },
    });
    reached("after the click");
    await pass(engine, clock, 300);
  }
  if (slack.keys.includes("inc-1-rollback/proposal")) {
    const hash = (await realStore.proposal("inc-1-rollback"))?.hash ?? "";
    const place = { channel: CHANNEL, thread: "1.000" };
    engine.execute("click-2", {
      kind: "click",
      click: { id: "click-2", action: "confirm", incident: "inc-1", proposal: "inc-1-rollback", actor: BOB, place, triggerId: undefined, hash },
    });
    reached("after the second click");
    await pass(engine, clock, 300);
  }
  const ended = { triage: engine.execution("inc-1"), click: engine.execution("click-1") };
  await engine.close(0);
  realStore.close();
  return ended;
}
