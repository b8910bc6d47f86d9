import { CfnOutput, Stack, type StackProps } from "aws-cdk-lib";
import type { Code } from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import type { Catalogue } from "../functions/rules/load.ts";
import { AckFunction } from "./ack-function.ts";
import { Alarms } from "./alarms.ts";
import { Api } from "./api.ts";
import { ArchiveBucket } from "./archive-bucket.ts";
import { ArchiveFunction } from "./archive-function.ts";
import { Configuration } from "./configuration.ts";
import { Dashboard } from "./dashboard.ts";
import { DataBucket } from "./data-bucket.ts";
import { DigestSchedule } from "./digest-schedule.ts";
import { EncryptionKey } from "./encryption-key.ts";
import type { FunctionName } from "./netcheck-function.ts";
import { grantNodeAccess } from "./node-access.ts";
import { AccessLogs } from "./private-bucket.ts";
import { ReaperFunction } from "./reaper-function.ts";
import { ScriptDocuments } from "./script-documents.ts";
import type { Settings } from "./settings.ts";
import { SigningSecret } from "./signing-secret.ts";
import { Store } from "./store.ts";
import { TriageFunction } from "./triage-function.ts";

export interface NetcheckStackProps extends StackProps {
  readonly settings: Settings;
  readonly catalogue: Catalogue;
  /** The bundle of an entry point. */
  readonly code: (name: FunctionName) => Code;
}

/** All of netcheck in one account and region. */
export class NetcheckStack extends Stack {
  constructor(scope: Construct, id: string, { settings, catalogue, code, ...props }: NetcheckStackProps) {
    super(scope, id, { description: "netcheck: incident triage for the network of nodes", ...props });
    const { tag, logDays, archiveDays, alarmEmail: email, memberRoles, tokenSecrets, pagerSecrets, reserve } = settings;
    const key = new EncryptionKey(this, "Encryption", { forFunctions: true });
    const logs = new AccessLogs(this, "AccessLogs", logDays);
    const store = new Store(this, "Store", key);
    const data = new DataBucket(this, "Data", key, logs);
    const archiveBucket = new ArchiveBucket(this, "AuditArchive", archiveDays, key, logs);
    const secret = new SigningSecret(this, "Slack", {
      key,
      description: 'netcheck: {"signingSecret": "…", "botToken": "xoxb-…"} of the Slack app, filled in by hand',
      empty: ["botToken"],
      byHand: "Slack issues both values on its own page and has no call that would renew them. Rotation is by hand; docs/operations.md says how.",
    });
    const pagerSecret = new SigningSecret(this, "Pager", {
      key,
      description: "netcheck: with what each monitoring system proves itself; only systems whose field is filled in are taken (docs/pages.md)",
      empty: ["pagerduty", "alertmanager", "grafana", "cloudwatch", "opsgenie"],
      byHand: "The monitoring systems hold the same value, and nothing of ours can change it there. Rotation is by hand; docs/operations.md says how.",
    });
    const configuration = new Configuration(this, "Configuration", settings.config);
    const documents = new ScriptDocuments(this, "Documents", catalogue);

    const basics = { key, code, logDays, reserve };
    // it alone answers monitoring systems
    const secrets = [...tokenSecrets, ...pagerSecrets];
    const triage = new TriageFunction(this, "TriageWorker", { ...basics, store, data, configuration, secret, memberRoles, tokenSecrets: secrets });
    new DigestSchedule(this, "Digest", triage);
    grantNodeAccess(this, triage.function.role, { documents, tag, outputBucketArn: data.bucket.bucketArn });
    const slack = new AckFunction(this, "SlackDoor", { ...basics, name: "slack", description: "netcheck: acknowledges Slack's requests", secret, triage });
    const pager = new AckFunction(this, "PagerDoor", { ...basics, name: "pager", description: "netcheck: acknowledges pages", secret: pagerSecret, triage });
    const reaper = new ReaperFunction(this, "ReaperWorker", { ...basics, store, data, configuration, memberRoles, tokenSecrets });
    const archive = new ArchiveFunction(this, "ArchiveWorker", { ...basics, store, archive: archiveBucket });

    const functions = { slack: slack.function, pager: pager.function, triage: triage.function, reaper: reaper.function, archive: archive.function };
    const api = new Api(this, "Api", { key, logDays, slack, pager });
    const deadLetters = { Triage: triage.failed, Reaper: reaper.failed, Archive: archive.failed };
    const alarms = new Alarms(this, "Alarms", { key, email, api, store, functions, deadLetters });
    new Dashboard(this, "Overview", { alarms, store, functions: Object.values(functions) });

    // of the stack itself: an output of a construct inside would be called by its place in the tree, and nobody finds it by the name that people and doctor know
    const tell = (name: string, value: string, description: string) => new CfnOutput(this, name, { value, description });
    tell("SlackUrl", `${api.url}/slack`, "Request URL of the Slack app: npm run manifest -- --url <this>");
    tell("PagerUrl", `${api.url}/pager`, "Where monitoring systems send pages: with /pagerduty, /alertmanager, … behind it (docs/pages.md)");
    tell("TableName", store.table.tableName, "Incidents and audit events; stays when the stack is destroyed");
    tell("DataBucketName", data.bucket.bucketName, "outputBucket of the clusters in netcheck.yaml; stays when the stack is destroyed");
    tell("ArchiveBucketName", archiveBucket.bucket.bucketName, "Locked copies of the audit events; stays when the stack is destroyed");
    tell("ConfigParameter", configuration.parameter.parameterName, "Holds netcheck.yaml; netcheck doctor reads it");
    tell("SlackSecretArn", secret.secret.secretArn, "Fill in signingSecret and botToken here");
    tell("PagerSecretArn", pagerSecret.secret.secretArn, "The signingSecret in it is for the monitoring systems");
    tell("TriageRole", triage.function.role.roleArn, "hubRole of member stacks");
    tell("AlarmTopic", alarms.topic.topicArn, "Where alarms go");
  }
}
