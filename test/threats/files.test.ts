import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { readConfig } from "../../functions/aws/config-source.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { type Catalogue, loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { mayApprove } from "../../functions/triage/policy.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { cpuMs } from "../cpu-time.ts";
import { fault, RULE, root } from "../triage/runbooks.ts";

/** Files that an enemy wrote, or had somebody merge: the configuration, rules and fixes, captures. Through the readers that production uses. */

const scratch = mkdtempSync(join(tmpdir(), "netcheck-threat-"));
afterAll(() => rmSync(scratch, { recursive: true }));
const untouched = (): void => {
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  expect(Object.getOwnPropertyNames(Object.prototype)).not.toContain("polluted");
};

/** A list of lists that unfolds to 9^9 entries. */
const ALIASES = [
  "a: &a [x, x, x, x, x, x, x, x, x]",
  ..."bcdefghi".split("").map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(", ")}]`),
].join("\n");
const DEEP = `a: ${"[".repeat(20_000)}${"]".repeat(20_000)}`;
/** Longer than any of these may take, and far shorter than what they would take unbounded. */
const QUICK_MS = 3000;
async function quickly<T>(run: () => T | Promise<T>): Promise<T> {
  const started = cpuMs();
  const result = await run();
  expect(cpuMs() - started).toBeLessThan(QUICK_MS);
  return result;
}

describe("netcheck.yaml", () => {
  /** Nodes by tag: they may have any name. */
  const CLUSTERS = "clusters: { lab: { transport: ssm, region: eu-central-1, targetsByTag: { a: b } } }";
  const refusal = (text: string): string => {
    try {
      readConfig(text, "/netcheck/config");
      return "it was read";
    } catch (error) {
      return (error as Error).message;
    }
  };

  test.each<[string, string, RegExp]>([
    ["aliases that unfold to gigabytes", ALIASES, /is not YAML: Excessive alias count/],
    ["lists in lists, 20,000 deep", DEEP, /is not YAML|is wrong/],
    ["larger than a megabyte", `# ${"x".repeat(1 << 20)}`, /is larger than 1048576 bytes/],
    ["an object's prototype", "clusters: {}\n__proto__: { polluted: true }", /is wrong: .*__proto__/s],
    ["an object's prototype, by a merge key", "clusters: {}\n<<: { __proto__: { polluted: true } }", /is wrong/],
    ["code", "clusters: {}\nrunbook: !!js/function 'function () { polluted = true }'\nx: 1", /is wrong|is not YAML/],
    ["a name that leads elsewhere", "clusters: { ../../etc: { transport: replay } }", /is wrong/],
    ["a runbook that leads elsewhere does not become another file", "clusters: {}\nrunbook: [../../etc]", /is wrong/],
    [
      "a key twice: the second would hide the first",
      "clusters: {}\npolicy: []\npolicy: [{ id: x, effect: allow, approvers: ['*'] }]",
      /Map keys must be unique/,
    ],
  ])("%s: refused at once", async (_what, text, message) => {
    expect(await quickly(() => refusal(text))).toMatch(message);
    untouched();
  });

  test("an object's prototype as a cluster or a target is none", () => {
    const { clusters } = readConfig(
      "clusters: { __proto__: { transport: replay, polluted: true }, a: { transport: replay, targets: { __proto__: { polluted: true } } } }",
      "x",
    );
    expect([Object.keys(clusters), Object.keys(clusters["a"]?.targets ?? { none: 1 })]).toEqual([["a"], []]);
    expect(Object.getPrototypeOf(clusters)).toBe(Object.prototype);
    untouched();
  });

  test.each(["constructor", "__proto__", "toString", "hasOwnProperty", "constructor/name", "lab/__proto__"])(
    "the target %s is none, whatever JavaScript knows by that name",
    async (name) => {
      const config = readConfig("clusters: { lab: { transport: replay, targets: { node1: {} } } }", "x");
      expect(await configuredTargets(async () => config).resolve(name)).toMatchObject({ kind: "unknown" });
    },
  );

  test.each([`${"*a".repeat(4)}b`, `${"+(a|aa)".repeat(6)}b`, "(a+)+$", "!(*a*a*a*a)b", "a\\*"])("the pattern %s could take for ever: refused", (pattern) => {
    expect(refusal(`${CLUSTERS}\npolicy: [{ id: x, effect: allow, targets: [${JSON.stringify(pattern)}], approvers: ["*"] }]`)).toMatch(
      /is wrong: .*a pattern has/s,
    );
  });

  test.each(["*a*a*ab", "{a*,b*,c*}", `{${Array(40).fill("a,aa").join(",")}}b`, `${"?".repeat(252)}b`, "[a-z]*[!b]*b", `${"[a-b]".repeat(50)}*b`])(
    "the pattern %s is told from the longest name in a moment",
    async (pattern) => {
      const config = readConfig(`${CLUSTERS}\npolicy: [{ id: x, effect: allow, targets: [${JSON.stringify(pattern)}], approvers: ["*"] }]`, "x");
      const subject = { cluster: "lab", target: "a".repeat(253), fix: "some-fix", requester: { id: "U0001", team: "T0001" }, risk: "low" as const };
      await quickly(() => mayApprove(config, subject, { id: "U0002", team: "T0001" }, async () => [], new Date(0)));
    },
  );
});

