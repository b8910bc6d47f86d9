import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = path.join(root, "dist/chaos");

/** A source file finds templates and runbooks beside itself, by `import.meta.url`: bundled it still must. */
const asBundled: Plugin = {
  name: "as-bundled",
  setup(builder) {
    builder.onLoad({ filter: /\/(?:functions|test)\/.*\.ts$/ }, async ({ path: file }) => {
      const place = path.relative(folder, file).replaceAll("\\", "/");
      const contents = (await readFile(file, "utf8")).replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`);
      return { contents, loader: "ts" };
    });
  },
};

/** Bundles life.ts: hundreds of processes read it, and reading some hundred files of TypeScript is half of what each does. Returns the program. */
export async function bundleLife(): Promise<string> {
  await build({
    entryPoints: [path.join(root, "test/chaos/life.ts")],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    mainFields: ["module", "main"],
    minify: true,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    absWorkingDir: root,
    // CommonJS libraries ask for built-in modules by require
    banner: { js: 'import{createRequire as netcheckRequire}from"node:module";const require=netcheckRequire(import.meta.url);' },
    // they find their WebAssembly beside themselves
    external: ["@resvg/resvg-wasm", "@bufbuild/re2"],
    plugins: [asBundled],
    logLevel: "warning",
  });
  return path.join(folder, "life.mjs");
}
