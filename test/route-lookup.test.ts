import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";
import { type Answer, type Packet, routeTables, type Sources } from "../functions/facts/route-lookup-evaluator.ts";
import { cpuMs, expectLinear } from "./cpu-time.ts";

/**
 * Each case of test/route-lookup was set up in a network namespace (`setup`); `outputs` are the node's own, and `answer` is what `ip route get` said there.
 * The evaluator must say the same.
 */
interface Case {
  setup: string[];
  outputs: Record<string, string>;
  queries: { get: string; answer: string }[];
}
const root = new URL("route-lookup/", import.meta.url);

function read(outputs: Record<string, string>, ids: readonly string[]) {
  const entries = Object.entries(outputs);
  const capture = captureOf(
    { schema: "netcheck.capture/1", target: { name: "node1" }, outputs: entries.map(([command], i) => ({ command, file: `${i}` })) },
    (file) => ({ text: entries[Number(file)]?.[1] ?? "", truncated: false }),
  );
  const { readings } = readFacts(capture, new Set(ids));
  return (id: string) => (readings.get(id)?.value as { rows: never[] } | undefined)?.rows ?? [];
}

function sourcesOf(outputs: Record<string, string>): Sources {
  const rows = read(outputs, ["route", "rule", "address", "link"]);
  return { routes: rows("route"), rules: rows("rule"), addresses: rows("address"), links: rows("link") };
}

/** `198.51.100.1 from 10.1.1.88 iif eth0 mark 0x80` */
function packetOf(get: string): Packet {
  const words = get.split(" ");
  const value = (name: string) => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
  const destination = words[0] as string;
  return {
    family: destination.includes(":") ? "ipv6" : "ipv4",
    destination,
    fwmark: Number(value("mark") ?? 0),
    uid: 0,
    ...(value("from") === undefined ? {} : { source: value("from") as string }),
    ...(value("iif") === undefined ? {} : { inputInterface: value("iif") as string }),
    ...(value("oif") === undefined ? {} : { outputInterface: value("oif") as string }),
    ...(value("ipproto") === undefined ? {} : { ipProtocol: value("ipproto") as string }),
    ...(value("dport") === undefined ? {} : { destinationPort: Number(value("dport")) }),
  };
}

const ERRORS: Record<string, readonly string[]> = {
  "RTNETLINK answers: Network is unreachable": ["none", "unreachable"],
  "RTNETLINK answers: No route to host": ["unreachable"],
  "RTNETLINK answers: Permission denied": ["prohibit"],
  "RTNETLINK answers: Invalid argument": ["blackhole"],
};

/** A next hop that is the node's own address is none: the kernel then leaves it out of its answer. */
function check(get: string, said: string, answer: Answer, own: ReadonlySet<string>): void {
  const words = said.trim().split(/\s+/);
  const errors = ERRORS[said.trim()];
  if (errors !== undefined) {
    expect(errors, get).toContain(answer.outcome);
    return;
  }
  const after = (name: string) => (words.includes(name) ? words[words.indexOf(name) + 1] : undefined);
  const type = words[0] === "local" || words[0] === "broadcast" ? words[0] : "unicast";
  expect(answer.outcome, get).toBe(type);
  if (type === "unicast") {
    const hops = answer.hops.map((hop) => `${hop.gateway === undefined || own.has(hop.gateway) ? "-" : hop.gateway} ${hop.interface}`);
    expect(hops, get).toContain(`${after("via") ?? "-"} ${after("dev")}`);
    if (answer.route?.table !== "main") expect(answer.route?.table, get).toBe(after("table"));
  }
  if (answer.hops.length === 1 && !get.includes("iif") && answer.preferredSource !== undefined) expect(answer.preferredSource, get).toBe(after("src"));
}

describe("says what the kernel said", () => {
  const names = readdirSync(root).map((file) => file.replace(/\.json$/, ""));
  test("of at least fifteen set-ups", () => expect(names.length).toBeGreaterThanOrEqual(15));
  test.each(names)("%s", (name) => {
    const { outputs, queries } = JSON.parse(readFileSync(new URL(`${name}.json`, root), "utf8")) as Case;
    const sources = sourcesOf(outputs);
    const tables = routeTables(sources);
    const own = new Set(sources.addresses.map((row) => row.address));
    expect(queries.length).toBeGreaterThan(0);
    for (const { get, answer } of queries) check(get, answer, tables.lookup(packetOf(get)), own);
  });
});

