import { asPrinted } from "./as-printed.ts";
import { type Draft, type DraftOutput, isKnown } from "./bundle.ts";
import { blocksOf } from "./code-blocks.ts";
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
const SCRIPT = ["StandardOutputContent", "Output", "message", "msg", ...OUTPUT];
/** What stands in front of Ansible's answer of one host. */
const ANSIBLE = /^(?:ok|changed|fatal|failed): \[([\w.-]{1,253})(?: -> [\w.-]{1,253})?\](?:: FAILED!)?(?:(?: =>)? \(item=.{0,400}?\))? => (\{.*)$/;
const MAX_DEPTH = 6;

type Members = Readonly<Record<string, unknown>>;
const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);

/** The outputs that a text in JSON holds, one draft a node; none if it is no JSON, or holds no output of a command that netcheck knows. Pure, total. */
export function readCommandJson(text: string, file: string): Draft[] {
  const whole = /^\s{0,100}[[{]/.test(text) ? parsed(text) : undefined;
  const answers = whole === undefined ? objectsIn(text) : [{ node: undefined, value: whole }];
  const drafts = new Map<string | undefined, DraftOutput[]>();
  for (const { node, value } of answers) {
    const name = node ?? nodeOf(value);
    const outputs = drafts.get(name) ?? [];
    collect(value, file, 0, outputs);
    drafts.set(name, outputs);
  }
  return [...drafts].flatMap(([target, outputs]) => (outputs.length > 0 ? [{ target, outputs }] : []));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The objects that stand in a text: on one line, or from a line that ends with `{` to one that is `}`. */
function objectsIn(text: string): { node: string | undefined; value: unknown }[] {
  const found: { node: string | undefined; value: unknown }[] = [];
  const lines = text.split(/\r?\n/);
  const last = lines.lastIndexOf("}");
  for (let i = 0; i < lines.length; i++) {
    const [, node, behind] = ANSIBLE.exec(lines[i] ?? "") ?? [];
    const head = behind ?? lines[i] ?? "";
    if (!head.startsWith("{")) continue;
    const open = head.trimEnd() === "{";
    if (open && last <= i) continue;
    const end = open ? lines.indexOf("}", i) : i;
    const value = parsed([head, ...lines.slice(i + 1, end + 1)].join("\n"));
    if (value !== undefined) found.push({ node, value });
    i = end;
  }
  return found;
}

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

function collect(value: unknown, file: string, depth: number, outputs: DraftOutput[]): void {
  if (depth > MAX_DEPTH) return;
  if (Array.isArray(value)) for (const element of value) collect(element, file, depth + 1, outputs);
  if (!isMembers(value)) return;
  const asked = first(value, COMMAND);
  const command = Array.isArray(asked) ? asked.filter((word) => typeof word === "string").join(" ") : asked;
  const printed = textOf(first(value, OUTPUT));
  if (typeof command === "string" && printed !== undefined) {
    add(command, printed, value, file, outputs);
    return;
  }
  for (const [key, member] of Object.entries(value)) {
    const inside = SCRIPT.includes(key) ? ofScript(textOf(member) ?? "", key, file) : [];
    if (inside.length > 0) {
      outputs.push(...inside);
      continue;
    }
    const own = /^[a-z/].{0,400} /.test(key) || key === "iptables-save" || key === "dmesg" ? textOf(member) : undefined;
    if (own === undefined) collect(member, file, depth + 1, outputs);
    else add(key, own, {}, file, outputs);
  }
}

/** The outputs in what a script printed. Without a heading only what surely was a script's is looked at: other members with such names are parts of some output. */
function ofScript(text: string, key: string, file: string): readonly DraftOutput[] {
  if (!text.includes("\n")) return [];
  const script = standardOutput(text);
  const named = namedOutputs(blocksOf(plainPrompts(asPrinted(script))), undefined).outputs.some(({ command }) => isKnown(command));
  return named || key === "StandardOutputContent" ? readTranscript(script, `${file}!${key}`).outputs.filter(({ command }) => isKnown(command)) : [];
}

function add(command: string, printed: string, { stderr, ...rest }: Members, file: string, outputs: DraftOutput[]): void {
  if (!isKnown(command)) return;
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
