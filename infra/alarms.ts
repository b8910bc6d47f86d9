import { Duration, Stack } from "aws-cdk-lib";
import { Alarm, ComparisonOperator, type IMetric, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import { ServicePrincipal } from "aws-cdk-lib/aws-iam";
import { Topic } from "aws-cdk-lib/aws-sns";
import { EmailSubscription } from "aws-cdk-lib/aws-sns-subscriptions";
import { Construct } from "constructs";
import type { Api } from "./api.ts";
import { DeadLetters } from "./dead-letters.ts";
import type { EncryptionKey } from "./encryption-key.ts";
import { ours } from "./metrics.ts";
import type { NetcheckFunction } from "./netcheck-function.ts";
import type { Store } from "./store.ts";

/** Slack gives up after 3,000 ms. */
const SLOW_ACK_MS = 2500;

export interface AlarmsProps {
  readonly key: EncryptionKey;
  readonly email: string | undefined;
  readonly api: Api;
  readonly store: Store;
  readonly functions: Readonly<Record<"slack" | "pager" | "triage" | "reaper" | "archive", NetcheckFunction>>;
  readonly deadLetters: Readonly<Record<string, DeadLetters>>;
}

interface AlarmSettings {
  readonly metric: IMetric;
  /** What it means and what to do: the text that the person who is woken reads. */
  readonly text: string;
  readonly threshold?: number;
  /** Periods in a row. */
  readonly periods?: number;
  readonly below?: boolean;
}

/** Each alarm says in its description what it means and what to do. All go to one topic. */
export class Alarms extends Construct {
  readonly topic: Topic;
  readonly alarms: readonly Alarm[];

  constructor(scope: Construct, id: string, { key, email, api, store, functions, deadLetters }: AlarmsProps) {
    super(scope, id);
    this.topic = new Topic(this, "Topic", { displayName: "netcheck alarms", masterKey: key.key, enforceSSL: true });
    this.topic.grantPublish(
      new ServicePrincipal("cloudwatch.amazonaws.com", { conditions: { StringEquals: { "aws:SourceAccount": Stack.of(this).account } } }),
    );
    if (email !== undefined) this.topic.addSubscription(new EmailSubscription(email, { deadLetterQueue: new DeadLetters(this, "Undelivered", key).queue }));
    const five = Duration.minutes(5);
    const { slack, pager, triage, reaper, archive } = functions;
    const settings: Record<string, AlarmSettings> = {
      AckSlow: {
        metric: ours("slack", "AckMs", "p99"),
        threshold: SLOW_ACK_MS,
        text: "Slack gives up after 3 s, and people see an error. Look at the function's Duration and Init Duration, and at Secrets Manager's latency.",
      },
      AckErrors: {
        metric: slack.lambda.metricErrors({ period: five }),
        text: "Requests from Slack failed. Is the secret filled in? The function's log says what went wrong.",
      },
      PagerErrors: {
        metric: pager.lambda.metricErrors({ period: five }),
        text: "Pages failed. Is the secret filled in? The function's log says what went wrong.",
      },
      ApiErrors: {
        metric: api.api.metricServerError({ period: five, statistic: "Sum" }),
        text: "The address answered with 5xx. The access log names the integration's error.",
      },
      TriageFailed: {
        metric: ours("triage", "TriageFailed", "Sum"),
        text: "A triage could not be finished; its thread and the audit trail say why. Search the log for the incident's id.",
      },
      TriageErrors: {
        metric: triage.lambda.metricErrors({ period: five }),
        text: "The triage function itself failed. Configuration, secret, or a bug: its log says which.",
      },
      StuckApprovals: {
        // the reaper counts those whose time is over: their own triage should have closed them
        metric: ours("reaper", "StuckApprovals", "Minimum"),
        periods: 3,
        text: "Approvals are over and their triages did not notice: executions do not run. The reaper's log names the incidents; look at the triage function.",
      },
      LeakedPods: {
        metric: ours("reaper", "LeakedPods", "Minimum"),
        periods: 3,
        text: "Debug pods are past their time and three rounds of the reaper could not delete them. Delete them by hand (docs/operations.md) and look at the reaper's log.",
      },
      FixOutcomeUnknown: {
        metric: ours("triage", "FixOutcomeUnknown", "Sum"),
        text: "It is not known whether a fix ran. It is never run again by itself: look at the node, and at the run marker that the thread names.",
      },
      ReaperSilent: {
        metric: reaper.lambda.metricInvocations({ period: Duration.minutes(15) }),
        below: true,
        text: "The reaper did not run for 15 minutes: pods and approvals are not watched. Is the schedule's rule enabled?",
      },
      ReaperErrors: {
        metric: reaper.lambda.metricErrors({ period: five }),
        periods: 3,
        text: "The reaper failed three times in a row: pods and approvals are not watched.",
      },
      ArchiveBehind: {
        metric: archive.lambda.metric("IteratorAge", { statistic: "Maximum", period: five }),
        threshold: Duration.hours(1).toMilliseconds(),
        text: "Audit events wait for more than an hour to be archived. After 20 hours they go to the dead-letter queue.",
      },
      TableThrottled: {
        metric: store.table.metricThrottledRequestsForOperations({
          operations: ["GetItem", "PutItem", "Query", "TransactWriteItems"].map((name) => name as never),
          period: five,
        }),
        threshold: 10,
        text: "DynamoDB slows us down. Nothing is lost, runs take longer. On-demand tables adapt within minutes; else raise the table's quota.",
      },
    };
    for (const [name, one] of Object.entries(functions))
      settings[`${upper(name)}Throttled`] = {
        metric: one.lambda.metricThrottles({ period: five }),
        text: `The ${name} function was asked for more than its reserved concurrency. Callers try again; if it lasts, raise the concurrency in infra/.`,
      };
    for (const [name, { queue }] of Object.entries(deadLetters))
      settings[`${name}DeadLetters`] = {
        metric: queue.metricApproximateNumberOfMessagesVisible({ period: five, statistic: "Maximum" }),
        text: `Something of ${name} failed for good and is in its dead-letter queue for 14 days. docs/operations.md says what to do with it.`,
      };
    this.alarms = Object.entries(settings).map(([name, { metric, text, threshold = 1, periods = 1, below = false }]) => {
      const alarm = new Alarm(this, name, {
        metric,
        threshold,
        evaluationPeriods: periods,
        comparisonOperator: below ? ComparisonOperator.LESS_THAN_THRESHOLD : ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        treatMissingData: below ? TreatMissingData.BREACHING : TreatMissingData.NOT_BREACHING,
        alarmDescription: text,
      });
      alarm.addAlarmAction(new SnsAction(this.topic));
      return alarm;
    });
  }
}

const upper = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1);
