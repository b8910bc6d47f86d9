// The least that an acknowledging Lambda can be: checks Slack's signature, answers. What ours is compared with.
import { createHmac, timingSafeEqual } from "node:crypto";

export async function handler({ headers, body }, _context) {
  const timestamp = headers["x-slack-request-timestamp"];
  const expected = Buffer.from(`v0=${createHmac("sha256", process.env.SLACK_SIGNING_SECRET).update(`v0:${timestamp}:${body}`).digest("hex")}`);
  const given = Buffer.from(headers["x-slack-signature"] ?? "");
  const fresh = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
  if (!fresh || given.length !== expected.length || !timingSafeEqual(given, expected)) return { statusCode: 401, body: "" };
  return { statusCode: 200, body: "" };
}
