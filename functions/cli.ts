#!/usr/bin/env -S node --min-semi-space-size=16 --max-semi-space-size=16
// The first line: a nursery (MB) that need not grow first, and that is not too large for rows that are kept (docs/performance.md).
import module from "node:module";

// a machine's own Node may be older than the one that npm ci brings
if (Number.parseInt(process.versions.node, 10) < 24) {
  process.stderr.write(`netcheck: needs Node 24 or newer, and this is ${process.version}. npm ci brings one: run it as npx netcheck\n`);
  process.exit(1);
}

// a command is short: reading and compiling its code takes most of the time
module.enableCompileCache();
const { guard } = await import("./cli/terminal.ts");
const { program } = await import("./cli/program.ts");
// one place for all commands: what nodes and files say is never acted on by a terminal
guard(process.stdout);
guard(process.stderr);

// whoever reads may have seen enough (| head); to whom nothing can be told any more nothing is
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});
process.stderr.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

await (await program(process.argv[2])).parseAsync(process.argv);
