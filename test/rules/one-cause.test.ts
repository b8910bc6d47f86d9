import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { captureOf } from "../../functions/facts/capture.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";

/** One fault of which two rules see a part is told once. */
const catalogue = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)));

/** Causes, and what is told under them, in a capture of these commands and outputs. */
function told(outputs: Readonly<Record<string, string>>): { causes: string[]; symptoms: string[] } {
  const index = {
    schema: "netcheck.capture/1" as const,
    target: { name: "wk-1" },
    outputs: Object.keys(outputs).map((command) => ({ command, file: command })),
  };
  const capture = captureOf(index, (file) => ({ text: outputs[file] ?? "", truncated: false }));
  const { causes, symptoms } = diagnose(capture, catalogue, "", () => 0);
  return { causes: causes.map(({ rule }) => rule), symptoms: symptoms.map(({ rule }) => rule) };
}

const LINKS = `1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN mode DEFAULT group default qlen 1000
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP mode DEFAULT group default qlen 1000
    link/ether 52:54:00:2b:71:0e brd ff:ff:ff:ff:ff:ff
7: cali4be01c9d23f@if3: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UP mode DEFAULT group default
    link/ether ee:ee:ee:ee:ee:ee brd ff:ff:ff:ff:ff:ff link-netnsid 0
9: cali7d30aa15e88@if3: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1450 qdisc noqueue state LOWERLAYERDOWN mode DEFAULT group default
    link/ether ee:ee:ee:ee:ee:ee brd ff:ff:ff:ff:ff:ff link-netnsid 1
`;
const routes = (...pods: string[]): string =>
  ["default via 192.0.2.1 dev eth0 proto static", ...pods, "192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.17", ""].join("\n");

test("a route into a dead pod device is told under the device", () => {
  const pods = routes("10.233.71.5 dev cali7d30aa15e88 scope link linkdown", "10.233.71.6 dev cali4be01c9d23f scope link");
  expect(told({ "ip link": LINKS, "ip route": pods })).toEqual({ causes: ["stale-pod-veth"], symptoms: ["stale-pod-route"] });
});

test("where the pod's address has a route to its new device, too, the old route is the cause", () => {
  const pods = routes("10.233.71.5 dev cali7d30aa15e88 scope link linkdown", "10.233.71.5 dev cali4be01c9d23f scope link metric 10");
  expect(told({ "ip link": LINKS, "ip route": pods })).toEqual({ causes: ["stale-pod-route"], symptoms: [] });
});

test("where the plugin says that the old route is in its way, the old route is the cause", () => {
  const pods = routes("10.233.71.5 dev cali7d30aa15e88 scope link linkdown", "10.233.71.6 dev cali4be01c9d23f scope link");
  const log =
    'E1121 07:52:45.456025    1201 pod_workers.go:1298] "Error syncing pod" err="plugin type=\\"calico\\" failed (add): error adding host side routes for interface: cali4be01c9d23f, error: route (Ifindex: 9, Dst: 10.233.71.5/32, Scope: link) already exists for an interface other than \'cali4be01c9d23f\'"\n';
  expect(told({ "ip link": LINKS, "ip route": pods, "journalctl -u kubelet -n 20": log })).toEqual({ causes: ["stale-pod-route"], symptoms: [] });
});
