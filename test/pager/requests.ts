import { createHmac, createSign, generateKeyPairSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type PagerOptions, type PagerRequest, pagerHandler } from "../../functions/pager/app.ts";
import type { Visit } from "../../functions/pager/source.ts";
import type { Page, WorkEvent } from "../../functions/triage/ports.ts";

/** Requests as the monitoring systems send them, and the door that they come to. */

const samples = fileURLToPath(new URL("samples/", import.meta.url));
export const NOW = Date.parse("2026-11-21T10:00:00Z");
export const TOPIC = "arn:aws:sns:eu-central-1:111122223333:harbour-alarms";
export const SECRETS = {
  signingSecret: "generic-secret-0123456789",
  pagerduty: "pagerduty-secret-0123456789",
  alertmanager: "alertmanager-token-0123456789",
  grafana: "grafana-secret-0123456789",
  opsgenie: "opsgenie-token-0123456789",
  cloudwatch: TOPIC,
};
export const SOURCES = ["pagerduty", "alertmanager", "grafana", "cloudwatch", "opsgenie", "generic"] as const;
export type SourceName = (typeof SOURCES)[number];

/** A sample, as bytes on the wire would be. */
export const sample = (source: SourceName, name: string): string => readFileSync(`${samples}${source}/${name}.json`, "utf8");
export const sampleNames = (source: SourceName): string[] =>
  readdirSync(`${samples}${source}`).flatMap((file) => (file.endsWith(".json") ? [file.slice(0, -5)] : []));
/** What the samples of CloudWatch are signed with. Its key is gone. */
export const certificate = readFileSync(`${samples}cloudwatch/certificate.pem`, "utf8");
export const expired = readFileSync(`${samples}cloudwatch/expired.pem`, "utf8");

const hmac = (secret: string, text: string): string => createHmac("sha256", secret).update(text).digest("hex");

/** Headers that prove who sent a body; of CloudWatch the body proves itself. */
export function proofOf(source: SourceName, body: string, at = NOW): Record<string, string> {
  const seconds = String(Math.floor(at / 1000));
  switch (source) {
    case "generic":
      return { "X-Netcheck-Timestamp": seconds, "X-Netcheck-Signature": `v1=${hmac(SECRETS.signingSecret, `${seconds}.${body}`)}` };
    case "pagerduty":
      return { "X-PagerDuty-Signature": `v1=${"0".repeat(64)},v1=${hmac(SECRETS.pagerduty, body)}` };
    case "grafana":
      return { "X-Grafana-Alerting-Signature": hmac(SECRETS.grafana, body) };
    case "alertmanager":
      return { authorization: `Bearer ${SECRETS.alertmanager}` };
    case "opsgenie":
      return { Authorization: `Basic ${Buffer.from(`netcheck:${SECRETS.opsgenie}`).toString("base64")}` };
    case "cloudwatch":
      return { "x-amz-sns-message-type": "Notification" };
  }
}

export function requestOf(source: SourceName, body: string, { headers = proofOf(source, body), type = "", base64 = false } = {}): PagerRequest {
  const contentType = type || (source === "cloudwatch" ? "text/plain; charset=UTF-8" : "application/json");
  return {
    headers: { "Content-Type": contentType, ...headers },
    body: base64 ? Buffer.from(body).toString("base64") : body,
    isBase64Encoded: base64,
    rawPath: source === "generic" ? "/pager" : `/pager/${source}`,
  };
}

/** The door, with all that went through it. */
export function door(change: Partial<PagerOptions> = {}) {
  const started: { name: string; page: Page }[] = [];
  const visited: string[] = [];
  const logged: string[] = [];
  const work = {
    start: async (name: string, event: WorkEvent) => {
      if (event.kind === "page") started.push({ name, page: event.page });
    },
    answer: async () => false,
  };
  const visit: Visit = async (url) => {
    visited.push(url);
    return certificate;
  };
  const log = (message: string, fields: Readonly<Record<string, unknown>>) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const handle = pagerHandler({ secrets: async () => SECRETS, work, now: () => NOW, visit, log, ...change });
  const send = async (request: PagerRequest): Promise<{ status: number; message: string }> => {
    const { statusCode, body } = await handle(request);
    return { status: statusCode, message: (JSON.parse(body) as { message: string }).message };
  };
  return { started, visited, logged, handle, send };
}

/** SNS with a key of its own, for messages that no sample has. */
export function ownSns() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return {
    visit: async () => publicKey.export({ type: "spki", format: "pem" }).toString(),
    /** A sample, changed and signed anew. */
    signed(name: string, change: Record<string, string>): string {
      const message = { ...(JSON.parse(sample("cloudwatch", name)) as Record<string, string>), ...change };
      const names =
        message["Type"] === "Notification"
          ? ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
          : ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
      const sign = createSign(message["SignatureVersion"] === "1" ? "RSA-SHA1" : "RSA-SHA256");
      for (const field of names) if (message[field] !== undefined) sign.update(`${field}\n${message[field]}\n`);
      return JSON.stringify({ ...message, Signature: sign.sign(privateKey, "base64") });
    },
  };
}
