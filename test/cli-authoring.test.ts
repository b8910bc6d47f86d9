import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test, vi } from "vitest";
import { newRule } from "../functions/cli/rules-new.ts";
import { commandLine, searchOf } from "../functions/facts/command.ts";
import { derivedFacts } from "../functions/facts/derived.ts";
import { facts } from "../functions/facts/index.ts";
import { pipeOf } from "../functions/facts/pipe.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { SqliteStore } from "../functions/store/sqlite.ts";
import { readCaptureFiles } from "../functions/transports/capture-files.ts";
import { packCapture } from "../functions/triage/captures.ts";
import { runCli } from "./run-cli.ts";
import { draft, incident } from "./store/drafts.ts";

/** The commands of whoever writes rules, as processes, on a copy of the runbooks: `rules new`, `test`, `explain`, and `record`. */

const root = fileURLToPath(new URL("../", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "netcheck-authoring-"));
vi.setConfig({ testTimeout: 60_000 });
afterAll(() => rmSync(scratch, { recursive: true }));

const KEPT = ["bridge-netfilter-off", "conntrack-invalid-drops", "kube-forward-before-cilium"];

/** A copy of the rules that are kept for these tests (`test/authoring/`): the shipped ones change with what is learned. */
function copyOfRunbooks(name: string): {
  folder: string;
  rule: (id: string, file?: string) => string;
  netcheck: (...args: string[]) => ReturnType<typeof runCli>;
} {
  const folder = join(scratch, name);
  cpSync(join(root, "test/authoring/runbooks"), folder, { recursive: true });
  return {
    folder,
    rule: (id, file = "rule.yaml") => join(folder, "rules", id, file),
    netcheck: (...args) => runCli(args, scratch, { NETCHECK_RUNBOOKS: folder }),
  };
}

