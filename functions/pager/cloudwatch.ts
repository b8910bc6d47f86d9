import { createPublicKey, type KeyObject, verify, X509Certificate } from "node:crypto";
import { fields, keyed, labels, list, pageOf, parseJson, severity, text, time } from "./read.ts";
import type { Delivery, Reading, Source, Visit } from "./source.ts";

const TOPIC = /^arn:(aws|aws-cn|aws-us-gov):sns:([a-z0-9-]{5,30}):\d{12}:[\w.-]{1,256}$/;
/** Milliseconds: SNS tries for an hour (its default for HTTPS). */
const TOO_OLD = 60 * 60_000;
const EARLY = 5 * 60_000;
/** Signing keys in memory: SNS has one per region at a time. And fetches in vain that are remembered, so that strangers cannot have us fetch without end. */
const MAX_KEYS = 20;

/** Words that say how bad an alarm is, and nothing else: "high" may be about the metric. */
const SEVERITY = /\b(?:critical|emergency|fatal|warning|info|p-?[1-5]|sev-?[0-5])\b/i;

/** What is signed, by the kind of message: names and values, each on a line of its own. `Subject` only if there is one. */
const SIGNED = new Map([
  ["Notification", ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]],
  ["SubscriptionConfirmation", ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]],
  ["UnsubscribeConfirmation", ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]],
]);

/**
 * CloudWatch's alarms through SNS. The field of the secret holds no secret but the ARNs of the topics that are taken. What SNS signs is checked with the key
 * that it publishes, which is fetched once, from the SNS of the topic's own region and nowhere else.
 */
export function cloudwatch(): Source {
  const keys = new Map<string, Promise<KeyObject>>();
  return {
    name: "cloudwatch",
    field: "cloudwatch",
    proof:
      "this is not signed by SNS for a topic whose ARN stands in the field cloudwatch of the pager's secret (raw message delivery must be off), or it is more than an hour old",
    types: ["text/plain"],
    async authentic({ now, body }, topics, visit) {
      // there is nothing else to go by: the signature is in the message, over its fields
      const message = fields(parseJson(body));
      const topic = TOPIC.exec(text(message["TopicArn"], 400));
      if (topic === null || !topics.includes(topic[0])) return false;
      const at = Date.parse(text(message["Timestamp"], 64));
      if (!(now - at <= TOO_OLD && at - now <= EARLY)) return false;
      const url = text(message["SigningCertURL"], 300);
      if (!isSns(url, topic) || !/^\/SimpleNotificationService-[0-9a-f]{32}\.pem$/.test(new URL(url).pathname)) return false;
      const names = SIGNED.get(text(message["Type"], 50));
      const algorithm = { "1": "sha1", "2": "sha256" }[text(message["SignatureVersion"], 5)];
      if (names === undefined || algorithm === undefined) return false;
      const lines = names.filter((name) => typeof message[name] === "string").map((name) => `${name}\n${message[name] as string}\n`);
      return verify(algorithm, Buffer.from(lines.join("")), await keyAt(url, keys, visit, now), Buffer.from(text(message["Signature"], 2000), "base64"));
    },
    read(value, delivery): Reading {
      const message = fields(value);
      if (message["Type"] === "UnsubscribeConfirmation")
        return { ignored: "the topic sends no alarms here any more; subscribe it again if that was a mistake", notable: true };
      if (message["Type"] === "SubscriptionConfirmation") {
        const url = text(message["SubscribeURL"], 2000);
        const topic = TOPIC.exec(text(message["TopicArn"], 400));
        if (topic === null || !isSns(url, topic) || new URL(url).searchParams.get("Action") !== "ConfirmSubscription")
          return { problem: "the address that would confirm the subscription is not one of SNS" };
        return { visit: url };
      }
      return readAlarm(text(message["Message"], 300_000), text(message["MessageId"], 100), delivery);
    },
  };
}

