import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { keyOf, nothingKnown } from "../../functions/rules/known.ts";
import { type Catalogue, LoadError, loadCatalogue } from "../../functions/rules/load.ts";
import { captureOf, output } from "./captures.ts";

/** What a person who writes a rule is told: file, line, column, key and reason, at the first thing that is wrong. */

const scratch = mkdtempSync(join(tmpdir(), "netcheck-load-"));
afterAll(() => rmSync(scratch, { recursive: true }));
let count = 0;

const RULE = `id: some-rule
title: A default route
role: cause
severity: warning
status: experimental
detects: Detects a default route.
needs: [route]
uses: [link]
applies: link.rows.size() >= 0
let:
  found: route.rows.filter(r, r.prefix == "0.0.0.0/0" && has(r.interface))
when: found.size() > 0
evidence: [found]
summary: The default route is {{ found[0].prefix }}.
confidence: 0.9
explains: []
fix: some-fix
falsePositives: [None are known.]
references: [ip-route(8)]
`;
const CONDITION = RULE.slice(RULE.indexOf("when:"), RULE.indexOf("explains:"));
const FORMS = "forms: { a: { when: 'true', summary: A., confidence: 0.5, evidence: [found] }, b: { when: found.size(), summary: B., confidence: 0.5 } }";
const FIX = `id: some-fix
title: Delete it
risk: low
parameters:
  interfaces: { type: interface, list: true, from: "found.map(r, r.interface)" }
check: "true"
apply:
  - { each: [interfaces], run: [ip, route, del, default, dev, $interfaces] }
rollback: []
rollbackNote: It is gone.
verify: { settle: 1, note: Nothing. }
sideEffects: [It is gone.]
makeItLast: [Nothing.]
references: [ip-route(8)]
`;
const README = "# A rule\n\n## Meaning\n\nM\n\n## Impact\n\nI\n\n## Diagnosis\n\nD\n\n## Mitigation\n\nMi\n";
const RUNBOOK = `id: netcheck
title: All
rules: all
facts: [os, socket-lb]
timeoutSeconds: 10
maxBytes: 1048576
intervalSeconds: 2
budgetSeconds: 60
`;
const FILES: Record<string, string> = {
  "rules/some-rule/rule.yaml": RULE,
  "rules/some-rule/README.md": README,
  "fixes/some-fix/fix.yaml": FIX,
  "netcheck/runbook.yaml": RUNBOOK,
};

