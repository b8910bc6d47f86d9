import { isDeepStrictEqual } from "node:util";
import { GetDocumentCommand, type InstanceInformation, paginateDescribeInstanceInformation, type SSMClient } from "@aws-sdk/client-ssm";
import { ssmClients } from "../transports/ssm-clients.ts";
import { ssmDocument } from "../transports/ssm-document.ts";
import { agentWords } from "../transports/ssm-words.ts";
import type { Config } from "../triage/config.ts";
import type { Script } from "../triage/ports.ts";
import { addressesOf } from "./doctor-addresses.ts";
import { clockFinding, errorWords, type Finding, type Findings, isDenied, ok, problem, some, unknown } from "./doctor-findings.ts";

/** The first agent that passes parameters as environment variables; an older one refuses our documents with exit code 78. */
const OLDEST_AGENT = "3.3.2746.0";

/** Tag that lets netcheck at a node (-c tag of the deployment). */
export interface OptInTag {
  readonly key: string;
  readonly value: string;
}

/** Looks at the documents, the agents and the clock of each cluster that Systems Manager reaches. Runs no command. */
export async function examineSsm(findings: Findings, clusters: Config["clusters"], scripts: readonly Script[], tag: OptInTag): Promise<void> {
  const clientsOf = ssmClients();
  const documented = new Set<string>();
  for (const [name, cluster] of Object.entries(clusters)) {
    if (cluster.transport !== "ssm" && cluster.fallback !== "ssm") continue;
    const area = `Systems Manager, cluster ${name}`;
    let reader: SSMClient | undefined;
    const reachable = await findings.look(area, "region", () => {
      reader = clientsOf(name, cluster).reader;
      return ok(String(cluster.region));
    });
    if (!reachable || reader === undefined) continue;
    const dates = datesOf(reader);
    // documents belong to an account and region: clusters may share them
    const place = JSON.stringify([cluster.region, cluster.role]);
    if (!documented.has(place)) await findings.look(area, "documents", () => documents(reader as SSMClient, scripts));
    documented.add(place);
    await agents(findings, area, reader, cluster, tag);
    await findings.look(area, "clock", () => clockFinding("AWS", dates.date, dates.at));
  }
}

/** Keeps the date of the last answer. */
function datesOf(client: SSMClient): { date: string | undefined; at: number } {
  const last: { date: string | undefined; at: number } = { date: undefined, at: 0 };
  client.middlewareStack.add(
    (next) => async (args) => {
      const result = await next(args);
      const { headers } = result.response as { headers?: Record<string, string> };
      last.date = headers?.["date"] ?? last.date;
      last.at = Date.now();
      return result;
    },
    { step: "deserialize", name: "netcheckDate", priority: "low" },
  );
  return last;
}

async function documents(reader: SSMClient, scripts: readonly Script[]): Promise<Finding> {
  const missing: string[] = [];
  const other: string[] = [];
  for (const script of scripts) {
    const { name, content } = ssmDocument(script);
    try {
      const { Content, Status } = await reader.send(new GetDocumentCommand({ Name: name, DocumentFormat: "JSON" }));
      // the service may write JSON in its own way
      if (Status !== undefined && Status !== "Active") other.push(`${name} (${Status})`);
      else if (!isDeepStrictEqual(JSON.parse(Content ?? "null"), JSON.parse(content))) other.push(name);
    } catch (error) {
      if ((error as Error).name === "InvalidDocument") missing.push(name);
      else if (isDenied(error as Error)) return unknown(errorWords(error as Error), "Allow ssm:GetDocument on documents named netcheck-*");
      else throw error;
    }
  }
  if (missing.length + other.length === 0) return ok(`all ${scripts.length} are those of this version`);
  const parts = [
    missing.length === 0 ? "" : `${missing.length} of ${scripts.length} are missing: ${some(missing)}`,
    other.length === 0 ? "" : `${other.length} are not those of this version: ${some(other)}`,
  ];
  return problem(
    parts.filter((part) => part !== "").join("; "),
    "Deploy this version (npm run deploy; the member stack in other accounts and regions), or run doctor from the version that is deployed",
  );
}

