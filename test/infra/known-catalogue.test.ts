import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, expect, test } from "vitest";
import type { Known } from "../../functions/rules/known.ts";
import { known as knownHere } from "../../functions/rules/known.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { asBundled, NODE_BUNDLE, root } from "../../infra/bundling.ts";

const folder = mkdtempSync(path.join(tmpdir(), "netcheck-known-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("a bundle knows every rule, fix and runbook of the repository, as they are", async () => {
  await build({ ...NODE_BUNDLE, entryPoints: [path.join(root, "functions/rules/known.ts")], outdir: folder, plugins: [asBundled(folder)] });
  const { known } = (await import(pathToFileURL(path.join(folder, "known.mjs")).href)) as { known: Known };
  const { rules, fixes, runbooks } = loadCatalogue(path.join(root, "runbooks"));
  expect([known.files.size, known.checked.size]).toEqual([rules.size + fixes.size + runbooks.size, rules.size]);
  for (const [key, value] of known.files) expect(value).toEqual(knownHere.files.get(key));
  for (const key of known.checked) expect(knownHere.checked).toContain(key);
});
