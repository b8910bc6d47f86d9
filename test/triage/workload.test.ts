import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Capture, captureOf } from "../../functions/facts/capture.ts";
import { loadFile } from "../../functions/rules/load.ts";
import { RunbookFile } from "../../functions/rules/schema.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { Config } from "../../functions/triage/config.ts";
import { type PodPlace, type ServicePlace, TransportError, type WorkloadName, type WorkloadResolution } from "../../functions/triage/ports.ts";
import { ALICE, Bench, CHANNEL } from "./harness.ts";
import { healthy, root } from "./runbooks.ts";
import { printed } from "./scripted-node.ts";

/** `/netcheck pod …` and `/netcheck svc …`: which nodes are looked at, and what the thread says of it. */

const config = Config.parse({
  clusters: {
    prod: { transport: "replay", targets: { web1: { address: "ip-10-0-0-1.internal" }, "ip-10-0-0-2.internal": {}, "ip-10-0-0-3.internal": {} } },
    edge: { transport: "replay", targets: { till: {} } },
  },
});
const pod: PodPlace = {
  kind: "pod",
  cluster: "prod",
  node: "ip-10-0-0-1.internal",
  uid: "3f0c1a52-7d1e-4c5b-9a44-0b1d2f3e4a51",
  hostNetwork: true,
  phase: "Running",
  addresses: ["10.0.0.1"],
  containers: [{ name: "web", ready: true, restarts: 0, state: "running" }],
};
const endpoint = { portName: "", protocol: "TCP", port: 8080, ready: true, terminating: false };
const service: ServicePlace = {
  kind: "service",
  cluster: "prod",
  namespace: "shop",
  name: "web",
  type: "ClusterIP",
  addresses: ["10.96.7.20"],
  ports: [{ name: "", protocol: "TCP", port: 80 }],
  endpoints: [
    { ...endpoint, address: "10.244.1.7", node: "ip-10-0-0-1.internal", pod: "web-1", ready: false },
    { ...endpoint, address: "10.244.2.9", node: "ip-10-0-0-2.internal", pod: "web-2" },
  ],
  more: 0,
  nodes: ["ip-10-0-0-1.internal", "ip-10-0-0-2.internal", "ip-10-0-0-3.internal"],
  prefersNear: false,
  onlyLocal: false,
  problems: [],
};
const podName: WorkloadName = { kind: "pod", namespace: "shop", name: "web-1" };
const serviceName: WorkloadName = { kind: "service", namespace: "shop", name: "web" };

interface Printed {
  readonly command: string;
  readonly text: string;
}
const outputOf = (command: string, text: string): Printed => ({ command, text });
const captureFrom = (name: string, runbook: string, outputs: readonly Printed[]): Capture =>
  captureOf(
    {
      schema: "netcheck.capture/1",
      target: { name },
      runbook,
      outputs: outputs.map(({ command }, index) => ({ command, file: `outputs/${index}.txt` })),
    },
    (file) => ({ text: outputs[Number(/\d+/.exec(file)?.[0])]?.text ?? "", truncated: false }),
  );

let found: () => WorkloadResolution;
let bench: Bench;
beforeEach(() => {
  found = () => ({ kind: "found", place: pod });
  bench = new Bench(() => ({ workloads: { find: async () => found() } }));
  bench.config = config;
  bench.node.capture = () => healthy;
});
afterEach(async () => {
  expect(await verifyStore(bench.store)).toEqual([]);
  await bench.close();
});

async function ask(workload: WorkloadName, target = "pod shop/web-1"): Promise<void> {
  bench.engine.execute("inc-1", { kind: "triage", request: { incident: "inc-1", target, requester: ALICE, place: { channel: CHANNEL }, workload } });
  await bench.pass(120);
}

