/**
 * How long an acknowledgement took, as an EMF line in the log: CloudWatch makes the metric `AckMs` of it. By hand, because Powertools would be a fifth of all
 * that this function reads at a cold start. @param ms since the request came
 */
export function ackMetric(service: "slack" | "pager", ms: number, nowMs: number): string {
  return JSON.stringify({
    _aws: { Timestamp: nowMs, CloudWatchMetrics: [{ Namespace: "netcheck", Dimensions: [["service"]], Metrics: [{ Name: "AckMs", Unit: "Milliseconds" }] }] },
    service,
    AckMs: Math.round(ms * 10) / 10,
  });
}
