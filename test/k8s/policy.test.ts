import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { RE2JS } from "@bufbuild/re2";
import type { V1Container, V1Pod } from "@kubernetes/client-node";
import { describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { allScripts } from "../../functions/cli/all-scripts.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { bindingSpec, entryPolicy, POLICY, podPolicy, policyParameters } from "../../functions/transports/pod-policy.ts";
import { podOf } from "../../functions/transports/pod-spec.ts";
import type { Script } from "../../functions/triage/ports.ts";
import { DEFAULTS, manifest, manifestYaml } from "../../infra/k8s/manifest.ts";
import { admitted, denials } from "./policy.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const scripts = allScripts(loadCatalogue(`${root}runbooks`));
const image = `example/debug@sha256:${"a".repeat(64)}`;
const policy = podPolicy(scripts);
const params = { data: policyParameters(scripts, image) };
const CANDIDATES = [
  "3f0c2b1a-9d8e-4c7b-a6f5-0123456789ab",
  "7",
  "eth0",
  "10.0.7.4",
  "02:00:5e:10:00:01",
  "br_netfilter",
  "iptables-restore",
  "iptables",
  "tcp",
  "10.0.7.4:80",
  "10.0.7.0/24",
  "net.ipv4.ip_forward=1",
  "net.ipv4.ip_local_reserved_ports=8080,30000-32767",
  "/sys/fs/cgroup/kubepods.slice",
  "cgroup_inet4_connect",
  "-4",
  "main",
  "1450",
  "unreachable",
  "yes",
  "",
];

/** A value of each parameter; lists with two. */
function parametersOf({ parameters }: Script): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters)
      .filter(([name]) => name !== "nonce" && name !== "job")
      .map(([name, { pattern }]) => {
        const fitting = CANDIDATES.filter((value) => new RegExp(pattern).test(value))[0] ?? "(none)";
        const two = `${fitting} ${fitting}`;
        return [name, new RegExp(pattern).test(two) ? two : fitting];
      }),
  );
}
function pod(script: Script, settings: { startSeconds?: number; priorityClass?: string; pullSecret?: string } = {}): V1Pod {
  const target = { name: "node1", cluster: "lab", transport: "debug-pod", address: "ip-10-0-7-4.eu-central-1.compute.internal" };
  const job = { id: "T0-1", script, parameters: parametersOf(script), nonce: "0123456789abcdef".repeat(2) };
  return podOf({ namespace: "netcheck", image, startSeconds: 120, ...settings }, target, job, Date.UTC(2026, 10, 21));
}
const judge = (object: V1Pod): string[] => denials(policy, params, admitted(object));
const script = (name: string): Script => scripts.find((item) => item.name === name) as Script;
const COLLECT = script("collect-netcheck");
const FIX = script("fix-remove-linklocal-routes");

describe("what the transport makes is allowed", () => {
  test.each(scripts.map((item) => [item.name, item] as const))("%s", (_name, item) => {
    expect(judge(pod(item))).toEqual([]);
    expect(judge(pod(item, { startSeconds: 1800, priorityClass: "system-node-critical", pullSecret: "pull" }))).toEqual([]);
  });

  test("a pod that is given up: its deadline is moved to now", () => {
    const given = pod(COLLECT);
    (given.spec as { activeDeadlineSeconds: number }).activeDeadlineSeconds = 1;
    Object.assign(given.metadata?.annotations ?? {}, { "netcheck/gave-up": "no image" });
    expect(judge(given)).toEqual([]);
  });

  test("optional parameters that are not set: the API server leaves an empty value out", () => {
    for (const item of scripts) {
      const bare = pod(item);
      for (const variable of container(bare).env ?? [])
        if (new RegExp(item.parameters[variable.name.replace("NETCHECK_", "")]?.pattern ?? "^$").test("")) variable.value = "";
      expect(judge(bare), item.name).toEqual([]);
    }
  });
});

const container = ({ spec }: V1Pod): V1Container => spec?.containers[0] as V1Container;
const spec = (object: V1Pod) => object.spec as NonNullable<V1Pod["spec"]>;
const env = (object: V1Pod) => container(object).env ?? [];
const variable = (object: V1Pod, name: string) => env(object).find((item) => item.name === `NETCHECK_${name}`) as { value: string };
const evil = { name: "evil", image: "evil" } as const;
const probe = { exec: { command: ["reboot"] } };

