import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { EXEC_REMARK } from "./kubectl-command.ts";
import { readFamily } from "./mask.ts";
import { answerOf } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Services as Cilium has them: what the agent wants, and what is in its BPF maps. One row per frontend and backend.
 *
 *     2    10.96.0.10:53          ClusterIP      1 => 10.244.1.69:53 (active)
 *                                                2 => 10.244.1.109:53 (active)
 */
const Service = z.object({
  line: z.int(),
  /** "agent" (`service list`) or "map" (`bpf lb list`). */
  source: z.enum(["agent", "map"]),
  address: z.string(),
  port: z.int(),
  /** "tcp", "udp", … where shown (from 1.17 on). */
  protocol: z.string().optional(),
  /** "ClusterIP", "NodePort", "LoadBalancer", "ExternalIPs", "HostPort", "LocalRedirect". */
  type: z.string().optional(),
  /** Left out of a frontend without backends. */
  backendAddress: z.string().optional(),
  backendPort: z.int().optional(),
  /** "active", "terminating", "quarantined", "maintenance". */
  backendState: z.string().optional(),
});
const Services = z.object({ rows: z.array(Service) });
type Service = z.infer<typeof Service>;

const ENDPOINT = /^(?:\[([0-9a-fA-FxX*:.]{2,45})\]|(\S{3,64}?)):(\d{1,5})(?:\/([A-Z]{1,8}))?(?:\/[ie])?$/;
// "1    10.96.0.1:443/TCP    ClusterIP      1 => 10.0.0.1:6443/TCP (active)"
const LISTED = /^(?:\d{1,10}\s{1,20})?(\S{9,70})(?:\s{1,20}\([a-z]\))?\s{1,80}([A-Z][A-Za-z]{2,40})(?:\s{1,80}(\d{1,6} => \S.{0,200}))?(?:\s.{0,200})?$/;
const MORE = /^\s{0,200}\d{1,6} => (\S{9,70})(?: \((?:([a-z-]{2,30})|\d{1,10})\))?/;
// "10.96.0.1:443       172.18.0.3:6443 (1) (1)", the frontend: "0.0.0.0:0 (1) (0) [ClusterIP, non-routable]"; from 1.17 on
// "10.96.0.1:443/TCP (1)   172.18.0.3:6443/TCP (1) (1)", with the frontend on each line
const IN_MAP = /^(?:(\S{9,70})(?: \(\d{1,6}\))?)?\s{1,200}(\S{9,70}) (?:\(\d{1,6}\) ?){1,2}(?:\[([A-Za-z, 0-9-]{1,200})\])?/;
const HEADER = /^(?:ID\s+)?Frontend\s+Service Type\s+Backend|^SERVICE ADDRESS\s+BACKEND ADDRESS/;

