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
    [
      "Ansible's callback in JSON",
      JSON.stringify({
        plays: [
          {
            tasks: [
              { hosts: { n1: { results: [{ cmd: ["ip", "route"], stdout: ROUTE }] } } },
              { hosts: { n1: { cmd: "ip rule", stdout_lines: [RULE.trim()] } } },
            ],
          },
        ],
      }),
    ],
    [
      "what Ansible shows of an earlier task, whose name or text tells the command",
      `TASK [ip route] ***\nok: [n1] => {\n    "out.stdout_lines": [\n        "${ROUTE.trim()}"\n    ]\n}\n\nTASK [debug] ***\nok: [n1] => {\n    "out.stdout": ${JSON.stringify(RULE)}\n}\n`,
    ],
    ["a text of JSON", JSON.stringify(`# ip route\n${ROUTE}# ip rule\n${RULE}`)],
    ["the same without its quotes", JSON.stringify(`# ip route\n${ROUTE}# ip rule\n${RULE}`).slice(1, -1)],
    ["a log of it", JSON.stringify({ log: `# ip route\n${ROUTE}# ip rule\n${RULE}` })],
    ["bytes of Python", `>>> b'# ip route\\n${ROUTE.trim()}\\n# ip rule\\n${RULE.trim().replace("\t", "\\t")}\\n'`.slice(4)],
  ])("%s", (_, text) => expect(read(text)).toEqual(BOTH));

  test("what Ansible shows as a message, of a task or a loop that is named after the command; why a task failed is none", () => {
    const [routes, rules] = [`${ROUTE}10.0.0.0/24 dev eth0 scope link`, `${RULE}32766:\tfrom all lookup main`];
    const text = `TASK [ip route] ***\nok: [n1] => ${JSON.stringify({ msg: routes.split("\n") }, null, 4)}\n\nTASK [debug] ***\nok: [n1] => (item=ip rule) => ${JSON.stringify({ msg: rules }, null, 4)}\n\nTASK [ip neigh] ***\nfatal: [n1]: FAILED! => {"msg": "Timeout"}\n`;
    expect(read(text)).toEqual([
      ["ip route", routes],
      ["ip rule", rules],
    ]);
  });

  test("each output on a line of its own", () => {
    expect(read(`$ ip route\n"${ROUTE.trim()}\\n10.0.0.0/24 dev eth0 scope link\\n"\n$ ip rule\n${RULE.trim()}\n`)).toEqual([
      ["ip route", `${ROUTE.trim()}\n10.0.0.0/24 dev eth0 scope link`],
      ["ip rule", RULE.trim()],
    ]);
  });

  test("what somebody asks for with such a sign is no text", () => {
    const asked = `kubectl get nodes -o jsonpath='{range .items[*]}{.metadata.name}{"\\n"}{.spec.podCIDR}{"\\n"}{end}'`;
    expect(read(`$ ${asked}\nwk-1\n10.244.1.0/24\n`)).toEqual([[asked, "wk-1\n10.244.1.0/24"]]);
  });

  test("a command in a pod", () => {
    const asked = "kubectl exec cart-0 -- ss -ltn";
    expect(read(JSON.stringify([{ cmd: asked, stdout: "LISTEN 0 128 *:80 *:*\n" }]))).toEqual([[asked, "LISTEN 0 128 *:80 *:*"]]);
  });

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

describe("what people wrote in Slack", () => {
  const message = (text: string, ts: string) => ({ type: "message", user: "U02AB", text, ts });

  test("an export, the newest first, with the signs that it names", () =>
    expect(
      pastedCaptures(
        JSON.stringify([
          message("`ip -br link`\n```eth0 UP 02:00:00:00:00:01 &lt;BROADCAST,UP&gt;```", "1795403003.000100"),
          message(
            "here you go\n```root@n1:~# date -u\nMon Nov 23 03:45:44 UTC 2026\nroot@n1:~# ip route\ndefault via 10.0.0.1 dev eth0```",
            "1795403001.000100",
          ),
        ]),
        "slack.json",
        "x",
      ).map(({ target, startedAt, outputs }) => [target, startedAt, outputs.map(({ text }) => text.trim())]),
    ).toEqual([
      ["n1", "2026-11-23T03:45:44.000Z", ["Mon Nov 23 03:45:44 UTC 2026", "default via 10.0.0.1 dev eth0", "eth0 UP 02:00:00:00:00:01 <BROADCAST,UP>"]],
    ]));
});

test("the time of a collection is among its commands", () =>
  expect(
    pastedCaptures(
      JSON.stringify([
        { cmd: "date -u", stdout: "Mon Nov 23 03:45:44 UTC 2026\n" },
        { cmd: "ip route", stdout: ROUTE },
      ]),
      "x.json",
      "x",
    )[0]?.startedAt,
  ).toBe("2026-11-23T03:45:44.000Z"));
