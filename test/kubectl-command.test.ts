import { expect, test } from "vitest";
import { commandLine } from "../functions/facts/command.ts";
import { facts } from "../functions/facts/index.ts";
import { asKubectl, namedWords } from "../functions/facts/kubectl-command.ts";

test.each([
  ["oc -n=dns get Pods --output=wide", "kubectl get pods -n dns -o wide"],
  ["kubectl get -Aowide po", "kubectl get pods -A -o wide"],
  ["kubectl get po -Ao wide --all-namespaces=true", "kubectl get pods -A -o wide -A"],
  ["sudo k3s kubectl describe pod web-0 -n shop", "kubectl describe pods web-0 -n shop"],
  ["KUBECONFIG=/etc/rancher/rke2/rke2.yaml /var/lib/rancher/rke2/bin/kubectl get no", "kubectl get nodes"],
  ["minikube kubectl -- get Node/wk-1 -o=jsonpath={.spec.podCIDR}", "kubectl get nodes/wk-1 -o jsonpath={.spec.podCIDR}"],
  ["kubecolor --context prod -v=6 get endpoints,svc", "kubectl get endpoints,services"],
  ["kubectl --as admin -s https://10.0.0.1:6443 get ev --sort-by .lastTimestamp", "kubectl get events --sort-by=.lastTimestamp"],
  ["kubectl get --raw /api/v1/namespaces/dns/pods", "kubectl get pods -n dns -o json"],
  ["kubectl get --raw /apis/discovery.k8s.io/v1/endpointslices", "kubectl get endpointslices -A -o json"],
  ["oc get --raw /api/v1/nodes/wk-1/proxy/configz", "kubectl get --raw /api/v1/nodes/wk-1/proxy/configz"],
  ["kubectl logs -f cilium-7kvzg --tail 20 -nkube-system", "kubectl logs -f cilium-7kvzg --tail=20 -n kube-system"],
  ["kubectl -n kube-system exec cilium-7kvzg -- cilium -H unix:///var/run/cilium/cilium.sock status", "cilium status"],
  ["kubectl calico node status", "calicoctl node status"],
  ["sudo ./calicoctl-linux-amd64 --allow-version-mismatch node status", "calicoctl node status"],
  ["k3s crictl ps -a", "crictl ps -a"],
  ["sudo crictl -r unix:///run/k3s/containerd/containerd.sock --timeout=5s ps -a", "crictl ps -a"],
  ["/var/lib/rancher/rke2/bin/crictl --config /var/lib/rancher/rke2/agent/etc/crictl.yaml logs 9d01f6bb72c11", "crictl logs 9d01f6bb72c11"],
  ["nerdctl -n k8s.io ps", "nerdctl ps"],
  ["oc adm top nodes", "oc adm top nodes"],
  ["kubectl get nodes -o", "kubectl get nodes -o"],
  ["kubectl --tls-server-name api.example.com --client-key k.pem get po -A", "kubectl get pods -A"],
])("%s", (command, plain) => expect(commandLine(command).argv.join(" ")).toBe(plain));

test("a command line begins with kubectl, whatever it is called", () => {
  expect(asKubectl("sudo microk8s kubectl debug node/wk-2 -it -- ip route")).toBe("kubectl debug node/wk-2 -it -- ip route");
  expect(asKubectl("docker exec kind-control-plane kubectl get no")).toBe("kubectl get no");
  expect(asKubectl("ok get no")).toBe("ok get no");
});

test("what is named is no option's value", () => {
  expect(namedWords(commandLine("oc -n pods get no wk-1 -l zone=a wk-2").argv)).toEqual(["nodes", "wk-1", "wk-2"]);
  expect(namedWords(commandLine("kubectl get").argv)).toEqual([]);
  const { argv } = commandLine("kubectl get nodes -n pods");
  expect(facts.filter((fact) => fact.recognize(argv) !== undefined).map(({ id }) => id)).toEqual(["cluster-node"]);
});