export const ciliumService = defineFact({
  id: "cilium-service",
  title: "Services as the Cilium agent and its BPF maps have them",
  commands: [{ argv: ["curl", "-sS", "--max-time", "3", "--unix-socket", "/var/run/cilium/cilium.sock", "http://localhost/v1/service"] }],
  byHand: "cilium-dbg service list",
  recognize(argv): View | undefined {
    if (argv[0] === "curl") {
      if (!/cilium\.sock/.test(optionValue(argv, "--unix-socket") ?? "") || !/\/v1\/service\/?$/.test(argv.at(-1) ?? "")) return undefined;
      return { format: "json", complete: true, scope: "agent", rank: 3 };
    }
    if ((argv[0] !== "cilium" && argv[0] !== "cilium-dbg") || argv.includes("--help") || argv.includes("-h")) return undefined;
    const json = optionValue(argv, "-o", "--output") === "json" || argv.includes("-ojson");
    if ((argv[1] === "service" || argv[1] === "svc") && (argv[2] === "list" || argv[2] === "ls")) {
      return { format: json ? "json" : "list", complete: true, scope: "agent", rank: json ? 2 : 1 };
    }
    if (argv[1] === "service" && argv[2] === "get") return { format: json ? "json" : "list", complete: false, scope: "agent", rank: 0 };
    const flags = argv.some((word) => /^--(?:backends|frontends|revnat|affinity|source-ranges|maglev)/.test(word));
    if (argv[1] === "bpf" && argv[2] === "lb" && argv[3] === "list" && !json && !flags) return { format: "map", complete: true, scope: "map", rank: 1 };
    return undefined;
  },
  schema: Services,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const rows: Service[] = [];
    if (view.format === "json") {
      for (const { value, line, text: quote } of jsonElements(answerOf(text), unparsed)) {
        const found = fromJson(value, line, quote);
        if (found.length === 0) unparsed.add(line, quote);
        rows.push(...found);
      }
      return unparsed.with({ rows });
    }
    let frontend: Omit<Service, "line"> | undefined;
    for (const { line, text: raw } of lines(text)) {
      if (HEADER.test(raw.trimStart()) || isPromptLine(raw) || EXEC_REMARK.test(raw)) continue;
      const mapped = view.format === "map" ? IN_MAP.exec(raw) : null;
      const listed = view.format === "list" ? LISTED.exec(raw) : null;
      const shown = endpointOf(mapped?.[1] ?? listed?.[1] ?? "");
      if (shown !== undefined) {
        const type = listed?.[2] ?? mapped?.[3]?.split(",")[0];
        const same = frontend?.address === shown.address && frontend.port === shown.port && frontend.protocol === shown.protocol;
        frontend = {
          source: view.format === "map" ? "map" : "agent",
          address: shown.address,
          port: shown.port,
          ...present({ protocol: shown.protocol, type: type ?? (same ? frontend?.type : undefined) }),
        };
      }
      const more = view.format === "list" ? MORE.exec(listed === null ? raw : (listed[3] ?? "")) : null;
      const backend = endpointOf(mapped?.[2] ?? more?.[1] ?? "");
      const slotZero = mapped?.[3] !== undefined || (backend?.port === 0 && view.format === "map");
      if (frontend === undefined || (shown === undefined && backend === undefined)) unparsed.add(line, raw);
      else if (backend === undefined || slotZero) {
        if (shown !== undefined && view.format === "list") rows.push({ line, ...frontend });
        // the entry of slot 0 in a map is the frontend itself
        if (slotZero && frontend.type === undefined) frontend = { ...frontend, ...present({ type: mapped?.[3]?.split(",")[0] }) };
      } else {
        const state = more?.[2];
        rows.push({ line, ...frontend, backendAddress: backend.address, backendPort: backend.port, ...present({ backendState: state }) });
      }
    }
    return unparsed.with({ rows });
  },
});

function endpointOf(printed: string): { address: string; port: number; protocol?: string } | undefined {
  const match = ENDPOINT.exec(printed);
  const address = match?.[1] ?? match?.[2] ?? "";
  if (match === null || readFamily(address, "ipv4") === undefined) return undefined;
  return { address, port: Number(match[3]), ...present({ protocol: match[4]?.toLowerCase() }) };
}

/** `{"status":{"realized":{"frontend-address":{…},"backend-addresses":[{…}],"flags":{"type":"ClusterIP"}}}}` */
function fromJson(value: Record<string, unknown>, line: number, text: string): Service[] {
  const status = value["status"] as Record<string, unknown> | null | undefined;
  const service = (status?.["realized"] ?? value["spec"] ?? value) as Record<string, unknown> | null;
  const frontend = service?.["frontend-address"] as Record<string, unknown> | null | undefined;
  const address = asString(frontend?.["ip"]);
  const port = asInteger(frontend?.["port"]);
  if (address === undefined || port === undefined) return [];
  const type = asString((service?.["flags"] as Record<string, unknown> | null | undefined)?.["type"]);
  const base = { line, text, source: "agent" as const, address, port, ...present({ protocol: asString(frontend?.["protocol"])?.toLowerCase(), type }) };
  const backends = Array.isArray(service?.["backend-addresses"]) ? (service["backend-addresses"] as unknown[]) : [];
  const rows = backends.flatMap((item) => {
    const backend = item as Record<string, unknown> | null;
    const optional = { backendAddress: asString(backend?.["ip"]), backendPort: asInteger(backend?.["port"]), backendState: asString(backend?.["state"]) };
    return optional.backendAddress === undefined ? [] : [{ ...base, ...present(optional) }];
  });
  return rows.length > 0 ? rows : [base];
}
