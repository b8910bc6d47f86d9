import { isPromptLine } from "./command.ts";
import type { UnparsedLines } from "./fact.ts";
import { type JsonElement, jsonElements } from "./json.ts";

/** Commands that ask a cloud's or a cluster's store of logs for lines of containers. Which lines there are besides, they do not tell. */
const STORES = /^(?:gcloud(?: beta)? logging read|aws logs (?:filter-log-events|get-log-events|tail)|az monitor log-analytics query|logcli query)(?: |$)/;
export const isLogStore = (argv: readonly string[]): boolean => STORES.test(argv.join(" "));

// what keeps the line as it was written
const LINE = /^\s{0,80}"(?:message|textPayload|LogMessage|LogEntry|@message)"\s{0,8}:/;
const YAML = /^(?:(textPayload|timestamp)|\s{1,8}(message|container_name)): (.{1,16000})$/;
// `aws logs tail`: the stream is the file of the kubelet's; `logcli query`: the labels
const TAILED = /^(\d{4}-\d\d-\d\dT\S{8,24}) (?:[^\s_]{1,255}_[^\s_]{1,255}_([^\s_]{1,255})-[0-9a-f]{12,64}|\S{1,512}) (\S.{0,16000})$/;
const LABELED = /^(\d{4}-\d\d-\d\dT\S{8,24}) \{([^{}]{1,2000})\} (\S.{0,16000})$/;
const STREAM = /^[^\s_]{1,255}_[^\s_]{1,255}_([^\s_]{1,255})-[0-9a-f]{12,64}$/;

/** The lines that such a command gave out, each as Fluent Bit writes it: the line, when, and of which container. */
export function storedLines(pasted: string, unparsed: UnparsedLines): JsonElement[] {
  // lines keep their numbers
  const text = pasted
    .split("\n")
    .map((line) => (isPromptLine(line) ? "" : line))
    .join("\n");
  if (/^\s{0,100}[[{]\s/.test(text) || /^\s{0,100}(?:\[\{|\{"events)/.test(text)) return ofJson(text, unparsed);
  const printed = text.split("\n").map((line) => line.trimEnd());
  return printed.some((line) => line.startsWith("timestamp: ")) ? ofYaml(printed) : ofLines(printed, unparsed);
}

function stored(line: number, said: string, time: unknown, name: unknown): JsonElement {
  // a garbled number may be no time
  const at = typeof time !== "number" ? time : Math.abs(time) <= 8.64e15 ? new Date(time).toISOString() : undefined;
  return { line, text: said, value: { "@timestamp": at, log: said, kubernetes: { container_name: name } } };
}

function ofJson(text: string, unparsed: UnparsedLines): JsonElement[] {
  const places = text.split("\n").flatMap((line, i) => (LINE.test(line) ? [i + 1] : []));
  return entriesOf(text, unparsed).flatMap((value, i): JsonElement[] => {
    const payload = value["jsonPayload"];
    const said = value["textPayload"] ?? (payload as { message?: unknown } | undefined)?.message ?? value["message"];
    if (typeof said !== "string") return [{ line: places[i] ?? 1, text: JSON.stringify(value).slice(0, 4000), value }];
    const labels = (value["resource"] as { labels?: { container_name?: unknown } } | undefined)?.labels;
    return [stored(places[i] ?? 1, said.trimEnd(), value["timestamp"], labels?.container_name ?? STREAM.exec(String(value["logStreamName"]))?.[1])];
  });
}

function entriesOf(text: string, unparsed: UnparsedLines): Record<string, unknown>[] {
  try {
    const value = JSON.parse(text) as unknown;
    const list = Array.isArray(value) ? value : (value as { events?: unknown }).events;
    return Array.isArray(list) ? list.filter((one): one is Record<string, unknown> => typeof one === "object" && one !== null) : [];
  } catch {
    return jsonElements(text, unparsed).map(({ value }) => value);
  }
}

/** Cloud Logging's own form: documents of YAML, of which only plain and quoted texts are read. */
function ofYaml(printed: readonly string[]): JsonElement[] {
  const entries: JsonElement[] = [];
  let found = new Map<string, { line: number; value: string }>();
  for (const [i, line] of [...printed, "---"].entries()) {
    const [, top, inner, said] = YAML.exec(line) ?? [];
    const key = top ?? inner;
    if (key !== undefined && said !== undefined) found.set(key, { line: i + 1, value: /^'(.*)'$/.exec(said)?.[1]?.replaceAll("''", "'") ?? said });
    if (line !== "---") continue;
    const message = found.get("textPayload") ?? found.get("message");
    if (message !== undefined) entries.push(stored(message.line, message.value, found.get("timestamp")?.value, found.get("container_name")?.value));
    found = new Map();
  }
  return entries;
}

function ofLines(printed: readonly string[], unparsed: UnparsedLines): JsonElement[] {
  return printed.flatMap((line, i) => {
    const labeled = LABELED.exec(line);
    const [, time, name, said] = labeled === null ? (TAILED.exec(line) ?? []) : [];
    const container = /\bcontainer(?:_name)?="([^"]{1,255})"/.exec(labeled?.[2] ?? "")?.[1];
    if (labeled !== null) return [{ ...stored(i + 1, labeled[3] as string, labeled[1], container), text: line }];
    if (said !== undefined) return [{ ...stored(i + 1, said, time, name), text: line }];
    if (line.trim() !== "") unparsed.add(i + 1, line);
    return [];
  });
}
