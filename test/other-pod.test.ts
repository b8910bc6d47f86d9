import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { ofOtherPods, withoutOtherPods } from "../functions/facts/other-pod.ts";

const PODS = `NAME               READY   STATUS    RESTARTS       AGE   IP           NODE    NOMINATED NODE   READINESS GATES
cilium-8nq4z       1/1     Running   0              31d   10.20.0.11   node1   <none>           <none>
cilium-x2kqp       0/1     Running   3 (2m ago)     31d   10.20.0.12   node2   <none>           <none>
coredns-6f6b679f8f-7xk2p   1/1   Running   0        31d   10.244.2.9   node2   <none>           <none>
`;

function found(target: string, ...commands: (string | readonly [string, string])[]): number[] {
  const outputs = commands.map((one, i) => ({ command: typeof one === "string" ? one : one[0], file: `outputs/${i}.txt` }));
  const texts = new Map(outputs.map(({ file }, i) => [file, typeof commands[i] === "string" ? "" : ((commands[i] as readonly [string, string])[1] ?? "")]));
  const capture = captureOf({ schema: "netcheck.capture/1", target: { name: target }, outputs }, (file) => ({ text: texts.get(file) ?? "", truncated: false }));
  return [...ofOtherPods(capture)];
}

describe("outputs that were asked of an agent's pod on another node", () => {
  const listed = ["kubectl -n kube-system get pods -o wide", PODS] as const;

  test("exec and logs of a pod that the list has elsewhere", () => {
    expect(
      found("node1", listed, "kubectl -n kube-system exec cilium-x2kqp -c cilium-agent -- cilium-dbg status", "kubectl logs -n kube-system cilium-x2kqp"),
    ).toEqual([1, 2]);
    expect(found("node1", listed, "kubectl -n kube-system exec -it pod/cilium-x2kqp -- cilium status")).toEqual([1]);
  });
  test("not of the node's own pod, of a pod that is in no list, or of one that serves every node", () => {
    expect(found("node1", listed, "kubectl -n kube-system exec cilium-8nq4z -- cilium status", "kubectl logs cilium-7xk2p")).toEqual([]);
    expect(found("node1", listed, "kubectl -n kube-system logs coredns-6f6b679f8f-7xk2p")).toEqual([]);
  });
  test("not where the list has no pod of this node: it goes by another name there", () => {
    expect(found("worker-a", listed, "kubectl -n kube-system exec cilium-x2kqp -- cilium status")).toEqual([]);
  });
  test("lines of other nodes' agents in a log of several pods are left out, and the others keep their numbers", () => {
    const log =
      "[pod/kube-proxy-7xk2p/kube-proxy] E1120 09:12:12.1 1 reflector.go:158] failed\n[pod/kube-proxy-x1pqz/kube-proxy] I1120 09:10:12.3 1 proxier.go:805] synced\n";
    const pods = PODS.replaceAll("cilium-8nq4z", "kube-proxy-x1pqz").replaceAll("cilium-x2kqp", "kube-proxy-7xk2p");
    const files = new Map([
      ["a", pods],
      ["b", log],
    ]);
    const outputs = [
      { command: "kubectl -n kube-system get pods -o wide", file: "a" },
      { command: "kubectl -n kube-system logs -l k8s-app=kube-proxy --prefix", file: "b" },
    ];
    const of = (name: string) =>
      withoutOtherPods(captureOf({ schema: "netcheck.capture/1", target: { name }, outputs }, (file) => ({ text: files.get(file) ?? "", truncated: false })))(
        log,
      );
    expect(of("node1").split("\n")[0]).toBe("");
    expect(of("node1").split("\n")[1]).toBe(log.split("\n")[1]);
    expect(of("worker-a")).toBe(log);
  });
});
