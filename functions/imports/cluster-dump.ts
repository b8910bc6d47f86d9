import { decodeText } from "../transports/archive.ts";
import type { Draft, DraftOutput, Importer } from "./bundle.ts";
import { AGENT_POD, placesIn } from "./pod-logs.ts";

/**
 * What `kubectl cluster-info dump --output-directory=…` leaves: lists of objects as JSON, and `<namespace>/<pod>/logs.txt`. The logs of the agents that run on each
 * node and of CoreDNS are read, those of one node together; which pod runs where stands in the list of its namespace.
 */

const LOG = new RegExp(`^((?:[^/]{1,200}/){0,2}[\\w.-]{1,63})/(${AGENT_POD})/logs\\.txt$`);
const PODS = /^((?:[^/]{1,200}\/){0,2}[\w.-]{1,63})\/pods\.json$/;
const FRAME = /^==== (?:START|END) logs for container .{1,300} ====\r?$/gm;

export const clusterDump: Importer = {
  id: "cluster-dump",
  title: "a kubectl cluster-info dump",
  recognize(names) {
    const dump = names.some((name) => /(?:^|\/)nodes\.json$/.test(name)) && names.some((name) => PODS.test(name)) && names.some((name) => LOG.test(name));
    return dump ? (name) => LOG.test(name) || PODS.test(name) : undefined;
  },
  read(files) {
    const nodes = new Map<string, string>();
    for (const [name, head] of files) {
      const folder = PODS.exec(name)?.[1];
      if (folder !== undefined) for (const [pod, node] of placesIn(head)) nodes.set(`${folder}/${pod}`, node);
    }
    const byNode = new Map<string, DraftOutput[]>();
    for (const [name, head] of files) {
      const [, folder = "", pod = ""] = LOG.exec(name) ?? [];
      const node = nodes.get(`${folder}/${pod}`);
      if (node === undefined) continue;
      const namespace = folder.split("/").at(-1);
      const output = {
        command: `kubectl logs -n ${namespace} ${pod}`,
        file: name,
        text: decodeText(head.bytes).replaceAll(FRAME, ""),
        truncated: head.truncated,
      };
      byNode.set(node, [...(byNode.get(node) ?? []), output]);
    }
    return [...byNode].map(([target, outputs]): Draft => ({ target, outputs }));
  },
};
