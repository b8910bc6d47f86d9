import { prometheusAlert } from "./alertmanager.ts";
import { hasToken, isHmac, isRecent } from "./proof.ts";
import { alertsOf, deliveryId, fields, pageOf, text } from "./read.ts";
import type { Reading, Source } from "./source.ts";

/**
 * Grafana's webhook contact point: with a token (Authorization header, or password of Basic), or signed with the same text: the signature is the hex HMAC-SHA256
 * of the body, or of `<timestamp>:<body>` where the contact point names a header for the time. The headers are those that Grafana suggests.
 */
export const grafana: Source = {
  name: "grafana",
  field: "grafana",
  proof:
    "neither the token nor the signature fits: the contact point's authorization credentials, its Basic password or its HMAC secret is what stands in the field grafana of the pager's secret; the headers of a signature are X-Grafana-Alerting-Signature and X-Grafana-Alerting-Timestamp",
  authentic(delivery, secrets) {
    const { headers, body, now } = delivery;
    const given = (headers["x-grafana-alerting-signature"] ?? "").trim();
    if (given === "") return hasToken(delivery, secrets);
    const timestamp = headers["x-grafana-alerting-timestamp"];
    return timestamp === undefined ? isHmac(given, secrets, body) : isRecent(timestamp, now) && isHmac(given, secrets, `${timestamp}:`, body);
  },
  read(value, delivery): Reading {
    const group = fields(value);
    if (!Array.isArray(group["alerts"])) return { problem: "this is no notification of Grafana's webhook contact point: it has no list of alerts" };
    const { alerts, left } = alertsOf(group);
    const read = alerts.flatMap((alert) => {
      // an annotation belongs to a rule
      const rule = text(fields(fields(alert)["labels"])["__alert_rule_uid__"], 100);
      return prometheusAlert(alert, delivery.now).map((one) => (rule === "" ? one : { ...one, ref: rule }));
    });
    return read.length === 0 ? { ignored: "there is no alert in it" } : { page: pageOf("grafana", deliveryId(delivery), read, left) };
  },
};
