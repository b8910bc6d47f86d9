import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = path.join(root, "functions/local/page");
const entryPoints = { page: path.join(page, "main.tsx"), style: path.join(page, "style.css") };

interface Manifest {
  /** Content hash of every source file of ours, by path from the project's root. */
  readonly inputs: Readonly<Record<string, string>>;
  /** Hash of package-lock.json: stands for all libraries. */
  readonly lock: string;
  readonly outputs: readonly string[];
}

/** The page's scripts and styles by file name, ready to be served. */
export type Assets = ReadonlyMap<string, Buffer>;

/**
 * Bundles the page, or takes it from `cacheDir` if no source has changed since. First time about a second, then a few milliseconds.
 * @throws the bundler's error, with file and line, if the sources do not compile
 */
export async function bundlePage(cacheDir = path.join(root, "node_modules/.cache/netcheck/page")): Promise<Assets> {
  return (await cached(cacheDir)) ?? (await build(cacheDir));
}

async function cached(cacheDir: string): Promise<Assets | undefined> {
  try {
    const manifest = JSON.parse(await readFile(path.join(cacheDir, "manifest.json"), "utf8")) as Manifest;
    if (manifest.lock !== (await lockHash())) return undefined;
    for (const [file, hash] of Object.entries(manifest.inputs)) if ((await hashOf(path.join(root, file))) !== hash) return undefined;
    return new Map(await Promise.all(manifest.outputs.map(async (name) => [name, await readFile(path.join(cacheDir, name))] as const)));
  } catch {
    // No cache, or half of one.
    return undefined;
  }
}

async function build(cacheDir: string): Promise<Assets> {
  const esbuild = await import("esbuild");
  const result = await esbuild.build({
    entryPoints,
    bundle: true,
    // Rarely needed blocks are a chunk of their own.
    splitting: true,
    format: "esm",
    target: "es2022",
    jsx: "automatic",
    minify: true,
    write: false,
    metafile: true,
    outdir: "/",
    absWorkingDir: root,
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "silent",
  });
  const assets = new Map(result.outputFiles.map((file) => [path.basename(file.path), Buffer.from(file.contents)]));
  const ours = Object.keys(result.metafile.inputs).filter((file) => file.startsWith("functions/"));
  const inputs = Object.fromEntries(await Promise.all(ours.map(async (file) => [file, await hashOf(path.join(root, file))] as const)));
  await store(cacheDir, assets, { inputs, lock: await lockHash(), outputs: [...assets.keys()] });
  await esbuild.stop();
  return assets;
}

/** Written beside and moved into place, so that a second process never reads half of it. */
async function store(cacheDir: string, assets: Assets, manifest: Manifest): Promise<void> {
  try {
    await mkdir(path.dirname(cacheDir), { recursive: true });
    const fresh = await mkdtemp(`${cacheDir}-`);
    for (const [name, content] of assets) await writeFile(path.join(fresh, name), content);
    await writeFile(path.join(fresh, "manifest.json"), JSON.stringify(manifest));
    await rm(cacheDir, { recursive: true, force: true });
    await rename(fresh, cacheDir);
  } catch {
    // A cache that cannot be written costs a second at the next start, no more.
  }
}

function lockHash(): Promise<string> {
  return hashOf(path.join(root, "package-lock.json"));
}

async function hashOf(file: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(file))
    .digest("hex");
}
