import type { Script, ScriptParameter } from "../triage/ports.ts";
import { ANNOTATION, CONTAINER, LABEL, MANAGER, podProgram } from "./pod-spec.ts";

/**
 * What the cluster itself enforces about debug pods (infra/k8s): ValidatingAdmissionPolicies as Kubernetes 1.30 and later know them. They hold for every pod of the
 * namespace, whoever makes it, so that stolen credentials of netcheck can run our scripts and nothing else.
 */

/** Names of the cluster's objects. */
export const POLICY = { pods: "netcheck-pods", entry: "netcheck-no-entry", parameters: "netcheck-policy" } as const;

/** netcheck.yaml takes no longer startSeconds, and pod-spec adds this to print and to be read. */
const MAX_START_SECONDS = 1800;
const SPARE_SECONDS = 30;

export interface Validation {
  readonly expression: string;
  readonly message: string;
  readonly reason: "Forbidden";
}

/** `spec` of a ValidatingAdmissionPolicy (admissionregistration.k8s.io/v1), with the defaults that the API server would fill in. */
export interface PolicySpec {
  readonly failurePolicy: "Fail";
  readonly paramKind?: { readonly apiVersion: string; readonly kind: string };
  readonly matchConstraints: {
    readonly matchPolicy: "Equivalent";
    readonly namespaceSelector: Readonly<Record<string, never>>;
    readonly objectSelector: Readonly<Record<string, never>>;
    readonly resourceRules: readonly {
      readonly apiGroups: readonly string[];
      readonly apiVersions: readonly string[];
      readonly operations: readonly string[];
      readonly resources: readonly string[];
      readonly scope: "*";
    }[];
  };
  readonly variables?: readonly { readonly name: string; readonly expression: string }[];
  readonly validations: readonly Validation[];
  readonly auditAnnotations?: readonly { readonly key: string; readonly valueExpression: string }[];
}

/** A text as a CEL string. */
const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
const list = (texts: readonly string[]): string => `[${texts.map(quoted).join(", ")}]`;

/** The key of a script in the ConfigMap; of one that changes the node, of what comes behind {@link HEAD}. */
const keyOf = (name: string): string => `script.${name}`;
/** The key of what all scripts that change a node begin with: most of each, so it is there once. A ConfigMap holds 1 MiB. */
const HEAD = "head";
/** Before a key that is of the version before: what runs since before an upgrade may end with it. */
export const PREVIOUS = "previous.";

/** That a text is the pinned one, of this version or of the one before. @param keys of its pieces in the ConfigMap, in CEL */
function pinned(text: string, ...keys: readonly string[]): string {
  const pieces = keys.map((key) => `params.data[${key}]`).join(" + ");
  const before = keys.map((key) => `'${PREVIOUS}' + ${key}`);
  const there = before.map((key) => `${key} in params.data`).join(" && ");
  return `(${text} == ${pieces} || (${there} && ${text} == ${before.map((key) => `params.data[${key}]`).join(" + ")}))`;
}

/** What all these texts begin with. */
function beginning([first = "", ...others]: readonly string[]): string {
  let length = first.length;
  for (const text of others) while (!text.startsWith(first.slice(0, length))) length -= 1;
  // between two lines
  return first.slice(0, first.lastIndexOf("\n", length - 1) + 1);
}

/**
 * `data` of the ConfigMap that the policy reads: what it compares with is too long for an expression, and the image differs between installations.
 * @param before `data` of the version before, which stays allowed
 */
export function policyParameters(scripts: readonly Script[], image: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [first] = scripts;
  if (first === undefined) throw new Error("there are no scripts to pin");
  const previous = Object.entries(before).filter(([key]) => !key.startsWith(PREVIOUS));
  const text = (script: Script): string => podProgram(script).args[0] as string;
  const head = beginning(scripts.filter(changing).map(text));
  return {
    image,
    program: podProgram(first).command[2] as string,
    [HEAD]: head,
    ...Object.fromEntries(scripts.map((script) => [keyOf(script.name), changing(script) ? text(script).slice(head.length) : text(script)])),
    ...Object.fromEntries(previous.map(([key, value]) => [PREVIOUS + key, value])),
  };
}

