import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { docsFor, documentedObjects } from "../functions/cli/doc-comments.ts";
import { generatedPages, stalePages } from "../functions/cli/docs.ts";
import { factParts } from "../functions/cli/fact-fields.ts";
import { jsonSchemas } from "../functions/cli/json-schema.ts";
import { prose, table } from "../functions/cli/markdown.ts";
import { reliabilityPage } from "../functions/cli/reliability.ts";
import { derivedFacts } from "../functions/facts/derived.ts";
import { facts } from "../functions/facts/index.ts";
import type { CaseResult } from "../functions/rules/fixtures.ts";
import { loadCatalogue } from "../functions/rules/load.ts";

const root = fileURLToPath(new URL("../", import.meta.url));
const catalogue = loadCatalogue(`${root}runbooks`, { tolerant: true });
const below = (folder: string, ends: string): string[] =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ends))
    .map((file) => `${folder}/${file}`);

describe("docs/generated", () => {
  test("is what the sources give (reliability.md is checked in rules.test.ts, where all fixtures are judged anyway)", () => {
    const stale = stalePages(`${root}docs/generated`, generatedPages(root, catalogue)).filter((name) => name !== "reliability.md");
    expect(stale, "these pages are not up to date: run `npm run docs` and commit what it wrote").toEqual([]);
  });

  test("names every rule, every fix, and every field of every fact with its meaning", () => {
    const pages = generatedPages(root, catalogue);
    for (const id of catalogue.rules.keys()) expect(pages.get("rules.md")).toContain(`[${id}](../../runbooks/rules/${id}/README.md)`);
    for (const id of catalogue.fixes.keys()) expect(pages.get("fixes.md")).toContain(`\n## ${id}\n`);
    const page = pages.get("facts.md") ?? "";
    for (const fact of [...facts, ...derivedFacts]) {
      const section = page.split(`\n## ${fact.id}\n`)[1]?.split("\n## ")[0] ?? "";
      for (const { fields } of factParts(fact.schema))
        for (const { name } of fields) if (name !== "line") expect(section, fact.id).toContain(`| \`${name}\` |`);
    }
    expect(page).toContain("| `mac` | `string`, optional | Lower case, colons; absent while unresolved. |");
  });

  test("a page that is gone from the sources is stale too", () => {
    const folder = `${root}docs/generated`;
    const pages = new Map(readdirSync(folder).map((name) => [name, readFileSync(`${folder}/${name}`, "utf8")]));
    expect(stalePages(folder, pages)).toEqual([]);
    expect(stalePages(folder, new Map([...pages].filter(([name]) => name !== "fixes.md")))).toEqual(["fixes.md"]);
    expect(stalePages(folder, new Map([...pages, ["more.md", ""]]))).toEqual(["more.md"]);
    expect(stalePages(folder, new Map([...pages, ["facts.md", "x"]]))).toEqual(["facts.md"]);
  });
});

describe("JSON Schemas", () => {
  const schemas = new Map([...jsonSchemas(root)].map(([name, schema]) => [name, z.fromJSONSchema(schema)]));
  const schema = (name: string): z.ZodType => schemas.get(`${name}.schema.json`) as z.ZodType;
  const shipped: [string, string[]][] = [
    ["rule", below("runbooks/rules", "/rule.yaml")],
    ["fix", below("runbooks/fixes", "/fix.yaml")],
    ["runbook", below("runbooks", "/runbook.yaml")],
    ["expect", below("runbooks/rules", "/expect.yaml")],
    ["capture", below("runbooks/rules", "/capture.json")],
    ["netcheck", ["functions/local/netcheck.yaml"]],
  ];

  test.each(shipped)("%s: every shipped file is valid", (name, files) => {
    expect(files.length).toBeGreaterThan(0);
    const wrong = files.flatMap((file) => {
      const text = readFileSync(`${root}${file}`, "utf8");
      const result = schema(name).safeParse(file.endsWith(".json") ? JSON.parse(text) : parse(text));
      return result.success ? [] : [`${file}: ${z.prettifyError(result.error)}`];
    });
    expect(wrong).toEqual([]);
  });

  test("what the loader refuses, the schema refuses: unknown keys, wrong words, missing keys, wrong types", () => {
    const rule = parse(readFileSync(`${root}runbooks/rules/bridge-netfilter-off/rule.yaml`, "utf8")) as Record<string, unknown>;
    const accepts = (change: Record<string, unknown>): boolean => schema("rule").safeParse({ ...rule, ...change }).success;
    expect(accepts({})).toBe(true);
    expect(accepts({ severty: "critical" })).toBe(false);
    expect(accepts({ role: "culprit" })).toBe(false);
    expect(accepts({ needs: [] })).toBe(false);
    expect(accepts({ needs: [{ fact: "route", whole: false }] })).toBe(false);
    expect(accepts({ confidence: 1.5 })).toBe(false);
    expect(accepts({ detects: "A node" })).toBe(false);
    expect(schema("rule").safeParse(Object.fromEntries(Object.entries(rule).filter(([key]) => key !== "title"))).success).toBe(false);
    expect(schema("capture").safeParse({ schema: "netcheck.capture/2", target: { name: "x" }, outputs: [] }).success).toBe(false);
  });

  test("keys are described by the sources' comments, each by its own", () => {
    const { properties } = jsonSchemas(root).get("rule.schema.json") as { properties: Record<string, { description?: string }> };
    expect(properties["detects"]?.description).toMatch(/what it finds, for people/);
    expect(properties["title"]?.description).toBeUndefined();
  });
});

