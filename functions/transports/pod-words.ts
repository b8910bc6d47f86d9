import type { ApiError } from "./pod-api.ts";
import { oneLine } from "./pod-state.ts";

/** Which right to give, where the API server denies one. */
const RIGHTS = "Give netcheck's account the rights of infra/k8s (pods and pods/log in its namespace, get nodes)";

/** An error of the API server for people: what it means and what to do. `host` is the server's. Many different causes are all 403: only the message tells. */
export function explain({ status, reason, message }: ApiError, host: string): string {
  const said = oneLine(message);
  switch (status) {
    case 0:
      return reason === "BadAnswer"
        ? `the API server ${host} gave a broken answer: ${said}`
        : `the API server ${host} could not be reached: ${network(reason, said)}`;
    case 401:
      return `the API server ${host} did not accept netcheck's credentials (401). They are wrong or have ended: check the token, the certificate or the IAM role of this cluster in netcheck.yaml`;
    case 403:
      return forbidden(said);
    case 404:
      return /namespaces? "/.test(said) ? `the cluster has no such namespace: ${said}. Create it with infra/k8s` : said;
    case 409:
      return said;
    case 413:
    case 422:
    case 400:
      if (said.includes("ValidatingAdmissionPolicy")) return forbidden(said);
      return /denied/.test(said)
        ? `an admission webhook of the cluster denied it: ${said}. Allow netcheck's namespace in that policy`
        : `the API server does not take the pod: ${said}`;
    case 429:
      return `the API server ${host} is throttling (429): ${said}`;
    default:
      if (said.includes("failed calling webhook"))
        return `an admission webhook of the cluster does not work, so no pod can be made: ${said}. Repair it, or exempt netcheck's namespace from it`;
      return `the API server ${host} failed (${status}${reason === "" ? "" : ` ${reason}`}): ${said}`;
  }
}

function network(code: string, said: string): string {
  const meaning: Record<string, string> = {
    ECONNREFUSED: "nothing answers on that port: it is down, or starting",
    ENOTFOUND: "its name does not resolve",
    EAI_AGAIN: "its name cannot be resolved now",
    ETIMEDOUT: said,
    ECONNRESET: "the connection was cut",
    CERT_HAS_EXPIRED: "its certificate has expired",
    SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not signed by the configured authority",
    DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not signed by the configured authority",
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is not signed by the configured authority",
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not signed by the configured authority",
    ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  };
  return `${meaning[code] ?? said} (${code})`;
}

function forbidden(said: string): string {
  if (said.includes("system:anonymous"))
    return `the request came without a credential that the cluster knows: ${said}. Check the token or the IAM role, and its entry in the cluster`;
  if (said.includes("user=kube-apiserver"))
    return `the node's kubelet refuses the API server itself, so no log can be read: ${said}. Restore the cluster role binding of system:kubelet-api-admin`;
  if (/ cannot \w+ resource /.test(said)) return `it is not allowed: ${said}. ${RIGHTS}`;
  if (said.includes("violates PodSecurity"))
    return `Pod Security Admission denied it: ${said}. Label netcheck's namespace with pod-security.kubernetes.io/enforce: privileged (infra/k8s)`;
  if (said.includes("PodSecurityPolicy")) return `a PodSecurityPolicy denied it: ${said}. Give netcheck's account a policy that allows privileged pods`;
  if (said.includes("ValidatingAdmissionPolicy"))
    return `a ValidatingAdmissionPolicy denied it: ${said}. If it is netcheck's own, install infra/k8s of this version: it pins the image and the scripts`;
  if (said.includes("admission webhook")) return `an admission webhook of the cluster denied it: ${said}. Allow netcheck's namespace in that policy`;
  if (said.includes("security context constraint")) return `OpenShift denied it: ${said}. Give netcheck's account the security context constraint privileged`;
  if (said.includes("exceeded quota") || said.includes("failed quota"))
    return `the quota of the namespace is used up: ${said}. Raise it, or delete pods that are left over`;
  if (/(?:maximum|minimum) .* usage per|LimitRange/.test(said))
    return `a LimitRange of the namespace denied it: ${said}. Allow netcheck's pods 1 CPU and 512 MiB`;
  if (said.includes("no PriorityClass")) return `${said}. Correct priorityClass in netcheck.yaml`;
  if (said.includes("being terminated")) return `the namespace is being deleted: ${said}. Create it anew with infra/k8s`;
  return `the API server denied it: ${said}`;
}
