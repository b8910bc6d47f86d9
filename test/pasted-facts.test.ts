import { beforeAll, describe, expect, test } from "vitest";
import { facts } from "../functions/facts/index.ts";
import { caseFiles, readFactCase } from "./fact-cases.ts";
import { type Printed, type Reading, read } from "./readings.ts";

/**
 * What people do to an output on its way into an issue changes nothing of what is read from it: every fixture of every fact, in each of the ways.
 * Lines may move by those that were put in front.
 */
const lines = (text: string, change: (line: string) => string): string =>
  text
    .split("\n")
    .map((line) => (line === "" ? line : change(line)))
    .join("\n");
const ended = (text: string): string => (text === "" || text.endsWith("\n") ? text : `${text}\n`);

const WAYS: [string, (text: string, command: string) => string][] = [
  ["carriage returns", (text) => text.replaceAll("\n", "\r\n")],
  ["an indent of four blanks", (text) => lines(text, (line) => `    ${line}`)],
  ["an indent of one blank", (text) => lines(text, (line) => ` ${line}`)],
  ["tabs turned to blanks", (text) => text.replaceAll("\t", "    ")],
  ["blanks at the ends", (text) => lines(text, (line) => `${line}  `)],
  ["no-break spaces", (text) => text.replaceAll("  ", "\u00a0 ")],
  ["a prompt before and behind", (text, command) => `root@node-3:~# ${command}\n${ended(text)}root@node-3:~#`],
  ["a bracketed prompt", (text, command) => `[root@node-3 ~]# ${command}\n${text}`],
  ["a fence", (text) => `\`\`\`\n${ended(text)}\`\`\`\n`],
];

/** Cases whose point is what such a change takes away. */
const EXCEPT: Record<string, readonly string[]> = {
  // values by position: a line more is a value more
  "sysctl/values-with-an-empty-one.txt": ["a prompt before and behind", "a bracketed prompt", "a fence"],
  // nobody tells which of two numbers is the value; a prompt takes the place of one
  "sysctl/cat-and-another-number-behind-a-blank-line.txt": ["a prompt before and behind", "a bracketed prompt"],
  // the end of the text says where it was cut
  "iptables/truncated-save-looks-whole.txt": ["a prompt before and behind", "a fence"],
  "nft/truncated-rule.txt": ["a prompt before and behind", "a fence"],
  // the prompt stands behind the answer, on the same line
  "kube-proxy/mode.txt": ["a prompt before and behind", "a bracketed prompt"],
};

/** The rows without their places; runs of blanks are one. */
const plain = (value: unknown): string =>
  JSON.stringify(value, (key, item: unknown) => {
    if (key === "text" || (typeof item === "number" && /^line$|Line$/.test(key))) return undefined;
    return typeof item === "string" ? item.replace(/\s+/g, " ").trim() : item;
  }) ?? "";

/** The fixtures of a fact that were read, and their readings as they stand. A command that printed nothing but an error has nothing to paste. */
function asGiven(id: string): { file: string; output: Printed & { command: string; text: string }; before: Reading }[] {
  return caseFiles(id)
    .filter((file) => !/garbled|hostile/.test(file))
    .map((file) => {
      const { text, given } = readFactCase(id, file);
      const output = { command: given.command, exitCode: given.exitCode ?? 0, stderr: given.stderr ?? "", text };
      return { file, output, before: read(id, output) };
    })
    .filter(({ before }) => before.status === "read");
}

describe.each(facts.map(({ id }) => [id] as const))("fact %s", (id) => {
  let cases: ReturnType<typeof asGiven>;
  beforeAll(() => {
    cases = asGiven(id);
  });
  test.each(WAYS)("%s", (way, change) => {
    for (const { file, output, before } of cases) {
      if (EXCEPT[`${id}/${file}`]?.includes(way)) continue;
      const after = read(id, { ...output, text: change(output.text, output.command) });
      expect(plain(after.value), file).toBe(plain(before.value));
      expect(after.unparsed.length, file).toBeLessThanOrEqual(before.unparsed.length);
    }
  });
});

/** Cuts each line after so many columns, as a window does. */
const cutAt = (text: string, width: number): string =>
  text
    .split("\n")
    .flatMap((line) => line.match(new RegExp(`.{1,${width}}`, "gu")) ?? [""])
    .join("\n");

describe.each([80, 100])("a window of %d columns", (width) => {
  test.each([
    ["route", "json.txt"],
    ["rule", "json.txt"],
    ["link", "json.txt"],
    ["address", "details.txt"],
    ["fdb", "json.txt"],
    ["nft", "iptables-nft-json.txt"],
    ["conntrack", "s2.txt"],
    ["bpf-program", "types-json.txt"],
    ["bpf-map", "s3-json.txt"],
  ])("%s %s", (id, file) => {
    const { text, given } = readFactCase(id, file);
    const cut = cutAt(text, width);
    expect(cut.split("\n").length).toBeGreaterThan(text.split("\n").length);
    const after = read(id, { command: given.command, text: cut });
    expect(plain(after.value)).toBe(plain(read(id, { command: given.command, text }).value));
    expect(after.unparsed).toEqual([]);
  });
});
