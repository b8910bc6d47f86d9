import { expect, test } from "vitest";
import { uncheckedGroups } from "../../functions/rules/unchecked.ts";

test("what is open of that which was looked at comes first, then each output that is not there, once", () => {
  const absent = "the capture holds no output of `iptables-save -c`";
  const half = "the capture holds no output of `ip6tables-save -c`; to settle it: `iptables-save -c`";
  const once = "the counters were read once; read them twice";
  expect(
    uncheckedGroups([
      { rule: "a", reason: `needs iptables: ${absent}` },
      { rule: "b", reason: `packet-path is only partly known: ${absent}` },
      { rule: "c", reason: "needs rule: the capture holds no output of `ip -j -4 rule show`" },
      { rule: "d", reason: once },
      { rule: "e", reason: "needs rule: `ip rule | head`: it shows only a part" },
      { rule: "f", reason: once },
      { rule: "g", reason: "route-lookup is only partly known: `ip rule | head`: it shows only a part" },
      { rule: "h", reason: `packet-path is only partly known: ${half}` },
      { rule: "i", reason: `iptables is only partly known: ${half}` },
    ]),
  ).toEqual([
    { rules: ["e", "g"], reason: "`ip rule | head`: it shows only a part" },
    { rules: ["h", "i"], reason: half },
    { rules: ["d", "f"], reason: once },
    { rules: ["a", "b"], reason: absent, absent: "iptables-save -c" },
    { rules: ["c"], reason: "the capture holds no output of `ip -j -4 rule show`", absent: "ip -j -4 rule show" },
  ]);
});
