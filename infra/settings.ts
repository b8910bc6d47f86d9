import { readFileSync } from "node:fs";
import type { App } from "aws-cdk-lib";
import { parse } from "yaml";
import { z } from "zod";
import { Config } from "../functions/triage/config.ts";

/** A Systems Manager parameter of the advanced tier holds so many bytes. */
const MAX_PARAMETER_BYTES = 8192;
const SECRET = /^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}$/;
const ROLE = /^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]{1,128}$/;

/** Words of a list, separated by commas. */
const list = (word: z.ZodString) =>
  z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(word));
const days = z.coerce.number().int().min(1);

/** What CloudWatch Logs accepts as days of retention. */
const LOG_DAYS = [1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653];

const Context = z.strictObject({
  /** Name of the stack. Documents are named `netcheck-…` whatever it is, so there is one per account and region. */
  stack: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9-]{0,31}$/, "1 to 32 letters, digits and dashes")
    .default("netcheck"),
  /** The netcheck.yaml to put into Parameter Store, or `s3://bucket/key` where it is already. */
  config: z.string().default("infra/netcheck.yaml"),
  /** Only nodes that carry this tag can be reached. */
  tag: z
    .string()
    .regex(/^[\w.:/+@-]{1,128}=[\w.:/+@-]{1,128}$/, "key=value")
    .default("netcheck=enabled"),
  /** Audit events cannot be deleted by anyone for so many days. */
  archiveDays: days.max(3650).default(400),
  logDays: days.refine((value) => LOG_DAYS.includes(value), `one of ${LOG_DAYS.join(", ")}`).default(90),
  /** Where alarms are mailed. */
  alarmEmail: z.email().optional(),
  /** Roles in other accounts or regions (outputs of the member stack) that may be assumed. Those in the configuration are added by themselves. */
  memberRoles: list(z.string().regex(ROLE, "ARNs of roles, separated by commas")).default([]),
  /** Secrets with tokens of Kubernetes clusters that may be read. Those in the configuration are added by themselves. */
  tokenSecrets: list(z.string().regex(SECRET, "ARNs of secrets, separated by commas")).default([]),
  /** Secrets with keys of monitoring systems (`pagers`) that may be read. Those in the configuration are added by themselves. */
  pagerSecrets: list(z.string().regex(SECRET, "ARNs of secrets, separated by commas")).default([]),
  /** Whether functions have concurrency of their own. An account with a quota of 10 cannot reserve any. */
  reserve: z.enum(["yes", "no"]).default("yes"),
});

const MemberContext = Context.pick({ stack: true, tag: true, logDays: true }).extend({
  /** Role of the triage function in the main account: output TriageRole of its stack. */
  hubRole: z.string().regex(ROLE, "the ARN of a role"),
  /** A word that the main account must show; not a secret. */
  externalId: z.string().regex(/^[\w+=,.@:/-]{8,128}$/, "8 to 128 of A-Z a-z 0-9 _ + = , . @ : / -"),
});

export type Tag = { readonly key: string; readonly value: string };
export interface Settings extends Omit<z.infer<typeof Context>, "tag" | "config" | "reserve"> {
  readonly tag: Tag;
  /** Text of netcheck.yaml, or where it is. */
  readonly config: { readonly text: string } | { readonly bucket: string; readonly key: string };
  readonly reserve: boolean;
}
export interface MemberSettings extends Omit<z.infer<typeof MemberContext>, "tag"> {
  readonly tag: Tag;
}

/** What was given as `-c name=value`. @throws naming each value that is wrong, and what it must be */
export function readSettings(given: Readonly<Record<string, unknown>>): Settings {
  const { tag, config, reserve, memberRoles, tokenSecrets, pagerSecrets, ...rest } = check(Context, given);
  const { place, roles, secrets, keys } = readConfiguration(config);
  const both = (some: readonly string[], more: readonly string[]): string[] => [...new Set([...some, ...more])].sort();
  return {
    ...rest,
    tag: splitTag(tag),
    config: place,
    memberRoles: both(memberRoles, roles),
    tokenSecrets: both(tokenSecrets, secrets),
    pagerSecrets: both(pagerSecrets, keys),
    reserve: reserve === "yes",
  };
}

