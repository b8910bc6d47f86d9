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

export const Config = z.strictObject({
  clusters: z.record(
    Name,
    z.strictObject({
      transport: z.enum(["ssm", "local", "replay"]),
      /** AWS region of an ssm cluster. */
      region: z
        .string()
        .regex(/^[a-z]{2}(?:-[a-z]+)+-\d$/)
        .optional(),
      /** Bucket for outputs that are too long for the reply (ssm). */
      outputBucket: z
        .string()
        .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)
        .optional(),
      /** Name → what the transport finds it by (an instance id); the name itself unless told. */
      targets: z.record(
        Name,
        z.strictObject({
          address: z.string().min(1).max(253).optional(),
          /** Nodes of one pool are built alike: where no rule finds a cause, a node is held against the others of its pool. */
          pool: Name.optional(),
        }),
      ),
    }),
  ),
  /** The collection runbook. */
  runbook: z.string().default("netcheck"),
  /** Who may approve fixes. An explicit deny wins; what no statement allows is denied. */
  policy: z.array(Statement).default([]),
});
export type Config = z.infer<typeof Config>;
