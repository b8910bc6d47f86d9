import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  GetCommandInvocationCommand,
  type GetCommandInvocationCommandOutput,
  paginateListCommands,
  SendCommandCommand,
  SSMClient,
  SSMServiceException,
} from "@aws-sdk/client-ssm";
import { type Job, type JobState, type Target, type Transport, TransportError } from "../triage/ports.ts";
import { documentName, OLD_AGENT, STEP } from "./ssm-document.ts";

export interface SsmOptions {
  /** Where a cluster's nodes are, and the bucket for answers of more than 24,000 characters; without one such answers are cut. */
  readonly cluster: (name: string) => { readonly region: string; readonly outputBucket?: string | undefined };
  /** Milliseconds between two looks at a running command. Default 1000: the service allows few calls per second. */
  readonly pollMs?: number;
}

/** Folder in the output bucket. */
const PREFIX = "netcheck";
/** The service's mark at the end of an answer that it cut. */
const CUT = "--output truncated--";
/** More of an answer is never read. */
const MAX_OUTPUT = 64 * 1024 * 1024;
/** A node that does not take a command within this many seconds never runs it: nobody expects a fix to start an hour after its approval. */
const DELIVERY_SECONDS = 60;
/** Failures to connect: the request surely did not reach the service. */
const NOT_CONNECTED = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

const comment = (jobId: string): string => `netcheck job ${jobId}`;

/** Runs registered scripts on EC2 and hybrid nodes through Systems Manager Run Command. A target's address is its instance id; a handle is a command id. */
export function ssmTransport({ cluster, pollMs = 1000 }: SsmOptions): Transport {
  const requestHandler = { connectionTimeout: 3000, requestTimeout: 10_000, throwOnRequestTimeout: true };
  const clients = perRegion((region) => ({
    // SendCommand has no idempotency token: a retry by the SDK after a lost answer would run the job twice
    sender: new SSMClient({ region, requestHandler, maxAttempts: 1 }),
    reader: new SSMClient({ region, requestHandler }),
    s3: new S3Client({ region, requestHandler }),
  }));
  const at = (target: Target) => {
    const { region, outputBucket } = cluster(target.cluster);
    return { ...clients(region), outputBucket };
  };

  async function look(target: Target, handle: string): Promise<JobState> {
    const { reader } = at(target);
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
    if (["Pending", "InProgress", "Delayed", "Cancelling"].includes(status)) return { state: "running", detail };
    if (exitCode === 78 && stderr.includes(OLD_AGENT)) return { state: "not-run", reason: OLD_AGENT.replace("netcheck: ", "") };
    if (detail === "AccessDenied" || detail === "Terminated") return { state: "not-run", reason: `Systems Manager did not deliver the command: ${detail}` };
    // Undeliverable and DeliveryTimedOut are also what a command ends as whose agent took it and was never heard of again
    const ran = (detail === "Success" || detail === "Failed") && exitCode >= 0;
    if (!ran) return { state: "lost", reason: `Systems Manager says ${detail}: it may or may not have run` };
    const inline = found.StandardOutputContent ?? "";
    if (!inline.endsWith(CUT)) return { state: "done", exitCode, stdout: inline, stderr, truncated: false };
    const { text, cut, problem } = await wholeOutput(target, handle, inline.slice(0, -CUT.length));
    return { state: "done", exitCode, stdout: text, stderr: problem === undefined ? stderr : `${problem}\n${stderr}`, truncated: cut };
  }

  /** The answer from the bucket: the upload may come late, or never. What the service gave inline is the last resort. */
  async function wholeOutput(target: Target, handle: string, inline: string): Promise<{ text: string; cut: boolean; problem?: string }> {
    const { s3, outputBucket: Bucket } = at(target);
    if (Bucket === undefined) return { text: inline, cut: true };
    const Key = `${PREFIX}/${handle}/${target.address}/awsrunShellScript/${STEP}/stdout`;
    for (let tries = 1; ; tries += 1) {
      try {
        const { Body, ContentRange = "" } = await s3.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=0-${MAX_OUTPUT - 1}` }));
        return { text: (await Body?.transformToString()) ?? "", cut: Number(ContentRange.split("/")[1]) > MAX_OUTPUT };
      } catch (error) {
        const { name } = error as Error;
        if (name !== "NoSuchKey" || tries === 5) return { text: inline, cut: true, problem: `ssm: could not read s3://${Bucket}/${Key}: ${name}` };
      }
      await delay(pollMs);
    }
  }

  return {
    name: "ssm",

    async start(target: Target, job: Job): Promise<string> {
      const { sender, outputBucket } = at(target);
      const parameters = { ...job.parameters, nonce: job.nonce, job: job.id };
      try {
        const { Command } = await sender.send(
          new SendCommandCommand({
            DocumentName: documentName(job.script),
            InstanceIds: [target.address],
            Comment: comment(job.id),
            TimeoutSeconds: DELIVERY_SECONDS,
            Parameters: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, [value]])),
            ...(outputBucket === undefined ? {} : { OutputS3BucketName: outputBucket, OutputS3KeyPrefix: PREFIX }),
          }),
        );
        if (Command?.CommandId === undefined) throw new Error("the service answered without a command id");
        return Command.CommandId;
      } catch (error) {
        throw startError(`start ${job.script.name} on ${target.name}`, error);
      }
    },

    async poll(target: Target, handle: string, waitMs: number): Promise<JobState> {
      for (let left = waitMs; ; left -= pollMs) {
        const state = await look(target, handle);
        if (state.state !== "running" || left <= 0) return state;
        await delay(Math.min(pollMs, left));
      }
    },

    async find(target: Target, jobId: string): Promise<string | undefined> {
      try {
        // twice: a command may take a moment to appear in the list
        for (const last of [false, true]) {
          for await (const page of paginateListCommands({ client: at(target).reader, pageSize: 50 }, { InstanceId: target.address }))
            for (const command of page.Commands ?? []) if (command.Comment === comment(jobId)) return command.CommandId;
          if (!last) await delay(2 * pollMs);
        }
        return undefined;
      } catch (error) {
        throw readError(`look for a command of ${target.name}`, error);
      }
    },
  };
}

