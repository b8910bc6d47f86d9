import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { validateBlocks, validateView } from "../../functions/slack/block-kit.ts";
import { drawHelp, helpRenderer } from "../../functions/slack/help.ts";
import { parseCommand } from "../../functions/slack/listeners/netcheck-command.ts";
import { loadTemplates, type Rendered } from "../../functions/slack/render.ts";
import { MESSAGES, OURS } from "./messages.ts";

const folder = fileURLToPath(new URL("../../templates/slack/", import.meta.url));
const render = loadTemplates(folder);
const draw = (name: string, data: unknown = MESSAGES[name]): Rendered =>
  render({ template: name.split("/")[0] as string, data: data as Record<string, unknown> });
const names = Object.keys(MESSAGES);

/** Every string that is not ours, through `change`. */
function spoil(value: unknown, change: (text: string) => unknown, key = ""): unknown {
  if (OURS.has(key)) return value;
  if (typeof value === "string") return value === "" ? "" : change(value);
  if (Array.isArray(value)) return value.map((item) => spoil(item, change, key));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, spoil(item, change, name)]));
}

/** The structure: all but the text in leaves. */
const skeleton = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, item: unknown) => (key === "text" && typeof item === "string" ? "…" : item)));
const structure = ({ blocks, view }: Rendered): unknown => skeleton({ blocks, view });
const problems = ({ blocks, view }: Rendered): string[] => (view === undefined ? validateBlocks(blocks, "message") : validateView({ ...view, blocks }));

interface Leaf {
  readonly type: string;
  readonly text: string;
}
/** All text objects; the notification's text, which Slack reads as mrkdwn, is one of them. */
function leaves({ text, blocks, view }: Rendered): Leaf[] {
  const found: Leaf[] = [{ type: "mrkdwn", text }];
  JSON.stringify({ blocks, view }, (_key, value: unknown) => {
    if (typeof value === "object" && value !== null && "text" in value && typeof value.text === "string") found.push(value as Leaf);
    return value;
  });
  return found;
}

