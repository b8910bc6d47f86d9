import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";

const header = "ID       AttachType      AttachFlags     Name\n";
const tree = `CgroupPath\n${header}/sys/fs/cgroup\n    1        connect4        multi           a\n/sys/fs/cgroup/x\n    2        connect4        multi           b\n`;

function read(outputs: Readonly<Record<string, string>>) {
  const commands = Object.keys(outputs);
  const index = { schema: "netcheck.capture/1" as const, target: { name: "n" }, outputs: commands.map((command, i) => ({ command, file: String(i) })) };
  const capture = captureOf(index, (file) => ({ text: outputs[commands[Number(file)] ?? ""] ?? "", truncated: false }));
  const reading = readFacts(capture, new Set(["bpf-cgroup"])).readings.get("bpf-cgroup");
  if (reading === undefined) throw new Error("not read");
  const rows = (reading.value as { rows: { cgroup: string; programId: number; effective: boolean }[] }).rows;
  return { complete: reading.complete, seen: rows.map((row) => `${row.cgroup} ${row.programId}${row.effective ? " effective" : ""}`) };
}

test("a whole tree is all there is, whatever else was shown", () => {
  const own = `${header}1        connect4        multi           a\n`;
  expect(read({ "bpftool cgroup show /sys/fs/cgroup": own, "bpftool cgroup tree": tree })).toEqual({
    complete: true,
    seen: ["/sys/fs/cgroup 1", "/sys/fs/cgroup/x 2"],
  });
});

test("cgroups shown one by one complement each other and are never the whole", () => {
  const outputs = {
    "bpftool cgroup show /a": `${header}1 connect4 multi a\n`,
    "bpftool -j cgroup show /b/": '[{"id":2,"attach_type":"connect4","attach_flags":"","name":"b"}]',
  };
  const { complete, seen } = read(outputs);
  expect(complete).toBe(false);
  expect(seen.toSorted()).toEqual(["/a 1", "/b 2"]);
});

test("the same cgroup in two formats is read once", () => {
  const json = '[{"id":1,"attach_type":"cgroup_inet4_connect","attach_flags":"multi","name":"a"}]';
  expect(read({ "bpftool cgroup show /a": `${header}1 connect4 multi a\n`, "bpftool -j cgroup show /a": json }).seen).toEqual(["/a 1"]);
});

test("what is in effect is kept apart and proves nothing about what is attached", () => {
  const effective = "ID       AttachType      Name\n1        connect4        a\n";
  expect(read({ "bpftool cgroup show /a/b effective": effective })).toEqual({ complete: false, seen: ["/a/b 1 effective"] });
  expect(read({ "bpftool cgroup tree": tree, "bpftool cgroup show /a/b effective": effective })).toEqual({
    complete: true,
    seen: ["/sys/fs/cgroup 1", "/sys/fs/cgroup/x 2", "/a/b 1 effective"],
  });
});
