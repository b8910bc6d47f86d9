import { isSigned, listen } from "./http.ts";

export interface SecretsEmulator {
  /** For `AWS_ENDPOINT_URL_SECRETS_MANAGER`. */
  readonly url: string;
  /** Number of requests, refused ones included. */
  readonly requests: number;
  /** Puts a value in, as `put-secret-value` does. */
  put(arn: string, value: string): void;
  /** The next requests are refused so; undefined ends it. "hang": nothing is ever answered. */
  fail(fault: { readonly type: string; readonly status: number } | "hang" | undefined): void;
  close(): Promise<void>;
}

/** Secrets Manager's GetSecretValue over its wire format (JSON 1.1). */
export async function startSecrets(): Promise<SecretsEmulator> {
  const values = new Map<string, string>();
  let fault: Parameters<SecretsEmulator["fail"]>[0];
  let requests = 0;
  const { url, close } = await listen((request, body, response) => {
    requests += 1;
    const refuse = (status: number, type: string, message: string) => {
      response.writeHead(status, { "content-type": "application/x-amz-json-1.1" }).end(JSON.stringify({ __type: type, message }));
    };
    if (fault === "hang") return;
    if (fault !== undefined) return refuse(fault.status, fault.type, "the emulator was told to fail");
    if (!isSigned(request, "secretsmanager")) return refuse(400, "MissingAuthenticationTokenException", "Missing Authentication Token");
    if (request.headers["x-amz-target"] !== "secretsmanager.GetSecretValue") return refuse(400, "UnknownOperationException", "");
    const { SecretId = "" } = JSON.parse(body.toString("utf8")) as { SecretId?: string };
    const SecretString = values.get(SecretId);
    if (SecretString === undefined) return refuse(400, "ResourceNotFoundException", "Secrets Manager can't find the specified secret.");
    response
      .writeHead(200, { "content-type": "application/x-amz-json-1.1" })
      .end(JSON.stringify({ ARN: SecretId, Name: "netcheck/slack", SecretString, VersionStages: ["AWSCURRENT"] }));
  });
  return {
    url,
    close,
    get requests() {
      return requests;
    },
    put: (arn, value) => void values.set(arn, value),
    fail: (next) => {
      fault = next;
    },
  };
}
