import { existsSync } from "node:fs";
import { join } from "node:path";
import { SqliteStore } from "../store/sqlite.ts";
import { verifyStore } from "../store/verify.ts";
import { CommandError } from "./errors.ts";

/** `netcheck audit verify|export|show`: checks the chain (exit code 1 if it is broken), prints the events as JSON lines, or as a table. */
export async function auditCommand(verb: "verify" | "export" | "show", incident: string | undefined, directory: string, json: boolean): Promise<void> {
  const file = join(directory, "store.sqlite");
  if (!existsSync(file)) throw new CommandError(`there is no audit trail in ${directory}: start local mode first, or name another --directory`);
  const store = new SqliteStore(file);
  try {
    if (verb === "verify") {
      const problems = await verifyStore(store);
      const events = await store.audit();
      if (json) process.stdout.write(`${JSON.stringify({ events: events.length, problems })}\n`);
      else process.stdout.write(problems.length === 0 ? `${events.length} events: the chain is whole\n` : `${problems.join("\n")}\n`);
      if (problems.length > 0) process.exitCode = 1;
      return;
    }
    for (const event of await store.audit(incident)) {
      process.stdout.write(
        verb === "export" || json
          ? `${JSON.stringify(event)}\n`
          : `${event.at}  ${event.incident}  ${event.actor.id.padEnd(10)} ${event.type.padEnd(20)} ${JSON.stringify(event.data)}\n`,
      );
    }
  } finally {
    store.close();
  }
}
