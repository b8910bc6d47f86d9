import { existsSync } from "node:fs";
import { join } from "node:path";
import { SqliteStore } from "../store/sqlite.ts";
import { verifyStore } from "../store/verify.ts";

/** `netcheck audit verify|export|show`: checks the chain, prints all events as JSON lines, or one incident's as a table. */
export async function auditCommand(verb: "verify" | "export" | "show", incident: string | undefined, directory: string): Promise<void> {
  const file = join(directory, "store.sqlite");
  if (!existsSync(file)) throw new Error(`there is no audit trail in ${directory}: start local mode first, or name another --directory`);
  const store = new SqliteStore(file);
  try {
    if (verb === "verify") {
      const problems = await verifyStore(store);
      const events = await store.audit();
      process.stdout.write(problems.length === 0 ? `${events.length} events: the chain is whole\n` : `${problems.join("\n")}\n`);
      if (problems.length > 0) process.exitCode = 1;
      return;
    }
    for (const event of await store.audit(incident)) {
      process.stdout.write(
        verb === "export"
          ? `${JSON.stringify(event)}\n`
          : `${event.at}  ${event.incident}  ${event.actor.id.padEnd(10)} ${event.type.padEnd(20)} ${JSON.stringify(event.data)}\n`,
      );
    }
  } finally {
    store.close();
  }
}
