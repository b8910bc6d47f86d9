import { credentialsIn } from "./environment.ts";
import { SecretReader } from "./secret.ts";

/**
 * Reads the token of a Kubernetes cluster: `tokenSecret` in netcheck.yaml is the ARN of a secret whose value is {"token": "…"}. Held for a while, as all secrets.
 */
export function clusterSecrets(variables: Readonly<Record<string, string | undefined>>): (arn: string) => Promise<string> {
  const readers = new Map<string, SecretReader<"token">>();
  return async (arn) => {
    let reader = readers.get(arn);
    if (reader === undefined) {
      const endpoint = variables["AWS_ENDPOINT_URL_SECRETS_MANAGER"] || undefined;
      reader = new SecretReader({ fields: ["token"], arn, credentials: credentialsIn(variables), endpoint, now: () => Date.now() });
      readers.set(arn, reader);
    }
    return (await reader.read()).token;
  };
}
