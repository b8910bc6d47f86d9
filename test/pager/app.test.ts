import { createHmac } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { pageId } from "../../functions/pager/app.ts";
import { certificate, door, expired, NOW, ownSns, proofOf, requestOf, SECRETS, SOURCES, type SourceName, sample, TOPIC } from "./requests.ts";

const FIRST: Record<SourceName, string> = {
  pagerduty: "triggered",
  alertmanager: "firing-group",
  grafana: "firing",
  cloudwatch: "alarm",
  opsgenie: "create",
  generic: "page",
};
const first = (source: SourceName): string => sample(source, FIRST[source]);

const sns = ownSns();

describe.each(SOURCES)("%s", (source) => {
  test.each([false, true])("a page starts its execution under its own name, also when it comes again (base64: %s)", async (base64) => {
    const { started, send } = door();
    expect(await send(requestOf(source, first(source), { base64 }))).toEqual({ status: 202, message: "accepted" });
    await send(requestOf(source, first(source), { base64 }));
    expect(started).toHaveLength(2);
    expect(started[1]).toEqual(started[0]);
    expect(started[0]?.name).toBe(pageId(started[0]?.page as { source: string; id: string }));
    expect(started[0]?.name).toMatch(/^page-[0-9a-f]{16}$/);
  });

  test("without a proof, with another's, or of another body it is refused", async () => {
    const body = first(source);
    const { started, send } = door();
    const other = body.replace("web", "www").replace("42", "43");
    const wrong = door({ secrets: async () => Object.fromEntries(Object.keys(SECRETS).map((field) => [field, "some-other-secret-0123456789"])) });
    expect((await wrong.send(requestOf(source, body))).status).toBe(401);
    if (source !== "cloudwatch") expect((await send(requestOf(source, body, { headers: {} }))).status).toBe(401);
    if (source !== "alertmanager" && source !== "opsgenie") expect((await send(requestOf(source, other, { headers: proofOf(source, body) }))).status).toBe(401);
    expect([...started, ...wrong.started]).toEqual([]);
  });

  test("that is not set up is refused, and the sender is told which field is missing", async () => {
    const { started, send } = door({ secrets: async () => ({}) });
    const { status, message } = await send(requestOf(source, first(source)));
    expect([status, message]).toEqual([404, expect.stringMatching(/are not set up here: put "\w+" into the pager's secret/)]);
    const short = door({ secrets: async () => ({ signingSecret: "short", pagerduty: "", alertmanager: 7, grafana: "x", opsgenie: " ", cloudwatch: "*" }) });
    expect((await short.send(requestOf(source, first(source)))).status).toBe(404);
    expect([...started, ...short.started]).toEqual([]);
  });

  test("a secret that was changed counts at once, and while it is being changed both do", async () => {
    const old = Object.fromEntries(Object.keys(SECRETS).map((field) => [field, "the-old-one-0123456789"]));
    expect((await door({ secrets: async (doubtful) => (doubtful === true ? SECRETS : old) }).send(requestOf(source, first(source)))).status).toBe(202);
    const both = Object.fromEntries(Object.entries(SECRETS).map(([field, value]) => [field, `the-old-one-0123456789 ${value}`]));
    expect((await door({ secrets: async () => both }).send(requestOf(source, first(source)))).status).toBe(202);
  });

  test.each([
    ["no JSON", "{"],
    ["a list", "[]"],
    ["null", "null"],
    ["a number", "7"],
    ["nothing", ""],
    ["an empty object", "{}"],
    ["lists in lists", `{"alerts":${"[".repeat(50_000)}${"]".repeat(50_000)}}`],
  ])("%s is refused, and says why", async (_, body) => {
    const { started, send, logged } = door();
    const { status, message } = await send(requestOf(source, body));
    expect([202, 400, 401]).toContain(status);
    expect(message).toMatch(/\w+ \w+/);
    expect([started, logged]).toEqual([[], []]);
  });

  test("a body that no page has is not read, in whichever form it comes", async () => {
    const { send } = door();
    const long = "x".repeat(10 * 1024 * 1024);
    expect((await send(requestOf(source, long, { headers: {} }))).status).toBe(413);
    expect((await send(requestOf(source, long, { headers: {}, base64: true }))).status).toBe(413);
    expect((await send(requestOf(source, "é".repeat(600_000), { headers: {} }))).status).toBe(413);
  });

  test("another content type is refused, and says which one it is to be", async () => {
    const { send } = door();
    for (const type of ["application/x-www-form-urlencoded", "text/html", "multipart/form-data"])
      expect(await send(requestOf(source, first(source), { type }))).toEqual({ status: 415, message: expect.stringContaining("application/json") });
    expect((await send(requestOf(source, first(source), { type: "Application/JSON; charset=utf-8" }))).status).toBe(202);
  });

  test("whatever the fields hold, it is a page within its limits, or refused; never a crash", async () => {
    const { started, send, logged } = door();
    const cloud = door({ visit: sns.visit });
    const body = JSON.parse(first(source)) as Record<string, unknown>;
    const anything = fc.anything({ maxDepth: 3, values: [fc.string(), fc.double(), fc.integer(), fc.boolean(), fc.constant(null), fc.constant("__proto__")] });
    const hostile = fc.letrec((tie) => ({
      node: fc.oneof(
        anything,
        fc.constant("KEEP"),
        fc.dictionary(fc.constantFrom("event", "data", "alerts", "labels", "alert", "details", "id", "__proto__", "valueOf"), tie("node")),
      ),
    })).node;
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.constantFrom(...Object.keys(body), "__proto__"), hostile), async (change) => {
        const mixed = Object.fromEntries(
          Object.entries(body).map(([key, value]) => [key, change[key] === undefined || change[key] === "KEEP" ? value : change[key]]),
        );
        const text = source === "cloudwatch" ? sns.signed("alarm", { Message: JSON.stringify(mixed) }) : JSON.stringify(mixed);
        const { status } = await (source === "cloudwatch" ? cloud.send : send)(requestOf(source, text));
        expect([202, 400, 401]).toContain(status);
      }),
      { numRuns: 80, seed: 6 },
    );
    expect([...logged, ...cloud.logged]).toEqual([]);
    for (const { page } of [...started, ...cloud.started]) {
      expect(JSON.stringify(page).length).toBeLessThan(210_000);
      expect(page.alerts.length).toBeLessThanOrEqual(200);
      for (const { key, title, labels, at } of page.alerts) {
        expect([key.length > 0 && key.length <= 300, title.length <= 1000, Object.keys(labels).length <= 64]).toEqual([true, true, true]);
        expect(Object.keys(labels)).not.toContain("__proto__");
        expect(Date.parse(at)).toBeLessThanOrEqual(NOW);
      }
    }
  });

  test("what could not be started is to be sent again, and operations see why", async () => {
    const { send, logged } = door({ work: { start: () => Promise.reject(new Error("lambda: throttled")), answer: async () => false } });
    expect((await send(requestOf(source, first(source)))).status).toBe(503);
    expect(logged).toEqual([`a page could not be taken {"source":"${source}","problem":"lambda: throttled"}`]);
  });
});

