import { mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { type Lab, startLab } from "../lab/lab.ts";
import { labProblem } from "../lab/requirements.ts";
import { scratchFolder } from "./folder.ts";
import type { LifeMemory } from "./life.ts";
import { ALICE, approve, ask, BOB, CAROL } from "./people.ts";
import { Life } from "./process.ts";

/**
 * Many triages in a row in one process of netcheck, the parent being Slack: the replayed nodes of local mode with all rules, and now and then the live lab node
 * from fault to verified fix. What it holds is looked at before the first and after each tenth.
 */
export interface SoakOptions {
  readonly triages: number;
  readonly say: (line: string) => void;
}
export interface SoakReport {
  readonly triages: number;
  /** Of these, with a fix on the live node. */
  readonly fixes: number;
  readonly seconds: number;
  /** Before the first triage, and after each tenth of them. */
  readonly memory: readonly LifeMemory[];
  /** What is on this machine before and after: network namespaces, files in netcheck's folder, files of jobs. */
  readonly before: Leftovers;
  readonly after: Leftovers;
  readonly problems: readonly string[];
}
interface Leftovers {
  readonly namespaces: number;
  readonly jobs: number;
  /** In netcheck's folder besides the folders of jobs: its databases. */
  readonly folder: number;
  /** In the live node's /tmp. */
  readonly onNode: number;
}

/** Without node4, which is the live one. */
const REPLAYED = ["node1", "healthy1", "node2", "node3", "blue-1", "node5"];
/** Every so many triages one goes to the live node. */
const LIVE_EVERY = 100;
/** The least of the last three tenths may be so much more than the least of the second to fourth: SQLite's page caches, and code that is optimised late. Bytes. */
const MOST_GROWTH = { rss: 48 * 1024 * 1024, heap: 8 * 1024 * 1024 };

export async function soak({ triages, say }: SoakOptions): Promise<SoakReport> {
  const problem = labProblem();
  if (problem !== undefined) say(`soak: without the live node: ${problem}`);
  const folder = scratchFolder();
  const data = join(folder, "data");
  mkdirSync(data);
  const lab = problem === undefined ? await startLab(["s4"], { suffix: `soak${process.pid}` }) : undefined;
  const live = lab?.node("s4");
  const config = {
    clusters: {
      demo: { transport: "replay", targets: Object.fromEntries(REPLAYED.map((name) => [name, {}])) },
      ...(live === undefined ? {} : { lab: { transport: "local", targets: { [`live-${live.name}`]: { address: live.name } } } }),
    },
    // of the replayed nodes nothing is fixed: their triages end by themselves, with the cause named
    policy: [{ id: "sre", effect: "allow", clusters: ["lab"], approvers: ["S_SRE"] }],
  };
  writeFileSync(join(folder, "netcheck.yaml"), JSON.stringify(config));
  const members = [ALICE, BOB, CAROL, "U_NETCHECK"];
  const channels = Array.from({ length: Math.ceil(triages / LIVE_EVERY) }, (_, at) => ({
    id: `C_RUN${at}`,
    name: `run-${at}`,
    topic: "",
    kind: "channel" as const,
    members,
  }));
  const workspace = new Workspace({ retryInteractions: false, channels });
  const server = await startServer({ workspace });
  const life = await Life.begin(
    {
      directory: data,
      config: join(folder, "netcheck.yaml"),
      enter: live?.enter ?? [],
      slackUrl: `${server.url}/api/`,
      botToken: workspace.botToken,
      signingSecret: workspace.signingSecret,
      runbooks: "",
    },
    1,
  );
  const problems: string[] = [];
  const started = performance.now();
  try {
    workspace.connect(await life.url());
    const before = await leftovers(data, lab);
    const memory = [await life.memory()];
    let fixes = 0;
    for (let number = 0; number < triages; number++) {
      const channel = `C_RUN${Math.floor(number / LIVE_EVERY)}`;
      if (live !== undefined && number % LIVE_EVERY === LIVE_EVERY / 2) {
        await live.fault();
        fixes++;
        problems.push(...(await fixLive(life, workspace, channel, `live-${live.name}`, () => live.probe())));
      } else {
        const answered = await ask(workspace, channel, REPLAYED[number % REPLAYED.length] ?? "");
        if (!answered.ok) problems.push(`triage ${number}: ${answered.error ?? ""}`);
        await life.rest();
      }
      if (Math.floor(((number + 1) * 10) / triages) === memory.length) {
        memory.push(await life.memory());
        say(`soak: ${number + 1} of ${triages}, ${mb(memory.at(-1)?.rss ?? 0)}`);
      }
    }
    const after = await leftovers(data, lab);
    const told = workspace.chat.channels
      .flatMap(({ id }) => workspace.chat.messages(id))
      .filter(({ text }) => text.startsWith("netcheck ") && !/ the triage failed/.test(text));
    if (told.length !== triages)
      problems.push(
        `${told.length} of ${triages} triages were told: ${workspace.chat.channels
          .flatMap(({ id }) => workspace.chat.messages(id))
          .filter(({ threadTs, text }) => threadTs === undefined && (!text.startsWith("netcheck ") || / the triage failed/.test(text)))
          .map(({ text }) => text)
          .slice(0, 3)
          .join(" | ")}`,
      );
    for (const what of ["rss", "heap"] as const) {
      // what a process holds goes up and down with the garbage: what it cannot do without is what counts
      const least = (from: number, to: number): number => Math.min(...memory.slice(from, to).map((one) => one[what]));
      const grown = least(8, 11) - least(2, 5);
      if (grown > MOST_GROWTH[what]) problems.push(`${what} grew by ${mb(grown)}`);
    }
    const [files, filesAtEnd] = [memory[1]?.files ?? 0, memory.at(-1)?.files ?? 0];
    if (filesAtEnd > files) problems.push(`${filesAtEnd} files are open, there were ${files}`);
    for (const what of ["namespaces", "folder", "onNode"] as const)
      if (after[what] > before[what]) problems.push(`${what}: ${after[what]}, there were ${before[what]}`);
    // a fix leaves its trace, so that it is never run again
    if (after.jobs > before.jobs + fixes) problems.push(`${after.jobs - before.jobs} jobs are left, of ${fixes} fixes`);
    return { triages, fixes, seconds: (performance.now() - started) / 1000, memory, before, after, problems };
  } finally {
    await life.kill();
    await server.close();
    await lab?.down();
    rmSync(folder, { recursive: true, force: true });
  }
}

export const mb = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MB`;

/** From the fault to the verified fix; what went wrong. */
async function fixLive(life: Life, workspace: Workspace, channel: string, target: string, works: () => Promise<boolean>): Promise<string[]> {
  await ask(workspace, channel, target);
  for (let look = 0; look < 400; look++) {
    await life.rest();
    const approved = await approve(workspace, channel, BOB, target, () => life.rest());
    if (approved.ok) break;
    await pause();
  }
  for (let look = 0; look < 400; look++) {
    await life.rest();
    if (workspace.chat.messages(channel).some(({ text, threadTs }) => threadTs === undefined && text.startsWith(`netcheck ${target}: resolved`))) break;
    await pause();
  }
  return (await works()) ? [] : [`the live node was not healed: ${workspace.transcript(channel)}`];
}

/** A person's pause between two looks at the screen. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 50));

async function leftovers(data: string, lab: Lab | undefined): Promise<Leftovers> {
  const count = (folder: string, fitting: (name: string) => boolean = () => true): number => {
    try {
      return readdirSync(folder).filter(fitting).length;
    } catch {
      return 0;
    }
  };
  const onNode = await Promise.all((lab?.nodes ?? []).map((node) => node.run(["sh", "-c", "ls -A /tmp | wc -l"])));
  return {
    namespaces: count("/run/netns", (name) => name.includes(`soak${process.pid}`)),
    jobs: count(join(data, "jobs")) + count(join(data, "replay")),
    folder: count(data, (name) => name !== "jobs" && name !== "replay"),
    onNode: onNode.reduce((sum, { stdout }) => sum + Number(stdout), 0),
  };
}
