import { describe, expect, test } from "vitest";
import { readTranscript } from "../../functions/imports/transcript.ts";

const commandsOf = (...lines: string[]): string[] => readTranscript(`${lines.join("\n")}\n`, "paste.txt").outputs.map(({ command }) => command);
const RULES = "0: from all lookup local\n32766: from all lookup main\n32767: from all lookup default";
const RULES_FILE = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD DROP [0:0]", ":OUTPUT ACCEPT [0:0]", "COMMIT"];
const NFTABLES_FILE = ["table inet filter {", "	chain forward {", "		type filter hook forward priority filter; policy drop;", "	}", "}"];

describe("a file of settings is no listing of what is set", () => {
  test.each([
    ["cat", ["# cat /etc/sysctl.d/60-cis.conf", "net.ipv4.ip_forward = 0"]],
    ["head of several", ["# head -5 /etc/sysctl.d/*.conf", "==> /etc/sysctl.d/10-cis.conf <==", "net.ipv4.ip_forward = 0"]],
    ["in the folder of the shell", ["$ cat sysctl.conf", "net.ipv4.ip_forward = 0"]],
    ["what a file is made of", ["$ cat <<EOF > 60-cis.conf", "net.ipv4.ip_forward = 0", "EOF"]],
    ["vendor's", ["# cat /usr/lib/sysctl.d/50-default.conf", "net.ipv4.conf.all.rp_filter = 1"]],
    ["saved rules", ["# cat /etc/iptables/rules.v4", ...RULES_FILE]],
    ["saved rules, Red Hat", ["# cat /etc/sysconfig/iptables", ...RULES_FILE]],
    ["kept of another time", ["# cat /root/iptables.before-upgrade", ...RULES_FILE]],
    ["kept in a folder of one's own", ["$ head -9 ~/backup/fw.txt", ...RULES_FILE]],
    ["nftables", ["# cat /etc/nftables.conf", ...NFTABLES_FILE]],
    ["a path and a colon", ["/etc/sysctl.d/60-cis.conf:", "net.ipv4.ip_forward = 0", ""]],
    ["a heading", ["=== /etc/sysctl.conf ===", "net.ipv4.ip_forward = 0", "=== ip rule ===", RULES, "=== uname -r ===", "6.1.0"]],
    ["a heading, kept of another time", ["=== cat /root/iptables.old ===", ...RULES_FILE, "=== ip rule ===", RULES, "=== uname -r ===", "6.1.0"]],
    ["a sentence above a block, kept of another time", ["Output of `cat /root/iptables.before-upgrade`:", "```", ...RULES_FILE, "```"]],
    ["a sentence above a block", ["The file `/etc/sysctl.conf` has:", "```", "net.ipv4.ip_forward = 0", "```"]],
    ["a sentence above a block of rules", ["and this is /etc/sysconfig/iptables:", "```", ...RULES_FILE, "```"]],
  ])("%s", (_, lines) => {
    const commands = commandsOf(...lines, "# ip rule", RULES);
    expect(commands).toContain("ip rule");
    expect(commands.filter((command) => /^(?:sysctl|iptables|nft)/.test(command))).toEqual([]);
  });

  test.each([
    ["the command behind it", ["# cat /etc/sysctl.conf", "net.ipv4.ip_forward = 1", "# sysctl -a", "net.ipv4.ip_forward = 0"], "sysctl -a"],
    ["a file of one's own", ["# cat rules.txt", ...RULES_FILE], "iptables-save"],
    ["one of a pair", ["# cat rules.before", ...RULES_FILE], "iptables-save"],
    ["a sentence with the file and the command", ["I set it in /etc/sysctl.conf, but `sysctl -a` says", "```", "net.ipv4.ip_forward = 0", "```"], "sysctl -a"],
    ["a sentence with another file", ["/etc/hosts is fine.", "```", ...RULES_FILE, "```"], "iptables-save"],
  ])("but %s is", (_, lines, command) => {
    expect(commandsOf(...lines)).toContain(command);
  });
});
