import { expect, test } from "vitest";
import { type Capture, captureOf } from "../functions/facts/capture.ts";
import { isCalled, isNamedAlike, nodeNames, ofNeighbours } from "../functions/facts/node-name.ts";

/** The names of a node in a capture of these commands and outputs. */
function names(target: string, outputs: readonly (readonly [command: string, text: string])[]): string[] {
  const files = outputs.map(([command], i) => ({ command, file: String(i) }));
  return nodeNames(
    captureOf({ schema: "netcheck.capture/1", target: { name: target }, outputs: files }, (file) => ({
      text: outputs[Number(file)]?.[1] ?? "",
      truncated: false,
    })),
  );
}

test("a node is called as the capture, its own programs and the prompts before its commands say", () => {
  expect(names("case-17", [["hostname -f", "WK-1.example.org\n"]])).toEqual(["case-17", "wk-1.example.org"]);
  expect(names("case-17", [["uname -a", "Linux wk-2 6.1.0-18-amd64 #1 SMP x86_64 GNU/Linux\n"]])).toEqual(["case-17", "wk-2"]);
  expect(names("case-17", [["uname -n", "wk-2\n"]])).toEqual(["case-17", "wk-2"]);
  expect(names("case-17", [["cat /etc/hostname", "wk-2\n"]])).toEqual(["case-17", "wk-2"]);
  expect(names("case-17", [["hostnamectl", "   Static hostname: wk-3\n         Icon name: computer-vm\n"]])).toEqual(["case-17", "wk-3"]);
  expect(names("case-17", [["[root@wk-4 ~]# ip a", ""]])).toEqual(["case-17", "wk-4"]);
  expect(names("case-17", [["ip a", "root@wk-5:~# ip a\n1: lo: <LOOPBACK>\n"]])).toEqual(["case-17", "wk-5"]);
});

test("it is not called as where somebody asked about it, nor as a machine without a name", () => {
  expect(names("n1", [["root@cp-1:~# kubectl get node wk-1 -o yaml", ""]])).toEqual(["n1"]);
  expect(names("n1", [["kubectl exec web-0 -- hostname", "web-0\n"]])).toEqual(["n1"]);
  expect(names("n1", [["hostname -i", "192.0.2.7\n"]])).toEqual(["n1"]);
  expect(names("n1", [["hostname", "localhost\n"]])).toEqual(["n1"]);
  expect(names("n1", [["uname -r", "6.1.0-18-amd64\n"]])).toEqual(["n1"]);
});

test("a name is the same with and without its domain, and an address only as a whole", () => {
  expect(isCalled(["wk-1"], "WK-1.example.org")).toBe(true);
  expect(isCalled(["wk-1.example.org"], "wk-1")).toBe(true);
  expect(isCalled(["wk-1"], "wk-10")).toBe(false);
  expect(isCalled(["wk-1.example.org"], "wk-1.example.net")).toBe(false);
  expect(isCalled(["192.0.2.7"], "192.0.2.7")).toBe(true);
  expect(isCalled(["192"], "192.0.2.7")).toBe(false);
});

test("a pasted text has no name, unless it tells one", () => {
  const pasted = (text: string): string[] =>
    nodeNames(
      captureOf({ schema: "netcheck.capture/1", target: { name: "pasted" }, transport: "paste", outputs: [{ command: "ip a", file: "0" }] }, () => ({
        text,
        truncated: false,
      })),
    );
  expect(pasted("1: lo: <LOOPBACK>\n")).toEqual([]);
  expect(pasted("root@wk-5:~# ip a\n1: lo: <LOOPBACK>\n")).toEqual(["wk-5"]);
});

test("what somebody called the folder of pasted texts is a name of the node where the texts have it as well", () => {
  const pod = "cilium-jt5ws   0/1   CrashLoopBackOff   17 (2m ago)   21d   10.9.0.23   wk-3.example.org   <none>   <none>\n";
  const saved = (folder: string, marked: Pick<Capture, "unnamed"> = { unnamed: true }): string[] => {
    const outputs = [{ command: "kubectl get pods -o wide", file: "0" }];
    const capture = captureOf({ schema: "netcheck.capture/1", target: { name: folder }, transport: "paste", outputs }, () => ({ text: pod, truncated: false }));
    return nodeNames({ ...capture, ...marked });
  };
  expect(saved("wk-3")).toEqual(["wk-3"]);
  expect(saved("WK-3.example.org")).toEqual(["wk-3.example.org"]);
  expect(saved("dns-is-slow (2)")).toEqual([]);
  expect(saved("wk")).toEqual([]);
  // a prompt named it
  expect(saved("wk-7", {})).toEqual(["wk-7"]);
});

