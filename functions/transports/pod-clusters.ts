import { TransportError } from "../triage/ports.ts";
import type { PodCluster } from "./debug-pod.ts";
import type { ClusterAccess } from "./pod-access.ts";

/** `debugPods` of a cluster in netcheck.yaml. Holds no secret: a token is named, not written. */
export interface ConfiguredPods extends Omit<PodCluster, "access"> {
  readonly access:
    | Extract<ClusterAccess, { by: "kubeconfig" | "in-cluster" }>
    | Omit<Extract<ClusterAccess, { by: "eks" }>, "credentials">
    | (Omit<Extract<ClusterAccess, { by: "bearer" }>, "token"> & { readonly tokenSecret: string });
}

/**
 * A configured cluster as the transport wants it. Throws TransportError if it is not configured for debug pods.
 * @param secret reads a secret by its name, afresh each time (Secrets Manager, or the environment)
 */
export function podCluster(name: string, configured: ConfiguredPods | undefined, secret: (name: string) => Promise<string>): PodCluster {
  if (configured === undefined)
    throw new TransportError(`debug-pod: could not reach the cluster ${name}: netcheck.yaml has no debugPods for it`, { retryable: false });
  const { access, ...settings } = configured;
  if (access.by !== "bearer") return { ...settings, access };
  const { tokenSecret, ...rest } = access;
  return { ...settings, access: { ...rest, token: () => secret(tokenSecret) } };
}
