import { readFacts } from "../facts/read.ts";
import { Facts } from "../rules/evaluate.ts";
import { unpackCapture } from "./captures.ts";
import { examine, loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, SYSTEM } from "./context.ts";
import { collectEitherWay, tellInstead } from "./fallback.ts";
import type { Place, Ports, ServiceEndpoint, ServicePlace, Target, WorkloadName } from "./ports.ts";
import { clientPath, type NodeFacts, serverPath } from "./svc-path.ts";
import { type ChosenNode, workloadWords } from "./workload.ts";
import { type Findings, workloadMessage } from "./workload-message.ts";

/** The way to a service: the calling node's entries for it, and the serving node's way into the pod. */

/** What is known when the calling node has been diagnosed. */
export interface ServiceLook {
  readonly asked: WorkloadName;
  readonly place: ServicePlace;
  /** The calling node, and the key of its capture. */
  readonly client: Target;
  readonly capture: string;
  readonly server: ChosenNode | undefined;
}

/** Looks at the serving node, too, checks the way to the service on both, and tells the thread. */
export async function tellService(context: Context, incident: string, thread: Place, { asked, place, client, capture, server }: ServiceLook): Promise<void> {
  const { durable, ports, catalogue } = context;
  const one = server !== undefined && server.target.cluster === client.cluster && server.target.name === client.name;
  const collected = server === undefined || one ? undefined : await collectEitherWay(durable, ports, catalogue, incident, server.target, "server");
  if (server !== undefined && collected !== undefined) await tellInstead(context, incident, thread, "instead-server", [{ target: server.target, collected }]);
  await durable.step("tell-service", async () => {
    const findings: Findings[] = [clientPath(place, await factsOf(ports, client, capture))];
    let note = "";
    const onServer = server === undefined ? [] : place.endpoints.filter(({ node }) => isNode(server.target, node));
    if (server !== undefined && one) findings.push(serverPath(onServer, await factsOf(ports, client, capture)));
    else if (server !== undefined && collected?.ok === true) {
      findings.push(serverPath(onServer, await factsOf(ports, server.target, collected.key)));
      note = await verdictOf(context, incident, server.target, collected.key);
    } else if (server !== undefined && collected?.ok === false) {
      const reason = `${server.target.name}, which serves it, was not looked at: ${collected.reason}`;
      findings.push({ table: [], wrong: [], unchecked: [reason] });
    }
    const all: Findings = {
      table: findings.flatMap(({ table }) => table),
      wrong: findings.flatMap(({ wrong }) => wrong),
      unchecked: findings.flatMap(({ unchecked }) => unchecked),
      next: findings.flatMap(({ next }) => next ?? []).join(" "),
    };
    const data = { client: client.name, server: server?.target.name, wrong: all.wrong.length, unchecked: all.unchecked.length };
    await ports.store.record(incident, [auditDraft(ports, "service-checked", SYSTEM, data)]);
    await ports.chat.post(`${incident}/service`, thread, workloadMessage(`The way to the ${workloadWords(asked)}, seen from ${client.name}`, all, note));
    return null;
  });
}

/** A target that stands for this node of the cluster. */
const isNode = ({ name, address }: Target, node: ServiceEndpoint["node"]): boolean => node !== undefined && (node === address || node === name);

async function factsOf(ports: Pick<Ports, "store">, { name, address }: Target, key: string): Promise<NodeFacts> {
  const data = await ports.store.get(key);
  if (data === undefined) throw new Error(`the capture ${key} is not in the store any more`);
  const capture = unpackCapture(data);
  return { name, address, facts: new Facts(capture, readFacts(capture)) };
}

/** Diagnoses the serving node; its fix, if it has one, is offered by a triage of its own. */
async function verdictOf({ ports, catalogue }: Context, incident: string, target: Target, captureKey: string): Promise<string> {
  const { key } = await examine(ports, catalogue, captureKey);
  const { verdict, causes } = await loadDiagnosis(ports, key);
  await ports.store.record(incident, [auditDraft(ports, "diagnosed/server", SYSTEM, { target: target.name, verdict, causes: causes.map(({ rule }) => rule) })]);
  const [cause] = causes;
  if (cause === undefined) return `${target.name}, which serves it: ${verdict === "healthy" ? "no cause found" : verdict}.`;
  return `${target.name}, which serves it, has a likely cause of its own: ${cause.title} (${cause.summary}) Examine that node by its name for the evidence and its fix.`;
}
