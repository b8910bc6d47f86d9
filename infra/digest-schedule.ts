import { Duration } from "aws-cdk-lib";
import { Rule, RuleTargetInput, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction } from "aws-cdk-lib/aws-events-targets";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import type { TriageFunction } from "./triage-function.ts";

/** What it is asked: whether it is time. The hour and its time zone are in netcheck.yaml, which may change without a deployment. */
export const ASKED = { kind: "digest", digest: {} } as const;

/**
 * Asks every full hour whether the daily digest is due. The day's own execution is started by its name, so that an hour that is asked twice sums up once. What is
 * not asked within the half hour is not asked any more: a digest of the morning is of no use at noon.
 */
export class DigestSchedule extends Construct {
  constructor(scope: Construct, id: string, triage: TriageFunction) {
    super(scope, id);
    const target = new LambdaFunction(triage.alias as IFunction, {
      event: RuleTargetInput.fromObject(ASKED),
      deadLetterQueue: triage.failed.queue,
      retryAttempts: 2,
      maxEventAge: Duration.minutes(30),
    });
    new Rule(this, "Hourly", { description: "netcheck: digest of open incidents", schedule: Schedule.cron({ minute: "0" }), targets: [target] });
  }
}
