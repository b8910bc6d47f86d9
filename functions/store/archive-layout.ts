import type { AuditEvent } from "../triage/ports.ts";

/**
 * Where the archive keeps an event: `audit/<day>/<number over all incidents>-<incident>-<number in it>.json`. The day (UTC, of the event's own time) is what
 * Athena prunes by; within a bucket the numbers say the order.
 */
export const archiveKey = ({ at, globalSequence, incident, sequence }: Pick<AuditEvent, "at" | "globalSequence" | "incident" | "sequence">): string =>
  `audit/${DAY.test(at) ? at.slice(0, 10) : NO_DAY}/${String(globalSequence).padStart(12, "0")}-${incident}-${sequence}.json`;

const DAY = /^\d{4}-\d{2}-\d{2}T/;
/** Of an event whose time is none: it must be archived all the same. */
const NO_DAY = "1970-01-01";

/** Name of an object, as `archiveKey` makes it, without folders. */
export const ARCHIVED = /^(\d{12,})-([A-Za-z0-9_-]+)-(\d+)\.json$/;

/** Columns of an event, in the order of its canonical JSON, with their types in Athena. `data` differs by type: it is read as JSON text. */
export const COLUMNS: readonly (readonly [field: keyof AuditEvent, type: string])[] = [
  ["actor", "struct<id:string,team:string,home:string>"],
  ["at", "string"],
  ["data", "string"],
  ["globalPrevious", "string"],
  ["globalSequence", "bigint"],
  ["hash", "string"],
  ["incident", "string"],
  ["key", "string"],
  ["previous", "string"],
  ["sequence", "bigint"],
  ["type", "string"],
];

/** Names of Athena's columns are in lower case; a field whose name is not needs a mapping. */
const column = (field: string): string => field.toLowerCase();

/**
 * SQL for Athena: the table over the archive, and three questions to it, each ended by a semicolon.
 * @param location of the archive: `s3://<bucket>/audit/`, or the bucket alone
 */
export function athenaSql(location: string): string {
  const at = location.replace(/\/+$/, "").replace(/\/audit$/, "");
  const mapped = COLUMNS.filter(([field]) => column(field) !== field).map(([field]) => `  'mapping.${column(field)}' = '${field}'`);
  return `-- One object is one event, as JSON on one line. Partitions are days (UTC), worked out by Athena: nothing has to be added each day.
CREATE EXTERNAL TABLE IF NOT EXISTS netcheck_audit (
${COLUMNS.map(([field, type]) => `  \`${column(field)}\` ${type}`).join(",\n")}
)
PARTITIONED BY (\`day\` string)
ROW FORMAT SERDE 'org.openx.data.jsonserde.JsonSerDe'
WITH SERDEPROPERTIES (
  'case.insensitive' = 'FALSE',
${mapped.join(",\n")}
)
LOCATION '${at}/audit/'
TBLPROPERTIES (
  'projection.enabled' = 'true',
  'projection.day.type' = 'date',
  'projection.day.format' = 'yyyy-MM-dd',
  'projection.day.range' = '2026-01-01,NOW',
  'projection.day.interval' = '1',
  'projection.day.interval.unit' = 'DAYS',
  'storage.location.template' = '${at}/audit/\${day}/'
);

-- Who approved what, by which statement of the policy.
SELECT "at", "incident", "actor"."id" AS "who", "type",
  json_extract_scalar("data", '$.proposal') AS "proposal",
  json_extract_scalar("data", '$.statement') AS "statement",
  json_extract_scalar("data", '$.hash') AS "approved_hash"
FROM netcheck_audit
WHERE "day" >= '2026-01-01' AND "type" IN ('approved', 'break-glass-approved', 'dismissed')
ORDER BY "globalsequence";

-- Clicks that the policy refused, and why.
SELECT "at", "incident", "actor"."id" AS "who",
  json_extract_scalar("data", '$.decision') AS "wanted",
  json_extract_scalar("data", '$.statement') AS "statement",
  json_extract_scalar("data", '$.reason') AS "reason"
FROM netcheck_audit
WHERE "day" >= '2026-01-01' AND "type" = 'refused'
ORDER BY "globalsequence";

-- Uses of break-glass, with the reason that was given, and who reviewed them (empty: nobody yet).
SELECT used."at", used."incident", used."actor"."id" AS "who",
  json_extract_scalar(used."data", '$.reason') AS "reason",
  reviewed."at" AS "reviewed_at", reviewed."actor"."id" AS "reviewed_by"
FROM netcheck_audit AS used
LEFT JOIN netcheck_audit AS reviewed
  ON reviewed."incident" = used."incident" AND reviewed."type" = 'reviewed' AND reviewed."day" >= '2026-01-01'
  AND json_extract_scalar(reviewed."data", '$.proposal') = json_extract_scalar(used."data", '$.proposal')
WHERE used."day" >= '2026-01-01' AND used."type" = 'break-glass-approved'
ORDER BY used."globalsequence";
`;
}
