import type { PageAlert } from "../triage/ports.ts";
import { hasToken } from "./proof.ts";
import { alertsOf, deliveryId, fields, keyed, labels, link, pageOf, severity, sha256, text, time } from "./read.ts";
import type { Reading, Source } from "./source.ts";

/** Alertmanager's webhook receiver, version 4: a group of alerts, with a token of ours as `http_config.authorization.credentials` or `basic_auth.password`. */
export const alertmanager: Source = {
  name: "alertmanager",
  field: "alertmanager",
  proof:
    "the token does not fit: http_config.authorization.credentials (or basic_auth.password) of the receiver is what stands in the field alertmanager of the pager's secret",
  authentic: (delivery, secrets) => hasToken(delivery, secrets),
  read(value, delivery): Reading {
    const group = fields(value);
    if (group["version"] !== "4" || !Array.isArray(group["alerts"])) {
      const grafana = group["orgId"] === undefined ? "" : "; it looks like Grafana's, whose address is /pager/grafana";
      return { problem: `this is no group of alerts of Alertmanager's webhook, version 4${grafana}` };
    }
    const { alerts, left } = alertsOf(group);
    const read = alerts.flatMap((alert) => prometheusAlert(alert, delivery.now));
    return read.length === 0 ? { ignored: "there is no alert in it" } : { page: pageOf("alertmanager", deliveryId(delivery), read, left) };
  },
};

/** An alert as Alertmanager and Grafana have it; none if it has no labels. */
export function prometheusAlert(value: unknown, now: number): readonly PageAlert[] {
  const alert = fields(value);
  const read = labels(alert["labels"]);
  if (Object.keys(read).length === 0) return [];
  const annotations = fields(alert["annotations"]);
  const status = alert["status"] === "resolved" ? "resolved" : "firing";
  const name = read["alertname"] ?? "an alert without a name";
  const words = text(annotations["summary"], 400) || text(annotations["description"], 400);
  return [
    {
      // the fingerprint is a hash of the labels; so is ours
      key: keyed(text(alert["fingerprint"], 100) || sha256(JSON.stringify(Object.entries(read).sort(([a], [b]) => (a < b ? -1 : 1))))),
      status,
      severity: severity(read["severity"] ?? read["priority"] ?? ""),
      title: words === "" || words === name ? name : `${name}: ${words}`,
      labels: read,
      ...link(alert["panelURL"] || alert["generatorURL"]),
      at: time(status === "resolved" ? alert["endsAt"] : alert["startsAt"], now),
    },
  ];
}
