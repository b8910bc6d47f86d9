import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { UsageError } from "../functions/cli/errors.ts";
import { register } from "../functions/cli/policy.ts";
import { type Ran, runCli } from "./run-cli.ts";

/** `netcheck policy test`, on what docs/policy.md shows. */

const root = fileURLToPath(new URL("../", import.meta.url));
const page = readFileSync(join(root, "docs/policy.md"), "utf8");
const block = (begins: string): string =>
  page
    .split("```yaml\n")
    .find((text) => text.startsWith(begins))
    ?.split("```")[0] ?? "";
const CONFIG = block("# netcheck.yaml");
const CASES = block("# cases.yaml");
const GROUPS = ["--group", "S0ONCALL=U0ANNA,U0BEN", "--group", "S0LEADS=", "--group", "S0CONTRACTORS="];
const ASK = ["--approver", "U0ANNA", "--requester", "U0BEN", "--fix", "enable-ip-forward", "--target", "prod-us/node1"];
const AT = ["--at", "2026-12-02T10:00+01:00"];

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-policy-"));
  writeFileSync(join(folder, "netcheck.yaml"), CONFIG);
  writeFileSync(join(folder, "cases.yaml"), CASES);
});
afterAll(() => rmSync(folder, { recursive: true }));

/** In this process: one of its own takes a second to start. */
async function policy(...args: string[]): Promise<Ran> {
  const ran = { code: 0, stdout: "", stderr: "" };
  const output = vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    ran.stdout += String(text);
    return true;
  });
  const netcheck = new Command();
  register(netcheck, {
    runbooks: join(root, "runbooks"),
    run:
      (action) =>
      async (...given) => {
        try {
          await action(...given);
        } catch (error) {
          ran.stderr = (error as Error).message;
          ran.code = error instanceof UsageError ? 2 : 1;
        }
      },
  });
  try {
    await netcheck.parseAsync(["policy", "test", "--config", join(folder, "netcheck.yaml"), ...args], { from: "user" });
  } finally {
    output.mockRestore();
  }
  if (process.exitCode !== undefined) ran.code = Number(process.exitCode);
  process.exitCode = undefined;
  return ran;
}

