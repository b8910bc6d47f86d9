import { cp, mkdir, rm } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";
import { asBundled, NODE_BUNDLE, root, WITH_LIBRARIES } from "./bundling.ts";

/** What these read at run time, and what lies beside the code as it does in the repository: the catalogue, the templates, and what draws the pictures. */
const READERS: ReadonlySet<string> = new Set(["triage", "reaper"]);
const BESIDE = ["runbooks", "templates"];
const PICTURES = ["@resvg/resvg-wasm/index_bg.wasm", "@resvg/resvg-wasm/package.json", "dejavu-fonts-ttf/package.json"].concat(
  ["DejaVuSans", "DejaVuSans-Bold"].map((font) => `dejavu-fonts-ttf/ttf/${font}.ttf`),
);

/**
 * Bundles an entry point, functions/<name>.ts, into a folder that is emptied first: `<name>.mjs` (the Lambda's `handler` is "<name>.handler"), chunks of
 * what is loaded only when needed, and the files that it reads. The same sources give the same bytes. For `slack` use `bundleAck`.
 * @returns the bundle's file. @throws the bundler's error, with file and line
 */
export async function bundleFunction(name: string, folder: string): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await build({
    ...NODE_BUNDLE,
    ...WITH_LIBRARIES,
    entryPoints: [path.join(root, `functions/${name}.ts`)],
    outdir: folder,
    // the files it reads are copied beside it
    plugins: [asBundled(root)],
    logLevel: "silent",
  });
  if (READERS.has(name)) {
    for (const one of BESIDE) await cp(path.join(root, one), path.join(folder, one), { recursive: true, filter: (file) => !file.includes("/fixtures") });
    for (const file of PICTURES) await cp(path.join(root, "node_modules", file), path.join(folder, "node_modules", file));
  }
  return path.join(folder, `${name}.mjs`);
}
