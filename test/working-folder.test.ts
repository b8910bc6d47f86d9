import { expect, test } from "vitest";
import { commandsOf } from "../functions/facts/command-list.ts";
import { folderAfter, inFolder } from "../functions/facts/working-folder.ts";
import { pastedCaptures } from "../functions/imports/index.ts";

test.each([
  ["cat 10-flannel.conflist", "cat /etc/cni/net.d/10-flannel.conflist"],
  ["sudo head -n 5 a.conf ./b.conf", "sudo head -n 5 /etc/cni/net.d/a.conf /etc/cni/net.d/b.conf"],
  ["ls -la", "ls -la /etc/cni/net.d"],
  ["ls -l *.conf | head -3", "ls -l /etc/cni/net.d/*.conf | head -3"],
  ["grep -r type", "grep -r type /etc/cni/net.d"],
  ["jq .name 10-flannel.conflist 2>/dev/null", "jq .name /etc/cni/net.d/10-flannel.conflist 2>/dev/null"],
  ["cat /run/flannel/subnet.env", "cat /run/flannel/subnet.env"],
  ["ip route show table main", "ip route show table main"],
])("%s", (command, whole) => expect(inFolder(command, "/etc/cni/net.d")).toBe(whole));

test("a folder is followed as far as it is known", () => {
  expect(folderAfter("cd /etc/cni/", undefined)).toBe("/etc/cni");
  expect(folderAfter("cd net.d", "/etc/cni")).toBe("/etc/cni/net.d");
  expect(folderAfter("cd ../..", "/etc/cni/net.d")).toBe("/etc");
  expect(folderAfter("ls", "/etc")).toBe("/etc");
  for (const lost of ["cd", "cd -", "cd ~/x", "cd $DIR"]) expect(folderAfter(lost, "/etc")).toBeUndefined();
  expect(folderAfter("cd net.d", undefined)).toBeUndefined();
});

test("several commands of a line are told with the folder", () => {
  expect(commandsOf("cd /etc/cni/net.d && ls; cat *.conflist")).toEqual(["ls /etc/cni/net.d", "cat /etc/cni/net.d/*.conflist"]);
  expect(commandsOf("cd /tmp; ip route; ip rule")).toEqual(["cd /tmp", "ip route", "ip rule"]);
});

test("a prompt or an earlier cd tells where a file is", () => {
  const told = (text: string): string[] => pastedCaptures(text, "paste.txt", "paste")[0].outputs.map(({ command }) => command);
  expect(told("root@wk1:/etc/cni/net.d# cat 10-flannel.conflist\n{}\nroot@wk1:/etc/cni/net.d# ip rule\n0:\tfrom all lookup local\n")).toEqual([
    "cd /etc/cni/net.d && cat 10-flannel.conflist",
    "ip rule",
  ]);
  expect(told("[root@wk1 ~]# cd /etc/cni/net.d\n[root@wk1 net.d]# ls\n10-flannel.conflist\n[root@wk1 net.d]# cd\n[root@wk1 ~]# ls\nnotes\n")).toEqual([
    "cd /etc/cni/net.d && ls",
    "ls",
  ]);
});