/** Which of these commands a capture of the node takes for a neighbour's. */
function neighbours(target: string, commands: readonly string[]): string[] {
  const files = commands.map((command, i) => ({ command, file: String(i) }));
  const capture = captureOf({ schema: "netcheck.capture/1", target: { name: target }, outputs: files }, (file) => ({
    text: commands[Number(file)]?.endsWith("hostname") === true ? "wk-2\n" : "",
    truncated: false,
  }));
  return [...ofNeighbours(capture)].map((index) => commands[index] as string);
}

test("what runs through ssh on a machine with another number is a neighbour's, beside the node's own outputs", () => {
  expect(neighbours("wk-1", ["ip addr", "ssh wk-2 'ip addr'"])).toEqual(["ssh wk-2 'ip addr'"]);
  expect(neighbours("wk-1", ["ip addr", "sudo ssh -o BatchMode=yes -i key root@wk-2.example.org -- sudo ip addr"])).toHaveLength(1);
  expect(neighbours("wk-1", ["ssh wk-1 'ip addr'", "ssh wk-2 hostname", "ssh wk-2 'ip addr'"])).toEqual(["ssh wk-2 hostname", "ssh wk-2 'ip addr'"]);
});

test("the node may go by another name where all was asked through ssh, and what tells of the network tells it from anywhere", () => {
  expect(neighbours("wk-1", ["kubectl get nodes", "ssh wk-2 'ip addr'"])).toEqual([]);
  expect(neighbours("wk-1", ["ip addr", "ssh bastion 'ip addr'", "ssh 192.0.2.7 'ip addr'"])).toEqual([]);
  expect(neighbours("wk-1", ["ip addr", "ssh wk-01 'ip addr'"])).toEqual([]);
  expect(neighbours("192.0.2.1", ["ip addr", "ssh 192.0.2.7 'ip addr'"])).toEqual([]);
  expect(neighbours("wk-1", ["ip addr", "ssh wk-2 arping -c 2 192.0.2.7", "ssh wk-2 'sudo kubectl get nodes'"])).toEqual([]);
});

test("a debug pod on a machine with another number is a neighbour's, one on this node or beside nothing else is not", () => {
  const debug = "kubectl debug node/wk-2 -q -it --image=busybox -- chroot /host ip addr";
  expect(neighbours("wk-1", ["ip addr", debug, "oc debug node/wk-3 -- sysctl -a"])).toEqual([debug, "oc debug node/wk-3 -- sysctl -a"]);
  expect(neighbours("wk-1", ["ip addr", debug.replace("wk-2", "wk-1"), "oc debug node/bastion -- sysctl -a"])).toEqual([]);
  expect(neighbours("wk-1", ["kubectl get nodes", debug])).toEqual([]);
});

test("an address is a neighbour's only where a list of nodes has it for another one, and this node too", () => {
  const rows = [
    "wk-1   Ready    <none>   9d   v1.31.4   192.0.2.1   <none>   Debian 12",
    "db     Ready    <none>   9d   v1.31.4   192.0.2.7   <none>   Debian 12",
  ];
  const through = (target: string): readonly number[] => {
    const commands = ["ip addr", "ssh admin@192.0.2.7 ip addr", "ssh admin@192.0.2.1 ip addr", "kubectl get nodes -o wide"];
    const files = commands.map((command, i) => ({ command, file: String(i) }));
    const capture = captureOf({ schema: "netcheck.capture/1", target: { name: target }, outputs: files }, (file) => ({
      text: file === "3" ? `${rows.join("\n")}\n` : "",
      truncated: false,
    }));
    return [...ofNeighbours(capture)];
  };
  expect(through("wk-1")).toEqual([1]);
  expect(through("node1")).toEqual([]);
});

test.each([
  ["wk-a", "wk-b", true],
  ["rack2b-sw", "rack2c-sw", true],
  ["ip-10-0-1-7", "ip-10-0-2-19", true],
  ["wk-a", "wk-a", false],
  ["wk-a", "db-b", false],
  ["alpha", "gamma", false],
])("%s and %s are two machines of one pattern: %s", (own, other, alike) => {
  expect(isNamedAlike([own], other)).toBe(alike);
});
