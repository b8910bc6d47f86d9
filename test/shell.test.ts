import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "vitest";

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
  test("test/lab", () => {
    execFileSync("shellcheck", ["-x", ...scripts], { cwd: join(root, "test/lab"), stdio: "pipe" });
  });
  test(".ci/run", () => {
    execFileSync("shellcheck", [join(root, ".ci/run")], { stdio: "pipe" });
  });
});
