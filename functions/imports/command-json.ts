import { type Draft, type DraftOutput, isKnown } from "./bundle.ts";

/**
 * Outputs in JSON, as collectors of one's own and Ansible keep them:
 *
 *     {"node": "n1", "commands": [{"command": "ip route", "stdout": "default via 10.0.0.1 dev eth0\n", "rc": 0}, …]}
 *     {"ip route": "default via 10.0.0.1 dev eth0\n", "ip rule": ["0:\tfrom all lookup local", …]}
 *     changed: [n1] => {"changed": true, "cmd": ["ip", "route"], "rc": 0, "stdout": "default via 10.0.0.1 dev eth0", …}
 *
 * Lines of evidence are counted within the output, which is named behind the file's name: `saved.json!ip route`.
 */

const COMMAND = ["command", "cmd", "argv"];
const OUTPUT = ["stdout", "stdout_lines", "output", "out", "text", "result"];
const EXIT = ["rc", "exitCode", "exit_code", "returncode", "exitcode"];
const NODE = ["node", "nodeName", "hostname", "host"];
/** What stands in front of Ansible's answer of one host. */
const ANSIBLE = /^(?:ok|changed|fatal|failed): \[([\w.-]{1,253})(?: -> [\w.-]{1,253})?\](?:: FAILED!)?(?: \(item=.{0,400}?\))? => (\{.*)$/;
const MAX_DEPTH = 6;

type Members = Readonly<Record<string, unknown>>;
const isMembers = (value: unknown): value is Members => typeof value === "object" && value !== null && !Array.isArray(value);

/** The outputs that a text in JSON holds, one draft a node; none if it is no JSON, or holds no output of a command that netcheck knows. Pure, total. */
export function readCommandJson(text: string, file: string): Draft[] {
  const answers = /^\s{0,100}[[{]/.test(text) ? [{ node: undefined, value: parsed(text) }] : ansibleAnswers(text);
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

function ansibleAnswers(text: string): { node: string | undefined; value: unknown }[] {
  if (!text.includes("] => {")) return [];
  return text.split(/\r?\n/).flatMap((line) => {
    const [, node, json = ""] = ANSIBLE.exec(line) ?? [];
    return node === undefined ? [] : [{ node, value: parsed(json) }];
  });
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
    const own = /^[a-z/].{0,400} /.test(key) || key === "iptables-save" || key === "dmesg" ? textOf(member) : undefined;
    if (own === undefined) collect(member, file, depth + 1, outputs);
    else add(key, own, {}, file, outputs);
  }
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
