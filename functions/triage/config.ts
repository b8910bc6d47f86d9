import picomatch from "picomatch";
import { z } from "zod";
import { groupOf, re2 } from "../rules/re2.ts";
import { DigestConfig, FollowUpsConfig, PagersConfig } from "./answers-config.ts";
import { DAYS, neverEnds, windowProblem } from "./freeze.ts";

/** `netcheck.yaml` (DESIGN C15): where nodes are and who may approve what. Unknown keys are errors. Holds no secrets. */

const Name = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,252}$/, "a name is letters, digits, '.', '_' and '-'");
/**
 * Glob patterns. A glob becomes a regular expression, whose time grows with the power of its asterisks: with three, the longest name (253) takes 30 ms; with
 * seven, longer than anybody waits. No parentheses: between them a regular expression can be written that takes for ever with one.
 */
const Patterns = z
  .array(
    z
      .string()
      .min(1)
      .max(253)
      .regex(/^[^()\\]+$/, 'a pattern has no "(", ")" or "\\"')
      .refine((pattern) => pattern.split("*").length <= 4, 'a pattern has at most three "*"; use several patterns instead'),
  )
  .min(1);
/** Slack user ids (U…, W…), user group ids (S…), "cli", or "*". */
const People = z.array(z.string().regex(/^(?:[UWS][A-Z0-9_]{2,20}|cli|\*)$/, 'a user id (U…), a user group id (S…), "cli" or "*"')).min(1);

/** Somebody in particular: not "*". */
const Named = z.array(z.string().regex(/^(?:[UWS][A-Z0-9_]{2,20}|cli)$/, 'a user id (U…), a user group id (S…) or "cli"; not "*"')).min(1);

/** Up to 30 days. */
const Duration = z.string().refine((text) => DURATION.test(text) && milliseconds(text) <= 30 * DAY_MS, 'a duration up to 30 days: "45m", "2h" or "7d"');
const Quota = z.strictObject({
  most: z.int().min(1).max(1000),
  /** In any time of this length: "45m", "2h", "7d". */
  per: Duration.default("1h"),
});

const FreezeWindows = z
  .array(
    z
      .strictObject({
        /** Weekly, on these days. Without days the window is there once, and `from` and `to` are dates. */
        days: z.array(z.enum(DAYS)).min(1).optional(),
        /** "18:00"; of a window without days "2026-12-20" (the beginning of that day) or "2026-12-20T18:00". */
        from: z.string().max(16),
        /** "08:00", of the next day if it is not after `from`, or "24:00"; of a window without days "2027-01-03" (the end of that day) or "2027-01-03T08:00". */
        to: z.string().max(16),
        /** IANA name: "Europe/Berlin", "UTC". A doubtful hour, where the clocks change, is frozen. */
        timeZone: z.string().min(1).max(50),
      })
      .superRefine((window, issues) => {
        const problem = windowProblem(window);
        if (problem !== undefined) issues.addIssue({ code: "custom", path: [problem.key], message: problem.message });
      }),
  )
  .min(1)
  .max(50)
  .superRefine((windows, issues) => {
    if (neverEnds(windows)) issues.addIssue({ code: "custom", message: "these windows leave no minute of the week" });
  });

/** What it is about. A statement is about something only if all of these fit. */
const About = z.strictObject({
  /** Named in refusals and in the audit trail. No two statements have the same. */
  id: z.string().min(1).max(80),
  /** Glob patterns. */
  clusters: Patterns.default(["*"]),
  targets: Patterns.default(["*"]),
  fixes: Patterns.default(["*"]),
  /** Fixes of which risk: those that disturb nothing else, or those that may (fix.yaml). */
  risks: z
    .array(z.enum(["low", "disruptive"]))
    .min(1)
    .default(["low", "disruptive"]),
  /** Whose incidents it is about. */
  requesters: People.default(["*"]),
});

const Allow = About.extend({
  effect: z.literal("allow"),
  /** Who may approve. */
  approvers: People,
  /** May the requester approve the own request? */
  selfApproval: z.boolean().default(false),
  /** Distinct people needed. Of several statements that are about a fix the strictest counts. */
  approvalsNeeded: z.int().min(1).max(5).default(1),
  /** An unanswered proposal expires after this: "60m", "2h", "7d". 7 days at most. */
  expires: Duration.refine((text) => milliseconds(text) <= 7 * DAY_MS, "7 days at most").default("60m"),
  /** The approvers are reminded after this, and then after twice as long each time. */
  remind: Duration.optional(),
  /** When it does not allow. */
  freezeWindows: FreezeWindows.optional(),
  /** How many nodes of a cluster may be changed within a time. */
  maxNodes: Quota.optional(),
  /** How many fixes may be run in a cluster within a time. */
  rate: Quota.optional(),
  /** Fixes that run at the same moment: one on each node, or one in the whole cluster. */
  oneAtATime: z.enum(["node", "cluster"]).default("node"),
  /** For an emergency. Who may approve alone where the statement does not allow it to them: in a freeze window, without a second person, or not being an approver. */
  breakGlass: z
    .strictObject({
      /** They give a reason, which is told openly and recorded. No deny is overridden. */
      who: Named,
      /** Who looks at it afterwards; the approvers unless told. Never the one who broke the glass. */
      reviewers: Named.optional(),
    })
    .optional(),
});

