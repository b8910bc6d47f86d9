import { createHash, randomUUID } from "node:crypto";
import { accessKeyOf, isSigned, listen, skewOf } from "./http.ts";
import { type S3Emulator, startS3 } from "./s3.ts";
import { clip, runStep, type StepRun } from "./ssm-agent.ts";
import { commandView, final, type Invocation, invocationView, refusals, resultView, type SendCommandInput, type SentCommand, seconds } from "./ssm-command.ts";
import { bindParameters, bindSteps, type Document, readDocument, SsmError, type Values } from "./ssm-document.ts";

/** A managed node. `enter` is put before the argv of what runs on it: [] for this machine, a lab node's `enter` for that node. */
export interface SsmAgent {
  name: string;
  enter: readonly string[];
  /** What DescribeInstanceInformation says; a node that is not Online is refused by SendCommand. Default Online. */
  ping?: "Online" | "ConnectionLost" | "Inactive";
  /**
   * What becomes of a command that was accepted. Default: it runs.
   * delayed: Pending for ever · delivery-timeout, undeliverable, terminated, access-denied, invalid-platform: ends so at the second look, without running ·
   * hang: InProgress for ever, without running · mute: it runs, but its end is never reported.
   */
  delivery?: "delayed" | "delivery-timeout" | "undeliverable" | "terminated" | "access-denied" | "invalid-platform" | "hang" | "mute";
  /** False: an agent before 3.3.2746.0, which knows no interpolationType. */
  environment?: boolean;
  ip?: string;
  tags?: Readonly<Record<string, string>>;
  /** The name that a hybrid node was registered with. */
  registered?: string;
  platform?: "Linux" | "Windows" | "MacOS";
  /** When it last answered. Default now. */
  lastPing?: Date;
  /** What the policy of whoever asks says of this node: it may be asked for everything, but no command may be sent to it. */
  forbidden?: boolean;
  /** Stands for running the script, where nothing shall run: what it prints, by its environment variables. */
  answer?: (environment: Readonly<Record<string, string>>) => { readonly stdout: string | Buffer; readonly stderr?: string; readonly code?: number };
}

/** How many calls pretend to know nothing yet, as the real service does for a moment. Counts, not times, so that tests are repeatable. */
export interface SsmLag {
  /** GetCommandInvocation: InvocationDoesNotExist, per command and node. Default 1. */
  invocation: number;
  /** ListCommandInvocations: without the command, per command. Default 1. */
  list: number;
  /** ListCommands: without the command. Default 0. */
  commands: number;
  /** S3: NoSuchKey for an output, per object. Default 0. */
  object: number;
}

/** The next `times` calls of an operation ("*" = any) go wrong. */
export interface SsmFault {
  operation: string;
  /** An error of the service, before anything happened; or "drop": it is done, and the connection is cut before the answer. */
  error: { type: string; message: string; status?: number } | "drop";
  times: number;
}

export interface SsmEmulator {
  /** For `AWS_ENDPOINT_URL_SSM`. */
  url: string;
  /** For `AWS_ENDPOINT_URL_S3`. */
  s3url: string;
  s3: S3Emulator;
  /** By instance id; may be changed at any time. */
  agents: Map<string, SsmAgent>;
  /** Of Parameter Store, by name. */
  parameters: Map<string, string>;
  lag: SsmLag;
  /** Every request in order, with its decoded body and the id of the access key that signed it. */
  requests: { operation: string; input: Record<string, unknown>; accessKey: string }[];
  /** The service's clock is ahead of ours by so many milliseconds; requests that are more than five minutes off are refused. */
  clockOffset: number;
  /** InvalidInstanceId says nothing more, as the real service at times does. */
  terse: boolean;
  /** Most invocations that were open at one time. */
  mostRunning(): number;
  /** Make a Command document (an object or its text) known under a name, as a deployment does; a new version when it exists. */
  register(name: string, document: unknown): void;
  fail(fault: SsmFault): void;
  /** Throttle the next `times` calls. */
  throttle(times: number, operation?: string): void;
  /** Resolves when nothing runs on any node any more. */
  settled(): Promise<void>;
  /** Stops what still runs, and both servers. */
  close(): Promise<void>;
}

