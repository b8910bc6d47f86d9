import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { byDigest, literal, PROGRAM, podName, podOf, podProgram } from "../../functions/transports/pod-spec.ts";
import { scripts } from "../../functions/transports/script.ts";
import type { FixPlan, Plan } from "../../functions/triage/ports.ts";
import { namespaceKubelet } from "../emulators/kubelet.ts";
import type { KubernetesEmulator } from "../emulators/kubernetes.ts";
import { expand } from "../emulators/kubernetes-pod.ts";
import { job, result, script, transportContract } from "./contract.ts";
import { create, image, quick, runsContainers, startCluster, target } from "./pods.ts";

const nonce = "0123456789abcdef0123456789abcdef";
const shellcheck = spawnSync("shellcheck", ["--version"]).error === undefined;
if (!shellcheck && process.env["CI"] === "true") throw new Error("shellcheck is missing: .ci/run installs it");
const settings = { namespace: "netcheck", image, startSeconds: 120 };

if (runsContainers)
  transportContract("debug-pod", async () => {
    const emulator = await startCluster();
    return {
      transport: () => create(emulator),
      target,
      nowhere: { ...target, name: "nowhere", address: "no-such-node" },
      register: () => undefined,
      close: () => emulator.close(),
    };
  });

describe("the debug pod", () => {
  const pod = podOf(settings, target, quick, 1_000_000);

  test("is what kubectl debug makes with --profile=sysadmin, and cleans up after itself", () => {
    expect(pod).toMatchObject({
      metadata: {
        namespace: "netcheck",
        labels: { "app.kubernetes.io/managed-by": "netcheck", "netcheck/expires": String(1000 + 120 + 20 + 30 + 900) },
        annotations: { "netcheck/job-id": "job-1", "netcheck/target": "node1" },
      },
      spec: {
        nodeName: target.address,
        hostNetwork: true,
        hostPID: true,
        hostIPC: true,
        tolerations: [{ operator: "Exists" }],
        restartPolicy: "Never",
        activeDeadlineSeconds: 170,
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        containers: [{ image, securityContext: { privileged: true, readOnlyRootFilesystem: true } }],
        volumes: [{ hostPath: { path: "/", type: "Directory" } }, { emptyDir: { medium: "Memory" } }],
      },
    });
  });

  test("cannot write to the node, unless it is a fix", () => {
    const readOnly = (changes: boolean) =>
      podOf(settings, target, { ...quick, script: { ...quick.script, ...(changes ? { changes: true } : {}) } }, 0).spec?.containers[0]?.volumeMounts?.[0]
        ?.readOnly;
    expect([readOnly(false), readOnly(true)]).toEqual([true, false]);
    const plan: FixPlan = { name: "fix-x", parameters: {}, check: "true", steps: [{ run: ["true"] }] };
    expect([scripts.fix(plan).changes, scripts.fixStatus.changes]).toEqual([true, undefined]);
  });

  test("has one name per job and node, with labels that Kubernetes takes, also for the longest id", () => {
    const long = podOf(settings, target, job("x".repeat(80), quick.script), Date.now());
    expect(long.metadata?.name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])$/);
    for (const value of Object.values(long.metadata?.labels ?? {})) expect(value).toMatch(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,61}[A-Za-z0-9]$/);
    expect(podName("a", "node1")).toBe(podName("a", "node1"));
    expect(new Set([podName("a", "node1"), podName("a", "node2"), podName("b", "node1")]).size).toBe(3);
  });

  test("names a script's program alike for every run, so that an admission policy can pin it", () => {
    const other = podOf({ ...settings, namespace: "x" }, { ...target, address: "b" }, { ...quick, id: "job-2", nonce: "f".repeat(32) }, 5);
    const { command, args } = pod.spec?.containers[0] ?? {};
    expect(other.spec?.containers[0]).toMatchObject({ command, args });
    expect({ command, args }).toEqual(podProgram(quick.script));
  });

  test("what Kubernetes rewrites arrives as it was", () => {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: it is shell
    const hostile = 'echo "$$ $(NETCHECK_job) $$(x) ${HOME} $" $$$';
    expect(literal(hostile)).not.toBe(hostile);
    expect(expand(literal(hostile), { NETCHECK_job: "wrong" })).toBe(hostile);
    expect(expand("pid=$$ home=$(echo sub) host=$(HOSTVAR)", { HOSTVAR: "h" })).toBe("pid=$ home=$(echo sub) host=h");
  });

  test("a script that the kernel would not take as an argument is refused by its name", () => {
    expect(() => podProgram(script("long", "x".repeat(128 * 1024)))).toThrow("the script long has 131072 bytes; a debug pod takes 131071");
  });

  test.each([
    [image, true],
    ["images.example/debug:1", false],
    ["images.example/debug:1@sha256:0123", false],
    [`images.example/debug:1@sha256:${"a".repeat(64)}`, true],
    [`@sha256:${"a".repeat(64)}`, false],
  ])("image %s: by digest %s", (name, good) => expect(byDigest(name)).toBe(good));

  test.skipIf(!shellcheck)("its program passes shellcheck", () => {
    expect(spawnSync("shellcheck", ["-s", "sh", "-"], { input: PROGRAM, encoding: "utf8" }).stdout).toBe("");
  });
});

