import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { type LabNode, startLab } from "../lab/lab.ts";
import { labProblem } from "../lab/requirements.ts";
import { RULES } from "../lab/rules.ts";
import { holderOf } from "../triage/node-place.ts";
import { scratchFolder } from "./folder.ts";
import type { LifePlan } from "./life.ts";
import { ALICE, approve, ask, BOB, CAROL, withButton } from "./people.ts";
import { Died, Life } from "./process.ts";

/**
 * Crash points. One process runs the whole flow against a live lab node (incident S4) and is killed by SIGKILL at one point; a new process goes on with the same
 * files. Slack is simulated in the parent, so it survives, as Slack does. A run without a kill tells which points there are.
 */
export interface CrashOptions {
  /** At most so many points, spread over the flow; all of them where it is undefined. */
  readonly points: number | undefined;
  /** This point alone, by its name. */
  readonly at: string | undefined;
  readonly onFailure: (point: string, problem: string) => void;
  readonly say: (line: string) => void;
}
export interface CrashReport {
  /** Points that the flow has. */
  readonly points: number;
  /** Points at which a process was killed. */
  readonly killed: number;
  /** Points that this run did not come past: the order of what happens at the same time is not the same each time. */
  readonly missed: readonly string[];
  /** How often the fix ran once; how often it did not run, and the points of these. */
  readonly once: number;
  readonly never: readonly string[];
  readonly failures: number;
  /** Median and largest number of milliseconds from the first life to the end. */
  readonly medianMs: number;
  readonly slowestMs: number;
}

const RULE = RULES.s4;
const FIX = "enable-bridge-netfilter";
const COUNTER = "/run/chaos-runs";
const MARKERS = "/var/lib/netcheck/runs";
/** Two cores, and much of a run is waiting for the node. */
const WORKERS = 4;
/** Milliseconds in which a run must have come to its end; most take two to four seconds. */
const PATIENCE_MS = 60_000;
const MOST_LIVES = 4;

