import { describe, expect, test } from "vitest";
import { cutInside } from "../functions/facts/cut-output.ts";
import { readFacts } from "../functions/facts/read.ts";
import { capture } from "./readings.ts";

/** Outputs that end in the middle of a line without a mark. */
describe("cut outputs", () => {
  const others = [
    { command: "uname -r", text: "6.1.0-28-amd64\n" },
    { command: "ip neigh", text: "10.20.0.1 dev ens3 lladdr 52:54:00:11:22:33 REACHABLE\n" },
  ];
  const rules = "0:\tfrom all lookup local\n32766:\tfrom all lookup ma";

  test("one among outputs that kept the newline at their end is partial, and its last line is not read", () => {
    const { readings } = readFacts(capture([...others, { command: "ip rule", text: rules }]));
    expect(readings.get("rule")?.complete).toBe(false);
    expect(readings.get("rule")?.value).toMatchObject({ rows: [{ line: 1, table: "local" }] });
  });

  test.each([
    ["where nothing shows that newlines were kept", [{ command: "ip rule", text: rules }]],
    ["of a tool that need not end its lines", [...others, { command: "curl -s http://127.0.0.1:10249/proxyMode", text: "iptables" }]],
    ["of a file", [...others, { command: "cat /etc/resolv.conf", text: "nameserver 10.20.0.2" }]],
    ["of JSON", [...others, { command: "ip -j rule", text: "[{}]" }]],
    ["before the next prompt", [...others, { command: "ip rule", text: "0:\tfrom all lookup local\nroot@n1:~# " }]],
    ["that is empty", [...others, { command: "ip rule", text: "" }]],
  ])("no output counts as cut %s", (_name, outputs) => {
    expect([...cutInside(capture(outputs))]).toEqual([]);
  });
});
