import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";

/** What a summary counts is what happened, not the lines that tell of it. */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks, { tolerant: true });

test.each([
  ["xtables-lock-contention", "pasted-two-lines-for-each-refusal", "at least 4 times"],
  ["neighbor-table-overflow", "pasted-with-limits", "at least 3 times"],
  // of one there is no first, and its verb is another
  ["pods-on-docker0", "pasted-pods-and-routes", "1 pod, web-7cdbd8cdc9-6kq2n (172.17.0.4), lies in"],
  ["vtep-mac-mismatch", "calico-entry-leads-home", "1 gateway on vxlan.calico cannot be reached, 192.168.203.0: the"],
  ["stale-udp-conntrack", "load-balancer-address-grep", "1 UDP flow 192.0.2.200 → 192.0.2.61:6100 is sent to"],
  ["stale-udp-conntrack", "pasted-tables-of-service-and-endpoints", "2 UDP flows such as 10.4.2.7 → 10.4.9.80:514 are sent to"],
  ["ephemeral-port-overlap", "connection-sits-on-a-nodeport", "2 NodePorts such as 30080; 1 connection of the node sits on"],
])("%s: %s", async (rule, name, said) => {
  const capture = await readCaptureFiles(`${runbooks}rules/${rule}/fixtures/${name}`);
  expect(diagnose(capture, catalogue, "", () => 0).causes.find((cause) => cause.rule === rule)?.summary).toContain(said);
});
