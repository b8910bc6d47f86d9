import { describe, expect, test } from "vitest";
import { Config } from "../../functions/triage/config.ts";
import { type Discovered, TransportError } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";

/** Names of nodes that the configuration names only by a tag. */

const config = Config.parse({
  clusters: {
    prod: { transport: "ssm", region: "eu-central-1", targetsByTag: { netcheck: "yes" }, targets: { gateway: { address: "i-00000000000000009" } } },
    edge: { transport: "ssm", region: "us-east-1", targetsByTag: { netcheck: "yes" } },
    lab: { transport: "replay", targets: { node1: {} } },
  },
});

const web1 = { address: "i-00000000000000001", names: ["ip-10-0-1-7.eu-central-1.compute.internal", "ip-10-0-1-7", "10.0.1.7"] };
const web2 = { address: "i-00000000000000002", names: ["ip-10-0-1-8.eu-central-1.compute.internal", "ip-10-0-1-8", "10.0.1.8"] };
const twin1 = { address: "i-00000000000000003", names: ["localhost", "10.0.1.9"] };
const twin2 = { address: "mi-00000000000000004", names: ["localhost", "shop-4", "10.0.1.10"] };
const impostor = { address: "i-00000000000000005", names: ["gateway"] };
const edge1 = { address: "mi-00000000000000011", names: ["shop-1", "192.168.0.4"] };

/** By cluster, and by cluster and Name tag. */
const nodes: Record<string, readonly Discovered[]> = {
  prod: [web1, web2, twin1, twin2, impostor, { address: "i-00000000000000009", names: ["ip-10-0-1-99"] }],
  edge: [edge1],
  "prod Web": [web1, web2],
  "prod Till": [twin2],
  "edge Till": [],
};
const asked: string[] = [];
const targets = (broken: readonly string[] = []) =>
  configuredTargets(
    async () => config,
    async (_transport, cluster, nameTag) => {
      asked.push(cluster);
      if (broken.includes(cluster)) throw new TransportError(`ssm: could not list the nodes of ${cluster}: denied`, { retryable: false });
      return nodes[nameTag === undefined ? cluster : `${cluster} ${nameTag}`] ?? [];
    },
  );
const resolve = (name: string, broken: readonly string[] = []) => targets(broken).resolve(name);

describe("nodes found by tag", () => {
  test.each([web1.address, web1.address.toUpperCase(), ...web1.names, "IP-10-0-1-7", "prod/ip-10-0-1-7"])("%s is one node", async (name) => {
    expect(await resolve(name)).toEqual({ kind: "found", target: { name: web1.names[0], cluster: "prod", transport: "ssm", address: web1.address } });
  });

  test("a hybrid node, by its id and by the name it was registered with", async () => {
    for (const name of [edge1.address, "shop-1", "edge/shop-1"])
      expect(await resolve(name)).toMatchObject({ kind: "found", target: { name: "shop-1", cluster: "edge", address: edge1.address } });
  });

  test("what the configuration names wins, and nobody is asked", async () => {
    asked.length = 0;
    expect(await resolve("gateway")).toMatchObject({ kind: "found", target: { name: "gateway", address: "i-00000000000000009" } });
    expect(await resolve("node1")).toMatchObject({ kind: "found", target: { cluster: "lab" } });
    expect(asked).toEqual([]);
  });

  test("a node that calls itself like a configured one goes by its id", async () => {
    expect(await resolve(impostor.address)).toMatchObject({ kind: "found", target: { name: impostor.address } });
  });

  test("a configured node keeps its configured name, whatever it calls itself", async () => {
    for (const name of ["ip-10-0-1-99", "i-00000000000000009"]) expect(await resolve(name)).toMatchObject({ kind: "found", target: { name: "gateway" } });
  });

  test("one host name of several nodes: candidates that can be told apart", async () => {
    const resolution = await resolve("localhost");
    expect(resolution).toMatchObject({ kind: "ambiguous", candidates: [{ name: "10.0.1.9" }, { name: "shop-4" }] });
    for (const { name } of resolution.kind === "ambiguous" ? resolution.candidates : []) expect(await resolve(name)).toMatchObject({ kind: "found" });
  });

  test("by Name tag: one, several, with its cluster", async () => {
    expect(await resolve("Till")).toMatchObject({ kind: "found", target: { name: "shop-4", cluster: "prod" } });
    expect(await resolve("prod/Till")).toMatchObject({ kind: "found", target: { name: "shop-4" } });
    expect(await resolve("edge/Till")).toMatchObject({ kind: "unknown" });
    expect(await resolve("Web")).toMatchObject({ kind: "ambiguous", candidates: [{ address: web1.address }, { address: web2.address }] });
  });

  test("a slip: the nearest names of both kinds", async () => {
    expect(await resolve("gatewai")).toMatchObject({ kind: "unknown", suggestions: ["gateway"] });
    expect(await resolve("shop-2")).toMatchObject({ kind: "unknown", suggestions: ["shop-1", "shop-4"] });
  });

  test("a cluster that cannot be listed does not hide the others; what may be there is not called unknown", async () => {
    expect(await resolve("ip-10-0-1-7", ["edge"])).toMatchObject({ kind: "found" });
    await expect(resolve("shop-1", ["edge"])).rejects.toThrow("could not list the nodes of edge: denied");
  });

  test("a host name that no configuration would take is not used as a name", async () => {
    nodes["edge"] = [{ address: edge1.address, names: ["<!channel>", "bad name"] }];
    expect(await resolve(edge1.address)).toMatchObject({ kind: "found", target: { name: edge1.address } });
    nodes["edge"] = [edge1];
  });
});

test("tags, role and external id are of their kinds", () => {
  const cluster = (more: object) => () => Config.parse({ clusters: { a: { transport: "ssm", region: "eu-central-1", ...more } } });
  expect(cluster({ role: "arn:aws:iam::123456789012:role/netcheck", externalId: "abc-1" })).not.toThrow();
  expect(cluster({ role: "netcheck" })).toThrow("the ARN of a role");
  expect(cluster({ externalId: "a b" })).toThrow();
  expect(cluster({ targetsByTag: {} })).toThrow("one to five tags");
});