/** Characters that mean something in mrkdwn. */
const marks = (text: string): string => text.replaceAll(/[^`*~<>]|&(?:amp|lt|gt);/g, "");

const ESC = String.fromCharCode(27);
const HOSTILE: Readonly<Record<string, string>> = {
  mentions: "<!channel> <!here> <@U0001> <!subteam^S0001> <#C0001> @channel",
  links: "<https://evil.example|click here> <mailto:a@evil.example|x> javascript:alert(1)",
  dates: "<!date^1^{date}^https://evil.example|x>",
  "code spans": "` `` ``` *bold* _it_ ~strike~\n```\nout\n```",
  quotes: "> quoted\n>>> all of it\n&gt; &lt;!channel&gt; &amp;lt;",
  "terminal escapes": `${ESC}[31mred${ESC}[0m ${ESC}]0;title\u0007 \u009b31m \u0000\b\r`,
  "direction overrides": "\u202egnp.exe\u202c \u2066x\u2069 \u200b\u200d\ufeff\u061c",
  templates: "{{requester}} {{{user requester}}} {{#each cause.evidence}}{{/each}} {{> partial}} {{lookup this 'x'}} \\{{x}}",
  JSON: '"},{"type":"actions","elements":[{"type":"button","action_id":"approve","value":"x"}]},{"x":"',
  "a line of 10,000 characters": "x".repeat(10_000),
  "10,000 characters that grow when escaped": "&<>".repeat(3_334),
  "3,000 lines": "line\n".repeat(3_000),
  "characters outside the first plane": "\u{1f4a5}".repeat(5_000),
  "half a character": "\ud83d",
};

test("every template is drawn here", () => {
  const templates = readdirSync(folder).map((file) => file.replace(/\.json$/, ""));
  expect(new Set(names.map((name) => name.split("/")[0]))).toEqual(new Set(templates));
});

test.each(names)("%s looks as it did", async (name) => {
  const drawn = draw(name);
  expect(problems(drawn)).toEqual([]);
  await expect(`${JSON.stringify(drawn, undefined, 2)}\n`).toMatchFileSnapshot(`snapshots/${name.replace("/", "-")}.txt`);
});

describe.each(names)("%s with hostile data", (name) => {
  const calm = draw(
    name,
    spoil(MESSAGES[name], () => "calm"),
  );

  test.each(Object.keys(HOSTILE))("%s", (kind) => {
    const drawn = draw(
      name,
      spoil(MESSAGES[name], () => HOSTILE[kind]),
    );
    expect(problems(drawn), "Slack takes it").toEqual([]);
    expect(structure(drawn), "it stays inside its leaf").toEqual(structure(calm));
    const quiet = leaves(calm);
    for (const [index, leaf] of leaves(drawn).entries()) {
      expect(leaf.text).not.toMatch(/(?![\n\t])[\p{Cc}\p{Cf}]/u);
      // a text that was cut may have lost closing marks of our own
      if (leaf.type === "mrkdwn" && !leaf.text.endsWith("…")) expect(marks(leaf.text), leaf.text.slice(0, 200)).toBe(marks(quiet[index]?.text ?? ""));
    }
  });

  test("braces of the data are shown, not run", () => {
    const text = JSON.stringify(
      leaves(
        draw(
          name,
          spoil(MESSAGES[name], () => "{{incident}}"),
        ),
      ),
    );
    const plain = JSON.stringify(
      leaves(
        draw(
          name,
          spoil(MESSAGES[name], () => "@@incident@@"),
        ),
      ),
    );
    expect(text.replaceAll(/\{\{incident\}\}/g, "@@incident@@")).toBe(plain);
  });

  test("structural keys and prototypes in the data do nothing", () => {
    const evil = JSON.parse(
      '{"$if":"target","then":[{"type":"divider"}],"$each":"others","as":[{"type":"divider"}],"__proto__":{"polluted":"yes","problem":"yes"},"constructor":{"prototype":{"polluted":"yes"}},"type":"divider","text":"evil"}',
    ) as Record<string, unknown>;
    const drawn = draw(name, { ...evil, ...MESSAGES[name] });
    expect(drawn).toEqual(draw(name));
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    // and where a text should be
    const fields = Object.entries(MESSAGES[name] ?? {});
    const inside = draw(
      name,
      Object.fromEntries(fields.map(([key, value]) => [key, typeof value === "string" && value !== "" && !OURS.has(key) ? evil : value])),
    );
    expect(problems(inside)).toEqual([]);
    expect(structure(inside)).toEqual(structure(draw(name)));
  });

  test("any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.constantFrom(...Object.values(HOSTILE)), (text, other) => {
        let turn = 0;
        const data = spoil(MESSAGES[name], () => {
          turn += 1;
          return `x${turn % 2 === 0 ? text : text + other.slice(0, 50)}`;
        });
        const drawn = draw(name, data);
        expect(problems(drawn)).toEqual([]);
        expect(structure(drawn)).toEqual(structure(calm));
      }),
      { numRuns: 15, seed: 11 },
    );
  });
});

test("a message with more blocks than Slack takes keeps its first ones and its last", () => {
  const unchecked = Array.from({ length: 100 }, (_, index) => ({ rule: `rule-${index}`, parts: [{ code: "", text: "why" }] }));
  const { blocks } = draw("diagnosis/no-fix", { ...MESSAGES["diagnosis/no-fix"], unchecked });
  expect(blocks).toHaveLength(50);
  expect(blocks.at(-1)).toMatchObject({ type: "actions" });
});

test("data that a template needs and does not get is an error that names it, as is a template that is not there", () => {
  expect(() => draw("note", { icon: "x" })).toThrow(/text/);
  expect(() => draw("nothing", {})).toThrow('there is no template "nothing"');
});

describe("the help drawn beforehand", () => {
  const help = helpRenderer(JSON.parse(JSON.stringify(drawHelp(render))));
  const same = (problem: string): void => {
    expect(help({ template: "help", data: { problem } })).toEqual(draw("help", { problem }));
  };
  const problemOf = (text: string): string => {
    const asked = parseCommand(text);
    return asked.kind === "help" ? asked.problem : "";
  };

  test.each(["", ...Object.values(HOSTILE), "a b", "\ue000", "<\ue000 $& $1"])("is what the template gives: %j", (text) => same(problemOf(text)));

  test("whatever is typed", () => {
    const words = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...Object.values(HOSTILE)), fc.constantFrom("<", "&", "\ue000", " ", "$&"));
    fc.assert(
      fc.property(fc.array(words, { maxLength: 5 }), (parts) => same(problemOf(parts.join("")))),
      { seed: 11 },
    );
  });

  test("draws nothing else", () => {
    expect(() => help({ template: "note", data: { icon: "x", text: "x" } })).toThrow("only the help");
  });
});
