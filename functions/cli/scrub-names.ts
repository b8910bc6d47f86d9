/**
 * Finds the names that people gave: hosts, clusters, users, pods, namespaces, services, domains. They are found where a format says what they are, and
 * replaced wherever they stand as whole words. What nobody chose (KUBE-FORWARD, cilium_host, coredns) stays.
 */

/** What a name is of; the pseudonym says so: "node-1", "service-2". */
const KINDS = ["node", "cluster", "user", "namespace", "pod", "service", "app", "domain"] as const;
type Kind = (typeof KINDS)[number];

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const DOTTED = "[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?";

/** Where formats name things; the groups of a pattern are of these kinds, in order. */
const PLACES: readonly { readonly pattern: RegExp; readonly kinds: readonly Kind[] }[] = [
  // iptables comments: default/web:http, default/web
  { pattern: new RegExp(`(?:--comment \\\\?"?|/\\* ?"?)(${LABEL})/(${DOTTED})(?=[:" *\\\\]|$)`, "gm"), kinds: ["namespace", "service"] },
  // klog: pod="default/web-1", service="default/web", servicePortName="default/web:http"
  { pattern: new RegExp(`\\b(?:pods?|Pods?)=\\[?"?(${LABEL})/(${DOTTED})`, "g"), kinds: ["namespace", "pod"] },
  { pattern: new RegExp(`\\b(?:service|servicePortName|svc|endpointSlice|key)="?(${LABEL})/(${DOTTED})`, "g"), kinds: ["namespace", "service"] },
  { pattern: new RegExp(`\\b(?:node|nodeName|hostname|host)="(${DOTTED})"`, "g"), kinds: ["node"] },
  { pattern: new RegExp(`--(?:hostname-override|node-name|nodename|k8s-node-name|host-name)[= ](${DOTTED})`, "g"), kinds: ["node"] },
  { pattern: new RegExp(`--cluster(?:-name)?[= ](${DOTTED})`, "g"), kinds: ["cluster"] },
  // names inside the cluster's DNS
  { pattern: new RegExp(`\\b(${LABEL})\\.(${LABEL})\\.svc\\b`, "g"), kinds: ["service", "namespace"] },
  // /var/log/containers/<pod>_<namespace>_<container>-<id>.log, /var/log/pods/<namespace>_<pod>_<uid>
  { pattern: new RegExp(`/var/log/containers/(${DOTTED})_(${LABEL})_(${LABEL})-[0-9a-f]{64}`, "g"), kinds: ["pod", "namespace", "app"] },
  { pattern: new RegExp(`/var/log/pods/(${LABEL})_(${DOTTED})_[0-9a-f-]{8,36}`, "g"), kinds: ["namespace", "pod"] },
  // docker: k8s_<container>_<pod>_<namespace>_<uid>_<attempt>
  { pattern: new RegExp(`\\bk8s_(${DOTTED})_(${DOTTED})_(${LABEL})_[0-9a-f-]{8,36}_\\d+`, "g"), kinds: ["app", "pod", "namespace"] },
  { pattern: new RegExp(`\\bio\\.kubernetes\\.pod\\.namespace"?[:=]\\s?"?(${LABEL})`, "g"), kinds: ["namespace"] },
  { pattern: new RegExp(`\\bio\\.kubernetes\\.pod\\.name"?[:=]\\s?"?(${DOTTED})`, "g"), kinds: ["pod"] },
  { pattern: new RegExp(`"(?:K8S_POD_NAMESPACE|k8sPodNamespace)":\\s?"(${LABEL})"`, "g"), kinds: ["namespace"] },
  { pattern: new RegExp(`"(?:K8S_POD_NAME|k8sPodName)":\\s?"(${DOTTED})"`, "g"), kinds: ["pod"] },
  // the node's own name
  { pattern: /^Linux ([\w.-]{1,253}) \d+\.\d+/gm, kinds: ["node"] },
  {
    pattern:
      /^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,9})?|\d{4}-\d\d-\d\dT[\d:.,]{8,18}(?:Z|[+-]\d\d:?\d\d)?) ([\w.-]{1,253}) [\w./@-]{1,64}(?:\[\d+\])?: /gm,
    kinds: ["node"],
  },
  { pattern: /^[ \t]*\[?([a-z_][\w-]{0,31})@([\w.-]{1,253})[ :][^\n]{0,80}?[#$] /gm, kinds: ["user", "node"] },
  { pattern: /\/home\/([a-z_][\w-]{0,31})\b/g, kinds: ["user"] },
  // arn:aws:iam::123456789012:role/<name>
  { pattern: /\barn:aws[\w-]{0,12}:[\w-]{0,30}:[\w-]{0,20}:\d{12}:[a-z-]{2,30}\/([\w+=.-]{3,64})/g, kinds: ["app"] },
  // alice.smith@company.com, but no unit of systemd (user@1000.service), and no pair of interfaces (8: bpfin.cali@bpfout.cali)
  {
    pattern:
      /(?<![\w.+-]|^\d{1,6}: )([A-Za-z][\w.+-]{1,62}\w)@((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}(?!(?:service|socket|target|timer|mount|slice|scope|path|device|swap)\b)[a-z]{2,24})(?![\w-])/gim,
    kinds: ["user", "domain"],
  },
  // host names that hold an address
  { pattern: /\b(ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[a-z0-9.-]{1,200}[a-z0-9])?)/g, kinds: ["node"] },
];

/** Domains of people; those of the software itself stay. Behind a `/` only in a URL: `/go/src/github.com/…` is a path. */
const DOMAIN =
  /(?<![\w.-])(?<!(?<!:\/)\/)((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}(?:com|net|org|io|internal|lan|corp|home|cloud|ai|co|de|uk|eu|fr|nl|ch|us|ca|cn|jp|kr|ru|br|biz|info|intra|intranet|localdomain|local))(?![\w-]|\.[a-z0-9])/gi;
const PUBLIC =
  /(?:^|\.)(?:kubernetes\.io|k8s\.io|cilium\.io|projectcalico\.org|tigera\.io|cluster\.local|kernel\.org|debian\.org|ubuntu\.com|redhat\.com|fedoraproject\.org|centos\.org|rockylinux\.org|almalinux\.org|suse\.com|opensuse\.org|amazon\.com|flatcar\.org|alpinelinux\.org|github\.com|coreos\.com|rancher\.(?:io|com)|cattle\.io|k3s\.io|openshift\.io|ovn\.org|antrea\.io|kubevirt\.io|docker\.(?:io|com)|quay\.io|gcr\.io|ghcr\.io|example\.(?:com|net|org))$/i;

/** Names that are the same in every cluster. */
const COMMON =
  /^(?:kube-(?:system|public|node-lease|flannel|proxy.*|dns.*|router.*|apiserver.*|scheduler.*|controller.*|vip.*|ovn.*)|calico.*|tigera.*|cilium.*|hubble.*|flannel.*|weave.*|aws-node.*|vpc-cni.*|coredns.*|node-local-dns.*|nodelocaldns.*|node-cache|konnectivity.*|metrics-server.*|etcd.*|kubernetes|kubelet|default|traefik|svclb.*|local-path.*|istio.*|ingress-nginx.*|multus.*|canal-.*|rke2-(?:canal|cilium|coredns|multus|ingress).*|antrea.*|kindnet.*|azure-(?:cns|cni|ip-masq).*|ip-masq-agent.*|ovnkube.*|openshift.*|metallb.*|localhost.*|localdomain|kernel|root|ubuntu|admin|core|ec2-user|centos|debian|fedora|vagrant|pause|dns|dns-tcp|metrics|http|https|all|none|any|node|host|pod|service)$/;
/** Words of the formats themselves: a service may be called "filter", and replacing that would break what is to be shown. */
const WORDS =
  /^(?:filter|nat|mangle|raw|security|input|output|forward|prerouting|postrouting|accept|drop|reject|return|masquerade|new|established|related|invalid|main|local|global|link|scope|static|boot|up|down|tcp|udp|sctp|icmp|ipv[46]|unknown|true|false|null|permanent|reachable|stale|failed|error|warning|info|running|exited|ready|mode|state|name|address|bridge|route|rule|search|nameserver|domain|options|restart|insert|delete|found|ignore|expect|clash|entries|queue|index|table|proto|metric|group|type|device|master|users|queues|tunnel|peer|log|event|events|lo|eth\d+|ens\d+|bond\d+|docker\d+)$/;

/** Words in columns of a table that hold names: `crictl pods`, `kubectl get … -o wide`. */
const COLUMNS: Readonly<Record<string, Kind>> = { NAMESPACE: "namespace", POD: "pod", NODE: "node", "NOMINATED NODE": "node" };

/** `etcd-0` is in every cluster; `etcd-0.infra.company.corp` is not. */
const isCommon = (name: string, kind: Kind): boolean => COMMON.test(name) && (kind !== "domain" || !name.includes(".") || /^localhost\b/.test(name));

/** The pseudonym of every name that the texts hold. The order of first sight numbers them, so the same texts give the same pseudonyms. */
export function namesIn(texts: readonly string[], hosts: readonly string[], commands: readonly string[] = []): ReadonlyMap<string, string> {
  const found = new Map<string, Kind>();
  const add = (name: string | undefined, kind: Kind): void => {
    // a name of one or two letters would be found in every other word
    if (name === undefined || name.length < 3 || isCommon(name, kind) || WORDS.test(name) || /^\d+$/.test(name) || /^[\d.]+$/.test(name) || found.has(name))
      return;
    found.set(name, kind);
  };
  for (const host of hosts) add(host, "node");
  for (const command of commands) add(namespaceIn(command)?.[2], "namespace");
  for (const text of texts) {
    for (const { pattern, kinds } of PLACES) for (const match of text.matchAll(pattern)) for (const [i, kind] of kinds.entries()) add(match[i + 1], kind);
    for (const [name, kind] of columnNames(text)) add(name, kind);
    for (const match of text.matchAll(DOMAIN)) if (!PUBLIC.test(match[1] as string)) add(match[1], "domain");
  }
  // the short name of a host that is known with its domain
  for (const [name, kind] of found) if (kind === "node" && name.includes(".")) add(name.split(".")[0], "node");
  const counts = new Map<Kind, number>();
  const nodes = new Map<string, string>();
  const pseudonyms = new Map<string, string>();
  for (const [name, kind] of found) {
    const short = name.split(".")[0] as string;
    let made = kind === "node" ? nodes.get(short) : undefined;
    if (made === undefined) {
      const count = (counts.get(kind) ?? 0) + 1;
      counts.set(kind, count);
      made = kind === "domain" ? `host-${count}.example.com` : `${kind}-${count}`;
      if (kind === "node") nodes.set(short, made);
    }
    pseudonyms.set(name, made);
  }
  return pseudonyms;
}

/** The namespace that a kubectl command names: what stands before it, and its name. Other programs mean something else by `-n`. */
export function namespaceIn(command: string): RegExpExecArray | null {
  return /^(.{0,200}\b(?:kubectl|oc)\s(?:.{0,400}\s)?(?:-n|--namespace)[= ])([a-z0-9][a-z0-9-]{0,62})(?=\s|$)/.exec(command);
}

/** Names in the columns of tables with a header line. */
function* columnNames(text: string): Generator<[string, Kind]> {
  let columns: { start: number; end: number; kind: Kind }[] = [];
  for (const line of text.split("\n", 20_000)) {
    if (isHead(line)) {
      const heads = [...line.matchAll(/[A-Z][A-Z()-]*(?: [A-Z()-]+)*/g)];
      columns = heads.flatMap((head, i) => {
        const kind = COLUMNS[head[0].trim()] ?? (head[0].trim() === "NAME" ? listed(line) : undefined);
        return kind === undefined ? [] : [{ start: head.index, end: heads[i + 1]?.index ?? line.length + 400, kind }];
      });
    } else if (line.trim() === "") columns = [];
    else
      for (const { start, end, kind } of columns) {
        const word = line.slice(start, end).trim().split(/\s/)[0] ?? "";
        if (/^[a-z0-9][a-z0-9.-]*$/.test(word) && (start === 0 || line[start - 1] === " ")) yield [word, kind];
      }
  }
}

/** Whose names a table of kubectl has, as its other columns tell. */
function listed(head: string): Kind | undefined {
  if (/\bROLES\b/.test(head)) return "node";
  if (/\bCLUSTER-IP\b/.test(head)) return "service";
  return /\bNAMESPACE\b|\bRESTARTS\b/.test(head) ? "pod" : undefined;
}

/** A header line: three words or more in capitals, two blanks between them. */
function isHead(line: string): boolean {
  const cells = line.length > 400 ? [] : line.trim().split(/ {2,}/);
  return cells.length > 2 && cells.every((cell) => /^[A-Z][A-Z ()-]*$/.test(cell));
}

/** Replaces every name that stands as a whole word. One pass: a pseudonym is never replaced again. */
export function replacer(pseudonyms: ReadonlyMap<string, string>): (text: string) => string {
  if (pseudonyms.size === 0) return (text) => text;
  // longest first: "web-frontend" before "web"
  const names = [...pseudonyms.keys()].sort((a, b) => b.length - a.length || (a < b ? -1 : 1)).map((name) => name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  // "_" and "." separate names; "-" does so only before the id of a container
  const pattern = new RegExp(`(?<![A-Za-z0-9-])(${names.join("|")})(?![A-Za-z0-9]|-(?![0-9a-f]{64}))( {2,})?`, "g");
  return (text) => text.replaceAll(pattern, (_, name: string, blanks?: string) => inColumn(name, pseudonyms.get(name) ?? name, blanks));
}

/** What stands in the place of something else, with as many of the blanks behind it as keep the next column where it was. */
export function inColumn(original: string, made: string, blanks = ""): string {
  return made + (blanks === "" ? "" : " ".repeat(Math.max(2, original.length + blanks.length - made.length)));
}
