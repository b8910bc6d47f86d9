import { ackMetric } from "./aws/ack-metric.ts";
import { credentialsIn, environmentOf } from "./aws/environment.ts";
import { PAGER_SECRET, SecretReader } from "./aws/secret.ts";
import { lambdaWork } from "./durable/lambda-work.ts";
import { type PagerRequest, type PagerResponse, pagerHandler } from "./pager/app.ts";
import { visit } from "./pager/visit.ts";

/** Lambda behind the addresses that monitoring systems call: checks who sent it, starts the work, answers. */
const { required, optional } = environmentOf(process.env, "pager", ["PAGER_SECRET_ARN", "TRIAGE_FUNCTION", "TRIAGE_QUALIFIER"]);
const secret = new SecretReader({
  fields: PAGER_SECRET,
  arn: required("PAGER_SECRET_ARN"),
  credentials: credentialsIn(process.env),
  endpoint: optional("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
  now: () => Date.now(),
});
const pager = pagerHandler({
  secrets: (doubtful) => secret.read(doubtful),
  work: lambdaWork({ functionName: required("TRIAGE_FUNCTION"), qualifier: required("TRIAGE_QUALIFIER"), patienceMs: 5000 }),
  now: () => Date.now(),
  visit,
  log: (message, fields) => process.stdout.write(`${JSON.stringify({ level: "ERROR", message, ...fields })}\n`),
});

/** Two parameters, as Node 24 on Lambda wants it. */
export async function handler(request: PagerRequest, _context: unknown): Promise<PagerResponse> {
  const started = performance.now();
  try {
    return await pager(request);
  } finally {
    process.stdout.write(`${ackMetric("pager", performance.now() - started, Date.now())}\n`);
  }
}
