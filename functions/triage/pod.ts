import type { Address } from "../facts/address.ts";
import type { Capture } from "../facts/capture.ts";
import type { Row } from "../facts/fact.ts";
import { addressBits } from "../facts/ip-bits.ts";
import type { Link } from "../facts/link.ts";
import type { Neighbor } from "../facts/neighbor.ts";
import { readFacts } from "../facts/read.ts";
import type { Route } from "../facts/route.ts";
import { diagnose } from "../rules/diagnose.ts";
import type { Diagnosis } from "../rules/diagnosis.ts";
import { Facts } from "../rules/evaluate.ts";
import type { Catalogue } from "../rules/load.ts";
import { canonical, sha256 } from "./audit.ts";
import { unpackCapture } from "./captures.ts";
import { collect } from "./collect.ts";
import { auditDraft, type Context, SYSTEM } from "./context.ts";
import { noteMessage } from "./note.ts";
import type { Place, PodPlace, Ports, Target, WorkloadName } from "./ports.ts";
import { workloadWords } from "./workload.ts";
import { type Findings, type Wrong, workloadMessage } from "./workload-message.ts";

/** The inside of a pod: a second capture of the incident, of the pod's own network namespace, beside the node's. */

/** The collection runbook for it. */
const RUNBOOK = "pod";
const MAX_ROWS = 12;
/** Runtime classes without a kernel of their own. */
const PLAIN = /^(?:runc|crun|nvidia)/;
/** What the kernel puts into every network namespace once a node has loaded the module of such tunnels; switched off, it is nobody's. */
const FALLBACK = /^(?:tunl0|sit0|gre0|gretap0|erspan0|ip_vti0|ip6_vti0|ip6tnl0|ip6gre0)$/;

/** Devices that a program in the pod made for itself: nothing on the node is at their other end, and they may be idle. */
const INNER: ReadonlySet<string> = new Set(["bridge", "dummy", "ifb", "tun", "vxlan", "wireguard"]);
/** KubeVirt's, by which a virtual machine takes the pod's address and routes over. */
const MACHINE = /^k6t-/;
const LOOPBACK = /^(?:127\.|::1$)/;
/** All that is not in another route; the two halves come before a default route. */
const DEFAULTS: ReadonlySet<string> = new Set(["0.0.0.0/0", "0.0.0.0/1", "::/0", "::/1"]);

/**
 * Looks at the network inside a pod and tells the thread. Never throws for what the node says: a pod that cannot be entered costs only this message.
 * @param target its node, by the way that has just led there
 */
export async function tellPod(context: Context, incident: string, thread: Place, target: Target, asked: WorkloadName, place: PodPlace): Promise<void> {
  const { durable, ports, catalogue } = context;
  const words = workloadWords(asked);
  if (place.hostNetwork) {
    await durable.step("tell-pod", async () => {
      const text = `The ${words} uses the node's own network (hostNetwork): what was said about ${target.name} holds inside the pod, too.`;
      await ports.chat.post(`${incident}/pod`, thread, noteMessage("information_source", text));
      return null;
    });
    return;
  }
  const collected = await collect(durable, ports, catalogue, incident, target, "pod", { runbook: RUNBOOK, parameters: { uid: place.uid }, name: words });
  await durable.step("tell-pod", async () => {
    const title = `Inside the ${words}`;
    if (!collected.ok) {
      const unchecked = [`The network inside the pod was not looked at: ${collected.reason}. That says nothing about it`];
      await ports.chat.post(`${incident}/pod`, thread, workloadMessage(title, { table: containers(place), wrong: [], unchecked }));
      return null;
    }
    const data = await ports.store.get(collected.key);
    if (data === undefined) throw new Error(`the capture ${collected.key} is not in the store any more`);
    const capture = unpackCapture(data);
    const diagnosis = await examinePod(ports, catalogue, incident, capture, collected.key);
    const seen = findingsOf(capture, diagnosis, place);
    const note = `Seen in the pod's network namespace on ${target.name}; ${diagnosis.stats.rules - diagnosis.unchecked.length} of ${diagnosis.stats.rules} rules that hold inside a pod were decided. Nothing is fixed inside a pod.`;
    await ports.chat.post(`${incident}/pod`, thread, workloadMessage(title, seen, note));
    return null;
  });
}

