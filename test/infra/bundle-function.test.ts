import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { bundleFunction } from "../../infra/bundle-function.ts";

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "netcheck-bundle-"));
const triage = join(folder, "triage");
const again = join(folder, "again");
// at the same time: others may be editing the sources
beforeAll(() => Promise.all([triage, again].map((place) => bundleFunction("triage", place))));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What the bundle says when it is loaded with this environment alone, far from our sources and libraries. */
async function load(file: string, environment: Record<string, string>): Promise<string> {
  const script = `import(${JSON.stringify(pathToFileURL(file).href)}).then(() => console.log("loaded"), (error) => console.log(error.message))`;
  const { stdout } = await run(process.execPath, ["--input-type=module", "-e", script], { env: environment, cwd: folder });
  return stdout.trim();
}
/** Of everything in the folder. */
function hashOf(place: string): string {
  const hash = createHash("sha256");
  const files = readdirSync(place, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  for (const file of files.map(({ parentPath, name }) => join(parentPath, name)).sort()) hash.update(file.slice(place.length)).update(readFileSync(file));
  return hash.digest("hex");
}

describe("the bundle of the triage", () => {
  test("loads by itself, and says what its environment lacks", async () => {
    expect(await load(join(triage, "triage.mjs"), {})).toBe(
      "triage: the environment lacks TABLE, BUCKET, CONFIG_PARAMETER, SLACK_SECRET_ARN, TRIAGE_FUNCTION, TRIAGE_QUALIFIER; infra/ sets it, so deploy again",
    );
  });

  test("knows its own name from Lambda", async () => {
    const said = await load(join(triage, "triage.mjs"), { AWS_LAMBDA_FUNCTION_NAME: "netcheck-triage", TRIAGE_QUALIFIER: "live" });
    expect(said).toMatch(/^triage: the environment lacks TABLE, BUCKET, CONFIG_PARAMETER, SLACK_SECRET_ARN;/);
  });

  test("has the catalogue, the templates, and what draws the pictures, where the code looks for them; and no fixtures", () => {
    const { rules, fixes } = loadCatalogue(join(triage, "runbooks"));
    expect([rules.size > 50, fixes.size > 3]).toEqual([true, true]);
    expect(existsSync(join(triage, "templates/diagram.svg.hbs"))).toBe(true);
    const require = createRequire(join(triage, "functions/slack/diagram.ts"));
    expect(require.resolve("@resvg/resvg-wasm/index_bg.wasm")).toBe(join(triage, "node_modules/@resvg/resvg-wasm/index_bg.wasm"));
    expect(require.resolve("dejavu-fonts-ttf/package.json")).toBe(join(triage, "node_modules/dejavu-fonts-ttf/package.json"));
    for (const font of ["DejaVuSans", "DejaVuSans-Bold"]) expect(existsSync(join(triage, `node_modules/dejavu-fonts-ttf/ttf/${font}.ttf`))).toBe(true);
    expect(readdirSync(triage, { recursive: true, encoding: "utf8" }).filter((name) => name.includes("fixtures"))).toEqual([]);
  });

  test("is the same from the same sources: a deployment without a change makes no new version", () => {
    expect(hashOf(again)).toBe(hashOf(triage));
  });
});

test("an entry point that is not there fails with its name", async () => {
  await expect(bundleFunction("nothing", join(folder, "nothing"))).rejects.toThrow(/functions\/nothing\.ts/);
});
