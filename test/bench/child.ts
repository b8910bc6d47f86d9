import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

/** Bundles test/bench/<name>.ts into the folder as production code is, so that no reader of TypeScript is in the memory that is measured. Returns the program. */
export async function bundleChild(name: string, folder: string): Promise<string> {
  const outfile = join(folder, `${name}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL(`${name}.ts`, import.meta.url))],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node24",
    outfile,
    banner: { js: 'import{createRequire as toRequire}from"node:module";const require=toRequire(import.meta.url);' },
    logLevel: "warning",
  });
  return outfile;
}
