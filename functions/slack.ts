import { readFileSync } from "node:fs";
import { ackMetric } from "./aws/ack-metric.ts";
import { credentialsIn, environmentOf } from "./aws/environment.ts";
import { SecretReader, SLACK_SECRET } from "./aws/secret.ts";
import { lambdaWork } from "./durable/lambda-work.ts";
import { type HttpEvent, type HttpResponse, slackHandler } from "./slack/app.ts";
import { type HelpPages, helpRenderer } from "./slack/help.ts";
import { renewingHandler } from "./slack/renewing.ts";

/**
 * Lambda behind Slack's request URL: checks the signature, starts the work, acknowledges within 3 seconds.
 * Runs as bundled by infra/bundle.ts, which draws help.json and puts it beside this file.
 */
const { required, optional } = environmentOf(process.env, "slack", ["SLACK_SECRET_ARN", "TRIAGE_FUNCTION", "TRIAGE_QUALIFIER"]);
const pages = JSON.parse(readFileSync(new URL("help.json", import.meta.url), "utf8")) as HelpPages;
const secret = new SecretReader({
  fields: SLACK_SECRET,
  arn: required("SLACK_SECRET_ARN"),
  credentials: credentialsIn(process.env),
  endpoint: optional("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
  now: () => Date.now(),
});
// Slack waits for 3 seconds: a failure should be told before that
const work = lambdaWork({ functionName: required("TRIAGE_FUNCTION"), qualifier: required("TRIAGE_QUALIFIER"), patienceMs: 2500 });
const slack = renewingHandler(
  async (doubtful) => (await secret.read(doubtful)).signingSecret,
  (signingSecret) => slackHandler({ signingSecret, work, render: helpRenderer(pages) }),
);

/** Takes a function URL's or HTTP API's event. Two parameters, as Node 24 on Lambda wants it. */
export async function handler(event: HttpEvent, _context: unknown): Promise<HttpResponse> {
  const started = performance.now();
  try {
    return await slack(event);
  } finally {
    process.stdout.write(`${ackMetric("slack", performance.now() - started, Date.now())}\n`);
  }
}