type Input = Record<string, unknown>;
const account = "123456789012";
/**
 * AWS Systems Manager Run Command in one process, over the service's own wire protocol (AWS JSON 1.1), with agents that really run the
 * scripts. What it does comes from the API reference, the open source agent, and real answers quoted in bug reports.
 */
export async function startSsm(options: { agents?: Record<string, SsmAgent>; lag?: Partial<SsmLag> } = {}): Promise<SsmEmulator> {
  const s3 = await startS3();
  const agents = new Map(Object.entries(options.agents ?? {}));
  const lag: SsmLag = { invocation: 1, list: 1, commands: 0, object: 0, ...options.lag };
  const documents = new Map<string, { text: string; document: Document }[]>();
  const parameters = new Map<string, string>();
  const commands: SentCommand[] = [];
  const faults: SsmFault[] = [];
  const requests: SsmEmulator["requests"] = [];
  const running = new Set<Promise<void>>();
  const state = { clockOffset: 0, terse: false, mostRunning: 0 };

  function save(name: string, text: string): string {
    const versions = documents.get(name) ?? [];
    documents.set(name, [...versions, { text, document: readDocument(text) }]);
    return String(versions.length + 1);
  }

  /** A stored version; $DEFAULT is the newest here. */
  function load(name: string, version = "$DEFAULT"): { text: string; document: Document; version: string } {
    const versions = documents.get(name);
    if (versions === undefined) throw new SsmError("InvalidDocument", `Document with name ${name} does not exist.`);
    const number = version.startsWith("$") ? versions.length : Number(version);
    const found = versions[number - 1];
    if (found === undefined) throw new SsmError("InvalidDocumentVersion", `Document ${name} has no version ${version}.`);
    return { ...found, version: String(number) };
  }

  const description = (name: string, version?: string) => {
    const { text, document, version: found } = load(name, version);
    const latest = String(documents.get(name)?.length);
    return {
      Name: name,
      DocumentType: "Command",
      DocumentFormat: "JSON",
      SchemaVersion: document.schemaVersion,
      Status: "Active",
      DocumentVersion: found,
      LatestVersion: latest,
      DefaultVersion: latest,
      Hash: createHash("sha256").update(text).digest("hex"),
      HashType: "Sha256",
      Owner: account,
      PlatformTypes: ["Linux", "MacOS"],
      Parameters: Object.entries(document.parameters).map(([Name, { type, description: Description, default: value }]) => ({
        Name,
        Type: type === "StringList" ? type : "String",
        Description,
        DefaultValue: value === undefined ? undefined : String(value),
      })),
    };
  };

  /** Run the document on one node, as its agent does: step after step, whatever became of the one before. */
  async function execute(command: SentCommand, document: Document, values: Values, invocation: Invocation): Promise<void> {
    const agent = agents.get(invocation.instanceId);
    if (agent === undefined || agent.delivery === "hang") return;
    const { OutputS3BucketName: bucket, OutputS3KeyPrefix: prefix } = command.input;
    for (const [index, step] of bindSteps(document, values, agent.environment !== false).entries()) {
      const plugin = invocation.plugins[index];
      if (plugin === undefined || invocation.cancel.signal.aborted) break;
      plugin.start = new Date();
      const run =
        agent.answer === undefined
          ? await runStep(agent.enter, invocation.instanceId, step, invocation.cancel.signal)
          : answered(agent.answer(step.environment));
      // the node went away: nobody hears how it ended
      if (!agents.has(invocation.instanceId)) return;
      // outputs are uploaded before the end is reported; empty ones are not uploaded
      const folder = [prefix, command.id, invocation.instanceId, "awsrunShellScript", step.name].filter(Boolean).join("/");
      if (bucket !== undefined && run.stdout.length > 0) s3.put(bucket, `${folder}/stdout`, run.stdout, lag.object);
      if (bucket !== undefined && run.stderr.length > 0) s3.put(bucket, `${folder}/stderr`, run.stderr, lag.object);
      if (agent.delivery === "mute") return;
      plugin.end = new Date();
      plugin.code = run.code;
      plugin.stdout = clip(run.stdout, 24_000);
      plugin.stderr = clip(run.stderr, 8000);
      if (run.ended === "timed out") [plugin.status, plugin.details] = ["TimedOut", "ExecutionTimedOut"];
      else if (run.ended === "cancelled") plugin.status = plugin.details = "Cancelled";
      else plugin.status = plugin.details = run.code === 0 ? "Success" : "Failed";
    }
    const worst = invocation.plugins.find((plugin) => plugin.status !== "Success");
    invocation.status = worst?.status ?? "Success";
    invocation.details = worst?.details ?? "Success";
  }

  function sendCommand(input: SendCommandInput): unknown {
    const ids = input.InstanceIds ?? [];
    limit("instanceIds", ids.length, 0, 50);
    for (const id of ids) checkId("instanceIds", id, instanceIdPattern);
    limit("comment", (input.Comment ?? "").length, 0, 100);
    limit("timeoutSeconds", input.TimeoutSeconds ?? 3600, 30, 2_592_000);
    limit("outputS3KeyPrefix", (input.OutputS3KeyPrefix ?? "").length, 0, 500);
    if (input.Targets !== undefined) throw new SsmError("UnsupportedOperation", "The emulator knows InstanceIds, not Targets.");
    const { document, version } = load(input.DocumentName, input.DocumentVersion);
    const values = bindParameters(document, input.Parameters ?? {});
    if (new Set(ids).size < ids.length) throw new SsmError("DuplicateInstanceId", "You can't specify a managed node ID in more than one association.");
    const forbidden = ids.find((id) => agents.get(id)?.forbidden === true);
    if (forbidden !== undefined) throw new SsmError("AccessDeniedException", denied("ssm:SendCommand", forbidden));
    const bad = ids.filter((id) => !accepts(agents.get(id)));
    if (bad.length > 0 || ids.length === 0)
      throw new SsmError("InvalidInstanceId", state.terse ? "" : `Instances [[${bad.join(", ")}]] not in a valid state for account ${account}`);

    const command: SentCommand = {
      id: randomUUID(),
      input,
      version,
      requested: new Date(),
      hidden: lag.list,
      hiddenFromCommands: lag.commands,
      invocations: ids.map((instanceId) => {
        const delivery = agents.get(instanceId)?.delivery ?? "";
        const waits = delivery === "delayed" || delivery in refusals;
        return {
          instanceId,
          status: waits ? "Pending" : "InProgress",
          details: waits ? "Delayed" : "InProgress",
          plugins: document.mainSteps.map(({ name }) => ({
            name,
            status: waits ? "Pending" : "InProgress",
            details: waits ? "Delayed" : "InProgress",
            code: -1,
            start: undefined,
            end: undefined,
            stdout: "",
            stderr: "",
          })),
          hidden: lag.invocation,
          pending: 1,
          cancel: new AbortController(),
        };
      }),
    };
    commands.push(command);
    for (const invocation of command.invocations.filter(({ status }) => status === "InProgress")) {
      const run = execute(command, document, values, invocation).finally(() => running.delete(run));
      running.add(run);
      state.mostRunning = Math.max(state.mostRunning, running.size);
    }
    return { Command: commandView(command) };
  }

  /** Someone looks at the invocation: a command that will not be delivered ends so at the second look. */
  function look(invocation: Invocation): void {
    const gone = !agents.has(invocation.instanceId) && !final.has(invocation.status);
    const refusal = gone ? refusals["undeliverable"] : refusals[agents.get(invocation.instanceId)?.delivery ?? ""];
    if (refusal === undefined || (!gone && invocation.status !== "Pending")) return;
    invocation.pending -= 1;
    if (invocation.pending >= 0) return;
    for (const item of [invocation, ...invocation.plugins]) Object.assign(item, refusal);
  }

  function getCommandInvocation(input: Input): unknown {
    checkId("commandId", input["CommandId"], commandIdPattern);
    checkId("instanceId", input["InstanceId"], instanceIdPattern);
    const command = commands.find(({ id }) => id === input["CommandId"]);
    const invocation = command?.invocations.find(({ instanceId }) => instanceId === input["InstanceId"]);
    if (command === undefined || invocation === undefined || invocation.hidden > 0) {
      if (invocation !== undefined) invocation.hidden -= 1;
      throw new SsmError("InvocationDoesNotExist", "");
    }
    look(invocation);
    const name = input["PluginName"] as string | undefined;
    const plugin = name === undefined && invocation.plugins.length === 1 ? invocation.plugins[0] : invocation.plugins.find((item) => item.name === name);
    if (plugin === undefined) throw new SsmError("InvalidPluginName", "The plugin name isn't valid.");
    return resultView(command, invocation, plugin);
  }

  function listCommandInvocations(input: Input): unknown {
    const matching = commands.filter(({ id }) => input["CommandId"] === undefined || id === input["CommandId"]);
    const visible = matching.filter((command) => {
      if (command.hidden === 0) return true;
      command.hidden -= 1;
      return false;
    });
    const all = visible.flatMap((command) => command.invocations.map((invocation) => ({ command, invocation })));
    const chosen = all.filter(({ invocation }) => input["InstanceId"] === undefined || invocation.instanceId === input["InstanceId"]);
    const { items, NextToken } = paged(chosen, input, 50);
    for (const { invocation } of items) look(invocation);
    return {
      NextToken,
      CommandInvocations: items.map(({ command, invocation }) =>
        invocationView(command, invocation, agents.get(invocation.instanceId)?.name ?? "", input["Details"] === true),
      ),
    };
  }

  function listCommands(input: Input): unknown {
    const filters = (input["Filters"] ?? []) as { key: string; value: string }[];
    const matching = commands
      .filter(({ id }) => input["CommandId"] === undefined || id === input["CommandId"])
      .filter((command) => filters.every((filter) => passes(command, filter)))
      .filter(({ invocations }) => input["InstanceId"] === undefined || invocations.some(({ instanceId }) => instanceId === input["InstanceId"]))
      .filter((command) => {
        if (command.hiddenFromCommands === 0) return true;
        command.hiddenFromCommands -= 1;
        return false;
      })
      .reverse(); // newest first
    const { items, NextToken } = paged(matching, input, 50);
    return { Commands: items.map(commandView), NextToken };
  }

  function cancelCommand(input: Input): unknown {
    const command = commands.find(({ id }) => id === input["CommandId"]);
    if (command === undefined) throw new SsmError("InvalidCommandId", "The specified command ID isn't valid.");
    const ids = input["InstanceIds"] as string[] | undefined;
    for (const invocation of command.invocations) {
      if ((ids !== undefined && !ids.includes(invocation.instanceId)) || final.has(invocation.status)) continue;
      const started = invocation.plugins.some(({ start }) => start !== undefined);
      const status = started ? "Cancelling" : "Cancelled";
      for (const item of [invocation, ...invocation.plugins]) if (!final.has(item.status)) item.status = item.details = status;
      invocation.cancel.abort();
    }
    return {};
  }

  function describeInstanceInformation(input: Input): unknown {
    const filters = (input["Filters"] ?? []) as { Key: string; Values: string[] }[];
    const fields: Record<string, (id: string, agent: SsmAgent) => string> = {
      InstanceIds: (id) => id,
      PingStatus: (_id, agent) => agent.ping ?? "Online",
      ResourceType: (id) => (id.startsWith("mi-") ? "ManagedInstance" : "EC2Instance"),
      PlatformType: (_id, agent) => agent.platform ?? "Linux",
    };
    const tagged = filters.filter(({ Key }) => Key.startsWith("tag:"));
    if (tagged.length > 0 && tagged.length < filters.length) throw new SsmError("InvalidFilterKey", "Tag filters can't be combined with other filter types.");
    for (const { Values } of filters) limit("filters.values", Values.length, 1, 100);
    const chosen = [...agents].filter(([id, agent]) =>
      filters.every(({ Key, Values }) => {
        if (Key.startsWith("tag:")) return Values.includes(agent.tags?.[Key.slice(4)] ?? "");
        const field = fields[Key];
        if (field === undefined) throw new SsmError("InvalidInstanceInformationFilterValue", `The emulator knows no filter ${Key}.`);
        return Values.includes(field(id, agent));
      }),
    );
    const { items, NextToken } = paged(chosen, input, 50);
    return {
      NextToken,
      InstanceInformationList: items.map(([id, agent]) => ({
        InstanceId: id,
        PingStatus: agent.ping ?? "Online",
        LastPingDateTime: seconds(agent.lastPing ?? new Date()),
        AgentVersion: agent.environment === false ? "3.2.2303.0" : "3.3.3050.0",
        IsLatestVersion: agent.environment !== false,
        PlatformType: agent.platform ?? "Linux",
        PlatformName: "Debian GNU/Linux",
        PlatformVersion: "12",
        ResourceType: id.startsWith("mi-") ? "ManagedInstance" : "EC2Instance",
        IPAddress: agent.ip ?? "10.0.0.1",
        ComputerName: agent.name,
        ...(agent.registered === undefined ? {} : { Name: agent.registered }),
      })),
    };
  }

  const operations: Record<string, (input: Input) => unknown> = {
    SendCommand: (input) => sendCommand(input as unknown as SendCommandInput),
    GetCommandInvocation: getCommandInvocation,
    ListCommandInvocations: listCommandInvocations,
    ListCommands: listCommands,
    CancelCommand: cancelCommand,
    DescribeInstanceInformation: describeInstanceInformation,
    CreateDocument: (input) => {
      const name = String(input["Name"]);
      if (documents.has(name)) throw new SsmError("DocumentAlreadyExists", `Document with name ${name} already exists.`);
      save(name, String(input["Content"]));
      return { DocumentDescription: description(name) };
    },
    UpdateDocument: (input) => {
      const [name, content] = [String(input["Name"]), String(input["Content"])];
      if (load(name).text === content) throw new SsmError("DuplicateDocumentContent", "The content of the document is the same as that of another version.");
      const version = save(name, content);
      return { DocumentDescription: description(name, version) };
    },
    GetDocument: (input) => {
      const name = String(input["Name"]);
      const { text, version } = load(name, input["DocumentVersion"] as string | undefined);
      return { Name: name, Content: text, DocumentVersion: version, DocumentType: "Command", DocumentFormat: "JSON", Status: "Active" };
    },
    GetParameter: (input) => {
      const value = parameters.get(String(input["Name"]));
      if (value === undefined) throw new SsmError("ParameterNotFound", "");
      return { Parameter: { Name: input["Name"], Type: "SecureString", Value: value, Version: 1, DataType: "text" } };
    },
    DescribeDocument: (input) => ({ Document: description(String(input["Name"]), input["DocumentVersion"] as string | undefined) }),
  };

  const server = await listen((request, body, response) => {
    const answer = (status: number, content: unknown, date = new Date()) => {
      const headers = { "content-type": "application/x-amz-json-1.1", "x-amzn-requestid": randomUUID(), date: date.toUTCString() };
      response.writeHead(status, headers).end(JSON.stringify(content));
    };
    const operation = String(request.headers["x-amz-target"]).replace("AmazonSSM.", "");
    if (!isSigned(request, "ssm")) return answer(403, { __type: "MissingAuthenticationTokenException", message: "Missing Authentication Token" });
    const skew = skewOf(request, state.clockOffset);
    if (skew !== undefined) return answer(400, { __type: "InvalidSignatureException", message: skew }, new Date(Date.now() + state.clockOffset));
    const run = operations[operation];
    if (run === undefined) return answer(400, { __type: "UnknownOperationException", message: `The emulator has no ${operation}` });
    const input = JSON.parse(body.toString()) as Input;
    requests.push({ operation, input, accessKey: accessKeyOf(request) });
    const fault = faults.find((item) => item.times > 0 && (item.operation === operation || item.operation === "*"));
    if (fault !== undefined) fault.times -= 1;
    if (fault !== undefined && fault.error !== "drop") return answer(fault.error.status ?? 400, { __type: fault.error.type, message: fault.error.message });
    try {
      const result = run(input);
      if (fault === undefined) answer(200, result);
      else request.socket.destroy();
    } catch (error) {
      if (!(error instanceof SsmError)) throw error;
      answer(400, { __type: error.type, message: error.message });
    }
  });

  return {
    url: server.url,
    s3url: s3.url,
    s3,
    agents,
    parameters,
    lag,
    requests,
    get clockOffset() {
      return state.clockOffset;
    },
    set clockOffset(value) {
      state.clockOffset = value;
    },
    get terse() {
      return state.terse;
    },
    set terse(value) {
      state.terse = value;
    },
    mostRunning: () => state.mostRunning,
    register: (name, document) => {
      save(name, typeof document === "string" ? document : JSON.stringify(document));
    },
    fail: (fault) => {
      faults.push({ ...fault });
    },
    throttle: (times, operation = "*") => {
      faults.push({ operation, error: { type: "ThrottlingException", message: "Rate exceeded" }, times });
    },
    settled: async () => {
      while (running.size > 0) await Promise.all(running);
    },
    close: async () => {
      for (const command of commands) for (const { cancel } of command.invocations) cancel.abort();
      await Promise.all(running);
      await Promise.all([server.close(), s3.close()]);
    },
  };
}

