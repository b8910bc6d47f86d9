import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { allScripts } from "../../functions/cli/all-scripts.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { PROGRAM } from "../../functions/transports/pod-spec.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import { PROGRAMS } from "./programs.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = `${root}infra/k8s/image/`;
const packages = readFileSync(`${folder}packages.txt`, "utf8").trim().split("\n");
const catalogue = loadCatalogue(`${root}runbooks`);

/** Programs that the image leaves out, each with the reason. */
const LEFT_OUT: Readonly<Record<string, string>> = {
  adjtimex: "timedatectl says the same",
  calicoctl: "belongs to Calico's own version; its pods have it",
  chronyc: "asks the node's chronyd, which nodes without a shell reach through timedatectl",
  nmcli: "NetworkManager does not run on nodes without a shell",
  ntpq: "asks the node's ntpd, which nodes without a shell do not have",
  "ovs-appctl": "40 MB with its Python; on nodes without a shell Open vSwitch runs in a pod that has it",
  "ovs-vsctl": "as ovs-appctl",
  wget: "curl asks the same",
};
const BUILT_IN = ["[", "command", "read", "echo", "printf", "exit", "test", "true"];

describe("the debug image holds what the scripts run", () => {
  const collected = [...catalogue.runbooks.keys()].flatMap((name) => collectionPlan(catalogue, name).commands.map(({ argv }) => argv[0] as string));
  const fixing = [...catalogue.fixes.values()].flatMap(({ file }) => [...file.apply, ...file.rollback].map(({ run }) => run[0] as string));
  const listed = Object.values(PROGRAMS).flat();

  test.each([...new Set([...collected, ...fixing])].filter((program) => !program.startsWith("$")))("%s", (program) => {
    expect(
      [...listed, ...Object.keys(LEFT_OUT), ...BUILT_IN],
      `add the Debian package of ${program} to infra/k8s/image/packages.txt, or say why not`,
    ).toContain(program);
  });

  test("what the scripts themselves need", () => {
    const text = [PROGRAM, ...allScripts(catalogue).map((script) => script.text)].join("\n");
    for (const program of [
      "base64",
      "cat",
      "chroot",
      "cp",
      "gzip",
      "head",
      "mkdir",
      "mktemp",
      "mount",
      "mv",
      "rm",
      "sed",
      "sha256sum",
      "sleep",
      "timeout",
      "tr",
      "wc",
    ]) {
      expect(text, program).toMatch(new RegExp(`(?:^|[\\s;|({])${program}\\s`, "m"));
      expect(listed).toContain(program);
    }
  });

  test("and nothing else: no package without a program of the list, no program both in and out", () => {
    expect(packages).toEqual(Object.keys(PROGRAMS).sort());
    expect(Object.keys(LEFT_OUT).filter((program) => listed.includes(program) || !collected.includes(program))).toEqual([]);
  });
});

describe("the image's recipe", () => {
  const recipe = readFileSync(`${folder}Dockerfile`, "utf8");

  test("has no base but a digest that is given, and no tag", () => {
    expect(recipe).toMatch(/^ARG BASE$/m);
    expect([...recipe.matchAll(/^FROM (.*)$/gm)].map((match) => match[1])).toEqual(["$".concat("{BASE}")]);
    expect(recipe).not.toMatch(/:latest/);
  });

  // as in test/shell.test.ts, which fails where CI lacks it
  const shellcheck = spawnSync("shellcheck", ["--version"]).status === 0;
  test.skipIf(!shellcheck)("its shell scripts are shellcheck clean", () => {
    execFileSync("shellcheck", ["infra/k8s/image/build.sh", "infra/k8s/image/finish.sh", "test/lab/image.sh"], { cwd: root, stdio: "pipe" });
  });

  test("runs as root and starts nothing by itself", () => {
    expect(recipe).toMatch(/^USER 0$/m);
    expect(recipe).toMatch(/^ENTRYPOINT \[\]$/m);
  });

  test.each([
    ["a base by its tag", ["x:1"], { BASE: "debian:12" }, "BASE must name"],
    ["no version", ["x"], { BASE: `d@sha256:${"a".repeat(64)}` }, "give it a version"],
    ["a port of a registry is no version", ["host:5000/x"], { BASE: `d@sha256:${"a".repeat(64)}` }, "give it a version"],
    ["latest", ["x:latest"], { BASE: `d@sha256:${"a".repeat(64)}` }, "not latest"],
  ])("build.sh refuses %s", (_what, argv, env, said) => {
    expect(() => execFileSync("sh", [`${folder}build.sh`, ...argv], { env: { ...env, PATH: "/usr/bin:/bin" }, stdio: "pipe" })).toThrow(said);
  });
});
