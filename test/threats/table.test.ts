import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

/** docs/security.md promises a test for each threat: here they are looked up, file and title. */

const root = fileURLToPath(new URL("../../", import.meta.url));
const section = readFileSync(join(root, "docs/security.md"), "utf8").split("## Threats, controls, tests\n")[1]?.split("\n## ")[0] ?? "";
const rows = section
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| threat ") && !line.startsWith("| --- "))
  .map((line) => line.slice(2, -2).split(" | "))
  .map(([threat = "", control = "", titles = "", files = "", ...more]) => ({ threat, control, titles: titles.split("<br>"), files: files.split(", "), more }));

test("the table is there: more than twenty threats, four columns each", () => {
  expect(rows.length).toBeGreaterThan(20);
  expect(rows.filter(({ threat, control, more }) => threat === "" || control === "" || more.length > 0)).toEqual([]);
});

test.each(rows)("$threat", ({ titles, files }) => {
  for (const file of files) expect(existsSync(join(root, file)), file).toBe(true);
  const sources = files.map((file) => ({ file, text: readFileSync(join(root, file), "utf8") }));
  for (const title of titles) {
    expect(title).toMatch(/^".+"$/);
    // behind `test(`, or behind the `)(` of a test.each
    const homes = sources.filter(({ text }) => text.includes(`test(${title},`) || text.includes(`)(${title},`) || text.includes(`)(\n    ${title},`));
    expect(
      homes.map(({ file }) => file),
      `no test of ${files.join(", ")} is called ${title}`,
    ).toHaveLength(1);
  }
  // and no file is named in vain
  for (const { file, text } of sources)
    expect(
      titles.some((title) => text.includes(title)),
      file,
    ).toBe(true);
});

test("each file of test/threats is in the table", () => {
  const named = new Set(rows.flatMap(({ files }) => files));
  const own = readdirSync(join(root, "test/threats")).filter((name) => name.endsWith(".test.ts") && name !== "table.test.ts");
  expect(own.filter((name) => !named.has(`test/threats/${name}`))).toEqual([]);
});
