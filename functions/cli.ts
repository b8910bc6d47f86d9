#!/usr/bin/env node
import { program } from "./cli/program.ts";

// whoever reads may have seen enough (| head)
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

await (await program(process.argv[2])).parseAsync(process.argv);
