import { isHmac } from "./proof.ts";
import { fields, labels, link, list, pageOf, severity, text, time } from "./read.ts";
import type { Reading, Source } from "./source.ts";

/** Events of an incident that change whether somebody is needed; all others are told to nobody. */
const STATUSES = new Map([
  ["incident.triggered", "firing"],
  ["incident.reopened", "firing"],
  ["incident.unacknowledged", "firing"],
  ["incident.acknowledged", "acknowledged"],
  ["incident.resolved", "resolved"],
] as const);
/** Milliseconds: PagerDuty tries again for a while, and nobody needs a triage of what was a day ago. Its signature has no time in it. */
const TOO_OLD = 24 * 60 * 60_000;

/** PagerDuty's webhooks, version 3: signed over the bytes of the body, with one signature per secret that is valid at the time. */
export const pagerduty: Source = {
  name: "pagerduty",
  field: "pagerduty",
  proof: "no signature in X-PagerDuty-Signature fits: the secret of the webhook subscription belongs into the field pagerduty of the pager's secret",
  authentic({ headers, body }, secrets) {
    const given = (headers["x-pagerduty-signature"] ?? "").slice(0, 2000).split(",");
    return given.some((signature) => isHmac(/^\s*v1=([0-9a-f]{64})\s*$/.exec(signature)?.[1] ?? "", secrets, body));
  },
  read(value, { now }): Reading {
    const event = fields(fields(value)["event"]);
    const kind = text(event["event_type"], 100);
    const id = text(event["id"], 200);
    if (kind === "" || id === "") return { problem: "this is no event of PagerDuty's webhooks, version 3: it has no event.id and event.event_type" };
    const status = STATUSES.get(kind as Parameters<typeof STATUSES.get>[0]);
    if (status === undefined) return { ignored: `nothing follows from ${kind}` };
    const incident = fields(event["data"]);
    const key = text(incident["id"], 100);
    if (key === "") return { problem: "the event has no incident: event.data.id is missing" };
    const at = time(event["occurred_at"], now);
    if (now - Date.parse(at) > TOO_OLD) return { ignored: `it is from ${at}, more than a day ago` };
    const service = fields(incident["service"]);
    const priority = text(fields(incident["priority"])["summary"] ?? fields(incident["priority"])["name"], 100);
    const urgency = text(incident["urgency"], 20);
    return {
      page: pageOf("pagerduty", id, [
        {
          key,
          status,
          severity: severity(priority === "" ? urgency : priority),
          title: text(incident["title"], 500) || `PagerDuty incident ${key}`,
          labels: labels(
            {
              service: service["summary"],
              service_id: service["id"],
              incident_key: incident["incident_key"],
              urgency,
              priority,
              escalation_policy: fields(incident["escalation_policy"])["summary"],
              incident_type: fields(incident["incident_type"])["name"],
              teams: list(incident["teams"])
                .map((team) => text(fields(team)["summary"], 100))
                .join(","),
            },
            fields(fields(incident["body"])["details"]),
            customFields(incident["custom_fields"]),
          ),
          ref: key,
          ...link(incident["html_url"]),
          at,
        },
      ]),
    };
  },
};

/** Values of an incident's custom fields by their names. */
const customFields = (given: unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    list(given)
      .map(fields)
      .map(({ name, value }) => [text(name, 100), value]),
  );
