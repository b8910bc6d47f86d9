import { words } from "../facts/command.ts";
import { parsedJson } from "../facts/json.ts";

/** What runs a command on many machines at once, and puts the machine's name in front of each line: pdsh, clush (ClusterShell). */
const SPREADERS = /^(?:[\w./-]{0,100}\/)?(?:pdsh|clush)$/;
/** `node1 | CHANGED | rc=0 >>` */
const ANSIBLE = /^[\w.-]{1,253} \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d{1,3} >>$/m;
const ANSWER = /^\s{0,8}[\w.-]{1,253} \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d{1,3} >>\n/;
const HOST = /^\s{0,8}([\w.-]{1,253}) \| (?:CHANGED|SUCCESS|FAILED) \| rc=\d{1,3} >>$/;
/** Azure's agent tells what a script wrote to which channel. */
const RUN_COMMAND = /^(?:sudo )?(?:az|kubectl(?:-aks)?) .{0,1000}\brun-command\b/;
const PREFIX = /^([A-Za-z0-9][\w.-]{0,252}): ?/;

/** The machine whose answer to Ansible begins with this line. */
export const ansibleHost = (line: string): string | undefined => HOST.exec(line.trimEnd())?.[1];

/**
 * What one machine printed, without its name in front of each line: `node7: default via 192.0.2.1 dev eth0`. Where several machines answered, or a line has no
 * name, the text as it is: whose it was must not be guessed. Lines keep their numbers.
 */
export function withoutHostPrefix(command: string, text: string): string {
  // who asks with Ansible may keep its answer in a file that has the command's name
  if (/^(?:sudo )?ansible /.test(command) || ANSWER.test(text)) {
    const heads = text.split("\n").filter((line) => ANSIBLE.test(line)).length;
    return heads === 1 ? text.replace(ANSIBLE, "") : text;
  }
  if (/^(?:sudo )?salt /.test(command)) return saltAnswer(text);
  if (RUN_COMMAND.test(command)) return standardOutput(text);
  if (!words(command).some((word) => SPREADERS.test(word))) return text;
  const lines = text.split("\n");
  const hosts = new Set(lines.filter((line) => line.trim() !== "").map((line) => PREFIX.exec(line)?.[1]));
  const [host] = hosts;
  return hosts.size === 1 && host !== undefined ? lines.map((line) => line.replace(PREFIX, "")).join("\n") : text;
}

/** What Salt sets in below the name of the one machine that answered; several are not taken apart. */
function saltAnswer(text: string): string {
  const lines = text.split("\n");
  const heads = lines.flatMap((line, i) => (/^[\w.-]{1,253}:$/.test(line) ? [i] : []));
  const filled = lines.filter((line) => line.trim() !== "");
  if (heads.length !== 1 || filled[0] !== lines[heads[0] as number] || !filled.slice(1).every((line) => line.startsWith("    "))) return text;
  return lines.map((line, i) => (i === heads[0] ? "" : line.slice(4))).join("\n");
}

/** What stands between `[stdout]` and `[stderr]`; all of it without such marks. Lines keep their numbers, but for those of an answer in JSON, which are one there. */
export function standardOutput(text: string): string {
  const lines = (messageIn(text) ?? text).split("\n");
  const [start, end] = ["[stdout]", "[stderr]"].map((mark) => lines.findIndex((line) => line.trim() === mark)) as [number, number];
  return start === -1 ? text : lines.map((line, i) => (i > start && (end < start || i < end) ? line : "")).join("\n");
}

/** The text in Azure's answer: `{"value": [{"code": "ProvisioningState/succeeded", "message": "Enable succeeded: \n[stdout]\n…"}]}`. */
function messageIn(text: string): string | undefined {
  const [, message] = /^[ \t]{0,16}"message": ("(?:[^"\\\n]|\\.)*"),?[ \t\r]*$/m.exec(text) ?? [];
  return message === undefined ? undefined : (parsedJson(message) as string | undefined);
}
