import { describe, expect, test } from "vitest";
import { pastedCaptures } from "../../functions/imports/index.ts";

const ROUTE = "default via 10.0.0.1 dev eth0\n";
const RULE = "0:\tfrom all lookup local\n";
const read = (text: string): unknown[] =>
  pastedCaptures(text, "paste.txt", "x").flatMap(({ outputs }) => outputs.map((output) => [output.command, output.text.trim()]));
const BOTH = [
  ["ip route", ROUTE.trim()],
  ["ip rule", RULE.trim()],
];
const script = `=== ip route ===\n${ROUTE}\n=== ip rule ===\n${RULE}`;

describe("what a script printed, in an answer of JSON", () => {
  test.each([
    [
      "Systems Manager",
      JSON.stringify({ InstanceId: "i-0abc1234def567890", Status: "Success", StandardOutputContent: script, StandardErrorContent: "" }, null, 4),
    ],
    [
      "its list",
      JSON.stringify({ CommandInvocations: [{ InstanceId: "i-0abc1234def567890", CommandPlugins: [{ Name: "aws:runShellScript", Output: script }] }] }),
    ],
    ["Azure", JSON.stringify({ value: [{ code: "ProvisioningState/succeeded", message: `Enable succeeded: \n[stdout]\n${script}\n[stderr]\n` }] }, null, 2)],
    [
      "behind its command",
      `$ aws ssm get-command-invocation --command-id x --instance-id i-0abc\n${JSON.stringify({ StandardOutputContent: script }, null, 4)}\n$ exit\n`,
    ],
    ["lines of JSON", `${JSON.stringify({ cmd: "ip route", output: ROUTE })}\n${JSON.stringify({ cmd: "ip rule", output: RULE })}\n`],
    [
      "Ansible, over several lines",
      `TASK [x] ***\nchanged: [n1] => ${JSON.stringify({ cmd: "ip route", stdout: ROUTE }, null, 4)}\nchanged: [n1] => ${JSON.stringify({ cmd: "ip rule", stdout: RULE }, null, 4)}\n`,
    ],
    [
      "Ansible, in a loop",
      `changed: [n1] => (item=ip route) => ${JSON.stringify({ cmd: "ip route", stdout: ROUTE })}\nchanged: [n1] => (item=ip rule) => ${JSON.stringify({ cmd: "ip rule", stdout: RULE })}\n`,
    ],
  ])("%s", (_, text) => expect(read(text)).toEqual(BOTH));

  test("Azure's answer to one command", () => {
    const answer = JSON.stringify({ value: [{ code: "ProvisioningState/succeeded", message: `Enable succeeded: \n[stdout]\n${ROUTE}\n[stderr]\n` }] }, null, 2);
    expect(
      read(`$ az vmss run-command invoke -g rg -n p --instance-id 0 --command-id RunShellScript --scripts "ip route"\n${answer}\n`).map(
        (output) => (output as string[])[1],
      ),
    ).toEqual([ROUTE.trim()]);
  });

  test("an output in JSON between others is no such answer", () => {
    const text = `$ ip -j rule\n[{"priority":0,"src":"all","table":"local"}]\n$ crictl info\n{\n  "status": {\n    "message": "a\\nb"\n  }\n}\n$ ip route\n${ROUTE}`;
    expect(read(text).map((output) => (output as string[])[0])).toEqual(["ip -j rule", "crictl info", "ip route"]);
  });
});
