import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { readMemberSettings, readSettings } from "../../infra/settings.ts";

const example = fileURLToPath(new URL("../../infra/netcheck.example.yaml", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "netcheck-settings-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("settings of the main stack", () => {
  test("the example configuration is valid, and the rest has defaults", () => {
    const { config, ...rest } = readSettings({ config: example });
    expect("text" in config && config.text).toContain("prod-eu:");
    expect(rest).toEqual({
      stack: "netcheck",
      tag: { key: "netcheck", value: "enabled" },
      archiveDays: 400,
      logDays: 90,
      memberRoles: ["arn:aws:iam::444455556666:role/netcheck-member"],
      tokenSecrets: [],
      pagerSecrets: [],
      reserve: true,
    });
  });

  test("a value may hold an equals sign, a list may hold blanks, a configuration may be in a bucket", () => {
    expect(readSettings({ config: "s3://my-bucket/conf/netcheck.yaml", tag: "team=a" })).toMatchObject({
      config: { bucket: "my-bucket", key: "conf/netcheck.yaml" },
      tag: { key: "team", value: "a" },
    });
    const roles = "arn:aws:iam::111122223333:role/a, arn:aws:iam::444455556666:role/b";
    expect(readSettings({ config: "s3://my-bucket/netcheck.yaml", memberRoles: roles }).memberRoles).toHaveLength(2);
  });

  test("roles and secrets that the configuration names are allowed without being named twice", () => {
    const role = "arn:aws:iam::444455556666:role/netcheck-member";
    const file = join(folder, "clusters.yaml");
    writeFileSync(file, `clusters:\n  far: { transport: ssm, role: "${role}", externalId: netcheck-prod }\n`);
    const other = "arn:aws:iam::111122223333:role/a";
    expect(readSettings({ config: file, memberRoles: `${role},${other}` }).memberRoles).toEqual([other, role]);
  });

  test.each([
    [{ tag: "netcheck" }, /-c tag=…: key=value/],
    [{ tag: "*=*" }, /-c tag=…/],
    [{ archiveDays: "0" }, /-c archiveDays=…/],
    [{ logDays: "8" }, /-c logDays=…: one of 1, 3, 5/],
    [{ memberRoles: "netcheck" }, /-c memberRoles=…: ARNs of roles/],
    [{ memberRoles: "arn:aws:iam::111122223333:role/*" }, /-c memberRoles=…/],
    [{ alarmEmail: "me" }, /-c alarmEmail=…/],
    [{ reserve: "maybe" }, /-c reserve=…/],
    [{ stack: "net check" }, /-c stack=…/],
    [{ size: "large" }, /size/],
  ])("%j is refused, with the name of what is wrong", (given, message) => {
    expect(() => readSettings({ config: example, ...given })).toThrow(message);
  });

  test("two mistakes are told at once", () => {
    expect(() => readSettings({ config: example, tag: "x", logDays: "8" })).toThrow(/tag=….*logDays=…/);
  });

  test("a configuration that is missing, wrong or too long is refused, with what to do", () => {
    expect(() => readSettings({ config: join(folder, "none.yaml") })).toThrow(/could not read the configuration .*netcheck\.example\.yaml/);
    const wrong = join(folder, "wrong.yaml");
    writeFileSync(wrong, "clusters: {}\npolicies: []\n");
    expect(() => readSettings({ config: wrong })).toThrow(/wrong\.yaml is wrong: .*policies/s);
    const long = join(folder, "long.yaml");
    const targets = Array.from({ length: 500 }, (_, index) => `      node${index}: {}`).join("\n");
    writeFileSync(long, `clusters:\n  prod:\n    transport: ssm\n    targets:\n${targets}\n`);
    expect(() => readSettings({ config: long })).toThrow(/has \d+ bytes and a parameter holds 8192.*s3:\/\//);
  });
});

describe("settings of the member stack", () => {
  const hubRole = "arn:aws:iam::111122223333:role/netcheck-triage";

  test("only with -c hubRole, and then with a word", () => {
    expect(readMemberSettings({})).toBeUndefined();
    expect(readMemberSettings({ hubRole, externalId: "netcheck-prod" })).toMatchObject({
      stack: "netcheck",
      hubRole,
      externalId: "netcheck-prod",
      logDays: 90,
    });
    expect(() => readMemberSettings({ hubRole })).toThrow(/externalId/);
    expect(() => readMemberSettings({ hubRole: "*", externalId: "netcheck-prod" })).toThrow(/-c hubRole=…: the ARN of a role/);
    expect(() => readMemberSettings({ hubRole: "arn:aws:iam::111122223333:root", externalId: "netcheck-prod" })).toThrow(/hubRole/);
  });
});
