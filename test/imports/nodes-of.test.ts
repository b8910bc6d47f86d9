import { describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { readCaptures } from "../../functions/imports/index.ts";
import { folders } from "./folders.ts";

/** Saved outputs of several nodes in one folder: never two samples of one node. */

const { directory } = folders();
const read = (names: readonly string[], more: readonly (readonly [string, string])[] = []): Promise<Capture[]> =>
  readCaptures(directory(Object.fromEntries(names.map((name) => [name, [...more, ...TEXTS].find(([part]) => name.includes(part))?.[1] ?? "x\n"]))));
const TEXTS: readonly (readonly [string, string])[] = [
  ["rule", "0:\tfrom all lookup local\n"],
  ["route", "default via 10.0.0.1 dev eth0\n"],
  ["neigh", "10.0.0.1 dev eth0 lladdr 52:54:00:aa:00:01 REACHABLE\n"],
  ["nstat", "#kernel\nIpInReceives                    100                0.0\n"],
  ["nodes", "NAME   STATUS\nw1     Ready\n"],
];
const OF_A_NODE = ["ip_rule", "ip_route", "ip_neigh", "nstat_-az"];
const each = (nodes: readonly string[], name: (node: string, command: string) => string): string[] =>
  nodes.flatMap((node) => OF_A_NODE.map((command) => name(node, command)));
const seen = (captures: readonly Capture[]): unknown[] =>
  captures.map(({ target, outputs }) => [target, outputs.map(({ command, sample }) => `${sample} ${command}`).sort()]);
const WHOLE = ["1 ip neigh", "1 ip route", "1 ip rule", "1 nstat -az"];

describe("files of several nodes", () => {
  test.each<[string, (node: string, command: string) => string]>([
    ["a folder for each", (node, command) => `${node}/${command}.txt`],
    ["folders in a folder", (node, command) => `out/${node}/${command}.log`],
    ["folders with further ones", (node, command) => `${node}/network/${command}`],
    ["the node in front", (node, command) => `${node}_${command}.txt`],
    ["the node in front, behind a dash", (node, command) => `${node}-${command.replaceAll("_", "-")}.txt`],
    ["a folder for each command", (node, command) => `${command}/${node}.txt`],
    ["the node behind", (node, command) => `${command}-${node}.txt`],
  ])("%s", async (_, name) =>
    expect(seen(await read(each(["kube-w1", "kube-w2"], name)))).toEqual([
      ["kube-w1", WHOLE],
      ["kube-w2", WHOLE],
    ]),
  );

  test("one node in front of all names is no part of the commands", async () =>
    expect(seen(await read(each(["ip-10-30-16-41"], (node, command) => `${node}_${command}.txt`)))).toEqual([["ip-10-30-16-41", WHOLE]]));

  // `host`, `docker` and `wrk` are programs, too
  test.each(["host-1", "docker_2", "wrk-14"])("a node that is called like a program: %s", async (name) =>
    expect(seen(await read(each([name], (node, command) => `${node}_${command}.txt`)))).toEqual([[name, WHOLE]]),
  );

  test("a command that netcheck does not know does not hide it", async () => {
    const names = [...each(["w1"], (node, command) => `${node}_${command}.txt`), "w1_mycmd_-n_kube-system_exec_ds_x_--_ip_route.txt"];
    expect((await read(names)).map(({ target, outputs }) => [target, outputs.length])).toEqual([["w1", 5]]);
  });

  test("what the cluster told is of each", async () =>
    expect(seen(await read([...each(["w1", "w2"], (node, command) => `${node}/${command}.txt`), "kubectl_get_nodes.txt"]))).toEqual([
      ["w1", [...WHOLE.slice(0, 3), "1 kubectl get nodes", "1 nstat -az"]],
      ["w2", [...WHOLE.slice(0, 3), "1 kubectl get nodes", "1 nstat -az"]],
    ]));

  test("folders of two moments are two samples of one node", async () =>
    expect((await read(each(["t0", "t1"], (moment, command) => `${moment}/${command}.txt`))).map(({ outputs }) => outputs.map(({ sample }) => sample))).toEqual(
      [[1, 1, 1, 1, 2, 2, 2, 2]],
    ));

  test.each(["i-0aa11bb22cc33dd4", "ip-10-0-4-1", "10.0.4.1", "prod-worker-"])(
    "folders named like machines are machines, with one output each: %s",
    async (name) =>
      expect(seen(await read([1, 2].map((number) => `out/${name}${number}/nstat_-az.txt`)))).toEqual([
        [`${name}1`, ["1 nstat -az"]],
        [`${name}2`, ["1 nstat -az"]],
      ]),
  );

  test("but not where the dates in them are hours apart", async () => {
    const files = each(["run1", "run2"], (moment, command) => `${moment}/${command}.txt`);
    const dates = (second: string): (readonly [string, string])[] => [
      ["run1/date", "Fri Nov 20 14:00:00 UTC 2026\n"],
      ["run2/date", `Fri Nov 20 ${second} UTC 2026\n`],
    ];
    const captures = async (second: string): Promise<number> => (await read([...files, "run1/date.txt", "run2/date.txt"], dates(second))).length;
    expect([await captures("14:00:10"), await captures("19:00:00")]).toEqual([1, 2]);
  });

  test("folders of areas and of pods are no nodes", async () => {
    const [capture, ...others] = await read([
      "network/ip_rule.txt",
      "network/ip_route.txt",
      "system/nstat_-az.txt",
      "pods/web-0/ip_route.txt",
      "pods/web-1/ip_route.txt",
    ]);
    expect(others).toEqual([]);
    expect(capture?.outputs.map(({ command }) => command)).toEqual(["ip route", "ip rule", "nstat -az"]);
  });
});