/** @returns undefined where the lab cannot run, with the reason told */
export async function crash(options: CrashOptions): Promise<CrashReport | undefined> {
  const problem = labProblem();
  if (problem !== undefined) {
    options.say(`crash points: not run: ${problem}`);
    return undefined;
  }
  const folder = scratchFolder();
  const stages = await Promise.all(
    Array.from({ length: options.at === undefined ? WORKERS : 1 }, (_, index) => Stage.open(join(folder, `worker-${index}`), index)),
  );
  try {
    const [first] = stages;
    if (first === undefined) throw new Error("chaos: no worker");
    const dry = await first.play("");
    if (dry.problems.length > 0 || dry.runs !== 1)
      throw new Error(`chaos: the flow fails without a kill: ${dry.problems.join("; ")} (${dry.runs} runs)\n${dry.transcript}`);
    const all = readFileSync(join(dry.directory, "points"), "utf8").trim().split("\n");
    rmSync(dry.directory, { recursive: true });
    const step = options.points === undefined ? 1 : Math.max(1, all.length / options.points);
    const chosen = options.at === undefined ? all.filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step)) : [options.at];
    options.say(`crash points: ${all.length} in the flow, ${chosen.length} to try`);
    const next = chosen[Symbol.iterator]();
    const report = { killed: 0, once: 0, failures: 0, missed: [] as string[], never: [] as string[] };
    const took: number[] = [];
    const work = async (stage: Stage): Promise<void> => {
      for (const point of next) {
        const played = await stage.play(point);
        took.push(played.ms);
        if (played.killed) report.killed++;
        else report.missed.push(point);
        if (played.runs === 1) report.once++;
        else if (played.runs === 0) report.never.push(point);
        for (const one of played.problems) options.onFailure(point, `${one}\n${played.transcript}`);
        report.failures += played.problems.length === 0 ? 0 : 1;
        if (played.problems.length === 0) rmSync(played.directory, { recursive: true });
        if (took.length % 50 === 0) options.say(`crash points: ${took.length} of ${chosen.length}, ${report.failures} failures`);
      }
    };
    await Promise.all(stages.map(work));
    took.sort((a, b) => a - b);
    return { points: all.length, ...report, medianMs: took[Math.floor(took.length / 2)] ?? 0, slowestMs: took.at(-1) ?? 0 };
  } finally {
    for (const stage of stages) await stage.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Played {
  readonly directory: string;
  readonly killed: boolean;
  /** How often the fix ran, as the node counted. */
  readonly runs: number;
  readonly problems: readonly string[];
  readonly transcript: string;
  readonly ms: number;
}

/** A node that is made once and reset, and a Slack; each run has a folder and a channel of its own. */
class Stage {
  readonly #folder: string;
  readonly #node: LabNode;
  readonly #down: () => Promise<void>;
  readonly #workspace: Workspace;
  readonly #server: { readonly url: string; close(): Promise<void> };
  readonly #config: string;
  readonly #runbooks: string;
  #played = 0;

  private constructor(
    folder: string,
    lab: { readonly node: LabNode; down(): Promise<void> },
    workspace: Workspace,
    server: { readonly url: string; close(): Promise<void> },
  ) {
    this.#folder = folder;
    this.#node = lab.node;
    this.#down = () => lab.down();
    this.#workspace = workspace;
    this.#server = server;
    this.#config = join(folder, "netcheck.yaml");
    const config = {
      clusters: { lab: { transport: "local", targets: { [lab.node.name]: {} } } },
      policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE"], approvalsNeeded: 2, expires: "10m" }],
    };
    writeFileSync(this.#config, JSON.stringify(config));
    this.#runbooks = join(folder, "runbooks");
    trimmed(this.#runbooks);
  }

  static async open(folder: string, index: number): Promise<Stage> {
    mkdirSync(folder, { recursive: true });
    const lab = await startLab(["s4"], { suffix: `chaos${process.pid}x${index}` });
    const node = lab.node("s4");
    // every program that the fix runs is counted by the node itself: a stand-in before the real one, in this node's file system alone
    const stand = `#!/bin/sh\nif [ "$1" = -w ]; then echo "$*" >>${COUNTER}; fi\nexec /usr/sbin/sysctl "$@"\n`;
    await succeed(node, [
      "sh",
      "-ec",
      `mount -t tmpfs -o size=64k tmpfs /usr/local/sbin && cat >/usr/local/sbin/sysctl <<'S'\n${stand}S\nchmod 755 /usr/local/sbin/sysctl`,
    ]);
    const members = [ALICE, BOB, CAROL, "U_NETCHECK"];
    const channels = Array.from({ length: 1000 }, (_, number) => ({
      id: `C_RUN${number}`,
      name: `run-${number}`,
      topic: "",
      kind: "channel" as const,
      members,
    }));
    const workspace = new Workspace({ retryInteractions: false, channels });
    const server = await startServer({ workspace });
    return new Stage(folder, { node, down: () => lab.down() }, workspace, server);
  }

  async close(): Promise<void> {
    await this.#server.close();
    await this.#down();
  }

  /** One run of the flow, killed at a point ("" for none) and begun again until it has come to its end. */
  async play(killAt: string): Promise<Played> {
    const number = this.#played++;
    const channel = `C_RUN${number}`;
    const directory = join(this.#folder, `run-${number}`);
    mkdirSync(directory);
    await succeed(this.#node, ["sh", "-ec", `sysctl -qw net.bridge.bridge-nf-call-iptables=0; rm -rf ${MARKERS} ${COUNTER}`]);
    const plan: LifePlan = {
      directory,
      config: this.#config,
      enter: this.#node.enter,
      slackUrl: `${this.#server.url}/api/`,
      botToken: this.#workspace.botToken,
      signingSecret: this.#workspace.signingSecret,
      killAt,
      runbooks: this.#runbooks,
    };
    const started = performance.now();
    let killed = false;
    let stuck = "";
    for (let count = 1; ; count++) {
      // a kill happens once: a point that is reached again in the second life is another one
      const life = await Life.begin(killed ? { ...plan, killAt: "" } : plan, count);
      try {
        this.#workspace.connect(await life.url());
        stuck = await this.#live(life, channel, started + PATIENCE_MS);
        if (life.dead && !killed) throw new Died("killed");
        await life.kill();
        break;
      } catch (error) {
        await life.kill();
        if (!(error instanceof Died) || count === MOST_LIVES) {
          stuck = `life ${count}: ${(error as Error).message}`;
          break;
        }
        killed = true;
      }
    }
    await this.#workspace.idle();
    const ms = performance.now() - started;
    const runs = await this.#runs();
    const problems = [...(stuck === "" ? [] : [stuck]), ...(await this.#check(directory, channel, runs))];
    const threads = this.#workspace.chat.messages(channel).filter(({ threadTs }) => threadTs === undefined);
    const transcript = [this.#workspace.transcript(channel), ...threads.map(({ ts }) => this.#workspace.transcript(channel, ts))].join("\n---\n");
    return { directory, killed, runs, problems, transcript, ms };
  }

  /** People do what people do until the triage has ended. Returns why it did not, or "". @throws Died */
  async #live(life: Life, channel: string, deadline: number): Promise<string> {
    const tried = new Map<string, number>();
    const again = (who: string): boolean => {
      const count = (tried.get(who) ?? 0) + 1;
      tried.set(who, count);
      return count <= 3;
    };
    while (performance.now() < deadline) {
      await life.rest();
      const state = await life.state();
      if (state.incidents.length === 0) {
        // she was told that the command failed, or nothing at all: she types it again
        if (!again(ALICE)) return "the command is not taken";
        await ask(this.#workspace, channel, this.#node.name);
        continue;
      }
      if (state.status !== "RUNNING") return "";
      const open = withButton(this.#workspace, channel, "approve") !== undefined;
      const missing = [BOB, CAROL].find((who) => !state.decided.includes(who));
      if (open && state.proposal === "pending" && missing !== undefined) {
        if (!again(missing)) return `the approval of ${missing} does not count`;
        await approve(this.#workspace, channel, missing, this.#node.name, () => life.rest());
        continue;
      }
      // it waits for a time to come
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return "it did not come to its end in time";
  }

  /** How often the fix ran here: once per time that its program changed the node. */
  async #runs(): Promise<number> {
    const { stdout } = await this.#node.run(["sh", "-c", `cat ${COUNTER} 2>/dev/null`]);
    return stdout.split("\n").filter((line) => line !== "").length;
  }

  /** What must hold wherever the process was killed; what does not. */
  async #check(directory: string, channel: string, runs: number): Promise<string[]> {
    const problems: string[] = [];
    const hold = (condition: boolean, problem: string): void => {
      if (!condition) problems.push(problem);
    };
    const { stdout: marked } = await this.#node.run(["sh", "-c", `ls ${MARKERS} 2>/dev/null`]);
    const { stdout: value } = await this.#node.run(["cat", "/proc/sys/net/bridge/bridge-nf-call-iptables"]);
    hold(runs <= 1, `the fix ran ${runs} times`);
    hold((value.trim() === "1") === (runs === 1), `the node counted ${runs} runs, but the switch is ${value.trim()}`);
    if (!existsSync(join(directory, "store.sqlite"))) return [...problems, "there is no store"];
    const store = new SqliteStore(join(directory, "store.sqlite"));
    try {
      const incidents = await store.incidents(10);
      hold(incidents.length === 1, `${incidents.length} incidents`);
      const [incident] = incidents;
      if (incident === undefined) return problems;
      const proposal = await store.proposal(`${incident.id}-fix`);
      const types = (await store.audit(incident.id)).map(({ type }) => type);
      const once = (type: string): void => hold(types.filter((one) => one === type).length === 1, `not exactly one audit event "${type}": ${types.join(", ")}`);
      for (const type of ["incident-opened", "diagnosed", "fix-proposed", "fix-finished", "verified"]) once(type);
      hold(types.filter((type) => type === "approved").length === 2, `not two approvals on record: ${types.join(", ")}`);
      const jobs = marked.split("\n").filter((line) => line !== "");
      if (runs === 1) {
        once("fix-started");
        hold(jobs.join() === `${incident.id}-fix`, `the run markers on the node are ${jobs.join()}`);
        hold(types.indexOf("fix-started") > types.lastIndexOf("approved"), "it was started before it was approved");
      }
      problems.push(...(await verifyStore(store)));
      const key = `${incident.cluster}/${incident.target}`;
      hold((await holderOf(store, key)) === undefined, "the node is still taken");

      // the truth: what the node says, what is in the store, and what people read
      const allowed = runs === 1 ? ["succeeded resolved"] : ["unknown unresolved", "refused unresolved", "failed unresolved"];
      const said = `${proposal?.state} ${incident.state}`;
      hold(allowed.includes(said), `the node counted ${runs} runs, but the store says "${said}"`);
      const messages = this.#workspace.chat.messages(channel).filter(({ onlyFor }) => onlyFor === undefined);
      const texts = messages.map(({ text, blocks }) => `${text} ${JSON.stringify(blocks)}`);
      const root = messages.filter(({ threadTs }) => threadTs === undefined);
      hold(root.length === 1, `${root.length} threads were begun`);
      hold((root[0]?.text ?? "").includes(runs === 1 ? "resolved and verified" : "not resolved"), `the first message says "${root[0]?.text}"`);
      const outcomes = texts.filter((text) => text.includes("Verification: "));
      hold(outcomes.length === 1, `${outcomes.length} messages tell the outcome`);
      hold((outcomes[0] ?? "").includes("the cause is gone") === (runs === 1), `the node counted ${runs} runs, but people read: ${outcomes[0]?.slice(0, 500)}`);
      hold(texts.some((text) => text.includes("The fix ran.")) === (runs === 1), "the closed proposal does not tell the truth");
      const keys = messages.map(
        ({ metadata, files }) => (metadata as { event_payload?: { key?: string } } | undefined)?.event_payload?.key ?? JSON.stringify(files),
      );
      hold(new Set(keys).size === keys.length, `something was posted twice: ${keys.join(", ")}`);
      hold(withButton(this.#workspace, channel, "approve") === undefined, "a button to approve is left");
    } finally {
      store.close();
    }
    return problems;
  }
}

/** A catalogue of the one rule and its fix: a process that lives for seconds need not compile all the others, nor a node list what only they ask for. */
function trimmed(folder: string): void {
  const from = fileURLToPath(new URL("../../runbooks/", import.meta.url));
  for (const part of [`rules/${RULE}`, `fixes/${FIX}`])
    cpSync(join(from, part), join(folder, part), { recursive: true, filter: (path) => !path.endsWith("/fixtures") });
  mkdirSync(join(folder, "netcheck"));
  const runbook = readFileSync(join(from, "netcheck/runbook.yaml"), "utf8");
  writeFileSync(join(folder, "netcheck/runbook.yaml"), runbook.replace(/^facts: .*$/m, "facts: []"));
  const rule = join(folder, "rules", RULE, "rule.yaml");
  writeFileSync(rule, readFileSync(rule, "utf8").replace(/^explains: .*\n/m, ""));
  const fix = join(folder, "fixes", FIX, "fix.yaml");
  writeFileSync(fix, readFileSync(fix, "utf8").replace(/settle: \d+/, "settle: 1"));
}

async function succeed(node: LabNode, argv: readonly string[]): Promise<void> {
  const { code, stderr } = await node.run(argv);
  if (code !== 0) throw new Error(`chaos: could not prepare the node: ${stderr}`);
}
