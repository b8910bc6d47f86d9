import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { scripts } from "../../functions/transports/script.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import type { Capture } from "../../functions/triage/ports.ts";
import { about, applets, bb, busybox, nonce, scriptBench, shells } from "../transports/script-bench.ts";
import { skipLab } from "./requirements.ts";

const { directory, run, toolbox, collect } = scriptBench();

/** The runbook as it is sent, on this machine: here and not among the unit tests, because what it lists changes while the lab's nodes come and go. */
describe.skipIf(skipLab())("the real collection", () => {
  const catalogue = loadCatalogue(join(import.meta.dirname, "../../runbooks"));
  const real = { ...collectionPlan(catalogue, "netcheck"), intervalSeconds: 0 };

  test("is the same under every shell, with busybox's applets first in PATH too", () => {
    const captures = shells.map((shell) => collect(real, shell));
    // BPF maps may come and go meanwhile; adjtimex is there as an applet of busybox only
    const seen = (capture: Capture) =>
      capture.outputs
        .filter(({ command }) => !command.includes("dump id") && command !== "adjtimex")
        .map(({ command, sample, exitCode }) => [command, sample, exitCode === 127]);
    const [first = [], ...others] = captures.map(seen);
    expect(first.length).toBeGreaterThan(20);
    for (const other of others) expect(other).toEqual(first);
    for (const capture of captures) expect(capture.notCollected).toEqual([]);
    if (!busybox) return;
    // fact files name the outputs, so no two may share one
    for (const { outputs } of captures) expect(new Set(outputs.map(({ file }) => file)).size).toBe(outputs.length);
    const path = toolbox(bb(...applets));
    const mixed = collect(real, ["busybox", "sh"], `${path}:/usr/sbin:/usr/bin:/sbin:/bin`);
    expect(seen(mixed)).toEqual(first);
    expect(mixed.notCollected).toEqual([]);
  });

  test.each(shells.map((shell) => ({ name: shell.join(" "), shell })))("writes nothing outside its temporary folder under $name", ({ shell }) => {
    // everything is read-only but a fresh /tmp; a script that tries to write elsewhere fails and says so
    const enter = `set -e
        mount --make-rprivate /
        mount -t tmpfs tmpfs ${join(directory(), "tmp")}
        awk '$2 !~ "^${join(directory(), "tmp")}" { print $2 }' /proc/self/mounts | while read -r point; do mount -o remount,bind,ro "$point" 2>/dev/null || true; done
        if touch /var/tmp/netcheck-probe 2>/dev/null || touch /root/netcheck-probe 2>/dev/null; then echo "the namespace is not read-only" >&2; exit 99; fi
        ${shell.join(" ")} -s
        ls -A ${join(directory(), "tmp")}`;
    const ran = run(scripts.collect(real).text, ["unshare", "-m", "sh", "-c", enter]);
    expect({ code: ran.code, stderr: ran.stderr }).toEqual({ code: 0, stderr: "" });
    expect(ran.stdout).toMatch(new RegExp(`\\nNETCHECK/1 ${nonce} end\\n$`));
    const capture = scripts.readCapture(ran.stdout, { ...about, plan: real });
    expect(capture.notCollected).toEqual([]);
    const complaints = capture.outputs.filter(({ stderr }) => /read-only/i.test(stderr)).map(({ command }) => command);
    expect(complaints).toEqual([]);
  });
});
