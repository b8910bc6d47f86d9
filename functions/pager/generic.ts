import { createHmac, timingSafeEqual } from "node:crypto";
import { z } from "zod/mini";
import type { Page } from "../triage/ports.ts";

/** Seconds that a request may be old, and a clock may be wrong. */
const WINDOW_SECONDS = 300;
const SIGNATURE = /^v1=([0-9a-f]{64})$/;

/** What any monitoring system can send: which nodes, and why. Other fields are allowed and ignored. */
const Body = z.object({
  /** Names the alert; the same id is the same triage, however often it comes. */
  id: z.string().check(z.regex(/^[\w.:/@-]{1,200}$/)),
  title: z.string().check(z.minLength(1), z.maxLength(500)),
  targets: z.array(z.string().check(z.regex(/^[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$/))).check(z.minLength(1), z.maxLength(50)),
});

/** True if `signature` is `v1=` and the hex HMAC-SHA256 of `<timestamp>.<body>`, and the timestamp (seconds) is recent. */
export function isSigned(secret: string, headers: Readonly<Record<string, string | undefined>>, body: string, nowMs: number): boolean {
  const timestamp = headers["x-netcheck-timestamp"] ?? "";
  const given = SIGNATURE.exec(headers["x-netcheck-signature"] ?? "")?.[1];
  if (given === undefined || !/^\d{1,12}$/.test(timestamp) || Math.abs(nowMs / 1000 - Number(timestamp)) > WINDOW_SECONDS) return false;
  const expected = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest();
  return timingSafeEqual(expected, Buffer.from(given, "hex"));
}

/** Reads a page; a sentence for whoever sent it if it is none. */
export function readPage(body: string): Page | { readonly problem: string } {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return { problem: "the body is not JSON" };
  }
  const read = Body.safeParse(value);
  if (!read.success) return { problem: read.error.issues.map(({ path, message }) => `${path.join(".")}: ${message}`).join("; ") };
  const { id, title, targets } = read.data;
  return { source: "generic", id, title, targets: [...new Set(targets)] };
}
