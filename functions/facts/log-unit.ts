import { baseName, optionValue } from "./command.ts";

/** The names under which logs know one program. What is not listed keeps its name. */
const NAMES: Readonly<Record<string, string>> = {
  cilium: "cilium-agent",
  "kube-dns": "coredns",
  "rke2-coredns": "coredns",
  "node-cache": "node-local-dns",
  nodelocaldns: "node-local-dns",
  "kube-flannel-ds": "kube-flannel",
  flannel: "kube-flannel",
  flanneld: "kube-flannel",
  "aws-k8s-agent": "ipamd",
  "k3s-agent": "k3s",
  "rke2-server": "rke2",
  "rke2-agent": "rke2",
  "snap.microk8s.daemon-kubelite": "kubelite",
  // as the journal names the program
  "microk8s.daemon-kubelite": "kubelite",
  "microk8s.daemon-kubelet": "kubelet",
  "microk8s.daemon-proxy": "kube-proxy",
  docker: "dockerd",
};

/** The name of a host in front of a log line, or what a person put in its place (`[Redacted]`, `<hostname>`, `***`), as the source of a regular expression. */
export const HOST = String.raw`(?:[\w.-]{1,255}|\[(?:[Rr]edacted|REDACTED|[Mm]asked|[Hh]idden|[Hh]ost(?:name)?)\]|<[\w .-]{0,20}(?:[Hh]ost|HOST|[Nn]ode|NODE|[Rr]edact|REDACT|[Ss]erver)[\w .-]{0,20}>|\*{2,40})`;
/** Agents whose lines people copy without what stands in front. */
export const AGENT = "(?:etcd|kubelet|containerd|dockerd|kube-proxy|flanneld|k3s|rke2|chronyd|ntpd|systemd-(?:networkd|timesyncd|resolved)|NetworkManager)";

/** The one name of a program: "kubelet.service" → "kubelet", "kube-dns" → "coredns". */
export function unitOf(name: string): string {
  const bare = name.replace(/\.service$/, "");
  return Object.hasOwn(NAMES, bare) ? (NAMES[bare] as string) : bare;
}

// the kubelet's links and folders: POD_NAMESPACE_CONTAINER-64hex.log, NAMESPACE_POD_UID/CONTAINER/0.log
const CONTAINER_LINK = /\/containers\/[^/_]{1,255}_[^/_]{1,255}_([^/]{1,255}?)-[0-9a-f]{12,64}\.log$/;
const POD_FOLDER = /\/pods\/[^/_]{1,255}_([^/_]{1,255})_[^/]{1,255}\/([^/]{1,255})\/\d{1,4}\.log(?:\.\S{1,40})?$/;
const SYSTEM = /^\/(?:host\/)?var\/log\/(?:messages|syslog|daemon\.log)(?:[.-]\d{1,8})?(?:\.gz)?$/;
const PODS = /^\/(?:host\/)?var\/log\/(?:pods|containers)(?:\/[^\s]{0,400})?$/;
const NAMED =
  /^((?:snap\.microk8s\.daemon-)?(?:kubelet|kubelite|kube-proxy|k3s(?:-agent|-service)?|rke2(?:-server|-agent)?|coredns|node-local-dns|cilium(?:-agent)?|calico-node|felix|aws-node|ipamd|plugin|network-policy-agent|ebpf-sdk|kube-flannel|flanneld?|firewalld|containerd|crio|dockerd|docker|NetworkManager|systemd-networkd|kube-router|antrea-agent|ovs-vswitchd))(?:[._-][\w.-]{0,120})?$/;

/** The program behind a log file: "" for one of many programs, undefined for a path that is no log of an agent. */
export function unitOfPath(path: string): string | undefined {
  // every word of every command is asked about: the patterns are made only where one may be a file
  if (path.startsWith("-") || !(path.includes("/") || path.includes("."))) return undefined;
  if (SYSTEM.test(path)) return "";
  const container = CONTAINER_LINK.exec(path)?.[1] ?? POD_FOLDER.exec(path)?.[2];
  if (container !== undefined) return unitOf(container);
  const name = NAMED.exec(baseName(path))?.[1];
  const isLog = /\.(?:log|txt|out|err)(?:\.\d{1,2})?(?:\.gz)?$/.test(path) || /^\/(?:host\/)?var\/log\//.test(path);
  if (name !== undefined && isLog) return unitOf(name);
  return PODS.test(path) ? "" : undefined;
}

/** Agents, by how the names of their pods begin. */
const POD =
  /^(kube-proxy|coredns|kube-dns|node-local-dns|nodelocaldns|cilium(?!-operator|-envoy|-test)|calico-node|canal|aws-node|kube-flannel|kube-router|antrea-agent|weave-net)(?:$|-)/;

/** The containers that run before the agent, in its pod: where one of them ends with an error, there is no agent. */
const CILIUM_INIT = /^(?:config|mount-cgroup|apply-sysctl-overwrites|mount-bpf-fs|clean-cilium-state|install-cni-binaries)$/;

/** The program whose log `kubectl logs` and its like show: the container asked for, else what the pod, set or label is named after; "" for a bare id. */
export function unitOfPod(argv: readonly string[]): string {
  const container = optionValue(argv, "-c", "--container");
  if (container !== undefined)
    return CILIUM_INIT.test(container) && argv.some((word) => /^(?:(?:pods?|ds|daemonsets?(?:\.apps)?)\/)?cilium(?:$|-(?!operator))|k8s-app=cilium$/.test(word))
      ? "cilium-agent"
      : unitOf(container);
  const label = /=([\w.-]{1,63})$/.exec(optionValue(argv, "-l", "--selector") ?? "")?.[1];
  if (label !== undefined) return unitOf(label);
  const rest = argv.slice(argv.indexOf("logs") + 1);
  const values = new Set(["-n", "--namespace", "--tail", "--since", "--context", "-c", "-l", "--kubeconfig", "--since-time", "--runtime-endpoint", "-s"]);
  const names = rest.filter((word, i) => !word.startsWith("-") && !values.has(rest[i - 1] ?? ""));
  const name = baseName(names[0] ?? "");
  // docker's own names: k8s_CONTAINER_POD_NAMESPACE_UID_N
  const docker = /^k8s_([^_]{1,63})_/.exec(name)?.[1];
  if (docker !== undefined) return unitOf(docker);
  if (/^[0-9a-f]{8,64}$/.test(name) || !/[a-z]/.test(name)) return "";
  // `crictl logs $(crictl ps -q --name kube-proxy)`
  const inside = (word: string): string[] => word.split(" ").map((part) => part.replace(/[^\w-]+$/, ""));
  const named = name.startsWith("$") || name.startsWith("`") ? rest.flatMap(inside).find((word) => POD.test(word)) : name;
  if (named === undefined) return "";
  const known = POD.exec(named)?.[1];
  // generated suffixes have no vowels
  return unitOf(known ?? named.replace(/(?:-[a-f0-9]{6,10})?-[b-df-hj-np-tv-xz2-9]{5}$/, ""));
}