const Deny = About.extend({
  effect: z.literal("deny"),
  /** Who may not approve. */
  approvers: People,
  /** When it denies; always unless told. */
  freezeWindows: FreezeWindows.optional(),
});

/** One statement of the policy (docs/policy.md). */
const Statement = z.discriminatedUnion("effect", [Allow, Deny], { error: 'a statement has the effect "allow" or "deny"' }).superRefine((statement, issues) => {
  const problem = statement.effect === "allow" ? contradiction(statement) : undefined;
  if (problem !== undefined) issues.addIssue({ code: "custom", path: [problem.key], message: problem.message });
});
export type Statement = z.infer<typeof Statement>;
export type AllowStatement = z.infer<typeof Allow>;

/** A statement that contradicts itself. */
function contradiction({ approvers, approvalsNeeded, requesters, selfApproval, expires, remind, breakGlass }: AllowStatement) {
  const people = new Set(approvers);
  // a group, or everybody, has as many members as it has
  const countable = approvers.every((id) => id !== "*" && !id.startsWith("S"));
  if (countable && people.size < approvalsNeeded)
    return { key: "approvalsNeeded", message: `${approvalsNeeded} people are to approve, and only ${people.size} named` } as const;
  const [only] = approvers;
  if (countable && people.size === 1 && !selfApproval && breakGlass === undefined && requesters.every((id) => id === only))
    return { key: "approvers", message: "it can never match: the one approver is the one requester, and selfApproval is off" } as const;
  if (remind !== undefined && milliseconds(remind) >= milliseconds(expires))
    return { key: "remind", message: `nobody is ever reminded: the proposal expires after ${expires}` } as const;
  return undefined;
}

const DURATION = /^[1-9]\d{0,4}[mhd]$/;
const DAY_MS = 24 * 60 * 60_000;
/** Of "45m", "2h", "7d". */
export function milliseconds(duration: string): number {
  const unit = { m: 60_000, h: 60 * 60_000, d: DAY_MS }[duration.slice(-1)] ?? Number.NaN;
  return Number(duration.slice(0, -1)) * unit;
}

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

/** A channel that the bot is in. */
const Channel = z.string().regex(/^[CG][A-Z0-9_]{2,20}$/, "the id of a channel (C…)");
/** RE2: no pattern takes longer than its length times the text's. */
const Pattern = z.string().min(1).max(300);
const compiles = (pattern: string): boolean => {
  try {
    return re2(pattern) !== undefined;
  } catch {
    return false;
  }
};
/** A person or a user group of the chat. */
const Somebody = z.string().regex(/^[UWS][A-Z0-9_]{2,20}$/, "a user id (U…) or a user group id (S…)");
/** The names of a label, a dimension, a custom detail. `title` is the alert's title. */
const LabelName = z.string().min(1).max(100);

/** What becomes of some alerts. */
const PageRoute = z.strictObject({
  /** Which alerts: all of these must fit. Without any: all alerts. */
  match: z
    .strictObject({
      source: z.enum(["pagerduty", "alertmanager", "grafana", "cloudwatch", "opsgenie", "generic"]).optional(),
      severity: z.enum(["critical", "warning", "info"]).optional(),
      /** Label → RE2 that its whole value must fit. A label that the alert does not have is "". */
      labels: z.record(LabelName, Pattern.refine(compiles, "no regular expression (RE2)")).optional(),
    })
    .default({}),
  /** Where they are answered, if not in the channel of all pages. */
  channel: Channel.optional(),
  /** Whose nodes they name. Unless told: the alert's label `cluster`, if it has one, else any cluster. */
  cluster: Name.optional(),
  /** Where the names of nodes are: the first one that gives any counts. Unless told: usual labels, such as node, host, InstanceId, instance. */
  targets: z
    .array(
      z.strictObject({
        label: LabelName,
        /** RE2 with one group: the group's text is the name, where the pattern first fits. Without it the whole value is, less a port behind it. */
        regex: Pattern.refine((pattern) => compiles(pattern) && re2(pattern).groupCount() === 1, "no regular expression (RE2) with just one group")
          .refine((pattern) => !compiles(pattern) || groupOf(pattern, "") === undefined, "it fits an empty text")
          .optional(),
      }),
    )
    .min(1)
    .max(20)
    .optional(),
  /** False: nothing is examined, and nobody is told. */
  triage: z.boolean().default(true),
  /** When nobody acknowledges a critical alert. */
  escalate: z
    .strictObject({
      after: Duration,
      /** PagerDuty's Events API, or a direct message. */
      by: z.enum(["pagerduty", "dm"]),
      /** Of "dm": a user (U…) or a user group (S…); who is on call unless told. */
      to: Somebody.optional(),
    })
    .optional(),
  /** Who is on call. They are mentioned in the thread. */
  onCall: z
    .strictObject({
      /** Whose schedule it is; "slack": a person, or a user group whose members change with the shift. */
      by: z.enum(["pagerduty", "opsgenie", "slack"]),
      /** Id of the schedule; of "slack" a user's (U…) or a user group's (S…). */
      schedule: z.string().regex(/^[\w-]{2,100}$/, "the id of a schedule, a user or a user group"),
    })
    .refine(({ by, schedule }) => by !== "slack" || Somebody.safeParse(schedule).success, {
      path: ["schedule"],
      message: "a user id (U…) or a user group id (S…)",
    })
    .optional(),
});

