import { groupOf, re2 } from "../rules/re2.ts";
import type { Config } from "./config.ts";
import type { Page, PageAlert, Ports, Target } from "./ports.ts";

/** Which nodes an alert is about: by the routes of netcheck.yaml (`pages.routes`), or by what is usual. */

export type PageRoute = NonNullable<Config["pages"]>["routes"][number];

/**
 * Labels whose value is a node's name or address, the more certain ones first: of Kubernetes' own exporters, of agents, of CloudWatch (a dimension), and what
 * Prometheus sets to host:port.
 */
const USUAL_LABELS = ["node", "nodename", "node_name", "kubernetes_node", "host", "hostname", "InstanceId", "instance_id", "instance"] as const;
/** Nodes of one alert. */
const MAX_NAMES = 50;
const NAME = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$/;

/** A label of an alert; "" if it has none of that name. Own properties only: the names come from outside. */
const labelOf = ({ labels, title }: PageAlert, name: string): string => (Object.hasOwn(labels, name) ? (labels[name] ?? "") : name === "title" ? title : "");

/** The first route that fits an alert; undefined: none does, and what is usual counts. */
export function routeOf(routes: readonly PageRoute[], source: Page["source"], alert: PageAlert): PageRoute | undefined {
  return routes.find(({ match }) => {
    if (match.source !== undefined && match.source !== source) return false;
    if (match.severity !== undefined && match.severity !== alert.severity) return false;
    return Object.entries(match.labels ?? {}).every(([name, pattern]) => re2(pattern).testExact(labelOf(alert, name)));
  });
}

/** The names of an alert's nodes, and their cluster if that is told. */
export interface Named {
  readonly names: readonly string[];
  readonly cluster?: string;
  /** Why there is none, and what to do about it; for people. */
  readonly problem?: string;
}

/** @param clusters those of the configuration */
export function namesOf(alert: PageAlert, route: PageRoute | undefined, clusters: readonly string[]): Named {
  const said = labelOf(alert, "cluster");
  const cluster = route?.cluster ?? (said === "" ? undefined : said);
  const own = cluster === undefined ? {} : { cluster };
  // a node of that name in another cluster is another node
  if (cluster !== undefined && !clusters.includes(cluster))
    return {
      names: [],
      problem: `it is of the cluster “${cluster}”, which netcheck.yaml does not have: say which one it is in a route (match that label, and set cluster)`,
    };
  if (alert.targets !== undefined) return { names: alert.targets.slice(0, MAX_NAMES), ...own };
  const places: NonNullable<PageRoute["targets"]> = route?.targets ?? USUAL_LABELS.map((label) => ({ label }));
  for (const { label, regex } of places) {
    const value = labelOf(alert, label);
    const found = regex === undefined ? value.split(/[,\s]+/).map(bare) : [groupOf(regex, value) ?? ""];
    const names = [...new Set(found.filter((name) => NAME.test(name)))];
    if (names.length > 0) return { names: names.slice(0, MAX_NAMES), ...own };
  }
  const looked = places.map(({ label }) => label).join(", ");
  return { names: [], ...own, problem: `it names no node: there is none in ${looked}. A route of netcheck.yaml can say where the name is` };
}

/** A node's name or address without what stands around it: "10.0.3.4:9100", "[fe80::1]:9100", "http://web1:8080/health". */
function bare(value: string): string {
  const host = /^[a-z][a-z0-9+.-]*:\/\/([^/]+)/i.exec(value)?.[1] ?? value;
  const bracketed = /^\[([0-9a-f:.]+)\](?::\d{1,5})?$/i.exec(host)?.[1];
  return bracketed ?? /^([^:]+):\d{1,5}$/.exec(host)?.[1] ?? host;
}

/**
 * What a name means: a node; or why not, for people. A list that could not be had is said, and `unasked` is true.
 * @param patient throws what may pass (`retryable`) instead, to be asked again
 */
export async function nodeOf(
  { targets }: Pick<Ports, "targets">,
  name: string,
  cluster: string | undefined,
  patient = false,
): Promise<{ readonly target: Target } | { readonly problem: string; readonly unasked?: true }> {
  try {
    const found = await targets.resolve(name);
    if (found.kind === "unknown") {
      const near = found.suggestions.slice(0, 3);
      return { problem: `netcheck knows no node of that name${near.length === 0 ? "" : `; there is ${near.join(", ")}`}` };
    }
    const all = found.kind === "found" ? [found.target] : found.candidates;
    const fitting = all.filter((target) => cluster === undefined || target.cluster === cluster);
    const [only] = fitting;
    if (only === undefined)
      return { problem: `there is no such node in ${cluster ?? ""}, but in ${[...new Set(all.map((target) => target.cluster))].slice(0, 5).join(", ")}` };
    if (fitting.length === 1) return { target: only };
    const means = fitting.slice(0, 5).map((target) => `${target.cluster}/${target.name}`);
    return { problem: `that may be ${means.join(" or ")}; a route of netcheck.yaml can say which cluster it is` };
  } catch (error) {
    if (patient && (error as { retryable?: boolean }).retryable === true) throw error;
    return { problem: `it could not be looked up: ${(error as Error).message}`, unasked: true };
  }
}
