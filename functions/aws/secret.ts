import { sign } from "aws4";

/** What the Slack app's secret holds. */
export const SLACK_SECRET = ["signingSecret", "botToken"] as const;
/** What the pager's secret holds: with what a monitoring system signs its requests. */
export const PAGER_SECRET = ["signingSecret"] as const;

export interface SecretOptions<Field extends string> {
  /** The secret is JSON with these, filled in by hand after the first deployment. */
  readonly fields: readonly Field[];
  /** Of the secret in Secrets Manager; its region is in it. */
  readonly arn: string;
  /** Temporary or lasting keys of AWS; read anew at each call, because a role's keys change. */
  readonly credentials: () => { readonly accessKeyId: string; readonly secretAccessKey: string; readonly sessionToken?: string | undefined };
  /** Another address of the service, for tests and private endpoints. */
  readonly endpoint?: string | undefined;
  readonly now: () => number;
}

/** Seconds after which a value is read again: so long an old signing secret may still count after a rotation. */
const MAX_AGE_SECONDS = 300;
/** After a signature that did not fit, the secret is read again, but not more often than this: strangers can send bad signatures as often as they like. */
const RENEW_SECONDS = 30;
/** Milliseconds for one call: Slack waits for 3 seconds. */
const PATIENCE_MS = 1500;
const ARN = /^arn:(aws[a-z-]*):secretsmanager:([a-z0-9-]+):\d{12}:secret:[\w/+=.@-]{1,512}$/;

/**
 * A secret, from Secrets Manager and then from memory. One signed request instead of the SDK's client, whose import alone takes longer than the
 * whole acknowledgement (tech-notes C).
 */
export class SecretReader<Field extends string> {
  readonly #options: SecretOptions<Field>;
  #held: { readonly secret: Readonly<Record<Field, string>>; readonly at: number } | undefined;

  constructor(options: SecretOptions<Field>) {
    if (!ARN.test(options.arn)) throw new Error(`aws: this is no ARN of a secret: ${options.arn}`);
    this.#options = options;
  }

  /**
   * @param doubtful the value in memory did not fit: read it again unless that was done just now
   * @throws with a sentence that says what to do; `retryable` says whether waiting may help
   */
  async read(doubtful = false): Promise<Readonly<Record<Field, string>>> {
    const age = this.#held === undefined ? Number.POSITIVE_INFINITY : (this.#options.now() - this.#held.at) / 1000;
    if (this.#held !== undefined && age < (doubtful ? RENEW_SECONDS : MAX_AGE_SECONDS)) return this.#held.secret;
    this.#held = { secret: parse(await this.#fetch(), this.#options), at: this.#options.now() };
    return this.#held.secret;
  }

  async #fetch(): Promise<string> {
    const { arn, credentials, endpoint } = this.#options;
    const [, partition, region] = ARN.exec(arn) as unknown as [string, string, string];
    const url = new URL(endpoint ?? `https://secretsmanager.${region}.amazonaws.com${partition === "aws-cn" ? ".cn" : ""}`);
    const body = JSON.stringify({ SecretId: arn });
    const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue" };
    const signed = sign({ service: "secretsmanager", region, method: "POST", host: url.host, path: "/", headers, body }, keys(credentials()));
    const what = `aws: could not read the secret ${arn}`;
    const { status, text } = await post(url, signed.headers as Record<string, string>, body).catch((cause: Error) => {
      throw Object.assign(new Error(`${what}: ${cause.message}`, { cause }), { retryable: true });
    });
    const answer = parseJson(text) as { SecretString?: string; __type?: string; message?: string; Message?: string };
    if (status === 200 && typeof answer.SecretString === "string") return answer.SecretString;
    const type = answer.__type?.split("#").at(-1) ?? `status ${status}`;
    const why = `${type}: ${answer.message ?? answer.Message ?? "no reason was given"}. May the function's role read it, and is it in that account?`;
    throw Object.assign(new Error(`${what}: ${why}`), { retryable: status >= 500 || type === "ThrottlingException" });
  }
}

/** aws4's types know no undefined token. */
const keys = ({ accessKeyId, secretAccessKey, sessionToken }: ReturnType<SecretOptions<string>["credentials"]>) => ({
  accessKeyId,
  secretAccessKey,
  ...(sessionToken === undefined ? {} : { sessionToken }),
});

function parse<Field extends string>(text: string, { arn, fields }: SecretOptions<Field>): Readonly<Record<Field, string>> {
  const value = parseJson(text) as Partial<Record<Field, unknown>>;
  const filled = fields.every((field) => typeof value[field] === "string" && value[field] !== "");
  if (filled) return value as Record<Field, string>;
  const wanted = fields.map((field) => JSON.stringify(field)).join(" and ");
  throw new Error(`aws: the secret ${arn} must be JSON with ${wanted}; put them in with: aws secretsmanager put-secret-value`);
}

/** {} for anything that is no object. */
function parseJson(text: string): object {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

async function post(url: URL, headers: Record<string, string>, body: string): Promise<{ status: number; text: string }> {
  // not fetch, whose first use costs 55 ms (tech-notes C); http for tests
  const { request } = await (url.protocol === "http:" ? import("node:http") : import("node:https"));
  return new Promise((resolve, reject) => {
    const call = request(url, { method: "POST", headers, signal: AbortSignal.timeout(PATIENCE_MS) }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(pieces).toString("utf8") }));
    });
    call.on("error", (cause) => reject(cause.name === "AbortError" || cause.name === "TimeoutError" ? new Error(`no answer in ${PATIENCE_MS} ms`) : cause));
    call.end(body);
  });
}