/** SendCommand takes a node that is Online, and one of which the service does not know yet that it is not. */
const accepts = (agent: SsmAgent | undefined): boolean => agent !== undefined && ((agent.ping ?? "Online") === "Online" || agent.delivery !== undefined);

/** As the policy engine says it; of several resources it names one. */
const denied = (action: string, id: string): string =>
  `User: arn:aws:sts::${account}:assumed-role/netcheck/session is not authorized to perform: ${action} on resource: arn:aws:${id.startsWith("mi-") ? "ssm" : "ec2"}:us-east-1:${account}:${id.startsWith("mi-") ? "managed-instance" : "instance"}/${id} because no identity-based policy allows the ${action} action`;

/** What a node that only answers printed, as if it had run. */
function answered({ stdout, stderr = "", code = 0 }: ReturnType<NonNullable<SsmAgent["answer"]>>): StepRun {
  return { code, ended: "exited", stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) };
}

/** One filter of ListCommands. Times are to the second. */
function passes(command: SentCommand, { key, value }: { key: string; value: string }): boolean {
  if (key === "DocumentName") return command.input.DocumentName === value;
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) throw new SsmError("InvalidFilterKey", `The value of ${key} isn't valid.`);
  if (key === "InvokedAfter") return command.requested.getTime() >= Date.parse(value);
  if (key === "InvokedBefore") return command.requested.getTime() <= Date.parse(value);
  throw new SsmError("InvalidFilterKey", `The emulator knows no filter ${key}.`);
}

const instanceIdPattern = /^(i-(\w{8}|\w{17})|mi-\w{17})$/;
const commandIdPattern = /^[\w-]{36}$/;

function checkId(name: string, value: unknown, pattern: RegExp): void {
  if (typeof value !== "string" || !pattern.test(value))
    throw new SsmError("ValidationException", `1 validation error detected: Value at '${name}' failed to satisfy constraint: want ${pattern.source}`);
}

function limit(name: string, value: number, least: number, most: number): void {
  if (value < least || value > most)
    throw new SsmError("ValidationException", `1 validation error detected: Value at '${name}' failed to satisfy constraint: want ${least} to ${most}`);
}

/** One page by MaxResults (at most `most`) and NextToken, which is the position. */
function paged<T>(all: T[], input: Input, most: number): { items: T[]; NextToken: string | undefined } {
  const size = (input["MaxResults"] as number | undefined) ?? most;
  limit("maxResults", size, 1, most);
  const start = Number(input["NextToken"] ?? 0);
  if (!Number.isInteger(start) || start < 0 || start > all.length) throw new SsmError("InvalidNextToken", "The specified token isn't valid.");
  return { items: all.slice(start, start + size), NextToken: start + size < all.length ? String(start + size) : undefined };
}
