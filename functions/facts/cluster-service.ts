import { z } from "zod";
import { optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { elementsOf, isTableHeader, type KubeField, type KubeObject, kindInRow, kubeObjects } from "./kube-list.ts";
import { namedWords } from "./kubectl-command.ts";
import { isPrompt } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Services with their NodePorts, and their endpoints, as people paste them. netcheck itself never asks the cluster.
 *
 *     NAMESPACE   NAME    TYPE       CLUSTER-IP   EXTERNAL-IP   PORT(S)                      AGE
 *     ingress     nginx   NodePort   10.43.7.12   <none>        80:30254/TCP,443:31443/TCP   3d
 */
const NodePort = z.object({
  line: z.int(),
  name: z.string(),
  /** A list of all namespaces tells, or the command. */
  namespace: z.string().optional(),
  /** "tcp", "udp" or "sctp". */
  protocol: z.string(),
  /** Of the nodes. */
  port: z.int(),
});
/** An address at which a service is offered: its own, an external one, that of a load balancer. */
const Address = z.object({
  line: z.int(),
  name: z.string(),
  namespace: z.string().optional(),
  address: z.string(),
  /** "tcp", "udp" or "sctp". */
  protocol: z.string(),
  /** Of the service. */
  port: z.int(),
  /** True of one of `externalIPs`, which somebody wrote into the service; a load balancer has given its own. */
  external: z.boolean().optional(),
});
/**
 *     NAME         ENDPOINTS             AGE
 *     kubernetes   192.168.57.7:6443     10d
 */
const Endpoint = z.object({
  line: z.int(),
  /** The service's; of an EndpointSlice without the five letters that Kubernetes adds. */
  name: z.string(),
  namespace: z.string().optional(),
  address: z.string(),
  port: z.int().optional(),
  /** The table names some of the service's endpoints only. */
  more: z.boolean().optional(),
  /** How many there are then in all, each port of each address counted: "+ 3 more..." behind three of them. */
  total: z.int().optional(),
});
const Services = z.object({ nodePorts: z.array(NodePort), addresses: z.array(Address), endpoints: z.array(Endpoint) });
type Services = z.infer<typeof Services>;

const KIND = /^(?:svc|services?|ep|endpoints?|endpointslices?(?:\.discovery\.k8s\.io)?)$/;
/** What the service of the cluster's DNS selects, wherever it is installed: all its pods are listed. */
const SELECTS_DNS = /^k8s-app==?kube-dns$/;
/** `coredns-7b98449c4-2hf7k   1/1     Running   0          11m   10.42.1.18   n1     <none>           <none>` */
const DNS_POD =
  /^(?:kube-system\s{1,40})?[a-z0-9][a-z0-9.-]{0,252}\s{1,80}\d{1,4}\/\d{1,4}\s{1,20}(?!Completed|Evicted|Error |Failed)[A-Z]\S{1,40}\s{1,40}\d{1,9}(?: \(\S{1,20} ago\))?\s{1,40}\S{1,16}\s{1,40}([\da-f.:]{3,45})\s/;
const HEADER =
  /^(?:NAMESPACE\s+)?NAME\s+(?:TYPE|LABELS|CLUSTER[-_]IP|ENDPOINTS|ADDRESSTYPE)\b|^No resources found|^Warning: v1 Endpoints is deprecated|^\.\.\.$|^Error from server/;
const TYPE = /^(?:ClusterIP|NodePort|LoadBalancer|ExternalName)$/;
const NAME = /^(?:[a-z]{1,20}(?:\.discovery\.k8s\.io)?\/)?([a-z0-9][a-z0-9.-]{0,252})$/;
const PORT = /^(\d{1,5})(?::(\d{1,5}))?\/(TCP|UDP|SCTP)$/;
/** The API shows three of them: "10.1.0.7:53,10.1.0.9:53,10.1.0.7:9153 + 3 more...". */
const ENDPOINT = /^\[?([\d.]{7,15}|[\da-f:]{2,39})\]?:(\d{1,5})$/;
const AGE = /^(?:[\ddhmsy]{1,16}|<invalid>|<unknown>)$/;
/** What Kubernetes adds to the name of a service's slice: letters and digits of which no word can be made. */
const SLICE_SUFFIX = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;
/** A service has no more ports than this in a table that is worth reading. */
const MAX_PARTS = 200;

export const clusterService = defineFact({
  id: "cluster-service",
  title: "Services of the cluster with their NodePorts, and their endpoints (pasted only)",
  commands: [],
  recognize(argv, _, pipe = ""): View | undefined {
    const [program, verb] = argv;
    if (program !== "kubectl" || !(verb === "get" || verb === "describe")) return undefined;
    const kinds = namedWords(argv)[0]?.split(",", 5);
    const output = optionValue(argv, "-o");
    const chosen = optionValue(argv, "-l");
    if (verb === "get" && output === "wide" && pipe === "" && /^pods?$/.test(kinds?.join() ?? "") && chosen !== undefined && SELECTS_DNS.test(chosen))
      return argv.some((word) => word.startsWith("--field-selector")) ? undefined : { format: "pods", complete: false, scope: chosen, rank: 0, hint: true };
    const isOne = (kind: string): boolean => KIND.test(kind.split("/", 1)[0] as string);
    if (verb === "get" && pickedFrom(argv, pipe) !== undefined)
      return { format: "picked", complete: false, scope: argv.slice(1).join(" "), rank: 1, hint: true };
    if (
      !(kinds?.every(isOne) === true || (verb === "get" && kinds?.some((kind) => kind === "all" || isOne(kind)))) ||
      (output !== undefined && !/^(?:wide|json|yaml)$/.test(output))
    )
      return undefined;
    if (verb === "get" && (output === "json" || output === "yaml")) return { format: "objects", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
    return { format: verb === "describe" ? "description" : "table", complete: false, scope: argv.slice(1).join(" "), rank: 1 };
  },
  schema: Services,
  parse({ text, argv, view, pipe = "" }) {
    const unparsed = new UnparsedLines();
    const found: Services = { nodePorts: [], addresses: [], endpoints: [] };
    const asked = optionValue(argv, "-n");
    const picked = view.format === "picked" ? pickedFrom(argv, pipe) : undefined;
    if (picked !== undefined) {
      const owner = present({ name: picked.name, namespace: asked, more: picked.all ? undefined : (true as const) });
      for (const { line, text: content } of lines(text))
        for (const word of content.split(/[\s,"[\]]{1,40}/, MAX_PARTS))
          if (addressFamily(word) !== undefined) found.endpoints.push({ line, ...owner, address: word });
      return unparsed.with(found);
    }
    if (view.format === "objects") return unparsed.with(objectsOf(text, asked));
    if (view.format === "description") return unparsed.with(fromDescription(text, asked));
    if (view.format === "pods") return unparsed.with({ ...found, endpoints: [...lines(text)].flatMap(({ line, text: content }) => ofPod(line, content)) });
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      const kind = kindInRow(content);
      if ((kind !== undefined && !KIND.test(kind)) || isTableHeader(content) || HEADER.test(content) || isPrompt(raw)) continue;
      const row = fromTable(content.split(/\s+/, 12), line, asked);
      if (row === undefined) unparsed.add(line, raw);
      found.nodePorts.push(...(row?.nodePorts ?? []));
      found.addresses.push(...(row?.addresses ?? []));
      found.endpoints.push(...(row?.endpoints ?? []));
    }
    return unparsed.with(found);
  },
});

/**
 * The one service of which a command picks the endpoints' addresses, and whether all of them: `kubectl get ep web -o jsonpath='{.subsets[*].addresses[*].ip}'`,
 * `kubectl get endpointslice -l kubernetes.io/service-name=web -o json | jq -r '.items[].endpoints[].addresses[]'`.
 */
function pickedFrom(argv: readonly string[], pipe: string): { readonly name: string; readonly all: boolean } | undefined {
  const [kind = "", ...rest] = namedWords(argv).flatMap((word, i) => (i === 0 ? word.split("/", 2) : [word]));
  const output = optionValue(argv, "-o") ?? "";
  const template = output.startsWith("jsonpath=") ? output : output === "json" ? (PICKED.exec(pipe)?.[1] ?? "") : "";
  const ofSlice = /^endpointslices?(?:\.discovery\.k8s\.io)?$/.test(kind);
  if (!(ofSlice || /^(?:ep|endpoints?)$/.test(kind)) || !/addresses\[[*\d]{0,4}\]/.test(template) || template.includes("notReady")) return undefined;
  const label = SLICES_OF.exec(optionValue(argv, "-l") ?? "")?.[1];
  const name = label ?? (rest.length === 1 ? (ofSlice ? rest[0]?.replace(SLICE_SUFFIX, "") : rest[0]) : undefined);
  return name === undefined || !NAME.test(name) ? undefined : { name, all: !/\[\d/.test(template) && !/select|limit|first/.test(template) };
}
const PICKED = /^jq (?:-\w{1,3} ){1,3}(.{1,400})$/;
const SLICES_OF = /^kubernetes\.io\/service-name==?([a-z0-9-]{1,63})$/;

/** The address of a pod of the cluster's DNS: one of the service's endpoints, once it is ready. Without one that has ended. */
function ofPod(line: number, content: string): Services["endpoints"] {
  const [, address] = DNS_POD.exec(content) ?? [];
  return address === undefined || addressFamily(address) === undefined ? [] : [{ line, name: "kube-dns", namespace: "kube-system", address }];
}

/** An object of which something is missing would have too few endpoints. */
function objectsOf(text: string, asked: string | undefined): Services {
  const found = kubeObjects(text).objects.flatMap((object) => (object.cut === true ? [] : [fromObject(object, asked)]));
  return {
    nodePorts: found.flatMap((one) => one.nodePorts),
    addresses: found.flatMap((one) => one.addresses),
    endpoints: found.flatMap((one) => one.endpoints),
  };
}

/** A service, its endpoints, or a slice of them, as an object; as in the tables, of a slice those that are not ready, too. */
function fromObject(object: KubeObject, asked: string | undefined): Services {
  const value = (path: string): string | undefined => object.fields.get(path)?.value;
  const owner = { name: value("metadata.name") ?? "", ...present({ namespace: value("metadata.namespace") ?? asked }) };
  const ports = elementsOf(object, "spec.ports").flatMap((fields) => {
    const port = fields.get("port");
    return port === undefined ? [] : [{ port, nodePort: fields.get("nodePort"), protocol: (fields.get("protocol")?.value ?? "TCP").toLowerCase() }];
  });
  const single = [object.fields.get("spec.clusterIP"), object.fields.get("spec.loadBalancerIP")];
  const several = ["spec.clusterIPs", "spec.externalIPs"].flatMap((list) => elementsOf(object, list).map((fields) => fields.get("")));
  const balancers = elementsOf(object, "status.loadBalancer.ingress").map((fields) => fields.get("ip"));
  const offered = new Map([...single, ...several, ...balancers].flatMap((field) => (field === undefined ? [] : [[field.value, field.line] as const])));
  const external = new Set(elementsOf(object, "spec.externalIPs").map((fields) => fields.get("")?.value));
  const slice = value("metadata.labels.kubernetes.io/service-name");
  const subsets = elementsOf(object, "subsets").flatMap((fields) => {
    const ports = elementsOf({ fields }, "ports");
    return elementsOf({ fields }, "addresses").flatMap((address) => endpointsAt(address.get("ip"), ports));
  });
  const shared = elementsOf(object, "ports");
  const slices = elementsOf(object, "endpoints").flatMap((fields) =>
    elementsOf({ fields }, "addresses").flatMap((address) => endpointsAt(address.get(""), shared)),
  );
  return {
    nodePorts: ports.flatMap(({ nodePort, protocol }) =>
      nodePort === undefined ? [] : [{ line: nodePort.line, ...owner, protocol, port: Number(nodePort.value) }],
    ),
    addresses: [...offered].flatMap(([address, line]) =>
      addressFamily(address) === undefined
        ? []
        : ports.map(({ port, protocol }) => ({
            line,
            ...owner,
            address,
            protocol,
            port: Number(port.value),
            ...(external.has(address) ? { external: true } : {}),
          })),
    ),
    endpoints: [...subsets, ...slices].map((endpoint) => ({ ...owner, ...endpoint, ...present({ name: slice }) })),
  };
}

/** An address with each port of its list. */
function endpointsAt(address: KubeField | undefined, ports: readonly Map<string, KubeField>[]): { line: number; address: string; port?: number }[] {
  if (address === undefined || addressFamily(address.value) === undefined) return [];
  const own = { line: address.line, address: address.value };
  const numbers = ports.flatMap((fields) => fields.get("port")?.value ?? []);
  return numbers.length === 0 ? [own] : numbers.map((port) => ({ ...own, port: Number(port) }));
}

/** `Name: web`, `Namespace: shop`, `IP: 10.43.0.9`, `Port: http 80/TCP`, `NodePort: http 30080/TCP`, `Endpoints: 10.42.1.7:8080`, of one service or of several. All other lines are about other things. */
function fromDescription(text: string, asked: string | undefined): Services {
  const found: Services = { nodePorts: [], addresses: [], endpoints: [] };
  let [name, namespace] = ["", asked];
  let offered: { line: number; address: string; external?: boolean }[] = [];
  // of endpoints, whose ports stand below their addresses, and of slices, where it is the other way round
  let [listed, ports, slice]: [{ line: number; address: string }[], number[], string | undefined] = [[], [], undefined];
  const flush = (): void => {
    const service = slice ?? name;
    for (const one of listed)
      for (const port of ports.length === 0 ? [undefined] : ports)
        found.endpoints.push({ ...one, ...present({ name: service, namespace, port }) } as Services["endpoints"][number]);
    [listed, ports] = [[], []];
  };
  for (const { line, text: content } of lines(text)) {
    const addresses = DESCRIBED_ADDRESSES.exec(content);
    const row = DESCRIBED_ROW.exec(content)?.[1];
    slice = OF_SERVICE.exec(content)?.[1] ?? slice;
    if (row !== undefined) ports.push(Number(row));
    if (addresses !== null) {
      if (addresses[1] === undefined && ports.length > 0) flush();
      const told = (addresses[2] ?? "").split(",", MAX_PARTS).filter((word) => addressFamily(word) !== undefined);
      listed.push(...told.map((address) => ({ line, address })));
    }
    const [, key, rest = ""] = DESCRIBED.exec(content) ?? [];
    const value = rest.trim();
    const owner = present({ line, name, namespace });
    if (key === "Name") {
      flush();
      [name, namespace, offered, slice] = [value, asked, [], undefined];
    } else if (key === "Namespace") namespace = value;
    else if (key === undefined || name === "") continue;
    else if (key === "IP" || key === "IPs" || key === "External IPs") {
      const told = value.split(",", MAX_PARTS).filter((word) => addressFamily(word) !== undefined && !offered.some(({ address }) => address === word));
      offered.push(...told.map((address) => ({ line, address, ...(key === "External IPs" ? { external: true } : {}) })));
    } else if (key === "Endpoints") {
      const [list = "", plus] = value.split(/\s+/, 3);
      const more = plus === "+" ? (true as const) : undefined;
      for (const part of list.split(",", MAX_PARTS)) {
        const [, address, port] = ENDPOINT.exec(part) ?? [];
        if (address !== undefined && addressFamily(address) !== undefined) found.endpoints.push(present({ ...owner, address, port: Number(port), more }));
      }
    } else {
      const [, port, protocol = ""] = DESCRIBED_PORT.exec(value) ?? [];
      if (port === undefined) continue;
      if (key === "NodePort") found.nodePorts.push({ ...owner, protocol: protocol.toLowerCase(), port: Number(port) });
      else for (const one of offered) found.addresses.push({ ...owner, ...one, protocol: protocol.toLowerCase(), port: Number(port) });
    }
  }
  flush();
  return found;
}
/** `  Addresses:  10.1.0.7,10.1.0.9` of endpoints, `  - Addresses:  10.1.0.7` of a slice. */
const DESCRIBED_ADDRESSES = /^\s{2,4}(- )?Addresses:\s{1,20}(\S{2,4000})$/;
/** Below `Name  Port  Protocol`. */
const DESCRIBED_ROW = /^\s{2,6}\S{1,63}\s{1,40}(\d{1,5})\s{1,20}(?:TCP|UDP|SCTP)$/;
const OF_SERVICE = /\bkubernetes\.io\/service-name=([a-z0-9-]{1,63})/;
const DESCRIBED = /^(Name|Namespace|IPs?|External IPs|Port|NodePort|Endpoints):\s{1,40}(\S.{0,2000})$/;
const DESCRIBED_PORT = /^(?:\S{1,63}\s{1,20})?(\d{1,5})\/(TCP|UDP|SCTP)$/;

/** The row of a service or of its endpoints, with a namespace in front or without; undefined if it is neither. */
function fromTable(words: readonly string[], line: number, asked: string | undefined): Services | undefined {
  const owner = (at: number): { line: number; name: string; namespace?: string } | undefined => {
    const name = NAME.exec(words[at] ?? "")?.[1];
    return at > 1 || name === undefined ? undefined : present({ line, name, namespace: at === 1 ? (words[0] as string) : asked });
  };
  const ports = words.findIndex((word) => word.split(",", MAX_PARTS).every((part) => PORT.test(part)));
  const type = words.findIndex((word) => TYPE.test(word));
  if (ports > 0 || type > 0) {
    // before 1.8 without the type; a service without ports has none to tell
    const service = owner(type > 0 ? type - 1 : ports - 3);
    if (service === undefined || (ports < 0 && words[type + 3] !== "<none>")) return undefined;
    const written = type > 0 && words[type] !== "LoadBalancer" ? { external: true } : {};
    const offered = [{ address: words[ports - 2] ?? "" }, ...(words[ports - 1] ?? "").split(",", MAX_PARTS).map((address) => ({ address, ...written }))].filter(
      ({ address }) => addressFamily(address) !== undefined,
    );
    const parts = (words[ports] ?? "").split(",", MAX_PARTS).flatMap((part) => {
      const [, port, nodePort, protocol = ""] = PORT.exec(part) ?? [];
      return port === undefined ? [] : [{ port: Number(port), nodePort, protocol: protocol.toLowerCase() }];
    });
    return {
      nodePorts: parts.flatMap(({ nodePort, protocol }) => (nodePort === undefined ? [] : [{ ...service, protocol, port: Number(nodePort) }])),
      addresses: parts.flatMap(({ port, protocol }) => offered.map((one) => ({ ...service, ...one, protocol, port }))),
      endpoints: [],
    };
  }
  const slice = words.findIndex((word) => word === "IPv4" || word === "IPv6");
  const list = slice > 0 ? slice + 2 : words.findIndex((word) => word === "<none>" || word.split(",", MAX_PARTS).every((part) => ENDPOINT.test(part)));
  // "6443", "53,9153", "<unset>"
  const shared = slice > 0 && /^\d{1,5}$/.test(words[slice + 1] ?? "") ? words[slice + 1] : undefined;
  const named = owner((slice > 0 ? slice : list) - 1);
  const service = named === undefined || slice < 1 ? named : { ...named, name: named.name.replace(SLICE_SUFFIX, "") };
  if (service === undefined || !AGE.test(words.at(-1) ?? "")) return undefined;
  const more = words[list + 1] === "+" ? (true as const) : undefined;
  const total =
    more !== undefined && slice < 1 && /^\d{1,5}$/.test(words[list + 2] ?? "") ? (words[list] ?? "").split(",").length + Number(words[list + 2]) : undefined;
  const endpoints = (words[list] ?? "").split(",", MAX_PARTS).flatMap((part) => {
    // a slice tells addresses alone; the end of one of IPv6 looks like a port
    const [, host = part, port = shared] = (slice > 0 && addressFamily(part) !== undefined ? undefined : ENDPOINT.exec(part)) ?? [];
    return addressFamily(host) === undefined ? [] : [present({ ...service, address: host, port: port === undefined ? undefined : Number(port), more, total })];
  });
  return { nodePorts: [], addresses: [], endpoints };
}
