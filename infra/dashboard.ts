import { Duration, Stack } from "aws-cdk-lib";
import { AlarmStatusWidget, Dashboard as CloudWatchDashboard, GraphWidget, type IMetric, PeriodOverride } from "aws-cdk-lib/aws-cloudwatch";
import { Construct } from "constructs";
import type { Alarms } from "./alarms.ts";
import { ours } from "./metrics.ts";
import type { NetcheckFunction } from "./netcheck-function.ts";
import type { Store } from "./store.ts";

export interface DashboardProps {
  readonly alarms: Alarms;
  readonly store: Store;
  readonly functions: readonly NetcheckFunction[];
}

/** One page: is anything wrong, how fast are we, how much is going on. */
export class Dashboard extends Construct {
  constructor(scope: Construct, id: string, { alarms, store, functions }: DashboardProps) {
    super(scope, id);
    const graph = (title: string, left: IMetric[]): GraphWidget => new GraphWidget({ title, left, width: 8, height: 6 });
    const each = (metric: (one: NetcheckFunction) => IMetric): IMetric[] => functions.map(metric);
    const five = { period: Duration.minutes(5) };
    new CloudWatchDashboard(this, "Dashboard", {
      dashboardName: Stack.of(this).stackName,
      periodOverride: PeriodOverride.AUTO,
      widgets: [
        [new AlarmStatusWidget({ title: "Alarms", alarms: [...alarms.alarms], width: 24, height: 4 })],
        [
          graph("Acknowledgement, ms (Slack waits 3,000)", [ours("slack", "AckMs", "p50"), ours("slack", "AckMs", "p99")]),
          graph("Triage, ms to the diagnosis", [ours("triage", "TriageMs", "p50"), ours("triage", "TriageMs", "p99")]),
          graph(
            "Triages and what failed",
            ["TriageStarted", "TriageFailed", "FixStarted", "FixOutcomeUnknown"].map((name) => ours("triage", name, "Sum")),
          ),
        ],
        [
          graph("Stuck approvals, leaked pods", [ours("reaper", "StuckApprovals", "Maximum"), ours("reaper", "LeakedPods", "Maximum")]),
          graph(
            "Functions: errors",
            each(({ lambda }) => lambda.metricErrors(five)),
          ),
          graph(
            "Functions: throttled",
            each(({ lambda }) => lambda.metricThrottles(five)),
          ),
        ],
        [
          graph(
            "Functions: running at once",
            each(({ lambda }) => lambda.metric("ConcurrentExecutions", { statistic: "Maximum", ...five })),
          ),
          graph(
            "Functions: duration p99, ms",
            each(({ lambda }) => lambda.metricDuration({ statistic: "p99", ...five })),
          ),
          graph("Table: consumed units", [store.table.metricConsumedReadCapacityUnits(five), store.table.metricConsumedWriteCapacityUnits(five)]),
        ],
      ],
    });
  }
}
