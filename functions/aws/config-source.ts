import { GetObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { GetParameterCommand, SSMClient } from "@aws-sdk/client-ssm";
import { parse } from "yaml";
import { z } from "zod";
import { isOutage } from "../store/outage.ts";
import { Config } from "../triage/config.ts";

/** Milliseconds for which a configuration is believed: a changed policy counts almost at once, and a triage does not use up Parameter Store's 40 reads a second. */
const MAX_AGE_MS = 2000;
/** More than this is no configuration. */
const MAX_BYTES = 1024 * 1024;
const S3_URL = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\/([\w!./-]{1,1024})$/;

/** Nobody knows what the configuration says: AWS did not give it. */
export class ConfigUnread extends Error {
  override readonly name = "ConfigUnread";
  /** Asking again later may help. */
  readonly retryable = isOutage(this.cause);
}

/**
 * `netcheck.yaml` from Parameter Store. A parameter holds 8 KB at most, so that its value may also be `s3://bucket/key`.
 * The function throws, with a sentence for people, if it cannot be read ({@link ConfigUnread}) or is wrong: no triage runs on half a policy.
 */
export function configSource(parameter: string, now: () => number): () => Promise<Config> {
  const requestHandler = { connectionTimeout: 2000, requestTimeout: 5000, throwOnRequestTimeout: true };
  const ssm = new SSMClient({ requestHandler });
  const s3 = new S3Client({ requestHandler });
  let held: { readonly config: Config; readonly at: number } | undefined;
  return async () => {
    if (held !== undefined && now() - held.at < MAX_AGE_MS) return held.config;
    held = { config: readConfig(await fetchText(), parameter), at: now() };
    return held.config;
  };

  async function fetchText(): Promise<string> {
    try {
      const value = (await ssm.send(new GetParameterCommand({ Name: parameter, WithDecryption: true }))).Parameter?.Value ?? "";
      const [, Bucket, Key] = S3_URL.exec(value.trim()) ?? [];
      if (Bucket === undefined || Key === undefined) return value;
      const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, Range: `bytes=0-${MAX_BYTES}` }));
      return (await Body?.transformToString()) ?? "";
    } catch (cause) {
      const { name, message } = cause as Error;
      throw new ConfigUnread(`the configuration ${parameter} could not be read: ${name}: ${message}`, { cause });
    }
  }
}

/** @throws naming each wrong key */
export function readConfig(text: string, source: string): Config {
  if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`the configuration ${source} is larger than ${MAX_BYTES} bytes`);
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    throw new Error(`the configuration ${source} is not YAML: ${(cause as Error).message}`, { cause });
  }
  const checked = Config.safeParse(value);
  if (checked.success) return checked.data;
  throw new Error(`the configuration ${source} is wrong: ${z.prettifyError(checked.error)}`);
}
