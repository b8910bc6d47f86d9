import { Duration } from "aws-cdk-lib";
import { Metric } from "aws-cdk-lib/aws-cloudwatch";

/** Namespace and dimension of what the functions write into their logs as EMF (functions/aws/metrics.ts). */
const NAMESPACE = "netcheck";

/**
 * A metric of ours.
 * @param service the function that writes it: its `service` dimension
 * @param statistic such as "p99", "Sum", "Maximum"
 */
export function ours(service: "slack" | "pager" | "triage" | "reaper", metricName: string, statistic: string, period = Duration.minutes(5)): Metric {
  return new Metric({ namespace: NAMESPACE, metricName, dimensionsMap: { service }, statistic, period });
}
