import { tellsTime } from "../facts/date-output.ts";
import { decodeText } from "../transports/archive.ts";
import { type DraftOutput, type Importer, isKnown } from "./bundle.ts";

/**
 * A folder of outputs with a table of what they are: `INDEX.tsv`, a line per file, with the columns `file` and `command`, and `netns` and `rc` (exit code) where
 * they were kept. What went to standard error lies beside it (`lsmod.txt`, `lsmod.stderr`).
 */

const TABLE = /^(?:[^/]{1,200}\/)?INDEX\.tsv$/;

/** Where the table lies: "" or "folder/". */
const rootOf = (names: readonly string[]): string | undefined => names.find((name) => TABLE.test(name))?.replace("INDEX.tsv", "");

/** The rows of the table by the names of its columns. */
function rowsOf(text: string): Record<string, string>[] {
  const [head = "", ...lines] = text.split(/\r?\n/);
  const columns = head.split("\t");
  return lines.filter((line) => line !== "").map((line) => Object.fromEntries(line.split("\t").map((cell, i) => [columns[i] ?? String(i), cell])));
}

/** The namespace that most of the outputs are of: the node's. Pods, peers and routers have few. `-`: none was entered. */
function nodeOf(rows: readonly Record<string, string>[]): string | undefined {
  const counts = new Map<string, number>();
  for (const { netns = "-" } of rows) counts.set(netns, (counts.get(netns) ?? 0) + 1);
  return [...counts].sort(([, a], [, b]) => b - a)[0]?.[0];
}

export const recording: Importer = {
  id: "recording",
  title: "a folder of outputs with an INDEX.tsv that names their commands",
  recognize(names) {
    const root = rootOf(names);
    return root === undefined ? undefined : (name) => name.startsWith(root) && !name.slice(root.length).includes("/");
  },
  read(files, names) {
    const root = rootOf(names) ?? "";
    const table = files.get(`${root}INDEX.tsv`);
    const rows = table === undefined ? [] : rowsOf(decodeText(table.bytes));
    const node = nodeOf(rows);
    const outputs = rows.flatMap(({ file = "", command = "", netns = "-", rc = "" }): DraftOutput[] => {
      const head = files.get(root + file);
      // a word of one letter in front of it is the recorder's own function
      const bare = command.replace(/^[a-z] (?=[a-z])/, "");
      if (head === undefined || !(isKnown(bare) || tellsTime(bare))) return [];
      const stderr = files.get(root + file.replace(/\.[a-z]{1,8}$/, ".stderr"));
      return [
        {
          command: netns === "-" || netns === node ? bare : `ip netns exec ${netns} ${bare}`,
          file: root + file,
          text: decodeText(head.bytes),
          truncated: head.truncated,
          exitCode: /^\d{1,3}$/.test(rc) ? Number(rc) : undefined,
          stderr: stderr === undefined ? "" : decodeText(stderr.bytes),
        },
      ];
    });
    return [{ target: undefined, outputs }];
  },
};
