import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadDiagram, loadPicture } from "../../functions/slack/diagram.ts";

const template = fileURLToPath(new URL("../../templates/diagram.svg.hbs", import.meta.url));
const draw = loadDiagram(template);
const DIAGRAM = { path: ["a pod", "KUBE-FORWARD", "outside"], breakAt: 2, note: "drops it" };

test("one box for each station, the break marked once, what comes after it is not reached", () => {
  const svg = draw("Why", DIAGRAM);
  expect(svg.match(/<circle /g)).toHaveLength(1);
  expect(svg.match(/stroke-dasharray/g)).toHaveLength(1);
  expect([...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map((match) => match[1])).toEqual(["Why", "a pod", "KUBE-FORWARD", "drops it", "outside"]);
});

test("whatever the texts hold stays text: no element, attribute or entity of theirs, and every drawing can be rasterised", async () => {
  const picture = loadPicture(template);
  const text = fc.oneof(
    fc.string({ minLength: 1, maxLength: 200 }),
    fc.constantFrom('"/><script>x</script>', "&xxe;", "]]>", "{{title}}", "\u202eabc\u0000\u001b[31m", "\ud800"),
  );
  await fc.assert(
    fc.asyncProperty(text, fc.array(text, { minLength: 2, maxLength: 7 }), text, async (title, path, note) => {
      const diagram = { path, breakAt: path.length, note };
      const svg = draw(title, diagram);
      expect(new Set(svg.match(/<[a-z]+/g))).toEqual(new Set(["<svg", "<title", "<rect", "<text", "<path", "<circle"]));
      const png = await picture(title, diagram);
      expect(Buffer.from(png.subarray(1, 4)).toString()).toBe("PNG");
    }),
    { numRuns: 15 },
  );
}, 60_000);
