import { rm } from "node:fs/promises";
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

/** Run once before the tests. A folder of its own: several runs may go on in one tree. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = path.join(root, `dist/test-cli-${process.pid}`);
  project.provide("cli", await bundleCli(folder));
  return () => rm(folder, { recursive: true, force: true });
}
