import { cp, mkdir, readFile, rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";

const root = fileURLToPath(new URL("..", import.meta.url));
const lazyZod = path.join(root, "infra/lazy-zod.ts");

/** What these read at run time, and what lies beside the code as it does in the repository: the catalogue, the templates, and what draws the pictures. */
const READERS: ReadonlySet<string> = new Set(["triage", "reaper"]);
const BESIDE = ["runbooks", "templates"];
const PICTURES = ["@resvg/resvg-wasm/index_bg.wasm", "@resvg/resvg-wasm/package.json", "dejavu-fonts-ttf/package.json"].concat(
  ["DejaVuSans", "DejaVuSans-Bold"].map((font) => `dejavu-fonts-ttf/ttf/${font}.ttf`),
);

/** CommonJS libraries ask for built-in modules by require. */
const REQUIRE = 'import{createRequire}from"node:module";const require=createRequire(import.meta.url);';

/**
 * A source file finds what lies beside it by `import.meta.url`. Bundled, all code is in the bundle's own folder, so that the name is replaced by the place
 * that the file would have there. And of zod only what is used is taken (infra/cli.ts).
 */
const asBundled: Plugin = {
  name: "as-bundled",
  setup(builder) {
    builder.onLoad({ filter: /\/functions\/.*\.ts$/ }, async ({ path: file }) => {
      const source = await readFile(file, "utf8");
      const place = path.relative(root, file).replaceAll("\\", "/");
      const inFacts = file.includes("/functions/facts/") && !file.endsWith("/capture.ts");
      const zod = inFacts ? `import { z } from ${JSON.stringify(lazyZod)}` : 'import * as z from "zod"';
      const contents = source.replaceAll("import.meta.url", `new URL(${JSON.stringify(place)}, import.meta.url).href`).replace('import { z } from "zod"', zod);
      return { contents, loader: "ts" };
    });
  },
};

/**
 * Bundles an entry point, functions/<name>.ts, into a folder that is emptied first: `<name>.mjs` (the Lambda's `handler` is "<name>.handler"), chunks of
 * what is loaded only when needed, and the files that it reads. The same sources give the same bytes. For `slack` use `bundleAck`.
 * @returns the bundle's file. @throws the bundler's error, with file and line
 */
export async function bundleFunction(name: string, folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    entryPoints: [path.join(root, `functions/${name}.ts`)],
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
    banner: { js: REQUIRE },
    plugins: [asBundled],
    logLevel: "silent",
  });
  if (READERS.has(name)) {
    for (const one of BESIDE) await cp(path.join(root, one), path.join(folder, one), { recursive: true, filter: (file) => !file.includes("/fixtures") });
    for (const file of PICTURES) await cp(path.join(root, "node_modules", file), path.join(folder, "node_modules", file));
  }
  return path.join(folder, `${name}.mjs`);
}
