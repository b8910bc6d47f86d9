import { deliver, emptyTally } from "./delivery.ts";

/** Some of the runs in a process of its own: `node delivery-child.ts <seed> <runs> <path>`. Prints the tally and the counterexample, if there is one, as JSON. */
const [seed = "1", runs = "1", path = ""] = process.argv.slice(2);
const tally = emptyTally();
const counterexample = await deliver(Number(seed), Number(runs), tally, path);
process.stdout.write(`${JSON.stringify({ tally, counterexample })}\n`);
