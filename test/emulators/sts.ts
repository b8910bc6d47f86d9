import { randomBytes, randomUUID } from "node:crypto";
import { isSigned, listen } from "./http.ts";

/** A role that may be assumed. */
export interface StsRole {
  /** What whoever assumes it must know; absent if it asks for none. */
  externalId?: string;
  /** Sessions last this long in seconds, whatever was asked for. Default: as asked for. */
  seconds?: number;
}

export interface StsEmulator {
  /** For `AWS_ENDPOINT_URL_STS`. */
  url: string;
  /** By ARN; may be changed at any time. */
  roles: Map<string, StsRole>;
  /** Every AssumeRole in order, with the access key that it was given. */
  assumed: { role: string; session: string; externalId: string | undefined; accessKey: string }[];
  /** The next call is refused with this. */
  fail(error: { code: string; message: string; status?: number }): void;
  close(): Promise<void>;
}

/** AWS STS in one process: AssumeRole over its own wire protocol (a form in, XML out). */
export async function startSts(roles: Readonly<Record<string, StsRole>> = {}): Promise<StsEmulator> {
  const known = new Map(Object.entries(roles));
  const assumed: StsEmulator["assumed"] = [];
  const failures: { code: string; message: string; status?: number }[] = [];
  const server = await listen((request, body, response) => {
    const answer = (status: number, content: string): void => {
      response.writeHead(status, { "content-type": "text/xml" }).end(content);
    };
    const refuse = (status: number, code: string, message: string) =>
      answer(
        status,
        `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>${randomUUID()}</RequestId></ErrorResponse>`,
      );
    if (!isSigned(request, "sts")) return refuse(403, "MissingAuthenticationToken", "Request is missing Authentication Token");
    const form = new URLSearchParams(body.toString());
    if (form.get("Action") !== "AssumeRole") return refuse(400, "InvalidAction", `Could not find operation ${form.get("Action")}`);
    const failure = failures.shift();
    if (failure !== undefined) return refuse(failure.status ?? 400, failure.code, failure.message);
    const arn = form.get("RoleArn") ?? "";
    const role = known.get(arn);
    const externalId = form.get("ExternalId") ?? undefined;
    if (role === undefined || (role.externalId !== undefined && role.externalId !== externalId))
      return refuse(403, "AccessDenied", `User: arn:aws:iam::123456789012:role/netcheck is not authorized to perform: sts:AssumeRole on resource: ${arn}`);
    const accessKey = `ASIA${randomBytes(8).toString("hex").toUpperCase()}`;
    const session = form.get("RoleSessionName") ?? "";
    assumed.push({ role: arn, session, externalId, accessKey });
    const ends = new Date(Date.now() + (role.seconds ?? Number(form.get("DurationSeconds") ?? 3600)) * 1000);
    answer(
      200,
      `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><AssumedRoleUser><AssumedRoleId>AROAEXAMPLE:${session}</AssumedRoleId><Arn>${arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/")}/${session}</Arn></AssumedRoleUser><Credentials><AccessKeyId>${accessKey}</AccessKeyId><SecretAccessKey>secret</SecretAccessKey><SessionToken>token</SessionToken><Expiration>${ends.toISOString()}</Expiration></Credentials></AssumeRoleResult><ResponseMetadata><RequestId>${randomUUID()}</RequestId></ResponseMetadata></AssumeRoleResponse>`,
    );
  });
  return { url: server.url, close: server.close, roles: known, assumed, fail: (error) => failures.push(error) };
}
