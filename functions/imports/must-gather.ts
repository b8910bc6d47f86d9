import { decodeText, type Head, unpackedFile } from "../transports/archive.ts";
import { MAX_OUTPUT } from "../transports/capture-files.ts";
import type { Draft, DraftOutput, Importer } from "./bundle.ts";

/**
 * What a must-gather of OpenShift has of nodes: the kubelet's log, and the offloads of the cards. All else in it is what the API server knows.
 *
 *     must-gather.local.123/quay-io-…/nodes/worker-0/{worker-0_logs_kubelet.gz,ethtool_features}
 */

const OF_NODE = /^((?:[^/]{1,255}\/){0,4})nodes\/([^/]{1,253})\/(?:\2_logs_kubelet\.gz|ethtool_features)$/;
/** When the collection began and when it ended: `2026-11-21 03:50:11.123456789 +0000 UTC m=+0.21`. */
const TIMESTAMP = /(?:^|\/)timestamp$/;
/** `> ethtool -k ens3`, then what it printed. */
const ASKED = /^> (ethtool -k [\w.@-]{1,40})$/;

export const mustGather: Importer = {
  id: "must-gather",
  title: "the nodes' part of a must-gather of OpenShift",
  recognize(names) {
    return names.some((name) => OF_NODE.test(name) && name.endsWith("_logs_kubelet.gz")) ? (name) => OF_NODE.test(name) || TIMESTAMP.test(name) : undefined;
  },
  async read(files) {
    const startedAt = endOf([...files].flatMap(([name, head]) => (TIMESTAMP.test(name) ? [head] : [])));
    const nodes = new Map<string, DraftOutput[]>();
    for (const [name, head] of files) {
      const node = OF_NODE.exec(name)?.[2];
      if (node === undefined) continue;
      const own = name.endsWith(".gz") ? await kubeletLog(name, head) : offloads(name, head);
      nodes.set(node, [...(nodes.get(node) ?? []), ...own]);
    }
    return [...nodes].map(([target, outputs]): Draft => ({ target, startedAt, outputs }));
  },
};

/** Of a log that is damaged nothing was seen: cut at its beginning. */
async function kubeletLog(file: string, head: Head): Promise<DraftOutput[]> {
  const { bytes, truncated } = (await unpackedFile(file, head, MAX_OUTPUT)) ?? { bytes: Buffer.alloc(0), truncated: true };
  return [{ command: "journalctl -u kubelet", file, text: decodeText(bytes), truncated }];
}

/** One output for each card, each line at its place. */
function offloads(file: string, { bytes, truncated }: Head): DraftOutput[] {
  const outputs: { command: string; file: string; text: string; truncated: boolean }[] = [];
  for (const [index, line] of decodeText(bytes).split("\n").entries()) {
    const command = ASKED.exec(line)?.[1];
    if (command !== undefined) outputs.push({ command, file, text: "\n".repeat(index + 1), truncated: false });
    else if (outputs.length > 0) (outputs.at(-1) as { text: string }).text += `${line}\n`;
  }
  const last = outputs.at(-1);
  if (last !== undefined) last.truncated = truncated;
  return outputs;
}

/** The latest of these times; the logs were read shortly before. */
function endOf(heads: readonly Head[]): string | undefined {
  const times = heads.flatMap(({ bytes }) =>
    [...decodeText(bytes.subarray(0, 4096)).matchAll(/^(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d{1,9})? ([+-]\d\d)(\d\d) /gm)].map(
      ([, day, time, hours, minutes]) => Date.parse(`${day}T${time}${hours}:${minutes}`),
    ),
  );
  const known = times.filter((time) => !Number.isNaN(time));
  return known.length === 0 ? undefined : new Date(Math.max(...known)).toISOString();
}
