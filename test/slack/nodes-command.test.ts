import type { BlockAction, ButtonAction } from "@slack/bolt";
import { describe, expect, test } from "vitest";
import { readFleetButton } from "../../functions/slack/listeners/fleet-button.ts";
import { readMention } from "../../functions/slack/listeners/mention.ts";
import { parseNodes } from "../../functions/slack/listeners/nodes-command.ts";

/** The words behind `/netcheck nodes`, and the buttons whose value they are. */

const name = (text: string) => ({ by: "name", name: text });

describe("understood", () => {
  test.each([
    ["nodes pool=blue", [{ by: "label", name: "pool", value: "blue" }]],
    ["NODES web-* db-1", [name("web-*"), name("db-1")]],
    ["nodes a,b , prod/c", [name("a"), name("b"), name("prod/c")]],
    ["nodes prod/*", [name("prod/*")]],
    ["nodes web-* topology.kubernetes.io/zone=eu-1a", [name("web-*"), { by: "label", name: "topology.kubernetes.io/zone", value: "eu-1a" }]],
    ["nodes all", [{ by: "all" }]],
    ["nodes 10.0.0.7 fd00::7 i-0123456789abcdef0", [name("10.0.0.7"), name("fd00::7"), name("i-0123456789abcdef0")]],
    // names of nodes, not the words of a button: what follows them is not what a button says
    ["nodes show", [name("show")]],
    ["nodes fix-1 show", [name("fix-1"), name("show")]],
  ])("%s", (text, terms) => {
    expect(parseNodes(text)).toEqual({ kind: "nodes", ask: { kind: "examine", terms } });
  });

  test.each([
    ["nodes all confirm=412", { kind: "examine", terms: [{ by: "all" }], confirmed: 412 }],
    ["nodes show inc-0123456789ab prod/node7", { kind: "show", fleet: "inc-0123456789ab", node: "prod/node7" }],
    ["nodes fix inc-0123456789ab bridge-netfilter-off", { kind: "fix", fleet: "inc-0123456789ab", rule: "bridge-netfilter-off" }],
    ["nodes approve inc-1 some-rule 0123456789abcdef", { kind: "approve", fleet: "inc-1", rule: "some-rule", hash: "0123456789abcdef" }],
    ["nodes dismiss inc-1 some-rule 0123456789abcdef", { kind: "dismiss", fleet: "inc-1", rule: "some-rule", hash: "0123456789abcdef" }],
  ])("%s", (text, ask) => {
    expect(parseNodes(text)).toEqual({ kind: "nodes", ask });
  });

  test("nothing of it is a question about one node", () => {
    expect([parseNodes("node1"), parseNodes("nodes1"), parseNodes("")]).toEqual([undefined, undefined, undefined]);
  });
});

describe("not understood, and said", () => {
  test.each([
    ["nodes", "Which nodes?"],
    ["nodes ,", "Which nodes?"],
    ["nodes pool=", '"pool=" is no name of nodes and no label'],
    ["nodes =blue", '"=blue" is no name'],
    ["nodes pool=a,b=c;rm", '"b=c;rm" is no name'],
    ["nodes $(reboot)", "is no name"],
    ["nodes ../../etc", "is no name"],
    ["nodes *a*b*c*d*", "is no name"],
    [`nodes ${"n".repeat(300)}`, "is no name"],
    [`nodes ${Array.from({ length: 201 }, (_, at) => `n${at}`).join(",")}`, "At most 200 names"],
    // a rule or a hash that nobody wrote is a list of names, of which one cannot be
    ["nodes confirm=12", "Which nodes?"],
  ])("%s", (text, problem) => {
    const parsed = parseNodes(text);
    expect(parsed?.kind === "help" ? parsed.problem : parsed).toContain(problem);
  });

  test("what runs a fix on a node cannot be typed", () => {
    expect(parseNodes("nodes fix-node inc-1 inc-2-fix callback")).toMatchObject({ ask: { kind: "examine" } });
  });
});

describe("buttons", () => {
  const click = (value: string, more: { container?: object; ts?: string } = {}) =>
    readFleetButton(
      {
        user: { id: "U1" },
        team: { id: "T1" },
        channel: { id: "C1" },
        container: { message_ts: "7.000", ...more.container },
        response_url: "https://hooks.slack.com/x",
      } as unknown as BlockAction<ButtonAction>,
      { value, action_id: "fleet-1", action_ts: more.ts ?? "9.1" } as ButtonAction,
    );

  test("below the fleet's first message, in its thread, or as a message of its own", () => {
    expect(click("nodes show inc-1 lab/a")).toMatchObject({
      kind: "fleet",
      request: { place: { channel: "C1", thread: "7.000" }, requester: { id: "U1", team: "T1" } },
    });
    expect(click("nodes show inc-1 lab/a", { container: { thread_ts: "5.000" } })?.request.place).toMatchObject({ thread: "5.000" });
    expect(click("nodes all confirm=3", { container: { is_ephemeral: true } })?.request.place).toEqual({
      channel: "C1",
      responseUrl: "https://hooks.slack.com/x",
    });
  });

  test("a value that is the name of a node is a triage of that node", () => {
    expect(click("lab/node7")).toMatchObject({ kind: "triage", request: { target: "lab/node7", place: { thread: "7.000" } } });
  });

  test("the same delivery is the same execution, another click or another value is another", () => {
    const id = (...of: Parameters<typeof click>) => click(...of)?.request.incident;
    expect(id("lab/node7")).toBe(id("lab/node7"));
    expect(new Set([id("lab/node7"), id("lab/node7", { ts: "9.2" }), id("lab/node8")]).size).toBe(3);
  });

  test.each(["", "nodes", "what is this", "nodes $(x)"])("a value that we did not write: %s", (value) => {
    expect(click(value)).toBeUndefined();
  });
});

describe("behind a mention, in a thread", () => {
  const said = (text: string) =>
    readMention(
      { type: "app_mention", user: "U1", text: `<@UBOT> ${text}`, ts: "9.000", thread_ts: "7.000", channel: "C1" },
      { team_id: "T1", authorizations: [{ user_id: "UBOT" }] },
    );

  test("the same words", () => {
    expect(said("nodes pool=blue")).toMatchObject({
      kind: "fleet",
      request: { place: { channel: "C1", thread: "7.000" }, ask: { terms: [{ name: "pool" }] } },
    });
  });

  test("what is not understood is told there", () => {
    expect(said("nodes $(x)")).toMatchObject({ kind: "paste", request: { problem: expect.stringContaining("is no name of nodes") } });
  });
});