const changing = ({ changes }: Script): boolean => changes === true;

/** A list parameter's pattern: a value of its own pattern, then more of it behind single blanks; perhaps nothing at all. */
const LIST = /^\^(?<optional>\(\?:)?(?<one>\(\?:.+\))\(\?: \k<one>\)\{0,(?<more>\d+)\}(?:\)\?)?\$$/;

/**
 * Whether the value `v` matches a parameter's pattern, in CEL. Lists are taken apart first: Kubernetes' regular expressions (RE2) refuse repetitions within
 * repetitions that make more than 1000.
 */
function matching(v: string, { pattern }: ScriptParameter): string {
  const { optional, one, more } = LIST.exec(pattern)?.groups ?? {};
  if (one === undefined) return `${v}.matches(${quoted(pattern)})`;
  const each = `${v}.split(' ').size() <= ${Number(more) + 1} && ${v}.split(' ').all(word, word.matches(${quoted(`^${one}$`)}))`;
  return optional === undefined ? `(${each})` : `(${v} == '' || (${each}))`;
}

/** The variables of a script: each of its own, once, with a value of its type. The API server leaves an empty value out. */
function environmentRule({ name, parameters }: Script): string {
  const names = Object.keys(parameters);
  const cases = Object.entries(parameters).map(([parameter, is]) => `variable.name == ${quoted(`NETCHECK_${parameter}`)} ? ${matching("variable.v", is)} : `);
  const rule = cases.join("").replaceAll("variable.v", "(has(variable.value) ? variable.value : '')");
  return `variables.script != ${quoted(name)} || (size(variables.environment) == ${names.length} && variables.environment.all(variable, ${rule}false))`;
}

/** A list that may be absent is empty. */
const none = (path: string): string => `(!has(${path}) || size(${path}) == 0)`;

/**
 * The policy for pods. An expression that cannot be evaluated (a field is missing) denies, too: failurePolicy Fail.
 * Cost: the longest comparison is of a script (14 KB here, 128 KB at most: 13,000 units of the 1,000,000 that Kubernetes allows an expression); the dearest
 * pattern has 250 characters over at most 4 KB, about 30,000 units.
 * @param scripts all that the catalogue can ever run, in a constant order
 */
