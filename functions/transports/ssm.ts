import {
  CancelCommandCommand,
  GetCommandInvocationCommand,
  type GetCommandInvocationCommandOutput,
  paginateListCommandInvocations,
  paginateListCommands,
  SendCommandCommand,
  type SendCommandCommandInput,
  SSMServiceException,
} from "@aws-sdk/client-ssm";
import { type BatchJob, type Job, type JobState, type Started, type Target, type Transport, TransportError } from "../triage/ports.ts";
import { type SsmClients, type SsmCluster, ssmClients } from "./ssm-clients.ts";
import { contentOf, documentName, OLD_AGENT, STEP } from "./ssm-document.ts";
import { agentsOf, NodeLists } from "./ssm-nodes.ts";
import { outputOf } from "./ssm-output.ts";
import { type AgentStatus, agentWords, endingWords, explain, isClockSkew, isThrottling } from "./ssm-words.ts";

export interface SsmOptions {
  /** Where a cluster's nodes are: its part of netcheck.yaml, read afresh. */
  readonly cluster: (name: string) => SsmCluster | undefined;
  /** Milliseconds between two looks at a running command, and the unit of all waiting. Default 1000: the service allows few calls per second. */
  readonly pollMs?: number;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** 0 ≤ x < 1: spreads retries. */
  readonly random?: () => number;
}

/** Folder in the output bucket. */
const PREFIX = "netcheck";
/** A node that does not take a command within this many seconds never runs it: nobody expects a fix to start an hour after its approval. */
const DELIVERY_SECONDS = 60;
/** Most nodes of one SendCommand by id, and of one page of its invocations (API reference). */
const BATCH = 50;
/** A refused SendCommand is sent so often; between two tries up to 1, 2, 4, 8 polls pass. */
const SEND_TRIES = 5;
/** A batch that was started longer ago is not looked for: its collection is given up long before. */
const FIND_MS = 3_600_000;
/** Failures to connect: the request surely did not reach the service. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);
/** Status of an invocation that has not ended. */
const OPEN = new Set(["Pending", "InProgress", "Delayed", "Cancelling"]);

const comment = (jobId: string): string => `netcheck job ${jobId}`;

/**
 * Runs registered scripts on EC2 and hybrid nodes through Systems Manager Run Command, in any account and region. A target's address is its instance id
 * (i-…, mi-…); a handle is a command id.
 */
