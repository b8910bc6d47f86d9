import { expect, test } from "vitest";
import { namesOf } from "../../functions/triage/page-targets.ts";
import { door, requestOf, SOURCES, type SourceName, sample, sampleNames } from "./requests.ts";

/** What each system sends, in its documented form, and what becomes of it: key, status, severity, title, and the nodes that are found without any configuration. */

const EXPECTED: Record<string, unknown[][] | string> = {
  "pagerduty/triggered": [["Q2HARBOUR1", "firing", "critical", "Pods on node web-3 cannot reach the cluster network", []]],
  "pagerduty/acknowledged": [["Q2HARBOUR1", "acknowledged", "critical", "Pods on node web-3 cannot reach the cluster network", []]],
  "pagerduty/resolved": [["Q2HARBOUR1", "resolved", "critical", "Pods on node web-3 cannot reach the cluster network", []]],
  "pagerduty/annotated": "ignored: nothing follows from incident.annotated",
  "pagerduty/ping": "ignored: nothing follows from pagey.ping",
  "alertmanager/firing-group": [
    ["9f2b6c0d4e1a7788", "firing", "critical", "NodeNetworkInterfaceDropping: web-3 drops packets on eth0", ["web-3"]],
    ["1c0ffee0deadbeef", "firing", "critical", "NodeNetworkInterfaceDropping: web-4 drops packets on eth0", ["web-4"]],
    ["77aa66bb55cc44dd", "firing", "warning", "NodeNetworkInterfaceDropping: 10.20.3.9 drops packets on eth1", ["10.20.3.9"]],
  ],
  // what fires comes first
  "alertmanager/partly-resolved": [
    ["1c0ffee0deadbeef", "firing", "critical", "NodeNetworkInterfaceDropping: web-4 drops packets on eth0", ["web-4"]],
    ["9f2b6c0d4e1a7788", "resolved", "critical", "NodeNetworkInterfaceDropping: web-3 drops packets on eth0", ["web-3"]],
  ],
  "alertmanager/truncated": [["9f2b6c0d4e1a7788", "firing", "critical", "NodeNetworkInterfaceDropping: web-3 drops packets on eth0", ["web-3"]]],
  "grafana/firing": [["5d41402abc4b2a76", "firing", "warning", "Conntrack table nearly full: conntrack on web-3 is 96 % full", ["web-3"]]],
  "grafana/resolved": [["5d41402abc4b2a76", "resolved", "warning", "Conntrack table nearly full: conntrack on web-3 is 96 % full", ["web-3"]]],
  "cloudwatch/alarm": [
    [
      "arn:aws:cloudwatch:eu-central-1:111122223333:alarm:web-3-ena-allowance-exceeded",
      "firing",
      "critical",
      "web-3-ena-allowance-exceeded: ENA drops packets of web-3 (SEV2)",
      ["i-0123456789abcdef0"],
    ],
  ],
  "cloudwatch/ok": [
    [
      "arn:aws:cloudwatch:eu-central-1:111122223333:alarm:web-3-ena-allowance-exceeded",
      "resolved",
      "critical",
      "web-3-ena-allowance-exceeded: ENA drops packets of web-3 (SEV2)",
      ["i-0123456789abcdef0"],
    ],
  ],
  "cloudwatch/metric-math": [
    ["arn:aws:cloudwatch:eu-central-1:111122223333:alarm:linklocal-share", "firing", "warning", "linklocal-share", ["i-0fedcba9876543210"]],
  ],
  "cloudwatch/insufficient-data": "ignored: nothing follows from INSUFFICIENT_DATA: nobody knows whether something is wrong",
  "cloudwatch/subscription": "the subscription is confirmed",
  "cloudwatch/unsubscribed": "ignored: the topic sends no alarms here any more; subscribe it again if that was a mistake",
  "opsgenie/create": [["052652ac-5d1c-464a-812a-7dd18bbfba8c-1795255092000", "firing", "critical", "Node web-3: overlay port blocked", ["web-3"]]],
  "opsgenie/acknowledge": [["052652ac-5d1c-464a-812a-7dd18bbfba8c-1795255092000", "acknowledged", "critical", "Node web-3: overlay port blocked", ["web-3"]]],
  "opsgenie/close": [["052652ac-5d1c-464a-812a-7dd18bbfba8c-1795255092000", "resolved", "critical", "Node web-3: overlay port blocked", ["web-3"]]],
  "opsgenie/note": "ignored: nothing follows from AddNote",
  "generic/page": [["alert:42", "firing", "critical", "NodeNotReady", ["web-3", "ip-10-0-3-4.eu-central-1.compute.internal"]]],
  "generic/labels": [["probe/17", "firing", "warning", "probe failed", ["10.20.3.4"]]],
  "generic/resolved": [["probe/17", "resolved", "warning", "probe failed", []]],
};
const all = SOURCES.flatMap((source) => sampleNames(source).map((name) => [source, name] as const));
/** Latest time in a sample: it is delivered then. */
const timeOf = (text: string): number =>
  Math.max(Date.parse("2026-11-21T10:00:00Z"), ...[...text.matchAll(/2026-11-21T1\d:\d\d:\d\d(?:\.\d+)?Z/g)].map(([at]) => Date.parse(at)));