export function podPolicy(scripts: readonly Script[]): PolicySpec {
  const deadline = MAX_START_SECONDS + SPARE_SECONDS + Math.max(...scripts.map(({ timeoutSeconds }) => timeoutSeconds));
  const seconds = scripts.map((script) => `${quoted(script.name)}: ${quoted(podProgram(script).args[1] as string)}`).join(", ");
  const c = "variables.container";
  const rules: readonly (readonly [message: string, expression: string])[] = [
    [
      "its name and labels must be those of netcheck's pods, so that the reaper finds it",
      [
        "object.metadata.name.matches('^netcheck-[0-9a-f]{32}$')",
        "has(object.metadata.labels)",
        `${quoted(LABEL.manager)} in object.metadata.labels && object.metadata.labels[${quoted(LABEL.manager)}] == ${quoted(MANAGER)}`,
        `${quoted(LABEL.job)} in object.metadata.labels && 'netcheck-' + object.metadata.labels[${quoted(LABEL.job)}] == object.metadata.name`,
        `${quoted(LABEL.expires)} in object.metadata.labels && object.metadata.labels[${quoted(LABEL.expires)}].matches('^[0-9]{10,11}$')`,
      ].join(" && "),
    ],
    ["it must belong to nobody: no owner", none("object.metadata.ownerReferences")],
    [
      "it must have one container and nothing else that runs",
      `size(object.spec.containers) == 1 && ${c}.name == ${quoted(CONTAINER)} && ${none("object.spec.initContainers")} && ${none("object.spec.ephemeralContainers")}`,
    ],
    ["its image must be the pinned one, by digest", pinned(`${c}.image`, "'image'")],
    [
      "its command must be netcheck's program",
      [
        `has(${c}.command) && size(${c}.command) == 4`,
        `${c}.command[0] == '/bin/sh' && ${c}.command[1] == '-c' && ${c}.command[3] == 'netcheck'`,
        pinned(`${c}.command[2]`, "'program'"),
      ].join(" && "),
    ],
    ["its annotation must name a script of netcheck's catalogue", `variables.script in ${list(scripts.map(({ name }) => name))}`],
    [
      "its script must be that of netcheck's catalogue, byte for byte",
      `has(${c}.args) && size(${c}.args) == 2 && (variables.changes ? ${pinned(`${c}.args[0]`, quoted(HEAD), "'script.' + variables.script")} : ${pinned(`${c}.args[0]`, "'script.' + variables.script")})`,
    ],
    ["its script must have its own time limit", `has(${c}.args) && size(${c}.args) == 2 && ${c}.args[1] == {${seconds}}[variables.script]`],
    [
      "it may have no variables but the parameters of its script, each once and as a plain value",
      `${none(`${c}.envFrom`)} && variables.environment.all(variable, !has(variable.valueFrom) && variables.environment.exists_one(other, other.name == variable.name))`,
    ],
    ...scripts.map((script) => [`the parameters of ${script.name} must be complete and of their types`, environmentRule(script)] as const),
    [
      "it may start nothing but its command, and take no input",
      [
        ...["lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "restartPolicy"].map((name) => `!has(${c}.${name})`),
        ...["stdin", "tty"].map((name) => `(!has(${c}.${name}) || !${c}.${name})`),
        `(!has(${c}.workingDir) || ${c}.workingDir == '')`,
        none(`${c}.ports`),
        none(`${c}.volumeDevices`),
      ].join(" && "),
    ],
    [
      "it must be in the host's network, processes and IPC, and no other namespace",
      [
        ...["hostNetwork", "hostPID", "hostIPC"].map((name) => `has(object.spec.${name}) && object.spec.${name}`),
        "(!has(object.spec.shareProcessNamespace) || !object.spec.shareProcessNamespace)",
        "(!has(object.spec.hostUsers) || object.spec.hostUsers)",
      ].join(" && "),
    ],
    [
      "its volumes must be the host's root and a memory of its own",
      [
        "has(object.spec.volumes) && size(object.spec.volumes) == 2",
        "object.spec.volumes.exists_one(volume, volume.name == 'host' && has(volume.hostPath) && volume.hostPath.path == '/')",
        "object.spec.volumes.exists_one(volume, volume.name == 'memory' && has(volume.emptyDir) && has(volume.emptyDir.medium) && volume.emptyDir.medium == 'Memory' && has(volume.emptyDir.sizeLimit))",
      ].join(" && "),
    ],
    [
      "it may mount only the host's root at /host and its memory at /tmp and /host/tmp",
      `has(${c}.volumeMounts) && size(${c}.volumeMounts) == 3 && ${[
        ["host", "/host"],
        ["memory", "/tmp"],
        ["memory", "/host/tmp"],
      ]
        .map(
          ([name, path]) =>
            `${c}.volumeMounts.exists_one(mount, mount.name == '${name}' && mount.mountPath == '${path}' && !has(mount.subPath) && !has(mount.subPathExpr)${
              name === "host" ? " && has(mount.mountPropagation) && mount.mountPropagation == 'HostToContainer'" : ""
            })`,
        )
        .join(" && ")}`,
    ],
    [
      "the host's root must be read-only for all scripts but fixes",
      `has(${c}.volumeMounts) && ${c}.volumeMounts.all(mount, mount.name != 'host' || (has(mount.readOnly) && mount.readOnly) || variables.changes)`,
    ],
    [
      "its security context must be that of netcheck's pods",
      [
        `has(${c}.securityContext) && has(${c}.securityContext.privileged) && ${c}.securityContext.privileged`,
        `has(${c}.securityContext.readOnlyRootFilesystem) && ${c}.securityContext.readOnlyRootFilesystem`,
        `has(${c}.securityContext.runAsUser) && ${c}.securityContext.runAsUser == 0`,
        `(!has(object.spec.securityContext) || ${none("object.spec.securityContext.sysctls")})`,
        "!has(object.spec.runtimeClassName)",
      ].join(" && "),
    ],
    [
      "it may hold no service account's token",
      [
        "has(object.spec.automountServiceAccountToken) && !object.spec.automountServiceAccountToken",
        "(!has(object.spec.serviceAccountName) || object.spec.serviceAccountName in ['', 'default'])",
      ].join(" && "),
    ],
    [
      `it must end by itself after at most ${deadline} s`,
      `has(object.spec.activeDeadlineSeconds) && object.spec.activeDeadlineSeconds >= 1 && object.spec.activeDeadlineSeconds <= ${deadline}`,
    ],
    [
      "it must never run again, and stop within 30 s",
      "object.spec.restartPolicy == 'Never' && has(object.spec.terminationGracePeriodSeconds) && object.spec.terminationGracePeriodSeconds <= 30",
    ],
    [
      "it must say on which node it runs, and look like that node to the network",
      "has(object.spec.nodeName) && object.spec.nodeName != '' && has(object.spec.dnsPolicy) && object.spec.dnsPolicy == 'Default' && !has(object.spec.dnsConfig) && (!has(object.spec.hostAliases) || size(object.spec.hostAliases) == 0)",
    ],
    [
      "it must have limits for cpu, memory and disk",
      `has(${c}.resources) && has(${c}.resources.limits) && ['cpu', 'memory', 'ephemeral-storage'].all(name, name in ${c}.resources.limits) && !has(object.spec.resourceClaims)`,
    ],
  ];
  return {
    failurePolicy: "Fail",
    paramKind: { apiVersion: "v1", kind: "ConfigMap" },
    matchConstraints: requests([{ operations: ["CREATE", "UPDATE"], resources: ["pods"] }]),
    variables: [
      { name: "container", expression: "object.spec.containers[0]" },
      { name: "environment", expression: `has(${c}.env) ? ${c}.env : []` },
      {
        name: "script",
        expression: `has(object.metadata.annotations) && ${quoted(ANNOTATION.script)} in object.metadata.annotations ? object.metadata.annotations[${quoted(ANNOTATION.script)}] : ''`,
      },
      { name: "changes", expression: `variables.script in ${list(scripts.filter(changing).map(({ name }) => name))}` },
    ],
    validations: rules.map(([message, expression]) => ({ expression, message: `netcheck: ${message}`, reason: "Forbidden" })),
    auditAnnotations: [{ key: "script", valueExpression: "string(variables.script)" }],
  };
}

/** The policy for ways into a pod that runs: nobody needs them, and a shell in a privileged pod is root on its node. */
export function entryPolicy(): PolicySpec {
  return {
    failurePolicy: "Fail",
    matchConstraints: requests([
      { operations: ["CONNECT"], resources: ["pods/exec", "pods/attach", "pods/portforward", "pods/proxy"] },
      { operations: ["UPDATE"], resources: ["pods/ephemeralcontainers"] },
    ]),
    validations: [{ expression: "false", message: "netcheck: nobody may enter a pod of this namespace or add a container to it", reason: "Forbidden" }],
  };
}

function requests(rules: readonly { operations: readonly string[]; resources: readonly string[] }[]): PolicySpec["matchConstraints"] {
  return {
    matchPolicy: "Equivalent",
    namespaceSelector: {},
    objectSelector: {},
    resourceRules: rules.map(({ operations, resources }) => ({ apiGroups: [""], apiVersions: ["v1"], operations, resources, scope: "*" })),
  };
}

/** `spec` of the binding: to one namespace, by the label that the API server itself puts on it and nobody can change. */
export function bindingSpec(policyName: string, namespace: string) {
  return {
    policyName,
    validationActions: ["Deny", "Audit"],
    ...(policyName === POLICY.pods ? { paramRef: { name: POLICY.parameters, namespace, parameterNotFoundAction: "Deny" } } : {}),
    matchResources: {
      matchPolicy: "Equivalent",
      namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": namespace } },
      objectSelector: {},
    },
  };
}
