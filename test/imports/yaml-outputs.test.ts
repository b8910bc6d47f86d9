import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";
import { outOfYaml } from "../../functions/imports/yaml-outputs.ts";

/** Of each output its command, and its lines with their numbers in the paste. */
const read = (text: string) => {
  const { outputs, others, target } = readTranscript(text, "paste.txt");
  return [...outputs, ...others.flatMap((other) => other.outputs)].map(({ command, text: printed }) => [
    target,
    command,
    ...printed.split("\n").flatMap((line, i) => (line.trim() === "" ? [] : [`${i + 1}: ${line}`])),
  ]);
};

describe("outputs in YAML", () => {
  test("a list of commands with what they printed, as lines keep their numbers", () => {
    const text = `node: wk-2
outputs:
  - command: ip route | grep -v "dev cali"
    rc: 0
    stdout: |
      default via 10.0.0.1 dev eth0
      10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.7
    stderr: |
      no
  - command: nobody-knows --it
    stdout: |
      ip rule
  - cmd: sysctl net.ipv4.ip_forward
    output: net.ipv4.ip_forward = 0
    rc: 0
`;
    expect(read(text)).toEqual([
      ["wk-2", 'ip route | grep -v "dev cali"', "6: default via 10.0.0.1 dev eth0", "7: 10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.7"],
      ["wk-2", "sysctl net.ipv4.ip_forward", "14: net.ipv4.ip_forward = 0"],
    ]);
  });

  test("commands as keys", () => {
    const text = `"iptables -S | grep 'x: y'": |-\n    -P FORWARD DROP\nip rule: |\n    0:\tfrom all lookup local\n\n    32766:\tfrom all lookup main\nnotes: |\n    ip route\n`;
    expect(read(text)).toEqual([
      [undefined, "iptables -S | grep 'x: y'", "2: -P FORWARD DROP"],
      [undefined, "ip rule", "4: 0:\tfrom all lookup local", "6: 32766:\tfrom all lookup main"],
    ]);
  });

  test("Ansible's answers of two hosts", () => {
    const answer = (host: string, forward: number): string => `changed: [${host}] => changed=true
  cmd:
  - sysctl
  - net.ipv4.ip_forward
  delta: '0:00:00.004'
  msg: ''
  rc: 0
  stderr: ''
  stderr_lines: <omitted>
  stdout: net.ipv4.ip_forward = ${forward}
  stdout_lines: <omitted>
`;
    const text = `PLAY [all] *****\n\nTASK [look] *****\n${answer("wk-1", 0)}${answer("wk-2", 1)}\nPLAY RECAP *****\nwk-1                       : ok=1    changed=1\n`;
    expect(read(text)).toEqual([
      ["wk-1", "sysctl net.ipv4.ip_forward", "13: net.ipv4.ip_forward = 0"],
      ["wk-1", "sysctl net.ipv4.ip_forward", "24: net.ipv4.ip_forward = 1"],
    ]);
  });

  test("Ansible's lists of lines", () => {
    const text = `TASK [rules] *****\nok: [wk-1] =>\n  cmd: ip rule\n  stdout_lines:\n  - "0:\\tfrom all lookup local"\n  - '32766: from all lookup main'\n\nTASK [end] *****\n`;
    expect(read(text)).toEqual([["wk-1", "ip rule", "5: 0:\tfrom all lookup local", "6: 32766: from all lookup main"]]);
  });

  test.each([
    [
      "a pod that runs such a command",
      "$ kubectl get pod x -o yaml\nspec:\n  containers:\n  - command:\n    - ip\n    - route\n    image: x\nstatus:\n  message: |\n    no\n",
    ],
    ["a description", "Containers:\n  main:\n    Command:\n      ip\n    Args:\n      route\n"],
    ["a log", "time: 10\nmsg: |\n  ip route: |\n"],
  ])("%s is none of them", (_, text) => expect(outOfYaml(text.split("\n"))).toEqual(text.split("\n")));
});
