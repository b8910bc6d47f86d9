import { S3Client } from "@aws-sdk/client-s3";
import { SSMClient } from "@aws-sdk/client-ssm";
import { TransportError } from "../triage/ports.ts";
import { explain, isThrottling } from "./ssm-words.ts";

/** Where a cluster's nodes are, as netcheck.yaml says it. */
export interface SsmCluster {
  readonly region?: string | undefined;
  /** For answers of more than 24,000 characters; without one such answers are cut. */
  readonly outputBucket?: string | undefined;
  /** ARN of a role to assume first: the nodes are in another account. */
  readonly role?: string | undefined;
  readonly externalId?: string | undefined;
  /** Nodes with this tag belong to the cluster without being named. One tag per key; all of them. */
  readonly targetsByTag?: Readonly<Record<string, string>> | undefined;
}

/** Clients of one region and account. */
export interface SsmClients {
  /** Never repeats a request. */
  readonly sender: SSMClient;
  readonly reader: SSMClient;
  readonly s3: S3Client;
}

const requestHandler = { connectionTimeout: 3000, requestTimeout: 10_000, throwOnRequestTimeout: true };
/**
 * Each command goes by a connection of its own. One that was kept may have been closed while nobody looked: between a diagnosis and the approval of its fix lie minutes, in which
 * Lambda freezes the process. What is sent into it is lost, and nobody knows whether the command was taken.
 */
const SEND_HANDLER = { ...requestHandler, httpAgent: { keepAlive: false }, httpsAgent: { keepAlive: false } };
/** A whole answer of 50 MB over a slow line takes longer; what counts is that bytes keep coming. */
const S3_HANDLER = { connectionTimeout: 3000, socketTimeout: 30_000 };
/** Reading does no harm: the SDK repeats it after throttling, with full jitter. More is not worth it: the workflow looks again by itself. */
const READ_ATTEMPTS = 3;
/** Seconds of an assumed session: what a chained role gets at most. */
const SESSION_SECONDS = 3600;
/** A session that ends within this is renewed: a request may be repeated for a while. */
const RENEW_MS = 300_000;

/** Clients per region and role, made once each. Sessions of assumed roles are shared by all clients of a role. Throws TransportError without a region. */
export function ssmClients(): (name: string, cluster: SsmCluster | undefined) => SsmClients {
  const made = new Map<string, SsmClients>();
  return (name, cluster) => {
    const { region, role, externalId } = cluster ?? {};
    if (region === undefined) throw new TransportError(`ssm: could not reach the cluster ${name}: it has no region in netcheck.yaml`, { retryable: false });
    const key = JSON.stringify([region, role, externalId]);
    const found = made.get(key);
    if (found !== undefined) return found;
    const common = { region, ...(role === undefined ? {} : { credentials: sessions(region, role, externalId) }) };
    const clients: SsmClients = {
      // SendCommand has no idempotency token: a retry by the SDK after a lost answer would run the job twice
      sender: new SSMClient({ ...common, requestHandler: SEND_HANDLER, maxAttempts: 1 }),
      reader: new SSMClient({ ...common, requestHandler, maxAttempts: READ_ATTEMPTS }),
      s3: new S3Client({ ...common, requestHandler: S3_HANDLER, maxAttempts: READ_ATTEMPTS }),
    };
    made.set(key, clients);
    return clients;
  };
}

interface Session {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
  readonly expiration?: Date;
}

/** Credentials of a role, assumed when first needed and again shortly before they end. Refusals are TransportErrors for people. */
function sessions(region: string, role: string, externalId: string | undefined): () => Promise<Session> {
  let current: Promise<Session> | undefined;
  let goodUntil = 0;
  return () => {
    if (current !== undefined && Date.now() < goodUntil) return current;
    goodUntil = Number.POSITIVE_INFINITY;
    current = assume(region, role, externalId).then(
      (session) => {
        goodUntil = (session.expiration?.getTime() ?? Number.POSITIVE_INFINITY) - RENEW_MS;
        return session;
      },
      (error: unknown) => {
        current = undefined;
        throw refused(role, error as Error);
      },
    );
    return current;
  };
}

async function assume(region: string, role: string, externalId: string | undefined): Promise<Session> {
  // only here: most deployments have one account
  const { fromTemporaryCredentials } = await import("@aws-sdk/credential-providers");
  const params = {
    RoleArn: role,
    RoleSessionName: "netcheck",
    DurationSeconds: SESSION_SECONDS,
    ...(externalId === undefined ? {} : { ExternalId: externalId }),
  };
  return fromTemporaryCredentials({ params, clientConfig: { region, requestHandler } })();
}

function refused(role: string, cause: Error): TransportError {
  const denied = /sts:AssumeRole/.test(cause.message);
  const hint = denied ? ". The role must also trust netcheck's role, with the external id of netcheck.yaml if it asks for one" : "";
  const lasting = /AccessDenied|Expired|InvalidClientTokenId|ValidationError|CredentialsProviderError|RegionDisabled/.test(cause.name) && !isThrottling(cause);
  return new TransportError(`ssm: could not assume the role ${role}: ${explain(cause)}${hint}`, { retryable: !lasting, cause });
}
