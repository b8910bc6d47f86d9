// The least that an acknowledging Lambda can be: reads the secret, checks Slack's signature, answers. What ours is compared with.
import { createHmac, timingSafeEqual } from "node:crypto";
import { request } from "node:http";
import aws4 from "aws4";

let secret;

export async function handler({ headers, body }, _context) {
  secret ??= await readSecret();
  const timestamp = headers["x-slack-request-timestamp"];
  const expected = Buffer.from(`v0=${createHmac("sha256", secret).update(`v0:${timestamp}:${body}`).digest("hex")}`);
  const given = Buffer.from(headers["x-slack-signature"] ?? "");
  const fresh = Math.abs(Date.now() / 1000 - Number(timestamp)) < 300;
  if (!fresh || given.length !== expected.length || !timingSafeEqual(given, expected)) return { statusCode: 401, body: "" };
  return { statusCode: 200, body: "" };
}

function readSecret() {
  const url = new URL(process.env.AWS_ENDPOINT_URL_SECRETS_MANAGER);
  const body = JSON.stringify({ SecretId: process.env.SLACK_SECRET_ARN });
  const headers = { "content-type": "application/x-amz-json-1.1", "x-amz-target": "secretsmanager.GetSecretValue" };
  const signed = aws4.sign({ service: "secretsmanager", region: process.env.AWS_REGION, method: "POST", host: url.host, path: "/", headers, body });
  return new Promise((resolve, reject) => {
    request(url, { method: "POST", headers: signed.headers }, (response) => {
      let text = "";
      response.on("data", (piece) => {
        text += piece;
      });
      response.on("end", () => resolve(JSON.parse(JSON.parse(text).SecretString).signingSecret));
    })
      .on("error", reject)
      .end(body);
  });
}
