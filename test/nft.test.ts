import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import type { Nft } from "../functions/facts/nft-row.ts";
import { readFacts } from "../functions/facts/read.ts";

const fixture = (name: string) => readFileSync(new URL(`facts/nft/${name}.txt`, import.meta.url), "utf8");

function reading(...outputs: { command: string; text: string; truncated?: boolean }[]) {
  const index = outputs.map(({ command, truncated = false }, i) => ({ command, truncated, file: String(i) }));
  const capture = captureOf({ schema: "netcheck.capture/1", target: { name: "n" }, outputs: index }, (file) => ({
    text: outputs[Number(file)]?.text ?? "",
    truncated: false,
  }));
  const result = readFacts(capture, new Set(["nft"])).readings.get("nft");
  if (result?.status !== "read") throw new Error(`not read: ${result?.reason}`);
  return { ...result, value: result.value as Nft };
}
const text = { command: "nft list ruleset", text: fixture("list") };
const json = { command: "nft -j list ruleset", text: fixture("json") };
const table = { command: "nft list table ip nt", text: fixture("table") };
const chain = { command: "nft list chain inet t1 in", text: fixture("chain") };
const count = ({ tables, chains, rows, sets }: Nft) => [tables, chains, rows, sets].map((list) => list.length);

test("numbers for constants, and names for ports, are read as the plain listing", () => {
  const told = (command: string, name: string) => {
    const { chains, rows, sets } = reading({ command, text: fixture(name) }).value;
    return { chains: chains.map((chain) => ({ ...chain, priority: undefined })), rows, sets };
  };
  const plain = told("nft list ruleset", "in-words");
  expect(plain.rows.map(({ spec }) => spec)).toContain("ct state vmap { invalid : drop, established : accept, related : accept }");
  expect(told("nft -n list ruleset", "in-numbers")).toEqual(plain);
  expect(told("nft -nS list ruleset", "in-numbers-with-services")).toEqual(plain);
  const specs = reading({ command: "nft -jn list ruleset", text: fixture("in-numbers-json") }).value.rows.map(({ spec }) => spec);
  expect(specs).toContain("ct state vmap { invalid : drop, established : accept, related : accept }");
  expect(specs).toContain("ct state new ct status != dnat ip protocol { tcp, udp } th dport 80 drop");
});

test("JSON and text tell the same of chains, verdicts, counters and sets", () => {
  const told = ({ rows, sets }: Nft) => ({
    rows: rows.map(({ table: of, chain: name, position, verdict, target, packets, bytes, comment }) => ({
      of,
      name,
      position,
      verdict,
      target,
      packets,
      bytes,
      comment,
    })),
    sets: sets.map(({ name, kind, elements }) => ({ name, kind, elements })),
  });
  expect(told(reading(json).value)).toEqual(told(reading(text).value));
});

test("views of the same tables do not add up", () => {
  const all = count(reading(text).value);
  expect(count(reading(table, chain, text, json, { command: "nft list chains", text: fixture("chains") }).value)).toEqual(all);
  expect(reading(text, json).value.rows.every((row) => row.handle !== undefined)).toBe(true);
});

test("a table and a chain complement each other, and are not everything", () => {
  const parts = reading(table, chain, { command: "nft list chains", text: fixture("chains") });
  expect([...new Set(parts.value.rows.map((row) => row.chain))].sort()).toEqual(["in", "post", "pre"]);
  expect(parts.complete).toBe(false);
});

test("only the whole ruleset, uncut and unfiltered, is everything", () => {
  expect(reading(json).complete).toBe(true);
  expect(reading({ command: "nft list ruleset", text: "" }).complete).toBe(true);
  expect(reading({ ...text, command: "nft list ruleset | grep drop" }).complete).toBe(false);
  expect(reading({ ...json, command: "nft -j list ruleset ip" }).complete).toBe(false);
  expect(reading({ command: "nft -t list ruleset", text: fixture("terse") }).complete).toBe(false);
  for (const name of ["truncated-set", "truncated-rule"]) expect(reading({ command: "nft list ruleset", text: fixture(name) }).complete).toBe(false);
  expect(reading({ command: "nft -j list ruleset", text: fixture("truncated-json") }).complete).toBe(false);
});

test("a cut view gives way to a whole one, also where its format is the better one", () => {
  const value = reading({ command: "nft -j list ruleset", text: fixture("truncated-json") }, text).value;
  expect(count(value)).toEqual(count(reading(text).value));
});

test("large rulesets and hostile nesting within the time of a test", () => {
  const rules = Array.from({ length: 50_000 }, (_, i) => `\t\tip daddr 10.0.0.1 tcp dport ${i} counter packets ${i} bytes 0 jump svc-${i}\n`).join("");
  const elements = Array.from({ length: 100_000 }, (_, i) => `10.0.0.${i} . tcp . 80 : goto svc-${i}`).join(",\n\t\t\t     ");
  const large = `table ip t {\n\tmap m {\n\t\ttype ipv4_addr . inet_proto . inet_service : verdict\n\t\telements = { ${elements} }\n\t}\n\n\tchain c {\n${rules}\t}\n}\n`;
  const { value, complete } = reading({ command: "nft list ruleset", text: large });
  expect(complete).toBe(true);
  expect(value.sets).toMatchObject([{ elements: 100_000 }]);
  expect(value.rows.at(-1)).toMatchObject({ position: 50_000, packets: 49_999, target: "svc-49999" });
  const deep = `{"nftables": [{"rule": {"family": "ip", "table": "t", "chain": "c", "expr": [{"x": ${"[".repeat(20_000)}${"]".repeat(20_000)}}]}}]}`;
  expect(reading({ command: "nft -j list ruleset", text: deep }).value.rows).toHaveLength(1);
  const unclosed = `table ip t {\n\tchain c {\n${"\t\ttcp dport {\n".repeat(50_000)}`;
  expect(reading({ command: "nft list ruleset", text: unclosed }).complete).toBe(false);
});
