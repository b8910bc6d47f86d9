import { expect, test } from "vitest";
import { commandLine } from "../../functions/facts/command.ts";
import { withoutHostPrefix } from "../../functions/imports/host-prefix.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";

test("pdsh and clush run what stands behind their options", () => {
  expect(commandLine("pdsh -w node7 'ip route'").argv).toEqual(["ip", "route"]);
  expect(commandLine("pdsh -R ssh -l root -w node[1-9] ip -d link").argv).toEqual(["ip", "-d", "link"]);
  expect(commandLine("clush -w node7 -l root sysctl net.ipv4.ip_forward").argv).toEqual(["sysctl", "net.ipv4.ip_forward"]);
  expect(commandLine("pdsh -w node7").argv).toEqual(["pdsh", "-w", "node7"]);
});

test("the name in front of each line is taken off, and lines keep their numbers", () => {
  const text = "\nnode7: default via 192.0.2.1 dev eth0\nnode7: 192.0.2.0/24 dev eth0 proto kernel\nnode7:\n";
  expect(withoutHostPrefix("pdsh -w node7 'ip route'", text)).toBe("\ndefault via 192.0.2.1 dev eth0\n192.0.2.0/24 dev eth0 proto kernel\n\n");
});

test("the answers of several machines, and outputs of other commands, stay as they are", () => {
  const two = "node7: net.ipv4.ip_forward = 1\nnode8: net.ipv4.ip_forward = 0\n";
  expect(withoutHostPrefix("pdsh -w node[7-8] sysctl net.ipv4.ip_forward", two)).toBe(two);
  const log = "TCP: out of memory -- consider tuning tcp_mem\n";
  expect(withoutHostPrefix("dmesg", log)).toBe(log);
  const unnamed = "node7: net.ipv4.ip_forward = 1\nconnection closed\n";
  expect(withoutHostPrefix("pdsh -w node7 sysctl net.ipv4.ip_forward", unnamed)).toBe(unnamed);
});

test("a pasted session of pdsh is read as one on the machine itself", () => {
  const capture = pastedCaptures("[root@admin ~]# pdsh -w node7 'sysctl net.ipv4.ip_forward'\nnode7: net.ipv4.ip_forward = 0\n", "paste.txt", "paste.txt")[0];
  expect(capture.outputs.map(({ text }) => text.trim())).toEqual(["net.ipv4.ip_forward = 0"]);
});

test("Azure's run-command: what the script wrote to standard output", () => {
  const az = `az vmss run-command invoke -g rg -n pool1-vmss --instance-id 3 --command-id RunShellScript --scripts 'sysctl net.ipv4.ip_forward' --query 'value[0].message' -o tsv`;
  const kubectl = 'kubectl aks run-command "sysctl net.ipv4.ip_forward" --node aks-pool1-vmss000003';
  for (const command of [az, kubectl]) {
    expect(commandLine(command).argv).toEqual(["sysctl", "net.ipv4.ip_forward"]);
    const text = "Enable succeeded: \n[stdout]\nnet.ipv4.ip_forward = 0\n\n[stderr]\nsysctl: setting key\n";
    const capture = pastedCaptures(`$ ${command}\n${text}`, "paste.txt", "paste.txt")[0];
    expect(capture.outputs.map((output) => output.text.trim())).toEqual(["net.ipv4.ip_forward = 0"]);
    expect(withoutHostPrefix(command, text).split("\n").indexOf("net.ipv4.ip_forward = 0")).toBe(2);
    // asked for in another form
    expect(withoutHostPrefix(command, "net.ipv4.ip_forward = 0\n")).toBe("net.ipv4.ip_forward = 0\n");
  }
  expect(commandLine("az vmss list -g rg").argv[0]).toBe("az");
});
