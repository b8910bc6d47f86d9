import { Document, stringify } from "yaml";
import { bindingSpec, entryPolicy, POLICY, podPolicy, policyParameters } from "../../functions/transports/pod-policy.ts";
import type { Script } from "../../functions/triage/ports.ts";

/** What differs between installations. */
export interface Installation {
  readonly namespace: string;
  /** By digest. */
  readonly image: string;
  /** Group whose members are netcheck outside of the cluster: an EKS access entry or aws-auth maps netcheck's role to it. Also the service account's name. */
  readonly group: string;
  /** `data` of the ConfigMap of the version before: executions that began with it may finish. */
  readonly previous?: Readonly<Record<string, string>>;
}

/** Nothing has this digest: a cluster with it takes no pod until the own image is filled in. */
const NO_IMAGE = `netcheck-debug@sha256:${"0".repeat(64)}`;
export const DEFAULTS: Installation = { namespace: "netcheck", image: NO_IMAGE, group: "netcheck" };

interface Part {
  readonly comment: string;
  readonly object: Readonly<Record<string, unknown>>;
}

/** All that netcheck needs in a cluster, as objects with a comment each. */
export function manifest(scripts: readonly Script[], { namespace, image, group, previous }: Installation): Part[] {
  const labels = { "app.kubernetes.io/name": "netcheck", "app.kubernetes.io/part-of": "netcheck" };
  const own = (name: string, more: Readonly<Record<string, string>> = {}) => ({ name, namespace, labels: { ...labels, ...more } });
  const global = (name: string) => ({ name, labels });
  const rbac = "rbac.authorization.k8s.io";
  const subjects = [
    { kind: "ServiceAccount", name: group, namespace },
    { kind: "Group", name: group, apiGroup: rbac },
  ];
  const rule = (apiGroup: string, resources: readonly string[], verbs: readonly string[], resourceNames?: readonly string[]) => ({
    apiGroups: [apiGroup],
    resources,
    ...(resourceNames === undefined ? {} : { resourceNames }),
    verbs,
  });
  const policy = (name: string, spec: object) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicy",
    metadata: global(name),
    spec,
  });
  const binding = (name: string) => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: "ValidatingAdmissionPolicyBinding",
    metadata: global(name),
    spec: bindingSpec(name, namespace),
  });
  return [
    {
      comment: " Debug pods are privileged: that is allowed here, and every exception is on record. What else is pinned is in the policies below.",
      object: {
        apiVersion: "v1",
        kind: "Namespace",
        metadata: {
          name: namespace,
          labels: {
            ...labels,
            "pod-security.kubernetes.io/enforce": "privileged",
            "pod-security.kubernetes.io/audit": "restricted",
            "pod-security.kubernetes.io/warn": "privileged",
          },
        },
      },
    },
    {
      comment: " Who netcheck is when it runs in the cluster, or comes with a token of this account. Debug pods do not use it.",
      object: { apiVersion: "v1", kind: "ServiceAccount", metadata: own(group), automountServiceAccountToken: false },
    },
    {
      comment: " Pods of this namespace alone. patch: a pod that does not start gets its deadline moved to now. No exec, no attach.",
      object: {
        apiVersion: `${rbac}/v1`,
        kind: "Role",
        metadata: own("netcheck"),
        rules: [
          rule("", ["pods"], ["create", "get", "list", "watch", "patch", "delete"]),
          rule("", ["pods/log"], ["get"]),
          rule("", ["events"], ["list"]),
          rule("", ["configmaps"], ["get"], [POLICY.parameters]),
        ],
      },
    },
    {
      comment: " May look at nodes, and at its own installation (netcheck doctor). Changes nothing outside of the namespace.",
      object: {
        apiVersion: `${rbac}/v1`,
        kind: "ClusterRole",
        metadata: global("netcheck"),
        rules: [
          rule("", ["nodes"], ["get", "list"]),
          rule("", ["namespaces"], ["get"], [namespace]),
          rule("admissionregistration.k8s.io", ["validatingadmissionpolicies", "validatingadmissionpolicybindings"], ["get"], [POLICY.pods, POLICY.entry]),
        ],
      },
    },
    {
      comment: "",
      object: {
        apiVersion: `${rbac}/v1`,
        kind: "RoleBinding",
        metadata: own("netcheck"),
        roleRef: { apiGroup: rbac, kind: "Role", name: "netcheck" },
        subjects,
      },
    },
    {
      comment: "",
      object: {
        apiVersion: `${rbac}/v1`,
        kind: "ClusterRoleBinding",
        metadata: global("netcheck"),
        roleRef: { apiGroup: rbac, kind: "ClusterRole", name: "netcheck" },
        subjects,
      },
    },
    {
      comment:
        " Debug pods are in the host's network, and no network policy reaches such pods: for them this does nothing. It is for any other pod that\n somebody might bring into this namespace, which the policies below deny as well.",
      object: {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: own("deny-all"),
        spec: { podSelector: {}, policyTypes: ["Ingress", "Egress"] },
      },
    },
    {
      comment:
        " What the policy compares with: the image, the program of the container, and every script of the catalogue. Whoever may change this\n decides what runs as root on the nodes: give nobody the right but those who install netcheck.",
      object: { apiVersion: "v1", kind: "ConfigMap", metadata: own(POLICY.parameters), data: policyParameters(scripts, image, previous) },
    },
    {
      comment: " Every pod of the namespace, whoever makes it, must be a debug pod of this version of netcheck. Needs Kubernetes 1.30.",
      object: policy(POLICY.pods, podPolicy(scripts)),
    },
    { comment: "", object: binding(POLICY.pods) },
    { comment: " No way into a running pod.", object: policy(POLICY.entry, entryPolicy()) },
    { comment: "", object: binding(POLICY.entry) },
  ];
}

const HEAD = `# netcheck in a Kubernetes cluster: namespace, rights, admission policies. docs/kubernetes.md says how to install it.
# Generated by: node infra/k8s/generate.ts [--image name@sha256:…] [--namespace name] [--group name] [--previous file]. Do not edit: the scripts in it must be those that netcheck sends.
`;

/** As YAML, one document per object. */
export function manifestYaml(scripts: readonly Script[], installation: Installation): string {
  const documents = manifest(scripts, installation).map(({ comment, object }) => {
    const document = new Document(object, { aliasDuplicateObjects: false });
    const head =
      comment === ""
        ? ""
        : `${comment
            .split("\n")
            .map((line) => `#${line}`)
            .join("\n")}\n`;
    return `${head}${stringify(document, { lineWidth: 0, aliasDuplicateObjects: false })}`;
  });
  return `${HEAD}---\n${documents.join("---\n")}`;
}
