import type { Context } from "./context.ts";
import { noteMessage } from "./note.ts";
import { tellPod } from "./pod.ts";
import type { Place, Target, WorkloadName } from "./ports.ts";
import { tellService } from "./svc.ts";
import { type Chosen, workloadWords } from "./workload.ts";

/** What a triage of a pod or a service knows when its node has been diagnosed. */
export interface Looked {
  readonly asked: WorkloadName;
  readonly chosen: Chosen;
  /** The node, by the way that led there. */
  readonly reached: Target;
  /** Key of the node's capture. */
  readonly capture: string;
}

/** Looks closer at the pod or service than its node's diagnosis did, and tells the thread. Whatever goes wrong here, the node's own triage goes on. */
export async function tellInside(context: Context, incident: string, thread: Place, { asked, chosen, reached, capture }: Looked): Promise<void> {
  const { durable, ports } = context;
  try {
    if (chosen.kind === "pod") await tellPod(context, incident, thread, reached, asked, chosen.place);
    else await tellService(context, incident, thread, { asked, place: chosen.place, client: chosen.node.target, capture, server: chosen.server });
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "the look at a pod or service failed", { incident, problem });
    await durable.step("tell-inside-failed", async () => {
      const text = `netcheck could not look at the ${workloadWords(asked)} itself: ${problem}. What was said about the node holds.`;
      await ports.chat.post(`${incident}/inside-failed`, thread, noteMessage("warning", text));
      return null;
    });
  }
}
