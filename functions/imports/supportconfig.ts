import { basename, posix } from "node:path";
import { toldByDate } from "../facts/date-output.ts";
import { decodeText } from "../transports/archive.ts";
import { type DraftOutput, type Importer, isKnown, onlyLines } from "./bundle.ts";
import { rootAbove } from "./file-table.ts";

/**
 * SUSE's supportconfig (`scc_node1_261121_0352.txz`, older `nts_…tbz`): a few large texts, in which each command, file and log stands below a header:
 *
 *     #==[ Command ]======================================#
 *     # /sbin/ip route
 *     default via 10.0.0.1 dev eth0
 *
 * `network-<name>.txt` are other network namespaces, and its commands say so (`ip netns exec <name> …`).
 */

const WANTED =
  /^(?:network[\w.-]{0,200}|env|modules|boot|messages|warn|localmessages|proc|chrony|ntp|basic-environment|systemd|docker|podman|kubernetes|rke2|k3s|plugin-[\w.-]{1,100})\.txt$/;
const HEADER = /^#==\[ ([A-Z][\w ]{2,40}) \]=+#\r?$/;
/** `# /usr/sbin/ip route`, `# /var/log/messages - Last 500 Lines`. */
const SUBJECT = /^# (\S[^\r\n]{0,2000})\r?$/;
const MISSING = /^ERROR: Command not found or not executable\r?$/;

export const supportconfig: Importer = {
  id: "supportconfig",
  title: "a supportconfig",
  recognize(names) {
    const root = rootAbove(names, "basic-environment.txt");
    return root === undefined || !names.includes(`${root}network.txt`) ? undefined : (name) => name.startsWith(root) && WANTED.test(name.slice(root.length));
  },
  read(files, names) {
    const root = rootAbove(names, "basic-environment.txt") ?? "";
    const outputs: DraftOutput[] = [];
    let date: string | undefined;
    let target: string | undefined;
    for (const [name, head] of files) {
      for (const section of sectionsOf(name, decodeText(head.bytes), head.truncated)) {
        if (section.command === "date") date ??= toldByDate([section]);
        // Linux node1 6.4.0-150600.23-default …
        if (section.command === "uname -a") target ??= /^Linux ([\w.-]{1,253}) \d/m.exec(section.text)?.[1];
        if (isKnown(section.command)) outputs.push(section);
      }
    }
    return [{ target: target ?? /^(?:scc|nts)_([\w.-]{1,253})_\d{6}_\d{4}$/.exec(basename(root))?.[1], startedAt: date, outputs }];
  },
};

/** The sections of a text that are outputs, files or logs, each with its lines at their place. */
function sectionsOf(file: string, text: string, cut: boolean): DraftOutput[] {
  const lines = text.split("\n");
  const starts = lines.flatMap((line, i) => (HEADER.test(line) ? [i] : []));
  return starts.flatMap((start, i): DraftOutput[] => {
    const end = starts[i + 1] ?? lines.length;
    const command = commandOf(HEADER.exec(lines[start] ?? "")?.[1] ?? "", SUBJECT.exec(lines[start + 1] ?? "")?.[1] ?? "");
    if (command === undefined) return [];
    const output = { command, file, text: onlyLines(lines, start + 3, end), truncated: cut && i === starts.length - 1 };
    return [MISSING.test(lines[start + 2] ?? "") ? { ...output, text: "", exitCode: 127, stderr: `${command.split(" ", 1)[0]}: not found\n` } : output];
  });
}

/** What a section holds; undefined if it is a note, or a file that was not there. */
function commandOf(kind: string, subject: string): string | undefined {
  // /usr/sbin/ip netns exec web /usr/sbin/ethtool -k eth0
  if (kind === "Command") return subject.replaceAll(/(?<![^ ])\/(?:usr\/)?s?bin\/(?=[\w.-]+(?: |$))/g, "") || undefined;
  if (subject.endsWith(" - File not found") || !subject.startsWith("/")) return undefined;
  if (kind === "Configuration File") return `cat ${posix.normalize(subject)}`;
  return kind === "Log File" ? `cat ${subject.replace(/ - Last \d+ Lines$/, "")}` : undefined;
}
