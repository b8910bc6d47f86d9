import { request } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { offerSamples, SAMPLES, SamplePages, type SampleSource, type SampleStatus, STORM } from "../../functions/local/sample-pages.ts";
import { type LocalServer, startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";
import { pagerHandler } from "../../functions/pager/app.ts";
import type { Page, WorkEvent } from "../../functions/triage/ports.ts";

/** The sample pages of local mode against the pager itself, over HTTP. */

const workspace = new Workspace({ signingSecret: "test-secret" });
const samples = new SamplePages(workspace.signingSecret, () => Date.now());
const started: WorkEvent[] = [];
const work = { start: async (_: string, event: WorkEvent) => void started.push(event), answer: async () => false };
let server: LocalServer;
beforeAll(async () => {
  const handler = pagerHandler({ secrets: async () => samples.secrets, work, now: () => Date.now(), visit: samples.visit });
  server = await startServer({ workspace, pager: { handler, samples } });
});
afterAll(() => server.close());

const all = Object.entries(SAMPLES).flatMap(([source, statuses]) => statuses.map((status) => [source as SampleSource, status] as const));
const pageNow = (): Page => {
  const event = started.at(-1);
  if (event?.kind !== "page") throw new Error("no page was taken");
  return event.page;
};

test.each(all)("%s, %s: taken, and means what it should", async (source, status: SampleStatus) => {
  const before = started.length;
  const sent = await samples.send(server.url, { source, status, about: "node2", forged: false });
  expect([sent.path, sent.status, JSON.parse(sent.answer)]).toEqual([`/pager/${source}`, 202, { message: "accepted" }]);
  expect(started.length).toBe(before + 1);
  const { alerts, more, ...page } = pageNow();
  expect([page.source, alerts.length, more]).toEqual([source, 1, 0]);
  expect(alerts[0]).toMatchObject({ status, severity: "critical", title: expect.stringContaining("node2") as string });
  // somewhere it says which node
  expect([...Object.values(alerts[0]?.labels ?? {}), ...(alerts[0]?.targets ?? [])]).toContain("node2");
});

test.each(Object.keys(SAMPLES) as SampleSource[])("%s: its statuses are of one alert, and each delivery is its own", async (source) => {
  const pages: Page[] = [];
  for (const status of SAMPLES[source]) {
    await samples.send(server.url, { source, status, about: "node4", forged: false });
    pages.push(pageNow());
  }
  expect(new Set(pages.map(({ alerts }) => alerts[0]?.key)).size).toBe(1);
  expect(new Set(pages.map(({ id }) => id)).size).toBe(pages.length);
});

test.each(Object.keys(SAMPLES) as SampleSource[])("%s: with a proof that does not fit it is refused, and says what is missing", async (source) => {
  const before = started.length;
  const sent = await samples.send(server.url, { source, status: "firing", about: "node2", forged: true });
  expect(sent.status).toBe(401);
  expect((JSON.parse(sent.answer) as { message: string }).message).toMatch(/fit|valid|signed/);
  expect(started.length).toBe(before);
});

test("a storm is 37 alerts of 5 nodes in one page, each of its own", async () => {
  for (const source of ["alertmanager", "grafana"] as const) {
    await samples.send(server.url, { source, status: "firing", about: STORM, forged: false });
    const { alerts } = pageNow();
    expect([alerts.length, new Set(alerts.map(({ key }) => key)).size, new Set(alerts.map(({ labels }) => labels["node"])).size]).toEqual([37, 37, 5]);
  }
});

test("offered are nodes that are there, and the storm only where its nodes are", () => {
  const { sources, about, channel } = offerSamples("C_X", ["node1", "green-1", "green-7"]);
  expect([channel, about.map(({ value }) => value)]).toEqual(["C_X", ["node1", "green-7"]]);
  expect(sources.map(({ name }) => name)).toEqual(Object.keys(SAMPLES));
  expect(offerSamples("C_X", ["node1", "node2", "node4", "node5", "healthy1"]).about.at(-1)).toMatchObject({ value: STORM, grouped: true });
});

test("the page's button sends one; what is no sample is refused, and nothing is sent", async () => {
  const press = (body: unknown, headers = {}) =>
    fetch(`${server.url}/workspace/page`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
  const sample = { source: "generic", status: "firing", about: "node2", forged: false };
  const answer = await press(sample);
  expect([answer.status, await answer.json()]).toEqual([200, expect.objectContaining({ path: "/pager/generic", status: 202 })]);
  const before = started.length;
  for (const wrong of [{ ...sample, source: "constructor" }, { ...sample, status: "gone" }, { ...sample, about: "a b" }, {}])
    expect((await press(wrong)).status).toBe(400);
  expect((await press(sample, { origin: "http://evil.example" })).status).toBe(403);
  expect(started.length).toBe(before);
});

test("the door for pages is as closed as the others: other hosts, other sites, other methods, and what is too large", async () => {
  const { headers, body } = samples.make({ source: "generic", status: "firing", about: "node2", forged: false });
  const status = (method: string, more: Record<string, string> = {}, content = body): Promise<number> =>
    new Promise((resolve, reject) => {
      const sent = request(`${server.url}/pager/generic`, { method, headers: { ...headers, ...more } }, (response) =>
        resolve(response.resume().statusCode ?? 0),
      );
      sent.on("error", reject).end(content);
    });
  const before = started.length;
  expect(await status("POST", { host: "evil.example" })).toBe(421);
  expect(await status("POST", { origin: "http://evil.example" })).toBe(403);
  expect(await status("PUT")).toBe(405);
  // the connection may break before the answer is read
  expect(await status("POST", {}, "x".repeat(1_200_000)).catch(() => 413)).toBe(413);
  expect(started.length).toBe(before);
});

test("an address that is not SNS's key here is never visited", async () => {
  await expect(samples.visit("https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription")).rejects.toThrow("local mode visits no addresses");
});
