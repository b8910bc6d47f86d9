import type { View } from "./fact.ts";

/** One number of node_exporter: `node_softnet_dropped_total{cpu="3"} 118`. */
export interface Metric {
  /** Without "node_". */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Rounded; node_exporter prints large numbers as 5.120331e+08. */
  readonly value: number;
}

/** The ports that node_exporter is given: 9100, or one near it. 9153 is CoreDNS. */
const ADDRESS = /^(?:https?:\/\/)?(?:\[[0-9a-fA-F:]{2,45}\]|[\w.$(){}-]{1,260}):91(?!53)\d\d\/metrics\/?$/;
const METRIC = /^[ \t]{0,8}node_([a-zA-Z0-9_]{1,120})(?:\{([^{}]{0,400})\})? ([-+0-9.eE]{1,32})(?: \d{1,15})?$/;
const LABEL = /([a-z_]{1,40})="([^"]{0,200})"/g;

/**
 * The view of node_exporter's answer (`curl -s localhost:9100/metrics`) for a fact that is read in `format` of `metricsAs`; undefined for every other command.
 * node_exporter shows what the kernel counts, not all of it, and people search in it: it is never complete.
 */
export function metricsView(argv: readonly string[], format: string): View | undefined {
  if (argv[0] !== "curl" && argv[0] !== "wget") return undefined;
  return argv.some((word) => ADDRESS.test(word)) ? { format, complete: false, scope: METRICS, rank: 0 } : undefined;
}

/** The scope of such a view. */
export const METRICS = "node_exporter";

/**
 * node_exporter's answer in the words of the tool or file that the kernel's own numbers are read from, so that one parser reads both. Each line becomes what `write`
 * makes of its number, or an empty line; so lines keep their numbers. `all` are the numbers of the whole text, in order.
 */
export function metricsAs(text: string, write: (metric: Metric, all: readonly Metric[]) => string | undefined): string {
  const read = text.split("\n").map(metricOf);
  const all = read.filter((metric) => metric !== undefined);
  return read.map((metric) => (metric === undefined ? "" : (write(metric, all) ?? ""))).join("\n");
}

function metricOf(line: string): Metric | undefined {
  const match = line.length > 800 ? null : METRIC.exec(line.trimEnd());
  const value = Math.round(Number(match?.[3]));
  if (match === null || !Number.isSafeInteger(value)) return undefined;
  const labels = Object.fromEntries([...(match[2] ?? "").matchAll(LABEL)].map(([, name, content]) => [name as string, content as string]));
  return { name: match[1] as string, labels, value };
}
