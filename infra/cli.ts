import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = path.join(root, "dist/cli");
const lazyZod = path.join(root, "infra/lazy-zod.ts");

/**
 * A source file finds templates and runbooks beside itself, by `import.meta.url`. Bundled it still must: the name is replaced by the place it came from.
 * And of zod only what is used is taken, which the bundler can tell of a namespace, but not of the object `z`: 650 KB less.
 */
const asBundled: Plugin = {
  name: "as-bundled",
  setup(builder) {
    builder.onLoad({ filter: /\/functions\/.*\.ts$/ }, async ({ path: file }) => {
      const source = await readFile(file, "utf8");
      const place = path.relative(folder, file).replaceAll("\\", "/");
      const zod =
        file.includes("/functions/facts/") && !file.endsWith("/capture.ts") ? `import { z } from ${JSON.stringify(lazyZod)}` : 'import * as z from "zod"';
      const contents = source.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`).replace('import { z } from "zod"', zod);
      return { contents, loader: "ts" };
    });
  },
};

/**
 * Bundles the `netcheck` command into dist/cli/cli.mjs, with what a command needs in chunks of their own: reading a hundred files of TypeScript takes
 * longer than most of its work. Run by `npm ci` (prepare). @throws the bundler's error, with file and line
 */
export async function bundleCli(): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await build({
    entryPoints: [path.join(root, "functions/cli.ts")],
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    // what every command needs comes along; the other libraries are found where they are
    packages: "external",
    alias: { zod: path.join(root, "node_modules/zod/index.js"), commander: path.join(root, "node_modules/commander/index.js") },
    minifySyntax: true,
    minifyWhitespace: true,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    absWorkingDir: root,
    plugins: [asBundled],
    logLevel: "warning",
  });
  return path.join(folder, "cli.mjs");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleCli();