/** What somebody with netcheck's credentials might try: the part of the message that denies it, and the change. */
const TRIED: readonly (readonly [what: string, denied: string, change: (object: V1Pod) => void, of?: Script])[] = [
  ["another image", "image must be", (p) => (container(p).image = `example/debug@sha256:${"b".repeat(64)}`)],
  ["the image by a tag", "image must be", (p) => (container(p).image = "example/debug:1")],
  ["the image's name with a tag and the digest", "image must be", (p) => (container(p).image = image.replace("@", ":1@"))],
  ["a script with one byte more", "byte for byte", (p) => (container(p).args = [`${container(p).args?.[0]} `, container(p).args?.[1] ?? ""])],
  ["a script with one byte changed", "byte for byte", (p) => (container(p).args = [(container(p).args?.[0] ?? "").replace("set -u", "set +u"), "75"])],
  ["the script of a fix under the name of a collection", "byte for byte", (p) => (container(p).args = [container(pod(FIX)).args?.[0] ?? "", "75"])],
  ["no script", "byte for byte", (p) => delete container(p).args],
  ["a third argument", "byte for byte", (p) => container(p).args?.push("x")],
  ["the program itself as the script", "must name a script", (p) => Object.assign(p.metadata?.annotations ?? {}, { "netcheck/script": "program" })],
  ["no annotation", "must name a script", (p) => delete p.metadata?.annotations],
  ["another time limit", "own time limit", (p) => (container(p).args = [container(p).args?.[0] ?? "", "7500"])],
  ["another command", "netcheck's program", (p) => (container(p).command = ["/bin/sh", "-c", "sleep 1000000", "netcheck"])],
  ["a shell", "netcheck's program", (p) => (container(p).command = ["chroot", "/host", "bash"])],
  ["the image's own entry point", "netcheck's program", (p) => delete container(p).command],
  ["one more variable", "parameters of collect-netcheck", (p) => env(p).push({ name: "LD_PRELOAD", value: "/host/tmp/x.so" })],
  ["a variable of another script", "parameters of collect-netcheck", (p) => env(p).push({ name: "NETCHECK_members", value: "eth0" })],
  ["a variable twice", "each once", (p) => (env(p)[1] = { ...(env(p)[0] as { name: string }) })],
  ["a variable that is missing", "parameters of collect-netcheck", (p) => env(p).pop()],
  ["variables of a secret", "no variables but", (p) => (container(p).envFrom = [{ secretRef: { name: "x" } }])],
  ["a variable of a secret", "no variables but", (p) => (env(p)[0] = { name: "NETCHECK_nonce", valueFrom: { secretKeyRef: { name: "x", key: "y" } } })],
  ["a nonce that is none", "parameters of collect-netcheck", (p) => (variable(p, "nonce").value = "$(id)")],
  ["a nonce with a line behind it", "parameters of collect-netcheck", (p) => (variable(p, "nonce").value += "\nx")],
  ["a job that is a path", "parameters of collect-netcheck", (p) => (variable(p, "job").value = "../../etc/cron.d/x")],
  ["an interface that is a command", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "members").value = "eth0;reboot"), FIX],
  ["a second interface that is an option", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "members").value = "eth0 -x"), FIX],
  ["two blanks", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "members").value = "eth0  eth1"), FIX],
  ["33 interfaces", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "members").value = Array(33).fill("eth0").join(" ")), FIX],
  ["no address", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "address").value = ""), FIX],
  ["an address that is none", "parameters of fix-remove-linklocal-routes", (p) => (variable(p, "address").value = "10.0.7.400"), FIX],
  ["the host's root writable in a collection", "read-only for all scripts but fixes", (p) => delete container(p).volumeMounts?.[0]?.readOnly],
  ["the same by false", "read-only for all scripts but fixes", (p) => Object.assign(container(p).volumeMounts?.[0] ?? {}, { readOnly: false })],
  ["no mounts", "may mount only", (p) => delete container(p).volumeMounts],
  ["one more mount", "may mount only", (p) => container(p).volumeMounts?.push({ name: "host", mountPath: "/etc", readOnly: true })],
  ["a part of the host over the image's programs", "may mount only", (p) => Object.assign(container(p).volumeMounts?.[0] ?? {}, { mountPath: "/bin" })],
  ["the node's /tmp instead of memory", "may mount only", (p) => Object.assign(container(p).volumeMounts?.[2] ?? {}, { name: "host" })],
  ["mounts that get out", "may mount only", (p) => Object.assign(container(p).volumeMounts?.[0] ?? {}, { mountPropagation: "Bidirectional" })],
  ["a sub-path", "may mount only", (p) => Object.assign(container(p).volumeMounts?.[0] ?? {}, { subPath: "root" })],
  ["a volume of a secret", "volumes must be", (p) => spec(p).volumes?.push({ name: "s", secret: { secretName: "x" } })],
  ["a token by projection", "volumes must be", (p) => spec(p).volumes?.push({ name: "t", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } })],
  [
    "another part of the host",
    "volumes must be",
    (p) => (spec(p).volumes = [{ name: "host", hostPath: { path: "/var/lib/kubelet" } }, ...(spec(p).volumes?.slice(1) ?? [])]),
  ],
  [
    "scratch space on the node's disk",
    "volumes must be",
    (p) => (spec(p).volumes = [...(spec(p).volumes?.slice(0, 1) ?? []), { name: "memory", emptyDir: {} }]),
  ],
  ["no deadline", "must end by itself", (p) => delete spec(p).activeDeadlineSeconds],
  ["a deadline tomorrow", "must end by itself", (p) => (spec(p).activeDeadlineSeconds = 86_400)],
  ["a restart", "never run again", (p) => (spec(p).restartPolicy = "Always")],
  ["a restart on failure", "never run again", (p) => (spec(p).restartPolicy = "OnFailure")],
  ["a restart of the container", "start nothing but", (p) => Object.assign(container(p), { restartPolicy: "Always" })],
  ["an hour to stop", "stop within 30 s", (p) => (spec(p).terminationGracePeriodSeconds = 3600)],
  ["an init container", "one container", (p) => (spec(p).initContainers = [evil])],
  ["a second container", "one container", (p) => spec(p).containers.push(evil)],
  ["an ephemeral container", "one container", (p) => (spec(p).ephemeralContainers = [evil])],
  ["a hook after the start", "start nothing but", (p) => (container(p).lifecycle = { postStart: probe })],
  ["a liveness probe that is a command", "start nothing but", (p) => (container(p).livenessProbe = probe)],
  ["a readiness probe", "start nothing but", (p) => (container(p).readinessProbe = probe)],
  ["a startup probe", "start nothing but", (p) => (container(p).startupProbe = probe)],
  ["a terminal", "start nothing but", (p) => (container(p).tty = true)],
  ["standard input", "start nothing but", (p) => (container(p).stdin = true)],
  ["another folder to start in", "start nothing but", (p) => (container(p).workingDir = "/host/tmp")],
  ["a port", "start nothing but", (p) => (container(p).ports = [{ containerPort: 4444 }])],
  ["a disk of the node", "start nothing but", (p) => (container(p).volumeDevices = [{ name: "x", devicePath: "/dev/sda" }])],
  ["another service account", "service account's token", (p) => (spec(p).serviceAccountName = "cluster-admin")],
  ["a token of the default account", "service account's token", (p) => delete spec(p).automountServiceAccountToken],
  ["the scheduler's choice of a node", "on which node", (p) => delete spec(p).nodeName],
  ["an empty name of a node", "on which node", (p) => (spec(p).nodeName = "")],
  ["the cluster's resolver", "on which node", (p) => (spec(p).dnsPolicy = "ClusterFirst")],
  ["a resolver of one's own", "on which node", (p) => (spec(p).dnsConfig = { nameservers: ["203.0.113.9"] })],
  ["other names for addresses", "on which node", (p) => (spec(p).hostAliases = [{ ip: "203.0.113.9", hostnames: ["x"] }])],
  ["not the host's network", "host's network", (p) => (spec(p).hostNetwork = false)],
  ["not the host's processes", "host's network", (p) => delete spec(p).hostPID],
  ["not the host's IPC", "host's network", (p) => delete spec(p).hostIPC],
  ["users of its own", "host's network", (p) => (spec(p).hostUsers = false)],
  ["settings of the kernel", "security context", (p) => (spec(p).securityContext = { sysctls: [{ name: "kernel.core_pattern", value: "|x" }] })],
  [
    "a root file system that can be written to",
    "security context",
    (p) => Object.assign(container(p).securityContext ?? {}, { readOnlyRootFilesystem: false }),
  ],
  ["no privileges", "security context", (p) => Object.assign(container(p).securityContext ?? {}, { privileged: false })],
  ["another runtime", "security context", (p) => (spec(p).runtimeClassName = "kata")],
  ["no limits", "limits for cpu", (p) => delete container(p).resources],
  ["no limit of memory", "limits for cpu", (p) => delete container(p).resources?.limits?.["memory"]],
  ["a device", "limits for cpu", (p) => (spec(p).resourceClaims = [{ name: "gpu" }])],
  ["another name", "name and labels", (p) => Object.assign(p.metadata ?? {}, { name: "shell" })],
  ["no labels", "name and labels", (p) => delete p.metadata?.labels],
  ["no expiry", "name and labels", (p) => delete p.metadata?.labels?.["netcheck/expires"]],
  ["an expiry that is none", "name and labels", (p) => Object.assign(p.metadata?.labels ?? {}, { "netcheck/expires": "never" })],
  ["another manager", "name and labels", (p) => Object.assign(p.metadata?.labels ?? {}, { "app.kubernetes.io/managed-by": "helm" })],
  ["the job of another pod", "name and labels", (p) => Object.assign(p.metadata?.labels ?? {}, { "netcheck/job": "0" })],
  ["an owner", "no owner", (p) => Object.assign(p.metadata ?? {}, { ownerReferences: [{ apiVersion: "batch/v1", kind: "Job", name: "x", uid: "x" }] })],
];

