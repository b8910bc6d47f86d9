import fc from "fast-check";
import { expect, test } from "vitest";
import { formatDate } from "../../functions/local/date.ts";
import { parseMrkdwn } from "../../functions/local/mrkdwn.ts";

const text = (value: string, style?: object) => ({ type: "text", text: value, ...(style === undefined ? {} : { style }) });
const section = (...elements: object[]) => ({ type: "rich_text_section", elements });
const code = (value: string) => ({ type: "rich_text_preformatted", elements: [text(value)] });

test.each([
  [
    "styles at word borders only",
    "*b* _i_ ~s~ a*b*c 2*3*4 snake_case_name",
    [section(text("b", { bold: true }), text(" "), text("i", { italic: true }), text(" "), text("s", { strike: true }), text(" a*b*c 2*3*4 snake_case_name"))],
  ],
  ["code is verbatim", "`*a*` `<@U1>`", [section(text("*a*", { code: true }), text(" "), text("<@U1>", { code: true }))]],
  ["a block of code is verbatim, entities decoded once", "```\n*filter\n&amp;lt; :x: &lt;!here&gt;\n```", [code("*filter\n&lt; :x: <!here>")]],
  ["text around code", "before\n```x```\nafter", [section(text("before")), code("x"), section(text("after"))]],
  ["a fence that nothing closes", "a ```b", [section(text("a ```b"))]],
  ["entities are text, not markup", "&lt;@U1&gt; &lt;!channel&gt; &amp;amp;", [section(text("<@U1> <!channel> &amp;"))]],
  [
    "mentions and links",
    "<@U1> <#C1|x> <!here> <!subteam^S1> <https://a.b/?x=1&amp;y|A>",
    [
      section(
        { type: "user", user_id: "U1" },
        text(" "),
        { type: "channel", channel_id: "C1" },
        text(" "),
        { type: "broadcast", range: "here" },
        text(" "),
        { type: "usergroup", usergroup_id: "S1" },
        text(" "),
        { type: "link", url: "https://a.b/?x=1&y", text: "A" },
      ),
    ],
  ],
  ["no script links", "<javascript:alert(1)|x>", [section(text("<javascript:alert(1)|x>"))]],
  ["emoji, but not times", ":x: 10:30:40 fe80::1", [section({ type: "emoji", name: "x" }, text(" 10:30:40 fe80::1"))]],
  ["quotes, raw and escaped", "> a\n&gt; b\nc", [{ type: "rich_text_quote", elements: [text("a\nb")] }, section(text("c"))]],
  ["nested styles", "*b _i_*", [section(text("b ", { bold: true }), text("i", { bold: true, italic: true }))]],
])("%s", (_name, source, expected) => {
  expect(parseMrkdwn(source)).toEqual(expected);
});

test("dates are worded as Slack words them", () => {
  const at = Date.parse("2026-11-21T05:57:14Z") / 1000;
  expect(parseMrkdwn(`<!date^${at}^{date_short_pretty} {time}|soon>`)).toEqual([
    section({ type: "date", timestamp: at, format: "{date_short_pretty} {time}", fallback: "soon" }),
  ]);
  const worded = (format: string, now: string) => formatDate(at, format, Date.parse(now), "UTC");
  expect(worded("{date_short_pretty} {time}", "2026-11-21T01:00:00Z")).toBe("today 05:57");
  expect(worded("{date_short_pretty} {time}", "2026-11-20T23:00:00Z")).toBe("tomorrow 05:57");
  expect(worded("{date_short_pretty}", "2026-11-22T23:00:00Z")).toBe("yesterday");
  expect(worded("{date_short_pretty} at {time_secs} {unknown}", "2026-12-24T00:00:00Z")).toBe("21 Nov 2026 at 05:57:14 {unknown}");
});

test("never throws, and is quick on hostile text", () => {
  const hostile = fc.string({ unit: fc.constantFrom("*", "_", "~", "`", "<", ">", "|", ":", "@", " ", "a", "\n", "&lt;"), maxLength: 3000 });
  fc.assert(
    fc.property(hostile, (source) => void parseMrkdwn(source)),
    { numRuns: 50 },
  );
});
