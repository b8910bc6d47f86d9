import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import type { Visit } from "../pager/source.ts";

/** What monitoring systems send, made up and signed here, so that pages can be tried without one. */

/** The sources of pages, and what each of them can say of an alert. */
export const SAMPLES = {
  pagerduty: ["firing", "acknowledged", "resolved"],
  alertmanager: ["firing", "resolved"],
  grafana: ["firing", "resolved"],
  cloudwatch: ["firing", "resolved"],
  opsgenie: ["firing", "acknowledged", "resolved"],
  generic: ["firing", "acknowledged", "resolved"],
} as const satisfies Readonly<Record<string, readonly SampleStatus[]>>;

export type SampleSource = keyof typeof SAMPLES;
export type SampleStatus = "firing" | "acknowledged" | "resolved";

/** The nodes of a storm: many alerts in one delivery, as a group of Alertmanager or Grafana has them. */
export const STORM = "storm";
const STORM_NODES = ["node1", "node2", "node4", "node5", "healthy1"] as const;
const STORM_ALERTS = ["NodeNetworkErrors", "PodsNotReady", "ServiceUnreachable", "DnsSlow", "TcpRetransmits", "ProbeFailed", "NodeNotReady"] as const;
/** 37 alerts, 5 nodes. */
const STORM_SIZE = 37;

/** A page as it is to be sent. `forged`: with a proof that does not fit. */
export interface Sample {
  readonly source: SampleSource;
  readonly status: SampleStatus;
  /** A node's name, or {@link STORM}. */
  readonly about: string;
  readonly forged: boolean;
}

/** What the local page needs to offer samples. */
export interface SampleOffer {
  /** Id of the channel where pages are answered. */
  readonly channel: string;
  /** `grouped`: several alerts in one page. */
  readonly sources: readonly { readonly name: SampleSource; readonly statuses: readonly SampleStatus[]; readonly grouped: boolean }[];
  readonly about: readonly { readonly value: string; readonly text: string; readonly grouped: boolean }[];
}

/** Offers samples about some nodes, and a storm if its nodes are among them. @param channel where pages are answered */
export function offerSamples(channel: string, names: readonly string[]): SampleOffer {
  const storm = STORM_NODES.every((name) => names.includes(name));
  const nodes = names.filter((name) => !name.startsWith("green-") || name === "green-7").slice(0, 30);
  return {
    channel,
    sources: Object.entries(SAMPLES).map(([name, statuses]) => ({
      name: name as SampleSource,
      statuses,
      grouped: name === "alertmanager" || name === "grafana",
    })),
    about: [
      ...nodes.map((name) => ({ value: name, text: name, grouped: false })),
      ...(storm ? [{ value: STORM, text: `A storm: ${STORM_SIZE} alerts, ${STORM_NODES.length} nodes`, grouped: true }] : []),
    ],
  };
}

/** A request that was sent and its answer, as they were on the wire. */
export interface SentSample {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** HTTP status; 0 if there was no answer, with the reason in `answer`. */
  readonly status: number;
  readonly answer: string;
}

const TOPIC = "arn:aws:sns:eu-central-1:123456789012:alarms";
const CERTIFICATE = `https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-${"0".repeat(32)}.pem`;

/** Signs and sends sample pages, and knows what the pager has to know to check them. */
export class SamplePages {
  readonly #secret: string;
  readonly #now: () => number;
  /** In the place of SNS's own key. */
  readonly #key = generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });

  /** @param secret of this workspace; each source's own is derived from it */
  constructor(secret: string, now: () => number) {
    this.#secret = secret;
    this.#now = now;
  }