/** For the member stack; undefined if there is no `-c hubRole`. @throws as {@link readSettings} */
export function readMemberSettings(given: Readonly<Record<string, unknown>>): MemberSettings | undefined {
  if (given["hubRole"] === undefined) return undefined;
  const { tag, ...rest } = check(MemberContext, given);
  return { ...rest, tag: splitTag(tag) };
}

/** Names of all settings. */
export const SETTINGS: readonly string[] = Object.keys({ ...Context.shape, ...MemberContext.shape });

/** The context of ours: other names belong to the CDK itself. */
export function givenContext(app: App): Record<string, unknown> {
  return Object.fromEntries(SETTINGS.map((name) => [name, app.node.tryGetContext(name) as unknown]).filter(([, value]) => value !== undefined));
}

function check<T>(schema: z.ZodType<T>, given: Readonly<Record<string, unknown>>): T {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  const problems = result.error.issues.map(({ path, message }) => (path.length === 0 ? message : `-c ${path[0] as string}=…: ${message}`));
  throw new Error(`the settings are wrong. ${problems.join("; ")}`);
}

function splitTag(tag: string): Tag {
  const at = tag.indexOf("=");
  return { key: tag.slice(0, at), value: tag.slice(at + 1) };
}

interface Configured {
  readonly place: Settings["config"];
  /** What the clusters in it need: roles to assume, secrets to read. */
  readonly roles: readonly string[];
  readonly secrets: readonly string[];
  /** Secrets with keys of monitoring systems. */
  readonly keys: readonly string[];
}

/** @throws if the file cannot be read, is no valid netcheck.yaml, or is too long for a parameter */
function readConfiguration(given: string): Configured {
  const place = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])\/([\w!./-]{1,1024})$/.exec(given);
  if (place !== null) return { place: { bucket: place[1] as string, key: place[2] as string }, roles: [], secrets: [], keys: [] };
  let text: string;
  try {
    text = readFileSync(given, "utf8");
  } catch (cause) {
    throw new Error(
      `could not read the configuration ${given}: ${(cause as Error).message}. Copy infra/netcheck.example.yaml to infra/netcheck.yaml and edit it, or name another file with -c config=<path>`,
      { cause },
    );
  }
  const checked = Config.safeParse(parse(text));
  if (!checked.success) throw new Error(`the configuration ${given} is wrong: ${z.prettifyError(checked.error)}`);
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_PARAMETER_BYTES)
    throw new Error(
      `the configuration ${given} has ${bytes} bytes and a parameter holds ${MAX_PARAMETER_BYTES}. Put it into a bucket of yours and deploy with -c config=s3://<bucket>/<key>`,
    );
  const clusters = Object.values(checked.data.clusters);
  const accesses = clusters.flatMap(({ debugPods }) => debugPods?.access ?? []);
  const roles = [...clusters.map(({ role }) => role), ...accesses.map((access) => (access.by === "eks" ? access.role : undefined))];
  const secrets = accesses.map((access) => (access.by === "bearer" ? access.tokenSecret : ""));
  const { pagerduty, opsgenie, grafana } = checked.data.pagers ?? {};
  const keys = [pagerduty?.tokenSecret, pagerduty?.routingKeySecret, opsgenie?.tokenSecret, grafana?.tokenSecret];
  return {
    place: { text },
    roles: roles.filter((role) => role !== undefined),
    secrets: secrets.filter((secret) => SECRET.test(secret)),
    keys: keys.filter((secret) => secret !== undefined && SECRET.test(secret)) as string[],
  };
}