describe("a pod", () => {
  test("its node is triaged as any other, and the thread says why that one", async () => {
    await ask(podName);
    expect(bench.outcome()).toBe("diagnosed");
    expect(await bench.incident()).toMatchObject({ target: "web1", cluster: "prod", workload: podName });
    expect(bench.chat.drawn("inc-1/root")).toContain("pod shop/web-1 on web1");
    expect(bench.chat.drawn("inc-1/workload")).toContain("The pod shop/web-1 (Running, 10.0.0.1) runs on web1 of prod: that node is examined");
    expect(bench.chat.drawn("inc-1/diagnosis")).toContain("everything that was checked is in order");
    expect((await bench.events("incident-opened"))[0]?.data).toMatchObject({ target: "web1", workload: podName });
  });

  test("run again asks the cluster again: the pod may be elsewhere by then", async () => {
    await ask(podName);
    found = () => ({ kind: "found", place: { ...pod, node: "ip-10-0-0-2.internal" } });
    expect(await bench.click("again", ALICE)).toBe("started");
    await bench.pass(120);
    const [latest] = await bench.store.incidents(1);
    expect(latest).toMatchObject({ target: "ip-10-0-0-2.internal", workload: podName });
  });

  test.each<[string, WorkloadResolution, string]>([
    ["unknown", { kind: "unknown", reason: "no pod shop/web-1 in prod" }, "netcheck did not find the pod shop/web-1: no pod shop/web-1 in prod."],
    ["ambiguous", { kind: "ambiguous", clusters: ["prod", "edge"] }, '"value":"pod edge/shop/web-1"'],
    ["unknown", { kind: "found", place: { ...pod, node: "ip-10-9-9-9" } }, "The node is ip-10-9-9-9 in prod, and netcheck has no way to it"],
  ])("%s: only who asked is told, and no incident is opened", async (outcome, resolution, text) => {
    found = () => resolution;
    await ask(podName);
    expect(bench.outcome()).toBe(outcome);
    expect(bench.chat.whispered(ALICE).join()).toContain(text);
    expect(await bench.store.incidents(1)).toEqual([]);
    expect(bench.node.jobs.size).toBe(0);
  });

  test("a cluster that denies the question: the reason and the way out reach who asked", async () => {
    found = () => {
      throw new TransportError("debug-pod: could not look up the pod shop/web-1 in prod: it is not allowed: apply infra/k8s/workloads.yaml", {
        retryable: false,
      });
    };
    await ask(podName);
    expect(bench.outcome()).toBe("failed");
    expect(bench.chat.drawn("inc-1/failure")).toContain("apply infra/k8s/workloads.yaml");
  });

  test("a node that only the cluster names is reached by a debug pod, where those are configured", async () => {
    const image = `images.example/debug@sha256:${"0".repeat(64)}`;
    const debugPods = { access: { by: "in-cluster" }, image };
    bench.config = Config.parse({ clusters: { prod: { transport: "debug-pod", debugPods } } });
    await ask(podName);
    expect((await bench.events("incident-opened"))[0]?.data).toMatchObject({ target: "ip-10-0-0-1.internal", transport: "debug-pod" });
  });
});

