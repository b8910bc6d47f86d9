import { createHash, createHmac } from "node:crypto";

/** AWS credentials, as every provider of the SDK gives them. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string | undefined;
}

/** Seconds that the signed address is good for at STS; the token is accepted for 15 minutes from its date (EKS's own limit). */
const SIGNED_SECONDS = 60;
/** A token is used for so long: less than the 15 minutes, so that it never ends on its way. */
const REUSED_MS = 13 * 60_000;

const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
/** As Signature Version 4 wants it: everything but the unreserved characters. */
const encode = (text: string): string => encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * A bearer token for an EKS cluster: a GetCallerIdentity request to the region's STS, signed (Signature Version 4, in the query) and never sent by us. The
 * cluster's name is a signed header, so that the token is good for this cluster alone.
 * @param region such as "eu-central-1"
 */
export function eksToken(cluster: string, region: string, credentials: AwsCredentials, now: Date): string {
  const host = `sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
  const time = now.toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const scope = `${time.slice(0, 8)}/${region}/sts/aws4_request`;
  const query = Object.entries({
    Action: "GetCallerIdentity",
    Version: "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": `${credentials.accessKeyId}/${scope}`,
    "X-Amz-Date": time,
    "X-Amz-Expires": String(SIGNED_SECONDS),
    ...(credentials.sessionToken === undefined ? {} : { "X-Amz-Security-Token": credentials.sessionToken }),
    "X-Amz-SignedHeaders": "host;x-k8s-aws-id",
  })
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .join("&");
  const request = ["GET", "/", query, `host:${host}`, `x-k8s-aws-id:${cluster}`, "", "host;x-k8s-aws-id", sha256("")].join("\n");
  const key = [time.slice(0, 8), region, "sts", "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${credentials.secretAccessKey}`);
  const signature = hmac(key, ["AWS4-HMAC-SHA256", time, scope, sha256(request)].join("\n")).toString("hex");
  const url = `https://${host}/?${query}&X-Amz-Signature=${signature}`;
  return `k8s-aws-v1.${Buffer.from(url).toString("base64url")}`;
}

/** {@link eksToken}, made anew when the last one is 13 minutes old or `forget` was called. */
export function eksTokens(
  cluster: string,
  region: string,
  credentials: () => Promise<AwsCredentials>,
  now: () => Date = () => new Date(),
): { token: () => Promise<string>; forget: () => void } {
  let last: { token: string; at: number } | undefined;
  return {
    async token() {
      const at = now();
      if (last === undefined || at.getTime() - last.at >= REUSED_MS) last = { token: eksToken(cluster, region, await credentials(), at), at: at.getTime() };
      return last.token;
    },
    forget: () => {
      last = undefined;
    },
  };
}
