import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

/** The dependency direction (DESIGN C2), with the reason in the failure. */

const root = fileURLToPath(new URL("../functions/", import.meta.url));
const files = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .map((file) => file.replaceAll("\\", "/"));
const IMPORT = /(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+"([^"]+)"|import\(\s*"([^"]+)"\s*\)|(?:^|\n)import\s+"([^"]+)"/g;

interface Import {
  readonly from: string;
  /** A file below functions/, or a package. */
  readonly to: string;
}
const imports: Import[] = files.flatMap((from) =>
  [...readFileSync(join(root, from), "utf8").matchAll(IMPORT)].map((match) => {
    const target = (match[1] ?? match[2] ?? match[3]) as string;
    return { from, to: target.startsWith(".") ? relative(root, join(root, dirname(from), target)).replaceAll("\\", "/") : target };
  }),
);
const inside = (folder: string) => (file: string) => file.startsWith(`${folder}/`);
const own = (to: string) => files.includes(to);

/** folder → what it may import besides itself, and why nothing else. */
const LAWS: { folder: string; may: RegExp; because: string }[] = [
  { folder: "facts", may: /^(?:zod$)/, because: "facts are pure parsers: they know nothing of files, rules, chats or clouds" },
  {
    folder: "rules",
    may: /^(?:facts\/|zod$|yaml$|ipaddr\.js$|re2js$|@marcbachmann\/cel-js$|node:(?:fs|path|crypto)$)/,
    because: "rules judge facts; who collected them and who is told is not their business",
  },
  {
    folder: "triage",
    may: /^(?:facts\/|rules\/|zod$|picomatch$|fastest-levenshtein$|node:(?:crypto|zlib)$)/,
    because: "the workflow has no SDK, no environment and no clock of its own: all that comes through ports",
  },
  {
    folder: "transports",
    may: /^(?:triage\/ports\.ts$|facts\/capture\.ts$|tar-stream$|yauzl$|xz-decompress$|re2js$|@aws-sdk\/|@kubernetes\/client-node$|node:)/,
    because: "a transport brings a capture from a node and knows nothing of rules, chats or stores",
  },
  {
    folder: "imports",
    may: /^(?:facts\/|transports\/(?:archive|capture-files|secrets)\.ts$|node:(?:fs|path)$)/,
    because: "an importer turns files that people have into captures; it judges nothing",
  },
  {
    folder: "store",
    may: /^(?:triage\/(?:ports|audit)\.ts$|@aws-sdk\/|node:)/,
    because: "a store keeps incidents; the one thing it computes is the audit chain",
  },
  {
    folder: "slack",
    may: /^(?:triage\/ports\.ts$|@slack\/|@resvg\/resvg-wasm$|handlebars$|zod$|node:)/,
    because: "the chat draws messages and hands work over; it decides nothing",
  },
  {
    folder: "pager",
    may: /^(?:triage\/ports\.ts$|zod\/mini$|node:crypto$)/,
    because: "a paging source turns a signed request into a page and hands it over; who examines what is not its business",
  },
  {
    folder: "durable",
    may: /^(?:triage\/ports\.ts$|@aws\/durable-execution-sdk-js$|@aws-sdk\/client-lambda$|node:)/,
    because: "it only maps the SDK's context to our port",
  },
];

describe("dependency direction", () => {
  test.each(LAWS)("$folder", ({ folder, may, because }) => {
    const broken = imports.filter(({ from, to }) => inside(folder)(from) && !inside(folder)(to) && !may.test(to));
    expect(broken, `${folder}/ may import only ${String(may)}: ${because}`).toEqual([]);
  });

  test("only transports/local.ts starts processes", () => {
    const spawning = imports.filter(({ from, to }) => /^(?:node:)?child_process$/.test(to) && from !== "transports/local.ts");
    expect(spawning, "commands run on nodes come from the catalogue, through a transport; nothing else may start a process").toEqual([]);
  });

  test("the environment is read at entry points only", () => {
    const reading = files.filter(
      (file) => file.includes("/") && !/^(?:cli|local|transports\/local\.ts)/.test(file) && readFileSync(join(root, file), "utf8").includes("process.env"),
    );
    expect(reading, "configuration is read once, at the entry, into a type").toEqual([]);
  });

  test("the triage has no clock of its own", () => {
    const ticking = files.filter((file) => inside("triage")(file) && /Date\.now\(|new Date\(\)|performance\.now/.test(readFileSync(join(root, file), "utf8")));
    expect(ticking, "time comes through ports.now() inside steps: a replayed workflow must see the same time").toEqual([]);
  });

  test("no cycles, type-only imports included", () => {
    const edges = new Map<string, string[]>();
    for (const { from, to } of imports) if (own(to)) edges.set(from, [...(edges.get(from) ?? []), to]);
    const state = new Map<string, "open" | "done">();
    const cycles: string[] = [];
    const visit = (file: string, path: string[]): void => {
      if (state.get(file) === "done") return;
      if (state.get(file) === "open") {
        cycles.push([...path.slice(path.indexOf(file)), file].join(" → "));
        return;
      }
      state.set(file, "open");
      for (const next of edges.get(file) ?? []) visit(next, [...path, file]);
      state.set(file, "done");
    };
    for (const file of files) visit(file, []);
    expect(cycles).toEqual([]);
  });

  test("entry points wire, they do not think: at most 60 lines", () => {
    const long = files
      .filter((file) => !file.includes("/"))
      .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length }))
      .filter(({ lines }) => lines > 60);
    expect(long).toEqual([]);
  });
});
