import { afterEach, beforeEach, expect, test } from "vitest";
import { clearUp, type ReaperOptions } from "../../functions/aws/reaper.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { Config } from "../../functions/triage/config.ts";
import { draft, incident, proposal } from "../store/drafts.ts";

const NOW = new Date("2026-01-01T12:00:00.000Z");
const debugPods = { image: `registry.example/netcheck-debug@sha256:${"a".repeat(64)}`, access: { by: "in-cluster" } };
const config = Config.parse({
  clusters: { east: { transport: "debug-pod", debugPods }, south: { transport: "debug-pod", debugPods }, nodes: { transport: "ssm", region: "eu-central-1" } },
});

let store: SqliteStore;
let gauges: Record<string, number>;
let logged: string[];
beforeEach(() => {
  store = new SqliteStore(":memory:");
  gauges = {};
  logged = [];
});
afterEach(() => store.close());
const run = (reap: ReaperOptions["reap"]) =>
  clearUp({
    config: async () => config,
    store,
    meter: { gauge: (name, value) => (gauges[name] = value) },
    log: (level, message, fields) => void logged.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    reap,
    now: () => NOW,
  });

test("each cluster with debug pods is cleared; one that cannot be reached does not keep the others from it", async () => {
  await run(async (cluster) => {
    if (cluster === "east") throw new Error("debug-pod: could not list netcheck's pods: connection refused");
    return { found: 3, deleted: ["netcheck-1"], stuck: ["netcheck-3"], failed: [{ pod: "netcheck-2", reason: "forbidden" }] };
  });
  expect(gauges["LeakedPods"]).toBe(3);
  expect(logged).toEqual([
    expect.stringMatching(/^error: could not look .*"cluster":"east".*connection refused/),
    expect.stringMatching(/^warn: .*"cluster":"south","pods":"netcheck-1"/),
    expect.stringMatching(/^warn: .*"pods":"netcheck-3"/),
    expect.stringMatching(/^error: .*"pods":"netcheck-2","problem":"forbidden"/),
  ]);
});

test("an approval whose time is over counts as stuck; one that waits, and one that is decided, do not", async () => {
  for (const [id, state, expiresAt] of [
    ["i1", "awaiting-approval", "2026-01-01T11:49:00.000Z"],
    ["i2", "awaiting-approval", "2026-01-01T11:55:00.000Z"],
    ["i3", "resolved", "2026-01-01T10:00:00.000Z"],
  ] as const) {
    await store.open(incident(id, { state, proposal: `${id}-fix` }), draft("incident-opened"));
    await store.propose(proposal(`${id}-fix`, id, { expiresAt }), draft("fix-proposed"));
  }
  await run(async () => ({ found: 0, deleted: [], stuck: [], failed: [] }));
  expect(gauges).toEqual({ LeakedPods: 0, StuckApprovals: 1 });
  expect(logged).toEqual([expect.stringContaining('"incident":"i1"')]);
});
