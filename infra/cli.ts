import { rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = path.join(root, "dist/cli");

/**
 * A source file finds templates and runbooks beside itself, by `import.meta.url`. Bundled it still must: the name is replaced by the place it came from.
 */
const inPlace: Plugin = {
  name: "in-place",
  setup(builder) {
    builder.onLoad({ filter: /\/functions\/.*\.ts$/ }, async ({ path: file }) => {
      const { readFile } = await import("node:fs/promises");
      const source = await readFile(file, "utf8");
      const place = path.relative(folder, file).replaceAll("\\", "/");
      return { contents: source.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`), loader: "ts" };
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
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    absWorkingDir: root,
    plugins: [inPlace],
    logLevel: "warning",
  });
  return path.join(folder, "cli.mjs");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleCli();
