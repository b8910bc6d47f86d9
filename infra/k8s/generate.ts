import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parseAllDocuments } from "yaml";
import { allScripts } from "../../functions/cli/all-scripts.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { POLICY } from "../../functions/transports/pod-policy.ts";
import { byDigest } from "../../functions/transports/pod-spec.ts";
import { DEFAULTS, type Installation, manifestYaml } from "./manifest.ts";

/**
 * `node infra/k8s/generate.ts`: writes infra/k8s/netcheck.yaml for the installation that nothing is known of, which is the one in the repository.
 * With --image, --namespace or --group: prints the YAML for that installation to stdout and writes nothing. With --previous <YAML of the version before> its
 * scripts stay allowed beside the new ones. Exit code 2 if an option is wrong.
 */
const text = { type: "string" } as const;
const values = given();
const { previous, ...named } = values;
const installation: Installation = { ...DEFAULTS, ...named, ...(previous === undefined ? {} : { previous: pinnedIn(previous) }) };
const problems = [
  byDigest(installation.image) ? "" : `--image ${installation.image}: name it by its digest (name@sha256:…)`,
  ...(["namespace", "group"] as const).map((name) =>
    /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(installation[name]) ? "" : `--${name} ${installation[name]}: lower-case letters, digits and "-"`,
  ),
].filter((problem) => problem !== "");
if (problems.length > 0) {
  process.stderr.write(problems.map((problem) => `${problem}\n`).join(""));
  process.exit(2);
}
const yaml = manifestYaml(allScripts(loadCatalogue(fileURLToPath(new URL("../../runbooks", import.meta.url)))), installation);
if (Object.keys(values).length > 0) process.stdout.write(yaml);
else {
  const file = fileURLToPath(new URL("netcheck.yaml", import.meta.url));
  writeFileSync(file, yaml);
  process.stdout.write(`wrote ${file}: ${Buffer.byteLength(yaml)} bytes\n`);
}

/** The options of the command line. */
function given() {
  try {
    return parseArgs({ options: { image: text, namespace: text, group: text, previous: text } }).values;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return process.exit(2);
  }
}

/** What the YAML of another version pins. */
function pinnedIn(file: string): Record<string, string> {
  try {
    const objects = parseAllDocuments(readFileSync(file, "utf8")).map((document) => document.toJS() as Record<string, unknown>);
    const found = objects.find(({ kind, metadata }) => kind === "ConfigMap" && (metadata as { name?: string }).name === POLICY.parameters);
    if (found === undefined) throw new Error(`it has no ConfigMap ${POLICY.parameters}`);
    return found["data"] as Record<string, string>;
  } catch (error) {
    process.stderr.write(`--previous ${file}: could not read it: ${(error as Error).message}\n`);
    return process.exit(2);
  }
}
