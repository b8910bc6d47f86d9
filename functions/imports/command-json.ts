import { tellsTime } from "../facts/date-output.ts";
import { parsedJson } from "../facts/json.ts";
import { asPrinted } from "./as-printed.ts";
import { type Draft, type DraftOutput, isCommand, isKnown } from "./bundle.ts";
import { blocksOf } from "./code-blocks.ts";
import { tableRows } from "./command-table.ts";
import { standardOutput } from "./host-prefix.ts";
import { namedOutputs } from "./named-outputs.ts";
import { plainPrompts } from "./prompts.ts";
import { readTranscript } from "./transcript.ts";

/**
 * Outputs in JSON, as collectors of one's own and Ansible keep them:
 *
 *     {"node": "n1", "commands": [{"command": "ip route", "stdout": "default via 10.0.0.1 dev eth0\n", "rc": 0}, …]}
 *     {"ip route": "default via 10.0.0.1 dev eth0\n", "ip rule": ["0:\tfrom all lookup local", …]}
 *     changed: [n1] => {"changed": true, "cmd": ["ip", "route"], "rc": 0, "stdout": "default via 10.0.0.1 dev eth0", …}
 *     {"InstanceId": "i-0123", "StandardOutputContent": "=== ip route ===\ndefault via 10.0.0.1 dev eth0\n…"}
 *
 * The objects may stand in a text, each on a line of its own or over several.
 * Lines of evidence are counted within the output, which is named behind the file's name: `saved.json!ip route`.
 */

const COMMAND = ["command", "cmd", "argv"];
const OUTPUT = ["stdout", "stdout_lines", "output", "out", "text", "result"];
const EXIT = ["rc", "exitCode", "exit_code", "returncode", "exitcode"];
const NODE = ["node", "nodeName", "hostname", "host", "InstanceId"];
/** What a whole script printed, headings and all: Systems Manager, Azure's agent, a shell task. */
const SCRIPT = ["StandardOutputContent", "Output", "message", "msg", "log", ...OUTPUT];
/** What stands in front of Ansible's answer of one host. */
const ANSIBLE = /^(?:ok|changed|fatal|failed): \[([\w.-]{1,253})(?: -> [\w.-]{1,253})?\](?:: FAILED!)?(?:(?: =>)? \(item=(.{0,400}?)\))? => (\{.*)$/;
/** What stands above it, which may be the command; that of a loop stands in each answer. */
const TASK = /^TASK \[(.{1,400}?)\] ?\*{3,}$/;
/** What a task printed, shown by another one: `debug: var=routes.stdout_lines`, `debug: msg={{ routes.stdout_lines }}`. */
const SHOWN = /(?:\.stdout(?:_lines)?|^msg)$/;
const MAX_DEPTH = 10;

type Members = Readonly<Record<string, unknown>>;
const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);

