import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scrubCapture } from "../functions/cli/scrub.ts";
import { AddressScrubber } from "../functions/cli/scrub-addresses.ts";
import { namesIn, replacer } from "../functions/cli/scrub-names.ts";
import { diagnose } from "../functions/rules/diagnose.ts";
import { fixtureNames, readCase } from "../functions/rules/fixtures.ts";
import { loadCatalogue } from "../functions/rules/load.ts";
import { readCaptureFiles } from "../functions/transports/capture-files.ts";
import { captureOf, output } from "./rules/captures.ts";

/** `netcheck record` replaces what tells whose node it is, and nothing that the rules look at. */

const ADDRESS = /(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\.?\d)/g;
const MAC = /(?<![0-9a-f:])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![0-9a-f:])/g;
const bits = (address: string): string =>
  address
    .split(".")
    .map((byte) => Number(byte).toString(2).padStart(8, "0"))
    .join("");
const common = (a: string, b: string): number => {
  let length = 0;
  while (length < 32 && bits(a)[length] === bits(b)[length]) length++;
  return length;
};
const host = fc
  .tuple(
    fc.constantFrom("10", "172.16", "172.31", "192.168", "100.64", "52", "3.120"),
    fc.array(fc.integer({ min: 1, max: 254 }), { minLength: 3, maxLength: 3 }),
  )
  .map(([head, tail]) => [...head.split("."), ...tail].slice(0, 4).join("."));