describe("netcheck policy test", () => {
  test("the page shows what is printed", async () => {
    const shown = /```\n\$ netcheck policy test (.*?\n.*?)\n(May .*?)```/s.exec(page);
    const args = (shown?.[1] ?? "").replace("\\\n", " ").trim().split(/\s+/);
    expect(await policy(...args)).toEqual({ code: 0, stdout: shown?.[2], stderr: "" });
  });

  test("as a command: the policy is where one stands, and the exit code says whether it was as expected", { timeout: 60_000 }, async () => {
    const [expected, not] = await Promise.all(
      ["allow", "deny"].map((answer) => runCli(["policy", "test", ...ASK, ...AT, ...GROUPS, "--expect", answer], folder)),
    );
    expect(expected).toMatchObject({ code: 0, stderr: "", stdout: expect.stringMatching(/^May U0ANNA approve/) });
    expect(not).toMatchObject({ code: 1, stderr: "", stdout: expect.stringMatching(/^NOT AS EXPECTED: expected deny/) });
  });

  test("the page's cases are as expected", async () => {
    const { code, stdout } = await policy("--cases", join(folder, "cases.yaml"));
    expect(stdout).toContain('ok      but by a lead: break-glass by statement "prod"\n');
    expect(stdout).toMatch(/\n7 of 7 cases as expected\n$/);
    expect(code).toBe(0);
  });

  test("allowed: how many, how long, within which limits; as JSON with every statement", async () => {
    const { code, stdout } = await policy(...ASK, ...AT, ...GROUPS, "--expect", "allow");
    const json = await policy(...ASK, ...AT, ...GROUPS, "--json");
    expect(code).toBe(0);
    expect(stdout).toContain(
      'Yes, by statement "prod": 2 people have to approve. The proposal expires after 120 minutes; the first reminder comes after 15.\n',
    );
    expect(stdout).toContain('It runs only within the limit: at most 3 nodes of prod-us within 1h (statement "prod").\n');
    expect(JSON.parse(json.stdout)).toMatchObject({
      schema: "netcheck.policy-test/1",
      answer: "allow",
      statement: "prod",
      risk: "low",
      at: "2026-12-02T09:00:00.000Z",
      approvalsNeeded: 2,
      limits: ['one fix at a time in prod-us (statement "prod")', 'at most 3 nodes of prod-us within 1h (statement "prod")'],
      statements: [{ says: "not-about-it" }, { says: "allows" }, { says: "does-not-name-you" }, { says: "not-about-it" }],
    });
  });

  test("not as expected: exit code 1, with the whole explanation", async () => {
    const cases = join(folder, "wrong.yaml");
    writeFileSync(cases, CASES.replace("expect: break-glass", "expect: allow").replace("statement: edge", "statement: prod"));
    const { code, stdout } = await policy("--cases", cases);
    const single = await policy(...ASK, ...AT, ...GROUPS, "--expect", "deny");
    expect(code).toBe(1);
    expect(stdout).toContain('NOT AS EXPECTED: but by a lead: expected allow, but it is break-glass by statement "prod"\n');
    expect(stdout).toContain('NOT AS EXPECTED: never on the edge: expected deny by prod, but it is deny by statement "edge"\n');
    expect(stdout).toContain("Only by breaking the glass");
    expect(stdout).toMatch(/\n5 of 7 cases as expected\n$/);
    expect(single.code).toBe(1);
    expect(single.stdout).toMatch(/^NOT AS EXPECTED: expected deny, but it is allow by statement "prod"\n/);
  });

  test("a group that is not told is not known", async () => {
    const { code, stdout } = await policy(...ASK, ...AT);
    expect(code).toBe(0);
    expect(stdout).toContain(
      '"contractors" may deny it to you, and that cannot be ruled out: the members of the user group S0CONTRACTORS could not be looked up',
    );
  });

  test("nobody could: says so", async () => {
    const { stdout } = await policy(...ASK, ...AT, ...GROUPS, "--target", "prod-us/edge1");
    expect(stdout).toContain('No. The person would be told: You cannot approve this: the policy statement "edge" denies it to you.\n');
    expect(stdout).toContain('Nobody could: there would be no button, because the policy statement "edge" forbids this fix here.\n');
  });

  test.each<[string, string[], number, string]>([
    ["no approver", ["--fix", "x", "--target", "y"], 2, "needs --approver"],
    ["a name", [...ASK, "--approver", "anna"], 2, "--approver takes the id of a user (U…), not anna"],
    ["a time without its zone", [...ASK, "--at", "2026-12-24T18:00"], 2, "--at takes a time with its zone"],
    ["a day that there is not", [...ASK, "--at", "2026-13-24T18:00Z"], 2, "--at takes a time with its zone"],
    ["a group that is none", [...ASK, "--group", "sre=U0BOB"], 2, "--group takes a group and its members"],
    ["an answer that there is not", [...ASK, "--expect", "yes"], 2, "--expect takes allow, break-glass, deny, not yes"],
    ["a fix that there is not", [...ASK, "--fix", "enable-ip-forwad"], 2, 'no fix "enable-ip-forwad"; the nearest is enable-ip-forward'],
    ["a node that there is not", [...ASK, "--target", "prod-us/node9"], 2, "no node of prod-us is named node9"],
    ["a node that may be in two", [...ASK, "--target", "node1", "--cluster", "none"], 2, "there is no cluster none; clusters are canary, prod-eu, prod-us"],
    ["cases and a question", ["--cases", "cases.yaml", ...ASK], 2, "leave out --approver"],
    ["a policy that is wrong", [...ASK, "--config", "package.json"], 1, "package.json:"],
    ["no policy", [...ASK, "--config", "none.yaml"], 1, "none.yaml: could not read it"],
  ])("%s", async (_, args, code, problem) => {
    const ran = await policy(...args);
    expect(ran.stderr).toContain(problem);
    expect(ran.code).toBe(code);
    expect(ran.stdout).toBe("");
  });
});
