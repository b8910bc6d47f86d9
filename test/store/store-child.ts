/**
 * Another process on a SQLite store: `node store-child.ts <database> decide <name>` waits for a line on stdin, then tries to decide all proposals and
 * prints the ids of those it decided; `… die` dies by SIGKILL in the middle of a transaction; `… write <journal>` writes until it is killed, and
 * keeps a journal of what was acknowledged.
 */
import { appendFileSync } from "node:fs";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { draft } from "./drafts.ts";

const [database = "", task = "", argument = ""] = process.argv.slice(2);
const store = new SqliteStore(database);

if (task === "decide") {
  process.stdout.write("ready\n");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  for (let n = 0; ; n++) {
    if (!(await store.proposal(`p${n}`))) break;
    const { applied } = await store.transition(`p${n}`, ["pending"], { state: "approved" }, draft(`approved/${argument}/${n}`));
    if (applied) process.stdout.write(`p${n}\n`);
  }
  process.exit(0);
} else if (task === "die") {
  const bomb = draft("never", {
    get dies() {
      return process.kill(process.pid, "SIGKILL");
    },
  });
  await store.update("i1", { state: "resolved" }, [draft("before the bomb"), bomb]);
} else {
  for (let n = 0; ; n++) {
    await store.update("i1", { problem: `${n}` }, [draft(`written/${n}`)]);
    appendFileSync(argument, `${n}\n`);
  }
}
