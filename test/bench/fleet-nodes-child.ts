import { join } from "node:path";
import { durableHandler } from "../../functions/durable/handler.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { replayTransport } from "../../functions/transports/replay.ts";
import { Config } from "../../functions/triage/config.ts";
import { loadFleet } from "../../functions/triage/fleet-report.ts";
import type { Chat, Message, WorkEvent } from "../../functions/triage/ports.ts";
import { work } from "../../functions/triage/workflow.ts";
import { childPorts } from "./child-ports.ts";

/**
 * `/netcheck nodes pool=green` in a process of its own: <root> <folder for its files> <how many nodes>. Every tenth node replays a recorded fault, the others
 * four recorded healthy ones. Prints milliseconds by the clock and of the processor, peak memory, operations, calls to Slack, the headline.
 */
const [root = "", folder = "", count = "1"] = process.argv.slice(2);
const nodes = Number(count);
const names = Array.from({ length: nodes }, (_, at) => `node${at + 1}`);
const config = Config.parse({ clusters: { demo: { transport: "replay", targets: Object.fromEntries(names.map((name) => [name, { pool: "green" }])) } } });
const faults = ["kube-forward-before-cilium", "bridge-netfilter-off", "stale-ebtables-nat"];
const replay = replayTransport({
  directory: join(folder, "replay"),
  captures: ({ name }) => {
    const at = Number(name.slice(4)) - 1;
    const fault = faults[(at / 10) % faults.length] ?? faults[0];
    return { before: join(root, at % 10 === 0 ? `runbooks/rules/${fault}/fixtures/lab-fault` : `functions/local/pool/blue-${[1, 2, 4][at % 3]}.tgz`) };
  },
});
const render = loadTemplates(join(root, "templates/slack"));
const calls: Record<string, number> = {};
/** Draws every message as it is drawn for Slack, and counts. */
const call = (kind: string, message?: Message): void => {
  calls[kind] = (calls[kind] ?? 0) + 1;
  if (message !== undefined) render(message);
};
const chat = {
  post: async (key, place, message) => {
    call("post", message);
    return { channel: place.channel, ts: key };
  },
  update: async (_ref, message) => call("update", message),
  whisper: async (_place, _actor, message) => call("whisper", message),
  modal: async () => call("modal"),
  upload: async () => call("upload"),
} as Partial<Chat> as Chat;
const { engine, ports } = childPorts(folder, config, chat, replay);
const catalogue = loadCatalogue(join(root, "runbooks"), { tolerant: true });
engine.start(durableHandler<WorkEvent>((event, durable) => work({ durable, ports, catalogue, report: () => "" }, event)));
const started = performance.now();
engine.execute("inc-1", {
  kind: "fleet",
  request: {
    incident: "inc-1",
    requester: { id: "U_ALICE", team: "T" },
    place: { channel: "C" },
    ask: { kind: "examine", terms: [{ by: "label", name: "pool", value: "green" }], confirmed: nodes },
  },
});
await engine.finished("inc-1");
const ms = performance.now() - started;
const ended = engine.execution("inc-1");
const result = await loadFleet(ports, "inc-1");
process.stdout.write(
  JSON.stringify({
    ms,
    cpuMs: process.cpuUsage().user / 1000,
    peakMb: process.resourceUsage().maxRSS / 1000,
    operations: ended?.operations,
    calls,
    causes: result.nodes.filter(({ verdict }) => verdict === "cause-found").length,
    lost: result.nodes.filter(({ verdict }) => verdict === "not-collected").length,
    nodes: result.nodes.length,
  }),
);
process.exit(0);