describe("inside a pod", () => {
  const whole = [
    outputOf(
      "ip addr show",
      "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 state UNKNOWN\n    inet 127.0.0.1/8 scope host lo\n2: eth0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1410 state UP\n    inet 10.244.1.7/24 scope global eth0\n",
    ),
    outputOf("ip link show", "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 state UNKNOWN\n2: eth0@if9: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1410 state UP\n"),
    outputOf("ip route show table all", "default via 10.244.1.1 dev eth0 table main\n10.244.1.0/24 dev eth0 table main scope link\n"),
    outputOf("ip neigh show", "10.244.1.1 dev eth0 FAILED\n"),
    outputOf("cat /etc/resolv.conf", "nameserver 10.96.0.10\n"),
  ];

  let usual: readonly Printed[];
  const prints = (command: string, change: (text: string) => string): void => {
    usual = usual.map((one) => (one.command === command ? outputOf(command, change(one.text)) : one));
  };

  beforeEach(() => {
    usual = whole;
    found = () => ({ kind: "found", place: { ...pod, hostNetwork: false, addresses: ["10.244.1.7"] } });
    const { value: runbook } = loadFile(join(root, "runbooks/pod/runbook.yaml"), RunbookFile);
    bench.catalogue = { ...bench.catalogue, runbooks: new Map([...bench.catalogue.runbooks, [runbook.id, runbook]]) };
    const poll = bench.node.poll.bind(bench.node);
    bench.node.poll = async (target, handle) =>
      handle.endsWith("-pod") ? { ...printed(""), capture: captureFrom("pod shop/web-1", "pod", usual) } : poll(target, handle);
  });

  test("a second capture of the same incident, told in the same thread; the uid is the only thing that reaches the node", async () => {
    await ask(podName);
    expect(bench.outcome()).toBe("diagnosed");
    const job = bench.node.jobs.get("inc-1-pod");
    expect(job?.parameters).toEqual({ uid: pod.uid });
    expect(job?.script.name).toBe("collect-pod");
    expect(bench.chat.posts.get("inc-1/pod")?.place).toEqual(bench.chat.posts.get("inc-1/diagnosis")?.place);
    expect(bench.chat.drawn("inc-1/pod")).toContain("interface  eth0@if9  10.244.1.7/24  mtu 1410  up");
    expect(bench.chat.data("inc-1/pod")["wrong"]).toEqual([
      { what: "The pod asked for its gateway 10.244.1.1 and got no answer (FAILED).", lines: "$ ip neigh show\n1: 10.244.1.1 dev eth0 FAILED" },
    ]);
    expect(bench.chat.data("inc-1/pod")["unchecked"]).toContainEqual({ reason: expect.stringContaining("socket: ") as string });
    const types = (await bench.store.audit("inc-1")).map(({ type, key }) => `${type} ${key}`);
    expect(types).toEqual(expect.arrayContaining(["collected collected/collect", "collected collected/pod", "diagnosed diagnosed/pod"]));
    // the incident stays the node's: its capture, its diagnosis, its fix
    expect((await bench.incident()).capture).toBe("captures/inc-1/collect");
  });

  test.each([
    ["gvisor", 0],
    ["nvidia", 2],
    [undefined, 2],
  ])("a sandbox may have taken address and routes over: nobody calls them missing (runtime class %s)", async (runtimeClass, wrong) => {
    prints("ip addr show", (text) => text.replace(/ {4}inet 10.*\n/, ""));
    prints("ip route show table all", () => "local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1\n");
    found = () => ({
      kind: "found",
      place: { ...pod, hostNetwork: false, addresses: ["10.244.1.7"], ...(runtimeClass === undefined ? {} : { runtimeClass }) },
    });
    await ask(podName);
    expect(bench.chat.data("inc-1/pod")["wrong"]).toHaveLength(wrong);
    const said = JSON.stringify(bench.chat.data("inc-1/pod")[wrong === 0 ? "unchecked" : "wrong"]);
    expect(said).toContain("no interface in it has that address");
    expect(said).toContain("The pod has no default route");
  });

  test.each([
    ["with its interface", "", undefined],
    ["without one", /2: eth0.*\n/, "The pod has no interface but lo: the CNI plugin has not set it up, or has taken it away."],
  ])("the tunnel devices that the kernel puts into every pod are neither down nor an interface of it: %s", async (_, gone, wrong) => {
    const fallback = "9: tunl0@NONE: <NOARP> mtu 1480 qdisc noop state DOWN\n10: ip6tnl0@NONE: <NOARP> mtu 1452 qdisc noop state DOWN\n";
    prints("ip link show", (text) => text.replace(gone, "") + fallback);
    await ask(podName);
    const said = (bench.chat.data("inc-1/pod")["wrong"] as { what: string }[]).map(({ what }) => what).filter((what) => !what.includes("gateway"));
    expect(said).toEqual(wrong === undefined ? [] : [wrong]);
    expect(bench.chat.drawn("inc-1/pod")).not.toContain("tunl0");
  });

  const wrongs = (): readonly string[] =>
    (bench.chat.data("inc-1/pod")["wrong"] as { what: string }[]).map(({ what }) => what).filter((what) => !what.includes("gateway"));

  test.each([
    ["a second network's device without an address, for a program that drives it", "3: net1: <BROADCAST,MULTICAST> mtu 1500 state DOWN\n", []],
    [
      "the idle bridge of a container engine in the pod",
      "3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 state DOWN\n    bridge forward_delay 1500\n",
      [],
    ],
    ["a second network's device that has one", "3: net2@if7: <BROADCAST,MULTICAST> mtu 1500 state DOWN\n", ["net2 in the pod is down."]],
    [
      "one whose end on the node is down",
      "3: net2@if7: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 state LOWERLAYERDOWN\n",
      ["net2 in the pod has no carrier: its other end on the node is down or gone."],
    ],
  ])("%s", async (_, more, wrong) => {
    prints("ip link show", (text) => text + more);
    prints(
      "ip addr show",
      (text) =>
        `${text}3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 state DOWN\n    inet 172.17.0.1/16 scope global docker0\n4: net2@if7: <UP> mtu 1500\n    inet 192.168.7.2/24 scope global net2\n`,
    );
    usual = usual.map((one) => (one.command === "ip link show" ? outputOf("ip -d link show", one.text) : one));
    await ask(podName);
    expect(wrongs()).toEqual(wrong);
  });

  test("KubeVirt's machine has the pod's address and routes: nobody calls them missing", async () => {
    prints("ip link show", (text) => `${text}3: k6t-eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1410 state UP\n`);
    prints("ip addr show", (text) => text.replace(/ {4}inet 10.*\n/, ""));
    prints("ip route show table all", () => "local 127.0.0.1 dev lo table local proto kernel scope host src 127.0.0.1\n");
    await ask(podName);
    expect(wrongs()).toEqual([]);
    expect(JSON.stringify(bench.chat.data("inc-1/pod")["unchecked"])).toContain("A virtual machine may have taken it over (k6t-eth0)");
  });

  test("a pod without a default route that has routes elsewhere may be meant so; the two halves are one", async () => {
    prints("ip route show table all", (text) => text.replace("default", "10.0.0.0/8"));
    await ask(podName);
    expect(wrongs()).toEqual([]);
    expect(JSON.stringify(bench.chat.data("inc-1/pod")["unchecked"])).toContain("no default route, only routes to 10.0.0.0/8");
  });

  test.each([
    ["without", "", ["The pod has an IPv6 address and no default route of IPv6: with IPv6 it reaches nothing outside of its own subnet."]],
    ["with", "default via fe80::1 dev eth0 metric 1024\n", []],
  ])("an IPv6 address %s a default route of its own", async (_, more, wrong) => {
    found = () => ({ kind: "found", place: { ...pod, hostNetwork: false, addresses: ["10.244.1.7", "fd00:10:244::7"] } });
    prints("ip addr show", (text) => `${text}    inet6 fd00:10:244::7/64 scope global\n`);
    prints("ip route show table all", (text) => `${text}fd00:10:244::/64 dev eth0 proto kernel metric 256\n${more}`);
    await ask(podName);
    expect(wrongs()).toEqual(wrong);
  });

  test("lo is down, or no name can resolve in the pod", async () => {
    prints("ip link show", (text) => text.replace("<LOOPBACK,UP,LOWER_UP>", "<LOOPBACK>"));
    prints("cat /etc/resolv.conf", () => "nameserver 127.0.0.53\n");
    usual = [
      ...usual,
      outputOf("ss -lntup", "Netid State Recv-Q Send-Q Local Address:Port Peer Address:Port\ntcp LISTEN 0 511 0.0.0.0:8080 0.0.0.0:*\n"),
      outputOf("ss -lnum", "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n"),
    ];
    await ask(podName);
    expect(wrongs()).toEqual([
      "lo in the pod is down: its containers cannot reach each other on 127.0.0.1.",
      expect.stringContaining("The pod asks 127.0.0.53 for names, which is its own loopback, and nothing in it listens there") as string,
    ]);
  });

  test("a nameserver on the pod's loopback that something listens on, or of whose sockets nothing was seen", async () => {
    prints("cat /etc/resolv.conf", () => "nameserver 127.0.0.1\n");
    await ask(podName);
    expect(wrongs()).toEqual([]);
  });

  test("the gateway's address on another device is not the gateway; an IPv6 address may be written in full", async () => {
    found = () => ({ kind: "found", place: { ...pod, hostNetwork: false, addresses: ["10.244.1.7", "fd00:10:244:0:0:0:0:7"] } });
    prints("ip addr show", (text) => `${text}    inet6 fd00:10:244::7/64 scope global\n`);
    prints("ip neigh show", () => "10.244.1.1 dev net1 FAILED\n10.244.1.1 dev eth0 lladdr ee:ee:ee:ee:ee:ee REACHABLE\n");
    await ask(podName);
    expect(bench.chat.data("inc-1/pod")["wrong"]).toEqual([]);
  });

  test("a resolv.conf without a nameserver", async () => {
    prints("cat /etc/resolv.conf", () => "search shop.svc.cluster.local\n");
    await ask(podName);
    expect(wrongs()).toEqual(["The pod's resolv.conf names no nameserver: no name resolves in it."]);
  });

  test("what the node says against it is told, and the node's own triage is whole", async () => {
    const poll = bench.node.poll.bind(bench.node);
    const stderr = "netcheck: no process of the pod runs on this node: its containers have not started, or have ended, or the pod has moved\n";
    bench.node.poll = async (target, handle) => (handle.endsWith("-pod") ? { ...printed(""), exitCode: 69, stderr } : poll(target, handle));
    await ask(podName);
    expect(bench.outcome()).toBe("diagnosed");
    expect(bench.chat.drawn("inc-1/pod")).toContain("The network inside the pod was not looked at: no process of the pod runs on this node");
    expect(bench.chat.data("inc-1/pod")["icon"]).toBe("grey_question");
  });

  test("a pod in the node's own network: said so, and nothing more is run", async () => {
    found = () => ({ kind: "found", place: pod });
    await ask(podName);
    expect(bench.chat.drawn("inc-1/pod")).toContain("uses the node's own network (hostNetwork)");
    expect([...bench.node.jobs.keys()]).toEqual(["inc-1-collect"]);
  });
});