/** Pages from monitoring systems (docs/pages.md). */
const Pages = z.strictObject({
  /** Where the triages of pages are answered, unless a route names another one. */
  channel: Channel,
  /** An alert that fires again, or still, is not examined again on the same node before this. */
  cooldown: Duration.default("30m"),
  /** Alerts that come within this are one message, with one thread. */
  window: Duration.refine((text) => milliseconds(text) <= DAY_MS, "a day at most").default("5m"),
  /** Nodes that are examined for one such message; of more, somebody has to choose. */
  maxTargets: z.int().min(1).max(20).default(5),
  /** The first that fits an alert counts. An alert that none fits is examined, with what is usual. */
  routes: z.array(PageRoute).max(200).default([]),
});

const Settings = z.strictObject({
  clusters: z.record(Name, Cluster),
  /** What becomes of the pages of monitoring systems; without it they are refused. */
  pages: Pages.optional(),
  /** Where answers to pages go, besides the thread. */
  pagers: PagersConfig.optional(),
  /** Looks at a node again, after its incident ended; "5m" and "30m" later unless told. */
  followUps: FollowUpsConfig.optional(),
  /** Sums up open incidents, once a day, in each channel that has any. Without it there is none. */
  digest: DigestConfig.optional(),
  /**
   * Whose people netcheck serves: workspaces (T…), or organisations of Enterprise Grid (E…). Without it: every workspace in which the app is installed, but
   * nobody from another company in a shared channel.
   */
  slack: z
    .strictObject({
      teams: z
        .array(z.string().regex(/^[TE][A-Z0-9_]{2,20}$/, "the id of a workspace (T…) or of an organisation (E…)"))
        .min(1)
        .max(50),
    })
    .optional(),
  /** The collection runbook. */
  runbook: z.string().default("netcheck"),
  /** Who may approve fixes. An explicit deny wins; what no statement allows is denied. */
  policy: z.array(Statement).max(200).default([]),
  /** Where it is told openly when somebody breaks the glass, besides the thread: a channel's id. The bot must be in it. */
  breakGlass: z.strictObject({ channel: z.string().regex(/^[CG][A-Z0-9_]{2,20}$/, "the id of a channel (C…)") }).optional(),
});

export const Config = Settings.superRefine(({ clusters, policy, pages }, issues) => {
  pages?.routes.forEach(({ cluster }, index) => {
    if (cluster === undefined || Object.hasOwn(clusters, cluster)) return;
    const message = `there is no cluster "${cluster}": the clusters are ${Object.keys(clusters).join(", ") || "none at all"}`;
    issues.addIssue({ code: "custom", path: ["pages", "routes", index, "cluster"], message });
  });
  policy.forEach((statement, index) => {
    const earlier = policy.findIndex(({ id }) => id === statement.id);
    if (earlier < index) issues.addIssue({ code: "custom", path: ["policy", index, "id"], message: `there is another statement "${statement.id}"` });
    const problem = neverMatches(statement, clusters);
    if (problem !== undefined) issues.addIssue({ code: "custom", path: ["policy", index, problem.key], message: problem.message });
  });
});
export type Config = z.infer<typeof Config>;

/** A statement about clusters or nodes that are not configured. Of a cluster whose nodes are found by tag or label any name may come. */
function neverMatches({ clusters, targets }: Statement, configured: z.infer<typeof Settings>["clusters"]) {
  const about = Object.keys(configured).filter((name) => picomatch.isMatch(name, clusters));
  if (about.length === 0)
    return { key: "clusters", message: `it can never match: the clusters are ${Object.keys(configured).join(", ") || "none at all"}` } as const;
  const open = about.some((name) => configured[name]?.targetsByTag !== undefined || configured[name]?.debugPods?.targetsByLabel !== undefined);
  const named = picomatch(targets);
  if (open || targets.includes("*") || about.some((name) => Object.keys(configured[name]?.targets ?? {}).some((target) => named(target)))) return undefined;
  return { key: "targets", message: `it can never match: no node of ${about.join(", ")} is named so` } as const;
}