describe("rules and fixes", () => {
  let folder: string;
  let turn = 0;
  beforeEach(() => {
    folder = join(scratch, `runbooks-${++turn}`);
    for (const part of ["fixes/move-cilium-forward-first", "netcheck", `rules/${RULE}`, "rules/conntrack-invalid-drops"])
      cpSync(join(root, "runbooks", part), join(folder, part), { recursive: true, filter: (path) => !path.endsWith("/fixtures") });
  });
  const file = (id: string): string => join(folder, "rules", id, "rule.yaml");
  const evil = "conntrack-invalid-drops";
  const edit = (change: (text: string) => string): void => writeFileSync(file(evil), change(readFileSync(file(evil), "utf8")));
  /** The bad file costs only itself: the other rule finds its fault, and the bad one is named as not checked. */
  async function survives(): Promise<Catalogue> {
    const catalogue = await quickly(() => loadCatalogue(folder, { tolerant: true }));
    const diagnosis = await quickly(() => diagnose(fault, catalogue, "x", () => 0));
    expect(diagnosis.causes.map(({ rule }) => rule)).toEqual([RULE]);
    untouched();
    return catalogue;
  }
  async function refused(reason: RegExp): Promise<void> {
    const { broken, rules } = await survives();
    expect([...rules.keys()]).not.toContain(evil);
    expect(broken.rules.get(evil)).toMatch(reason);
  }

  test.each<[string, string, RegExp]>([
    ["aliases that unfold to gigabytes", ALIASES, /Excessive alias count/],
    ["lists in lists, 20,000 deep", DEEP, /Maximum call stack size exceeded|could not be parsed/],
    ["an object's prototype", "__proto__: { polluted: true }", /__proto__|Invalid input|Unrecognized/],
    ["code", "id: !!js/function 'function () {}'", /./],
    ["a file that is none: bytes", "\u0000\u0001\ufffd".repeat(1000), /./],
  ])("rule.yaml of %s: left out, named, and no other rule's trouble", async (_what, text, reason) => {
    writeFileSync(file(evil), text);
    await refused(reason);
  });

  test("a fix that leads elsewhere is none", async () => {
    edit((text) => `${text}\nfix: ../../../etc/passwd\n`);
    await refused(/fix/);
  });

  test("a condition of a megabyte, and one nested 5,000 deep: refused, in time", async () => {
    edit((text) => text.replace(/^let:$/m, () => `let:\n  huge: ${JSON.stringify(`${"1 == 1 && ".repeat(100_000)}true`)}`));
    await refused(/let\.huge: .*(?:CEL|long|large|big)/i);
    edit((text) => text.replace(/^ {2}huge:.*$/m, () => `  deep: ${JSON.stringify(`${"(".repeat(5000)}true${")".repeat(5000)}`)}`));
    await refused(/let\.deep: .*(?:CEL|deep|long|big)/i);
  });

  test("a pattern that would take for ever as a regular expression takes linear time", async () => {
    edit((text) => text.replace(/^let:$/m, () => `let:\n  slow: ${JSON.stringify(`"${"a".repeat(1500)}b".re2("(a+)+$")`)}`));
    expect([...(await survives()).rules.keys()]).toContain(evil);
  });

  test("a folder with a name of its own making is an id that is none", async () => {
    mkdirSync(join(folder, "rules", "__proto__"));
    writeFileSync(join(folder, "rules", "__proto__", "rule.yaml"), readFileSync(file(evil), "utf8"));
    expect([...(await survives()).broken.rules.keys()]).toEqual(["__proto__"]);
  });
});

describe("capture.json", () => {
  const capture = (index: string): string => {
    const path = mkdtempSync(join(scratch, "capture-"));
    writeFileSync(join(path, "capture.json"), index);
    writeFileSync(join(path, "x"), "default via 10.0.0.1 dev eth0\n");
    return path;
  };
  const refusal = (index: string): Promise<string> =>
    readCaptureFiles(capture(index)).then(
      () => "it was read",
      (error: unknown) => (error as Error).message,
    );
  const head = '"schema":"netcheck.capture/1","target":{"name":"n"}';

  test.each<[string, string, RegExp]>([
    ["an object's prototype", `{${head},"outputs":[],"__proto__":{"polluted":true}}`, /Unrecognized key/],
    ["an object's prototype, in an output", `{${head},"outputs":[{"command":"ip route","file":"x","__proto__":{"polluted":true}}]}`, /Unrecognized key/],
    ["a constructor's prototype", `{${head},"outputs":[],"constructor":{"prototype":{"polluted":true}}}`, /Unrecognized key/],
    ["lists in lists, 100,000 deep", `{${head},"outputs":${"[".repeat(100_000)}${"]".repeat(100_000)}}`, /outputs/],
    ["10,001 outputs", `{${head},"outputs":[${Array(10_001).fill('{"command":"ip route","file":"x"}').join(",")}]}`, /outputs: .*10000/],
    ["a command of a megabyte", `{${head},"outputs":[{"command":"${"x".repeat(1 << 20)}","file":"x"}]}`, /outputs\.0\.command/],
    ["a target without end", `{"schema":"netcheck.capture/1","target":{"name":"${"n".repeat(254)}"},"outputs":[]}`, /target\.name/],
  ])("%s: refused at once", async (_what, index, message) => {
    expect(await quickly(() => refusal(index))).toMatch(message);
    untouched();
  });
});