test.each(all)("%s: %s", async (source: SourceName, name) => {
  const body = sample(source, name);
  const now = timeOf(body);
  const { send, started } = door({ now: () => now });
  const { status, message } = await send(
    requestOf(source, body, source === "generic" ? { headers: (await import("./requests.ts")).proofOf(source, body, now) } : {}),
  );
  const expected = EXPECTED[`${source}/${name}`];
  expect([200, 202]).toContain(status);
  if (typeof expected === "string") expect([message, started]).toEqual([expected, []]);
  else {
    const alerts = started.flatMap(({ page }) => page.alerts);
    expect(alerts.map((alert) => [alert.key, alert.status, alert.severity, alert.title, namesOf(alert, undefined, ["harbour-eu"]).names])).toEqual(expected);
    // as Lambda passes it on
    expect(JSON.parse(JSON.stringify(started))).toEqual(started);
  }
});

test("every sample is expected, and nothing else", () => {
  expect(all.map((pair) => pair.join("/")).sort()).toEqual(Object.keys(EXPECTED).sort());
});

test("labels, references and addresses are kept for what comes after", async () => {
  const { send, started } = door();
  await send(requestOf("pagerduty", sample("pagerduty", "triggered")));
  await send(requestOf("alertmanager", sample("alertmanager", "truncated")));
  await send(requestOf("cloudwatch", sample("cloudwatch", "alarm")));
  const [pagerduty, alertmanager, cloudwatch] = started.map(({ page }) => page);
  expect(pagerduty?.id).toBe("01DHARBOUR000000000000TRIG");
  expect(pagerduty?.alerts[0]).toMatchObject({
    ref: "Q2HARBOUR1",
    url: "https://harbour.pagerduty.com/incidents/Q2HARBOUR1",
    at: "2026-11-21T09:58:12.345Z",
    labels: { service: "Cluster network", urgency: "high", priority: "P1", teams: "Platform", incident_key: "7d1b5c0e9a" },
  });
  expect(alertmanager?.more).toBe(36);
  expect(alertmanager?.alerts[0]).toMatchObject({ labels: { cluster: "harbour-eu", device: "eth0" }, url: expect.stringContaining("https://prometheus") });
  expect(cloudwatch?.alerts[0]).toMatchObject({
    labels: { InstanceId: "i-0123456789abcdef0", AutoScalingGroupName: "workers", Region: "eu-central-1", MetricName: "bw_in_allowance_exceeded" },
    url: "https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1#alarmsV2:alarm/web-3-ena-allowance-exceeded",
  });
});
