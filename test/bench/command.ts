import { readFileSync } from "node:fs";
import { bundleCli } from "../../infra/cli.ts";

const FIRST_LINE = /^#!\/usr\/bin\/env -S node (.*)\n/;

/** The flags that the `netcheck` command gives Node in its first line. */
export function nodeFlags(): string[] {
  const flags = FIRST_LINE.exec(readFileSync(new URL("../../functions/cli.ts", import.meta.url), "utf8"))?.[1];
  if (flags === undefined) throw new Error("bench: functions/cli.ts begins otherwise than this expects");
  return flags.split(" ");
}

/** The `netcheck` command as people run it: bundled as `npm ci` does it now, with the flags of its first line. @returns program and arguments */
export async function netcheckCommand(): Promise<string[]> {
  return [process.execPath, ...nodeFlags(), await bundleCli()];
}

/** What Node is given in the Lambda that works (`NODE_OPTIONS` in infra/triage-function.ts). */
export const LAMBDA_FLAGS = ["--max-semi-space-size=4"];
