#!/usr/bin/env node
import module from "node:module";

// a command is short: reading and compiling its code takes most of the time
module.enableCompileCache();
const { program } = await import("./cli/program.ts");

// whoever reads may have seen enough (| head)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

await (await program(process.argv[2])).parseAsync(process.argv);