describe("addresses", () => {
  test("two addresses share as many bits as before; private stays private; no two become one; no original is left", () => {
    fc.assert(
      fc.property(fc.uniqueArray(host, { minLength: 2, maxLength: 30 }), fc.string(), (addresses, key) => {
        const scrubber = AddressScrubber.of([addresses.join(" ")], key);
        const made = addresses.map((address) => scrubber.address(address));
        addresses.forEach((a, i) => {
          addresses.forEach((b, j) => {
            expect(common(made[i] as string, made[j] as string)).toBe(common(a, b));
          });
        });
        const kind = (address: string): string =>
          /^(?:10|192\.168|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))(?=\.)/.exec(address)?.[0].split(".")[0] ?? "public";
        expect(made.map(kind)).toEqual(addresses.map(kind));
        expect(new Set(made).size).toBe(addresses.length);
        expect(made.filter((address) => addresses.includes(address))).toEqual([]);
        expect(addresses.map((address) => scrubber.address(address))).toEqual(made);
      }),
      { numRuns: 60, seed: 7 },
    );
  });

  test("an address is in a network afterwards if it was before; networks and broadcast addresses stay what they are", () => {
    fc.assert(
      fc.property(host, fc.integer({ min: 9, max: 30 }), fc.array(host, { maxLength: 8 }), fc.string(), (base, length, others, key) => {
        const number = Number.parseInt(bits(base).slice(0, length).padEnd(32, "0"), 2);
        const dotted = (value: number): string => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255).join(".");
        const network = dotted(number);
        const broadcast = dotted(number + 2 ** (32 - length) - 1);
        const inside = dotted(number + 1);
        const scrubber = AddressScrubber.of([`${network}/${length} ${broadcast} ${inside} ${others.join(" ")}`], key);
        const made = scrubber.prefix(network, length).split("/")[0] as string;
        expect(bits(made).slice(length)).not.toContain("1");
        expect(common(made, scrubber.address(inside))).toBeGreaterThanOrEqual(length);
        expect(bits(scrubber.address(broadcast)).slice(length)).not.toContain("0");
        expect(common(made, scrubber.address(broadcast))).toBeGreaterThanOrEqual(length);
        for (const other of others) expect(common(made, scrubber.address(other)) >= length).toBe(common(network, other) >= length);
      }),
      { numRuns: 80, seed: 8 },
    );
  });

  test.each([
    "127.0.0.1",
    "0.0.0.0",
    "255.255.255.0",
    "169.254.169.254",
    "169.254.20.10",
    "224.0.0.251",
    "192.0.2.7",
    "203.0.113.9",
    "8.8.8.8",
    "168.63.129.16",
    "::1",
    "ff02::1",
    "2001:db8::5",
  ])("%s is nobody's and stays", (address) => {
    expect(AddressScrubber.of([`${address} 10.1.2.3`], "k").address(address)).toBe(address);
  });

  test("the default address of the cluster's DNS stays, its neighbours far away do not", () => {
    const scrubber = AddressScrubber.of(["10.96.0.10 10.96.7.21"], "k");
    expect(scrubber.address("10.96.0.10")).toBe("10.96.0.10");
    expect(scrubber.address("10.96.7.21")).not.toBe("10.96.7.21");
    expect(AddressScrubber.of(["10.96.0.11"], "k").address("10.96.0.11")).not.toBe("10.96.0.11");
  });

  test("ranges that rules name keep their place", () => {
    const scrubber = AddressScrubber.of(["10.77.3.4"], "k", ["10.77.0.0/16"]);
    expect(scrubber.address("10.77.3.4")).toMatch(/^10\.77\.(?!3\.4$)/);
  });

  test("IPv6: networks stay networks, interface ids follow their MACs, spelling is kept", () => {
    const scrubber = AddressScrubber.of([""], "k");
    expect(scrubber.prefix("fd00:10:244::", 64)).toMatch(/^f[cd][0-9a-f]{2}:[0-9a-f:]+::\/64$/);
    const made = scrubber.mac("3a:d3:5d:06:09:0f").split(":");
    const id = [(Number.parseInt(made[0] as string, 16) ^ 2).toString(16).padStart(2, "0"), ...made.slice(1)];
    expect(scrubber.address("fe80:0000:0000:0000:38d3:5dff:fe06:090f")).toBe(`fe80:0000:0000:0000:${id[0]}${id[1]}:${id[2]}ff:fe${id[3]}:${id[4]}${id[5]}`);
    expect(scrubber.address("2A02:26F7::1")).toMatch(/^[23][0-9A-F:]+$/);
  });

  test("a range that is used completely is still scrubbed", () => {
    const all = Array.from({ length: 4000 }, (_, i) => `10.20.${i >> 8}.${(i & 255) === 0 ? 1 : Math.min(i & 255, 254)}`);
    const scrubber = AddressScrubber.of([`10.20.0.0/16 ${all.join(" ")}`], "k");
    expect(all.filter((address) => scrubber.address(address).startsWith("10.20."))).toEqual([]);
  });

  test("MACs: consistent, no two become one; vendor, group and local bits stay; what is the same everywhere stays", () => {
    const scrubber = AddressScrubber.of([""], "k");
    fc.assert(
      fc.property(fc.uniqueArray(fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 6, maxLength: 6 }), { maxLength: 20, selector: String }), (list) => {
        const macs = list.map((bytes) => bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(":"));
        const made = macs.map((mac) => scrubber.mac(mac));
        expect(new Set(made).size).toBe(macs.length);
        expect(macs.map((mac) => scrubber.mac(mac))).toEqual(made);
        expect(made.map((mac) => mac.slice(0, 2))).toEqual(macs.map((mac) => mac.slice(0, 2)));
        for (const mac of made) expect(mac).toMatch(/^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/);
      }),
      { numRuns: 60, seed: 9 },
    );
    expect(scrubber.mac("00:50:56:aa:bb:cc")).toMatch(/^00:50:56:(?!aa:bb:cc)/);
    for (const mac of ["ff:ff:ff:ff:ff:ff", "00:00:00:00:00:00", "ee:ee:ee:ee:ee:ee", "33:33:00:00:00:01"]) expect(scrubber.mac(mac)).toBe(mac);
  });
});

