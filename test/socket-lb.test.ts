import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { bpfMapDump } from "../functions/facts/bpf-map-dump.ts";
import { CaptureIndex, captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";
import { socketLb } from "../functions/facts/socket-lb.ts";

/**
 * test/facts/socket-lb holds whole captures of the live lab: s3 (legacy attach) and s3link (bpf_link) healthy, at fault and fixed, with every
 * format of bpftool, and "runbook-…" with just what the runbook collects. The stale map sends 172.17.93.4:8080 to 172.16.149.220, which is gone.
 */
const root = new URL("facts/socket-lb/", import.meta.url);

type Keep = (command: string) => boolean;
interface Extra {
  command: string;
  text: string;
}

/** The reading of a capture of which only some outputs are kept, and to which some are added. */
function read(name: string, keep: Keep = () => true, extra: readonly Extra[] = []) {
  const index = CaptureIndex.parse(JSON.parse(readFileSync(new URL(`${name}/capture.json`, root), "utf8")));
  const added = extra.map(({ command }, i) => ({ command, file: `extra${i}` }));
  const outputs = [...index.outputs.filter(({ command }) => keep(command as string)), ...added];
  const capture = captureOf({ ...index, outputs }, (file) => ({
    text: file.startsWith("extra") ? (extra[Number(file.slice(5))]?.text ?? "") : readFileSync(new URL(`${name}/${file}`, root), "utf8"),
    truncated: false,
  }));
  const reading = readFacts(capture, new Set(["socket-lb"])).readings.get("socket-lb");
  if (reading?.status !== "read") throw new Error(reading?.reason ?? "not read");
  return { ...socketLb.schema.parse(reading.value), reading };
}

const plain: Keep = (command) => !/ -j| --json/.test(command);
const without =
  (...parts: string[]): Keep =>
  (command) =>
    !parts.some((part) => command.includes(part));
/** No output tells which map is pinned where the agent writes. */
const unpinned: Keep = (command) => !command.includes("pinned") && !command.includes("-f");

describe("captures of the lab", () => {
  test.each(["s3-healthy", "s3-fixed", "s3link-fixed"])("%s: one program, nothing contradicts it", (name) => {
    const { programs, conflicts, duplicates, mapPairs } = read(name);
    expect(programs).toMatchObject([{ position: 1, first: true, servicesMapId: 43, servicesMapPinned: true }]);
    expect({ conflicts, duplicates, mapPairs }).toEqual({ conflicts: [], duplicates: [], mapPairs: [] });
  });

  test.each([
    ["s3-fault", { staleProgramId: 149, staleMapId: 41, staleBackendsMapId: 42, currentProgramId: 160, currentMapId: 43, currentBackendsMapId: 44 }],
    ["s3link-fault", { staleProgramId: 171, staleMapId: 45, staleLinkId: 91, currentProgramId: 160, currentMapId: 43 }],
    ["runbook-fault", { staleProgramId: 107, staleMapId: 25, currentProgramId: 118, currentMapId: 27 }],
    ["runbook-link", { staleProgramId: 129, staleMapId: 29, staleLinkId: 89, currentProgramId: 118, currentMapId: 27 }],
  ])("%s: names the stale program, its map, the service and both backends", (name, expected) => {
    const { conflicts, duplicates, reading } = read(name);
    expect(reading.complete).toBe(true);
    const service = { service: "172.17.93.4:8080/tcp", staleBackends: ["172.16.149.220:8080"], currentBackends: ["172.16.109.127:8080"] };
    const place = { cgroup: "/sys/fs/cgroup/unified/lab-s3", attachType: "cgroup_inet4_connect", staleAttachName: "connect4", basis: "pin" };
    expect(conflicts).toHaveLength(1);
    expect(conflicts[0]).toMatchObject({ ...expected, ...service, ...place });
    expect(duplicates).toHaveLength(1);
    expect(duplicates[0]).toMatchObject({ ...place, staleProgramId: expected.staleProgramId, staleRunsFirst: true });
    expect("staleLinkId" in (conflicts[0] ?? {})).toBe("staleLinkId" in expected);
  });

  test("text formats say the same as JSON", () => {
    const strip = ({ conflicts, duplicates }: ReturnType<typeof read>) =>
      [...conflicts, ...duplicates].map((row) => ({ ...row, line: 0, currentProgramLine: 0, staleLine: 0, currentLine: 0, staleOutput: 0, currentOutput: 0 }));
    for (const name of ["s3-fault", "s3link-fault"]) expect(strip(read(name, plain))).toEqual(strip(read(name)));
    // Line 4 of `bpftool cgroup tree` is the stale program; line 1 of `map dump id 41` its service.
    expect(read("s3-fault", plain).conflicts).toMatchObject([{ line: 4, currentProgramLine: 5, staleLine: 1, currentLine: 1 }]);
  });
});

describe("what is missing is not guessed", () => {
  test("without dumps there is a duplicate and no conflict", () => {
    const { services, conflicts, duplicates } = read("runbook-fault", without("map dump"));
    expect([services, conflicts]).toEqual([[], []]);
    expect(duplicates).toMatchObject([{ staleProgramId: 107, staleMapId: 25, basis: "pin" }]);
  });

  test("without pins the older map is the stale one if its program runs first", () => {
    expect(read("s3-fault", unpinned).conflicts).toMatchObject([{ staleProgramId: 149, basis: "age" }]);
  });

  test("without pins nothing is decided where the newer map's program runs first", () => {
    const { conflicts, duplicates, mapPairs } = read("s3link-fault", unpinned);
    expect([conflicts, duplicates]).toEqual([[], []]);
    expect(mapPairs).toMatchObject([
      { olderMapId: 43, newerMapId: 45, olderProgramIds: [160], newerProgramIds: [171], basis: "age", differing: ["172.17.93.4:8080/tcp"] },
    ]);
  });

  test("without backends of one map its backends are unknown, and the maps are not said to differ", () => {
    const { services, conflicts, duplicates } = read("runbook-fault", without("map dump id 26"));
    expect(services).toMatchObject([
      { mapId: 25, backends: ["unknown backend 466"] },
      { mapId: 27, backends: ["172.16.109.127:8080"] },
    ]);
    expect([conflicts.length, duplicates.length]).toEqual([0, 1]);
  });

  test("a backend that is not in its map is missing", () => {
    const empty = [{ command: "bpftool -j map dump id 26", text: "[]" }];
    const { services, conflicts } = read("runbook-fault", without("map dump id 26"), empty);
    expect(services[0]).toMatchObject({ mapId: 25, backends: ["missing backend 466"] });
    expect(conflicts).toMatchObject([{ staleBackends: ["missing backend 466"], currentBackends: ["172.16.109.127:8080"] }]);
  });

  test("without attach points two services maps in use are a pair", () => {
    const { programs, conflicts, duplicates, mapPairs } = read("s3-fault", without("cgroup", "link"));
    expect([programs, conflicts, duplicates]).toEqual([[], [], []]);
    expect(mapPairs).toMatchObject([
      { olderMapId: 41, newerMapId: 43, olderProgramIds: [149], newerProgramIds: [160], basis: "pin", differing: ["172.17.93.4:8080/tcp"] },
    ]);
  });

  test("a map that no program of a cgroup uses makes no pair", () => {
    expect(read("s3-fixed", without("cgroup", "link")).mapPairs).toEqual([]);
  });

  test("the listing of what is in effect serves where nothing else was captured", () => {
    const effective: Keep = (command) => !command.includes("cgroup") || command.endsWith("effective");
    expect(read("s3-fault", effective).conflicts).toMatchObject([{ staleProgramId: 149, cgroup: "/sys/fs/cgroup/unified/lab-s3" }]);
    // Beside the tree it must not count a program twice.
    expect(read("s3-fault").programs).toHaveLength(2);
  });
});

describe("other orders, places and families", () => {
  const tree = (text: string): Extra => ({ command: "bpftool cgroup tree", text: `CgroupPath\nID       AttachType      AttachFlags     Name\n${text}` });
  const maps = without("cgroup");

  test("a stale program that runs second does no harm", () => {
    const { conflicts, duplicates } = read("s3-fault", maps, [
      tree("/sys/fs/cgroup\n    160      connect4        multi           x\n    149      connect4        multi           x\n"),
    ]);
    expect(conflicts).toEqual([]);
    expect(duplicates).toMatchObject([{ staleProgramId: 149, staleRunsFirst: false, basis: "pin" }]);
  });

  test("a stale program on a cgroup below runs before the one at the root", () => {
    const text = "/sys/fs/cgroup\n    160      connect4        multi           x\n/sys/fs/cgroup/kubepods\n    149      connect4        multi           x\n";
    expect(read("s3-fault", maps, [tree(text)]).conflicts).toMatchObject([
      { cgroup: "/sys/fs/cgroup/kubepods", currentCgroup: "/sys/fs/cgroup", line: 6, currentProgramLine: 4, attachType: "cgroup_inet4_connect" },
    ]);
  });

  test("programs on cgroups beside each other do not meet", () => {
    const text = "/sys/fs/cgroup/a\n    160      connect4        multi           x\n/sys/fs/cgroup/ab\n    149      connect4        multi           x\n";
    const { conflicts, duplicates } = read("s3-fault", maps, [tree(text)]);
    expect([conflicts, duplicates]).toEqual([[], []]);
  });

  test("attach points that translate nothing make duplicates only", () => {
    const both = (type: string) => `    149      ${type}        multi           x\n    160      ${type}        multi           x\n`;
    const { conflicts, duplicates } = read("s3-fault", maps, [tree(`/sys/fs/cgroup\n${both("connect4")}${both("sendmsg4")}${both("recvmsg4")}`)]);
    expect(conflicts.map(({ attachType }) => attachType)).toEqual(["cgroup_inet4_connect", "cgroup_udp4_sendmsg"]);
    expect(duplicates.map(({ staleAttachName }) => staleAttachName)).toEqual(["connect4", "sendmsg4", "recvmsg4"]);
  });

  test("IPv6 services, several slots, the internal scope, and slots beyond the count", () => {
    const service = "20010db8000000000000000000000001";
    const key = (slot: number, scope: string) => `${service}01bb0${slot}0006${scope}0000`;
    const hex = (digits: string) => (digits.match(/../g) ?? []).join(" ");
    const element = (keyDigits: string, value: string) => `key:\n${hex(keyDigits)}\nvalue:\n${hex(value)}\n`;
    const dump = (rows: string[]) => `${rows.join("")}Found ${rows.length} elements\n`;
    const backend = (last: string) => `fd0000000000000000000000000000${last}20fb0600000000000000`.slice(0, 48);
    const { services } = read("s3-healthy", () => false, [
      {
        command: "bpftool prog",
        text: "7: cgroup_sock_addr  name cil_sock6_connect  tag 4235b97c26c0c2b7  gpl\n\txlated 1B  not jited  memlock 1B  map_ids 5,6\n",
      },
      { command: "bpftool map", text: "5: hash  name cilium_lb6_serv  flags 0x1\n6: hash  name cilium_lb6_back  flags 0x1\n" },
      {
        command: "bpftool map dump id 5",
        text: dump([
          element(key(2, "01"), "020000000000000000000000"),
          element(key(1, "01"), "010000000000000000000000"),
          element(key(0, "01"), "000000000200000000000000"),
          element(key(3, "01"), "090000000000000000000000"),
        ]),
      },
      { command: "bpftool map dump id 6", text: dump([element("01000000", backend("0a")), element("02000000", backend("0b"))]) },
    ]);
    expect(services).toEqual([
      { line: 5, mapId: 5, address: "2001:db8::1", port: 443, protocol: "tcp", scope: 1, slots: 2, backends: ["[fd00::a]:8443", "[fd00::b]:8443"] },
    ]);
  });

  test("a service that a LocalRedirect policy sends elsewhere, by the flag of its frontend", () => {
    const key = (slot: number) => `0a60 000a 0035 0${slot}00 11 00 0000`.replaceAll(" ", "");
    const element = (keyDigits: string, value: string) => `key: ${(keyDigits.match(/../g) ?? []).join(" ")}  value: ${(value.match(/../g) ?? []).join(" ")}\n`;
    const of = (flags: string) =>
      read("s3-healthy", () => false, [
        {
          command: "bpftool map dump pinned /sys/fs/bpf/tc/globals/cilium_lb4_services_v2",
          text: `${element(key(0), `0000000001000100${flags}0000`)}${element(key(1), "010000000000010000000000")}Found 2 elements\n`,
        },
      ]).services;
    expect(of("0001")).toMatchObject([{ address: "10.96.0.10", port: 53, redirected: true }]);
    expect(of("4000")[0]).not.toHaveProperty("redirected");
  });

  test("typed dumps of maps with BTF are decoded like bytes", () => {
    const folder = new URL("../bpf-map-dump/", root);
    const pin = "/sys/fs/bpf/btfmaps/cilium_lb4_";
    const typed = (file: string) => readFileSync(new URL(file, folder), "utf8");
    const { services } = read("s3-healthy", () => false, [
      { command: "bpftool -f map", text: readFileSync(new URL("../bpf-map/btf-plain.txt", root), "utf8") },
      { command: "bpftool prog", text: "156: cgroup_sock_addr  name cil_sock4_connect  gpl\n\txlated 544B  jited 334B  memlock 4096B  map_ids 38,39\n" },
      { command: `bpftool map dump pinned ${pin}services_v2`, text: typed("btf-services-plain.txt") },
      { command: `bpftool map dump pinned ${pin}backends_v3`, text: typed("btf-backends-plain.txt") },
    ]);
    expect(services).toMatchObject([{ mapId: 38, address: "172.17.93.4", port: 8080, protocol: "tcp", backends: ["172.16.109.127:8080"] }]);
  });
});

describe("the ids of the maps to dump", () => {
  const snippet = bpfMapDump.commands[0]?.each ?? "";
  const run = (shell: string[], text: string) => {
    const folder = mkdtempSync(join(tmpdir(), "nc-socket-lb-"));
    try {
      writeFileSync(join(folder, "list"), text);
      writeFileSync(join(folder, "bpftool"), `#!/bin/sh\ncat ${folder}/list\n`);
      chmodSync(join(folder, "bpftool"), 0o755);
      const [program, ...args] = shell as [string, ...string[]];
      return execFileSync(program, [...args, "-c", snippet], { encoding: "utf8", env: { PATH: `${folder}:/usr/bin:/bin` } });
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const list = readFileSync(fileURLToPath(new URL("../bpf-map/types-plain.txt", root)), "utf8");

  test("are those of services and backends alone", () => expect(run(["sh"], list)).toBe("27\n28\n29\n30\n"));

  test("are at most 16", () => {
    const many = Array.from(
      { length: 40 },
      (_, i) => `${i + 1}: hash  name cilium_lb6_back  flags 0x1\n\tkey 4B  value 24B  max_entries 65536  memlock 1B\n`,
    ).join("");
    expect(run(["sh"], many).trim().split("\n")).toHaveLength(16);
  });

  test("are none on a node without Cilium", () => expect(run(["sh"], "1: hash  name cilium_lb4_sour  flags 0x1\n")).toBe(""));
});
