import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { build as bundle, type Metafile, type Plugin } from "esbuild";
import { drawHelp } from "../functions/slack/help.ts";
import { loadTemplates } from "../functions/slack/render.ts";
import { NODE_BUNDLE, root, WITH_LIBRARIES } from "./bundling.ts";

/**
 * What Bolt imports for its other receivers: 1.6 MB that AwsLambdaReceiver never touches (docs/performance.md). A module that does nothing stands in,
 * so using one of them by mistake fails at the first call.
 */
const UNUSED = ["express", "@slack/oauth", "@slack/socket-mode", "raw-body", "path-to-regexp"];
/** … and these receivers themselves. */
const OTHER_RECEIVERS = /^\.{1,2}\/(?:receivers\/)?(?:ExpressReceiver|HTTPReceiver|SocketModeReceiver)$/;
const withoutUnused: Plugin = {
  name: "without-unused",
  setup(build) {
    build.onResolve({ filter: new RegExp(`^(?:${UNUSED.join("|")})$`) }, ({ path: name }) => ({ path: name, namespace: "unused" }));
    build.onResolve({ filter: OTHER_RECEIVERS }, ({ path: name }) => ({ path: name, namespace: "unused" }));
    build.onLoad({ filter: /.*/, namespace: "unused" }, () => ({ contents: "module.exports = {};" }));
  },
};

export interface Bundle {
  /** The Lambda's `handler` setting is "slack.handler". */
  readonly entry: string;
  /** Bytes that a cold start reads: the entry and what it imports at once. */
  readonly startBytes: number;
  /** Bytes with all that is loaded later, when needed: the SDK. */
  readonly totalBytes: number;
  /** Packages in the first part, largest first, with their bytes. */
  readonly packages: readonly (readonly [name: string, bytes: number])[];
}

/**
 * Bundles functions/slack.ts, the acknowledging Lambda, into a folder that is emptied first: slack.mjs, its chunks, help.json.
 * @throws the bundler's error, with file and line; or the template's, if Slack would refuse the help
 */
export async function bundleAck(folder: string): Promise<Bundle> {
  await rm(folder, { recursive: true, force: true });
  const { metafile } = await bundle({
    // the SDK is a chunk of its own, read at the first start of work
    ...NODE_BUNDLE,
    ...WITH_LIBRARIES,
    entryPoints: [path.join(root, "functions/slack.ts")],
    metafile: true,
    outdir: folder,
    plugins: [withoutUnused],
    logLevel: "silent",
  });
  await mkdir(folder, { recursive: true });
  const help = JSON.stringify(drawHelp(loadTemplates(path.join(root, "templates/slack"))));
  await writeFile(path.join(folder, "help.json"), help);
  const entry = Object.keys(metafile.outputs).find((file) => metafile.outputs[file]?.entryPoint === "functions/slack.ts") as string;
  const atStart = importedAtOnce(metafile, entry);
  const bytes = (files: Iterable<string>) => [...files].reduce((sum, file) => sum + (metafile.outputs[file]?.bytes ?? 0), help.length);
  return {
    entry: path.resolve(root, entry),
    startBytes: bytes(atStart),
    totalBytes: bytes(Object.keys(metafile.outputs)),
    packages: packagesOf(metafile, atStart),
  };
}

function importedAtOnce(metafile: Metafile, entry: string, found = new Set<string>()): Set<string> {
  if (found.has(entry)) return found;
  found.add(entry);
  for (const { path: file, kind, external } of metafile.outputs[entry]?.imports ?? [])
    if (kind === "import-statement" && external !== true) importedAtOnce(metafile, file, found);
  return found;
}

function packagesOf(metafile: Metafile, files: ReadonlySet<string>): [string, number][] {
  const sizes = new Map<string, number>();
  for (const file of files)
    for (const [input, { bytesInOutput }] of Object.entries(metafile.outputs[file]?.inputs ?? {})) {
      const name = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules\/)/.exec(input)?.[1] ?? "netcheck";
      sizes.set(name, (sizes.get(name) ?? 0) + bytesInOutput);
    }
  return [...sizes].sort((a, b) => b[1] - a[1]);
}

if (import.meta.main) {
  const bundle = await bundleAck(path.resolve(process.argv[2] ?? "dist/slack"));
  process.stdout.write(`${JSON.stringify(bundle, undefined, 2)}\n`);
}