describe("names", () => {
  const scrub = (...texts: string[]): string => {
    const names = namesIn(texts, ["worker7.prod.bigshop.com"]);
    return replacer(names)(texts.join("\n"));
  };

  test.each([
    ['--comment "shop/checkout:http" -j X', '--comment "namespace-1/service-1:http" -j X'],
    ["/* shop/checkout:http cluster IP */ tcp", "/* namespace-1/service-1:http cluster IP */ tcp"],
    ['I1121 03:51:28.6 1 x.go:12] "Adding" pod="shop/checkout-7d4-x2x" uid=1', 'I1121 03:51:28.6 1 x.go:12] "Adding" pod="namespace-1/pod-1" uid=1'],
    ["lookup checkout.shop.svc.cluster.local: no such host", "lookup service-1.namespace-1.svc.cluster.local: no such host"],
    ["==> /var/log/pods/shop_checkout-7d4_0b4f1c2e/app/0.log <==", "==> /var/log/pods/namespace-1_pod-1_0b4f1c2e/app/0.log <=="],
    ["k8s_web_checkout-7d4_shop_0b4f1c2e-1111-2222-3333-444455556666_0", "k8s_app-1_pod-1_namespace-1_0b4f1c2e-1111-2222-3333-444455556666_0"],
    ["Nov 21 03:51:28 worker7 kubelet[812]: up", "Nov 21 03:51:28 node-1 kubelet[812]: up"],
    ["Linux worker7 6.8.0-31-generic #31", "Linux node-1 6.8.0-31-generic #31"],
    ["alice@worker7:~$ ip route", "user-1@node-1:~$ ip route"],
    ["dial tcp: api.bigshop.com:443", "dial tcp: host-1.example.com:443"],
    ["NAMESPACE   NAME            NODE\nshop        checkout-7d4    worker9\n", "NAMESPACE   NAME            NODE\nnamespace-1  pod-1           node-2\n"],
    [
      "NAME                  READY\nworker7.prod.bigshop.com  x\nworker7               True",
      "NAME                  READY\nnode-1                    x\nnode-1                True",
    ],
    // a namespace may be called as the formats call something
    [
      "lookup api.search.svc.cluster.local\nsearch corp.example\nsearch_restart=0",
      "lookup service-1.search.svc.cluster.local\nsearch corp.example\nsearch_restart=0",
    ],
    ["flannel.alpha.coreos.com/public-ip: x", "flannel.alpha.coreos.com/public-ip: x"],
    ["8: bpfin.cali@bpfout.cali: <UP>\nann.li@bigshop.com", "8: bpfin.cali@bpfout.cali: <UP>\nuser-1@host-1.example.com"],
    // nobody's names, and words of the formats
    ['--comment "kube-system/kube-dns:dns-tcp" and filter/nat', '--comment "kube-system/kube-dns:dns-tcp" and filter/nat'],
    [
      "node.kubernetes.io/unreachable, net.ipv4.conf.all.rp_filter = 0, proxier.go:1520",
      "node.kubernetes.io/unreachable, net.ipv4.conf.all.rp_filter = 0, proxier.go:1520",
    ],
    [':filter - [0:0] --comment "filter/input:x"', ':filter - [0:0] --comment "filter/input:x"'],
  ])("%s", (text, expected) => {
    expect(scrub(text)).toBe(expected);
  });

  test("a name is the same thing everywhere; a longer one is not the shorter one", () => {
    expect(scrub('--comment "shop/web:http"', '--comment "shop/web-admin:http"', "web web-admin webby shop-web")).toBe(
      '--comment "namespace-1/service-1:http"\n--comment "namespace-1/service-2:http"\nservice-1 service-2 webby shop-web',
    );
  });
});

