import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import type { Cause, Diagnosis, Finding } from "../../functions/rules/diagnosis.ts";
import { FixFile } from "../../functions/rules/schema.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { sinceFix } from "../../functions/triage/since.ts";
import { undoneParameters } from "../../functions/triage/undo.ts";
import { verifyFix, verifyRollback } from "../../functions/triage/verify.ts";
import { Bench, BOB } from "./harness.ts";
import { catalogueOf, fault, fixed, OTHER_RULE, root } from "./runbooks.ts";

/** What the collection after a run says: of the cause, of each symptom, of what is new, of what could not be checked; and log lines that are older than the fix. */

const finding = (rule: string): Finding => ({ rule, title: `title of ${rule}`, severity: "warning", confidence: 0.9, summary: `${rule} here`, evidence: [] });
const cause = (rule: string, explains: string[] = [], parameters?: Record<string, string>): Cause => ({
  ...finding(rule),
  explains,
  ...(parameters === undefined ? {} : { fix: { id: "fix-it", parameters } }),
});
const diagnosis = (causes: Cause[], symptoms: Finding[] = [], unchecked: string[] = []): Diagnosis => ({
  schema: "netcheck.diagnosis/1",
  capture: "",
  target: "node2",
  verdict: "cause-found",
  causes,
  symptoms,
  risks: [],
  unchecked: unchecked.map((rule) => ({ rule, reason: "bpftool is not installed" })),
  unparsed: [],
  unknown: [],
  stats: { bytes: 0, lines: 0, rules: 0, ms: 0 },
});

describe("is the incident over", () => {
  const before = diagnosis([cause("a", ["slow"]), cause("b", ["lost"])], [finding("slow"), finding("lost"), finding("odd")]);
  test.each<[string, Diagnosis, boolean | undefined, RegExp, boolean?]>([
    ["all gone", diagnosis([]), true, /^the cause is gone, and the symptoms that it explained are gone, too\.$/],
    ["the cause stays", diagnosis([cause("a")]), false, /^the cause is still there\./],
    ["the cause is under another one", diagnosis([cause("b", ["a"])], [finding("a")]), false, /^the cause is still there\./],
    ["the cause cannot be checked", diagnosis([], [], ["a"]), undefined, /^the cause could not be checked: bpftool is not installed\./],
    ["something new", diagnosis([cause("c")]), false, /something new was found: title of c\./],
    ["a symptom that it explained stays", diagnosis([], [finding("slow")]), false, /symptoms are not: title of slow\./, true],
    ["a symptom that nothing explained stays", diagnosis([], [finding("odd")]), false, /symptoms are not: title of odd\./, true],
    ["such a symptom cannot be checked", diagnosis([], [], ["odd"]), undefined, /could not be checked: title of odd \(bpftool is not installed\)/],
    [
      "another cause and its symptom stay",
      diagnosis([cause("b", ["lost"])], [finding("lost")]),
      true,
      /Still there, and not what this fix is for: title of b\./,
    ],
    ["another cause went, its symptom stays", diagnosis([], [finding("lost")]), false, /symptoms are not: title of lost\./, true],
    ["another rule cannot be checked", diagnosis([], [], ["z"]), true, /Could be checked before the fix and not this time: z\.$/],
  ])("%s", (_, after, ok, words, lingers = false) => {
    expect(verifyFix(before, after, "a")).toEqual({ ok, words: expect.stringMatching(words) as string, lingers });
  });

  test("a cause that the fixed one covered is a symptom that stays, nothing new", () => {
    const covered = diagnosis([cause("a", ["d"])], [finding("d")]);
    expect(verifyFix(covered, diagnosis([cause("d")]), "a").words).toContain("the incident's symptoms are not: title of d");
  });
});

