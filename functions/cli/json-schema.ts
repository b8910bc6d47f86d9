import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CaptureIndex } from "../facts/capture.ts";
import { Expect } from "../rules/fixtures.ts";
import { FixFile, RuleFile, RunbookFile } from "../rules/schema.ts";
import { Config } from "../triage/config.ts";
import { type DocumentedKeys, docsFor, documentedObjects } from "./doc-comments.ts";

/** A file format that people write by hand. */
interface Format {
  readonly name: string;
  readonly title: string;
  readonly schema: z.ZodType;
  /** Sources whose comments describe the keys. */
  readonly sources: readonly string[];
}

const FORMATS: readonly Format[] = [
  { name: "rule", title: "netcheck: runbooks/rules/<id>/rule.yaml", schema: RuleFile, sources: ["functions/rules/schema.ts"] },
  { name: "fix", title: "netcheck: runbooks/fixes/<id>/fix.yaml", schema: FixFile, sources: ["functions/rules/schema.ts"] },
  { name: "runbook", title: "netcheck: runbooks/<name>/runbook.yaml", schema: RunbookFile, sources: ["functions/rules/schema.ts"] },
  { name: "expect", title: "netcheck: runbooks/rules/<id>/fixtures/<case>/expect.yaml", schema: Expect, sources: ["functions/rules/fixtures.ts"] },
  { name: "capture", title: "netcheck: capture.json", schema: CaptureIndex, sources: ["functions/facts/capture.ts"] },
  { name: "netcheck", title: "netcheck.yaml", schema: Config, sources: ["functions/triage/config.ts", "functions/triage/answers-config.ts"] },
];

/**
 * The JSON Schemas (draft 2020-12) of everything that people write by hand, for editors: file name → schema. What a schema cannot say (CEL that must
 * type-check, ids that must exist, `when` or else `forms`) is checked when the file is loaded.
 * @param root the repository: the keys' descriptions are read off the comments of its sources
 */
export function jsonSchemas(root: string): Map<string, Record<string, unknown>> {
  return new Map(
    FORMATS.map(({ name, title, schema, sources }) => {
      const objects = sources.flatMap((source) => documentedObjects(readFileSync(join(root, source), "utf8")));
      // plain data of its own: inside zod one description would show wherever the same schema is used
      const { $schema, ...rest } = JSON.parse(JSON.stringify(z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }))) as Record<string, unknown>;
      describe(rest, objects);
      return [`${name}.schema.json`, { $schema, title, ...rest }];
    }),
  );
}

/** Puts what the source's comments say of a key where the schema defines that key. */
function describe(node: unknown, objects: readonly DocumentedKeys[]): void {
  if (typeof node !== "object" || node === null) return;
  const properties = (node as { properties?: Record<string, Record<string, unknown>> }).properties;
  if (typeof properties === "object" && !Array.isArray(properties)) {
    for (const [key, doc] of docsFor(Object.keys(properties), objects)) {
      const property = properties[key];
      if (property !== undefined && doc !== "") properties[key] = { description: doc, ...property };
    }
  }
  for (const inner of Object.values(node)) describe(inner, objects);
}
