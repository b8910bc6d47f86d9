import { readFileSync } from "node:fs";
import { lambdaWork } from "./durable/lambda-work.ts";
import { type HttpEvent, type HttpResponse, slackHandler } from "./slack/app.ts";
import { type HelpPages, helpRenderer } from "./slack/help.ts";

/**
 * Lambda behind Slack's request URL: checks the signature, starts the work, acknowledges within 3 seconds.
 * Runs as bundled by infra/bundle.ts, which draws help.json and puts it beside this file.
 */

interface Environment {
  /** Of the Slack app; requests must be signed with it. */
  readonly signingSecret: string;
  /** Name or ARN of the durable function that does the work, and the version or alias to invoke. */
  readonly triageFunction: string;
  readonly triageQualifier: string;
}

/** @throws naming every variable that is missing */
function readEnvironment(): Environment {
  const names = { signingSecret: "SLACK_SIGNING_SECRET", triageFunction: "TRIAGE_FUNCTION", triageQualifier: "TRIAGE_QUALIFIER" };
  const missing = Object.values(names).filter((name) => !process.env[name]);
  if (missing.length > 0) throw new Error(`slack: the environment lacks ${missing.join(", ")}`);
  const read = (name: string) => process.env[name] as string;
  return { signingSecret: read(names.signingSecret), triageFunction: read(names.triageFunction), triageQualifier: read(names.triageQualifier) };
}

const environment = readEnvironment();
const pages = JSON.parse(readFileSync(new URL("help.json", import.meta.url), "utf8")) as HelpPages;
const slack = slackHandler({
  signingSecret: environment.signingSecret,
  // Slack waits for 3 seconds: a failure should be told before that
  work: lambdaWork({ functionName: environment.triageFunction, qualifier: environment.triageQualifier, patienceMs: 2500 }),
  render: helpRenderer(pages),
});

/** Takes a function URL's or HTTP API's event. Two parameters, as Node 24 on Lambda wants it. */
export async function handler(event: HttpEvent, _context: unknown): Promise<HttpResponse> {
  return slack(event);
}
