import { hasToken } from "./proof.ts";
import { deliveryId, fields, labels, list, pageOf, severity, text, time } from "./read.ts";
import type { Reading, Source } from "./source.ts";

/** Actions that change whether somebody is needed; all others (notes, tags, …) are told to nobody. */
const STATUSES = new Map([
  ["Create", "firing"],
  ["UnAcknowledge", "firing"],
  ["Acknowledge", "acknowledged"],
  ["Close", "resolved"],
  ["Delete", "resolved"],
] as const);

/** Opsgenie's webhook integration, with a token of ours in a custom header `Authorization: Bearer …`, or Basic. */
export const opsgenie: Source = {
  name: "opsgenie",
  field: "opsgenie",
  proof: "the token does not fit: the webhook's custom header Authorization is “Bearer ” and what stands in the field opsgenie of the pager's secret",
  authentic: (delivery, secrets) => hasToken(delivery, secrets),
  read(value, delivery): Reading {
    const body = fields(value);
    const action = text(body["action"], 100);
    const alert = fields(body["alert"]);
    const key = text(alert["alertId"], 100);
    if (action === "" || key === "") return { problem: "this is no action of Opsgenie's webhook: it has no action and alert.alertId" };
    const status = STATUSES.get(action as Parameters<typeof STATUSES.get>[0]);
    if (status === undefined) return { ignored: `nothing follows from ${action}` };
    const priority = text(alert["priority"], 10);
    const names = (given: unknown): string =>
      list(given)
        .map((item) => text(item, 100))
        .filter((item) => item !== "")
        .join(",");
    const about = {
      entity: alert["entity"],
      source: alert["source"],
      alias: alert["alias"],
      priority,
      tags: names(alert["tags"]),
      teams: names(alert["teams"]),
    };
    return {
      page: pageOf("opsgenie", deliveryId(delivery), [
        {
          key,
          status,
          severity: severity(priority),
          title: text(alert["message"], 500) || `Opsgenie alert ${text(alert["tinyId"], 20)}`,
          labels: labels(about, alert["details"]),
          ref: key,
          at: time(alert["updatedAt"] ?? alert["createdAt"], delivery.now),
        },
      ]),
    };
  },
};
