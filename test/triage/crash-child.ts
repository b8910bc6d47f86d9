/** A process that is killed: `node crash-child.ts <directory> [n]` is one life on a folder; it dies by SIGKILL at its n-th point. */
import { live } from "./crash-flow.ts";

const [directory = "", n = "0"] = process.argv.slice(2);
let points = 0;
const ended = await live(directory, () => {
  points += 1;
  if (points === Number(n)) process.kill(process.pid, "SIGKILL");
});
process.stdout.write(JSON.stringify({ triage: ended.triage?.status, click: ended.click?.status }));