/** Diagnoses the pod's capture by the rules of its runbook and keeps that. Fixes are for nodes: none is bound to what was seen in a pod. */
async function examinePod(
  ports: Pick<Ports, "store" | "now">,
  catalogue: Catalogue,
  incident: string,
  capture: Capture,
  captureKey: string,
): Promise<Diagnosis> {
  const found = diagnose(capture, catalogue, captureKey, () => ports.now().getTime());
  const diagnosis: Diagnosis = { ...found, causes: found.causes.map(({ fix: _fix, fixProblem: _problem, ...cause }) => cause) };
  await ports.store.put(captureKey.replace(/^captures\//, "diagnoses/"), new TextEncoder().encode(JSON.stringify(diagnosis)));
  const data = { verdict: diagnosis.verdict, causes: diagnosis.causes.map(({ rule }) => rule), diagnosis: sha256(canonical(diagnosis)) };
  await ports.store.record(incident, [auditDraft(ports, "diagnosed/pod", SYSTEM, data)]);
  return diagnosis;
}

/** What a pod's capture shows: what it has, what is wrong with it, and what was not seen. */
export function findingsOf(capture: Capture, diagnosis: Pick<Diagnosis, "causes" | "symptoms" | "risks" | "unchecked">, place: PodPlace): Findings {
  const facts = new Facts(capture, readFacts(capture));
  const unchecked: string[] = [];
  /** Rows of a fact; undefined if it was not read, which is then told once. */
  const rows = <T>(id: string): readonly (T & Row)[] | undefined => {
    const reading = facts.reading(id);
    if (reading?.status === "read") return (reading.value as { rows: (T & Row)[] }).rows;
    unchecked.push(`${id}: ${reading?.reason ?? "it was not collected"}`);
    return undefined;
  };
  const proof = (...from: readonly Row[]) => from.flatMap((row) => facts.quote(row) ?? []);
  const addresses = rows<Address>("address");
  const links = rows<Link>("link");
  const { runtimeClass } = place;
  const sandboxed = runtimeClass !== undefined && !PLAIN.test(runtimeClass);
  const machine = links?.find((row) => MACHINE.test(row.interface));
  /** What is missing here: in a sandbox it may be where netcheck does not see it. */
  const missing = (what: string, evidence: Wrong["evidence"]): void => {
    if (machine !== undefined) unchecked.push(`${what} A virtual machine may have taken it over (${machine.interface}), so this may be meant`);
    else if (!sandboxed) wrong.push({ what, evidence });
    else unchecked.push(`${what} Its runtime class ${runtimeClass} may be a sandbox that has taken it over (as gVisor does), so this may be meant`);
  };

  const table = [...containers(place)];
  const wrong: Wrong[] = [...diagnosis.causes, ...diagnosis.symptoms, ...diagnosis.risks].map(({ title, summary, evidence }) => ({
    what: `${title}: ${summary}`,
    evidence,
  }));

  const outer = (links ?? []).filter((row) => row.interface !== "lo" && (row.up || !FALLBACK.test(row.interface)));
  for (const { interface: name, up, carrier, mtu, peer } of outer.slice(0, MAX_ROWS)) {
    const own = (addresses ?? []).filter((row) => row.interface === name && row.scope !== "link").map((row) => `${row.address}/${row.prefixLength ?? "?"}`);
    const state = up ? (carrier ? "up" : "up, no carrier") : "down";
    table.push(`interface  ${name}${peer === undefined ? "" : `@${peer}`}  ${own.join(" ") || "no address"}  mtu ${mtu ?? "?"}  ${state}`);
  }
  if (links !== undefined && outer.length === 0)
    wrong.push({ what: "The pod has no interface but lo: the CNI plugin has not set it up, or has taken it away.", evidence: [] });
  const loopback = links?.find((row) => row.interface === "lo");
  if (loopback !== undefined && !loopback.up) missing("lo in the pod is down: its containers cannot reach each other on 127.0.0.1.", proof(loopback));
  const holds = (name: string): boolean => addresses === undefined || addresses.some((row) => row.interface === name && row.scope !== "link");
  // a second device without an address may wait for a program that drives it itself
  const idle = ({ interface: name, up }: Link): boolean => !up && !holds(name) && outer.some((row) => row.interface !== name && holds(row.interface));
  const alone = ({ interface: name, up, peer }: Link): boolean =>
    up && peer === undefined && !(addresses ?? []).some((row) => row.interface === name && place.addresses.includes(row.address));
  for (const link of outer.filter((row) => (!row.up || !row.carrier) && !INNER.has(row.kind ?? "") && !idle(row) && !alone(row)))
    wrong.push({
      what: `${link.interface} in the pod ${link.up ? "has no carrier: its other end on the node is down or gone" : "is down"}.`,
      evidence: proof(link),
    });
  // an address of IPv6 may be written in several ways
  const has = (wanted: string): boolean => (addresses ?? []).some(({ address }) => address === wanted || addressBits(address) === addressBits(wanted));
  for (const address of addresses === undefined ? [] : place.addresses.filter((one) => !has(one)))
    missing(
      `The cluster says that the pod has ${address}, and no interface in it has that address.`,
      proof(...(addresses ?? []).filter(({ interface: name }) => name !== "lo")),
    );

  const routes = rows<Route>("route");
  const main = (routes ?? []).filter(({ table: name, type }) => name === "main" && type === "unicast");
  for (const { prefix, gateway, interface: name, mtu } of main.slice(0, MAX_ROWS))
    table.push(
      `route      ${prefix}${gateway === undefined ? "" : ` via ${gateway}`}${name === undefined ? "" : ` dev ${name}`}${mtu === undefined ? "" : ` mtu ${mtu}`}`,
    );
  if (main.length > MAX_ROWS) table.push(`           … ${main.length - MAX_ROWS} more routes`);
  const defaults = main.filter(({ prefix }) => DEFAULTS.has(prefix));
  const others = main.filter(({ gateway }) => gateway !== undefined);
  if (routes !== undefined && defaults.length === 0 && facts.reading("route")?.complete === true) {
    if (others.length === 0) missing("The pod has no default route: it reaches nothing outside of its own subnet.", proof(...main));
    else
      unchecked.push(
        `The pod has no default route, only routes to ${others
          .slice(0, 4)
          .map(({ prefix }) => prefix)
          .join(", ")}: whether it is meant to reach nothing else is not known`,
      );
  }
  // a listing without any route of IPv6 may be one of IPv4 alone
  else if (
    place.addresses.some((address) => address.includes(":") && has(address)) &&
    !defaults.some(({ prefix }) => prefix.includes(":")) &&
    (routes ?? []).some(({ prefix, table: name }) => name === "main" && prefix.includes(":")) &&
    !others.some(({ prefix }) => prefix.includes(":")) &&
    facts.reading("route")?.complete === true
  )
    missing("The pod has an IPv6 address and no default route of IPv6: with IPv6 it reaches nothing outside of its own subnet.", proof(...main));

  const neighbors = rows<Neighbor>("neighbor");
  for (const gateway of new Set(defaults.flatMap((row) => row.gateway ?? []))) {
    const ways = defaults.filter((row) => row.gateway === gateway).map((row) => row.interface);
    const entry = neighbors?.find((row) => row.address === gateway && (ways.includes(row.interface) || ways.includes(undefined)));
    table.push(`gateway    ${gateway}  ${entry === undefined ? "not spoken to lately" : `${entry.state}${entry.mac === undefined ? "" : `  ${entry.mac}`}`}`);
    if (entry !== undefined && (entry.state === "FAILED" || entry.state === "INCOMPLETE"))
      wrong.push({ what: `The pod asked for its gateway ${gateway} and got no answer (${entry.state}).`, evidence: proof(entry) });
  }

  const sockets = rows<{ protocol: string; state: string; address: string; port?: number; process?: string }>("socket");
  const listening = (sockets ?? []).filter(({ state, protocol }) => state === "LISTEN" || (protocol === "udp" && state === "UNCONN"));
  const resolv = facts.reading("resolv-conf");
  if (resolv?.status === "read") {
    const { nameservers, files } = resolv.value as { nameservers: ({ address: string } & Row)[]; files: { search: string[]; options: string[] }[] };
    table.push(`dns        ${nameservers.map(({ address }) => address).join(" ") || "no nameserver"}`);
    for (const { search, options } of files.slice(0, 1)) {
      if (search.length > 0) table.push(`search     ${search.slice(0, 8).join(" ")}`);
      if (options.length > 0) table.push(`options    ${options.slice(0, 8).join(" ")}`);
    }
    // of a pod there is this one file
    const cut = capture.outputs.some(({ command, truncated }) => command.includes("resolv.conf") && truncated);
    if (nameservers.length === 0 && (resolv.complete || (files.length > 0 && !cut)))
      wrong.push({ what: "The pod's resolv.conf names no nameserver: no name resolves in it.", evidence: [] });
    // 15053: Istio's agent answers what is sent to port 53
    const answers = listening.some(({ protocol, port }) => protocol === "udp" && (port === 53 || port === 15_053));
    if (nameservers.length > 0 && nameservers.every(({ address }) => LOOPBACK.test(address)) && !answers && facts.reading("socket")?.complete === true)
      missing(
        `The pod asks ${nameservers[0]?.address} for names, which is its own loopback, and nothing in it listens there: no name resolves in it. The kubelet has handed it the node's own resolver (see resolvConf of the kubelet).`,
        proof(...nameservers),
      );
  } else unchecked.push(`resolv.conf: ${resolv?.reason ?? "it was not collected"}`);

  for (const { protocol, address, port, process } of listening.slice(0, MAX_ROWS))
    table.push(`listens    ${protocol} ${address}:${port ?? "*"}${process === undefined ? "" : `  ${process}`}`);
  if (sockets !== undefined && listening.length === 0 && !sandboxed) table.push("listens    on nothing");
  unchecked.push(...diagnosis.unchecked.map(({ rule, reason }) => `${rule}: ${reason}`));
  return { table, wrong, unchecked };
}

const containers = ({ containers: all }: PodPlace): readonly string[] =>
  all.map(({ name, ready, restarts, state }) => `container  ${name}  ${state}${ready ? "" : ", not ready"}${restarts === 0 ? "" : `, ${restarts} restarts`}`);