describe("what somebody might try is denied", () => {
  test.each(TRIED.map(([what, denied, change, of = COLLECT]) => ({ what, denied, change, of })))("$what", ({ denied, change, of }) => {
    const object = pod(of);
    change(object);
    expect(judge(object).join("\n")).toContain(denied);
  });

  test("each expression denies something of it", () => {
    const denying = new Set(
      TRIED.flatMap(([, , change, of = COLLECT]) => {
        const object = pod(of);
        change(object);
        return judge(object).map((message) => message.replace(" (could not be evaluated)", ""));
      }),
    );
    // one expression per script: each must notice a variable that does not belong
    for (const item of scripts) {
      const object = pod(item);
      container(object).env?.push({ name: "PATH", value: "/host/tmp" });
      for (const message of judge(object)) denying.add(message);
    }
    expect(policy.validations.map(({ message }) => message).filter((message) => !denying.has(message))).toEqual([]);
  });

  test("a pod that is nothing but privileged is denied by most of them", () => {
    const bare: V1Pod = {
      metadata: { name: "shell" },
      spec: { containers: [{ name: "shell", image: "busybox", command: ["sh"], securityContext: { privileged: true } }] },
    };
    expect(judge(bare).length).toBeGreaterThan(12);
  });

  test("without the ConfigMap's data nothing is allowed", () => {
    expect(denials(policy, { data: {} }, admitted(pod(COLLECT)))).not.toEqual([]);
  });

  test("after an upgrade with --previous, what the version before sends is allowed, and nothing else", () => {
    const old = pod({ ...COLLECT, text: COLLECT.text.replace("set -u", "set -u -e") });
    const before = { ...params.data, "script.collect-netcheck": container(old).args?.[0] ?? "", image: `${image.slice(0, -1)}b` };
    const both = { data: policyParameters(scripts, image, before) };
    expect(judge(old)).not.toEqual([]);
    expect(denials(policy, both, admitted(old))).toEqual([]);
    expect(denials(policy, both, admitted(pod(COLLECT)))).toEqual([]);
    container(old).image = before.image;
    expect(denials(policy, both, admitted(old))).toEqual([]);
    container(old).args = [`${container(old).args?.[0]} `, "75"];
    expect(denials(policy, both, admitted(old))).toHaveLength(1);
    // two versions, never three
    expect(Object.keys(policyParameters(scripts, image, both.data))).toHaveLength(Object.keys(both.data).length);
  });

  test("ways into a running pod, for everybody", () => {
    expect(denials(entryPolicy(), { data: {} }, {})).toHaveLength(1);
    expect(
      entryPolicy().matchConstraints.resourceRules.flatMap(({ operations, resources }) => resources.map((name) => `${operations.join()} ${name}`)),
    ).toEqual(["CONNECT pods/exec", "CONNECT pods/attach", "CONNECT pods/portforward", "CONNECT pods/proxy", "UPDATE pods/ephemeralcontainers"]);
  });
});

