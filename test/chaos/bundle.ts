import path from "node:path";
import { build } from "esbuild";
import { asBundled, NODE_BUNDLE, root, WITH_LIBRARIES } from "../../infra/bundling.ts";

const folder = path.join(root, "dist/chaos");

/** Bundles life.ts: hundreds of processes read it, and reading some hundred files of TypeScript is half of what each does. Returns the program. */
export async function bundleLife(): Promise<string> {
  await build({
    ...NODE_BUNDLE,
    ...WITH_LIBRARIES,
    entryPoints: [path.join(root, "test/chaos/life.ts")],
    outdir: folder,
    // it finds its WebAssembly beside itself
    external: ["@resvg/resvg-wasm"],
    plugins: [asBundled(folder)],
    logLevel: "warning",
  });
  return path.join(folder, "life.mjs");
}
