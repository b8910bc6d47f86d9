// Plain JavaScript, so that a start pays for no type stripping: imports a bundle whose environment is empty. It says what it lacks as soon as its code is read. Argument: entry.
import { pathToFileURL } from "node:url";

const started = performance.now();
const said = await import(pathToFileURL(process.argv[2]).href).then(
  () => "nothing",
  (error) => error.message,
);
const importMs = performance.now() - started;
if (!said.includes("the environment lacks")) throw new Error(`the bundle did not start as expected: ${said}`);
process.stdout.write(`${JSON.stringify({ importMs, rssMb: process.memoryUsage.rss() / 1e6 })}\n`);
