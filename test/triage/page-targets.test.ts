import { describe, expect, test } from "vitest";
import { namesOf, nodeOf, type PageRoute, routeOf } from "../../functions/triage/page-targets.ts";
import type { Resolution } from "../../functions/triage/ports.ts";
import { alertOf, pagesConfig } from "./page-bench.ts";

const routesOf = (...routes: unknown[]): readonly PageRoute[] => pagesConfig({ routes }).pages?.routes ?? [];
const names = (labels: Record<string, string>, route?: unknown) =>
  namesOf(alertOf({ labels }), route === undefined ? undefined : routesOf(route)[0], ["lab", "edge"]).names;

describe("what is usual", () => {
  test.each<[Record<string, string>, string[]]>([
    [{ instance: "10.0.3.4:9100" }, ["10.0.3.4"]],
    [{ instance: "web-3.example.com:9100" }, ["web-3.example.com"]],
    [{ instance: "[fe80::1]:9100" }, ["fe80::1"]],
    [{ instance: "[2001:db8::5]" }, ["2001:db8::5"]],
    [{ instance: "2001:db8::5" }, ["2001:db8::5"]],
    [{ instance: "https://web-3:8443/healthz?x=1" }, ["web-3"]],
    [{ instance: "10.0.3.4:9100", node: "web-3" }, ["web-3"]],
    [{ InstanceId: "i-0123456789abcdef0", AutoScalingGroupName: "workers" }, ["i-0123456789abcdef0"]],
    [{ node: "web-3, web-4,web-3" }, ["web-3", "web-4"]],
    [{ node: "$(reboot)", host: "web-5" }, ["web-5"]],
    [{ node: "../etc/passwd" }, []],
    [{ node: "a".repeat(300) }, []],
    [{ pod: "api-0" }, []],
  ])("%j", (labels, expected) => {
    expect(names(labels)).toEqual(expected);
  });

  test("nodes that are named outright count, whatever the labels say", () => {
    expect(namesOf(alertOf({ targets: ["node3"], labels: { node: "node2" } }), undefined, []).names).toEqual(["node3"]);
  });

  test("of thousands of names fifty are taken", () => {
    expect(names({ node: Array.from({ length: 1000 }, (_, n) => `n${n}`).join(",") })).toHaveLength(50);
  });
});

describe("a route", () => {
  test("the first place that gives a name counts", () => {
    const route = { targets: [{ label: "description", regex: "on node (\\S+)" }, { label: "vm" }] };
    expect(names({ description: "disk full on node web-3 since noon", vm: "web-4" }, route)).toEqual(["web-3"]);
    expect(names({ description: "disk full", vm: "web-4:22" }, route)).toEqual(["web-4"]);
    expect(names({ node: "web-5" }, route)).toEqual([]);
  });

  test("names its cluster; a label that is called otherwise does not matter then", () => {
    const [route] = routesOf({ cluster: "edge" });
    expect(namesOf(alertOf({ labels: { node: "web", cluster: "harbour" } }), route, ["lab", "edge"])).toEqual({ names: ["web"], cluster: "edge" });
  });

  test("fits by source, severity and whole values of labels; the first one counts", () => {
    const routes = routesOf(
      { match: { source: "grafana" }, channel: "C0ONE" },
      { match: { severity: "critical", labels: { job: "node.*" } }, channel: "C0TWO" },
      { match: { labels: { team: "()" } }, channel: "C0THREE" },
    );
    const channel = (source: string, change: Parameters<typeof alertOf>[0]) => routeOf(routes, source, alertOf(change))?.channel;
    expect(channel("grafana", {})).toBe("C0ONE");
    expect(channel("generic", { severity: "critical", labels: { job: "node-exporter" } })).toBe("C0TWO");
    expect(channel("generic", { severity: "critical", labels: { job: "my-node" } })).toBe("C0THREE");
    expect(channel("generic", { labels: { team: "x" } })).toBeUndefined();
    expect(channel("generic", { labels: { __proto__: { team: "x" } } as never })).toBe("C0THREE");
  });
});

describe("a name", () => {
  const target = (cluster: string) => ({ name: "web", cluster, transport: "replay", address: "web" });
  const resolve = (found: Resolution | Error) => ({
    targets: { resolve: async () => (found instanceof Error ? Promise.reject(found) : found), all: async () => ({ called: [] }) },
  });

  test("of one node is that node", async () => {
    expect(await nodeOf(resolve({ kind: "found", target: target("lab") }), "web", undefined)).toEqual({ target: target("lab") });
    const both: Resolution = { kind: "ambiguous", candidates: [target("lab"), target("edge")] };
    expect(await nodeOf(resolve(both), "web", "edge")).toEqual({ target: target("edge") });
  });

  test.each<[string, Resolution | Error, string]>([
    ["of two", { kind: "ambiguous", candidates: [target("lab"), target("edge")] }, "that may be lab/web or edge/web"],
    ["of none", { kind: "unknown", suggestions: [] }, "netcheck knows no node of that name"],
    ["that could not be looked up", new Error("ssm: throttled"), "it could not be looked up: ssm: throttled"],
  ])("%s is explained", async (_, found, problem) => {
    const unasked = found instanceof Error ? { unasked: true } : {};
    expect(await nodeOf(resolve(found), "web", undefined)).toEqual({ problem: expect.stringContaining(problem), ...unasked });
  });
});
