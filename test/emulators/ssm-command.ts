import { pluginOutput } from "./ssm-agent.ts";

/** One step of the document on one node. `code` is -1 until it has ended. */
export interface Plugin {
  name: string;
  status: string;
  details: string;
  code: number;
  start: Date | undefined;
  end: Date | undefined;
  stdout: string;
  stderr: string;
}

/** A command on one node. */
export interface Invocation {
  instanceId: string;
  status: string;
  details: string;
  plugins: Plugin[];
  /** Looks left before the invocation shows at all, and before its end shows. */
  hidden: number;
  pending: number;
  cancel: AbortController;
}

/** An accepted SendCommand. `hidden…`: calls left in which the lists do not show it. */
export interface SentCommand {
  id: string;
  input: SendCommandInput;
  version: string;
  requested: Date;
  hidden: number;
  hiddenFromCommands: number;
  invocations: Invocation[];
}

/** The request, as far as the emulator reads it. */
export interface SendCommandInput {
  DocumentName: string;
  DocumentVersion?: string;
  InstanceIds?: string[];
  Targets?: unknown[];
  Comment?: string;
  TimeoutSeconds?: number;
  Parameters?: Record<string, string[]>;
  OutputS3BucketName?: string;
  OutputS3KeyPrefix?: string;
}

/** Statuses that nothing changes any more. */
export const final = new Set(["Success", "Failed", "TimedOut", "Cancelled"]);

/** Refused deliveries: what the service says of a command that never reached the node. */
export const refusals: Record<string, { status: string; details: string }> = {
  "delivery-timeout": { status: "TimedOut", details: "DeliveryTimedOut" },
  undeliverable: { status: "Failed", details: "Undeliverable" },
  terminated: { status: "Failed", details: "Terminated" },
  "access-denied": { status: "Failed", details: "AccessDenied" },
  "invalid-platform": { status: "Failed", details: "InvalidPlatform" },
};

/** Times on the wire: seconds since 1970. */
export const seconds = (date: Date): number => date.getTime() / 1000;

/** What GetCommandInvocation answers. */
export function resultView(command: SentCommand, invocation: Invocation, plugin: Plugin): unknown {
  const base = outputUrl(command, invocation, plugin);
  return {
    CommandId: command.id,
    InstanceId: invocation.instanceId,
    Comment: command.input.Comment ?? "",
    DocumentName: command.input.DocumentName,
    DocumentVersion: command.input.DocumentVersion ?? "$DEFAULT",
    PluginName: plugin.name,
    ResponseCode: plugin.code,
    ExecutionStartDateTime: plugin.start?.toISOString() ?? "",
    ExecutionElapsedTime: plugin.start === undefined || plugin.end === undefined ? "" : `PT${(plugin.end.getTime() - plugin.start.getTime()) / 1000}S`,
    ExecutionEndDateTime: plugin.end?.toISOString() ?? "",
    Status: plugin.status,
    StatusDetails: plugin.details,
    StandardOutputContent: plugin.stdout,
    StandardOutputUrl: base === "" ? "" : `${base}/stdout`,
    StandardErrorContent: plugin.stderr,
    StandardErrorUrl: base === "" ? "" : `${base}/stderr`,
    CloudWatchOutputConfig: { CloudWatchLogGroupName: "", CloudWatchOutputEnabled: false },
  };
}

/** One invocation as ListCommandInvocations answers. */
export function invocationView(command: SentCommand, invocation: Invocation, name: string, details: boolean): unknown {
  return {
    CommandId: command.id,
    InstanceId: invocation.instanceId,
    InstanceName: name,
    Comment: command.input.Comment ?? "",
    DocumentName: command.input.DocumentName,
    DocumentVersion: command.input.DocumentVersion ?? "$DEFAULT",
    RequestedDateTime: seconds(command.requested),
    Status: invocation.status,
    StatusDetails: invocation.details,
    StandardOutputUrl: "",
    StandardErrorUrl: "",
    CommandPlugins: !details ? [] : invocation.plugins.map((plugin) => pluginView(command, invocation, plugin)),
  };
}

const outputFolder = ({ id, input }: SentCommand, { instanceId }: Invocation): string => [input.OutputS3KeyPrefix, id, instanceId].filter(Boolean).join("/");

const outputUrl = (command: SentCommand, invocation: Invocation, plugin: Plugin): string =>
  command.input.OutputS3BucketName === undefined
    ? ""
    : `https://s3.us-east-1.amazonaws.com/${command.input.OutputS3BucketName}/${outputFolder(command, invocation)}/awsrunShellScript/${plugin.name}`;

function pluginView(command: SentCommand, invocation: Invocation, plugin: Plugin): unknown {
  return {
    Name: plugin.name,
    Status: plugin.status,
    StatusDetails: plugin.details,
    ResponseCode: plugin.code,
    ResponseStartDateTime: plugin.start === undefined ? undefined : seconds(plugin.start),
    ResponseFinishDateTime: plugin.end === undefined ? undefined : seconds(plugin.end),
    Output: pluginOutput(plugin.stdout, plugin.stderr),
    OutputS3BucketName: command.input.OutputS3BucketName ?? "",
    OutputS3KeyPrefix: command.input.OutputS3BucketName === undefined ? "" : outputFolder(command, invocation),
  };
}

/** The command as a whole: its status is what its invocations come to. */
export function commandView(command: SentCommand): unknown {
  const { input, invocations, requested } = command;
  const timeout = input.TimeoutSeconds ?? 3600;
  const done = invocations.filter(({ status }) => final.has(status));
  const failed = invocations.find(({ status }) => final.has(status) && status !== "Success");
  const open = invocations.find(({ status }) => !final.has(status));
  const summary = open ?? failed ?? { status: "Success", details: "Success" };
  return {
    CommandId: command.id,
    DocumentName: input.DocumentName,
    DocumentVersion: input.DocumentVersion ?? "$DEFAULT",
    Comment: input.Comment ?? "",
    Parameters: input.Parameters ?? {},
    InstanceIds: input.InstanceIds ?? [],
    Targets: [],
    RequestedDateTime: seconds(requested),
    ExpiresAfter: seconds(requested) + timeout,
    TimeoutSeconds: timeout,
    Status: summary.status,
    StatusDetails: summary.details,
    OutputS3BucketName: input.OutputS3BucketName ?? "",
    OutputS3KeyPrefix: input.OutputS3KeyPrefix ?? "",
    MaxConcurrency: "50",
    MaxErrors: "0",
    TargetCount: invocations.length,
    CompletedCount: done.length,
    ErrorCount: invocations.filter(({ status }) => status === "Failed").length,
    DeliveryTimedOutCount: invocations.filter(({ details }) => details === "DeliveryTimedOut").length,
  };
}