describe("is the node as before the fix", () => {
  const before = diagnosis([cause("a", [], { x: "1" }), cause("b")]);
  test.each<[string, Diagnosis, boolean | undefined, RegExp]>([
    [
      "the same causes",
      diagnosis([cause("b"), cause("a", [], { x: "1" })]),
      true,
      /as before the fix: the cause .* is there again, as expected \(title of a\)/,
    ],
    ["other values", diagnosis([cause("a", [], { x: "2" }), cause("b")]), false, /would need other values now: a here/],
    ["the cause is not back", diagnosis([cause("b")]), false, /\(title of a\) is not found again/],
    ["something new", diagnosis([cause("a", [], { x: "1" }), cause("b"), cause("c")]), false, /new since then: title of c/],
    ["something is gone", diagnosis([cause("a", [], { x: "1" })]), false, /not found any more: title of b/],
    ["it cannot be checked", diagnosis([cause("b")], [], ["a"]), undefined, /could not be checked: bpftool is not installed/],
  ])("%s", (_, after, ok, words) => {
    expect(verifyRollback(before, after, "a")).toEqual({ ok, words: expect.stringMatching(words) as string, lingers: false });
  });
});

describe("a symptom that needs longer than the fix takes to settle", () => {
  let bench: Bench;
  afterEach(() => bench.close());

  /** The routes of an incident are gone, but what the kernel remembers of the neighbours stays in sight for a number of collections. */
  async function healed(lingers: number): Promise<void> {
    bench = new Bench();
    const [broken, cured] = await Promise.all(
      ["capture-s1-fault", "capture-s1-fixed"].map((name) => readCaptureFiles(join(root, "runbooks/rules", OTHER_RULE, "fixtures", name))),
    );
    if (broken === undefined || cured === undefined) throw new Error("no such fixture");
    const remembering = {
      ...cured,
      outputs: cured.outputs.map((output) =>
        output.command.includes("neigh") ? (broken.outputs.find(({ command }) => command === output.command) ?? output) : output,
      ),
    };
    let looks = 0;
    bench.node.capture = (phase) => (phase !== "verify" ? broken : looks++ < lingers ? remembering : cured);
    await bench.ask();
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("linklocal-neighbor-failed");
    await bench.click("confirm", BOB);
  }

  test("gets a minute more, once, and then the fix is good", async () => {
    await healed(1);
    expect([bench.outcome(), bench.node.jobs.has("inc-1-late-verify")]).toEqual(["resolved", true]);
    expect(bench.chat.drawn("inc-1/outcome")).toContain("Collected again after 65 s: the cause is gone, and the symptoms");
  });

  test("that is still there then is told by name, and the way back is offered", async () => {
    await healed(9);
    expect([(await bench.incident()).state, bench.node.count("verify")]).toEqual(["awaiting-approval", 2]);
    expect(bench.chat.drawn("inc-1/outcome")).toMatch(/the cause is gone, but the incident's symptoms are not/);
  });
});

describe("log lines that are older than the fix", () => {
  const FIXED = Date.parse("2026-11-21T10:00:00Z");
  const log = (text: string): Capture["outputs"][number] => ({
    command: "journalctl -k -o short-iso",
    argv: undefined,
    file: "outputs/journal.txt",
    text,
    exitCode: 0,
    durationMs: 1,
    startMs: 0,
    stderr: "",
    truncated: false,
    sample: 1,
  });
  const capture = (startedAt: string, text: string): Capture => ({ ...fixed, startedAt, outputs: [log(text)] });
  const line = (time: string, words: string): string => `${time}+0000 node2 kernel: ${words}`;
  const BEFORE = line("2026-11-21T09:59:00", "nf_conntrack: nf_conntrack: table full, dropping packet");
  const BETWEEN = line("2026-11-21T09:59:58", "nf_conntrack: nf_conntrack: table full, dropping packet");
  const AFTER = line("2026-11-21T10:00:03", "nf_conntrack: nf_conntrack: table full, dropping packet");
  const after = capture("2026-11-21T10:00:05Z", [BEFORE, BETWEEN, AFTER, ""].join("\n"));
  const textOf = (seen: Capture) => seen.outputs[0]?.text;

  test("are emptied, by their time; the numbers of the others stay", () => {
    expect(textOf(sinceFix(after, FIXED, 2, undefined))).toBe(["", "", AFTER, ""].join("\n"));
  });

  test("are known by the collection before the fix even where the node's clock is an hour ahead", () => {
    const ahead = (text: string): string => text.replaceAll("T09:59", "T10:59").replaceAll("T10:00", "T11:00");
    const late = capture("2026-11-21T10:00:05Z", ahead([BEFORE, AFTER].join("\n")));
    expect(textOf(sinceFix(late, FIXED, 2, capture("2026-11-21T09:59:30Z", ahead(BEFORE))))).toBe(ahead(["", AFTER].join("\n")));
  });

  test("lines without a time may have been said again: they stay", () => {
    const dateless = (startedAt: string): Capture => ({
      ...fixed,
      startedAt,
      outputs: [{ ...log("nf_conntrack: table full, dropping packet\n"), command: "dmesg -t" }],
    });
    const seen = sinceFix(dateless("2026-11-21T10:00:05Z"), FIXED, 2, dateless("2026-11-21T09:59:30Z"));
    expect(textOf(seen)).toContain("table full");
  });

  test("a capture without logs is left as it is", () => {
    expect(sinceFix(fixed, FIXED, 2, fault)).toBe(fixed);
  });
});

describe("what of a fix that failed half-way is undone", () => {
  const file = (apply: unknown[], rollback: unknown[]): FixFile =>
    FixFile.parse({
      id: "x",
      title: "X.",
      risk: "low",
      parameters: {
        links: { type: "interface", list: true, from: "x" },
        metrics: { type: "metric", list: true, from: "x" },
        others: { type: "interface", list: true, optional: true, from: "x" },
        one: { type: "interface", optional: true, from: "x" },
      },
      check: "true",
      apply,
      rollback,
      verify: { settle: 0, note: "N." },
      sideEffects: ["S."],
      makeItLast: ["M."],
      references: ["r"],
    });
  const ran = (...codes: number[]) => codes.map((exitCode) => ({ command: "c", exitCode, output: "" }));
  const values = { links: ["a", "b", "c"], metrics: ["1", "2", "3"], others: ["x", "y"] };
  const pair = { each: ["links", "metrics"], run: ["ip", "$links", "$metrics"] };
  const flush = { each: ["links"], run: ["flush", "$links"] };
  const other = { each: ["others"], run: ["set", "$others"] };

  test.each<[string, unknown[], unknown[], number[], object | undefined]>([
    ["nothing ran", [pair], [pair], [1], undefined],
    ["the first two of three", [pair], [pair], [0, 0, 1], { links: ["a", "b"], metrics: ["1", "2"] }],
    ["all of the list, and a later step failed", [pair, flush], [pair], [0, 0, 0, 1], { links: ["a", "b", "c"], metrics: ["1", "2", "3"] }],
    [
      "a list that it did not come to is left out",
      [pair, other],
      [other, pair],
      [0, 0, 0, 1],
      { links: ["a", "b", "c"], metrics: ["1", "2", "3"], others: [] },
    ],
    ["a list that it did not come to and cannot be left out", [other, pair], [pair, other], [0, 0, 1], undefined],
    ["a step that was not to run is not counted", [{ if: "one", run: ["modprobe", "x"] }, pair], [pair], [0, 1], { links: ["a"], metrics: ["1"] }],
    ["a list that only the way back goes over is kept", [pair], [flush, other], [0, 1], { links: ["a"], others: ["x", "y"] }],
    ["a list that only the way back needs, beside others, is cut with them", [flush], [pair], [0, 0, 1], { links: ["a", "b"], metrics: ["1", "2"] }],
  ])("%s", (_, apply, rollback, codes, kept) => {
    const { others = values.others, ...more } = { metrics: values.metrics, ...kept } as { others?: string[] };
    const wanted = kept === undefined ? undefined : { ...more, ...(others.length === 0 ? {} : { others }) };
    expect(undoneParameters(file(apply, rollback), values, ran(...codes))).toEqual(wanted);
  });

  test("every fix of the catalogue: all of it undoes all of it", () => {
    for (const { file: fix } of catalogueOf().fixes.values()) {
      const all = Object.fromEntries(Object.entries(fix.parameters).map(([name, { list }]) => [name, list ? ["a", "b"] : "a"]));
      const steps = ran(...Array.from({ length: 200 }, () => 0));
      expect(undoneParameters(fix, all, steps), fix.id).toEqual(all);
    }
  });
});