test("a source that there is not", async () => {
  const { send } = door();
  expect(await send({ ...requestOf("generic", first("generic")), rawPath: "/pager/nagios" })).toEqual({
    status: 404,
    message: "there is no such source of pages; there are pagerduty, alertmanager, grafana, cloudwatch, opsgenie, generic",
  });
  expect((await send({ ...requestOf("generic", first("generic")), rawPath: "/pager/generic/" })).status).toBe(202);
  expect((await send({ ...requestOf("generic", first("generic")), rawPath: "/prod/pager/toString" })).status).toBe(404);
});

describe("our own words that come back", () => {
  test.each([
    ["a title", "pagerduty", (body: string) => body.replace("Pods on node web-3", "netcheck: nobody took on")],
    ["a key for deduplication", "pagerduty", (body: string) => body.replace("7d1b5c0e9a", "netcheck:0123456789abcdef")],
    ["an alias", "opsgenie", (body: string) => body.replace("overlay/web-3", "netcheck:0123")],
    ["a title in capitals", "generic", (body: string) => body.replace("NodeNotReady", " Netcheck: a note")],
  ] as const)("as %s start nothing", async (_, source, change) => {
    const { started, send } = door();
    expect(await send(requestOf(source, change(first(source))))).toEqual({ status: 202, message: "ignored: it is what netcheck wrote itself" });
    expect(started).toEqual([]);
  });

  test("in a group do not take the other alerts with them", async () => {
    const { started, send } = door();
    await send(
      requestOf(
        "alertmanager",
        first("alertmanager")
          .replace('"summary": "web-3', '"summary": "netcheck: web-3')
          .replaceAll('"alertname": "NodeNetworkInterfaceDropping"', '"alertname": "netcheck:x"'),
      ),
    );
    expect(started).toEqual([]);
    await send(requestOf("alertmanager", first("alertmanager").replace('"alertname": "NodeNetworkInterfaceDropping"', '"alertname": "netcheck:x"')));
    expect(started[0]?.page.alerts).toHaveLength(2);
  });
});

