import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** The five incidents that can be made live; `s1` lives on `node1`, and so on. */
export const incidents = ["s1", "s2", "s3", "s4", "s5"] as const;
export type Incident = (typeof incidents)[number];

/** `fault --link` (S3: attached through a bpf_link), `fault --orphan` (S3: no agent any more), and `fault --absent` (S4: the sysctl does not exist). */
export type Variant = "link" | "orphan" | "absent";

const root = "/run/netcheck-lab";
const scripts = import.meta.dirname;
const ownerFile = (suffix: string) => join(root, suffix, "owner");

/** Exit code of a script's `probe` when the lab works and the traffic does not. */
const noTraffic = 3;

/** Longest a script may take; `up` of S1 starts a whole OVS. Milliseconds. */
const scriptTimeout = 60_000;

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

function run(argv: readonly string[], env: NodeJS.ProcessEnv, timeout: number): Promise<Outcome> {
  const [program = "", ...args] = argv;
  return new Promise((resolve, reject) => {
    execFile(program, args, { env, timeout, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === "number") resolve({ code: error.code, stdout, stderr });
      else reject(new Error(`lab: could not run ${argv.join(" ")}: ${error.message}`, { cause: error }));
    });
  });
}

async function script(incident: Incident, suffix: string, ...args: string[]): Promise<Outcome> {
  const outcome = await run([join(scripts, `${incident}.sh`), ...args], { ...process.env, LAB_SUFFIX: suffix }, scriptTimeout);
  if (outcome.code === 0 || (args[0] === "probe" && outcome.code === noTraffic)) return outcome;
  throw new Error(`lab: ${incident}.sh ${args.join(" ")} failed with exit code ${outcome.code}: ${outcome.stderr.trim()}`);
}

/** One machine of the lab: real network, mount and UTS namespaces with one incident's kernel state in them. */
export class LabNode {
  readonly incident: Incident;
  /** node1 … node5, also its host name. */
  readonly name: string;
  readonly #suffix: string;

  constructor(incident: Incident, suffix: string) {
    this.incident = incident;
    this.name = `node${incident.slice(1)}`;
    this.#suffix = suffix;
  }

  /** Build it, healthy. On failure nothing is left behind. */
  async up(): Promise<void> {
    mkdirSync(join(root, this.#suffix, this.incident), { recursive: true });
    writeFileSync(ownerFile(this.#suffix), owner(process.pid) ?? "");
    try {
      await script(this.incident, this.#suffix, "up");
    } catch (error) {
      await this.down();
      throw error;
    }
  }

  /** Break it as in the write-up. Once per `up`. */
  async fault(variant?: Variant): Promise<void> {
    await script(this.incident, this.#suffix, "fault", ...(variant === undefined ? [] : [`--${variant}`]));
  }

  /** Send the incident's traffic: true when it works. Throws when the lab itself is broken, so that this never looks like a fault. */
  async probe(): Promise<boolean> {
    return (await script(this.incident, this.#suffix, "probe")).code === 0;
  }

  /** Remove every namespace, process, mount and cgroup of this node. Harmless when there is none. */
  async down(): Promise<void> {
    await script(this.incident, this.#suffix, "down");
    const directory = join(root, this.#suffix);
    if (existsSync(directory) && readdirSync(directory).every((name) => name === "owner")) rmSync(directory, { recursive: true });
  }

  /** Put this before an argv to run a program on this node, as root. Valid from `up` to `down`. */
  get enter(): string[] {
    const keeper = readFileSync(join(root, this.#suffix, this.incident, "keeper"), "utf8").trim();
    const network = `/run/netns/nc-${this.incident}-node-${this.#suffix}`;
    return ["nsenter", `--mount=/proc/${keeper}/ns/mnt`, `--uts=/proc/${keeper}/ns/uts`, `--net=${network}`, "--"];
  }

  /** Run a program on this node. A non-zero exit code is an outcome, not an error. `timeout` in milliseconds. */
  run(argv: readonly string[], timeout = 30_000): Promise<Outcome> {
    return run([...this.enter, ...argv], process.env, timeout);
  }
}

export interface Lab {
  nodes: readonly LabNode[];
  /** The node of that name or incident; throws when it is not part of this lab. */
  node(nameOrIncident: string): LabNode;
  down(): Promise<void>;
}

/**
 * Build the nodes of the given incidents, healthy, all at the same time. Needs root: see `labProblem`.
 * `suffix` tells labs apart that run side by side; by default it is this process's id, so one process that starts two labs with a
 * common incident names them itself. What processes that died left behind is removed first.
 */
export async function startLab(chosen: readonly Incident[], options: { suffix?: string } = {}): Promise<Lab> {
  await cleanLab();
  const suffix = options.suffix ?? String(process.pid);
  if (!/^[a-z0-9]{1,32}$/.test(suffix)) throw new Error(`lab: could not use suffix ${JSON.stringify(suffix)}: want 1 to 32 of a-z and 0-9`);
  const nodes = chosen.map((incident) => new LabNode(incident, suffix));
  const down = async () => {
    await Promise.all(nodes.map((node) => node.down()));
  };
  const built = await Promise.allSettled(nodes.map((node) => node.up()));
  const failed = built.find((result) => result.status === "rejected");
  if (failed !== undefined) {
    await down();
    throw failed.reason;
  }
  return {
    nodes,
    node(nameOrIncident) {
      const found = nodes.find((node) => node.name === nameOrIncident || node.incident === nameOrIncident);
      if (found === undefined) throw new Error(`lab: could not find ${nameOrIncident}: this lab has ${nodes.map((node) => node.name).join(", ")}`);
      return found;
    },
    down,
  };
}

/** "pid start-time", which names a process even when its id is used again; undefined when it does not run. */
function owner(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    return undefined;
  }
}

let cleaning: Promise<string[]> | undefined;
/** Remove what labs of dead processes left behind; labs that start at the same moment remove it once. Returns their suffixes. */
export function cleanLab(): Promise<string[]> {
  cleaning ??= clean().finally(() => (cleaning = undefined));
  return cleaning;
}

async function clean(): Promise<string[]> {
  if (!existsSync(root)) return [];
  const dead = readdirSync(root).filter((suffix) => {
    const recorded = ownerFile(suffix);
    if (!existsSync(recorded)) return false; // being built or being removed this very moment
    const text = readFileSync(recorded, "utf8");
    return text !== owner(Number.parseInt(text, 10));
  });
  for (const suffix of dead) await Promise.all(incidents.map((incident) => new LabNode(incident, suffix).down()));
  return dead;
}
