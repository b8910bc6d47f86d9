import { z } from "zod";

/** `netcheck.yaml` (DESIGN C15): where nodes are and who may approve what. Unknown keys are errors. Holds no secrets. */

const Name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/, "a name is letters, digits, '.', '_' and '-'");
const Patterns = z.array(z.string().min(1).max(253)).min(1);
/** Slack user ids (U…, W…), user group ids (S…), "cli", or "*". */
const People = z.array(z.string().regex(/^(?:[UWS][A-Z0-9_]{2,20}|cli|\*)$/, 'a user id (U…), a user group id (S…), "cli" or "*"')).min(1);

const Statement = z.strictObject({
  /** Named in refusals and in the audit trail. */
  id: z.string().min(1).max(80),
  effect: z.enum(["allow", "deny"]),
  /** Glob patterns. */
  clusters: Patterns.default(["*"]),
  targets: Patterns.default(["*"]),
  fixes: Patterns.default(["*"]),
  /** Whose incidents it is about. */
  requesters: People.default(["*"]),
  /** Who may approve (allow) or may not (deny). */
  approvers: People,
  /** May the requester approve the own request? */
  selfApproval: z.boolean().default(false),
  /** Distinct people needed. */
  approvalsNeeded: z.int().min(1).max(5).default(1),
  /** An unanswered proposal expires after this. */
  expiresMinutes: z
    .int()
    .min(1)
    .max(7 * 24 * 60)
    .default(60),
});
export type Statement = z.infer<typeof Statement>;

/** An https address that credentials are sent to. */
const Endpoint = z.string().regex(/^https:\/\/[A-Za-z0-9.:[\]_-]+(?:\/[\w./-]*)?$/, "an https address");
/** PEM, as it is in the cluster's own data. */
const Certificate = z.string().regex(/^-----BEGIN CERTIFICATE-----[\s\S]+-----END CERTIFICATE-----\s*$/, "a certificate in PEM");
const Region = z.string().regex(/^[a-z]{2}(?:-[a-z]+)+-\d$/);

/** How the API server of a debug-pod cluster is reached. */
const KubernetesAccess = z.discriminatedUnion("by", [
  z.strictObject({
    /** A kubeconfig file with all it may hold: certificates, tokens, exec plugins. */
    by: z.literal("kubeconfig"),
    file: z.string().min(1).max(1000),
    /** The file's current context unless told. */
    context: z.string().min(1).max(253).optional(),
  }),
  z.strictObject({
    /** The service account of the pod that netcheck runs in. */
    by: z.literal("in-cluster"),
  }),
  z.strictObject({
    by: z.literal("bearer"),
    endpoint: Endpoint,
    certificateAuthority: Certificate.optional(),
    /** ARN of a secret in Secrets Manager whose value is {"token": "…"}, or the name of an environment variable in local mode. Never the token itself. */
    tokenSecret: z
      .string()
      .regex(
        /^(?:arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}|[A-Z][A-Z0-9_]{0,63})$/,
        "the ARN of a secret, or the name of a variable",
      ),
  }),
  z.strictObject({
    by: z.literal("eks"),
    endpoint: Endpoint,
    certificateAuthority: Certificate,
    /** Of the cluster: a token is good for that one alone. */
    name: z.string().regex(/^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$/),
    region: Region,
    /** A role to assume first: the cluster is in another account. */
    role: z
      .string()
      .regex(/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/)
      .optional(),
  }),
]);

/** A Kubernetes name: lower case, DNS-safe. */
const DnsName = z.string().regex(/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/, "lower-case letters, digits and '-'");

const DebugPods = z.strictObject({
  access: KubernetesAccess,
  /** Labelled for privileged pods (infra/k8s). */
  namespace: DnsName.default("netcheck"),
  /** By digest, so that what runs as root on every node is what was reviewed. */
  image: z.string().regex(/^[A-Za-z0-9][\w./:-]*@sha256:[0-9a-f]{64}$/, "an image by its digest: name@sha256:…"),
  /** Name of the namespace's secret that lets nodes pull the image. */
  pullSecret: DnsName.optional(),
  priorityClass: DnsName.optional(),
  /** Nodes with all these labels belong to the cluster without being named here: by name, IP address or instance id. All Linux nodes: `kubernetes.io/os: linux`. */
  targetsByLabel: z
    .record(
      z.string().regex(/^(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/, "a label's name"),
      z.string().regex(/^(?:[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?)?$/, "a label's value"),
    )
    .refine((labels) => Object.keys(labels).length > 0 && Object.keys(labels).length <= 5, "one to five labels")
    .optional(),
  /** A pod that has not started by then is given up. */
  startSeconds: z.int().min(10).max(1800).default(120),
});

const Cluster = z
  .strictObject({
    transport: z.enum(["ssm", "debug-pod", "local", "replay"]),
    /** Tried where the first transport could not look at a node: the thread says so, and a fix then goes the same way. Never tried once a fix is under way. */
    fallback: z.enum(["ssm", "debug-pod"]).optional(),
    /** Of a cluster that is reached by debug pods. */
    debugPods: DebugPods.optional(),
    /** AWS region of an ssm cluster. */
    region: Region.optional(),
    /** Bucket for outputs that are too long for the reply (ssm). */
    outputBucket: z
      .string()
      .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)
      .optional(),
    /** ARN of a role to assume first: the nodes of an ssm cluster are in another account. It must trust netcheck's own role. */
    role: z
      .string()
      .regex(/^arn:aws[a-z-]*:iam::\d{12}:role\/[\w+=,.@/-]+$/, "the ARN of a role")
      .optional(),
    /** What that role asks of whoever assumes it. No secret: it keeps others from using netcheck for their own ends. */
    externalId: z
      .string()
      .regex(/^[\w+=,.@:/-]{2,1224}$/)
      .optional(),
    /** Nodes with all these tags belong to an ssm cluster without being named here. */
    targetsByTag: z
      .record(z.string().min(1).max(128), z.string().min(1).max(256))
      .refine((tags) => Object.keys(tags).length > 0 && Object.keys(tags).length <= 5, "one to five tags")
      .optional(),
    /** Name → what the transport finds it by (an instance id); the name itself unless told. */
    targets: z
      .record(
        Name,
        z.strictObject({
          address: z.string().min(1).max(253).optional(),
          /** What `fallback` finds it by: a node's name in Kubernetes, or an instance id. Else the cluster is asked (`targetsByLabel`), else it is the name. */
          fallbackAddress: z.string().min(1).max(253).optional(),
          /** Nodes of one pool are built alike: where no rule finds a cause, a node is held against the others of its pool. */
          pool: Name.optional(),
        }),
      )
      .default({}),
  })
  .refine(({ transport, fallback, debugPods }) => debugPods !== undefined || (transport !== "debug-pod" && fallback !== "debug-pod"), {
    path: ["debugPods"],
    message: "the transport debug-pod needs debugPods: how the cluster is reached, and the image",
  })
  .refine(({ transport, fallback }) => transport !== fallback, { path: ["fallback"], message: "the fallback is another transport than the first" });

export const Config = z.strictObject({
  clusters: z.record(Name, Cluster),
  /** Where the triages of pages are answered: a channel's id. The bot must be in it. */
  pages: z.strictObject({ channel: z.string().regex(/^[CG][A-Z0-9]{2,20}$/, "the id of a channel (C…)") }).optional(),
  /** The collection runbook. */
  runbook: z.string().default("netcheck"),
  /** Who may approve fixes. An explicit deny wins; what no statement allows is denied. */
  policy: z.array(Statement).default([]),
});
export type Config = z.infer<typeof Config>;
