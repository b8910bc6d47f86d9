import { expect, test } from "vitest";
import { SavedFiles } from "../../functions/imports/saved-files.ts";
import { expectLinear } from "../cpu-time.ts";

/** What the last of these command lines means behind the ones before it. */
function meaning(...commands: readonly string[]): string | undefined {
  const saved = new SavedFiles();
  for (const command of commands.slice(0, -1)) saved.note(command);
  return saved.asPipe(commands.at(-1) ?? "");
}

test.each([
  ["ss -tanp > /tmp/socks", "grep -c CLOSE-WAIT /tmp/socks", "ss -tanp | grep -c CLOSE-WAIT"],
  ["sudo netstat -np | grep proxy > out", "grep 'CLOSE_WAIT' out | wc -l", "sudo netstat -np | grep proxy | grep 'CLOSE_WAIT' | wc -l"],
  ["iptables-save 2>/dev/null | tee rules.now", "sudo sort rules.now | uniq -c", "iptables-save | sort | uniq -c"],
  ["dmesg -T >d.log 2>&1", "tail -n 3 d.log", "dmesg -T | tail -n 3"],
  ["ip route >r", "cat r", "ip route"],
  ["conntrack -L > ct", "wc -l < ct", "conntrack -L | wc -l"],
  ["conntrack -L > ct", `grep -E "dport=53|dport=80" ct | head -2`, `conntrack -L | grep -E "dport=53|dport=80" | head -2`],
])("%s, then %s", (kept, looks, expected) => {
  expect(meaning(kept, looks)).toBe(expected);
});

test("of two files of one command one may show how it was before", () => {
  expect(meaning("iptables-save > a", "systemctl restart kubelet", "iptables-save > b", "grep -c KUBE a")).toBeUndefined();
  expect(meaning("iptables-save > a", "iptables-save > b", "grep -c KUBE b")).toBeUndefined();
});

test.each([
  ["what was in the file stays", "ip route >> r", "cat r"],
  ["two files are no output", "ip route > r", "cat r s"],
  ["nor is a search in two files", "ip route > r", "grep via s r"],
  ["another file", "ip route > /tmp/r", "cat r"],
  ["to edit it shows nothing", "iptables-save > r", "sed -i s/DROP/ACCEPT/ r"],
  ["what is read back", "iptables-save > r", "iptables-restore < r"],
])("%s", (_why, kept, looks) => {
  expect(meaning(kept, looks)).toBeUndefined();
});

test("an edited file is no output any more", () => {
  expect(meaning("iptables-save > r", "sudo vi r", "grep -c KUBE r")).toBeUndefined();
});

test("files are of the machine that they were written on", () => {
  const saved = new SavedFiles();
  saved.note("ip route > r", "n1");
  expect(saved.asPipe("cat r", "n2")).toBeUndefined();
  expect(saved.asPipe("cat r", "n1")).toBe("ip route");
});

test("many files take time in proportion", () => {
  expectLinear(
    (times) => Array.from({ length: times }, (_, i) => [`ip route show table ${i} > r${i}`, `grep -c via r${i}`, `sudo vi r${i}`]).flat(),
    (commands) => {
      const saved = new SavedFiles();
      for (const command of commands) {
        saved.asPipe(command);
        saved.note(command);
      }
    },
    3000,
  );
});
