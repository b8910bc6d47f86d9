import { rm } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build, type Plugin } from "esbuild";
import { asBundled, NODE_BUNDLE, root } from "./bundling.ts";

/**
 * Bundles the `netcheck` command into a folder of the repository that is emptied first, with what a command needs in chunks of their own: reading a hundred files of TypeScript takes
 * longer than most of its work. Run by `npm ci` (prepare). @returns the program. @throws the bundler's error, with file and line
 */
export async function bundleCli(folder = path.join(root, "dist/cli")): Promise<string> {
  await rm(folder, { recursive: true, force: true });
  await build({
    ...NODE_BUNDLE,
    entryPoints: { cli: path.join(root, "functions/cli.ts"), zod: path.join(root, "infra/zod.ts") },
    // what every command needs comes along; the other libraries are found where they are
    packages: "external",
    alias: { zod: path.join(root, "node_modules/zod/index.js"), commander: path.join(root, "node_modules/commander/index.js") },
    minifySyntax: true,
    minifyWhitespace: true,
    outdir: folder,
    plugins: [asBundled(folder), commanderBuiltins, zodLater],
    logLevel: "warning",
  });
  return path.join(folder, "cli.mjs");
}

/**
 * What commander imports of Node at once, and a netcheck command does not use: `node:process` as a module opens all three standard streams, and `node:child_process` is for commands that are
 * programs of their own. A tenth of the start of a short command (docs/performance.md).
 */
const commanderBuiltins: Plugin = {
  name: "commander-builtins",
  setup(builder) {
    const contents = {
      "node:process": "export default globalThis.process;",
      "node:child_process": 'export default { spawn: (...given) => process.getBuiltinModule("node:child_process").spawn(...given) };',
    };
    builder.onResolve({ filter: /^node:(?:process|child_process)$/ }, ({ path: name, importer }) =>
      importer.includes("/node_modules/commander/") ? { path: name, namespace: "commander-builtins" } : undefined,
    );
    builder.onLoad({ filter: /./, namespace: "commander-builtins" }, ({ path: name }) => ({ contents: contents[name as keyof typeof contents] }));
  },
};

/** zod is loaded when the first schema is built: reading an output builds none, and zod is a twentieth of such a start. It stays one module, whoever asks for it first. */
const zodLater: Plugin = {
  name: "zod-later",
  setup(builder) {
    const contents = `let loaded;
      export const zod = () => (loaded ??= process.getBuiltinModule("node:module").createRequire(import.meta.url)("./zod.mjs")).zod();`;
    builder.onResolve({ filter: /^\.\/zod\.ts$/ }, ({ path: name, importer }) =>
      importer.endsWith("/lazy-zod.ts") ? { path: name, namespace: "zod-later" } : undefined,
    );
    builder.onLoad({ filter: /./, namespace: "zod-later" }, () => ({ contents }));
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundleCli();
