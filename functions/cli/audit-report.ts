import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { distance } from "fastest-levenshtein";
import { loadCatalogue } from "../rules/load.ts";
import { loadReport } from "../slack/report.ts";
import { SqliteStore } from "../store/sqlite.ts";
import { loadTimeline } from "../triage/incident-timeline.ts";
import { openStore } from "./audit-source.ts";
import { CommandError } from "./errors.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
/** Incidents among which a wrong id is looked for. */
const RECENT = 500;

/** The timeline of an incident of local mode, as Markdown or HTML. @throws CommandError if there is no such incident, with the nearest ids */
export async function timelineFile(asked: { incident: string; directory: string; runbooks: string; html: boolean }): Promise<string> {
  // says where a store should be, and does not make one
  openStore(asked.directory).close();
  const store = new SqliteStore(join(asked.directory, "store.sqlite"));
  try {
    // reading the catalogue takes seconds, and only fixes are looked up in it
    const proposed = (await store.audit(asked.incident)).some(({ type }) => type.endsWith("-proposed"));
    const catalogue = proposed ? loadCatalogue(asked.runbooks, { tolerant: true }) : { fixes: new Map() };
    const timeline = await loadTimeline(store, catalogue, asked.incident, new Date().toISOString());
    if (timeline !== undefined) return loadReport(join(root, "templates/report.md.hbs"))({ ...timeline }, asked.html ? "timeline.html" : "timeline.md");
    const ids = (await store.incidents(RECENT)).map(({ id }) => id);
    const near = ids.toSorted((a, b) => distance(a, asked.incident) - distance(b, asked.incident)).slice(0, 3);
    throw new CommandError(`there is no incident ${asked.incident}${near.length === 0 ? "; there are none at all" : `; the nearest are ${near.join(", ")}`}`);
  } finally {
    store.close();
  }
}