/** A runbooks folder with the files above, some of them changed or added. */
function runbooks(changes: Record<string, string>): string {
  const root = join(scratch, String(++count));
  for (const [name, text] of Object.entries({ ...FILES, ...changes })) {
    mkdirSync(join(root, dirname(name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

/** What loading says, with the folder's name taken off. */
function complaintOf(changes: Record<string, string>): string {
  const root = runbooks(changes);
  try {
    loadCatalogue(root);
  } catch (error) {
    expect(error).toBeInstanceOf(LoadError);
    return (error as Error).message.replaceAll(`${root}/`, "");
  }
  throw new Error("it was loaded");
}

/** The rule with one text replaced, which must be there. */
function edited(text: string, from: string, to: string): string {
  expect(text).toContain(from);
  return text.replace(from, () => to);
}
const rule = (from: string, to: string) => complaintOf({ "rules/some-rule/rule.yaml": edited(RULE, from, to) });
const fix = (from: string, to: string) => complaintOf({ "fixes/some-fix/fix.yaml": edited(FIX, from, to) });
const runbook = (from: string, to: string) => complaintOf({ "netcheck/runbook.yaml": edited(RUNBOOK, from, to) });

test("what the cases below start from loads", () => {
  const { rules, fixes, runbooks: collections, guides } = loadCatalogue(runbooks({}));
  expect([[...rules.keys()], [...fixes.keys()], [...collections.keys()]]).toEqual([["some-rule"], ["some-fix"], ["netcheck"]]);
  expect(guides.get("some-rule")).toEqual({ meaning: "M", impact: "I", diagnosis: "D", mitigation: "Mi" });
  expect(rules.get("some-rule")).toMatchObject({ collects: new Set(["route", "link"]), decidedBy: new Set(["route"]) });
});

test("files with CRLF load too", () => {
  const { guides } = loadCatalogue(runbooks(Object.fromEntries(Object.entries(FILES).map(([name, text]) => [name, text.replaceAll("\n", "\r\n")]))));
  expect(guides.get("some-rule")).toEqual({ meaning: "M", impact: "I", diagnosis: "D", mitigation: "Mi" });
});

describe("rule.yaml", () => {
  test.each<[string, string, string, RegExp]>([
    ["unknown key", "status:", "statsu:", /^rules\/some-rule\/rule\.yaml:5:1: statsu: Unrecognized key: "statsu"$/],
    ["missing key", "confidence: 0.9\n", "", /^rules\/some-rule\/rule\.yaml:1:1: confidence: it is missing, and there are no forms$/],
    ["value out of a list", "role: cause", "role: because", /rule\.yaml:3:1: role: .*"cause"\|"symptom"\|"risk"/],
    ["id that is no id", "id: some-rule", "id: Some_Rule", /rule\.yaml:1:1: id: an id is lower case words joined by hyphens$/],
    ["id that is not the folder's", "id: some-rule", "id: other-rule", /rule\.yaml:1:1: id: the folder is called "some-rule": one thing has one name$/],
    ["needs nothing", "needs: [route]", "needs: []", /rule\.yaml:7:1: needs: /],
    ["needs half a fact", "needs: [route]", "needs: [{ fact: route, whole: false }]", /rule\.yaml:7:24: needs\.0\.whole: .*expected true/],
    ["needs with a typo", "needs: [route]", "needs: [{ fact: route, hole: true }]", /rule\.yaml:7:24: needs\.0\.hole: Unrecognized key: "hole"/],
    ["unknown fact", "needs: [route]", "needs: [route, rout]", /rule\.yaml:7:16: needs\.1: there is no fact "rout"; facts are (?:[a-z0-9-]+, )*address, /],
    ["unknown used fact", "uses: [link]", "uses: [link, lonk]", /rule\.yaml:8:14: uses\.1: there is no fact "lonk"/],
    ["unread need", "needs: [route]", "needs: [route, os]", /rule\.yaml:7:16: needs\.1: "os" is listed and never read$/],
    ["unread use", "uses: [link]", "uses: [link, os]", /rule\.yaml:8:14: uses\.1: "os" is listed and never read$/],
    [
      "fact that is not listed",
      "has(r.interface))",
      "has(r.interface) && rule.rows.size() > 0)",
      /rule\.yaml:11:3: let\.found: .*neither in needs nor in uses$/,
    ],
    ["unknown fix", "fix: some-fix", "fix: some-fxi", /rule\.yaml:17:1: fix: there is no fix "some-fxi"; fixes are some-fix$/],
    ["explains nothing that is", "explains: []", "explains: [nobody]", /rule\.yaml:16:12: explains\.0: there is no rule "nobody"$/],
    ["explains itself", "explains: []", "explains: [some-rule]", /rule\.yaml:16:12: explains\.0: a rule does not explain itself$/],
    ["confidence of 2", "confidence: 0.9", "confidence: 2", /rule\.yaml:15:1: confidence: .*<=1$/],
    [
      "confidence as a text",
      "confidence: 0.9",
      `confidence: '"high"'`,
      /rule\.yaml:15:1: confidence: it must be a number with a decimal point, but .* string$/,
    ],
    ["no evidence", "evidence: [found]", "evidence: []", /rule\.yaml:13:1: evidence: /],
    [
      "a form beside a condition",
      "explains: []",
      "forms: { a: { when: 'true', summary: A., confidence: 0.5 } }\nexplains: []",
      /:12:1: when: each form has its own$/,
    ],
    ["one form", CONDITION, "forms: { a: { when: found.size() > 0, summary: A., confidence: 0.5 } }\n", /:12:1: forms: there are at least two, or none$/],
    ["a form that is no condition", CONDITION, `${FORMS}\n`, /:12:85: forms\.b\.when: it must be true or false, but .* int$/],
    ["a form with a typo", CONDITION, `${FORMS.replace("confidence", "confidense")}\n`, /forms\.a\.confidense: Unrecognized key/],
    ["not YAML", "needs: [route]", "needs: [route", /^rules\/some-rule\/rule\.yaml: .* at line \d+, column \d+/],
    ["key given twice", "role: cause", "role: cause\nrole: risk", /^rules\/some-rule\/rule\.yaml: Map keys must be unique at line 4, column 1/],
    ["two documents", "references:", "---\nreferences:", /^rules\/some-rule\/rule\.yaml: Source contains multiple documents/],
    ["a polluting key", "role: cause", "role: cause\n__proto__: { polluted: true }", /rule\.yaml:4:1: __proto__: Unrecognized key/],
  ])("%s", (_, from, to, message) => expect(rule(from, to)).toMatch(message));

  test("empty, a text, a list, not there", () => {
    const said = (text: string) => complaintOf({ "rules/some-rule/rule.yaml": text });
    expect(said("")).toMatch(/^rules\/some-rule\/rule\.yaml.*: Invalid input: expected object, received null$/);
    expect(said("hello")).toMatch(/^rules\/some-rule\/rule\.yaml:1:1: Invalid input: expected object, received string$/);
    expect(said("- id")).toMatch(/^rules\/some-rule\/rule\.yaml:1:1: Invalid input: expected object, received array$/);
    expect(complaintOf({ "rules/other/README.md": README })).toMatch(/^rules\/other\/rule\.yaml: could not read it: ENOENT/);
  });

  test("aliases that unfold to gigabytes are refused at once", () => {
    const bomb = [
      "a: &a [x, x, x, x, x, x, x, x, x]",
      ..."bcdefghi".split("").map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(", ")}]`),
    ];
    expect(complaintOf({ "rules/some-rule/rule.yaml": bomb.join("\n") })).toMatch(/^rules\/some-rule\/rule\.yaml: Excessive alias count/);
  });

  test("two causes that explain each other would hide each other", () => {
    const other = edited(edited(RULE, "id: some-rule", "id: third-rule"), "explains: []", "explains: [some-rule]");
    const changes = {
      "rules/some-rule/rule.yaml": edited(RULE, "explains: []", "explains: [third-rule]"),
      "rules/third-rule/rule.yaml": other,
      "rules/third-rule/README.md": README,
    };
    expect(complaintOf(changes)).toMatch(/^rules\/some-rule\/rule\.yaml:16:12: explains\.0: "third-rule" explains "some-rule" in turn$/);
  });
});

describe("CEL", () => {
  test.each<[string, string, string, RegExp]>([
    ["syntax", "found.size() > 0", "found.size( > 0", /^rules\/some-rule\/rule\.yaml:12:1: when: .*\n\n> +1 \| found\.size\( > 0\n +\^$/],
    ["unknown field", 'r.prefix == "0.0.0.0/0"', 'r.prefxi == "0.0.0.0/0"', /rule\.yaml:11:3: let\.found: No such key: prefxi\n\n> .*\n +\^+$/],
    ["unknown variable", "found.size() > 0", "fuond.size() > 0", /rule\.yaml:12:1: when: Unknown variable: fuond\n/],
    ["another type", "found.size() > 0", "found.size()", /rule\.yaml:12:1: when: it must be true or false, but `found\.size\(\)` is of type int$/],
    ["types that do not compare", "found.size() > 0", 'found.size() > "0"', /rule\.yaml:12:1: when: no such overload: /],
    ["gate that is no gate", "link.rows.size() >= 0", "link.rows.size()", /rule\.yaml:9:1: applies: it must be true or false/],
    [
      "evidence that is no row",
      "evidence: [found]",
      "evidence: [found, found.size()]",
      /rule\.yaml:13:19: evidence\.1: it must give a row of a fact, or a list of rows/,
    ],
    ["a let with a fact's name", "found: route", "route: route", /rule\.yaml:11:3: let\.route: "route" is the name of a fact$/],
    ["a let that is a word of CEL", "let:\n", "let:\n  true: route.rows\n", /rule\.yaml:11:3: let\.true: "true" is a word of CEL$/],
    ["a let that CEL reserves", "let:\n", "let:\n  in: route.rows\n", /rule\.yaml:11:3: let\.in: "in" is a word of CEL$/],
    ["summary that cannot be printed", "{{ found[0].prefix }}", "{{ found }}", /rule\.yaml:14:1: summary: \{\{ \}\} must hold a text or a whole number/],
    ["summary with an open brace", "{{ found[0].prefix }}", "{{ found[0].prefix }", /rule\.yaml:14:1: summary: "\{\{" and "\}\}" do not pair up/],
    ["matches", 'r.prefix == "0.0.0.0/0"', 'r.prefix.matches("^(a+)+$")', /let\.found: matches\(\) is banned \(it backtracks\): use text\.re2\("pattern"\)$/],
    ["re2 with a pattern from the node", 'r.prefix == "0.0.0.0/0"', "r.prefix.re2(r.prefix)", /let\.found: re2\(\) takes a literal pattern$/],
    ["re2 with a bad pattern", 'r.prefix == "0.0.0.0/0"', 'r.prefix.re2("(")', /let\.found: re2\(\): .*missing closing \)/],
    [
      "four loops in each other",
      "found.size() > 0",
      "found.all(a, found.all(b, found.all(c, found.all(d, true))))",
      /rule\.yaml:12:1: when: loops are nested deeper than 3$/,
    ],
    ["too much of it", "found.size() > 0", Array(300).fill("true").join(" && "), /rule\.yaml:12:1: when: Exceeded maxAstNodes/],
    ["too deep", "found.size() > 0", `${"(".repeat(60)}true${")".repeat(60)}`, /rule\.yaml:12:1: when: Exceeded max/],
    ["a way out of the sandbox", "found.size() > 0", 'found.constructor.constructor("return 1")() == 1', /rule\.yaml:12:1: when: /],
  ])("%s", (_, from, to, message) => expect(rule(from, to)).toMatch(message));

  test("three loops in each other are enough, and re2 with a literal is what matches was for", () => {
    const text = edited(RULE, "found.size() > 0", 'found.all(a, found.all(b, found.all(c, c.prefix.re2("^[0-9./]+$"))))');
    expect(loadCatalogue(runbooks({ "rules/some-rule/rule.yaml": text })).rules.size).toBe(1);
  });
});

describe("fix.yaml", () => {
  test.each<[string, string, string, RegExp]>([
    ["unknown key", "risk: low", "risks: low", /^fixes\/some-fix\/fix\.yaml:3:1: risks: Unrecognized key/],
    ["unknown parameter type", "type: interface", "type: string", /fix\.yaml:5:17: parameters\.interfaces\.type: Invalid option: /],
    [
      "a word that is half a parameter",
      "$interfaces]",
      "dev$interfaces]",
      /fix\.yaml:8:5: apply\.0: "dev\$interfaces" is not a parameter: a word is either constant or one \$parameter$/,
    ],
    ["an unknown parameter", "$interfaces]", "$nothing]", /fix\.yaml:8:5: apply\.0: "\$nothing" is not a parameter/],
    ["a list outside of each", "each: [interfaces], ", "", /fix\.yaml:8:5: apply\.0: "\$interfaces" is a list: name it in each$/],
    ["no way back and no word on it", "rollbackNote: It is gone.\n", "", /fix\.yaml.*: rollbackNote: a fix without rollback says why in rollbackNote$/],
    ["folder mismatch", "id: some-fix", "id: other-fix", /fix\.yaml:1:1: id: the folder is called "some-fix"/],
    ["no word on the verification", ", note: Nothing.", "", /fix\.yaml:11:1: verify\.note: it is missing \(string\)$/],
    ["settles too long", "settle: 1", "settle: 601", /fix\.yaml:11:11: verify\.settle: .*<=600$/],
    [
      "parameter of a wrong type",
      "found.map(r, r.interface)",
      "found",
      /^rules\/some-rule\/rule\.yaml:17:1: fix: parameter "interfaces" of some-fix must be list<string> or list<int>, but `found` is of type list<RouteRows/,
    ],
    ["parameter that does not compile", "found.map(r, r.interface)", "lost", /^rules\/some-rule\/rule\.yaml:17:1: fix: .*Unknown variable: lost/],
  ])("%s", (_, from, to, message) => expect(fix(from, to)).toMatch(message));
});

describe("runbook.yaml", () => {
  test.each<[string, string, string, RegExp]>([
    ["unknown rule", "rules: all", "rules: [some-rule, no-rule]", /^netcheck\/runbook\.yaml:3:20: rules\.1: there is no rule "no-rule"$/],
    ["unknown fact", "facts: [os, socket-lb]", "facts: [os, oss]", /^netcheck\/runbook\.yaml:4:13: facts\.1: there is no fact "oss"; facts are /],
    ["unknown key", "title: All", "titel: All", /^netcheck\/runbook\.yaml:2:1: titel: Unrecognized key/],
    ["rules of a wrong type", "rules: all", "rules: every", /^netcheck\/runbook\.yaml:3:1: rules: /],
    ["no limit", "budgetSeconds: 60", "budgetSeconds: 6000", /^netcheck\/runbook\.yaml:8:1: budgetSeconds: .*<=600$/],
    ["folder mismatch", "id: netcheck", "id: other", /^netcheck\/runbook\.yaml:1:1: id: the folder is called "netcheck"/],
  ])("%s", (_, from, to, message) => expect(runbook(from, to)).toMatch(message));

  test("there is no runbooks folder", () => {
    expect(() => loadCatalogue(join(scratch, "nowhere"))).toThrow(/nowhere\/fixes: could not list it: ENOENT/);
  });
});

describe("tolerant", () => {
  const loaded = (changes: Record<string, string>) => loadCatalogue(runbooks(changes), { tolerant: true });

  test("a broken rule costs only itself, and a diagnosis says that it was not checked", () => {
    const catalogue = loaded({
      "rules/broken-rule/rule.yaml": edited(RULE, "id: some-rule", "id: broken-rule").replace("when: found", "when: fuond"),
      "rules/broken-rule/README.md": README,
    });
    expect([...catalogue.rules.keys()]).toEqual(["some-rule"]);
    const diagnosis = diagnose(captureOf(), catalogue, "x", () => 0);
    expect(diagnosis.verdict).toBe("inconclusive");
    expect(diagnosis.unchecked.find(({ rule }) => rule === "broken-rule")?.reason).toMatch(
      /it could not be loaded: .*rule\.yaml:12:1: when: Unknown variable: fuond/,
    );
    // one of so many that there are
    expect(diagnosis.stats.rules).toBe(2);
  });

  test("a broken fix costs only the button", () => {
    const catalogue = loaded({ "fixes/some-fix/fix.yaml": edited(FIX, "risk: low", "risk: none") });
    expect([...catalogue.rules.keys()]).toEqual(["some-rule"]);
    const cause = diagnose(captureOf(output("ip route", "default via 10.0.0.1 dev eth0\n")), catalogue, "x", () => 0).causes[0];
    expect(cause?.fixProblem).toMatch(/its fix could not be loaded: .*fix\.yaml:3:1: risk/);
  });
});

describe("what is known already", () => {
  const text = (title: string) => edited(RULE, "A default route", title);
  const titled = (catalogue: Catalogue) => catalogue.rules.get("some-rule")?.file.title;

  test("is not read again; another text is, and so is what is wrong in it", () => {
    const root = runbooks({ "rules/some-rule/rule.yaml": text("First") });
    const known = nothingKnown();
    expect(titled(loadCatalogue(root, { known }))).toBe("First");
    expect([known.files.size, known.checked.size]).toEqual([3, 1]);
    const key = keyOf("rule", text("Second"));
    known.files.set(key, { ...(known.files.get(keyOf("rule", text("First"))) as object), title: "From memory" });
    writeFileSync(join(root, "rules/some-rule/rule.yaml"), text("Second"));
    expect(titled(loadCatalogue(root, { known }))).toBe("From memory");
    writeFileSync(join(root, "rules/some-rule/rule.yaml"), text("Third"));
    expect(titled(loadCatalogue(root, { known }))).toBe("Third");
    writeFileSync(join(root, "rules/some-rule/rule.yaml"), edited(text("Third"), "when: found", "when: fuond"));
    expect(() => loadCatalogue(root, { known })).toThrow(/rule\.yaml:12:1: when: Unknown variable: fuond/);
  });

  test("a checked rule is compiled when it is asked for; with another fix it is checked again", () => {
    const root = runbooks({ "rules/some-rule/rule.yaml": text("Lazy") });
    const known = nothingKnown();
    const [rule, repair] = [keyOf("rule", text("Lazy")), keyOf("fix", FIX)];
    loadCatalogue(runbooks({}), { known });
    known.files.set(rule, { ...(known.files.get(keyOf("rule", RULE)) as object), when: "fuond" });
    known.checked.add(`${rule} ${repair}`);
    const loaded = loadCatalogue(root, { known }).rules.get("some-rule");
    expect(loaded?.applies?.facts).toEqual(new Set(["link"]));
    expect(() => loaded?.when).toThrow("Unknown variable: fuond");
    writeFileSync(join(root, "fixes/some-fix/fix.yaml"), edited(FIX, "risk: low", "risk: disruptive"));
    expect(() => loadCatalogue(root, { known })).toThrow(/when: Unknown variable: fuond/);
  });
});

describe("README.md", () => {
  test.each(["Meaning", "Impact", "Diagnosis", "Mitigation"])("without the section %s, or with an empty one", (heading) => {
    const message = `rules/some-rule/README.md: the section "## ${heading}" is missing or empty`;
    const said = (text: string) => complaintOf({ "rules/some-rule/README.md": text });
    expect(said(edited(README, `## ${heading}\n`, `## Other\n`))).toBe(message);
    expect(said(edited(README, `## ${heading}\n\n${heading === "Mitigation" ? "Mi" : heading[0]}\n`, `## ${heading}\n`))).toBe(message);
  });

  test("it is not there", () => {
    expect(complaintOf({ "rules/other-rule/rule.yaml": edited(RULE, "id: some-rule", "id: other-rule") })).toMatch(
      /^rules\/other-rule\/README\.md: could not read it: ENOENT/,
    );
  });
});
