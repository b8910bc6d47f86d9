import path from "node:path";
import { build } from "esbuild";
import { asBundled, NODE_BUNDLE, root, WITH_LIBRARIES } from "../../infra/bundling.ts";

/**
 * Bundles a program of test/ that many processes run: reading some hundred files of TypeScript and the catalogue is most of what each would do.
 * @param source from the repository's root
 * @param folder for the bundle, in dist/, so that it finds templates and runbooks
 * @returns the program
 */
export async function bundleProgram(source: string, folder: string): Promise<string> {
  const outdir = path.join(root, "dist", folder);
  await build({
    ...NODE_BUNDLE,
    ...WITH_LIBRARIES,
    entryPoints: [path.join(root, source)],
    outdir,
    // it finds its WebAssembly beside itself
    external: ["@resvg/resvg-wasm"],
    plugins: [asBundled(outdir)],
    logLevel: "warning",
  });
  return path.join(outdir, `${path.basename(source, ".ts")}.mjs`);
}
