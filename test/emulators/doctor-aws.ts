import { isSigned, listen } from "./http.ts";

/** What DynamoDB, S3 and Secrets Manager say of themselves, for `netcheck doctor`. Answers may be changed at any time. */
export interface DoctorAws {
  /** For `AWS_ENDPOINT_URL_DYNAMODB`, `…_S3` and `…_SECRETS_MANAGER`. */
  readonly url: string;
  /** By operation: an answer, or an error. */
  readonly answers: Map<string, object | { readonly __type: string; readonly message: string }>;
  /** Status of HEAD by bucket. */
  readonly buckets: Map<string, number>;
  close(): Promise<void>;
}

/** A table as infra/ makes it. */
export const goodTable = (name: string) => ({
  DescribeTable: {
    Table: {
      TableName: name,
      TableStatus: "ACTIVE",
      KeySchema: [
        { AttributeName: "pk", KeyType: "HASH" },
        { AttributeName: "sk", KeyType: "RANGE" },
      ],
      GlobalSecondaryIndexes: [{ IndexName: "list", IndexStatus: "ACTIVE" }],
      StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_IMAGE" },
      DeletionProtectionEnabled: true,
    },
  },
  DescribeContinuousBackups: {
    ContinuousBackupsDescription: { ContinuousBackupsStatus: "ENABLED", PointInTimeRecoveryDescription: { PointInTimeRecoveryStatus: "ENABLED" } },
  },
  DescribeTimeToLive: { TimeToLiveDescription: { TimeToLiveStatus: "ENABLED", AttributeName: "expires" } },
});

export async function startDoctorAws(): Promise<DoctorAws> {
  const answers: DoctorAws["answers"] = new Map();
  const buckets: DoctorAws["buckets"] = new Map();
  const { url, close } = await listen((request, _body, response) => {
    const target = request.headers["x-amz-target"];
    if (target === undefined) {
      // HEAD of a bucket: the status is all there is
      if (request.method !== "HEAD" || !isSigned(request, "s3")) throw new Error(`doctor asked S3 for ${request.method} ${request.url}`);
      response.writeHead(buckets.get(new URL(request.url ?? "/", url).pathname.split("/")[1] ?? "") ?? 404).end();
      return;
    }
    const [service = "", operation = ""] = String(target).split(".");
    if (!isSigned(request, service.startsWith("DynamoDB") ? "dynamodb" : "secretsmanager")) throw new Error(`${operation} is not signed`);
    const answer = answers.get(operation);
    if (answer === undefined) throw new Error(`doctor asked for ${operation}`);
    response.writeHead("__type" in answer ? 400 : 200, { "content-type": "application/x-amz-json-1.0" }).end(JSON.stringify(answer));
  });
  return { url, answers, buckets, close };
}