async function agents(findings: Findings, area: string, reader: SSMClient, cluster: Config["clusters"][string], tag: OptInTag): Promise<void> {
  const named = addressesOf(cluster, "ssm");
  const ids = [...named.keys()].filter((id) => /^m?i-[0-9a-f]+$/.test(id));
  const known = new Map<string, InstanceInformation>();
  let looked = false;
  await findings.look(area, "agents", async () => {
    try {
      for (let start = 0; start < ids.length; start += 50)
        for (const node of await list(reader, [{ Key: "InstanceIds", Values: ids.slice(start, start + 50) }])) known.set(node.InstanceId ?? "", node);
      const { targetsByTag } = cluster;
      if (targetsByTag !== undefined)
        for (const node of await list(
          reader,
          Object.entries(targetsByTag).map(([key, value]) => ({ Key: `tag:${key}`, Values: [value] })),
        ))
          known.set(node.InstanceId ?? "", node);
    } catch (error) {
      if (isDenied(error as Error)) return unknown(errorWords(error as Error), "Allow ssm:DescribeInstanceInformation");
      throw error;
    }
    looked = true;
    const silent = [...new Set([...ids, ...known.keys()])].flatMap((id) => {
      const node = known.get(id);
      const words = agentWords(
        node === undefined ? undefined : { ping: node.PingStatus ?? "unknown", lastPing: node.LastPingDateTime?.getTime(), platform: node.PlatformType ?? "" },
        Date.now(),
      );
      return words === "" ? [] : [`${named.get(id) ?? id}: ${words}`];
    });
    const strange = [...named].filter(([id]) => !ids.includes(id)).map(([id, name]) => `${name}: its address ${id} is no instance id (i-… or mi-…)`);
    const wrong = [...strange, ...silent];
    if (wrong.length > 0) return problem(some(wrong, "; "), "Check that the nodes run, that amazon-ssm-agent runs on them, and the addresses in netcheck.yaml");
    if (known.size === 0) return problem("the cluster has no nodes", "Name targets in netcheck.yaml, or put the tags of targetsByTag on nodes");
    return ok(`${known.size === 1 ? "the agent answers" : `all ${known.size} answer`}`);
  });
  if (!looked || known.size === 0) return;
  const nodes = [...known.values()];
  const nameOf = ({ InstanceId = "" }: InstanceInformation): string => named.get(InstanceId) ?? InstanceId;
  await findings.look(area, "agent versions", () => {
    const old = nodes
      .filter(({ AgentVersion = "0" }) => older(AgentVersion, OLDEST_AGENT))
      .map((node) => `${nameOf(node)} (${node.AgentVersion ?? "unknown"})`);
    if (old.length === 0) return ok(`all are ${OLDEST_AGENT} or newer`);
    return problem(
      `too old, they cannot pass parameters as environment variables: ${some(old)}`,
      "Update the agents: run the document AWS-UpdateSSMAgent on these nodes",
    );
  });
  await findings.look(area, "platforms", () => {
    const others = nodes.filter(({ PlatformType }) => PlatformType !== "Linux").map((node) => `${nameOf(node)} (${node.PlatformType})`);
    return others.length === 0 ? ok("all run Linux") : problem(`not Linux: ${some(others)}`, "Take them out of netcheck.yaml: netcheck examines Linux nodes");
  });
  await findings.look(area, `tag ${tag.key}=${tag.value}`, async () => {
    // the service takes filters by tag and by id only one at a time
    const tagged = new Set((await list(reader, [{ Key: `tag:${tag.key}`, Values: [tag.value] }])).map(({ InstanceId }) => InstanceId));
    const without = nodes.filter(({ InstanceId }) => !tagged.has(InstanceId)).map(nameOf);
    if (without.length === 0) return ok("all nodes carry it");
    return problem(`without it netcheck's role may not send them commands: ${some(without)}`, `Tag these nodes: ${tag.key}=${tag.value}`);
  });
}

async function list(client: SSMClient, Filters: { Key: string; Values: string[] }[]): Promise<InstanceInformation[]> {
  const nodes: InstanceInformation[] = [];
  for await (const page of paginateDescribeInstanceInformation({ client, pageSize: 50 }, { Filters })) nodes.push(...(page.InstanceInformationList ?? []));
  return nodes;
}

/** Whether a version is before another, number by number. */
export function older(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(".").map(Number)) as [number[], number[]];
  for (let i = 0; i < b.length; i++) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return !(difference > 0);
  }
  return false;
}