describe("what is not known is not guessed", () => {
  const routes = "default via 10.1.0.1 dev eth0 \n10.1.0.0/24 dev eth0 proto kernel scope link src 10.1.0.5 \n";
  const tables = (rules: string, more = "") => routeTables(sourcesOf({ "ip route": routes, "ip rule": rules, "ip route show table 9": more }));
  const packet: Packet = { family: "ipv4", destination: "198.51.100.1" };
  const RULES = "0: from all lookup local\n100: from all fwmark 0x80/0x80 lookup 9\n32766: from all lookup main\n";

  test("a mark that decides makes it undetermined, and says so", () => {
    const answer = tables(RULES, "default via 10.1.0.2 dev eth1 \n").lookup(packet);
    expect(answer).toMatchObject({ outcome: "undetermined", reason: "rule 100 asks for the mark, which is not known" });
  });

  test("a mark that changes nothing does not matter", () => {
    expect(tables(RULES, "default via 10.1.0.1 dev eth0 \n").lookup(packet)).toMatchObject({ outcome: "unicast", route: { gateway: "10.1.0.1" } });
  });

  test("the mark of `ip route get` is zero", () => {
    expect(tables(RULES, "default via 10.1.0.2 dev eth1 \n").lookup({ ...packet, fwmark: 0 })).toMatchObject({
      outcome: "unicast",
      route: { interface: "eth0" },
    });
  });

  test("a table that nobody listed is not empty", () => {
    const answer = routeTables(sourcesOf({ "ip route": routes, "ip rule": "100: from all lookup 9\n32766: from all lookup main\n" })).lookup(packet);
    expect(answer).toMatchObject({ outcome: "undetermined", reason: "table 9 was not collected" });
  });

  test("without rules the kernel's own are taken, without table local the addresses", () => {
    const tables = routeTables(sourcesOf({ "ip route": routes, "ip -o addr": "2: eth0    inet 10.1.0.5/24 scope global eth0\n" }));
    expect(tables.assumedRules("ipv4")).toBe(true);
    expect(tables.lookup({ ...packet, destination: "10.1.0.5" })).toMatchObject({ outcome: "local" });
    expect(tables.lookup(packet)).toMatchObject({ outcome: "unicast", preferredSource: "10.1.0.5" });
  });

  test("many unknown rules take linear time", () => {
    const rules = (length: number): string => Array.from({ length }, (_, i) => `${i + 1}: from all fwmark ${i + 1} lookup 9\n`).join("");
    expectLinear(
      rules,
      (text) => expect(tables(`${text}32766: from all lookup main\n`, "default via 10.1.0.2 dev eth1 \n").lookup(packet).outcome).toBe("undetermined"),
      1250,
    );
  });
});

describe("the probes of a node", () => {
  const probesOf = (outputs: Record<string, string>) =>
    read(outputs, ["route-lookup"])("route-lookup") as unknown as Record<string, string | number | boolean | undefined>[];
  const recorded = (name: string) => probesOf((JSON.parse(readFileSync(new URL(`${name}.json`, root), "utf8")) as Case).outputs);
  const pick = (rows: Record<string, string | number | boolean | undefined>[], probe: string, ...fields: readonly string[]) =>
    rows.filter((row) => row["probe"] === probe && row["family"] === "ipv4").map((row) => fields.map((field) => String(row[field] ?? "-")).join(" "));

  test("VPC CNI: a pod on the second interface answers through that interface's table, one on the first through table main", () => {
    const rows = recorded("vpc-cni");
    expect(pick(rows, "pod-reply", "packetSource", "interface", "table", "rulePriority")).toEqual(["10.1.0.77 eth0 main 32766", "10.1.1.88 eth1 2 1536"]);
    expect(pick(rows, "pod", "destination", "interface", "asExpected")).toEqual(["10.1.0.77 eni0123456789a true", "10.1.1.88 eniabcdef01234 true"]);
    expect(pick(rows, "node-to-pod", "packetSource", "asExpected")).toEqual(["10.1.0.5 true", "10.1.0.5 true"]);
  });

  test("Cilium: the node's own range is expected on cilium_host, its table 2004 is looked up", () => {
    const rows = recorded("cilium");
    expect(pick(rows, "pod", "destination", "interface", "asExpected")).toEqual(["10.0.3.3 cilium_host true"]);
    expect(pick(rows, "outside", "interface", "preferredSource", "assumedRules")).toEqual(["eth0 10.1.0.5 false"]);
    expect(pick(rows, "link-local", "interface", "prefix")).toEqual(["eth0 0.0.0.0/0"]);
  });

  test("without a route the row says none, and quotes what it was asked for", () => {
    const [outside] = recorded("no-default").filter((row) => row["probe"] === "outside" && row["family"] === "ipv4");
    expect(outside).toMatchObject({ outcome: "none", interfaces: [], asExpected: true });
    expect(outside?.["line"]).toBeGreaterThan(0);
  });

  test("a rejecting route in front of a pod is not as expected", () => {
    const rows = probesOf({ "ip route": "unreachable 10.9.0.7 \n10.9.0.7 dev cali0123456789a scope link metric 1024 \n" });
    expect(pick(rows, "pod", "destination", "outcome", "asExpected", "line", "expectedLine")).toEqual(["10.9.0.7 unreachable false 1 2"]);
  });

  test("a full table costs little", () => {
    const routes = Array.from({ length: 20_000 }, (_, i) => `10.${i >> 8}.${i & 255}.0/24 via 192.0.2.1 dev eth0 proto bird \n`).join("");
    const pods = Array.from({ length: 400 }, (_, i) => `172.16.${i >> 8}.${i & 255} dev cali${i.toString(16).padStart(11, "0")} scope link \n`).join("");
    const started = cpuMs();
    const rows = probesOf({ "ip route": `default via 192.0.2.1 dev eth0 \n192.0.2.0/24 dev eth0 proto kernel scope link src 192.0.2.9 \n${routes}${pods}` });
    expect(pick(rows, "pod", "asExpected")).toHaveLength(300);
    expect(cpuMs() - started).toBeLessThan(8000);
  });
});