describe("time", () => {
  test.each([-301, 301])("a signed time that is %i seconds off is refused", async (off) => {
    const { send } = door();
    const body = first("generic");
    expect((await send(requestOf("generic", body, { headers: proofOf("generic", body, NOW + off * 1000) }))).status).toBe(401);
    const timestamp = String(NOW / 1000 + off);
    const signature = createHmac("sha256", SECRETS.grafana)
      .update(`${timestamp}:${first("grafana")}`)
      .digest("hex");
    const headers = { "x-grafana-alerting-signature": signature, "x-grafana-alerting-timestamp": timestamp };
    expect((await send(requestOf("grafana", first("grafana"), { headers }))).status).toBe(401);
  });

  test("Grafana's signature with a time that is right is taken", async () => {
    const { send } = door();
    const timestamp = String(NOW / 1000 - 20);
    const signature = createHmac("sha256", SECRETS.grafana)
      .update(`${timestamp}:${first("grafana")}`)
      .digest("hex");
    const headers = { "x-grafana-alerting-signature": signature, "x-grafana-alerting-timestamp": timestamp };
    expect((await send(requestOf("grafana", first("grafana"), { headers }))).status).toBe(202);
  });

  test.each(["1e9", "", "-1", "0x10", "99999999999999"])("a time that is none is refused: %s", async (timestamp) => {
    const { send } = door();
    const signature = `v1=${createHmac("sha256", SECRETS.signingSecret)
      .update(`${timestamp}.${first("generic")}`)
      .digest("hex")}`;
    const headers = { "x-netcheck-timestamp": timestamp, "x-netcheck-signature": signature };
    expect((await send(requestOf("generic", first("generic"), { headers }))).status).toBe(401);
  });

  test("an old event of PagerDuty's, sent again by somebody who kept it, is ignored", async () => {
    const { send, started } = door({ now: () => NOW + 25 * 3600_000 });
    expect((await send(requestOf("pagerduty", first("pagerduty")))).message).toBe("ignored: it is from 2026-11-21T09:58:12.345Z, more than a day ago");
    expect(started).toEqual([]);
  });

  test("what a group of alerts says again after ten minutes is news to be looked at", async () => {
    let now = NOW;
    const { send, started } = door({ now: () => now });
    for (now of [NOW, NOW + 60_000, NOW + 3600_000]) await send(requestOf("alertmanager", first("alertmanager")));
    expect(new Set(started.map(({ name }) => name)).size).toBe(2);
  });

  test("a clock that is ahead hides nothing that comes later", async () => {
    const { send, started } = door();
    await send(requestOf("pagerduty", first("pagerduty").replace("2026-11-21T09:58:12.345Z", "2099-01-01T00:00:00Z")));
    expect(started[0]?.page.alerts[0]?.at).toBe(new Date(NOW).toISOString());
  });
});

