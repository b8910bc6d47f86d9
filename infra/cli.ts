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
    plugins: [asBundled(folder), builtinsAsUsed, zodLater],
    logLevel: "warning",
  });
  return path.join(folder, "cli.mjs");
}

/**
 * Of Node's own modules only the names that are used. An `import` reads all names of such a module, and behind many of them Node loads more of itself: `node:fs` brings its promises and with
 * them readline, `node:util` what parses arguments and compares texts, `node:process` all three standard streams. What commander wants of `node:child_process` is for commands that are programs
 * of their own.
 */
const builtinsAsUsed: Plugin = {
  name: "builtins-as-used",
  setup(builder) {
    builder.onResolve({ filter: /^node:/ }, ({ path: name, importer }) => ({
      path: name,
      namespace: name === "node:child_process" && importer.includes("/node_modules/commander/") ? "later" : "builtin",
    }));
    builder.onLoad({ filter: /./, namespace: "later" }, ({ path: name }) => ({
      contents: `export default { spawn: (...given) => process.getBuiltinModule("${name}").spawn(...given) };`,
    }));
    builder.onLoad({ filter: /./, namespace: "builtin" }, ({ path: name }) => {
      const names = Object.keys(process.getBuiltinModule(name) as object).filter((one) => one !== "default" && /^[A-Za-z_]\w*$/.test(one));
      const contents = [
        `const builtin = process.getBuiltinModule("${name}");`,
        "const named = (name) => builtin[name];",
        "export default builtin;",
        ...names.map((one) => `const $${one} = /* @__PURE__ */ named("${one}"); export { $${one} as ${one} };`),
      ];
      return { contents: contents.join("\n") };
    });
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
