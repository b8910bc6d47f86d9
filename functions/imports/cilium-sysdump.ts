import { posix } from "node:path";
import { archiveKind, decodeText, type Head } from "../transports/archive.ts";
import { type Draft, type Importer, isKnown, nestedReader } from "./bundle.ts";

/**
 * A `cilium sysdump`, or one `cilium-bugtool` archive: for each agent a folder (or a tar of it) with `cmd/<command with - for blanks>.md`, in which the
 * command stands in the first line:
 *
 *     # ip -4 route show table all
 *
 *     ```
 *     default via 10.0.0.1 dev eth0
 *     ```
 */

const PAGE = /^(.*?)(?:^|\/)cmd\/[^/]{1,255}\.md$/;
const NESTED = /(?:^|\/)(?:cilium-bugtool|bugtool)[^/]{0,200}\.(?:tar|tgz|tar\.gz)$/;
const HEADER = /^# ([^\r\n]{1,4000})\r?\n/;

export const ciliumSysdump: Importer = {
  id: "cilium-sysdump",
  title: "a cilium sysdump or bugtool archive",
  recognize(names) {
    const bugtool = names.some((name) => NESTED.test(name)) || names.some((name) => PAGE.test(name) && /(?:^|\/)cmd\/(?:cilium|bpftool|ip-)/.test(name));
    return bugtool ? (name) => PAGE.test(name) || NESTED.test(name) : undefined;
  },
  async read(files) {
    const folders = new Map<string, Map<string, Head>>();
    const nested = nestedReader();
    const add = (name: string, head: Head, prefix: string): void => {
      const folder = prefix + (PAGE.exec(name)?.[1] ?? "");
      const pages = folders.get(folder) ?? new Map<string, Head>();
      pages.set(prefix + name, head);
      folders.set(folder, pages);
    };
    for (const [name, head] of files) {
      if (archiveKind(name) === undefined) add(name, head, "");
      else {
        for (const [path, page] of await nested({ name, bytes: head.bytes }, (path) => PAGE.test(path))) add(path, page, `${name}!`);
      }
    }
    return [...folders].map(([folder, pages]) => draftOf(folder, pages));
  },
};

/** `cilium-bugtool-cilium-x7k2p-20261121-035200` or `bugtool-cilium-x7k2p`: the agent's pod, where nothing names the node. */
function draftOf(folder: string, pages: ReadonlyMap<string, Head>): Draft {
  const outputs: Draft["outputs"][number][] = [];
  let target: string | undefined;
  for (const [name, head] of pages) {
    const text = decodeText(head.bytes);
    const command = HEADER.exec(text)?.[1] ?? posix.basename(name, ".md").replaceAll("-", " ");
    // Linux node1 6.1.0-28-amd64 …
    if (command.startsWith("uname")) target ??= /^Linux ([\w.-]{1,253}) \d/m.exec(text)?.[1];
    if (isKnown(command)) outputs.push({ command, file: name, text: withoutFrame(text), truncated: head.truncated });
  }
  return { target: target ?? /(?:^|[-/])(cilium-[a-z0-9]{4,6})(?:[-/!.]|$)/.exec(folder)?.[1], outputs };
}

/** Takes the page's own lines off; the others keep their numbers. */
function withoutFrame(text: string): string {
  return text
    .replace(HEADER, "\n")
    .replace(/^```\r?$/gm, "")
    .replace(/^> Error while running '.{1,4000}$/gm, "");
}