describe("SNS", () => {
  const { visit } = sns;

  test("its key is fetched once, from the SNS of the topic's region", async () => {
    const { send, visited } = door();
    for (const name of ["alarm", "metric-math", "alarm"]) expect((await send(requestOf("cloudwatch", sample("cloudwatch", name)))).status).toBe(202);
    expect(visited).toEqual(["https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem"]);
  });

  test("a subscription is confirmed at SNS itself, once it is proved", async () => {
    const { send, visited } = door({ now: () => Date.parse("2026-11-21T09:41:00Z") });
    expect(await send(requestOf("cloudwatch", sample("cloudwatch", "subscription")))).toEqual({ status: 200, message: "the subscription is confirmed" });
    expect(visited[1]).toMatch(/^https:\/\/sns\.eu-central-1\.amazonaws\.com\/\?Action=ConfirmSubscription&/);
  });

  test.each([
    "http://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription",
    "https://sns.eu-central-1.amazonaws.com.evil.example/?Action=ConfirmSubscription",
    "https://sns.eu-central-1.amazonaws.com@evil.example/?Action=ConfirmSubscription",
    "https://u:p@sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription",
    "https://sns.eu-central-1.amazonaws.com:8443/?Action=ConfirmSubscription",
    "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription",
    "https://169.254.169.254/?Action=ConfirmSubscription",
    "https://sns.eu-central-1.amazonaws.com/?Action=DeleteTopic",
    "file:///etc/passwd",
    "",
  ])("nothing else is visited: %s", async (SubscribeURL) => {
    const visited: string[] = [];
    const { send } = door({
      visit: async (url) => {
        if (!url.endsWith(".pem")) visited.push(url);
        return visit();
      },
    });
    const { status } = await send(requestOf("cloudwatch", sns.signed("subscription", { SubscribeURL, Timestamp: "2026-11-21T09:59:00Z" })));
    expect([status, visited]).toEqual([400, []]);
  });

  test.each([
    ["at another host", { SigningCertURL: "https://evil.example/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem" }],
    [
      "at a host that looks like it",
      { SigningCertURL: "https://sns.eu-central-1.amazonaws.com.evil.example/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem" },
    ],
    ["of another region", { SigningCertURL: "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem" }],
    ["at another path", { SigningCertURL: "https://sns.eu-central-1.amazonaws.com/my-own.pem" }],
    ["of a bucket", { SigningCertURL: "https://s3.eu-central-1.amazonaws.com/SimpleNotificationService-7506a1e35b36ef5a444dd1a8e7cc3ed8.pem" }],
  ])("a key %s is not even fetched", async (_, change) => {
    let visits = 0;
    const { send } = door({
      visit: async () => {
        visits += 1;
        return visit();
      },
    });
    expect((await send(requestOf("cloudwatch", sns.signed("alarm", change)))).status).toBe(401);
    expect(visits).toBe(0);
  });

  test.each([
    ["a topic that is not named", { TopicArn: "arn:aws:sns:eu-central-1:999900001111:theirs" }],
    ["a topic that begins as one that is", { TopicArn: `${TOPIC}2` }],
    ["a kind that there is not", { Type: "Message" }],
    ["a signature of a kind that there is not", { SignatureVersion: "3" }],
    ["an old message", { Timestamp: "2026-11-21T08:59:59.000Z" }],
    ["one from the future", { Timestamp: "2026-11-21T10:05:01.000Z" }],
    ["no time", { Timestamp: "soon" }],
  ])("%s is refused", async (_, change) => {
    expect((await door({ visit }).send(requestOf("cloudwatch", sns.signed("alarm", change)))).status).toBe(401);
  });

  test("a signature over other words is refused, version 1 and 2", async () => {
    for (const name of ["alarm", "metric-math"]) {
      const body = sample("cloudwatch", name);
      expect((await door().send(requestOf("cloudwatch", body.replace("ALARM: ", "alarm: ")))).status).toBe(401);
      expect((await door().send(requestOf("cloudwatch", body))).status).toBe(202);
      // the sample's own certificate, and another key
      expect((await door({ visit }).send(requestOf("cloudwatch", body))).status).toBe(401);
    }
  });

  test("a certificate that has expired, or is none, or cannot be had is a reason to send again, and operations see it", async () => {
    const at = Date.parse("2026-11-23T00:00:00Z");
    const body = sns.signed("alarm", { Timestamp: new Date(at).toISOString() });
    const old = door({ now: () => at, visit: async () => expired });
    expect((await old.send(requestOf("cloudwatch", body))).status).toBe(503);
    expect(old.logged[0]).toContain("the certificate has expired");
    expect((await door({ now: () => at, visit: async () => "<html>" }).send(requestOf("cloudwatch", body))).status).toBe(503);
    let down = true;
    const flaky = door({ now: () => at, visit: async () => (down ? Promise.reject(Object.assign(new Error("no answer"), { retryable: true })) : visit()) });
    expect((await flaky.send(requestOf("cloudwatch", body))).status).toBe(503);
    down = false;
    expect((await flaky.send(requestOf("cloudwatch", body))).status).toBe(202);
  });

  test("that the subscription was taken away is seen by operations", async () => {
    const { send, logged, visited } = door({ now: () => Date.parse("2026-11-21T10:31:00Z") });
    expect((await send(requestOf("cloudwatch", sample("cloudwatch", "unsubscribed")))).status).toBe(202);
    expect(logged[0]).toContain("the topic sends no alarms here any more");
    expect(visited.filter((url) => !url.endsWith(".pem"))).toEqual([]);
  });

  test("a message that is no alarm is ignored", async () => {
    for (const Message of ["hello", "{}", "[]", '{"AlarmName":"x"}'])
      expect((await door({ visit }).send(requestOf("cloudwatch", sns.signed("alarm", { Message })))).message).toMatch(/^ignored: the message is no alarm/);
  });

  test("the certificate is a certificate", () => {
    expect(certificate).toContain("BEGIN CERTIFICATE");
  });
});

