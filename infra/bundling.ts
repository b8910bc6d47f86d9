import { readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { BuildOptions, Plugin } from "esbuild";
import { knownCatalogue } from "./known-catalogue.ts";

/** The repository's root. */
export const root = fileURLToPath(new URL("..", import.meta.url));
const lazyZod = path.join(root, "infra/lazy-zod.ts");

/** What all bundles have in common: ES modules for Node 24, and chunks of their own for what is loaded only when needed. */
export const NODE_BUNDLE = {
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node24",
  outExtension: { ".js": ".mjs" },
  absWorkingDir: root,
} as const satisfies BuildOptions;

/** Of a bundle that holds the libraries, too: CommonJS ones ask for built-in modules by require; of ES modules only what is used is taken. */
export const WITH_LIBRARIES = {
  mainFields: ["module", "main"],
  minify: true,
  banner: { js: 'import{createRequire as netcheckRequire}from"node:module";const require=netcheckRequire(import.meta.url);' },
} as const satisfies BuildOptions;

/**
 * A source file finds templates and runbooks beside itself, by `import.meta.url`. Bundled it still must: the name is replaced by the place that the file has,
 * seen from `from`. And of zod only what is used is taken, which a bundler can tell of a namespace, but not of the object `z`: 650 KB less. Facts build
 * their schemas only when asked (lazy-zod.ts).
 * @param from the bundle's folder, if it stays in the repository; the repository's root, if the files are copied into the bundle's folder
 */
export function asBundled(from: string): Plugin {
  return {
    name: "as-bundled",
    setup(builder) {
      builder.onLoad({ filter: /\/(?:functions|test)\/.*\.ts$/ }, async ({ path: file }) => {
        const source = await readFile(file, "utf8");
        const place = path.relative(from, file).replaceAll("\\", "/");
        const inFacts = file.includes("/functions/facts/") && !file.endsWith("/capture.ts");
        const zod = inFacts ? `import { z } from ${JSON.stringify(lazyZod)}` : 'import * as z from "zod"';
        const contents = source
          .replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`)
          .replace('import { z } from "zod"', zod);
        return {
          contents: file.endsWith("/functions/rules/known.ts") ? `${contents}\n${knownCatalogue(path.join(root, "runbooks"))}` : contents,
          loader: "ts",
        };
      });
    },
  };
}