describe("captures", () => {
  const text = [
    "IN=eth0 OUT= MAC=02:42:0a:14:00:05:02:42:0a:14:00:06:08:00 SRC=10.20.0.6 DST=10.20.0.5",
    "ip-10-20-0-5.ec2.internal 10-20-0-6.default.pod i-0123456789abcdef0 arn:aws:ec2:eu-central-1:123456789012:instance",
    "/kubepods/pod0b4f1c2e-1111-2222-3333-444455556666/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "ebtables --to-dst a:96:88:20:cb:c6 -j KUBE-SEP-NPX46M4PTMTKRN6Y 12:34:56 v1.8.7.2 [90:5400] ::/0 10.20.0.5:8080",
  ].join("\n");

  test("every kind of token is replaced, in its own spelling, and nothing else", () => {
    const { capture, pseudonyms } = scrubCapture(captureOf(output("dmesg | grep 10.20.0.5", text)));
    const made = capture.outputs[0]?.text ?? "";
    for (const gone of ["10.20.0.", "10-20-0-", "0123456789abcdef", "123456789012", "0b4f1c2e-1111", "02:42:0a:14", "a:96:88", "NPX46M4PTMTKRN6Y"])
      expect(made).not.toContain(gone);
    const address = pseudonyms.get("10.20.0.5") ?? "";
    expect(made).toContain(`DST=${address}`);
    expect(made).toContain(`${address}:8080`);
    expect(made).toMatch(/MAC=02:42:(?:[0-9a-f]{2}:){4}02:42:(?:[0-9a-f]{2}:){4}08:00 /);
    expect(made).toMatch(/i-[0-9a-f]{17} arn:aws:ec2:eu-central-1:\d{12}:instance/);
    expect(made).toMatch(/pod[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\/[0-9a-f]{64}$/m);
    expect(made).toMatch(/KUBE-SEP-[A-Z2-7]{16} 12:34:56 .* \[90:5400\] ::\/0 /);
    expect(capture.outputs[0]).toMatchObject({ command: `dmesg | grep ${address}`, file: "outputs/01-dmesg.txt" });
  });

  test("byte dumps of maps and matches of tc filters hold the same pseudonyms as the text", () => {
    const dump =
      '[{"key":["0x0a","0x14","0x00","0x05","0x1f","0x90","0x01","0x00","0x06","0x00","0x00","0x00"],"value":["0xd2","0x01","0x00","0x00","0x00","0x00","0x01","0x98","0x00","0x00","0x00","0x00"]}]';
    const { capture, pseudonyms } = scrubCapture(
      captureOf(
        output("ip addr", "inet 10.20.0.5/24"),
        output("bpftool -j map dump id 7", dump),
        output("bpftool map dump id 8", "key: d2 01 00 00  value: 0a 14 00 05 1f 90 06 00\nFound 1 element\n"),
        output("tc filter show dev eth0", "  match 0a140005/ffffffff at 16\n  match 00500000/ffff0000 at 20\n"),
      ),
    );
    const made =
      (pseudonyms.get("10.20.0.5/24") ?? "")
        .split("/")[0]
        ?.split(".")
        .map((byte) => Number(byte).toString(16).padStart(2, "0")) ?? [];
    expect(capture.outputs[1]?.text).toBe(dump.replace('"0x0a","0x14","0x00","0x05"', made.map((byte) => `"0x${byte}"`).join(",")));
    expect(capture.outputs[2]?.text).toBe(`key: d2 01 00 00  value: ${made.join(" ")} 1f 90 06 00\nFound 1 element\n`);
    expect(capture.outputs[3]?.text).toBe(`  match ${made.join("")}/ffffffff at 16\n  match 00500000/ffff0000 at 20\n`);
  });

  test("addresses with a port behind a dot, as tcpdump prints them, and one without brackets, as an old ss does", () => {
    const trace = [
      "13:44:02.118151 IP 10.20.0.5.40311 > 10.20.0.142.8472: OTV, flags [I] (0x08)",
      "13:44:02.118160 IP 10.20.0.142 > 10.20.0.5: ICMP host 10.20.0.142 unreachable",
      "13:44:02.118170 IP6 fd20:1:2::5.40311 > fd20:1:2::42.53: 1+ A? x. (20)",
    ];
    const { capture, pseudonyms } = scrubCapture(
      captureOf(output("tcpdump -ni eth0", `${trace.join("\n")}\n`), output("ss -lnt", "LISTEN 0 100 ::1:25 :::*\nkernel 1.2.3.4.5\n")),
    );
    const made = (address: string): string => pseudonyms.get(address) ?? "";
    const [one, other, six, seven] = ["10.20.0.5", "10.20.0.142", "fd20:1:2::5", "fd20:1:2::42"].map(made);
    expect(capture.outputs[0]?.text.split("\n")).toEqual([
      `13:44:02.118151 IP ${one}.40311 > ${other}.8472: OTV, flags [I] (0x08)`,
      `13:44:02.118160 IP ${other} > ${one}: ICMP host ${other} unreachable`,
      `13:44:02.118170 IP6 ${six}.40311 > ${seven}.53: 1+ A? x. (20)`,
      "",
    ]);
    expect(new Set([one, other, six, seven, ""]).size).toBe(5);
    expect(capture.outputs[1]?.text).toBe("LISTEN 0 100 ::1:25 :::*\nkernel 1.2.3.4.5\n");
  });

  test("a column begins where it began", () => {
    const table = "NAME         INTERNAL-IP   OS\nworker-77-b  10.20.0.5     Flatcar\nworker-77    10.20.0.142   Debian\n";
    const { capture, pseudonyms } = scrubCapture(
      captureOf(output("kubectl get nodes -o wide", `NAME  ROLES  X\n${table}`), output("hostname", "worker-77-b\n")),
    );
    const rows = capture.outputs[0]?.text.split("\n") ?? [];
    for (const [row, address] of [
      [2, "10.20.0.5"],
      [3, "10.20.0.142"],
    ] as const)
      expect(rows[row]?.indexOf(pseudonyms.get(address) ?? "?")).toBe(13);
  });

  test("a namespace that is called like a word of a command: the command stays what it is", () => {
    const log = 'I1121 03:51:28.6 1 x.go:12] "Adding" servicePortName="logs/syslog:udp"\n';
    const { capture } = scrubCapture(captureOf(output("kubectl logs -n logs kube-proxy-x7k2p", log), output("kubectl get pods -n shop", "")));
    expect(capture.outputs.map(({ command }) => command)).toEqual(["kubectl logs -n namespace-1 kube-proxy-x7k2p", "kubectl get pods -n namespace-2"]);
    expect(capture.outputs[0]?.text).toContain('servicePortName="namespace-1/service-1:udp"');
  });

  test("the arguments of people's own programs are left out; those of the system stay", () => {
    const { capture } = scrubCapture(
      captureOf(
        output("ps -e -o pid,args", "    PID COMMAND\n   1432 /usr/bin/kubelet --v=2\n   1500 java -jar shop.jar --password=x\n   1501 [kworker/0:1]\n"),
      ),
    );
    expect(capture.outputs[0]?.text).toBe("    PID COMMAND\n   1432 /usr/bin/kubelet --v=2\n   1500 java\n   1501 [kworker/0:1]\n");
    const aux = [
      "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
      "root         611  0.0  0.1  10000  2000 ?        Ssl  Nov20   1:02 /usr/bin/kubelet --v=2",
      "app         1500 12.0  9.1 900000 80000 ?        Sl   Nov20  61:02  \\_ java -jar ledger.jar --password=x",
      "app         1501  0.0  0.1  10000  2000 ?        S    Nov20   0:00  |   \\_ sleep",
    ];
    const ef = ["UID          PID    PPID  C STIME TTY          TIME CMD", "app         1500       1  0 08:11 ?        00:00:01 java -jar ledger.jar"];
    const all = scrubCapture(captureOf(output("ps auxfww", `${aux.join("\n")}\n`), output("ps -ef", `${ef.join("\n")}\n`))).capture.outputs;
    expect(all[0]?.text).toBe(`${aux.join("\n").replace(" -jar ledger.jar --password=x", "")}\n`);
    expect(all[1]?.text).toBe(`${ef.join("\n").replace(" -jar ledger.jar", "")}\n`);
  });

  test("people's addresses, names in URLs and ARNs, serial numbers, machine ids, the names in tables of kubectl", () => {
    const log = [
      "pull access denied for alice.smith@megabank.com; see https://wiki.megabank.corp/net and https://etcd-0.infra.megabank.corp:2379",
      "assumed arn:aws:iam::991234567890:role/megabank-node-role; https://A1B2C3D4E5F60718A1B2C3D4E5F60718.gr7.eu-central-1.eks.amazonaws.com",
      "DMI: Dell Inc. PowerEdge R640, serial number: 7XK2P33",
      "Boot ID: 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
      "Started user@1000.service; built from /go/src/github.com/cilium/cilium/pkg/x.go",
    ].join("\n");
    const nodes =
      "NAME               STATUS   ROLES    AGE   VERSION\nprod-ledger-db01   Ready    <none>   10d   v1.29.4\n\nNAME                    READY   STATUS    RESTARTS   AGE\nledger-core-x2k4z       1/1     Running   0          3d\ncanal-7hq2m             1/1     Running   0          3d\n";
    const { capture } = scrubCapture(captureOf(output("journalctl -u kubelet", log), output("kubectl get nodes,pods", nodes)));
    const texts = capture.outputs.map(({ text: one }) => one);
    for (const word of ["alice", "megabank", "991234567890", "A1B2C3D4", "eks.amazonaws", "7XK2P33", "0f1e2d3c4b5a", "prod-ledger", "ledger-core"])
      expect(texts.join("\n"), word).not.toContain(word);
    expect(texts[0]).toContain("Started user@1000.service; built from /go/src/github.com/cilium/cilium/pkg/x.go");
    expect(texts[0]).toMatch(/serial number: [0-9A-F]{7}\nBoot ID: [0-9a-f]{32}\n/);
    expect(texts[1]).toContain("canal-7hq2m ");
    expect(texts[1]).toMatch(/^node-2 /m);
  });

  test("the same capture gives the same bytes; scrubbing twice changes no name and keeps the addresses apart", () => {
    const capture = captureOf(output("dmesg", text), output("iptables-save", '-A KUBE-SERVICES -m comment --comment "shop/web:http" -d 10.20.0.5/32'));
    const once = scrubCapture(capture).capture;
    expect(scrubCapture(capture).capture).toEqual(once);
    const twice = scrubCapture(once).capture;
    expect(twice.outputs[1]?.text.replace(ADDRESS, "A")).toBe(once.outputs[1]?.text.replace(ADDRESS, "A").replace(/KUBE-SEP-\w+/, (chain) => chain));
    expect(new Set(twice.outputs[0]?.text.match(ADDRESS)).size).toBe(new Set(once.outputs[0]?.text.match(ADDRESS)).size);
  });

  const runbooks = fileURLToPath(new URL("../runbooks/", import.meta.url));
  const catalogue = loadCatalogue(runbooks, { tolerant: true });
  const faults = [...catalogue.rules.keys()].flatMap((id) => {
    const name = fixtureNames(runbooks, id).find((one) => {
      const path = `${runbooks}rules/${id}/fixtures/${one}`;
      return existsSync(`${path}/capture.json`) && existsSync(`${path}/expect.yaml`) && readCase(runbooks, id, one).expect.verdict === "match";
    });
    return name === undefined ? [] : [[id, name] as const];
  });

  test.each(faults)("%s/%s: no address or MAC is left, and the diagnosis is the same", async (id, name) => {
    const capture = await readCaptureFiles(`${runbooks}rules/${id}/fixtures/${name}`);
    const scrubbed = scrubCapture(capture).capture;
    const all = (one: typeof capture): string =>
      one.outputs.map(({ command, file, text: content, stderr }) => [command, file, content, stderr].join("\n")).join("\n");
    const keeps = AddressScrubber.of([all(capture)], "k");
    const before = new Set(all(capture).match(ADDRESS));
    expect([...new Set(all(scrubbed).match(ADDRESS))].filter((address) => before.has(address) && !keeps.keeps(address))).toEqual([]);
    const macs = new Set(all(capture).match(MAC));
    expect([...new Set(all(scrubbed).match(MAC))].filter((mac) => macs.has(mac) && keeps.mac(mac) !== mac)).toEqual([]);
    const said = (one: typeof capture) => {
      const { verdict, causes, symptoms, risks } = diagnose(one, catalogue, "", () => 0);
      return {
        verdict,
        findings: [...causes, ...symptoms, ...risks].map(({ rule, confidence, evidence }) => [rule, confidence, evidence.map(({ line }) => line)]),
      };
    };
    expect(said(scrubbed)).toEqual(said(capture));
  });
});