describe("limits", () => {
  const group = (count: number, change: (n: number) => object) =>
    JSON.stringify({
      version: "4",
      alerts: Array.from({ length: count }, (_, n) => ({ status: "firing", labels: { alertname: "A", node: `n${n}`, ...change(n) }, fingerprint: `f${n}` })),
    });

  test("of many alerts two hundred are taken; the rest is counted", async () => {
    const { started, send } = door();
    await send(
      requestOf(
        "alertmanager",
        group(500, () => ({})),
      ),
    );
    expect([started[0]?.page.alerts.length, started[0]?.page.more]).toEqual([200, 300]);
  });

  test("what is too long together is left out and counted; an execution's payload has its limit", async () => {
    const { started, send } = door();
    await send(
      requestOf(
        "alertmanager",
        group(60, (n) => Object.fromEntries(Array.from({ length: 12 }, (_, at) => [`l${at}`, `${n}`.repeat(500)]))),
      ),
    );
    const { alerts, more } = started[0]?.page ?? { alerts: [], more: 0 };
    expect(alerts.length + more).toBe(60);
    expect(JSON.stringify(alerts).length).toBeLessThan(200_000);
    expect(alerts.length).toBeGreaterThan(10);
  });

  test("a hundred labels of one alert are too many; what they are called in JavaScript does not matter", async () => {
    const { started, send } = door();
    const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`l${n}`, "v"]));
    await send(requestOf("alertmanager", group(1, () => many).replace('"l0":"v"', '"__proto__":"x","constructor":"y","toString":"z"')));
    const labels = started[0]?.page.alerts[0]?.labels ?? {};
    expect(Object.keys(labels)).toHaveLength(64);
    expect([Object.hasOwn(labels, "__proto__"), Object.hasOwn(labels, "constructor"), labels["toString"]]).toEqual([false, false, "z"]);
  });
});

describe("generic", () => {
  const page = { id: "a", title: "t", targets: ["node1"] };
  test.each([
    ["no targets", { ...page, targets: [] }, /targets/],
    ["neither targets nor labels", { id: "a", title: "t" }, /targets/],
    ["a target that is no name", { ...page, targets: ["$(reboot)"] }, /targets/],
    ["targets that are no texts", { ...page, targets: [7] }, /targets/],
    ["too many targets", { ...page, targets: Array.from({ length: 51 }, (_, n) => `n${n}`) }, /targets/],
    ["an id of another kind", { ...page, id: 7 }, /id/],
    ["no title", { ...page, title: " " }, /title/],
    ["a status that there is not", { ...page, status: "broken" }, /status: one of firing, acknowledged, resolved/],
  ])("not taken, and why: %s", async (_, body, message) => {
    const { started, send } = door();
    expect(await send(requestOf("generic", JSON.stringify(body)))).toEqual({ status: 400, message: expect.stringMatching(message) });
    expect(started).toEqual([]);
  });
});
