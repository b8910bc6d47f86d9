import { execFileSync, spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const installed = (() => {
  try {
    execFileSync("shellcheck", ["--version"]);
    return true;
  } catch {
    return false;
  }
})();
if (!installed && process.env["CI"] === "true") throw new Error("shellcheck is missing: .ci/run installs it");

/** The scripts that we send to nodes are checked in test/transports/script.test.ts; these are our own. */
describe.skipIf(!installed)("our shell scripts are shellcheck clean", { timeout: 60_000 }, () => {
  const scripts = ["lib.sh", ...readdirSync(join(root, "test/lab")).filter((file) => /^s\d\.sh$/.test(file))];
  /** What shellcheck finds: the failure must show it, not just that there is something. */
  const findings = (...files: string[]): string => spawnSync("shellcheck", ["-x", ...files], { cwd: join(root, "test/lab"), encoding: "utf8" }).stdout;
  test("test/lab", () => expect(findings(...scripts)).toBe(""));
  test(".ci/run", () => expect(findings(join(root, ".ci/run"))).toBe(""));
});
