#!/usr/bin/env -S node --min-semi-space-size=16 --max-semi-space-size=16
// The first line: a nursery (MB) that need not grow first, and that is not too large for rows that are kept (docs/performance.md).
import module from "node:module";

// a command is short: reading and compiling its code takes most of the time
module.enableCompileCache();
const { guard } = await import("./cli/terminal.ts");
const { program } = await import("./cli/program.ts");
// one place for all commands: what nodes and files say is never acted on by a terminal
guard(process.stdout);
guard(process.stderr);

// whoever reads may have seen enough (| head)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

await (await program(process.argv[2])).parseAsync(process.argv);
