import { z } from "zod";
import { rulesOf } from "./iptables-chains.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * A chain FORWARD of iptables, and how many of its rules may accept a new connection of a pod, by what stands in FORWARD alone: of a pasted FORWARD the chains that
 * it jumps to are not known.
 */
export const ForwardChain = z.object({
  line: z.int(),
  family: z.enum(["ipv4", "ipv6"]),
  backend: z.enum(["nft", "legacy", "unknown"]),
  policy: z.string().optional(),
  complete: z.boolean(),
  rules: z.int(),
  /** Rules but jumps to chains of Docker and kube-proxy, accepts of Docker's interfaces, accepts of other states than NEW, and what logs or refuses packets to the pods. */
  opening: z.int(),
  /** kube-proxy has its jump there. */
  kubeProxy: z.boolean(),
});

/** Chains that by themselves accept no new connection of a pod. */
const OTHERS = /^(?:DOCKER|DOCKER-.{1,40}|KUBE-(?:FORWARD|SERVICES|EXTERNAL-SERVICES|PROXY-FIREWALL|NODEPORTS))$/;
/** Docker leaves this one to people, who accept there what Docker does not know. */
const USERS = "DOCKER-USER";
const LOGS = /^(?:LOG|NFLOG)$/;
/** Of packets to the pods; of others they may be what drops them, and not the policy. Weave's policy accepts only what is for a pod. */
const REFUSES = /^(?:DROP|REJECT|WEAVE-NPC)$/;
const POD_BRIDGE = /^(?:weave|cni0|cbr0|kube-bridge)$/;
const DOCKER = /^(?:docker\d|docker_gwbridge|br-[0-9a-f]{12})$/;

/** Every chain FORWARD of the table filter. */
export function forwardChains(iptables: Iptables | undefined): z.infer<typeof ForwardChain>[] {
  const chains = (iptables?.chains ?? []).filter((chain) => chain.name === "FORWARD" && chain.table === "filter");
  const rows = chains.length === 0 ? [] : rulesOf(iptables?.rows ?? [], "FORWARD").filter((row) => row.table === "filter");
  return chains.map((chain) => {
    const { family, backend, complete } = chain;
    const inside = rows.filter((row) => row.family === family && row.backend === backend);
    const kubeProxy = inside.some((row) => row.target === "KUBE-FORWARD");
    const unseen = iptables?.chains.every((other) => other.name !== USERS || other.family !== family || other.backend !== backend) ?? true;
    const opening = inside.filter((row, i) => mayAccept(row) || (unseen && row.target === USERS && keepsSome(row, inside[i + 1]))).length;
    return { ...placed(chain), family, backend, complete, rules: inside.length, opening, kubeProxy, ...present({ policy: chain.policy }) };
  });
}

/** More packets went into the chain that a rule jumps to than came to the next rule: it accepts some. What it drops would be missing as well, and is no more for the policy. */
function keepsSome(row: IptablesRow, next: IptablesRow | undefined): boolean {
  const all = ({ inInterface, outInterface, states, protocol, source, destination }: IptablesRow): boolean =>
    inInterface === undefined && outInterface === undefined && states.length === 0 && protocol === "all" && source === undefined && destination === undefined;
  return next !== undefined && all(row) && all(next) && (next.packets ?? Infinity) < (row.packets ?? 0);
}

function mayAccept({ target = "", inInterface = "", outInterface = "", outInterfaceNegated, states, statesNegated }: IptablesRow): boolean {
  if (OTHERS.test(target) || LOGS.test(target)) return false;
  if (REFUSES.test(target) && POD_BRIDGE.test(outInterface) && !outInterfaceNegated) return false;
  const ofOthers = DOCKER.test(inInterface) || DOCKER.test(outInterface) || (states.length > 0 && !statesNegated && !states.includes("NEW"));
  return target !== "ACCEPT" || !ofOthers;
}
