import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allScripts } from "../../functions/cli/all-scripts.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readPodLog } from "../../functions/transports/pod-log.ts";
import { podProgram } from "../../functions/transports/pod-spec.ts";
import { scripts } from "../../functions/transports/script.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import { expand } from "../emulators/kubernetes-pod.ts";
import { PROGRAMS } from "../k8s/programs.ts";

/** The debug image from Debian's packages (test/lab/image.sh), and a collection with its tools on a node that has none. Needs root, mmdebstrap and Debian's archive. */

const root = fileURLToPath(new URL("../../", import.meta.url));
const image = join(root, "node_modules/.cache/netcheck-image/root");
const installed = process.getuid?.() === 0 && spawnSync("mmdebstrap", ["--version"]).status === 0;
if (!installed && process.env["CI"] === "true") throw new Error("the debug image is tested as root with mmdebstrap: apt-get install mmdebstrap");
if (!installed) console.warn("skipped: the debug image needs root and mmdebstrap");

/**
 * What a container runtime makes of a debug pod: the image read-only, the node's /proc, /sys and /dev, the host's root at /host, a memory at /tmp and /host/tmp.
 * $1 the image, $2 an empty folder to mount it at, $3 the host's root.
 */
const CONTAINER = `set -e
image=$1 at=$2 host=$3
shift 3
mount --bind "$image" "$at"
for place in proc sys dev; do mount --rbind "/$place" "$at/$place"; done
mount -t tmpfs tmpfs "$at/tmp"
mount --bind "$host" "$at/host"
mount --bind "$at/tmp" "$at/host/tmp"
mount -o remount,bind,ro "$at"
exec chroot "$at" "$@"
`;

describe.skipIf(!installed)("the debug image", { timeout: 300_000 }, () => {
  let folder: string;
  /** A node without a shell: Talos, Bottlerocket. */
  let node: string;

  beforeAll(() => {
    mkdirSync(join(image, ".."), { recursive: true });
    execFileSync("sh", [join(root, "test/lab/image.sh"), image], { stdio: "pipe" });
    // a runtime makes the mount point, in the image's own layer
    mkdirSync(join(image, "host"), { recursive: true });
    folder = mkdtempSync(join(tmpdir(), "netcheck-image-"));
    node = join(folder, "node");
    for (const place of ["etc", "var/lib", "run", "tmp"]) mkdirSync(join(node, place), { recursive: true });
    execFileSync("sh", ["-c", `echo 'ID=shell-less' >"$1/etc/os-release"`, "sh", node]);
  }, 300_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  function container(command: readonly string[], environment: Record<string, string> = {}) {
    const at = mkdtempSync(join(folder, "at-"));
    return spawnSync("unshare", ["-m", "/bin/sh", "-c", CONTAINER, "container", image, at, node, ...command], {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...environment },
      encoding: "utf8",
      maxBuffer: 64 * 1024 * 1024,
    });
  }

  test("has every program of the list", () => {
    const programs = Object.values(PROGRAMS).flat();
    const { stdout } = container(["/bin/sh", "-c", `for name; do command -v "$name" >/dev/null || echo "$name"; done`, "sh", ...programs]);
    expect(stdout).toBe("");
  });

  test("needs nothing of its own /etc: no program is a link through it", () => {
    const through = ["bin", "sbin"].flatMap((place) =>
      readdirSync(join(image, "usr", place), { withFileTypes: true })
        .filter((entry) => entry.isSymbolicLink() && readlinkSync(join(image, "usr", place, entry.name)).startsWith("/etc/"))
        .map(({ name }) => name),
    );
    expect(through).toEqual([]);
  });

  test("a collection on a node without a shell: with the image's tools, the node's files, and nothing left there", () => {
    const catalogue = loadCatalogue(join(root, "runbooks"));
    const script = allScripts(catalogue).find(({ name }) => name === "collect-netcheck");
    if (script === undefined) throw new Error("the catalogue has no runbook netcheck");
    const nonce = "0123456789abcdef".repeat(2);
    const { command, args } = podProgram(script);
    const environment = { NETCHECK_nonce: nonce, NETCHECK_job: "job-1" };
    const argv = [...command, ...args].map((text) => expand(text, environment));
    const { stdout, stderr } = container(argv, environment);
    const log = readPodLog(stdout, nonce);
    if (log.kind !== "whole") throw new Error(`the pod printed no whole frame (${log.kind}): ${stderr}`);
    expect(log.output.tools).toBe("image");
    const plan = collectionPlan(catalogue, "netcheck");
    const about = { nonce, plan, target: "node1", transport: "debug-pod", startedAt: "2026-11-21T00:00:00Z", truncated: false };
    const capture = scripts.readCapture(log.output.stdout, about);
    // sysctl fails where one of its keys is missing; the others have nothing to complain of
    const working = /^(?:ip|iptables-save|nft|conntrack|ss|bridge|nstat|ebtables-save|bpftool) /;
    const outputs = capture.outputs.filter(({ command: name }) => working.test(name) && !name.includes("map dump"));
    expect(new Set(outputs.map(({ command: name }) => name.split(" ")[0])).size).toBeGreaterThan(7);
    expect(outputs.filter(({ exitCode }) => exitCode !== 0).map(({ command: name, stderr: said }) => `${name}: ${said}`)).toEqual([]);
    expect(capture.outputs.find(({ command: name }) => name === "cat /etc/os-release")?.text).toBe("ID=shell-less\n");
    // iptables takes its lock where the node's own iptables would
    expect(
      readdirSync(node, { recursive: true, encoding: "utf8" })
        .filter((file) => file !== "run/xtables.lock")
        .toSorted((a, b) => a.localeCompare(b)),
    ).toEqual(["etc", "etc/os-release", "run", "tmp", "var", "var/lib"]);
  });
});