describe("a service", () => {
  beforeEach(() => {
    found = () => ({ kind: "found", place: service });
  });

  test("the client is a node without an endpoint of it, the server one with an endpoint that is ready; both are named with the reason", async () => {
    await ask(serviceName, "service shop/web");
    expect(bench.outcome()).toBe("diagnosed");
    expect(await bench.incident()).toMatchObject({ target: "ip-10-0-0-3.internal" });
    const text = bench.chat.drawn("inc-1/workload");
    expect(text).toContain("The service shop/web has 10.96.7.20; 2 endpoints, 1 of them ready.");
    expect(text).toContain("ip-10-0-0-3.internal is examined as a client: the first ready node without an endpoint of it.");
    expect(text).toContain("ip-10-0-0-2.internal is examined as a server: web-2, which is ready, runs there.");
  });

  test("the client that somebody named", async () => {
    await ask({ ...serviceName, from: "web1" }, "service shop/web from web1");
    expect(await bench.incident()).toMatchObject({ target: "web1" });
    expect(bench.chat.drawn("inc-1/workload")).toContain("web1 is examined as a client: you named it.");
  });

  test.each<[string, string]>([
    ["nowhere", 'netcheck knows no node "nowhere", from which the service shop/web from nowhere is called.'],
    ["till", "till is a node of edge, and the service shop/web from till is in prod."],
  ])("a client that is not in the cluster: %s", async (from, text) => {
    await ask({ ...serviceName, from }, `service shop/web from ${from}`);
    expect(bench.chat.whispered(ALICE).join()).toContain(text.replaceAll('"', '\\"'));
  });

  test("nodes may not be listed: the other endpoint's node is the client", async () => {
    found = () => ({ kind: "found", place: { ...service, nodes: [], problems: ["the cluster's nodes are not known: denied"] } });
    await ask(serviceName, "service shop/web");
    expect(await bench.incident()).toMatchObject({ target: "web1" });
  });

  test("the server is a node that can be looked at, if one of those has an endpoint that is ready", async () => {
    const far = { ...endpoint, address: "10.244.0.4", node: "fargate-ip-10-0-9-9", pod: "web-0" };
    found = () => ({ kind: "found", place: { ...service, endpoints: [far, ...service.endpoints] } });
    await ask(serviceName, "service shop/web");
    expect(bench.chat.drawn("inc-1/workload")).toContain("ip-10-0-0-2.internal is examined as a server: web-2, which is ready, runs there.");
  });

  test("one node does both", async () => {
    found = () => ({ kind: "found", place: { ...service, nodes: ["ip-10-0-0-2.internal"], endpoints: service.endpoints.slice(1) } });
    await ask(serviceName, "service shop/web");
    expect(bench.chat.drawn("inc-1/workload")).toContain("no other node is known. It is served there, too");
  });

  test("a service that takes only endpoints on the calling node is called from one that has them", async () => {
    found = () => ({ kind: "found", place: { ...service, prefersNear: true, onlyLocal: true } });
    await ask(serviceName, "service shop/web");
    expect(await bench.incident()).toMatchObject({ target: "ip-10-0-0-2.internal" });
    expect(bench.chat.drawn("inc-1/workload")).toContain("It is served there, too: web-2, which is ready, runs there.");
  });

  test("no endpoint at all: the client is still looked at", async () => {
    found = () => ({ kind: "found", place: { ...service, endpoints: [] } });
    await ask(serviceName, "service shop/web");
    expect(await bench.incident()).toMatchObject({ target: "web1" });
    expect(bench.chat.drawn("inc-1/workload")).toContain("0 endpoints, 0 of them ready. web1 is examined as a client");
    expect(bench.chat.drawn("inc-1/workload")).toContain("No node is known to serve it.");
  });

  test("an ExternalName is no way through nodes", async () => {
    found = () => ({ kind: "found", place: { ...service, type: "ExternalName", addresses: [] } });
    await ask(serviceName, "service shop/web");
    expect(bench.outcome()).toBe("external-name");
    expect(bench.chat.whispered(ALICE).join()).toContain("only a DNS name");
  });

  describe("the way to it", () => {
    /** What each node's capture says, by what the job is for. */
    const nodes: { client: readonly Printed[]; server: readonly Printed[] } = { client: [], server: [] };
    const chains = (to: string): string => `*nat
:PREROUTING ACCEPT [0:0]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-WEBWEBWEBWEBWEBW - [0:0]
:KUBE-SEP-BBBBBBBBBBBBBBBB - [0:0]
-A PREROUTING -j KUBE-SERVICES
-A KUBE-SERVICES -d 10.96.7.20/32 -p tcp -m comment --comment "shop/web cluster IP" -m tcp --dport 80 -j KUBE-SVC-WEBWEBWEBWEBWEBW
-A KUBE-SVC-WEBWEBWEBWEBWEBW -j KUBE-SEP-BBBBBBBBBBBBBBBB
-A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination ${to}
COMMIT
*filter
:FORWARD ACCEPT [0:0]
COMMIT
`;
    beforeEach(() => {
      nodes.client = [{ command: "iptables-save", text: chains("10.244.2.9:8080") }];
      nodes.server = [{ command: "ip route show table all", text: "10.244.2.9 dev cali0123456789a scope link\n" }];
      const poll = bench.node.poll.bind(bench.node);
      bench.node.poll = async (target, handle) => {
        if (handle.endsWith("-server")) return { ...printed(""), capture: captureFrom("ip-10-0-0-2.internal", "netcheck", nodes.server) };
        if (handle.endsWith("-collect")) return { ...printed(""), capture: captureFrom("ip-10-0-0-3.internal", "netcheck", nodes.client) };
        return poll(target, handle);
      };
    });

    test("entry, endpoints and the way into the pod, from both nodes, in one message", async () => {
      await ask(serviceName, "service shop/web");
      expect(bench.outcome()).toBe("diagnosed");
      expect([...bench.node.jobs.keys()]).toEqual(["inc-1-collect", "inc-1-server"]);
      const told = bench.chat.data("inc-1/service");
      expect(told["table"]).toBe(
        [
          "10.96.7.20:80/TCP  kube-proxy (iptables)",
          "  10.244.1.7:8080         not ready  ip-10-0-0-1.internal  web-1  no entry",
          "  10.244.2.9:8080         ready      ip-10-0-0-2.internal  web-2  entry found",
          "ip-10-0-0-2.internal  10.244.2.9  dev cali0123456789a",
        ].join("\n"),
      );
      expect(told["wrong"]).toEqual([]);
      expect(told["title"]).toBe("The way to the service shop/web, seen from ip-10-0-0-3.internal");
      expect(bench.chat.posts.get("inc-1/service")?.place).toEqual(bench.chat.posts.get("inc-1/diagnosis")?.place);
      expect((await bench.events("service-checked"))[0]?.data).toEqual({
        client: "ip-10-0-0-3.internal",
        server: "ip-10-0-0-2.internal",
        wrong: 0,
        unchecked: 0,
      });
    });

    test("an entry that leads elsewhere is told with its line", async () => {
      nodes.client = [{ command: "iptables-save", text: chains("10.244.9.9:8080") }];
      await ask(serviceName, "service shop/web");
      expect(bench.chat.data("inc-1/service")["wrong"]).toEqual([
        {
          what: "kube-proxy (iptables) on ip-10-0-0-3.internal sends packets for 10.96.7.20:80/TCP to 10.244.9.9:8080, which is no endpoint of the service (any more).",
          lines: "$ iptables-save\n9: -A KUBE-SEP-BBBBBBBBBBBBBBBB -p tcp -m tcp -j DNAT --to-destination 10.244.9.9:8080",
        },
        {
          what: "kube-proxy (iptables) on ip-10-0-0-3.internal does not lead to 10.244.2.9:8080, which is ready.",
          lines: expect.stringContaining("-A KUBE-SERVICES -d 10.96.7.20/32") as string,
        },
      ]);
      expect(bench.chat.data("inc-1/service")["icon"]).toBe("large_orange_circle");
    });

    test("a serving node that cannot be looked at costs only itself", async () => {
      const poll = bench.node.poll.bind(bench.node);
      bench.node.poll = async (target, handle) =>
        handle.endsWith("-server") ? { state: "not-run", reason: "the agent does not answer" } : poll(target, handle);
      await ask(serviceName, "service shop/web");
      expect(bench.outcome()).toBe("diagnosed");
      const told = bench.chat.data("inc-1/service");
      expect(told["unchecked"]).toEqual([{ reason: "ip-10-0-0-2.internal, which serves it, was not looked at: the agent does not answer" }]);
      expect(told["table"]).toContain("entry found");
    });

    test("one node for both is looked at once", async () => {
      found = () => ({ kind: "found", place: { ...service, nodes: ["ip-10-0-0-2.internal"], endpoints: service.endpoints.slice(1) } });
      nodes.client = [...nodes.client, ...nodes.server];
      await ask(serviceName, "service shop/web");
      expect([...bench.node.jobs.keys()]).toEqual(["inc-1-collect"]);
      expect(bench.chat.data("inc-1/service")["table"]).toContain("dev cali0123456789a");
    });

    test("if the check itself fails, the node's triage is whole and the thread says so", async () => {
      const get = bench.store.get.bind(bench.store);
      let reads = 0;
      bench.store.get = async (key) => {
        // the first two are the diagnosis's own
        if (key === "captures/inc-1/collect" && ++reads > 2) throw new Error("the disk is gone");
        return get(key);
      };
      await ask(serviceName, "service shop/web");
      expect(bench.outcome()).toBe("diagnosed");
      expect(bench.chat.drawn("inc-1/inside-failed")).toContain("netcheck could not look at the service shop/web itself: the disk is gone.");
    });
  });
});
