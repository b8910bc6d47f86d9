import { describe, expect, test } from "vitest";
import { tableRows } from "../../functions/imports/command-table.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { expectLinear } from "../cpu-time.ts";

const RULE = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n";
const GREP = 'ip route | grep "via 10.0.0.1, dev"';
const ROUTE = "default via 10.0.0.1 dev eth0\n";

describe("commands in the rows of a table", () => {
  test.each([
    ["a spreadsheet", `command,exit,output\n"ip rule",0,"${RULE}"\n"${GREP.replaceAll('"', '""')}",0,"${ROUTE}"\n`],
    ["one with semicolons", `"command";"output"\r\n"ip rule";"${RULE}"\r\n"${GREP.replaceAll('"', '""')}";${ROUTE.trim()}\r\n`],
    [
      "a page",
      `<table border="1">\n<tr><th>command</th><th>output</th></tr>\n<tr class="odd"><td>ip rule</td><td><pre>${RULE}</pre></td></tr>\n<tr><td><code>${GREP.replaceAll('"', "&quot;")}</code></td><td>${ROUTE}</td></tr>\n</table>\n`,
    ],
    [
      "Markdown",
      `| command | output |\n|---|---|\n| \`ip rule\` | ${RULE.trim().replaceAll("\n", "<br>")} |\n| \`${GREP.replace("|", "\\|")}\` | ${ROUTE.trim()} |\n`,
    ],
  ])("%s", (_, text) => {
    expect(tableRows(text)).toEqual([
      { node: undefined, command: "ip rule", text: RULE },
      { node: undefined, command: GREP, text: ROUTE },
    ]);
  });

  test("each machine is a capture of its own", () => {
    const captures = pastedCaptures(`host,command,output\nn1,ip rule,"${RULE}"\nn2,ip rule,"${RULE}"\n`, "x.csv", "x.csv");
    expect(captures.map(({ target, outputs }) => [target, ...outputs.map(({ command, file }) => [command, file])])).toEqual([
      ["n1", ["ip rule", "x.csv!ip rule"]],
      ["n2", ["ip rule", "x.csv!ip rule"]],
    ]);
  });

  test.each([
    ["a greeting", `Hi, all\nhere is ip rule, ip route\n# ip rule\n${RULE}`],
    ["a table of other things", "name,size\na,1\nb,2\n"],
    ["a text with a table in it", `See below.\n| command | output |\n|---|---|\n| ip rule | x |\n`],
    ["rules of nft", `table ip filter {\n}\n`],
  ])("%s is none", (_, text) => expect(tableRows(text)).toEqual([]));

  test("linear", () => {
    for (const [head, part, size] of [
      ["", "<tr>", 50_000],
      ["<table>", "<tr><td>", 25_000],
      ['a,b\n"', '""', 50_000],
      ["a,b\n", '"x",', 25_000],
    ] as const)
      expectLinear((times) => head + part.repeat(times), tableRows, size, part);
  });
});
