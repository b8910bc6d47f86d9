import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Capture } from "../../functions/facts/capture.ts";
import { type Catalogue, loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** The fault that the workflow's tests are about, what it explains, and another cause that may turn up. */
export const RULE = "kube-forward-before-cilium";
export const FIX = "move-cilium-forward-first";
export const OTHER_RULE = "linklocal-route-on-bond-member";
const RULES = [RULE, "conntrack-invalid-drops", OTHER_RULE, "linklocal-neighbor-failed"];

/**
 * The real catalogue, of the rules above only: what the workflow does must not depend on how many rules there are, or on one that is being written.
 * @param edit changes the text of the fix, as a new release of the catalogue would
 * @param more rules that a test is about
 */
export function catalogueOf(edit: (fix: string) => string = (text) => text, more: readonly string[] = []): Catalogue {
  const folder = mkdtempSync(join(tmpdir(), "netcheck-runbooks-"));
  try {
    for (const part of ["fixes", "netcheck", ...[...RULES, ...more].map((id) => `rules/${id}`)])
      cpSync(join(root, "runbooks", part), join(folder, part), { recursive: true, filter: (path) => !path.endsWith("/fixtures") });
    const file = join(folder, "fixes", FIX, "fix.yaml");
    writeFileSync(file, edit(readFileSync(file, "utf8")));
    return loadCatalogue(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const fixture = (rule: string, name: string): Promise<Capture> => readCaptureFiles(join(root, "runbooks/rules", rule, "fixtures", name));

export const fault = await fixture(RULE, "lab-fault");
export const fixed = await fixture(RULE, "lab-fixed");
export const healthy = await fixture(RULE, "lab-healthy");

/** The fault cured, but the routes and bonds of another incident. */
export const otherFault: Capture = await replaceOutputs(fixed, await fixture(OTHER_RULE, "lab-fault"), /^(?:ip |ovs-)/);

/** The fault, seen through the legacy backend of iptables: the fix would need other parameters. */
export const legacyFault: Capture = {
  ...fault,
  outputs: fault.outputs.map((output) => {
    const other = { "iptables-save -c": "iptables-legacy-save -c", "iptables-legacy-save -c": "iptables-save -c" }[output.command];
    const twin = fault.outputs.find((one) => one.command === other && one.sample === 1);
    return twin === undefined ? output : { ...output, text: twin.text.replaceAll("(nf_tables)", "(legacy)"), stderr: twin.stderr, exitCode: twin.exitCode };
  }),
};

/** The cured node, but the firewall's listing ends in the middle: its rules cannot be judged. */
export const truncated: Capture = {
  ...fixed,
  outputs: fixed.outputs.map((output) =>
    output.command.startsWith("iptables-") ? { ...output, text: output.text.slice(0, output.text.length / 2), truncated: true } : output,
  ),
};

async function replaceOutputs(capture: Capture, other: Capture, commands: RegExp): Promise<Capture> {
  return {
    ...capture,
    outputs: [...capture.outputs.filter(({ command }) => !commands.test(command)), ...other.outputs.filter(({ command }) => commands.test(command))],
  };
}
