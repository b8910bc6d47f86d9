import { describe, expect, test } from "vitest";
import { parseNodes } from "../../functions/slack/listeners/nodes-command.ts";
import { Config } from "../../functions/triage/config.ts";
import { globFits, type Selection, selectNodes } from "../../functions/triage/fleet-select.ts";
import type { Discovered } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { expectLinear } from "../cpu-time.ts";

/** Which nodes are meant. */

const config = Config.parse({
  clusters: {
    lab: { transport: "replay", targets: { "web-1": { pool: "blue" }, "web-2": { pool: "blue" }, "web-10": { pool: "green" }, db: { pool: "green" } } },
    prod: { transport: "ssm", region: "eu-central-1", targetsByTag: { netcheck: "yes" }, targets: { "web-1": { address: "i-00000000000000001" } } },
  },
});
const discovered: readonly (Discovered & { readonly tags: Readonly<Record<string, string>> })[] = [
  { address: "i-00000000000000001", names: ["ip-10-0-0-1.internal", "10.0.0.1"], tags: { zone: "a" } },
  { address: "i-00000000000000002", names: ["ip-10-0-0-2.internal", "10.0.0.2"], tags: { zone: "a", pool: "blue" } },
  { address: "i-00000000000000003", names: ["ip-10-0-0-3.internal", "10.0.0.3"], tags: { zone: "b" } },
];

async function select(words: string, problem?: string): Promise<Selection> {
  const parsed = parseNodes(`nodes ${words}`);
  if (parsed?.kind !== "nodes" || parsed.ask.kind !== "examine") throw new Error("not understood");
  const targets = configuredTargets(
    async () => config,
    async (_transport, _cluster, _nameTag, labels = {}) => {
      if (problem !== undefined) throw new Error(problem);
      return discovered.filter(({ tags }) => Object.entries(labels).every(([name, value]) => tags[name] === value));
    },
  );
  return selectNodes({ config: async () => config, targets }, parsed.ask);
}
const names = async (words: string) => {
  const selection = await select(words);
  return selection.kind === "nodes" ? selection.targets.map(({ cluster, name }) => `${cluster}/${name}`) : selection.text;
};

describe("found", () => {
  test.each([
    ["web-2", ["lab/web-2"]],
    ["lab/web-1,db", ["lab/db", "lab/web-1"]],
    ["lab/web-*", ["lab/web-1", "lab/web-2", "lab/web-10"]],
    ["web-*", ["lab/web-1", "lab/web-2", "lab/web-10", "prod/web-1"]],
    ["WEB-1*", ["lab/web-1", "lab/web-10", "prod/web-1"]],
    ["ip-10-0-0-*", ["prod/ip-10-0-0-2.internal", "prod/ip-10-0-0-3.internal", "prod/web-1"]],
    ["10.0.0.3", ["prod/ip-10-0-0-3.internal"]],
    // the configuration's pool, and the tag of that name
    ["pool=blue", ["lab/web-1", "lab/web-2", "prod/ip-10-0-0-2.internal"]],
    ["cluster=lab pool=blue", ["lab/web-1", "lab/web-2"]],
    ["zone=a", ["prod/ip-10-0-0-2.internal", "prod/web-1"]],
    ["web-* zone=a", ["prod/web-1"]],
    ["zone=a pool=blue", ["prod/ip-10-0-0-2.internal"]],
    ["all confirm=7", ["lab/db", "lab/web-1", "lab/web-2", "lab/web-10", "prod/ip-10-0-0-2.internal", "prod/ip-10-0-0-3.internal", "prod/web-1"]],
  ])("%s", async (words, expected) => {
    expect(await names(words)).toEqual(expected);
  });

  test("each node once, however it is named", async () => {
    expect(await names("lab/db db d*")).toEqual(["lab/db"]);
  });
});

describe("told, and nothing examined", () => {
  test.each([
    ["web-1", '2 nodes are called "web-1"', ["nodes lab/web-1", "nodes prod/web-1"]],
    ["web-22 db", 'I know no node called "web-22"', ["nodes web-2 db", "nodes web-1 db", "nodes web-10 db"]],
    ["wob-*", 'No name of a node fits "wob-*"', ["nodes web-1", "nodes web-2", "nodes web-10"]],
    ["pool=blu", "No node has pool=blu", ["nodes pool=blue"]],
    ["db pool=blue", "No node of these has pool=blue", ["nodes db pool=blue"]],
    ["cluster=prd", "No node has cluster=prd", ["nodes cluster=prod"]],
    ["zone=c", "No node has zone=c", []],
    ["all", "These are 7 nodes of lab, prod", ["nodes all confirm=7"]],
    ["all confirm=5", "These are 7 nodes (there were 5 a moment ago)", ["nodes all confirm=7"]],
  ])("%s", async (words, text, commands) => {
    const selection = await select(words);
    expect(selection.kind === "unclear" ? [selection.text, selection.choices.map(({ command }) => command)] : selection).toEqual([
      expect.stringContaining(text),
      commands,
    ]);
  });
});

describe("a list that cannot be had", () => {
  test("hides nothing that was found without it, and is told", async () => {
    expect(await select("lab/web-*", "ssm: throttled")).toMatchObject({
      kind: "nodes",
      problem: "ssm: throttled",
      targets: [{ name: "web-1" }, { name: "web-2" }, { name: "web-10" }],
    });
    expect(await select("pool=blue", "ssm: throttled")).toMatchObject({ kind: "nodes", problem: "ssm: throttled" });
  });

  test("where nothing was found, it is no answer that there is none", async () => {
    await expect(select("zone=a", "ssm: throttled")).rejects.toThrow("ssm: throttled");
    await expect(select("10.0.0.1", "ssm: throttled")).rejects.toThrow("ssm: throttled");
  });
});

test("more than a thousand are refused, with what to do", async () => {
  const many = Config.parse({
    clusters: { big: { transport: "replay", targets: Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`n${at}`, {}])) } },
  });
  const ports = { config: async () => many, targets: configuredTargets(async () => many) };
  expect(await selectNodes(ports, { kind: "examine", terms: [{ by: "all" }], confirmed: 1001 })).toMatchObject({
    text: expect.stringContaining("at most 1000 are examined at once"),
  });
  expect(await selectNodes(ports, { kind: "examine", terms: [{ by: "name", name: "n1*" }] })).toMatchObject({ choices: [{ label: "Examine 112 nodes" }] });
});

describe("patterns", () => {
  test.each([
    ["*", "", true],
    ["a*", "a", true],
    ["*a", "ba", true],
    ["a*a", "a", false],
    ["a*b*c", "a-b-b-c", true],
    ["a*b*c", "a-c-b", false],
    ["ab*ba", "aba", false],
    ["abc", "abc", true],
    ["abc", "abcd", false],
    ["a.c", "abc", false],
  ])("%s fits %j: %j", (pattern, name, fits) => {
    expect(globFits(pattern, name)).toBe(fits);
  });

  test("take time in proportion to the name", () => {
    expectLinear(
      (size) => "a".repeat(size),
      (name) => expect(globFits("a*a*a*b", name)).toBe(false),
      50_000,
    );
  });
});
