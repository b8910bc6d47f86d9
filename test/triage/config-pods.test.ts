import { describe, expect, test } from "vitest";
import { podCluster } from "../../functions/transports/pod-clusters.ts";
import { byDigest } from "../../functions/transports/pod-spec.ts";
import { Config } from "../../functions/triage/config.ts";

const image = `images.example/netcheck-debug@sha256:${"a".repeat(64)}`;
const certificateAuthority = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
const endpoint = "https://0123456789ABCDEF.gr7.eu-central-1.eks.example";
const read = (cluster: object) => Config.safeParse({ clusters: { prod: { transport: "debug-pod", targets: { node1: {} }, ...cluster } } });
const pods = (access: object, more: object = {}) => read({ debugPods: { image, access, ...more } });
/** Where it is wrong, or nothing. */
const problems = (result: ReturnType<typeof read>): string[] => (result.success ? [] : result.error.issues.map(({ path }) => path.slice(2).join(".")));
const secret = async (name: string): Promise<string> => `value of ${name}`;

describe("clusters that are reached by debug pods", () => {
  test.each([
    ["kubeconfig", { by: "kubeconfig", file: "/etc/netcheck/kubeconfig", context: "prod" }],
    ["in-cluster", { by: "in-cluster" }],
    ["eks", { by: "eks", endpoint, certificateAuthority, name: "prod", region: "eu-central-1", role: "arn:aws:iam::123456789012:role/netcheck" }],
  ])("%s: as the transport wants it, with the usual rest", (_what, access) => {
    const result = pods(access);
    expect(problems(result)).toEqual([]);
    expect(podCluster("prod", result.data?.clusters["prod"]?.debugPods, secret)).toEqual({ access, image, namespace: "netcheck", startSeconds: 120 });
  });

  test("bearer: the token is read when it is needed, and is nowhere in the configuration", async () => {
    const { access } = podCluster("prod", pods({ by: "bearer", endpoint, tokenSecret: "PROD_TOKEN" }).data?.clusters["prod"]?.debugPods, secret);
    expect(access).toEqual({ by: "bearer", endpoint, token: expect.any(Function) });
    expect(access.by === "bearer" && (await access.token())).toBe("value of PROD_TOKEN");
  });

  const inCluster = { by: "in-cluster" };
  const wrong: [string, ReturnType<typeof read>, string][] = [
    ["without debugPods", read({}), "debugPods"],
    ["as a fallback without debugPods", read({ transport: "ssm", fallback: "debug-pod" }), "debugPods"],
    ["an image by its tag", pods(inCluster, { image: "images.example/debug:1" }), "debugPods.image"],
    ["an endpoint without https", pods({ by: "bearer", endpoint: "http://10.0.0.1", tokenSecret: "A" }), "debugPods.access.endpoint"],
    ["an endpoint with a password", pods({ by: "bearer", endpoint: "https://a:b@10.0.0.1", tokenSecret: "A" }), "debugPods.access.endpoint"],
    ["the token itself", pods({ by: "bearer", endpoint, token: "t", tokenSecret: "A" }), "debugPods.access"],
    ["EKS without its certificate authority", pods({ by: "eks", endpoint, name: "prod", region: "eu-central-1" }), "debugPods.access.certificateAuthority"],
    ["a namespace that is no name", pods(inCluster, { namespace: "Netcheck" }), "debugPods.namespace"],
    ["less patience than a pull needs", pods(inCluster, { startSeconds: 1 }), "debugPods.startSeconds"],
    ["a way in that there is not", pods({ by: "password" }), "debugPods.access.by"],
  ];
  test.each(wrong)("refused: %s", (_what, result, path) => {
    expect(problems(result)).toEqual([path]);
  });

  test("the configuration and the transport mean the same by a digest", () => {
    for (const name of [image, "a:1", "a@sha256:12", `a b@sha256:${"a".repeat(64)}`])
      expect(problems(pods(inCluster, { image: name })).length === 0).toBe(byDigest(name));
  });

  test("a cluster that is not configured says so", () => {
    expect(() => podCluster("prod", undefined, secret)).toThrow("debug-pod: could not reach the cluster prod: netcheck.yaml has no debugPods for it");
  });
});
