import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import Handlebars from "handlebars";
import { cut, plain } from "./escape.ts";

/** What a packet passes, in order, and where (1-based) it is lost: see Diagram of rules/diagnosis.ts. */
export interface DiagramData {
  readonly path: readonly string[];
  readonly breakAt: number;
  readonly note: string;
}

// A light card with dark text stands on a dark page as well as on a light one; all texts have a contrast of 4.5 or more on their ground (WCAG AA).
const WIDTH = 520;
const STATION = 472;
const GAP = 26;
const LINE = 19;
const COLORS = {
  passed: { fill: "#eef4ee", stroke: "#5b8a5f", text: "#1d1c1d", arrow: "#5b8a5f" },
  broken: { fill: "#fdecea", stroke: "#b3261e", text: "#8c1d18", arrow: "#b3261e" },
  unreached: { fill: "#f4f4f6", stroke: "#a9adb5", text: "#5b5f66", arrow: "#a9adb5" },
} as const;

/** Loads templates/diagram.svg.hbs. The function it gives draws a diagram as a PNG. */
export function loadPicture(file: string): (title: string, diagram: DiagramData) => Promise<Uint8Array> {
  const draw = loadDiagram(file);
  return (title, diagram) => rasterize(draw(title, diagram));
}

/** Loads templates/diagram.svg.hbs. The function it gives draws a diagram; whatever the texts hold stays text. */
export function loadDiagram(file: string): (title: string, diagram: DiagramData) => string {
  const template = Handlebars.create().compile(readFileSync(file, "utf8"), { knownHelpersOnly: true, strict: true });
  return (title, diagram) => template(layout(title, diagram));
}

function layout(title: string, { path, breakAt, note }: DiagramData): Record<string, unknown> {
  const heading = wrapped(title, 50);
  let y = 33 + heading.length * LINE;
  const stations = path.map((label, i) => {
    const state = i + 1 < breakAt ? "passed" : i + 1 === breakAt ? "broken" : "unreached";
    const colors = COLORS[state];
    const texts = [
      ...wrapped(label).map((text) => ({ text, bold: state === "broken" })),
      ...(state === "broken" ? wrapped(note).map((text) => ({ text, bold: false })) : []),
    ];
    const height = texts.length * LINE + 17;
    const top = y;
    y += height + GAP;
    const middle = top + height / 2;
    return {
      y: top,
      width: STATION,
      height,
      fill: colors.fill,
      stroke: colors.stroke,
      strokeWidth: state === "broken" ? 2.5 : 1.2,
      cross: state === "broken",
      middle,
      crossTop: middle - 4.5,
      crossBottom: middle + 4.5,
      lines: texts.map(({ text, bold }, line) => ({ text, bold, y: top + 23 + line * LINE, color: colors.text })),
    };
  });
  const arrows = stations.slice(1).map((station, i) => {
    const state = i + 1 < breakAt ? "passed" : "unreached";
    const to = station.y - 2;
    return { from: (stations[i]?.y ?? 0) + (stations[i]?.height ?? 0), to, head: to - 7, color: COLORS[state].arrow, dashed: state === "unreached" };
  });
  const height = y - GAP + 24;
  return {
    width: WIDTH,
    height,
    cardWidth: WIDTH - 1,
    cardHeight: height - 1,
    title: xml(title),
    heading: heading.map((text, line) => ({ text, y: 34 + line * LINE })),
    stations,
    arrows,
  };
}

/** At most two lines of so many characters: 54 is what fits at 14 px. */
function wrapped(label: string, characters = 54): string[] {
  const words = xml(label).split(/\s+/);
  const lines = [""];
  for (const word of words) {
    const last = lines.at(-1) as string;
    if (last !== "" && last.length + word.length >= characters && lines.length < 2) lines.push(word);
    else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
  }
  return lines.map((line) => cut(line, characters));
}

/** XML has no control characters, not even escaped ones. */
const xml = (text: string): string => plain(text).replaceAll(/[\uFFFE\uFFFF]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g, "");

let ready: Promise<typeof import("@resvg/resvg-wasm")> | undefined;

/**
 * An SVG as a PNG of twice its size, for chats that show no SVG. The rasteriser (WebAssembly, 2.5 MB) and the fonts are loaded at the first call:
 * nothing else needs them.
 */
async function rasterize(svg: string): Promise<Uint8Array> {
  const require = createRequire(import.meta.url);
  ready ??= (async () => {
    const resvg = await import("@resvg/resvg-wasm");
    await resvg.initWasm(readFileSync(require.resolve("@resvg/resvg-wasm/index_bg.wasm")));
    return resvg;
  })();
  const { Resvg } = await ready;
  const font = (name: string): Uint8Array =>
    readFileSync(fileURLToPath(new URL(`ttf/${name}.ttf`, `file://${require.resolve("dejavu-fonts-ttf/package.json")}`)));
  const image = new Resvg(svg, {
    fitTo: { mode: "zoom", value: 2 },
    font: { fontBuffers: [font("DejaVuSans"), font("DejaVuSans-Bold")], loadSystemFonts: false, defaultFontFamily: "DejaVu Sans" },
  });
  // their memory is the rasteriser's own: the garbage collector does not see how much it is, and would let it grow to half a gigabyte
  try {
    const rendered = image.render();
    try {
      return rendered.asPng();
    } finally {
      rendered.free();
    }
  } finally {
    image.free();
  }
}
