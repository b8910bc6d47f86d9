import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import { LOGGED, structuredLog } from "../../functions/aws/logger.ts";

/** What reaches the log of a function: the ids by which operations find a line, and nothing that a node or a stranger wrote. */

afterEach(() => vi.restoreAllMocks());

test("the fields of the list, cut; no others", () => {
  const lines: string[] = [];
  vi.spyOn(console, "warn").mockImplementation((line: string) => void lines.push(line));
  vi.spyOn(process.stdout, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
  structuredLog("triage")("warn", "a reminder could not be posted", {
    proposal: "inc-1-fix",
    number: 2,
    problem: "x".repeat(2000),
    output: "root:secret",
    headline: "what an alert is called",
  });
  vi.restoreAllMocks();
  const line = JSON.parse(lines.join("")) as Record<string, unknown>;
  expect(line).toMatchObject({
    level: "WARN",
    service: "triage",
    message: "a reminder could not be posted",
    proposal: "inc-1-fix",
    number: 2,
    problem: "x".repeat(500),
  });
  expect(Object.keys(line)).not.toContain("output");
  expect(Object.keys(line)).not.toContain("headline");
});

/** Left out with intent: words and keys of a monitoring system. */
const HOSTILE = new Set(["headline", "alert"]);

test("what the workflow says of a line reaches the log: no field is left out by oversight", () => {
  const root = fileURLToPath(new URL("../../functions/", import.meta.url));
  const said = new Map<string, string>();
  for (const folder of ["triage", "aws", "transports", "store", "slack"])
    for (const file of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"))) {
      const text = readFileSync(join(root, folder, file), "utf8");
      for (const [, fields = ""] of text.matchAll(/\blog\(\s*"(?:info|warn|error)",\s*"[^"]*",\s*\{([^}]*)\}/g))
        for (const [, name = ""] of fields.matchAll(/(?:^|,)\s*(\w+)\s*(?=[:,]|$)/g)) said.set(name, `${folder}/${file}`);
    }
  expect([...said.keys()]).toEqual(expect.arrayContaining(["incident", "problem", "proposal", "click"]));
  expect([...said].filter(([name]) => !LOGGED.has(name) && !HOSTILE.has(name))).toEqual([]);
});
