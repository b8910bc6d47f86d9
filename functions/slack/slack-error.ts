import { ErrorCode, type WebAPIPlatformError } from "@slack/web-api";

/** Slack's word for what is wrong with a call; undefined where no answer came, or none of Slack's own. */
export function slackError(error: unknown): string | undefined {
  return (error as { code?: string }).code === ErrorCode.PlatformError ? (error as WebAPIPlatformError).data.error : undefined;
}

/**
 * Slack's words for a trouble of its own, which it tells with status 200 (docs.slack.dev, the errors of any method). What was asked for may have been done all the
 * same: who repeats it looks first, or does what may be done twice.
 */
const PASSING = new Set(["ratelimited", "internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"]);

/** True if waiting may help: no answer came, or one that says so. */
export const mayPass = (code: string | undefined): boolean => code === undefined || PASSING.has(code);
