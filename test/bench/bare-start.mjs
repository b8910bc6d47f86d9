// The same, and it starts the work with the AWS SDK. Bundled with the SDK by ack.ts.
import { createHash } from "node:crypto";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { handler as check } from "./bare.mjs";

const client = new LambdaClient({});

export async function handler(event, context) {
  const response = await check(event, context);
  if (response.statusCode !== 200) return response;
  await client.send(
    new InvokeCommand({
      FunctionName: process.env.TRIAGE_FUNCTION,
      Qualifier: process.env.TRIAGE_QUALIFIER,
      InvocationType: "Event",
      DurableExecutionName: `inc-${createHash("sha256").update(event.body).digest("hex").slice(0, 12)}`,
      Payload: JSON.stringify({ body: event.body }),
    }),
  );
  return response;
}
