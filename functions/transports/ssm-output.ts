import { GetObjectCommand, type S3Client } from "@aws-sdk/client-s3";
import { type JobState, TransportError } from "../triage/ports.ts";
import { explain } from "./ssm-words.ts";

/** The service's mark at the end of an answer that it cut (24,000 characters of stdout, 8,000 of stderr). */
const CUT = "--output truncated--";
/** So much of an answer is brought back as a string; of a longer one the rest comes as a stream. */
const IN_ONE = 1024 * 1024;
/** More of an answer is never read, in bytes: the script holds 128 MiB before compression, and what cannot be compressed is rare. */
const MAX_OUTPUT = 192 * 1024 * 1024;
/** An upload is looked for so often: it may come a moment after the command's end. */
const TRIES = 5;

/** Where the agent uploads an answer. `delayMs`: between two looks for one that is late. */
export interface OutputPlace {
  readonly s3: S3Client;
  readonly bucket: string | undefined;
  readonly key: string;
  readonly delayMs: number;
}

type Output = Pick<Extract<JobState, { state: "done" }>, "stdout" | "stderr" | "truncated" | "whole">;

/**
 * What a command printed: inline where it fits, else from the bucket. An upload may come late, or never, or have expired: then what the service gave inline is
 * what there is, marked as cut, and stderr begins with the reason. Whether it arrived as the node sent it, the script's own frame tells (length and SHA-256).
 */
export async function outputOf(place: OutputPlace, inline: string, stderr: string): Promise<Output> {
  if (!inline.endsWith(CUT)) return { stdout: inline, stderr, truncated: false };
  const beginning = inline.slice(0, -CUT.length);
  const { bucket, key } = place;
  if (bucket === undefined) {
    const problem = "ssm: the answer is longer than the 24,000 characters that Systems Manager brings back: set outputBucket in netcheck.yaml";
    return { stdout: beginning, stderr: joined(problem, stderr), truncated: true };
  }
  try {
    const { Body, ContentRange = "" } = await firstPart(place);
    const stdout = (await Body?.transformToString()) ?? "";
    const size = Number(ContentRange.split("/")[1] ?? 0);
    if (size <= IN_ONE) return { stdout, stderr, truncated: false };
    return { stdout, stderr, truncated: true, whole: () => stream(place) };
  } catch (error) {
    return { stdout: beginning, stderr: joined(`ssm: could not read s3://${bucket}/${key}: ${explain(error as Error)}`, stderr), truncated: true };
  }
}

const joined = (problem: string, stderr: string): string => (stderr === "" ? problem : `${problem}\n${stderr}`);

async function firstPart({ s3, bucket: Bucket, key: Key, delayMs }: OutputPlace) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await s3.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=0-${IN_ONE - 1}` }));
    } catch (error) {
      if ((error as Error).name !== "NoSuchKey" || tries === TRIES) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, delayMs));
  }
}

/** All of it, in pieces as they come. A connection that breaks is a retryable TransportError. */
async function* stream({ s3, bucket: Bucket, key: Key }: OutputPlace): AsyncIterable<Uint8Array> {
  try {
    const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=0-${MAX_OUTPUT - 1}` }));
    // in Node the body is a Readable
    yield* Body as unknown as AsyncIterable<Uint8Array>;
  } catch (cause) {
    const gone = (cause as Error).name === "NoSuchKey" || (cause as Error).name === "AccessDenied";
    throw new TransportError(`ssm: could not read s3://${Bucket}/${Key}: ${explain(cause as Error)}`, { retryable: !gone, cause });
  }
}
