import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import type { Delivery } from "./source.ts";

/** Seconds that a signed time may differ from ours: as Slack, PagerDuty's and Grafana's own documents have it. */
const WINDOW_SECONDS = 300;

/** True if `given` is the hex HMAC-SHA256 of the parts under one of the secrets. */
export function isHmac(given: string, secrets: readonly string[], ...parts: readonly (string | Buffer)[]): boolean {
  if (!/^[0-9a-f]{64}$/.test(given)) return false;
  const digest = Buffer.from(given, "hex");
  return secrets
    .map((secret) => {
      const hmac = createHmac("sha256", secret);
      for (const part of parts) hmac.update(part);
      return timingSafeEqual(hmac.digest(), digest);
    })
    .includes(true);
}

/** True if a timestamp in seconds is about now. */
export const isRecent = (timestamp: string, now: number): boolean => /^\d{1,12}$/.test(timestamp) && Math.abs(now / 1000 - Number(timestamp)) <= WINDOW_SECONDS;

/** True if the request has one of the secrets in its Authorization header: as a bearer token, or as the password of Basic, whatever the user is called. */
export function hasToken({ headers }: Pick<Delivery, "headers">, secrets: readonly string[]): boolean {
  const [, scheme = "", value = ""] = /^(\w+) +(\S{1,2000}) *$/.exec(headers["authorization"] ?? "") ?? [];
  const given =
    scheme.toLowerCase() === "basic"
      ? Buffer.from(value, "base64")
          .toString("utf8")
          .replace(/^[^:]*:/, "")
      : value;
  if (!["basic", "bearer"].includes(scheme.toLowerCase())) return false;
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return secrets.map((secret) => timingSafeEqual(hash(secret), hash(given))).includes(true);
}