describe("Kubernetes 1.30 can take it", () => {
  const expressions = [...policy.validations.map(({ expression }) => expression), ...(policy.variables ?? []).map(({ expression }) => expression)];

  test("its regular expressions are RE2's, without too many repetitions", () => {
    const patterns = expressions.flatMap((text) =>
      [...text.matchAll(/\.matches\('((?:[^'\\]|\\.)*)'\)/g)].map((match) => (match[1] ?? "").replaceAll("\\\\", "\\")),
    );
    expect(patterns.length).toBeGreaterThan(30);
    for (const pattern of patterns) expect(() => RE2JS.compile(pattern), pattern).not.toThrow();
    // the reason why lists are taken apart: the same pattern as it reaches the script would be refused
    expect(() => RE2JS.compile(script("fix-detach-stale-socket-lb").parameters["cgroups"]?.pattern ?? "")).toThrow("invalid repeat count");
  });

  test("only functions of its base environment: no optionals, no two-variable comprehensions, no newer libraries", () => {
    const text = expressions.join("\n").replaceAll(/'(?:[^'\\]|\\.)*'/g, "''");
    const called = new Set([...text.matchAll(/\b([a-z_A-Z]+)\(/g)].map((match) => match[1]));
    expect([...called].toSorted((a = "", b = "") => a.localeCompare(b))).toEqual(["all", "exists_one", "has", "matches", "size", "split"]);
    expect(text).not.toMatch(/\?\.|\[\?/);
    // words that Kubernetes escapes as field names
    expect(text).not.toMatch(/\.(?:namespace|package|loop|import|function|const|var|let|as|if|else|for|while|void|return|break|continue)\b/);
  });

  test("sizes: a ConfigMap holds 1 MiB, an object 1.5 MB, kubectl apply's annotation 256 KiB", () => {
    for (const { object } of manifest(scripts, DEFAULTS)) expect(JSON.stringify(object).length).toBeLessThan(256 * 1024);
  });
});

describe("infra/k8s/netcheck.yaml", () => {
  const file = readFileSync(`${root}infra/k8s/netcheck.yaml`, "utf8");

  test("is that of this catalogue; otherwise: node infra/k8s/generate.ts", () => {
    expect(file === manifestYaml(scripts, DEFAULTS), "run: node infra/k8s/generate.ts").toBe(true);
  });

  test("generate.ts prints another installation, keeps the version before, and refuses what is wrong", () => {
    const generate = (...argv: string[]) =>
      spawnSync(process.execPath, [`${root}infra/k8s/generate.ts`, ...argv], { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
    const { stdout } = generate("--image", image, "--namespace", "node-debug", "--group", "triage", "--previous", `${root}infra/k8s/netcheck.yaml`);
    const objects = parseAllDocuments(stdout).map(
      (document) => document.toJS() as { kind: string; data?: Record<string, string>; metadata: { name: string; namespace?: string } },
    );
    expect(objects[0]?.metadata.name).toBe("node-debug");
    expect(new Set(objects.flatMap(({ metadata }) => metadata.namespace ?? []))).toEqual(new Set(["node-debug"]));
    expect(objects.find(({ kind }) => kind === "ConfigMap")?.data).toMatchObject({ image, "previous.image": DEFAULTS.image });
    expect(generate("--image", "example/debug:1")).toMatchObject({ status: 2, stderr: expect.stringContaining("by its digest") as string });
    expect(generate("--imgae", image)).toMatchObject({ status: 2, stderr: expect.stringMatching(/^Unknown option '--imgae'[^\n]*\n$/) as string });
    expect(generate("--previous", `${root}package.json`)).toMatchObject({ status: 2, stderr: expect.stringContaining("no ConfigMap") as string });
  });

  test("means the same to a reader of YAML 1.1, as kubectl has it", () => {
    const objects = manifest(scripts, DEFAULTS).map(({ object }) => object);
    for (const version of ["1.1", "1.2"] as const) expect(parseAllDocuments(file, { version }).map((document) => document.toJS() as unknown)).toEqual(objects);
  });

  test("the account may do what the transport does, in its namespace, and nothing else", () => {
    const objects = manifest(scripts, DEFAULTS).map(({ object }) => object as { kind: string; rules?: { resources: string[]; verbs: string[] }[] });
    const rights = (kind: string) =>
      objects.filter((object) => object.kind === kind).flatMap(({ rules = [] }) => rules.map(({ resources, verbs }) => `${resources.join()}: ${verbs.join()}`));
    expect(rights("Role")).toEqual(["pods: create,get,list,watch,patch,delete", "pods/log: get", "events: list", "configmaps: get"]);
    expect(rights("ClusterRole")).toEqual(["nodes: get,list", "namespaces: get", "validatingadmissionpolicies,validatingadmissionpolicybindings: get"]);
  });

  test("both policies are bound to the namespace by the label that the API server keeps", () => {
    for (const name of [POLICY.pods, POLICY.entry]) {
      const { matchResources, validationActions } = bindingSpec(name, "netcheck");
      expect(matchResources.namespaceSelector).toEqual({ matchLabels: { "kubernetes.io/metadata.name": "netcheck" } });
      expect(validationActions).toContain("Deny");
    }
  });
});
