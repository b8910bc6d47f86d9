import type { Reaped } from "../transports/debug-pod.ts";
import type { Config } from "../triage/config.ts";
import type { Ports, Store } from "../triage/ports.ts";
import type { Meter } from "./metrics.ts";

export interface ReaperOptions {
  readonly config: () => Promise<Config>;
  readonly store: Pick<Store, "incidents" | "proposal">;
  readonly meter: Pick<Meter, "gauge">;
  readonly log: Ports["log"];
  /** Deletes what is over of one cluster's debug pods. */
  readonly reap: (cluster: string, config: Config, now: Date) => Promise<Reaped>;
  readonly now: () => Date;
}

/** So many of the newest incidents are looked through for those that still wait. */
const LOOK_BACK = 500;
/** Milliseconds that a workflow has to close its proposal when its time is over. */
const GRACE_MS = 10 * 60_000;

/**
 * Looks for what was left behind, every few minutes: debug pods past their time, which it deletes, and approvals past theirs, which it counts. Each cluster by
 * itself: one that cannot be reached does not keep the others from being cleared.
 */
export async function clearUp({ config: read, store, meter, log, reap, now }: ReaperOptions): Promise<void> {
  const config = await read();
  let leaked = 0;
  for (const [cluster, { debugPods }] of Object.entries(config.clusters)) {
    if (debugPods === undefined) continue;
    try {
      const { deleted, stuck, failed } = await reap(cluster, config, now());
      leaked += deleted.length + stuck.length + failed.length;
      if (deleted.length > 0) log("warn", "debug pods were left behind and are deleted", { cluster, pods: deleted.join(" ") });
      if (stuck.length > 0) log("warn", "debug pods do not end: their node may be gone", { cluster, pods: stuck.join(" ") });
      for (const { pod, reason } of failed) log("error", "a debug pod was left behind and could not be deleted", { cluster, pods: pod, problem: reason });
    } catch (error) {
      log("error", "could not look for debug pods that were left behind", { cluster, problem: (error as Error).message });
    }
  }
  meter.gauge("LeakedPods", leaked);
  const waiting = (await store.incidents(LOOK_BACK)).filter(({ state }) => state === "awaiting-approval");
  let overdue = 0;
  for (const { id, proposal: proposalId } of waiting) {
    const proposal = proposalId === undefined ? undefined : await store.proposal(proposalId);
    if (proposal === undefined || Date.parse(proposal.expiresAt) + GRACE_MS > now().getTime()) continue;
    overdue += 1;
    log("error", "an approval is over and its triage did not notice", { incident: id });
  }
  meter.gauge("StuckApprovals", overdue);
}
