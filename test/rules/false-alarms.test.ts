import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Capture, Output } from "../../functions/facts/capture.ts";
import { commandLine } from "../../functions/facts/command.ts";
import { facts } from "../../functions/facts/index.ts";
import { readFacts } from "../../functions/facts/read.ts";
import type { Rule } from "../../functions/rules/compile.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { evaluateRule, Facts } from "../../functions/rules/evaluate.ts";
import { judge } from "../../functions/rules/judge.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { CLEARED_BY_ONE_OUTPUT } from "./cleared-by-one-output.ts";
import { taken } from "./taken.ts";

/**
 * What is missing must never look like a fault: of a node of which we see less, whichever output is lost, fails or is cut, no cause is found that is not
 * found with everything at hand. That healthy nodes have none to begin with, rules.test.ts tells.
 */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks);
const fixtures = [...catalogue.rules.keys()].flatMap((id) =>
  readdirSync(`${runbooks}rules/${id}/fixtures`)
    .filter((name) => existsSync(`${runbooks}rules/${id}/fixtures/${name}/capture.json`))
    .map((name) => `${id}/fixtures/${name}`),
);

const causesOf = (capture: Capture) => diagnose(capture, catalogue, "", () => 0).causes;
/** Causes, and what they explain: with the output that proves the better cause gone, the lesser one stands alone. */
const foundIn = (capture: Capture): Set<string> => new Set(causesOf(capture).flatMap((cause) => [cause.rule, ...cause.explains]));

/** Facts that are read from an output. */
function factsOf(output: Output): Set<string> {
  const { argv, foreign } = commandLine(output.argv ?? output.command);
  return new Set(foreign || argv.length === 0 ? [] : facts.filter((fact) => fact.recognize(argv) !== undefined).map((fact) => fact.id));
}

const readers = new Map<string, Rule[]>();

/** Rules that read this output: of the others, nothing changes with it. */
function rulesOn(output: Output): Rule[] {
  const asked = JSON.stringify(output.argv ?? output.command);
  const known = readers.get(asked);
  if (known !== undefined) return known;
  const read = factsOf(output);
  const rules = [...catalogue.rules.values()].filter((rule) => [...rule.collects].some((fact) => read.has(fact)));
  readers.set(asked, rules);
  return rules;
}

/** Causes of a capture that shows less of one output, beyond those that the whole one has. */
function invented(path: string, whole: Capture, less: Capture, lost: Output): string[] {
  const known = CLEARED_BY_ONE_OUTPUT[path.replace("/fixtures/", "/")];
  const rules = rulesOn(lost);
  const seen = new Facts(less, readFacts(less, new Set(rules.flatMap((rule) => [...rule.needs.map(({ fact }) => fact), ...rule.file.uses]))));
  const found = rules
    .map((rule) => evaluateRule(rule, seen))
    .filter(({ rule, finding }) => rule.file.role === "cause" && finding !== undefined)
    .filter(({ rule, finding }) => known?.lost.includes(lost.command) !== true || known.cause !== rule.file.id || known.confidence !== finding?.confidence)
    .map(({ rule }) => rule.file.id);
  if (found.length === 0) return [];
  const allowed = foundIn(whole);
  return found.filter((rule) => !allowed.has(rule));
}
const without = (capture: Capture, index: number): Capture => ({ ...capture, outputs: capture.outputs.filter((_, i) => i !== index) });
const changed = (capture: Capture, index: number, change: Partial<Output>): Capture => ({
  ...capture,
  outputs: capture.outputs.map((output, i) => (i === index ? { ...output, ...change } : output)),
});

/** The text cut behind each of at most `count` lines, spread evenly. */
function cuts(text: string, count: number): string[] {
  const lines = text.split("\n");
  const step = Math.max(1, Math.floor(lines.length / count));
  const result: string[] = [];
  for (let i = 0; i < lines.length; i += step) result.push(lines.slice(0, i).join("\n"));
  // and in the middle of a line
  result.push(text.slice(0, Math.floor(text.length / 2)));
  return result;
}

describe.each(fixtures)("%s", (path) => {
  test("nothing is invented when one output is missing, failed or its tool is not there", async () => {
    const capture = await readCaptureFiles(`${runbooks}rules/${path}`);
    capture.outputs.forEach((output, i) => {
      const name = `${output.command} (sample ${output.sample})`;
      const failed = changed(capture, i, { text: "", stderr: "cannot open: Permission denied", exitCode: 1 });
      if (taken(96, path, i, "without")) expect(invented(path, capture, without(capture, i), output), `without ${name}`).toEqual([]);
      if (taken(192, path, i, "failed")) expect(invented(path, capture, failed, output), `failed: ${name}`).toEqual([]);
      const missing = changed(capture, i, { text: "", stderr: "", exitCode: 127 });
      if (taken(288, path, i, "missing")) expect(invented(path, capture, missing, output), `not installed: ${name}`).toEqual([]);
    });
  });

  test("nothing is invented when one output is cut", async () => {
    const capture = await readCaptureFiles(`${runbooks}rules/${path}`);
    capture.outputs.forEach((output, i) => {
      for (const text of output.text === "" ? [] : cuts(output.text, 3)) {
        if (!taken(320, path, i, text.length)) continue;
        const cut = changed(capture, i, { text, truncated: true });
        expect(invented(path, capture, cut, output), `${output.command} cut at ${text.length} of ${output.text.length}`).toEqual([]);
      }
    });
  });
});

/** Faulty nodes: what is missing must never look like health either. That their faults are found with everything at hand, rules.test.ts tells. */
const faulty = fixtures.filter((path) => /^verdict: match$/m.test(readFileSync(`${runbooks}rules/${path}/expect.yaml`, "utf8")));

describe.each(faulty)("%s", (path) => {
  const id = path.split("/")[0] as string;
  const rules = new Map([[id, catalogue.rules.get(id) as Rule]]);
  const verdict = (capture: Capture): string => judge(capture, { rules }).outcomes[0]?.verdict ?? "";

  test("the fault is found or left open, never ruled out, when one output is missing, failed or cut", async () => {
    const capture = await readCaptureFiles(`${runbooks}rules/${path}`);
    const open = /^(?:match|inconclusive)$/;
    capture.outputs.forEach((output, i) => {
      if (!rulesOn(output).some((rule) => rule.file.id === id)) return;
      const name = `${output.command} (sample ${output.sample})`;
      if (taken(24, path, i, "without")) expect(verdict(without(capture, i)), `without ${name}`).toMatch(open);
      const failed = changed(capture, i, { text: "", stderr: "cannot open: Permission denied", exitCode: 1 });
      if (output.text !== "" && taken(32, path, i, "failed")) expect(verdict(failed), `failed: ${name}`).toMatch(open);
      const others = capture.outputs.filter((one) => one.command !== output.command);
      // of a command that was run once that is no other capture
      if (others.length < capture.outputs.length - 1 && taken(32, path, i, "every sample")) {
        const locked: Capture = {
          ...capture,
          outputs: capture.outputs.map((one) => (one.command === output.command ? { ...one, text: "", stderr: "locked", exitCode: 4 } : one)),
        };
        if (output.text !== "") expect(verdict(locked), `every sample failed: ${name}`).toMatch(open);
        expect(verdict({ ...capture, outputs: others }), `never run: ${name}`).toMatch(open);
      }
      for (const text of output.text === "" ? [] : cuts(output.text, 5)) {
        if (!taken(160, path, i, text.length)) continue;
        expect(verdict(changed(capture, i, { text, truncated: true })), `${name} cut at ${text.length} of ${output.text.length}`).toMatch(open);
      }
    });
  });
});
