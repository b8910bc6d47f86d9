/** What one look at a deployment found. */
export interface Finding {
  /** `unknown`: could not look, so neither fine nor broken. */
  readonly state: "ok" | "problem" | "unknown";
  /** A sentence for people: what was seen, or why it could not be looked at. */
  readonly detail: string;
  /** What to do; with a problem always. */
  readonly todo?: string;
}

/** A finding with its place: `area` is a heading ("Slack"), `check` what was looked at ("scopes of the bot token"). */
export interface Check extends Finding {
  readonly area: string;
  readonly check: string;
}

export const ok = (detail: string): Finding => ({ state: "ok", detail });
export const problem = (detail: string, todo: string): Finding => ({ state: "problem", detail, todo });
export const unknown = (detail: string, todo?: string): Finding => ({ state: "unknown", detail, ...(todo === undefined ? {} : { todo }) });

/** The findings of one examination, in the order of the looks. */
export class Findings {
  readonly checks: Check[] = [];
  readonly #tell: (check: Check) => void;

  /** @param tell is called with each finding as soon as it is there */
  constructor(tell: (check: Check) => void = () => undefined) {
    this.#tell = tell;
  }

  /** Takes a look; one that throws is a look that could not be taken. Returns whether all is well there. */
  async look(area: string, check: string, run: () => Promise<Finding> | Finding): Promise<boolean> {
    let finding: Finding;
    try {
      finding = await run();
    } catch (error) {
      const { cause } = error as Error;
      finding = unknown(errorWords(error as Error), remedyOf(error as Error) ?? (cause instanceof Error ? remedyOf(cause) : undefined));
    }
    const found = { area, check, ...finding };
    this.checks.push(found);
    this.#tell(found);
    return finding.state === "ok";
  }
}

/** What to do about an error of AWS's SDK that no service has said anything about yet; undefined of any other. */
function remedyOf({ name, message }: Error): string | undefined {
  if (name === "CredentialsProviderError") return "Give it credentials of AWS: AWS_PROFILE, or AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY";
  return message === "Region is missing" ? "Set AWS_REGION to the region of the stack" : undefined;
}

/** An error of AWS, of Slack's network or of ours, as one line. Errors of AWS are named: their name is what can be searched for. */
export function errorWords(error: Error & { cause?: unknown; $metadata?: unknown; code?: string }): string {
  const [line = ""] = error.message.trim().split("\n");
  const inner = error.cause instanceof Error ? error.cause : undefined;
  const cause = inner === undefined || inner.message === "" || error.message.includes(inner.message) ? "" : `: ${inner.message.split("\n")[0]}`;
  const named = error.$metadata !== undefined || error.name === "CredentialsProviderError" ? `${error.name}: ` : "";
  return `${named}${line}${cause}` || error.code || error.name;
}

/** True for an error of AWS that says that we may not. */
export const isDenied = (error: Error): boolean => /AccessDenied|UnauthorizedOperation|NotAuthorized|^Forbidden$/.test(error.name);

/** Seconds that a clock may differ: Slack and AWS refuse what is five minutes off. */
const MAX_SKEW = 60;

/** Judges our clock by the Date header of an answer. @param date the header; @param now ours, in ms since 1970, when it came */
export function clockFinding(service: string, date: string | null | undefined, now: number): Finding {
  const theirs = Date.parse(date ?? "");
  if (Number.isNaN(theirs)) return unknown(`${service} sent no date`);
  const seconds = Math.round((now - theirs) / 1000);
  if (Math.abs(seconds) <= MAX_SKEW) return ok(`this machine's clock agrees with ${service}'s (${Math.abs(seconds)} s apart)`);
  return problem(
    `this machine's clock is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} ${service}'s; requests that are 300 s off are refused`,
    "Set the clock: start chrony or systemd-timesyncd",
  );
}

/** Named in one finding; more are counted. */
const NAMED = 5;

/** The first items of a list, and how many more there are. */
export const some = (items: readonly string[], separator = ", "): string =>
  items.slice(0, NAMED).join(separator) + (items.length > NAMED ? `${separator}and ${items.length - NAMED} more` : "");
