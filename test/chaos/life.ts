import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { assemble } from "../../functions/local/assembly.ts";
import { slackHandler } from "../../functions/slack/app.ts";
import { slackClient } from "../../functions/slack/client.ts";
import { pace, unpaced } from "../../functions/slack/pace.ts";
import { localTransport } from "../../functions/transports/local.ts";
import { intercept } from "../triage/intercept.ts";

/**
 * One life of netcheck in a process of its own: `node life.ts <file with a LifePlan>`. Local mode's assembly on the files of a folder, behind a door for signed
 * requests; Slack is elsewhere. It dies by SIGKILL at the point that it is told, and notes in `<directory>/points` every point that it reaches.
 */
export interface LifePlan {
  readonly directory: string;
  readonly config: string;
  /** What is put before a program to run it on the node; [] for nodes that are replayed. */
  readonly enter: readonly string[];
  /** Where Slack's Web API is; ends with "/". */
  readonly slackUrl: string;
  readonly botToken: string;
  readonly signingSecret: string;
  /** Dies there, e.g. "before store.transition #2"; "" for never. Points are noted, unless this is undefined. */
  readonly killAt?: string;
  /** Rules, fixes and collection runbooks; the repository's where it is empty. */
  readonly runbooks: string;
  /** Posts as in a real workspace: one message per second and channel. */
  readonly paced?: boolean;
}

/** What the parent may ask, and the answers. */
export type Question = "rest" | "state" | "memory";
export interface LifeState {
  readonly incidents: readonly { readonly id: string; readonly state: string }[];
  readonly decided: readonly string[];
  readonly proposal: string;
  /** Of the first incident's execution. */
  readonly status: string;
}
/** After the garbage was collected. Bytes; `files`: open ones. */
export interface LifeMemory {
  readonly rss: number;
  readonly heap: number;
  readonly files: number;
}

const plan = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8")) as LifePlan;
const seen = new Map<string, number>();

/** Something is about to leave a trace outside of this process, or just has. */
function reached(name: string): void {
  if (plan.killAt === undefined) return;
  const count = (seen.get(name) ?? 0) + 1;
  seen.set(name, count);
  const point = `${name} #${count}`;
  appendFileSync(join(plan.directory, "points"), `${point}\n`);
  if (point === plan.killAt) process.kill(process.pid, "SIGKILL");
}

async function around<T>(name: string, go: () => Promise<T>): Promise<T> {
  reached(`before ${name}`);
  const result = await go();
  reached(`after ${name}`);
  return result;
}

/** Every call of an object's own methods is a point before and one after. */
function watch<T extends object>(name: string, object: T, methods: readonly string[]): void {
  for (const method of methods) {
    const original: unknown = Reflect.get(object, method);
    if (typeof original !== "function") continue;
    Reflect.set(object, method, (...args: unknown[]) => around(`${name}.${method}`, async () => Reflect.apply(original, object, args) as unknown));
  }
}

// calls of Slack, where they leave the process
const realFetch = globalThis.fetch;
globalThis.fetch = async (input, init) => {
  const url = new URL(input instanceof Request ? input.url : input);
  const call = url.href.startsWith(plan.slackUrl) ? url.pathname.slice(new URL(plan.slackUrl).pathname.length) : url.pathname.replace(/^\/([a-z]+).*/, "$1");
  return around(`slack ${call}`, () => realFetch(input, init));
};

const local = localTransport({ directory: join(plan.directory, "jobs"), enter: () => plan.enter });
const assembly = await assemble({
  directory: plan.directory,
  config: plan.config,
  ...(plan.runbooks === "" ? {} : { runbooks: plan.runbooks }),
  enter: () => plan.enter,
  transports: { local: intercept("node", local, (method, _args, go) => around(method, go)) },
});
const { engine, store } = assembly;
const looks = { incidents: store.incidents.bind(store), proposal: store.proposal.bind(store) };
// the rule of the crash points compares no counters, so there is nothing to wait for between two samples
if (plan.runbooks !== "") for (const runbook of assembly.catalogue.runbooks.values()) Object.assign(runbook, { intervalSeconds: 0 });
watch("engine", engine, ["checkpoint"]);
watch("work", assembly.work, ["start", "answer"]);
const STORE = ["open", "incident", "incidents", "update", "propose", "proposal", "transition", "record", "put", "get", "remember", "recall", "lock", "unlock"];
watch("store", store, [...STORE, "reserve", "release"]);

const handler = slackHandler({ signingSecret: plan.signingSecret, botToken: plan.botToken, work: assembly.work, render: assembly.render });
const server = createServer((request, response) => {
  void bodyOf(request).then(async (body) => {
    const answer = await handler({ headers: request.headers as Record<string, string>, body, isBase64Encoded: false });
    response.writeHead(answer.statusCode, Object.fromEntries(Object.entries(answer.headers ?? {}).map(([name, value]) => [name, String(value)])));
    response.end(answer.body);
  });
}).listen(0, "127.0.0.1");

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function state(): Promise<LifeState> {
  const incidents = (await looks.incidents(10)).map(({ id, state: now }) => ({ id, state: now }));
  const id = incidents.at(-1)?.id ?? "";
  const proposal = await looks.proposal(`${id}-fix`);
  return {
    incidents,
    decided: proposal?.decisions.map(({ actor }) => actor.id) ?? [],
    proposal: proposal?.state ?? "",
    status: engine.execution(id)?.status ?? "",
  };
}

async function memory(): Promise<LifeMemory> {
  // twice, with a turn of the loop between: what the first frees may have been all that held something else
  for (let round = 0; round < 2; round++) {
    globalThis.gc?.();
    await new Promise(setImmediate);
  }
  const { rss, heapUsed } = process.memoryUsage();
  return { rss, heap: heapUsed, files: readdirSync("/proc/self/fd").length };
}

process.on("message", ({ number, question }: { number: number; question: Question }) => {
  const answering: Promise<unknown> = question === "rest" ? engine.idle().then(() => null) : question === "state" ? state() : memory();
  void answering.then((answer) => process.send?.({ number, answer }));
});
process.on("disconnect", () => process.exit(0));
server.once("listening", () => {
  assembly.start(slackClient(plan.botToken, plan.slackUrl), plan.paced === true ? pace() : unpaced);
  process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/slack/events` });
});
