import { DescribeContinuousBackupsCommand, DescribeTableCommand, DescribeTimeToLiveCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { HeadBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { LIST_INDEX } from "../store/dynamodb.ts";
import { errorWords, type Findings, isDenied, ok, problem, unknown } from "./doctor-findings.ts";

const AREA = "AWS";
const requestHandler = { connectionTimeout: 3000, requestTimeout: 10_000, throwOnRequestTimeout: true };

/** Where the deployment keeps its data; what is undefined is not looked at. */
export interface AwsStore {
  readonly table: string | undefined;
  /** Name → what it is for. */
  readonly buckets: ReadonlyMap<string, string>;
}

/** Looks at the table and the buckets: there, reachable, and shaped as infra/ makes them. */
export async function examineAwsStore(findings: Findings, { table, buckets }: AwsStore): Promise<void> {
  if (table === undefined) await findings.look(AREA, "table", () => unknown("its name is not known", "Give --outputs (cdk deploy --outputs-file) or --table"));
  else await examineTable(findings, table);
  const s3 = new S3Client({ requestHandler, maxAttempts: 2, followRegionRedirects: true });
  for (const [bucket, purpose] of buckets)
    await findings.look(AREA, `bucket ${bucket}`, async () => {
      try {
        await s3.send(new HeadBucketCommand({ Bucket: bucket }));
        return ok(`it can be reached (${purpose})`);
      } catch (error) {
        // HEAD has no body: the status is all there is
        const status = (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
        if (status === 404) return problem(`it does not exist (${purpose})`, "Correct its name in netcheck.yaml, or deploy the stack");
        if (status === 403)
          return unknown(`whoever runs doctor may not look at it (${purpose})`, "Allow s3:ListBucket on it, or run doctor as the one who deploys");
        throw error;
      }
    });
}

async function examineTable(findings: Findings, TableName: string): Promise<void> {
  const dynamodb = new DynamoDBClient({ requestHandler, maxAttempts: 2 });
  let exists = false;
  await findings.look(AREA, `table ${TableName}`, async () => {
    try {
      const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName }));
      exists = true;
      const keys = Table?.KeySchema?.map(({ AttributeName, KeyType }) => `${AttributeName} ${KeyType}`).join(", ");
      const index = Table?.GlobalSecondaryIndexes?.find(({ IndexName }) => IndexName === LIST_INDEX);
      const wrong = [
        Table?.TableStatus === "ACTIVE" || Table?.TableStatus === "UPDATING" ? "" : `its status is ${Table?.TableStatus}`,
        keys === "pk HASH, sk RANGE" ? "" : `its keys are ${keys}, not pk and sk`,
        index === undefined ? `it has no index ${LIST_INDEX}` : "",
        Table?.StreamSpecification?.StreamEnabled === true ? "" : "it has no stream, so the audit events are not archived",
        Table?.DeletionProtectionEnabled === true ? "" : "it can be deleted by one call",
      ].filter((part) => part !== "");
      if (wrong.length === 0) return ok("there, with its keys, index, stream and protection from deletion");
      return problem(wrong.join("; "), "Deploy the stack of this version (npm run deploy); a table that somebody made by hand does not do");
    } catch (error) {
      if ((error as Error).name === "ResourceNotFoundException")
        return problem("it does not exist in this account and region", "Deploy the stack, or correct --table, AWS_REGION or the credentials");
      if (isDenied(error as Error)) return unknown(errorWords(error as Error), "Allow dynamodb:DescribeTable on it");
      throw error;
    }
  });
  if (!exists) return;
  await findings.look(AREA, "point-in-time recovery", async () => {
    try {
      const { ContinuousBackupsDescription } = await dynamodb.send(new DescribeContinuousBackupsCommand({ TableName }));
      return ContinuousBackupsDescription?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === "ENABLED"
        ? ok("the table can be restored to any second of its window")
        : problem("it is off: what is deleted by mistake is gone", "Turn it on: npm run deploy, or the table's page under Backups");
    } catch (error) {
      return unknown(errorWords(error as Error), "Allow dynamodb:DescribeContinuousBackups on the table");
    }
  });
  await findings.look(AREA, "time to live", async () => {
    try {
      const { TimeToLiveDescription } = await dynamodb.send(new DescribeTimeToLiveCommand({ TableName }));
      const { TimeToLiveStatus: status, AttributeName: attribute } = TimeToLiveDescription ?? {};
      return (status === "ENABLED" || status === "ENABLING") && attribute === "expires"
        ? ok("old incidents are removed")
        : problem(
            `it is ${status ?? "off"}${attribute === undefined ? "" : ` on ${attribute}`}: the table grows for ever`,
            "Set it to the attribute expires: npm run deploy",
          );
    } catch (error) {
      return unknown(errorWords(error as Error), "Allow dynamodb:DescribeTimeToLive on the table");
    }
  });
}
