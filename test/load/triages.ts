import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { ALICE, ask, BOB } from "../chaos/people.ts";
import { Life } from "../chaos/process.ts";

export interface TriagesOptions {
  readonly count: number;
  readonly channels: number;
  /** The workspace refuses (429) what is more than one message per second and channel, and netcheck paces itself as it does in production. */
  readonly limited: boolean;
}
export interface TriagesReport {
  readonly triages: number;
  /** Triages whose last message is in its channel. */
  readonly told: number;
  /** Commands that were acknowledged after more than the three seconds that Slack waits: who asked was told so, and the triage went on. */
  readonly late: number;
  readonly seconds: number;
  /** Seconds from the command to the last message. */
  readonly p50: number;
  readonly max: number;
  /** Bytes that the process holds at the end. */
  readonly rss: number;
  /** Messages that were posted, posts that Slack refused, and the shortest time in milliseconds between two posts that it took in one channel. */
  readonly posts: number;
  readonly refused: number;
  readonly shortestMs: number;
  /** Edits that Slack refused, all of which came through later. */
  readonly editsRefused: number;
  readonly problems: readonly string[];
}

/** The replayed nodes of local mode, without a comparison with peers. */
const NODES = ["node1", "node2", "node3", "node4", "node5", "healthy1"];

/** So many triages asked for at once, in one process of netcheck on the embedded engine, over signed HTTP; Slack is the parent. */
export async function loadTriages(folder: string, { count, channels, limited }: TriagesOptions): Promise<TriagesReport> {
  const data = join(folder, limited ? "limited" : "triages");
  mkdirSync(data);
  const config = join(data, "netcheck.yaml");
  // nobody may fix anything, so that each triage ends by itself
  writeFileSync(
    config,
    JSON.stringify({ clusters: { demo: { transport: "replay", targets: Object.fromEntries(NODES.map((name) => [name, {}])) } }, policy: [] }),
  );
  const members = [ALICE, BOB, "U_NETCHECK"];
  const workspace = new Workspace({
    retryInteractions: false,
    rateLimits: limited,
    channels: Array.from({ length: channels }, (_, at) => ({ id: `C_RUN${at}`, name: `run-${at}`, topic: "", kind: "channel" as const, members })),
  });
  const counts = { posts: 0, refused: 0, editsRefused: 0 };
  const taken = new Map<string, number>();
  let shortestMs = Number.POSITIVE_INFINITY;
  const api = workspace.api.bind(workspace);
  workspace.api = (method, args, token) => {
    const answer = api(method, args, token);
    if (method === "chat.update" && answer.status === 429) counts.editsRefused++;
    if (method !== "chat.postMessage" && method !== "chat.postEphemeral") return answer;
    if (answer.status === 429) {
      counts.refused++;
      return answer;
    }
    counts.posts++;
    const channel = String(args["channel"]);
    const now = performance.now();
    shortestMs = Math.min(shortestMs, now - (taken.get(channel) ?? Number.NEGATIVE_INFINITY));
    taken.set(channel, now);
    return answer;
  };
  const server = await startServer({ workspace });
  const { botToken, signingSecret } = workspace;
  const plan = { directory: data, config, enter: [], slackUrl: `${server.url}/api/`, botToken, signingSecret, runbooks: "", paced: limited };
  const life = await Life.begin(plan, 1);
  try {
    workspace.connect(await life.url());
    const problems: string[] = [];
    const ended = new Map<string, number>();
    const stop = workspace.chat.onChange(() => {
      for (let at = 0; at < channels; at++)
        for (const { ts, threadTs, text } of workspace.chat.messages(`C_RUN${at}`))
          if (threadTs === undefined && !ended.has(`${at}/${ts}`) && FINAL.test(text)) ended.set(`${at}/${ts}`, performance.now() - started);
    });
    const started = performance.now();
    const asked = await Promise.all(
      Array.from({ length: count }, (_, number) => ask(workspace, `C_RUN${number % channels}`, NODES[number % NODES.length] ?? "")),
    );
    const late = asked.filter((one) => !one.ok && one.error?.includes("operation_timeout") === true).length;
    for (const one of asked) if (!one.ok && one.error?.includes("operation_timeout") !== true) problems.push(one.error ?? "refused");
    // every triage is started by now; each of its messages may have to wait for those of all others
    await life.rest();
    const patience = performance.now() + 600_000;
    while (ended.size < count && performance.now() < patience) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      await life.rest();
    }
    // the first message of a thread tells the end before the last one in it is posted
    await life.rest();
    stop();
    const seconds = (performance.now() - started) / 1000;
    for (let at = 0; at < channels; at++) problems.push(...disorder(workspace, `C_RUN${at}`));
    const times = [...ended.values()].sort((a, b) => a - b);
    const { rss } = await life.memory();
    if (ended.size !== count) problems.push(`${count - ended.size} triages have no last message`);
    return {
      triages: count,
      told: ended.size,
      late,
      seconds,
      p50: (times[Math.floor(times.length / 2)] ?? 0) / 1000,
      max: (times.at(-1) ?? 0) / 1000,
      rss,
      ...counts,
      shortestMs,
      problems,
    };
  } finally {
    await life.kill();
    await server.close();
  }
}

/** The first message of a thread once its triage has ended without anybody to approve. */
const FINAL = /^netcheck \S+: (?:likely cause found|no cause found|symptoms|inconclusive)/;

/** Messages of a thread that came in another order than a triage tells them: what it found, then what becomes of a fix. */
function disorder(workspace: Workspace, channel: string): string[] {
  const problems: string[] = [];
  const messages = workspace.chat.messages(channel).filter(({ onlyFor }) => onlyFor === undefined);
  for (const root of messages.filter(({ threadTs }) => threadTs === undefined)) {
    const keys = messages.filter(({ ts, threadTs }) => ts === root.ts || threadTs === root.ts).map(({ metadata }) => keyOf(metadata)?.replace(/^[^/]*\//, ""));
    const told = keys.filter((key) => key !== undefined).join(" ");
    if (told !== "root diagnosis forbidden" && told !== "root diagnosis") problems.push(`a thread of ${channel} has: ${told}`);
  }
  return problems;
}

const keyOf = (metadata: unknown): string | undefined => (metadata as { event_payload?: { key?: string } } | undefined)?.event_payload?.key;