/** The outputs that a text in JSON holds, one draft a node; none if it is no JSON, or holds no output of a command that netcheck knows. Pure, total. */
export function readCommandJson(text: string, file: string): Draft[] {
  const whole = /^\s{0,100}[[{]/.test(text) ? parsedJson(text) : undefined;
  const spelt = whole === undefined ? spelledOut(text) : chatOf(whole);
  if (spelt !== undefined) {
    const { others, ...draft } = readTranscript(spelt, `${file}!text`);
    return draft.outputs.length > 0 ? [draft, ...others] : [];
  }
  const table = whole === undefined ? tableRows(text) : [];
  if (table.length > 0) {
    const nodes = Map.groupBy(table, ({ node }) => node);
    return [...nodes].map(([target, rows]) => {
      const outputs: DraftOutput[] = [];
      for (const { command, text: printed } of rows) add(command, printed, {}, file, outputs);
      return { target, outputs };
    });
  }
  const answers = whole === undefined ? objectsIn(text) : ofHosts(whole, 0);
  const drafts = new Map<string | undefined, DraftOutput[]>();
  for (const { node, value, task } of answers) {
    const name = node ?? nodeOf(value);
    const outputs = drafts.get(name) ?? [];
    collect(value, file, 0, outputs, task);
    drafts.set(name, outputs);
  }
  return [...drafts].flatMap(([target, outputs]) => (outputs.some(({ command }) => isCommand(command)) ? [{ target, outputs }] : []));
}

/** What people wrote in Slack, as its export or its API keeps it: `[{"type": "message", "text": "…", "ts": "1795403000.000100"}]`. */
function chatOf(value: unknown): string | undefined {
  const list = isMembers(value) ? value["messages"] : value;
  const messages = Array.isArray(list) ? list.filter(isMembers) : [];
  const written = messages.flatMap(({ text, ts }) => (typeof text === "string" && typeof ts === "string" ? [{ text, at: Number(ts) }] : []));
  if (written.length === 0 || written.length < messages.length) return undefined;
  const sorted = written.toSorted((a, b) => a.at - b.at);
  return sorted
    .map(({ text }) => text)
    .join("\n\n")
    .replaceAll(/&(lt|gt|amp);/g, (_, name: string) => ({ lt: "<", gt: ">" })[name] ?? "&");
}

interface Answer {
  readonly node: string | undefined;
  readonly value: unknown;
  readonly task?: string | undefined;
}

/** The answers of each host, as Ansible's callback in JSON puts them together: `{"plays": [{"tasks": [{"hosts": {"n1": {"cmd": …}}}]}]}`. */
function ofHosts(value: unknown, depth: number): Answer[] {
  const hosts = isMembers(value) ? value["hosts"] : undefined;
  if (isMembers(hosts)) return Object.entries(hosts).map(([node, answer]) => ({ node, value: answer }));
  const inner = isMembers(value) ? [value["plays"], value["tasks"]].find(Array.isArray) : undefined;
  return inner === undefined || depth > MAX_DEPTH ? [{ node: undefined, value }] : inner.flatMap((one) => ofHosts(one, depth + 1));
}

/** The objects that stand in a text: on one line, or from a line that ends with `{` to one that is `}`. */
function objectsIn(text: string): Answer[] {
  const found: Answer[] = [];
  const lines = text.split(/\r?\n/);
  const last = lines.lastIndexOf("}");
  let task: string | undefined;
  for (let i = 0; i < lines.length; i++) {
    task = TASK.exec((lines[i] ?? "").slice(0, 1000))?.[1] ?? task;
    const [, node, item = "", behind] = ANSIBLE.exec(lines[i] ?? "") ?? [];
    const head = behind ?? lines[i] ?? "";
    if (!head.startsWith("{")) continue;
    const open = head.trimEnd() === "{";
    if (open && last <= i) continue;
    const end = open ? lines.indexOf("}", i) : i;
    const value = parsedJson([head, ...lines.slice(i + 1, end + 1)].join("\n"));
    if (value !== undefined) found.push({ node, value, task: isKnown(item) ? item : task });
    i = end;
  }
  return found;
}

/**
 * A text with `\\n` for the ends of lines, as it stands in JSON, in a log or in a program: all of it on one line, or what one command printed on a line of its own,
 * between quotes or with the sign at its end. Undefined if there is no such line.
 */
function spelledOut(text: string): string | undefined {
  if (!text.includes("\\n")) return undefined;
  const lines = text.trim().split("\n");
  const spelt = lines.map((line) => {
    const [, quote, inner] = /^\s{0,40}b?(["'])(.*)\1\s{0,8}$/.exec(line) ?? [];
    // what ends with a quote of its own is no text between quotes
    const bare =
      quote !== undefined && !new RegExp(`(?<!\\\\)${quote}`).test(inner ?? "") ? (inner ?? "") : lines.length === 1 || line.endsWith("\\n") ? line : "";
    return /\\n.*\\n/.test(bare) ? asMeant(bare) : line;
  });
  return spelt.every((line, i) => line === lines[i]) ? undefined : spelt.join("\n");
}

const SIGNS: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r" };
const asMeant = (text: string): string =>
  text.replaceAll(/\\(?:u([0-9a-f]{4})|(.))/g, (_, code?: string, sign = "") =>
    code === undefined ? (SIGNS[sign] ?? sign) : String.fromCharCode(Number.parseInt(code, 16)),
  );

const first = (value: Members, keys: readonly string[]): unknown => keys.map((key) => value[key]).find((member) => member !== undefined);

/** A text, or lines of one. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return Array.isArray(value) && value.length > 0 && value.every((line) => typeof line === "string") ? value.join("\n") : undefined;
}

function nodeOf(value: unknown): string | undefined {
  const name = isMembers(value) ? first(value, NODE) : undefined;
  return typeof name === "string" && /^[\w.-]{1,253}$/.test(name) ? name : undefined;
}

function collect(value: unknown, file: string, depth: number, outputs: DraftOutput[], task?: string): void {
  if (depth > MAX_DEPTH) return;
  if (Array.isArray(value)) for (const element of value) collect(element, file, depth + 1, outputs, task);
  if (!isMembers(value)) return;
  const asked = first(value, COMMAND);
  const command = Array.isArray(asked) ? asked.filter((word) => typeof word === "string").join(" ") : asked;
  const printed = textOf(first(value, OUTPUT));
  if (typeof command === "string" && printed !== undefined) {
    add(command, printed, value, file, outputs);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    const text = textOf(member) ?? "";
    const script = SCRIPT.includes(key) ? ofScript(text, key, file) : [];
    const shown = SHOWN.test(key) && (key !== "msg" || (task !== undefined && text.includes("\n")));
    const inside = script.length > 0 || !shown ? script : readTranscript(text, `${file}!${key}`, task === undefined ? [] : [task]).outputs;
    if (inside.length > 0) {
      outputs.push(...inside);
      continue;
    }
    const own = /^[a-z/].{0,400} /.test(key) || key === "iptables-save" || key === "dmesg" || isPrintedBy(key, member) ? textOf(member) : undefined;
    if (own === undefined) collect(member, file, depth + 1, outputs, task);
    else add(key, own, {}, file, outputs);
  }
}

/** True for `{"timedatectl": "…\n…"}`: a command of one word, and several lines. */
const isPrintedBy = (key: string, member: unknown): boolean =>
  /^[a-z][a-z-]{1,20}$/.test(key) && (textOf(member)?.trim().includes("\n") ?? false) && isKnown(key);

/** The outputs in what a script printed. Without a heading only what surely was a script's is looked at: other members with such names are parts of some output. */
function ofScript(text: string, key: string, file: string): readonly DraftOutput[] {
  if (!text.includes("\n")) return [];
  const script = standardOutput(text);
  const named = namedOutputs(blocksOf(plainPrompts(asPrinted(script))), undefined).outputs.some(({ command }) => isKnown(command));
  return named || key === "StandardOutputContent"
    ? readTranscript(script, `${file}!${key}`).outputs.filter(({ command }) => isKnown(command) || tellsTime(command))
    : [];
}

function add(command: string, printed: string, { stderr, ...rest }: Members, file: string, outputs: DraftOutput[]): void {
  // in a pod it may be about what programs meet with there
  if (!isCommand(command) && !tellsTime(command)) return;
  const exit = first(rest, EXIT);
  outputs.push({
    command,
    file: `${file}!${command}`,
    text: printed.endsWith("\n") || printed === "" ? printed : `${printed}\n`,
    truncated: false,
    exitCode: typeof exit === "number" && Number.isInteger(exit) ? exit : undefined,
    stderr: typeof stderr === "string" ? stderr : "",
  });
}
