import type { Discovered } from "../triage/ports.ts";
import type { KubernetesApi } from "./pod-api.ts";

/** What a cluster knows of its nodes (the right to list nodes). */

/** How long a list of nodes counts as fresh: a triage, and whoever types the name once more, ask once. */
const FRESH_MS = 60_000;
/** Nodes per page of a list, and most that are read: twice what Kubernetes supports. */
const PAGE = 500;
const MOST_NODES = 10_000;

interface NodeList {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly spec?: { readonly providerID?: string };
    readonly status?: { readonly addresses?: readonly { readonly type: string; readonly address: string }[] };
  }[];
}

/** Lists the nodes of clusters by their labels, at most once a minute each. @param now milliseconds since 1970 */
export class ClusterNodes {
  readonly #kept = new Map<string, { readonly until: number; readonly nodes: Promise<readonly Discovered[]> }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The nodes of a cluster with all these labels, and more besides; none if the first are none. Rejects with the server's ApiError. */
  of(
    cluster: string,
    api: KubernetesApi,
    labels: Readonly<Record<string, string>> | undefined,
    more: Readonly<Record<string, string>> = {},
  ): Promise<readonly Discovered[]> {
    if (Object.keys(labels ?? {}).length === 0) return Promise.resolve([]);
    const labelSelector = [...Object.entries(labels ?? {}), ...Object.entries(more)].map(([name, value]) => `${name}=${value}`).join(",");
    const now = this.#now();
    for (const [key, { until }] of this.#kept) if (until <= now) this.#kept.delete(key);
    const key = `${cluster} ${labelSelector}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept.nodes;
    const nodes = list(api, labelSelector);
    this.#kept.set(key, { until: now + FRESH_MS, nodes });
    // a refusal is not worth keeping
    nodes.catch(() => this.#kept.delete(key));
    return nodes;
  }
}

async function list(api: KubernetesApi, labelSelector: string): Promise<readonly Discovered[]> {
  const nodes: Discovered[] = [];
  let next: string | undefined;
  do {
    const query = { labelSelector, limit: String(PAGE), ...(next === undefined ? {} : { continue: next }) };
    const { body } = await api.call<NodeList>({ method: "GET", path: "/api/v1/nodes", query });
    nodes.push(...body.items.map(discovered));
    next = body.metadata.continue || undefined;
  } while (next !== undefined && nodes.length < MOST_NODES);
  return nodes;
}

/** People call a node by its name (with a domain or without), its addresses, or the id of its EC2 instance ("aws:///eu-central-1a/i-0123…"; hybrid nodes: mi-…). */
function discovered({ metadata, spec, status }: NodeList["items"][number]): Discovered {
  const machine = /^(?:aws|eks-hybrid):\/\/\/(?:.*\/)?(m?i-[0-9a-f]{8,17})$/.exec(spec?.providerID ?? "")?.[1];
  const addresses = (status?.addresses ?? []).map(({ address }) => address);
  const names = [metadata.name, metadata.name.split(".")[0] ?? "", ...addresses, ...(machine === undefined ? [] : [machine])].filter((name) => name !== "");
  return { address: metadata.name, names: [...new Set(names)], ...(machine === undefined ? {} : { machine }) };
}