describe("rules test", () => {
  test("one rule: every case with its verdict; --json says the same; all rules: one line each", async () => {
    const { netcheck } = copyOfRunbooks("good");
    const one = await netcheck("rules", "test", "conntrack-invalid-drops");
    expect(one).toEqual({
      code: 0,
      stderr: "",
      stdout: expect.stringMatching(
        /^conntrack-invalid-drops\n {2}ok +not-rising +no-match\n {2}ok +one-sample +inconclusive \(.+\)\n {2}ok +rising +match 90 %\n1 rule\(s\), 3 case\(s\): 3 as expected, 0 failed\n$/,
      ),
    });
    const { code, stdout } = await netcheck("rules", "test", "conntrack-invalid-drops", "--json");
    const result = JSON.parse(stdout) as {
      rule: string;
      ok: boolean;
      cases: { case: string; verdict: string; problems: unknown[]; evidence: { line: number }[] }[];
    };
    expect({ code, rule: result.rule, ok: result.ok }).toEqual({ code: 0, rule: "conntrack-invalid-drops", ok: true });
    expect(result.cases.map((item) => [item.case, item.verdict])).toEqual([
      ["not-rising", "no-match"],
      ["one-sample", "inconclusive"],
      ["rising", "match"],
    ]);
    expect(result.cases[2]?.evidence.length).toBeGreaterThan(0);
    const all = await netcheck("rules", "test");
    expect(all.code).toBe(0);
    for (const id of KEPT) expect(all.stdout).toMatch(new RegExp(`^${id}: \\d+ case\\(s\\) as expected$`, "m"));
    expect(all.stdout).toMatch(/\n3 rule\(s\), 11 case\(s\): 11 as expected, 0 failed\n$/);
  });

  test("a case that is not as expected: what was expected, what came, what was quoted; exit code 1", async () => {
    const { netcheck, rule } = copyOfRunbooks("wrong");
    writeFileSync(rule("kube-forward-before-cilium", "fixtures/lab-healthy/expect.yaml"), "verdict: match\nevidence: [KUBE-NOTHING]\nfirst: true\n");
    writeFileSync(rule("kube-forward-before-cilium", "fixtures/lab-fault/expect.yaml"), "verdict: no-match\nreason: because\n");
    const { code, stdout } = await netcheck("rules", "test", "kube-forward-before-cilium");
    expect(code).toBe(1);
    expect(stdout).toMatch(
      /FAIL lab-healthy +no-match\n {7}verdict\n +expected +match\n +actual +no-match\n {7}evidence\n +expected +a quoted line with KUBE-NOTHING\n +actual +nothing is quoted/,
    );
    expect(stdout).toMatch(/ {7}first\n +expected +kube-forward-before-cilium\n +actual +no cause/);
    expect(stdout).toMatch(
      /FAIL lab-fault +match 97 %\n {7}verdict\n +expected +no-match\n +actual +match\n {7}reason\n(?:.*\n){2} +quoted iptables-save -c:\d+: /,
    );
    expect(stdout).toMatch(/2 failed\. Look at kube-forward-before-cilium: netcheck rules explain ID CAPTURE shows why\n$/);
  });

  test("a cause on a node that is well is a false alarm, whichever rule finds it", async () => {
    const { netcheck, folder } = copyOfRunbooks("alarm");
    const fixtures = join(folder, "rules/conntrack-invalid-drops/fixtures");
    cpSync(join(folder, "rules/kube-forward-before-cilium/fixtures/lab-fault"), join(fixtures, "healthy-it-says"), { recursive: true });
    writeFileSync(join(fixtures, "healthy-it-says/expect.yaml"), "verdict: match\n");
    const { code, stdout } = await netcheck("rules", "test", "conntrack-invalid-drops");
    expect(code).toBe(1);
    expect(stdout).toMatch(/FAIL healthy-it-says .*\n {7}false alarm\n.*\n +actual +kube-forward-before-cilium\n/);
  });

  test("a broken rule fails with file, line, column and reason; the other rules are tested all the same", async () => {
    const { netcheck, rule } = copyOfRunbooks("broken");
    const file = rule("bridge-netfilter-off");
    writeFileSync(file, readFileSync(file, "utf8").replace("severity:", "severty:"));
    const broken = await netcheck("rules", "test", "bridge-netfilter-off");
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain(`${file}:4:1: severty: Unrecognized key: "severty"`);
    expect((await netcheck("rules", "test", "conntrack-invalid-drops")).code).toBe(0);
    const all = await netcheck("rules", "test");
    expect(all.code).toBe(1);
    expect(all.stdout).toMatch(/^conntrack-invalid-drops: 3 case\(s\) as expected$/m);
    expect((await netcheck("rules", "explain", "bridge-netfilter-off", scratch)).stderr).toBe(`netcheck: ${file}:4:1: severty: Unrecognized key: "severty"\n`);
  });

  test("an expect.yaml that is wrong, a capture that is not there, a rule without a case: said, exit code 1", async () => {
    const { netcheck, rule } = copyOfRunbooks("files");
    writeFileSync(rule("conntrack-invalid-drops", "fixtures/rising/expect.yaml"), "verdict: match\ncapture: kube-forward-before-cilium/nowhere\n");
    writeFileSync(rule("conntrack-invalid-drops", "fixtures/one-sample/expect.yaml"), "verdict: sometimes\n");
    rmSync(rule("conntrack-invalid-drops", "fixtures/not-rising"), { recursive: true });
    const { code, stdout } = await netcheck("rules", "test", "conntrack-invalid-drops");
    expect(code).toBe(1);
    expect(stdout).toMatch(/rising\/expect\.yaml:2:1: capture: there is no fixture "kube-forward-before-cilium\/nowhere"/);
    expect(stdout).toMatch(/one-sample\/expect\.yaml:1:1: verdict: /);
    expect(stdout).toContain("a case with verdict: match");
    rmSync(rule("kube-forward-before-cilium", "fixtures/writeup-bad-host/capture.json"));
    expect((await netcheck("rules", "test", "kube-forward-before-cilium")).stdout).toMatch(/FAIL writeup-bad-host +could not be judged\n {7}capture\n/);
  });

  test("a known gap is told and does not fail", async () => {
    const { netcheck, rule } = copyOfRunbooks("gap");
    writeFileSync(rule("kube-forward-before-cilium", "fixtures/writeup-bad-host/expect.yaml"), "verdict: no-match\ntodo: the format is not read yet\n");
    const { code, stdout } = await netcheck("rules", "test", "kube-forward-before-cilium");
    expect(code).toBe(0);
    expect(stdout).toMatch(/gap +writeup-bad-host +match 90 %\n +known gap: the format is not read yet\n/);
    expect(stdout).toMatch(/0 failed, 1 known gap\(s\)\n$/);
  });

  test("a fix that does not load: its rule fails, and the lists say what they leave out", async () => {
    const { netcheck, rule, folder } = copyOfRunbooks("fix");
    const file = join(folder, "fixes/bad-fix/fix.yaml");
    mkdirSync(join(folder, "fixes/bad-fix"));
    writeFileSync(file, "id: bad-fix\ntitle: x\n");
    writeFileSync(rule("conntrack-invalid-drops"), `${readFileSync(rule("conntrack-invalid-drops"), "utf8")}fix: bad-fix\n`);
    const { code, stdout } = await netcheck("rules", "test", "conntrack-invalid-drops");
    expect(code).toBe(1);
    expect(stdout).toMatch(/ {7}fix\n +expected +a fix that loads\n +actual +.*bad-fix\/fix\.yaml:1:1: risk: /);
    expect(await netcheck("fixes", "list")).toEqual({
      code: 0,
      stdout: "",
      stderr: expect.stringMatching(/^netcheck: bad-fix is left out, it does not load: .*fix\.yaml:1:1: risk: .*\n$/),
    });
    expect(await netcheck("fixes", "show", "bad-fix")).toMatchObject({ code: 1, stderr: expect.stringContaining("fix.yaml:1:1: risk: ") });
    writeFileSync(rule("conntrack-invalid-drops"), "id: x\n");
    expect((await netcheck("rules", "list")).stderr).toMatch(/^netcheck: conntrack-invalid-drops is left out, it does not load: /);
  });

  test("a fix whose check is no valid shell: its rule fails, and the list says that it can never run", async () => {
    const { netcheck, rule, folder } = copyOfRunbooks("fix-shell");
    const file = join(folder, "fixes/bad-shell/fix.yaml");
    mkdirSync(join(folder, "fixes/bad-shell"));
    const text = (check: string): string =>
      `id: bad-shell\ntitle: x\nrisk: low\nparameters: {}\ncheck: ${JSON.stringify(check)}\napply: [{ run: ["true"] }]\nrollback: []\nrollbackNote: x\nverify: { settle: 1, note: x }\nsideEffects: [x]\nmakeItLast: [x]\nreferences: [x]\n`;
    writeFileSync(file, text("true\nif [ 1 -lt 2 ; then"));
    writeFileSync(rule("conntrack-invalid-drops"), `${readFileSync(rule("conntrack-invalid-drops"), "utf8")}fix: bad-shell\n`);
    const { code, stdout } = await netcheck("rules", "test", "conntrack-invalid-drops");
    expect(code).toBe(1);
    expect(stdout).toMatch(/ {7}fix\n +expected +a check that the shell understands\n +actual +bad-shell: check is not valid shell: .*syntax error/i);
    expect(await netcheck("fixes", "list")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("bad-shell"),
      stderr: expect.stringMatching(/^netcheck: bad-shell can never run: check is not valid shell: .*syntax error/i),
    });
    // good by itself, not in its place
    writeFileSync(file, text("true \\"));
    expect((await netcheck("rules", "test", "conntrack-invalid-drops")).stdout).toMatch(/with this check the script of the fix is not valid shell: /);
    writeFileSync(file, text("true"));
    expect((await netcheck("rules", "test", "conntrack-invalid-drops")).code).toBe(0);
  });

  test("a rule that does not exist is usage, with the ones that sound like it", async () => {
    const { netcheck } = copyOfRunbooks("unknown");
    expect(await netcheck("rules", "test", "bridge-netfilter-of")).toEqual({
      code: 2,
      stdout: "",
      stderr: 'netcheck: there is no rule "bridge-netfilter-of"; did you mean bridge-netfilter-off? see netcheck rules list\n',
    });
  });
});

