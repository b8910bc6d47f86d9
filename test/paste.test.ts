import { expect, test } from "vitest";
import { unadorned } from "../functions/facts/paste.ts";

test("what a terminal or a web page added to an output goes, and lines keep their numbers", () => {
  expect(unadorned("```console\n\u001b[32mdefault\u001b[0m via 10.0.0.1 dev eth0\n```\n")).toBe("\ndefault via 10.0.0.1 dev eth0\n\n");
  expect(unadorned("1\n[root@node-1 ~]# \n")).toBe("1\n");
  expect(unadorned("1\nops@node-1:~$")).toBe("1\n");
});

test("a comment on the last line is no waiting prompt", () => {
  for (const text of ["COMMIT\n# Completed on Fri Nov 20 09:14:07 2026\n", "# ip rule\n0:\tfrom all lookup local\n", ""]) expect(unadorned(text)).toBe(text);
});