  /** The pager's secret, as in production: field → what a source proves itself with. */
  get secrets(): Readonly<Record<string, string>> {
    const named = ["pagerduty", "alertmanager", "grafana", "opsgenie"].map((source) => [source, this.#secretOf(source)] as const);
    return { ...Object.fromEntries(named), signingSecret: this.#secretOf("generic"), cloudwatch: TOPIC };
  }

  /** Instead of asking SNS: nothing leaves this machine. */
  readonly visit: Visit = async (url) => {
    if (url !== CERTIFICATE) throw new Error("local mode visits no addresses");
    return createPublicKey(this.#key.publicKey).export({ type: "spki", format: "pem" }).toString();
  };

  /** Sends a page to a pager over HTTP. Never throws. @param url where the pager is: "http://127.0.0.1:3000" */
  async send(url: string, sample: Sample): Promise<SentSample> {
    const path = `/pager/${sample.source}`;
    const { headers, body } = this.make(sample);
    try {
      const response = await fetch(url + path, { method: "POST", headers, body, redirect: "error", signal: AbortSignal.timeout(10_000) });
      return { path, headers, body, status: response.status, answer: await response.text() };
    } catch (error) {
      return { path, headers, body, status: 0, answer: (error as Error).message };
    }
  }

  /** A page as its source would send it now. */
  make({ source, status, about, forged }: Sample): { readonly headers: Readonly<Record<string, string>>; readonly body: string } {
    const now = this.#now();
    const delivery = randomBytes(8).toString("hex");
    const value = BODIES[source](status, about, new Date(now).toISOString(), delivery);
    const secret = forged ? "a-secret-that-is-not-ours" : this.#secretOf(source);
    const hmac = (...parts: readonly string[]): string => createHmac("sha256", secret).update(parts.join("")).digest("hex");
    const type = { "content-type": source === "cloudwatch" ? "text/plain; charset=UTF-8" : "application/json" };
    if (source === "cloudwatch") {
      const message = value as Readonly<Record<string, string>>;
      const names = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"];
      const signed = names.map((name) => `${name}\n${message[name] ?? ""}\n`).join("");
      const signature = sign("sha256", Buffer.from(forged ? `${signed}.` : signed), createPrivateKey(this.#key.privateKey)).toString("base64");
      return {
        headers: { ...type, "x-amz-sns-message-type": "Notification" },
        body: JSON.stringify({ ...message, SignatureVersion: "2", Signature: signature, SigningCertURL: CERTIFICATE }),
      };
    }
    const body = JSON.stringify(value);
    if (source === "pagerduty") return { headers: { ...type, "x-pagerduty-signature": `v1=${hmac(body)}` }, body };
    const seconds = String(Math.floor(now / 1000));
    if (source === "generic") return { headers: { ...type, "x-netcheck-timestamp": seconds, "x-netcheck-signature": `v1=${hmac(seconds, ".", body)}` }, body };
    if (source === "grafana")
      return { headers: { ...type, "x-grafana-alerting-timestamp": seconds, "x-grafana-alerting-signature": hmac(seconds, ":", body) }, body };
    return { headers: { ...type, authorization: `Bearer ${secret}` }, body };
  }

  #secretOf(source: string): string {
    return createHmac("sha256", this.#secret).update(`pager ${source}`).digest("hex");
  }
}

type Body = (status: SampleStatus, about: string, at: string, delivery: string) => unknown;

/** The bodies, as the systems' documents have them, with what netcheck reads and a little of what it does not. */
const BODIES: Readonly<Record<SampleSource, Body>> = {
  pagerduty: (status, about, at, delivery) => ({
    event: {
      id: `01LOCAL${delivery.toUpperCase()}`,
      event_type: { firing: "incident.triggered", acknowledged: "incident.acknowledged", resolved: "incident.resolved" }[status],
      resource_type: "incident",
      occurred_at: at,
      agent: { id: "PLOCAL1", type: "user_reference", summary: "Alice Moreau" },
      data: {
        id: `QLOCAL${about.toUpperCase().replaceAll(/[^A-Z0-9]/g, "")}`,
        type: "incident",
        html_url: `https://example.pagerduty.com/incidents/QLOCAL${about.toUpperCase().replaceAll(/[^A-Z0-9]/g, "")}`,
        number: 4217,
        status: { firing: "triggered", acknowledged: "acknowledged", resolved: "resolved" }[status],
        title: `Connections through ${about} time out`,
        service: { id: "PF9KMXH", type: "service_reference", summary: "Checkout" },
        urgency: "high",
        priority: { id: "PSO75BM", type: "priority_reference", summary: "P1" },
        body: { details: { node: about, probe: "tcp-443" } },
      },
    },
  }),
  alertmanager: (status, about, at) => ({
    version: "4",
    groupKey: '{}:{alertname="NodeNetworkErrors"}',
    truncatedAlerts: 0,
    status: groupStatus(status),
    receiver: "netcheck",
    groupLabels: about === STORM ? {} : { alertname: "NodeNetworkErrors" },
    commonLabels: { cluster: "demo", severity: "critical" },
    commonAnnotations: {},
    externalURL: "http://alertmanager.example:9093",
    alerts: alertsOf(status, about, at).map((alert) => ({ ...alert, generatorURL: "http://prometheus.example:9090/graph" })),
  }),
  grafana: (status, about, at) => ({
    receiver: "netcheck",
    status: groupStatus(status),
    orgId: 1,
    groupKey: "{}:{}",
    title: `[${groupStatus(status).toUpperCase()}] Node network`,
    state: status === "firing" ? "alerting" : "ok",
    alerts: alertsOf(status, about, at).map((alert) => ({
      ...alert,
      labels: { ...alert.labels, __alert_rule_uid__: "de1f0c3a", grafana_folder: "Nodes" },
      panelURL: "https://grafana.example/d/nodes?viewPanel=4",
    })),
  }),
  cloudwatch: (status, about, at, delivery) => ({
    Type: "Notification",
    MessageId: `${delivery.slice(0, 8)}-${delivery.slice(8, 12)}-5000-8000-${delivery.slice(4)}`,
    TopicArn: TOPIC,
    Subject: `${status === "firing" ? "ALARM" : "OK"}: "critical ${about} unreachable" in EU (Frankfurt)`,
    Message: JSON.stringify({
      AlarmName: `critical ${about} unreachable`,
      AlarmDescription: `Health checks of the target ${about} fail`,
      AWSAccountId: "123456789012",
      NewStateValue: status === "firing" ? "ALARM" : "OK",
      NewStateReason: "Threshold Crossed: 3 datapoints were greater than the threshold (0.0).",
      StateChangeTime: at,
      Region: "EU (Frankfurt)",
      AlarmArn: `arn:aws:cloudwatch:eu-central-1:123456789012:alarm:critical ${about} unreachable`,
      OldStateValue: status === "firing" ? "OK" : "ALARM",
      Trigger: { MetricName: "StatusCheckFailed", Namespace: "AWS/EC2", Dimensions: [{ name: "InstanceId", value: about }] },
    }),
    Timestamp: at,
  }),
  opsgenie: (status, about, at) => ({
    action: { firing: "Create", acknowledged: "Acknowledge", resolved: "Close" }[status],
    integrationName: "netcheck",
    source: { name: "web", type: "API" },
    alert: {
      alertId: `local-${about}-1763690000000`,
      message: `Packets are lost on ${about}`,
      tinyId: "1791",
      alias: `packets-${about}`,
      entity: about,
      priority: "P1",
      tags: ["network"],
      details: { node: about },
      updatedAt: Date.parse(at),
    },
  }),
  generic: (status, about, at, delivery) => ({
    id: `probe-${about}-${delivery}`,
    key: `probe-${about}`,
    title: `The probe of ${about} fails`,
    status,
    severity: "critical",
    targets: [about],
    labels: { probe: "tcp-443" },
    at,
  }),
};

const groupStatus = (status: SampleStatus): "firing" | "resolved" => (status === "firing" ? "firing" : "resolved");

/** The alerts of a group: one, or a storm. */
function alertsOf(status: SampleStatus, about: string, at: string) {
  const one = (node: string, alertname: string, index: number) => ({
    status: groupStatus(status),
    labels: { alertname, severity: "critical", cluster: "demo", node, ...(index === 0 ? {} : { check: String(index) }) },
    annotations: { summary: `${alertname} on ${node}` },
    startsAt: at,
    endsAt: status === "firing" ? "0001-01-01T00:00:00Z" : at,
    fingerprint: createHmac("sha256", "fingerprint").update(`${alertname} ${node} ${index}`).digest("hex").slice(0, 16),
  });
  if (about !== STORM) return [one(about, "NodeNetworkErrors", 0)];
  return Array.from({ length: STORM_SIZE }, (_, index) =>
    one(STORM_NODES[index % STORM_NODES.length] ?? "node1", STORM_ALERTS[Math.floor(index / STORM_NODES.length) % STORM_ALERTS.length] ?? "", index + 1),
  );
}