describe("doc comments", () => {
  test("keys of nested objects, through strings, patterns and comments that hold braces", () => {
    const [outer, inner, extension] = documentedObjects(`
      const X = z.strictObject({
        /** A name, "in {quotes}". */
        name: z.string().regex(/^[/{}"]{1,3}$/, "it's, a {"), // not: this, z
        plain: z.int(), /* no doc */ list: z.array(
          z.object({
            /**
             * Two lines,
             * one text.
             */
            inner: z.string(),
          }),
        ),
        "quoted-is-left-out": z.string(),
        shorthand,
      });
      const Y = X.extend({ /** Late. */ late: z.int() });`);
    expect([...(outer ?? [])]).toEqual([
      ["name", 'A name, "in {quotes}".'],
      ["plain", ""],
      ["list", ""],
      ["shorthand", ""],
    ]);
    expect([...(inner ?? [])]).toEqual([["inner", "Two lines, one text."]]);
    expect(
      [
        ...docsFor(
          ["name", "plain", "list", "shorthand", "late"],
          [outer, inner, extension].flatMap((one) => one ?? []),
        ),
      ].at(-1),
    ).toEqual(["late", "Late."]);
  });
});

describe("Markdown", () => {
  test("cells cannot break out of their table; code is left as it is", () => {
    expect(table(["a"], [["x | <b>\ny"], ["`<id> | x`"]])).toEqual(["| a |", "| --- |", "| x \\| &lt;b> y |", "| `<id> \\| x` |"]);
    expect(prose("a <b> `<c>` <d>")).toBe("a &lt;b> `<c>` &lt;d>");
  });
});

describe("reliability", () => {
  const result = (change: Partial<CaseResult>): CaseResult => ({
    rule: "a",
    case: "x",
    expected: "match",
    verdict: "match",
    reason: "",
    form: "",
    confidence: 0.97,
    evidence: [],
    falseAlarms: [],
    companions: undefined,
    problems: [],
    todo: undefined,
    ...change,
  });
  const rows = (results: CaseResult[]): string[] =>
    reliabilityPage(results)
      .split("\n")
      .filter((line) => /^\| [\d`]/.test(line));

  test("findings fall into the range of their confidence; false alarms of any rule and known gaps count against it", () => {
    const results = [
      result({}),
      result({ confidence: 0.95 }),
      result({ confidence: 0.9, expected: "no-match", todo: "known" }),
      result({ verdict: "inconclusive", confidence: undefined }),
      result({ verdict: "no-match", confidence: undefined, todo: "known" }),
      result({
        rule: "b",
        case: "near-miss-y",
        expected: "no-match",
        verdict: "no-match",
        confidence: undefined,
        falseAlarms: [{ rule: "a", confidence: 0.96 }],
      }),
      // the rule's own false alarm is one, not two
      result({ rule: "b", case: "near-miss-z", expected: "no-match", confidence: 0.6, falseAlarms: [{ rule: "b", confidence: 0.6 }] }),
    ];
    expect(rows(results)).toEqual([
      "| 0.60 – 0.69 | 1 | 0 | 0 % | 0 % |",
      "| 0.90 – 0.94 | 1 | 0 | 0 % | 0 % |",
      "| 0.95 – 1.00 | 3 | 2 | 66 % | 20 % |",
      "| `a` | 5 | 4 | 2 | 1 | 1 | 0 | 2 | 2 |",
      "| `b` | 2 | 0 | 0 | 0 | 0 | 2 | 1 | 0 |",
    ]);
  });

  test("other causes on a faulty node are counted by pair", () => {
    const page = reliabilityPage([
      result({ companions: [] }),
      result({ companions: [{ rule: "b", confidence: 0.6 }] }),
      result({
        companions: [
          { rule: "b", confidence: 0.9 },
          { rule: "c", confidence: 0.7 },
        ],
      }),
    ]);
    expect(page).toContain("Of 3 faulty nodes all rules were asked; on 2 of them they found other causes");
    expect(page).toContain("| `a` | `b` | 2 | 90 % |\n| `a` | `c` | 1 | 70 % |\n");
  });
});

test("the contributing guide names only scripts and commands that there are", () => {
  const text = readFileSync(`${root}docs/contributing.md`, "utf8");
  const scripts = Object.keys((JSON.parse(readFileSync(`${root}package.json`, "utf8")) as { scripts: Record<string, string> }).scripts);
  const named = [...text.matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] as string);
  expect(named).toContain("docs");
  for (const name of named) expect(scripts).toContain(name);
});
