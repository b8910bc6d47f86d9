import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { diagnose, judge } from "../functions/rules/diagnose.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { readCaptureFiles } from "../functions/transports/capture-files.ts";

/**
 * Walks runbooks/rules/<rule-id>/fixtures/<case>/{capture.json, outputs/…, expect.yaml}. A new case is one folder; its name says why it exists.
 */
const Expect = z.strictObject({
  /** Another rule's fixture to judge, so that a capture is kept once: "<rule>/<case>". */
  capture: z.string().optional(),
  verdict: z.enum(["match", "no-match", "not-applicable", "inconclusive"]),
  /** Every one of these must stand in a quoted line. */
  evidence: z.array(z.string()).optional(),
  /** The rule must be the first cause of the whole diagnosis. */
  first: z.boolean().optional(),
  /** The verdict of the whole diagnosis. */
  diagnosis: z.enum(["cause-found", "symptoms-only", "healthy", "inconclusive"]).optional(),
  reason: z.string().optional(),
  fix: z.record(z.string(), z.unknown()).optional(),
  explains: z.array(z.string()).optional(),
  /** Known gap: written down, not failing. */
  todo: z.string().optional(),
});

const runbooks = fileURLToPath(new URL("../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks);
const fixturesOf = (id: string): string[] => {
  const folder = `${runbooks}rules/${id}/fixtures`;
  return existsSync(folder) ? readdirSync(folder) : [];
};

describe.each([...catalogue.rules.keys()])("rule %s", (id) => {
  const cases = fixturesOf(id).map((name) => ({ name, path: `${runbooks}rules/${id}/fixtures/${name}` }));
  const expected = (path: string) => Expect.parse(parse(readFileSync(`${path}/expect.yaml`, "utf8")));

  test("has a match and a no-match case", () => {
    const verdicts = new Set(cases.map(({ path }) => expected(path).verdict));
    expect([...verdicts], "a rule needs fixtures that match and fixtures that do not").toEqual(expect.arrayContaining(["match"]));
    expect(verdicts.has("no-match") || verdicts.has("not-applicable")).toBe(true);
  });

  test.each(cases)("$name", async ({ name, path }) => {
    const want = expected(path);
    if (want.todo !== undefined) return;
    const capture = await readCaptureFiles(want.capture === undefined ? path : `${runbooks}rules/${want.capture.replace("/", "/fixtures/")}`);
    const outcome = judge(capture, catalogue).outcomes.find((item) => item.rule.file.id === id);
    expect({ verdict: outcome?.verdict, reason: outcome?.reason }, name).toMatchObject({ verdict: want.verdict });
    const quoted = (outcome?.finding?.evidence ?? []).map((line) => line.text).join("\n");
    for (const text of want.evidence ?? []) expect(quoted).toContain(text);
    if (want.reason !== undefined) expect(outcome?.reason).toContain(want.reason);
    if (want.verdict === "match") {
      for (const line of outcome?.finding?.evidence ?? []) {
        const output = capture.outputs.find((item) => item.file === line.file && item.command === line.command);
        expect(`${output?.text}\n${output?.stderr}`, "evidence is verbatim").toContain(line.text.trim().slice(0, 200));
      }
    }
    const diagnosis = diagnose(capture, catalogue, path, () => 0);
    if (want.first === true) expect(diagnosis.causes[0]?.rule).toBe(id);
    if (want.diagnosis !== undefined) expect({ verdict: diagnosis.verdict, unchecked: diagnosis.unchecked }).toMatchObject({ verdict: want.diagnosis });
    if (want.fix !== undefined) expect(diagnosis.causes.find((cause) => cause.rule === id)?.fix?.parameters).toEqual(want.fix);
    if (want.explains !== undefined) expect(diagnosis.causes.find((cause) => cause.rule === id)?.explains).toEqual(want.explains);
  });
});

/** False alarms: no healthy capture of any rule may give a cause by any rule. */
describe("no false alarms on healthy captures", () => {
  const healthy = [...catalogue.rules.keys()].flatMap((id) =>
    fixturesOf(id)
      .filter((name) => /healthy|fixed|near-miss/.test(name) && existsSync(`${runbooks}rules/${id}/fixtures/${name}/capture.json`))
      .map((name) => `${id}/fixtures/${name}`),
  );
  test.each(healthy)("%s", async (path) => {
    const diagnosis = diagnose(await readCaptureFiles(`${runbooks}rules/${path}`), catalogue, path, () => 0);
    expect(diagnosis.causes.map((cause) => cause.rule)).toEqual([]);
  });
});
