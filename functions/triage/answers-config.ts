import { z } from "zod";

/** The parts of `netcheck.yaml` that are about answers to pages, follow-ups and the daily digest. */

/** ARN of a secret in Secrets Manager whose value is {"token": "…"}, or the name of an environment variable in local mode. Never the token itself. */
const SecretName = z
  .string()
  .regex(
    /^(?:arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:[\w/+=.@-]{1,512}|[A-Z][A-Z0-9_]{0,63})$/,
    "the ARN of a secret, or the name of a variable",
  );
const Email = z.string().regex(/^[^\s@<>"]{1,64}@[A-Za-z0-9.-]{1,250}$/, "an e-mail address");

/** Where answers to pages go, besides the thread. */
export const PagersConfig = z.strictObject({
  /** Notes on incidents of PagerDuty, who is on call there, and calls where nobody takes an alert on. */
  pagerduty: z
    .strictObject({
      /** Of a REST API key: the ARN of a secret whose value is {"token": "…"}; in local mode the name of an environment variable. */
      tokenSecret: SecretName,
      /** E-mail address of the PagerDuty user in whose name notes are left. */
      from: Email,
      /** Service region of the account. */
      region: z.enum(["us", "eu"]).default("us"),
      /** Of the integration key ("Events API v2") of the service that calls somebody: named as `tokenSecret` is. Without it nobody is called. */
      routingKeySecret: SecretName.optional(),
    })
    .optional(),
  /** Notes on alerts of Opsgenie, and who is on call there. */
  opsgenie: z
    .strictObject({
      /** Of the key of an API integration that may read and update alerts; named as for PagerDuty. */
      tokenSecret: SecretName,
      region: z.enum(["us", "eu"]).default("us"),
    })
    .optional(),
  /** An annotation for what takes no notes itself: alerts of Grafana, Alertmanager, CloudWatch and your own. */
  grafana: z
    .strictObject({
      /** Of the instance. */
      url: z.string().regex(/^https:\/\/[A-Za-z0-9.:[\]_-]+(?:\/[\w./-]*)?$/, "an https address"),
      /** Of the token of a service account with annotations:read and annotations:create; named as for PagerDuty. */
      tokenSecret: SecretName,
    })
    .optional(),
  /** Who is who: e-mail address in a schedule → Slack user id. Who is not here is looked up in Slack, if the app may (users:read.email). */
  people: z.record(Email, z.string().regex(/^[UW][A-Z0-9_]{2,20}$/, "a user id (U…)")).optional(),
});

/** Looks at a node again, after its incident ended. */
export const FollowUpsConfig = z.strictObject({
  /** When, after a fix or after a cause was left as it was. None: never. */
  after: z
    .array(z.string().regex(/^(?:[1-9]\d{0,2}m|[1-9]\d?h)$/, 'minutes or hours: "5m", "2h"'))
    .max(5)
    .default(["5m", "30m"]),
  /** Other nodes of the pool that are looked at as well, if the cause is still or again there. */
  spread: z.int().min(0).max(50).default(10),
});

/** Sums up open incidents, once a day, in each channel that has any. */
export const DigestConfig = z.strictObject({
  /** Full hour, 0 to 23. */
  hour: z.int().min(0).max(23).default(9),
  /** IANA name: "Europe/Berlin", "UTC". */
  timeZone: z.string().min(1).max(50).refine(isTimeZone, "the IANA name of a time zone").default("UTC"),
});

function isTimeZone(name: string): boolean {
  try {
    return Intl.DateTimeFormat("en", { timeZone: name }).resolvedOptions().timeZone !== "";
  } catch {
    return false;
  }
}