export function ssmTransport({ cluster, pollMs = 1000, now = Date.now, random = Math.random }: SsmOptions): Transport {
  const clients = ssmClients();
  const lists = new NodeLists(now);
  const at = (name: string): SsmClients & { readonly bucket: string | undefined } => {
    const found = cluster(name);
    return { ...clients(name, found), bucket: found?.outputBucket };
  };

  /** What is wrong with a target's agent, in words; "" if nothing is, or nobody can say. */
  async function agentOf(target: Target): Promise<string> {
    try {
      return agentWords((await agentsOf(at(target.cluster).reader, [target.address])).get(target.address), now());
    } catch {
      // it only adds words
      return "";
    }
  }

  /** Sends a command, at most once accepted. What was surely refused for the moment is sent again: after throttling with full jitter, after a wrong clock once. */
  async function send({ sender }: SsmClients, input: SendCommandCommandInput): Promise<string> {
    for (let tries = 1; ; tries += 1) {
      try {
        const { Command } = await sender.send(new SendCommandCommand(input));
        if (Command?.CommandId === undefined) throw new Error("the service answered without a command id");
        return Command.CommandId;
      } catch (error) {
        if (!isRefusal(error) || tries === SEND_TRIES) throw error;
        // the SDK has learned the service's time from the refusal
        const skewed = tries === 1 && isClockSkew(error as Error);
        if (!skewed && !isThrottling(error as Error)) throw error;
        await delay(skewed ? 0 : random() * pollMs * 2 ** (tries - 1));
      }
    }
  }

  function commandOf(job: Job, targets: readonly Target[], bucket: string | undefined): SendCommandCommandInput {
    const parameters = { ...job.parameters, nonce: job.nonce, job: job.id, content: contentOf(job.script) };
    return {
      DocumentName: documentName(job.script),
      InstanceIds: targets.map(({ address }) => address),
      Comment: comment(job.id),
      TimeoutSeconds: DELIVERY_SECONDS,
      // by default one failure keeps the rest of a batch from starting
      ...(targets.length === 1 ? {} : { MaxConcurrency: String(BATCH), MaxErrors: String(BATCH) }),
      Parameters: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]])),
      ...(bucket === undefined ? {} : { OutputS3BucketName: bucket, OutputS3KeyPrefix: PREFIX }),
    };
  }

  async function look(target: Target, handle: string): Promise<JobState> {
    const { reader } = at(target.cluster);
    try {
      const found = await reader.send(new GetCommandInvocationCommand({ CommandId: handle, InstanceId: target.address }));
      return await stateOf(target, handle, found);
    } catch (error) {
      // true for a moment after SendCommand
      if (error instanceof SSMServiceException && error.name === "InvocationDoesNotExist")
        return { state: "running", detail: "waiting for the command to appear" };
      throw readError(`look at ${target.name}`, error);
    }
  }

  async function stateOf(target: Target, handle: string, found: GetCommandInvocationCommandOutput): Promise<JobState> {
    const { Status: status = "", StatusDetails: detail = status, ResponseCode: exitCode = -1, StandardErrorContent: stderr = "" } = found;
    if (OPEN.has(status)) return { state: "running", detail };
    if (exitCode === 78 && stderr.includes(OLD_AGENT))
      return { state: "not-run", reason: `${OLD_AGENT.replace("netcheck: ", "")}. Update amazon-ssm-agent on it, then run the triage again` };
    const ran = (detail === "Success" || detail === "Failed") && exitCode >= 0;
    if (!ran) return endingWords(detail, await agentOf(target));
    const { s3, bucket } = at(target.cluster);
    const key = `${PREFIX}/${handle}/${target.address}/awsrunShellScript/${STEP}/stdout`;
    const output = await outputOf({ s3, bucket, key, delayMs: pollMs }, found.StandardOutputContent ?? "", stderr);
    return { state: "done", exitCode, ...output };
  }

  /** Instances of a command that have ended; undefined while the service does not show the command yet. */
  async function endedOf({ reader }: SsmClients, handle: string): Promise<ReadonlySet<string>> {
    const ended = new Set<string>();
    // without Details: the 2,500 characters that it shows of each output are never enough
    for await (const page of paginateListCommandInvocations({ client: reader, pageSize: BATCH }, { CommandId: handle }))
      for (const { InstanceId = "", Status = "" } of page.CommandInvocations ?? []) if (!OPEN.has(Status)) ended.add(InstanceId);
    return ended;
  }

  /** The command that was sent for a job less than an hour ago, with the instances that it was sent to. */
  async function sentBefore({ reader }: SsmClients, job: Job): Promise<{ readonly handle: string; readonly ids: readonly string[] } | undefined> {
    const Filters = [
      { key: "DocumentName" as const, value: documentName(job.script) },
      { key: "InvokedAfter" as const, value: `${new Date(now() - FIND_MS).toISOString().slice(0, 19)}Z` },
    ];
    for await (const page of paginateListCommands({ client: reader, pageSize: BATCH }, { Filters }))
      for (const { Comment, CommandId, InstanceIds = [] } of page.Commands ?? [])
        if (Comment === comment(job.id) && CommandId !== undefined) return { handle: CommandId, ids: InstanceIds };
    return undefined;
  }

  /** Sends to all that the service takes: it refuses the whole batch for one node that is not there. */
  async function sendToMany(way: SsmClients & { readonly bucket: string | undefined }, targets: readonly Target[], job: Job): Promise<readonly Started[]> {
    const absent = new Map<string, string>();
    for (;;) {
      const present = targets.filter(({ address }) => !absent.has(address));
      const started = (handle: string): readonly Started[] =>
        targets.map(({ address }) => {
          const reason = absent.get(address);
          return reason === undefined ? { ok: true, handle } : { ok: false, reason };
        });
      if (present.length === 0) return started("");
      try {
        return started(await send(way, commandOf(job, present, way.bucket)));
      } catch (error) {
        if (!isRefusal(error)) throw error;
        const before = absent.size;
        const { name, message } = error as Error;
        // one node without the opt-in tag is enough
        if (name === "AccessDeniedException")
          for (const { address } of present) if (message.includes(`/${address}`)) absent.set(address, explain(error as Error));
        if (name === "InvalidInstanceId") for (const [id, reason] of await absentOf(way, present, error as Error)) absent.set(id, reason);
        // the service does not say which: then nobody can
        if (absent.size === before) throw error;
      }
    }
  }

  /** Which instances the service means by InvalidInstanceId, and why: it names them as a rule, but not always. */
  async function absentOf({ reader }: SsmClients, targets: readonly Target[], error: Error): Promise<ReadonlyMap<string, string>> {
    const named = new Set(error.message.match(/\bm?i-[0-9a-z]{8,17}\b/g) ?? []);
    const ids = targets.map(({ address }) => address);
    let agents: ReadonlyMap<string, AgentStatus>;
    try {
      agents = await agentsOf(reader, ids);
    } catch {
      return new Map([...named].map((id) => [id, explain(error)]));
    }
    const meant = ids.filter((id) => (named.size > 0 ? named.has(id) : agents.get(id)?.ping !== "Online"));
    return new Map(meant.map((id) => [id, withAgent(error, agentWords(agents.get(id), now()))]));
  }

  return {
    name: "ssm",

    async start(target: Target, job: Job): Promise<string> {
      const what = `start ${job.script.name} on ${target.name}`;
      try {
        const way = at(target.cluster);
        return await send(way, commandOf(job, [target], way.bucket));
      } catch (error) {
        const absent = isRefusal(error) && (error as Error).name === "InvalidInstanceId";
        throw startError(what, error, absent ? withAgent(error as Error, await agentOf(target)) : undefined);
      }
    },

    async poll(target: Target, handle: string, waitMs: number): Promise<JobState> {
      for (let left = waitMs; ; left -= pollMs) {
        const state = await look(target, handle);
        if (state.state !== "running" || left <= 0) return state;
        await delay(Math.min(pollMs, left));
      }
    },

    async find(target: Target, jobId: string, once = false): Promise<string | undefined> {
      try {
        // twice: a command may take a moment to appear in the list
        for (const last of once ? [true] : [false, true]) {
          for await (const page of paginateListCommands({ client: at(target.cluster).reader, pageSize: BATCH }, { InstanceId: target.address }))
            for (const command of page.Commands ?? []) if (command.Comment === comment(jobId)) return command.CommandId;
          if (!last) await delay(2 * pollMs);
        }
        return undefined;
      } catch (error) {
        throw readError(`look for a command of ${target.name}`, error);
      }
    },

    async cancel(target: Target, handle: string): Promise<void> {
      await cancel(at(target.cluster), handle, [target]);
    },

    async discover(name: string, nameTag?: string, labels?: Readonly<Record<string, string>>) {
      const found = cluster(name);
      if (found?.targetsByTag === undefined) return [];
      try {
        const key = JSON.stringify([found.region, found.role]);
        return await lists.of(key, clients(name, found).reader, found.targetsByTag, nameTag, labels);
      } catch (error) {
        throw readError(`list the nodes of ${name}`, error);
      }
    },

    batches: {
      size: BATCH,

      async start(targets: readonly Target[], job: Job): Promise<readonly Started[]> {
        const [first] = targets;
        if (first === undefined) return [];
        const what = `start ${job.script.name} on ${targets.length} nodes`;
        let way: SsmClients & { readonly bucket: string | undefined };
        let before: Awaited<ReturnType<typeof sentBefore>>;
        try {
          way = at(first.cluster);
          before = await sentBefore(way, job);
        } catch (error) {
          throw readError(what, error);
        }
        if (before === undefined) {
          try {
            return await sendToMany(way, targets, job);
          } catch (error) {
            throw startError(what, error);
          }
        }
        const { handle, ids } = before;
        return targets.map(({ address }) =>
          ids.includes(address) ? { ok: true, handle } : { ok: false, reason: "Systems Manager did not take the command for it: its agent did not answer" },
        );
      },

      async *poll(jobs: readonly BatchJob[], waitMs: number): AsyncGenerator<{ job: BatchJob; state: JobState }> {
        const open = new Set(jobs);
        for (let left = waitMs; ; left -= pollMs) {
          for (const handle of new Set([...open].map((job) => job.handle))) {
            const mine = [...open].filter((job) => job.handle === handle);
            const [first] = mine;
            if (first === undefined) continue;
            let ended: ReadonlySet<string>;
            try {
              ended = await endedOf(at(first.target.cluster), handle);
            } catch (error) {
              throw readError(`look at a command on ${mine.length} nodes`, error);
            }
            // one at a time: an answer may be large
            for (const job of mine.filter(({ target }) => ended.has(target.address))) {
              const state = await look(job.target, handle);
              if (state.state === "running") continue;
              open.delete(job);
              yield { job, state };
            }
          }
          if (open.size === 0 || left <= 0) return;
          await delay(Math.min(pollMs, left));
        }
      },

      async cancel(jobs: readonly BatchJob[]): Promise<void> {
        for (const handle of new Set(jobs.map((job) => job.handle))) {
          const targets = jobs.filter((job) => job.handle === handle).map(({ target }) => target);
          const [first] = targets;
          if (first !== undefined) await cancel(at(first.cluster), handle, targets);
        }
      },
    },
  };
}