describe("rules new", () => {
  test("makes a rule that loads, with what its facts offer, and says what to do next; its test fails until it is written", async () => {
    const { netcheck, folder, rule } = copyOfRunbooks("new");
    const made = await netcheck("rules", "new", "two-default-routes", "--role", "risk", "--fact", "neighbor", "link");
    expect(made).toMatchObject({ code: 0, stderr: "" });
    for (const file of [
      "rule.yaml",
      "README.md",
      "fixtures/fault/capture.json",
      "fixtures/fault/expect.yaml",
      "fixtures/healthy/capture.json",
      "fixtures/healthy/expect.yaml",
    ]) {
      expect(made.stdout).toContain(`/${file}\n`);
      expect(existsSync(rule("two-default-routes", file))).toBe(true);
    }
    expect(made.stdout).toContain("netcheck rules test two-default-routes");
    const text = readFileSync(rule("two-default-routes"), "utf8");
    expect(text).toMatch(/^# yaml-language-server: \$schema=\S+docs\/generated\/rule\.schema\.json\n/);
    expect(text).toMatch(/^# {3}neighbor\.rows: line int, family "ipv4" \| "ipv6",/m);
    expect(loadCatalogue(folder).rules.get("two-default-routes")?.file).toMatchObject({ role: "risk", severity: "info", needs: ["neighbor", "link"] });
    const tested = await netcheck("rules", "test", "two-default-routes");
    expect(tested.code).toBe(1);
    expect(tested.stdout).toMatch(/FAIL fault +no-match/);
    expect(tested.stdout).toMatch(/expected +what the commands printed\n +actual +outputs\/\S+\.txt, .*: empty\n/);
    // a rule says no-match of nothing, too: that is no proof
    expect(tested.stdout).toMatch(/FAIL healthy +no-match\n +outputs\n +expected +what the commands printed\n/);
    expect(tested.stdout).toMatch(/still to be written\n {7}rule\.yaml:\d+: title: "FILL IN: .*\n(?: {7}rule\.yaml:.*\n)+(?: {7}README\.md:.*\n){4}/);
  });

  test("every fact can be the first one of a rule", () => {
    const { folder } = copyOfRunbooks("each");
    const ids = [...facts, ...derivedFacts].map((fact) => fact.id);
    for (const fact of ids) {
      const { next } = newRule({ id: `x-${fact}`, role: "symptom", facts: [fact], runbooks: folder });
      // as a shell takes it, the command of step 2 is one whose output is read
      const [, asked = ""] = /^ {2}2\. netcheck facts parse \S+ --command "((?:[^"\\]|\\.)+)"$/m.exec(next) ?? [];
      const command = asked.replaceAll(/\\(["$`\\])/g, "$1");
      const read = facts.some((one) => one.recognize(commandLine(command).argv, searchOf(command), pipeOf(command)) !== undefined);
      expect([fact, read || command === "<what was run>"]).toEqual([fact, true]);
    }
    expect([...loadCatalogue(folder).rules.keys()]).toEqual(expect.arrayContaining(ids.map((fact) => `x-${fact}`)));
  });

  test.each([
    [["Bad_Id"], /cannot be the id of a rule: an id is lower case words joined by hyphens/],
    [["../../etc"], /cannot be the id of a rule/],
    [["bridge-netfilter-off"], /there is a rule "bridge-netfilter-off" already/],
    [["fresh", "--fact", "frobnicate"], /there is no fact "frobnicate"; facts are (?:[a-z0-9-]+, )*address, /],
    [["fresh", "--role", "culprit"], /--role takes cause, symptom, risk, not "culprit"/],
  ])("rules new %j is usage, and nothing is written", async (args, message) => {
    const { netcheck, folder } = copyOfRunbooks(`usage-${args.join("").replaceAll(/\W/g, "")}`);
    const { code, stdout, stderr } = await netcheck("rules", "new", ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(message);
    expect(readdirSync(join(folder, "rules")).toSorted()).toEqual(KEPT.toSorted());
  });
});

describe("rules explain", () => {
  const { netcheck, folder } = copyOfRunbooks("explain");
  const explain = async (id: string, path: string): Promise<string> =>
    (await netcheck("rules", "explain", id, join(folder, "rules", path.replace("/", "/fixtures/")))).stdout;

  test("a match: each condition with its value, how many rows it left, and the lines", async () => {
    const text = await explain("kube-forward-before-cilium", "kube-forward-before-cilium/lab-fault");
    expect(text).toMatch(/^kube-forward-before-cilium: match\n {2}when is true/);
    expect(text).toMatch(
      / +18 row\(s\) in iptables\.rows\n +18 left by r\.table == "filter"\n +11 left by r\.chain == "FORWARD"\n +11 left by has\(r\.target\)\n +1 left by r\.target == "KUBE-FORWARD"\n/,
    );
    expect(text).toMatch(/settled {2}= false\n.*\n +true +cilium\.size\(\) > 0\n +false +misplaced\.size\(\) == 0\n/);
    expect(text).toMatch(/finding {2}critical, 97 %: In FORWARD .*\n +iptables-save -c:\d+: /);
  });

  test("a no-match: which condition the last rows failed, and which rows came closest", async () => {
    const text = await explain("kube-forward-before-cilium", "kube-forward-before-cilium/lab-healthy");
    expect(text).toMatch(
      /^kube-forward-before-cilium: no-match\n {2}when is false: hit\.size\(\) > 0 is false: hit is empty, because none of 1 row\(s\) that came so far passes |^kube-forward-before-cilium: no-match\n {2}when is false: hit\.size\(\) > 0 is false: hit is empty, because none of 1 row\(s\) in drops passes /,
    );
    expect(text).toMatch(/came closest: iptables-save -c:\d+: .*--ctstate INVALID -j DROP\n +\{.*"chain":"KUBE-FORWARD".*\n/);
  });

  test("a closed gate, and a fact that is partly known: the command whose whole output would settle it", async () => {
    expect(await explain("bridge-netfilter-off", "bridge-netfilter-off/near-miss-kvm-host")).toMatch(
      /: not-applicable .*\n {2}the gate is closed: iptables\.rows\.exists\(.* is false, because none of /,
    );
    const cut = await explain("kube-forward-before-cilium", "kube-forward-before-cilium/truncated");
    expect(cut).toContain("what would settle it: the whole output of `iptables-save -c` (fact iptables)");
    expect(cut).toMatch(/fact {5}iptables: partial: `iptables-save -c`: the output was truncated \(.* rows, .*\) {2}\[needs\]/);
  });

  test("a counter that was read once: the second sample is what is missing", async () => {
    const text = await explain("conntrack-invalid-drops", "kube-forward-before-cilium/capture-s2-fault");
    expect(text).toContain("what would settle it: a second sample of `iptables-save -c`, some seconds later");
  });

  test("a needed fact that nobody collected: the commands that would show it", async () => {
    const folderOfNothing = join(scratch, "nothing");
    mkdirSync(folderOfNothing);
    writeFileSync(join(folderOfNothing, "capture.json"), JSON.stringify({ schema: "netcheck.capture/1", target: { name: "x" }, outputs: [] }));
    const { stdout } = await netcheck("rules", "explain", "conntrack-invalid-drops", folderOfNothing);
    expect(stdout).toMatch(/what would settle it: the whole output of `iptables-save -c` .*\(fact iptables\)/);
    expect(stdout).toContain("when     = could not be worked out:");
  });

  test("a case of the rule by its name; another name is usage, with the cases that there are", async () => {
    const named = await netcheck("rules", "explain", "conntrack-invalid-drops", "rising");
    expect(named.stdout).toBe(await explain("conntrack-invalid-drops", "kube-forward-before-cilium/lab-fault"));
    expect(await netcheck("rules", "explain", "conntrack-invalid-drops", "sinking")).toEqual({
      code: 2,
      stdout: "",
      stderr: 'netcheck: "sinking" is no file, and conntrack-invalid-drops has no such case; its cases are not-rising, one-sample, rising\n',
    });
  });

  test("a field that not every row has: the let that failed, and how to guard it; for a part of a fact, `settled` is named", async () => {
    const own = copyOfRunbooks("explain-optional");
    const file = own.rule("kube-forward-before-cilium");
    const text = readFileSync(file, "utf8");
    writeFileSync(
      file,
      text.replace(/^let:\n/m, "let:\n  targets: iptables.rows.map(r, r.inInterface)\n").replace(/^when: /m, 'when: targets.exists(t, t == "x") && '),
    );
    const { stdout } = await own.netcheck("rules", "explain", "kube-forward-before-cilium", "lab-fault");
    expect(stdout).toMatch(/: inconclusive \(the condition could not be worked out: targets: No such key: inInterface\)\n/);
    expect(stdout).toContain(
      "for the rule's author: not every row has inInterface; guard it with has(r.inInterface), or read it as r.?inInterface.orValue(…)\n",
    );
    writeFileSync(file, text.replace(/^settled:.*(?:\n {2}.*)*\n/m, ""));
    expect((await own.netcheck("rules", "explain", "kube-forward-before-cilium", "truncated")).stdout).toContain("for the rule's author: `settled` says when");
  });

  test("--json: the same, for machines", async () => {
    const path = join(folder, "rules/kube-forward-before-cilium/fixtures/lab-healthy");
    const { stdout } = await netcheck("rules", "explain", "kube-forward-before-cilium", path, "--json");
    const explained = JSON.parse(stdout) as {
      verdict: string;
      facts: unknown[];
      expressions: { key: string; clause: { value: string; search?: { rows: number; steps: unknown[] } } }[];
    };
    expect(explained.verdict).toBe("no-match");
    expect(explained.facts).toMatchObject([{ fact: "iptables", role: "needs", state: "complete", rows: { rows: 18 } }]);
    expect(explained.expressions.map(({ key }) => key)).toEqual([
      "applies",
      "let kube",
      "let cilium",
      "let drops",
      "let misplaced",
      "let hit",
      "when",
      "settled",
    ]);
    expect(explained.expressions[1]?.clause.search).toMatchObject({ rows: 18, steps: [{ left: 18 }, { left: 11 }, { left: 11 }, { left: 1 }] });
  });
});

test("facts show --json: the lists of a fact and the fields of their rows", async () => {
  const { stdout } = await runCli(["facts", "show", "neighbor", "--json"], scratch);
  const shown = JSON.parse(stdout) as { lists: { name: string; fields: unknown[] }[] };
  expect(shown.lists.map(({ name }) => name)).toEqual(["rows", "turns", "changed"]);
  expect(shown.lists[0]?.fields).toContainEqual({ name: "mac", type: "string", optional: true });
  expect(shown.lists[0]?.fields).toContainEqual({ name: "family", type: '"ipv4" | "ipv6"', optional: false });
});

describe("record", () => {
  const { netcheck, folder, rule } = copyOfRunbooks("record");
  const FAULT = join(folder, "rules/bridge-netfilter-off/fixtures/lab-fault");

  test("an incident becomes a fixture of the rule that found its cause, and passes as one", async () => {
    const directory = join(scratch, "store");
    const store = new SqliteStore(join(directory, "store.sqlite"));
    await store.open(incident("inc-7"), draft("opened/1"));
    await store.put("captures/inc-7/collect", packCapture(await readCaptureFiles(FAULT)));
    await store.update("inc-7", { capture: "captures/inc-7/collect" }, []);
    await store.open(incident("inc-8"), draft("opened/2"));
    store.close();
    const made = await netcheck("record", "inc-7", "--directory", directory);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    expect(made.stdout).toMatch(
      /recorded-inc-7: \d+ outputs; \d+ addresses, .*\nthe diagnosis is the same: cause-found, bridge-netfilter-off \d+ %\nexpect\.yaml: bridge-netfilter-off match, first\nRead the outputs before you share them/,
    );
    const recorded = rule("bridge-netfilter-off", "fixtures/recorded-inc-7");
    expect(readFileSync(join(recorded, "expect.yaml"), "utf8")).toMatch(/^#.*\nverdict: match\nfirst: true\n$/);
    expect((await netcheck("rules", "test", "bridge-netfilter-off")).stdout).toMatch(/ok +recorded-inc-7 +match/);
    expect(await netcheck("record", "inc-7", "--directory", directory)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is there already, and not empty"),
    });
    expect(await netcheck("record", "inc-8", "--directory", directory)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the incident inc-8 has no capture"),
    });
    expect(await netcheck("record", "inc-9", "--directory", directory)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/there is no incident "inc-9".*the latest are inc-/),
    });
    expect(await netcheck("record", "inc-7", "--directory", join(scratch, "no-store"))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("start local mode first"),
    });
  });

  test("a capture becomes a case of the rule whose folder is named; elsewhere it is just a capture", async () => {
    const quiet = rule("conntrack-invalid-drops", "fixtures/other-fault");
    expect((await netcheck("record", FAULT, "-o", quiet)).stdout).toMatch(/expect\.yaml: conntrack-invalid-drops (?:no-match|inconclusive)\n/);
    const elsewhere = join(scratch, "elsewhere");
    const paste = join(scratch, "paste.txt");
    writeFileSync(paste, "alice@worker7:~$ ip neigh\n10.240.0.57 dev eth0 lladdr 3a:d3:5d:06:09:0f REACHABLE\n");
    const fromPaste = await netcheck("record", paste, "-o", join(scratch, "pasted"), "--json");
    expect(JSON.parse(fromPaste.stdout)).toMatchObject({ folder: join(scratch, "pasted"), verdict: "inconclusive", replaced: { addresses: 1, macs: 1 } });
    const text = readFileSync(join(scratch, "pasted/outputs/01-ip.txt"), "utf8");
    expect(text).toMatch(/^\s*(?!10\.240)10\.\d+\.\d+\.\d+ dev eth0 lladdr 3a(?!:d3:5d):[0-9a-f:]{14} REACHABLE\n$/);
    const healthy = join(folder, "rules/bridge-netfilter-off/fixtures/lab-fixed");
    expect((await netcheck("record", healthy, "-o", elsewhere)).stdout).toContain("no expect.yaml was written");
    expect(readdirSync(elsewhere).toSorted()).toEqual(["capture.json", "outputs"]);
    expect(await netcheck("record", healthy)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("belongs to no rule by itself: name a folder with --output"),
    });
  });

  test("a diagnosis that hangs on one machine's own name is not reproduced: refused, nothing is written", async () => {
    const own = copyOfRunbooks("record-own");
    const file = own.rule("conntrack-invalid-drops");
    // nobody should write such a rule: it knows one address
    writeFileSync(
      file,
      readFileSync(file, "utf8")
        .replace("needs: [iptables]", "needs: [iptables, address]")
        .replace("when: rising.size() > 0", 'when: rising.size() > 0 || address.rows.exists(a, a.address.startsWith("10.20.30."))')
        .replace("evidence: [rising]", "evidence: [rising, address.rows]")
        .replace(/^summary: .*$/m, "summary: x"),
    );
    const capture = join(scratch, "one-address");
    mkdirSync(capture);
    writeFileSync(join(capture, "a.txt"), "2: eth0: <UP> mtu 1500 state UP\n    inet 10.20.30.40/24 scope global eth0\n");
    writeFileSync(join(capture, "b.txt"), "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
    const outputs = [
      { command: "ip addr", file: "a.txt" },
      { command: "iptables-save", file: "b.txt" },
    ];
    writeFileSync(join(capture, "capture.json"), JSON.stringify({ schema: "netcheck.capture/1", target: { name: "x" }, outputs }));
    const target = join(scratch, "refused");
    const ran = await own.netcheck("record", capture, "-o", target);
    expect(ran).toMatchObject({ code: 1, stdout: "" });
    expect(ran.stderr).toMatch(
      /this capture is diagnosed differently, .*nothing was written\.\n {2}.*symptoms: \[\{"rule":"conntrack-invalid-drops".*became \[\]/s,
    );
    expect(existsSync(target)).toBe(false);
  });
});