function perRegion<T>(make: (region: string) => T): (region: string) => T {
  const made = new Map<string, T>();
  return (region) => {
    const found = made.get(region) ?? make(region);
    made.set(region, found);
    return found;
  };
}

const isThrottling = (error: Error): boolean => /Thrott|TooManyRequests|RequestLimitExceeded/.test(error.name);
const isRefusal = (error: unknown): boolean =>
  error instanceof SSMServiceException && error.$fault === "client" && (error.$metadata.httpStatusCode ?? 500) < 500;

/** TransportError where the command surely did not start; anything else is passed on as unknown. */
function startError(what: string, error: unknown): Error {
  const cause = error as Error & { code?: string };
  const message = `ssm: could not ${what}: ${explain(cause)}`;
  if (isRefusal(error)) return new TransportError(message, { retryable: isThrottling(cause), cause });
  if (NOT_CONNECTED.has(cause.code ?? "")) return new TransportError(message, { retryable: true, cause });
  if (cause.name === "CredentialsProviderError") return new TransportError(message, { retryable: false, cause });
  return new Error(message, { cause });
}

/** Looking again does no harm, so everything but a plain refusal is retryable. */
function readError(what: string, error: unknown): TransportError {
  const cause = error as Error;
  const retryable = !(isRefusal(error) && !isThrottling(cause)) && cause.name !== "CredentialsProviderError";
  return new TransportError(`ssm: could not ${what}: ${explain(cause)}`, { retryable, cause });
}

/** What people need to know of an error: the service's own words are often none, or puzzling. */
function explain(error: Error): string {
  if (error.name === "InvalidInstanceId") return "Systems Manager does not know the node, or its agent does not answer (InvalidInstanceId)";
  if (error.name === "InvalidDocument") return "the document is not registered in that account and region (InvalidDocument)";
  return error.message === "" || error.message === "UnknownError" ? error.name : `${error.message} (${error.name})`;
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