/** Asks the service to stop a command on some nodes; what has ended by itself stays as it is. */
async function cancel({ reader }: SsmClients, CommandId: string, targets: readonly Target[]): Promise<void> {
  try {
    await reader.send(new CancelCommandCommand({ CommandId, InstanceIds: targets.map(({ address }) => address) }));
  } catch (error) {
    throw readError(`cancel a command on ${targets.map(({ name }) => name).join(", ")}`, error);
  }
}

const isRefusal = (error: unknown): boolean =>
  error instanceof SSMServiceException && error.$fault === "client" && (error.$metadata.httpStatusCode ?? 500) < 500;

const withAgent = (error: Error, agent: string): string =>
  agent === "" ? explain(error) : `${agent}. Check that the node runs and that amazon-ssm-agent is running on it, then run the triage again (${error.name})`;

/** TransportError where the command surely did not start; anything else is passed on as unknown. */
function startError(what: string, error: unknown, words?: string): Error {
  if (error instanceof TransportError) return error;
  const cause = error as Error & { code?: string };
  const message = `ssm: could not ${what}: ${words ?? explain(cause)}`;
  if (isRefusal(error)) return new TransportError(message, { retryable: isThrottling(cause), cause });
  if (NOT_CONNECTED.has(cause.code ?? "")) return new TransportError(message, { retryable: true, cause });
  if (cause.name === "CredentialsProviderError") return new TransportError(message, { retryable: false, cause });
  return new Error(message, { cause });
}

/** Looking again does no harm, so everything but a plain refusal is retryable. */
function readError(what: string, error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  const cause = error as Error;
  const retryable = !(isRefusal(error) && !isThrottling(cause)) && cause.name !== "CredentialsProviderError";
  return new TransportError(`ssm: could not ${what}: ${explain(cause)}`, { retryable, cause });
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
