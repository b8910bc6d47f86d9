/** Words for people: what Systems Manager, S3 and STS answer is often short, or puzzling. Each says what happened and what to do. */

/** What an agent last said, as Systems Manager knows it. */
export interface AgentStatus {
  /** "Online", "ConnectionLost" or "Inactive". */
  readonly ping: string;
  /** When it last answered; milliseconds since 1970. */
  readonly lastPing: number | undefined;
  /** "Linux", "Windows" or "MacOS". */
  readonly platform: string;
}

/** An agent pings every five minutes: one that has been silent for longer than two of these is not well, whatever its status says. */
const STALE_MS = 11 * 60_000;

/** "its agent last answered 3 h ago (ConnectionLost)"; "" for an agent that is well. `status` undefined: the service does not know the node. */
export function agentWords(status: AgentStatus | undefined, now: number): string {
  if (status === undefined) return "Systems Manager does not know the node in this account and region: it may be stopped, terminated or never registered";
  const { ping, lastPing } = status;
  const age = lastPing === undefined ? Number.POSITIVE_INFINITY : now - lastPing;
  if (ping === "Online" && age < STALE_MS) return "";
  return lastPing === undefined ? `its agent has never answered (${ping})` : `its agent last answered ${ageOf(age)} ago (${ping})`;
}

function ageOf(milliseconds: number): string {
  const minutes = Math.max(0, Math.round(milliseconds / 60_000));
  if (minutes < 120) return `${minutes} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 60 / 24)} days`;
}

const CHECK_AGENT = "Check that the node runs and that amazon-ssm-agent is running on it and reaches Systems Manager, then run the triage again";

/** Ends of a command that never ran on the node, surely. */
const NOT_RUN: Readonly<Record<string, string>> = {
  AccessDenied: "netcheck's role may not run commands on this node: allow ssm:SendCommand on it (the opt-in tag may be missing)",
  InvalidPlatform: "the document is for Linux and the node is not",
  "Invalid Platform": "the document is for Linux and the node is not",
  Terminated: "Systems Manager stopped handing the command out after it had failed on other nodes. Run the triage again",
};

/** Ends after which nobody knows whether, or how far, it ran. */
const LOST: Readonly<Record<string, string>> = {
  // these two are also what a command ends as whose agent took it and was never heard of again
  DeliveryTimedOut: `the node did not take the command in time. ${CHECK_AGENT}`,
  Undeliverable: `the command could not be delivered: the node may be stopped, terminated or not answering. ${CHECK_AGENT}`,
  ExecutionTimedOut:
    "the script did not end in time and was stopped: the node is overloaded, or a program on it hangs. Look at its load, then run the triage again",
  Cancelled: "the command was cancelled in Systems Manager",
};

/** How a command ended that was not simply run, for people. `agent`: {@link agentWords}. */
export function endingWords(detail: string, agent: string): { readonly state: "not-run" | "lost"; readonly reason: string } {
  const words = NOT_RUN[detail] ?? LOST[detail] ?? "it may or may not have run";
  return { state: detail in NOT_RUN ? "not-run" : "lost", reason: `Systems Manager says ${detail}: ${words}${agent === "" ? "" : `; ${agent}`}` };
}

/** The service refused because of a clock: ours is off by more than its five (S3: fifteen) minutes. */
export function isClockSkew(error: Error): boolean {
  return /^RequestTimeTooSkewed$|^RequestExpired$|^RequestInTheFuture$/.test(error.name) || /Signature (?:expired|not yet current)/.test(error.message);
}

/** The service wants to be asked less often. */
export const isThrottling = (error: Error): boolean => /Thrott|TooManyRequests|RequestLimitExceeded|^SlowDown$|^ServiceUnavailable$/.test(error.name);

const DENIED = /User: (\S+) is not authorized to perform: (\S+)(?: on resource: (\S+))?(.*)/s;

/** What people need to know of an error of an AWS service, with its name. */
export function explain(error: Error): string {
  const words = explained(error);
  return words === undefined ? plain(error) : `${words} (${error.name})`;
}

function plain({ name, message }: Error): string {
  return message === "" || message === "UnknownError" ? name : `${message} (${name})`;
}

function explained(error: Error): string | undefined {
  const denied = DENIED.exec(error.message);
  if (denied !== null) {
    const [, who = "", action = "", resource, rest = ""] = denied;
    const on = resource === undefined ? "" : ` on ${resource}`;
    return /explicit deny/.test(rest)
      ? `${who} may not do ${action}${on}: a policy denies it explicitly. Ask the owner of that account`
      : `${who} may not do ${action}${on}: allow it in that role's policy`;
  }
  if (isClockSkew(error)) return `this computer's clock and the clock of AWS differ by more than five minutes: set it (NTP). ${error.message}`.trim();
  if (isThrottling(error)) return "AWS lets this account ask no more for the moment. Try again in a minute";
  switch (error.name) {
    case "InvalidInstanceId":
      return "Systems Manager does not know the node, or its agent does not answer";
    case "InvalidDocument":
    case "InvalidDocumentVersion":
      return "the document is not registered in that account and region: deploy netcheck's documents there";
    case "InvalidParameters":
      return "netcheck's document there has another content than this netcheck means: it was upgraded in the meantime. Run the triage again; if that does not help, deploy again";
    case "ExpiredTokenException":
    case "ExpiredToken":
      return "the AWS session has expired: sign in again, or restart netcheck where it has a role";
    case "UnrecognizedClientException":
    case "InvalidClientTokenId":
    case "InvalidAccessKeyId":
    case "IncompleteSignature":
      return "AWS does not know these credentials: check the access key, profile or role that netcheck runs with";
    case "InvalidSignatureException":
    case "SignatureDoesNotMatch":
      return "AWS does not accept the signature: the secret key does not belong to the access key";
    case "CredentialsProviderError":
      return "netcheck has no AWS credentials: give it a role, or set a profile";
    case "AccessDeniedException":
    case "AccessDenied":
      return `netcheck's role may not do that: ${error.message || "the service does not say what is missing"}`;
    case "NoSuchKey":
      return "the object is not there: its upload failed (may the node write to the bucket?), or it has expired";
    case "NoSuchBucket":
      return "the bucket does not exist: see outputBucket in netcheck.yaml";
    default:
      return undefined;
  }
}
