import type { Capture } from "./capture.ts";
import { commandLine, withoutPrompt } from "./command.ts";
import { asKubectl } from "./kubectl-command.ts";
import { isCalled, nodeNames } from "./node-name.ts";

/** A pod that each node has one of. Those of Deployments (CoreDNS) serve all nodes. */
const AGENT =
  "(?:cilium|cilium-envoy|kube-proxy|calico-node|canal|rke2-canal|aws-node|kube-flannel(?:-ds)?(?:-[a-z0-9]{1,12})?|weave-net|kube-router|antrea-agent|node-local-dns|ovnkube-node)-[bcdfghjklmnpqrstvwxz2456789]{5}";
/** `kubectl -n kube-system exec cilium-x2kqp -c cilium-agent -- …`, `kubectl logs --previous pod/kube-proxy-7xk2p`. */
const ASKED = new RegExp(`^kubectl\\s(?:.{0,200}\\s)?(?:exec|logs)\\s(?:.{0,200}?\\s)?(?:pods?/)?(${AGENT})(?=\\s|$)`);
const LISTED = /^kubectl get (?:po|pods?)(?:[ /]|$)/;
/** The columns of `-o wide` from the age on: `31d   10.20.0.12   node2   <none>`. */
const ROW =
  /^(?:[a-z0-9-]{1,63}\s{1,40})?([a-z][a-z0-9.-]{2,250})\s{1,200}\d{1,3}\/\d{1,3}\s.{0,120}?\s(?:[0-9a-f.:]{2,45}|<none>)\s{1,60}([a-z0-9][a-z0-9.-]{0,252})\s{1,200}\S{1,60}\s{1,40}\S{1,60}\s*$/;

/** Lines of `kubectl logs -l k8s-app=kube-proxy --prefix`. */
const PREFIXED = new RegExp(`^\\[pod/(${AGENT})/[^\\]]{1,255}\\] `);

/** Pods that a list of pods in the capture has on other nodes. The list must have pods of this node, too: else the node goes by another name there. */
function podsElsewhere(capture: Capture): ReadonlySet<string> {
  const nodes = new Map<string, string>();
  for (const { argv, command, text } of capture.outputs) {
    if (!LISTED.test(commandLine(argv ?? command).argv.join(" "))) continue;
    for (const line of text.split("\n", 5000)) {
      const [, pod, node] = ROW.exec(line.slice(0, 1000)) ?? [];
      if (pod !== undefined && node !== undefined) nodes.set(pod, node);
    }
  }
  const names = nodes.size === 0 ? [] : nodeNames(capture);
  if (names.length === 0 || ![...nodes.values()].some((node) => isCalled(names, node))) return new Set();
  return new Set([...nodes].flatMap(([pod, node]) => (isCalled(names, node) ? [] : [pod])));
}

/** Which outputs of a capture, by index, were asked of an agent's pod (or are its log) that runs on another node, as a list of pods in the same capture says. */
export function ofOtherPods(capture: Capture): ReadonlySet<number> {
  const asked = capture.outputs.map(({ argv, command }) => ASKED.exec(asKubectl(withoutPrompt(argv?.join(" ") ?? command)).slice(0, 1000))?.[1]);
  if (asked.every((pod) => pod === undefined)) return new Set();
  const elsewhere = podsElsewhere(capture);
  return new Set(asked.flatMap((pod, index) => (pod !== undefined && elsewhere.has(pod) ? [index] : [])));
}

/** Gives the text of an output of the capture without what agents on other nodes said in a log of several pods. The other lines keep their numbers. */
export function withoutOtherPods(capture: Capture): (text: string) => string {
  if (!capture.outputs.some(({ text }) => text.startsWith("[pod/"))) return (text) => text;
  const elsewhere = podsElsewhere(capture);
  const foreign = (line: string): boolean => elsewhere.has(PREFIXED.exec(line.slice(0, 600))?.[1] ?? "");
  return (text) =>
    elsewhere.size === 0 || !text.startsWith("[pod/")
      ? text
      : text
          .split("\n")
          .map((line) => (foreign(line) ? "" : line))
          .join("\n");
}