const plan: Plan = {
  runbook: "here",
  commands: [
    { argv: ["cat", "/etc/os-release"] },
    { argv: ["sh", "-c", "cat /etc/image 2>/dev/null || echo none"] },
    { argv: ["cat", "/proc/sys/net/ipv4/ip_forward"] },
  ],
  timeoutSeconds: 5,
  maxBytes: 100_000,
  intervalSeconds: 1,
  budgetSeconds: 20,
};
const fix: FixPlan = {
  name: "fix-write",
  parameters: { word: { pattern: "^[a-z]+$", description: "" } },
  check: "true",
  steps: [{ run: ["tee", "/var/lib/written"], stdin: "fixed" }],
};

describe.skipIf(!runsContainers)("on a node", () => {
  let host: string;
  let emulator: KubernetesEmulator;
  /** The root of a node: with a shell (busybox only), or without one, as Talos and Bottlerocket have none. */
  async function node(shell: boolean): Promise<void> {
    for (const place of ["etc", "var/lib", "run", "tmp", "proc", "dev", "bin"]) mkdirSync(join(host, place), { recursive: true });
    writeFileSync(join(host, "etc/os-release"), "ID=testos\n");
    if (shell) {
      copyFileSync(execFileSync("sh", ["-c", "command -v busybox"], { encoding: "utf8" }).trim(), join(host, "bin/busybox"));
      for (const applet of execFileSync("busybox", ["--list"], { encoding: "utf8" }).trim().split("\n"))
        if (applet !== "busybox") symlinkSync("busybox", join(host, "bin", applet));
    }
    emulator = await startCluster({ kubelet: namespaceKubelet({ hostRoot: host }) });
  }
  beforeEach(() => {
    host = mkdtempSync(join(tmpdir(), "netcheck-host-"));
  });
  afterEach(async () => {
    await emulator.close();
    rmSync(host, { recursive: true });
  });

  const files = (): string[] =>
    readdirSync(host, { recursive: true, encoding: "utf8" })
      .filter((name) => !/^(?:bin|proc|dev)\//.test(name))
      .sort();

  test.each([
    ["a shell: its own tools", true, undefined],
    ["no shell: the image's tools, on the node's own files", false, "image's tools: the node has no shell"],
  ])("with %s", async (_what, shell, note) => {
    await node(shell);
    const before = files();
    const collection = scripts.collect(plan);
    const transport = create(emulator);
    const state = await result(transport, target, await transport.start(target, job("job-1", collection)));
    expect(state).toMatchObject({ state: "done", exitCode: 0, truncated: false, ...(note === undefined ? {} : { note }) });
    if (state.state !== "done") return;
    expect(state.note).toBe(note);
    const { outputs } = scripts.readCapture(state.stdout, { nonce, plan, target: "node1", transport: "debug-pod", startedAt: "", truncated: state.truncated });
    expect(outputs.map(({ text }) => text)).toEqual(["ID=testos\n", "none\n", expect.stringMatching(/^[01]\n$/)]);
    expect(files()).toEqual(before);
  });

  test.each([
    ["with a shell", true],
    ["without one", false],
  ])("%s: a collection cannot write, a fix can, and its marker is on the node: a second run only repeats the first one's report", async (_what, shell) => {
    await node(shell);
    const transport = create(emulator);
    const attempt = await result(transport, target, await transport.start(target, job("w", script("write", "echo x >/var/lib/x; echo $?"))));
    expect(attempt).toMatchObject({ state: "done", stdout: expect.stringMatching(/^[12]\n$/) });
    expect(existsSync(join(host, "var/lib/x"))).toBe(false);

    const run = async () => {
      const handle = await transport.start(target, { ...job("fix-1", scripts.fix(fix), { word: "a" }) });
      const state = await result(transport, target, handle);
      await transport.release?.(target, handle);
      return scripts.readFix(state.state === "done" ? state.stdout : "", nonce);
    };
    expect(await run()).toMatchObject({ outcome: "succeeded", repeated: false });
    expect(readFileSync(join(host, "var/lib/written"), "utf8")).toBe("fixed\n");
    rmSync(join(host, "var/lib/written"));
    expect(await run()).toMatchObject({ outcome: "succeeded", repeated: true });
    expect(existsSync(join(host, "var/lib/written"))).toBe(false);
    expect(readdirSync(join(host, "var/lib/netcheck/runs"))).toEqual(["fix-1"]);
    const status = { ...scripts.fixStatus };
    const asked = await result(transport, target, await transport.start(target, job("fix-1-status", status, { run: "fix-1" })));
    expect(scripts.readFixStatus(asked.state === "done" ? asked.stdout : "", nonce)).toBe("succeeded");
  });

  test("without a shell, and with files that cannot be put in place: nothing runs, and it says so", async () => {
    await node(false);
    rmSync(join(host, "run"), { recursive: true });
    const transport = create(emulator);
    const state = await result(transport, target, await transport.start(target, quick));
    expect(state).toMatchObject({ state: "done", exitCode: 69, stdout: "", stderr: expect.stringContaining("no /bin/sh, and its /run could not be mounted") });
  });

  test("more than a pod may print is cut, and says so", async () => {
    await node(true);
    const transport = create(emulator);
    const state = await result(transport, target, await transport.start(target, job("big", script("big", "head -c 6000000 /dev/urandom | base64"))));
    expect(state).toMatchObject({ state: "done", exitCode: 0, truncated: true });
    // 6 MiB of base64 of what gzip makes of base64
    expect(state.state === "done" && state.stdout.length).toBeGreaterThan(5_500_000);
    expect(Math.max(...emulator.logBytes())).toBeLessThan(7_000_000);
  });
});
