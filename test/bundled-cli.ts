import { readdir, rm } from "node:fs/promises";
import path from "node:path";
import type { TestProject } from "vitest/node";
import { root } from "../infra/bundling.ts";
import { bundleCli } from "../infra/cli.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** The `netcheck` command as `npm ci` bundles it, made from the files as they are now: what people run, and ten times as fast to start as the source. */
    readonly cli: string;
  }
}

const dist = path.join(root, "dist");
const NAME = /^test-cli-(\d+)$/;

/** Run once before the tests. A folder of its own: several runs may go on in one tree. What a run that was killed has left behind goes. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  for (const name of await readdir(dist).catch(() => [])) {
    const owner = Number(NAME.exec(name)?.[1] ?? 0);
    if (owner > 0 && !lives(owner)) await rm(path.join(dist, name), { recursive: true, force: true });
  }
  const folder = path.join(dist, `test-cli-${process.pid}`);
  project.provide("cli", await bundleCli(folder));
  return () => rm(folder, { recursive: true, force: true });
}

function lives(id: number): boolean {
  try {
    return process.kill(id, 0);
  } catch {
    return false;
  }
}
