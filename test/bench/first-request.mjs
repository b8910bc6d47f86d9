// Plain JavaScript, so that a start pays for no type stripping: imports a Lambda handler, hands it one request, says how long both took. Arguments: entry, event.
import { pathToFileURL } from "node:url";

const started = performance.now();
const { handler } = await import(pathToFileURL(process.argv[2]).href);
const imported = performance.now();
const response = await handler(JSON.parse(process.argv[3]), {});
const done = performance.now();
const rssMb = process.memoryUsage.rss() / 1e6;
process.stdout.write(`${JSON.stringify({ importMs: imported - started, firstMs: done - imported, rssMb, response })}\n`, () => process.exit(0));
