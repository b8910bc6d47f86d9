import { clusterSecrets } from "./aws/cluster-secrets.ts";
import { configSource } from "./aws/config-source.ts";
import { environmentOf } from "./aws/environment.ts";
import { structuredLog } from "./aws/logger.ts";
import { emfMeter } from "./aws/metrics.ts";
import { clearUp } from "./aws/reaper.ts";
import { DynamoDbStore } from "./store/dynamodb.ts";
import { reapPods } from "./transports/debug-pod.ts";
import { podCluster } from "./transports/pod-clusters.ts";

/** Lambda on a schedule: clears away what was left behind. */
const { required } = environmentOf(process.env, "reaper", ["TABLE", "BUCKET", "CONFIG_PARAMETER"]);
const secret = clusterSecrets(process.env);
const options = {
  config: configSource(required("CONFIG_PARAMETER"), () => Date.now()),
  store: new DynamoDbStore({ table: required("TABLE"), bucket: required("BUCKET") }),
  meter: emfMeter("reaper"),
  log: structuredLog("reaper"),
  now: () => new Date(),
};

/** Two parameters, as Node 24 on Lambda wants it. */
export async function handler(_event: unknown, _context: unknown): Promise<void> {
  await clearUp({
    ...options,
    reap: (name, config, now) => reapPods(podCluster(name, config.clusters[name]?.debugPods, secret), now),
  });
}