/** An https address of the SNS that the topic lives in. */
function isSns(url: string, [, partition, region]: RegExpExecArray): boolean {
  const host = `sns.${region as string}.amazonaws.com${partition === "aws-cn" ? ".cn" : ""}`;
  return URL.canParse(url) && new URL(url).origin === `https://${host}` && !/[@\s]/.test(url.slice(0, url.indexOf("/", 8) + 1));
}

/** The key at an address; an address without a valid one throws, and is not asked again for a while. */
async function keyAt(url: string, keys: Map<string, Promise<KeyObject>>, visit: Visit, now: number): Promise<KeyObject> {
  const known = keys.get(url);
  if (known !== undefined) return known;
  const found = visit(url).then((pem) => {
    // what stands at that address is SNS's, because of where it stands; but not for ever
    if (pem.includes("BEGIN CERTIFICATE") && Date.parse(new X509Certificate(pem).validTo) < now) throw new Error("the certificate has expired");
    return createPublicKey(pem);
  });
  if (keys.size >= MAX_KEYS) keys.delete(keys.keys().next().value as string);
  keys.set(url, found);
  // a lost connection is no verdict on the address
  found.catch((error: Error) => {
    if ((error as { retryable?: boolean }).retryable === true) keys.delete(url);
  });
  return found;
}

function readAlarm(body: string, id: string, { now }: Delivery): Reading {
  const alarm = fields(parseJson(body));
  const name = text(alarm["AlarmName"], 300);
  const arn = text(alarm["AlarmArn"], 600) || `${text(alarm["AWSAccountId"], 20)}/${text(alarm["Region"], 50)}/${name}`;
  const state = text(alarm["NewStateValue"], 30);
  if (name === "" || state === "") return { ignored: "the message is no alarm of CloudWatch: it is no JSON with AlarmName and NewStateValue" };
  if (state !== "ALARM" && state !== "OK") return { ignored: `nothing follows from ${state}: nobody knows whether something is wrong` };
  const trigger = fields(alarm["Trigger"]);
  const words = text(alarm["AlarmDescription"], 300).trim().split("\n")[0] ?? "";
  const region = /^arn:aws[a-z-]*:cloudwatch:([a-z0-9-]+):/.exec(arn)?.[1];
  const console = `https://${region ?? ""}.console.aws.amazon.com/cloudwatch/home?region=${region ?? ""}#alarmsV2:alarm/${encodeURIComponent(name)}`;
  const about = {
    AlarmName: name,
    AWSAccountId: alarm["AWSAccountId"],
    Region: region ?? alarm["Region"],
    MetricName: trigger["MetricName"],
    Namespace: trigger["Namespace"],
    NewStateReason: alarm["NewStateReason"],
  };
  return {
    page: pageOf("cloudwatch", id, [
      {
        key: keyed(arn),
        status: state === "ALARM" ? "firing" : "resolved",
        // an alarm has none of its own: people write it into the name or the description
        severity: severity(SEVERITY.exec(`${name.replaceAll(/[_./]/g, " ")} ${words}`)?.[0] ?? ""),
        title: words === "" ? name : `${name}: ${words}`,
        labels: labels(dimensionsOf(trigger), about),
        ref: keyed(arn),
        ...(region === undefined ? {} : { url: console }),
        at: time(alarm["StateChangeTime"], now),
      },
    ]),
  };
}

/** Dimensions of an alarm on a metric, or of the metrics that an expression is made of: of two with one name the first. */
function dimensionsOf(trigger: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const metrics = list(trigger["Metrics"]).map((one) => fields(fields(fields(one)["MetricStat"])["Metric"]));
  const pairs = [trigger, ...metrics].flatMap((metric) => list(metric["Dimensions"]).map(fields));
  return Object.fromEntries(pairs.map((pair) => [text(pair["name"] ?? pair["Name"], 100), pair["value"] ?? pair["Value"]] as const).toReversed());
}
