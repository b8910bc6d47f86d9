import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, Option } from "commander";
import type { Finding, Manipulation } from "../store/verify.ts";
import type { AuditEvent } from "../triage/ports.ts";
import type { ReadTrail } from "./audit-source.ts";
import { CommandError, UsageError } from "./errors.ts";
import type { Shared } from "./output.ts";

/** Problems that are printed; the rest is counted. */
const SHOWN = 50;

/** `netcheck audit verify|export|show|report|athena`. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  const audit = netcheck.command("audit").description("the audit trail: check it, export it, read it");
  const directory = () => new Option("--directory <path>", "local mode's data").default(".netcheck");

  audit
    .command("verify")
    .description("whether anything was removed, reordered, edited, inserted, truncated or forked (exit code 1 if so)")
    .argument("[path...]", "local mode's data, an exported file, or a downloaded archive; with two, also against each other; default: --directory")
    .addOption(directory())
    .option("--anchors <file>", "earlier ends of the chains, one export's last line each: they show a trail that was rewritten as a whole")
    .option("--json", "one JSON object")
    .action(
      run(async (paths: string[], options: { directory: string; anchors?: string; json?: boolean }) => {
        await verify(paths, resolve(options.directory), options.anchors, options.json === true);
      }),
    );

  audit
    .command("export")
    .description("events as JSON lines, and as the last line where the chains end")
    .argument("[incident]")
    .option("--incident <id>", "only this incident")
    .option("--since <time>", "from the first event of this time on, as 2026-11-21 or 2026-11-21T08:00:00Z")
    .option("-o, --output <file>", "instead of stdout")
    .addOption(new Option("--format <format>", "JSON lines").choices(["jsonl"]).default("jsonl"))
    .addOption(directory())
    .option("--json", "as without it: JSON lines")
    .action(
      run(async (argument: string | undefined, options: { incident?: string; since?: string; output?: string; directory: string }) => {
        const { exportTrail, openStore } = await import("./audit-source.ts");
        const incident = options.incident ?? argument;
        const since = options.since === undefined ? undefined : Date.parse(options.since);
        if (Number.isNaN(since)) throw new UsageError(`--since ${options.since}: this is no time; write it as 2026-11-21 or 2026-11-21T08:00:00Z`);
        const store = openStore(resolve(options.directory));
        try {
          if (incident !== undefined && store.events(incident).next().done === true)
            throw new CommandError(`there are no events of ${incident}; netcheck audit show lists all`);
          const written = await exportTrail(store, { incident, since, output: options.output });
          if (options.output !== undefined) process.stdout.write(`${options.output}: ${written} events, and the ends of their chains\n`);
        } finally {
          store.close();
        }
      }),
    );

  audit
    .command("show")
    .description("events, one a line")
    .argument("[incident]")
    .addOption(directory())
    .option("--json", "one JSON line each")
    .action(
      run(async (incident: string | undefined, options: { directory: string; json?: boolean }) => {
        const { openStore } = await import("./audit-source.ts");
        const store = openStore(resolve(options.directory));
        let shown = 0;
        try {
          for (const event of store.events(incident)) {
            shown += 1;
            const { at, incident: of, actor, type, data } = event as AuditEvent;
            process.stdout.write(
              options.json === true ? `${JSON.stringify(event)}\n` : `${at}  ${of}  ${actor.id.padEnd(10)} ${type.padEnd(20)} ${JSON.stringify(data)}\n`,
            );
          }
          if (incident !== undefined && shown === 0) throw new CommandError(`there are no events of ${incident}; netcheck audit show lists all`);
        } finally {
          store.close();
        }
      }),
    );

  audit
    .command("report")
    .description("the timeline of an incident for a post-mortem")
    .argument("<incident>")
    .option("--html", "a page instead of Markdown")
    .option("-o, --output <file>", "instead of stdout")
    .addOption(directory())
    .action(
      run(async (incident: string, options: { html?: boolean; output?: string; directory: string }) => {
        const { timelineFile } = await import("./audit-report.ts");
        const text = await timelineFile({ incident, directory: resolve(options.directory), runbooks, html: options.html === true });
        if (options.output === undefined) {
          process.stdout.write(text);
          return;
        }
        try {
          writeFileSync(options.output, text, { mode: 0o600 });
        } catch (cause) {
          throw new CommandError(`${options.output}: could not write it: ${(cause as Error).message}`, { cause });
        }
        process.stdout.write(`${options.output}: the timeline of ${incident}\n`);
      }),
    );

  audit
    .command("athena")
    .description("SQL for Athena: a table over the archive, and three questions to it")
    .requiredOption("--location <url>", "of the archive, s3://<ArchiveBucketName>")
    .action(
      run(async ({ location }: { location: string }) => {
        if (!/^s3:\/\/[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:\/[A-Za-z0-9_./-]*)?$/.test(location))
          throw new UsageError(`--location ${location}: this is no place in S3; write it as s3://<ArchiveBucketName>`);
        const { athenaSql } = await import("../store/archive-layout.ts");
        process.stdout.write(athenaSql(location));
      }),
    );
}

async function verify(paths: readonly string[], directory: string, anchorFile: string | undefined, json: boolean): Promise<void> {
  const { against, openStore, readAnchors, readTrail } = await import("./audit-source.ts");
  const { LOOK, sentence } = await import("../store/verify.ts");
  // says that local mode was not started, rather than that there is no such folder
  if (paths.length === 0) openStore(directory).close();
  const anchors = anchorFile === undefined ? [] : await readAnchors(anchorFile);
  const trails: ReadTrail[] = [];
  for (const path of paths.length === 0 ? [directory] : paths) trails.push(await readTrail(path, anchors));
  const pairs = trails.flatMap((one, index) => trails.slice(index + 1).map((other) => ({ one, other, ...against(one, other) })));
  const findings: Finding[] = [...trails, ...pairs].flatMap((part) => part.findings);
  const shown = (list: readonly Finding[]) => list.map((finding) => ({ kind: finding.kind, problem: finding.text, look: LOOK[finding.kind] }));
  if (findings.length > 0) process.exitCode = 1;
  if (json) {
    const parts = trails.map(({ name, trail, findings: own, notes }) => ({ trail: name, events: trail.count, problems: shown(own), notes }));
    const [first] = parts;
    const single = parts.length === 1 && first !== undefined;
    const one = single ? { events: first.events, problems: first.problems, ...(first.notes.length === 0 ? {} : { notes: first.notes }) } : undefined;
    const both = pairs.map((pair) => ({ between: [pair.one.name, pair.other.name], common: pair.common, problems: shown(pair.findings) }));
    process.stdout.write(`${JSON.stringify(one ?? { trails: parts, compared: both })}\n`);
    return;
  }
  const say = (name: string, list: readonly Finding[], whole: string): void => {
    const lines = list.slice(0, SHOWN).map((finding) => `${name}${sentence(finding)}\n`);
    const more = list.length > SHOWN ? `${name}and ${list.length - SHOWN} more problems\n` : "";
    process.stdout.write(list.length === 0 ? `${name}${whole}\n` : `${lines.join("")}${more}`);
  };
  for (const { name, trail, findings: own, notes } of trails) {
    const label = trails.length === 1 ? "" : `${name}: `;
    say(label, own, `${trail.count} events: the chain is whole`);
    for (const note of notes) process.stdout.write(`${label}not checked: ${note}\n`);
  }
  for (const pair of pairs) {
    const all =
      pair.common > 0 ? `the ${pair.common} events that both have are the same` : "they have no event in common, so neither says anything about the other";
    say(`${pair.one.name} and ${pair.other.name}: `, pair.findings, all);
  }
  for (const kind of new Set<Manipulation>(findings.map((finding) => finding.kind))) process.stdout.write(`What to do (${kind}): ${LOOK[kind]}.\n`);
}
