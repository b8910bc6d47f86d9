import type { Catalogue } from "../rules/load.ts";
import { collect } from "./collect.ts";
import type { Config } from "./config.ts";
import { auditDraft, type Context, SYSTEM } from "./context.ts";
import type { Collected } from "./keep.ts";
import { noteMessage } from "./note.ts";
import type { Durable, Place, Ports, Target } from "./ports.ts";

/** A cluster's other transport (`fallback`), for a node that the first one could not look at. Only before a fix: what may have run is never asked elsewhere. */
export type OtherWay =
  /** The same node, as the other transport finds it. */
  | { readonly kind: "open"; readonly target: Target }
  /** There is one, but not to this node; why, for people. */
  | { readonly kind: "closed"; readonly transport: string; readonly reason: string };

const WORDS: Readonly<Record<string, string>> = { ssm: "SSM", "debug-pod": "a debug pod", local: "this machine", replay: "a recording" };
const wordsFor = (transport: string): string => WORDS[transport] ?? transport;

/** As Systems Manager names EC2 and hybrid nodes. */
const INSTANCE = /^m?i-[0-9a-f]{8,17}$/;

/**
 * The other way to a target; null if its cluster has none, or this target came by it already. The address there is the configured one (`fallbackAddress`); else
 * that of the node which the cluster knows as the same machine; else, for a target that netcheck.yaml names, its name. Never what a node says of itself.
 * Throws what may pass by itself (`retryable`).
 */
export async function otherWay(ports: Pick<Ports, "config" | "transport">, target: Target): Promise<OtherWay | null> {
  const cluster = (await ports.config()).clusters[target.cluster];
  const transport = cluster?.fallback;
  if (cluster === undefined || transport === undefined || transport === target.transport) return null;
  const closed = (reason: string): OtherWay => ({ kind: "closed", transport, reason });
  try {
    // throws where it is not available
    ports.transport(transport);
    const addresses = await addressesThere(ports, cluster, transport, target);
    const [address] = addresses;
    if (address === undefined) return closed(`netcheck.yaml does not say by which address it finds ${target.name} (fallbackAddress)`);
    if (addresses.length > 1) return closed(`several nodes claim to be this machine: ${addresses.slice(0, 5).join(", ")}`);
    return { kind: "open", target: { ...target, transport, address } };
  } catch (error) {
    if ((error as { retryable?: boolean }).retryable === true) throw error;
    return closed((error as Error).message);
  }
}

async function addressesThere(
  ports: Pick<Ports, "transport">,
  { targets }: Config["clusters"][string],
  transport: string,
  target: Target,
): Promise<readonly string[]> {
  const configured = Object.hasOwn(targets, target.name) ? targets[target.name] : undefined;
  if (configured?.fallbackAddress !== undefined) return [configured.fallbackAddress];
  // only a cluster knows both: the name of its node and the cloud's id of the machine
  const toPods = transport === "debug-pod";
  const nodes = toPods || target.transport === "debug-pod" ? ((await ports.transport("debug-pod").discover?.(target.cluster)) ?? []) : [];
  const same = toPods
    ? nodes.filter(({ machine }) => machine === target.address).map(({ address }) => address)
    : nodes.filter(({ address }) => address === target.address).flatMap(({ machine }) => machine ?? []);
  if (same.length > 0) return same;
  return configured !== undefined && (transport !== "ssm" || INSTANCE.test(target.name)) ? [target.name] : [];
}

/**
 * Looks at a node ({@link collect}) and, where that fails, once more through the cluster's other transport. Both tries are on record.
 * @param phase of the first try; the second is "<phase>-other"
 */
export async function collectEitherWay(
  durable: Durable,
  ports: Ports,
  catalogue: Catalogue,
  incident: string,
  target: Target,
  phase: string,
): Promise<Collected> {
  const first = await collect(durable, ports, catalogue, incident, target, phase);
  if (first.ok) return first;
  let way: OtherWay | null;
  try {
    way = await durable.step(`${phase}-other-way`, async () => {
      const found = await otherWay(ports, target);
      if (found !== null) await ports.store.record(incident, [auditDraft(ports, `fell-back/${phase}`, SYSTEM, { ...onRecord(target, first.reason, found) })]);
      return found;
    });
  } catch (error) {
    return neither(target, first.reason, `another transport could not be chosen: ${(error as Error).message}`);
  }
  if (way === null) return first;
  if (way.kind === "closed") return notTried(target, first.reason, way);
  const second = await collect(durable, ports, catalogue, incident, way.target, `${phase}-other`);
  return joined(target, first.reason, way, second);
}

/** What two tries came to, where the first one failed. */
export function joined(target: Target, reason: string, way: Extract<OtherWay, { kind: "open" }>, second: Collected): Collected {
  if (second.ok) return { ...second, instead: { target: way.target, reason: reason.slice(0, MAX_REASON) } };
  return neither(target, reason, `through ${wordsFor(way.target.transport)}: ${bare(second.reason)}`);
}

/** The same where the other transport leads not to this node. */
export const notTried = (target: Target, reason: string, { transport, reason: why }: Extract<OtherWay, { kind: "closed" }>): Collected =>
  neither(target, reason, `${wordsFor(transport)} could not be tried: ${bare(why)}`);

/** Reasons stand in a step's result, fifty at a time, and are for people. */
const MAX_REASON = 1000;

const neither = (target: Target, reason: string, other: string): Collected => ({
  ok: false,
  reason: `through ${wordsFor(target.transport)}: ${bare(reason).slice(0, MAX_REASON)}; ${other.slice(0, MAX_REASON)}`,
});

/** What the audit trail says of a change of transport. */
export const onRecord = (target: Target, reason: string, way: OtherWay): Record<string, unknown> => ({
  target: target.name,
  from: target.transport,
  problem: reason.slice(0, MAX_REASON),
  ...(way.kind === "open" ? { to: way.target.transport, address: way.target.address } : { notTried: way.transport, why: way.reason.slice(0, MAX_REASON) }),
});

/** Without the transport's own name in front: the sentence has it. */
const bare = (reason: string): string => reason.replace(/^(?:ssm|debug-pod): /, "");

/** Why a node was looked at through another transport, for people; "" if it was not. */
export function insteadWords(target: Target, collected: Collected): string {
  if (!collected.ok || collected.instead === undefined) return "";
  const { target: other, reason } = collected.instead;
  return `Could not look at ${target.name} through ${wordsFor(target.transport)}: ${bare(reason)}; looked through ${wordsFor(other.transport)} instead.`;
}

/**
 * Tells the thread which nodes were looked at through another transport than usual; nothing if none was.
 * @param key names the step and the message: unique in the incident
 */
export async function tellInstead(
  { durable, ports }: Pick<Context, "durable" | "ports">,
  incident: string,
  place: Place,
  key: string,
  looked: readonly { readonly target: Target; readonly collected: Collected }[],
): Promise<void> {
  const lines = looked.map(({ target, collected }) => insteadWords(target, collected)).filter((words) => words !== "");
  if (lines.length === 0) return;
  await durable.step(`tell-${key}`, async () => {
    await ports.chat.post(`${incident}/${key}`, place, noteMessage("information_source", lines.join("\n")));
    return null;
  });
}
