import { type InstanceInformation, type InstanceInformationStringFilter, paginateDescribeInstanceInformation, type SSMClient } from "@aws-sdk/client-ssm";
import type { Discovered } from "../triage/ports.ts";
import type { SsmCluster } from "./ssm-clients.ts";
import type { AgentStatus } from "./ssm-words.ts";

/** What Systems Manager knows of nodes and their agents (ssm:DescribeInstanceInformation); no permission of EC2 is needed. */

/** How long a list of nodes counts as fresh: a triage, and whoever types the name once more, ask once. */
const FRESH_MS = 60_000;
/** More nodes of one tag are not listed: a name can still be given by its id in netcheck.yaml. */
const MOST_NODES = 10_000;
/** The service's largest page. */
const PAGE = 50;

/** Status of agents by instance id; what the service does not know is missing. At most 50 ids: the filter takes 100, a page 50. */
export async function agentsOf(reader: SSMClient, ids: readonly string[]): Promise<ReadonlyMap<string, AgentStatus>> {
  const found = new Map<string, AgentStatus>();
  for (const node of await list(reader, [{ Key: "InstanceIds", Values: [...ids] }]))
    if (node.InstanceId !== undefined)
      found.set(node.InstanceId, {
        ping: node.PingStatus ?? "unknown",
        lastPing: node.LastPingDateTime?.getTime(),
        platform: node.PlatformType ?? "unknown",
      });
  return found;
}

/** Lists the nodes of clusters by their tags, at most once a minute each. @param now milliseconds since 1970 */
export class NodeLists {
  readonly #kept = new Map<string, { readonly until: number; readonly nodes: Promise<readonly Discovered[]> }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** The nodes of a cluster with all its tags, and perhaps a name tag and others; none if it has no tags. `key` names account and region. Rejects with the service's error. */
  of(
    key: string,
    reader: SSMClient,
    tags: SsmCluster["targetsByTag"],
    nameTag?: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<readonly Discovered[]> {
    const wanted = Object.entries(tags ?? {});
    if (wanted.length === 0) return Promise.resolve([]);
    // asked for by a tag that the cluster's nodes have with another value: that is none of them
    if (Object.entries(more).some(([name, value]) => Object.hasOwn(tags ?? {}, name) && tags?.[name] !== value)) return Promise.resolve([]);
    const all = [...Object.entries({ ...tags, ...more }), ...(nameTag === undefined ? [] : [["Name", nameTag] as const])];
    const filters = all.map(([name, value]) => ({ Key: `tag:${name}`, Values: [value] }));
    const now = this.#now();
    for (const [name, { until }] of this.#kept) if (until <= now) this.#kept.delete(name);
    const name = `${key} ${JSON.stringify(filters)}`;
    const kept = this.#kept.get(name);
    if (kept !== undefined) return kept.nodes;
    const nodes = list(reader, filters).then((found) => found.flatMap(discovered));
    this.#kept.set(name, { until: now + FRESH_MS, nodes });
    // a refusal is not worth keeping
    nodes.catch(() => this.#kept.delete(name));
    return nodes;
  }
}

/** Host names may be written with a domain or without. */
function discovered({ InstanceId, ComputerName = "", Name = "", IPAddress = "" }: InstanceInformation): Discovered[] {
  if (InstanceId === undefined) return [];
  const host = ComputerName.replace(/\.$/, "");
  const names = [host, host.split(".")[0] ?? "", Name, IPAddress].filter((name) => name !== "");
  return [{ address: InstanceId, names: [...new Set(names)] }];
}

async function list(client: SSMClient, filters: InstanceInformationStringFilter[]): Promise<InstanceInformation[]> {
  const nodes: InstanceInformation[] = [];
  for await (const page of paginateDescribeInstanceInformation({ client, pageSize: PAGE }, { Filters: filters })) {
    nodes.push(...(page.InstanceInformationList ?? []));
    if (nodes.length >= MOST_NODES) break;
  }
  return nodes;
}
