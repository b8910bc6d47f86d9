import { describe, expect, test } from "vitest";
import { readMention } from "../../functions/slack/listeners/mention.ts";
import { parseCommand } from "../../functions/slack/listeners/netcheck-command.ts";

/** `/netcheck pod …` and `/netcheck svc …`: how the words are read. */

const LONG = "a".repeat(64);

describe("a pod or a service", () => {
  test.each<[string, string, object]>([
    ["pod shop/web-1", "pod shop/web-1", { kind: "pod", namespace: "shop", name: "web-1" }],
    [" POD  prod/shop/web-1 ", "pod prod/shop/web-1", { kind: "pod", cluster: "prod", namespace: "shop", name: "web-1" }],
    [
      "pod kube-system/kube-proxy-ip-10-0-0-7.internal",
      "pod kube-system/kube-proxy-ip-10-0-0-7.internal",
      { kind: "pod", namespace: "kube-system", name: "kube-proxy-ip-10-0-0-7.internal" },
    ],
    ["svc shop/web", "service shop/web", { kind: "service", namespace: "shop", name: "web" }],
    ["service shop/web FROM node3", "service shop/web from node3", { kind: "service", namespace: "shop", name: "web", from: "node3" }],
  ])("%s", (text, target, workload) => {
    expect(parseCommand(text)).toEqual({ kind: "triage", target, against: [], workload });
  });

  test.each<[string, string]>([
    ["pod", 'Which pod? Name it with its namespace, as in "pod shop/web-1".'],
    ["pod web-1", '"web-1" is no pod with its namespace; write it as in "pod shop/web-1", or with the cluster before it.'],
    ["pod shop/Web", '"shop/Web" is no pod with its namespace'],
    ["pod ../etc", '"../etc" is no pod'],
    ["pod shop/web-1/../x", "is no pod"],
    ["pod a/b/c/d", "is no pod"],
    ["pod shop/$(id)", "is no pod"],
    [`pod ${LONG}/web`, "is no pod"],
    ["svc shop/web.1", '"shop/web.1" is no service'],
    ["svc shop/web from", '"from" is not understood. Behind a service, "from" and the name of one node may stand.'],
    ["svc shop/web from node1 node2", '"from node1 node2" is not understood.'],
    ["svc shop/web from $(id)", '"$(id)" cannot be the name of a target.'],
    ["pod shop/web-1 vs node2", '"vs node2" is not understood. Behind a pod nothing may stand.'],
  ])("%s: %s", (text, problem) => {
    expect(parseCommand(text)).toMatchObject({ kind: "help", problem: expect.stringContaining(problem) as string });
  });

  test("in a mention, too", () => {
    const event = { type: "app_mention", user: "U_ALICE", text: "<@U_BOT> pod shop/web-1", ts: "1.0", channel: "C_INCIDENTS" };
    expect(readMention(event, { team_id: "T", authorizations: [{ user_id: "U_BOT" }] })).toMatchObject({
      kind: "triage",
      request: { target: "pod shop/web-1", workload: { kind: "pod", namespace: "shop", name: "web-1" } },
    });
  });
});
