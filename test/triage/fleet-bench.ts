import type { Capture } from "../../functions/facts/capture.ts";
import { Config } from "../../functions/triage/config.ts";
import { type FleetRequest, type Job, type JobState, type Target, type Transport, TransportError } from "../../functions/triage/ports.ts";
import { ALICE, Bench, CHANNEL } from "./harness.ts";
import { healthy } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** Nodes that answer with captures, at once. A fix that ran makes a node answer with another one. */
export class CaptureFleet implements Transport {
  readonly name = "replay";
  readonly captures = new Map<string, Capture>();
  /** Why a node cannot be looked at. */
  readonly silent = new Map<string, string>();
  readonly started: { readonly target: string; readonly id: string }[] = [];
  readonly jobs = new Map<string, Job>();
  discovered: Transport["discover"];

  async start(target: Target, job: Job): Promise<string> {
    const reason = this.silent.get(target.name);
    if (reason !== undefined) throw new TransportError(reason, { retryable: false });
    this.started.push({ target: target.name, id: job.id });
    this.jobs.set(job.id, job);
    return job.id;
  }

  async poll(target: Target, handle: string): Promise<JobState> {
    const job = this.jobs.get(handle);
    if (job !== undefined && /^(?:fix|rollback)-/.test(job.script.name)) return this.fixed(target, job);
    return { ...printed(""), capture: { ...(this.captures.get(target.name) ?? healthy), target: target.name } };
  }

  /** What a fix prints; replaced by tests. */
  fixed: (target: Target, job: Job) => JobState = () => {
    throw new Error("no fix was expected");
  };

  async find(_target: Target, id: string): Promise<string | undefined> {
    return this.jobs.has(id) ? id : undefined;
  }

  discover(cluster: string, nameTag?: string, labels?: Readonly<Record<string, string>>) {
    return this.discovered?.(cluster, nameTag, labels) ?? Promise.resolve([]);
  }
}

/** The workflow with many nodes: `names` in the cluster "lab", with their pools. */
export class FleetBench extends Bench {
  readonly nodes: CaptureFleet;

  /** @param pools name → pool; "" for none */
  constructor(pools: Readonly<Record<string, string>>, nodes = new CaptureFleet()) {
    super(() => ({ transport: () => nodes }));
    this.nodes = nodes;
    this.config = Config.parse({
      clusters: {
        lab: { transport: "replay", targets: Object.fromEntries(Object.entries(pools).map(([name, pool]) => [name, pool === "" ? {} : { pool }])) },
      },
      policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], expires: "60m" }],
    });
  }

  /** Somebody asks for something of many nodes; returns what it came to, when nothing moves any more. */
  async fleet(ask: FleetRequest["ask"], more: Partial<FleetRequest> = {}): Promise<unknown> {
    const request: FleetRequest = { incident: "inc-1", requester: ALICE, place: { channel: CHANNEL, responseUrl: "https://hooks/1" }, ask, ...more };
    this.engine.execute(request.incident, { kind: "fleet", request });
    await this.pass(300);
    return this.outcome(request.incident);
  }
}

/** node1 … node<count>, in one pool. */
export const pool = (count: number, name = "blue"): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`node${at + 1}`, name]));
