import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { type Ran, runCli } from "./run-cli.ts";

/** `netcheck compare` as a process: what it prints, where, and with which exit code. */

const root = fileURLToPath(new URL("../", import.meta.url));
const fixtures = join(root, "runbooks/rules/kube-forward-before-cilium/fixtures");
const bad = join(fixtures, "writeup-bad-host");
const good = join(fixtures, "writeup-healthy");
const scratch = mkdtempSync(join(tmpdir(), "netcheck-compare-"));
// every case starts a process
vi.setConfig({ testTimeout: 60_000 });
afterAll(() => rmSync(scratch, { recursive: true }));

const netcheck = (...args: string[]): Promise<Ran> => runCli(["compare", ...args], scratch);

const Line = z.strictObject({ command: z.string().min(1), file: z.string().min(1), line: z.int().min(1), text: z.string().min(1) });
/** Key by key: nothing missing, nothing more. */
const Comparison = z.strictObject({
  schema: z.literal("netcheck.comparison/1"),
  target: z.string(),
  peers: z.array(z.string()).min(1),
  collected: z.array(z.strictObject({ name: z.string(), transport: z.string(), at: z.iso.datetime().optional() })).min(2),
  facts: z.int().min(0),
  differences: z.array(
    z.strictObject({
      fact: z.string(),
      change: z.enum(["order", "changed", "only-here", "missing-here"]),
      what: z.string().min(1),
      why: z.string(),
      score: z.number().min(0).max(1),
      usualIn: z.strictObject({ peers: z.int().min(1), of: z.int().min(1) }),
      here: z.array(Line),
      there: z.array(Line.extend({ peer: z.string() })),
      notIn: z.string().optional(),
    }),
  ),
  suppressed: z.strictObject({ minor: z.int(), noMajority: z.int(), overLimit: z.int(), momentary: z.array(z.string()) }),
  notCompared: z.array(z.strictObject({ fact: z.string(), reason: z.string().min(1) })),
});

describe("what it prints", () => {
  test("the write-up of S2: the order of the chains, with the lines of both hosts", async () => {
    const { code, stdout, stderr } = await netcheck(bad, good);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain("1 worth a look\n");
    expect(stdout).toMatch(
      /\n1\. Order in filter FORWARD: CILIUM_FORWARD is number 11 of 11 here, behind .*\n {3}score 0\.67; usual on 1 of 1; .*\n {3}here:\n/,
    );
    expect(stdout).toContain("iptables -t filter -nvL FORWARD:13: 7 420 CILIUM_FORWARD");
    expect(stdout).toContain(`on ${good}:\n     iptables -t filter -nvL FORWARD:3: 1419 148K CILIUM_FORWARD`);
    expect(stdout).toContain("NOT COMPARED\n  iptables: only what both sides show");
  });

  test("--json: one object of the published shape", async () => {
    const { code, stdout } = await netcheck("node5", "healthy1", good, "--json", "--limit", "3");
    expect(code).toBe(0);
    const comparison = Comparison.parse(JSON.parse(stdout));
    expect(comparison).toMatchObject({ target: "node5", peers: ["healthy1", good] });
    expect(comparison.collected.map(({ name, transport }) => [name, transport])).toEqual([
      ["node5", "replay"],
      ["healthy1", "replay"],
      [good, "replay"],
    ]);
    expect(comparison.differences).toHaveLength(3);
    expect(comparison.suppressed.overLimit).toBeGreaterThan(0);
  });

  test("a pasted text as the node; what a node prints cannot drive the terminal", async () => {
    const paste = join(scratch, "paste.txt");
    writeFileSync(paste, "$ lsmod\nModule                  Size  Used by\nbr_netfilter           32768  0\nvxlan                  32768  0\n");
    const hostile = join(scratch, "hostile.txt");
    writeFileSync(hostile, "$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 0\u009b31m\u202e\n");
    const peer = join(scratch, "peer.txt");
    writeFileSync(
      peer,
      "$ lsmod\nModule                  Size  Used by\nvxlan                  32768  0\n$ sysctl net.ipv4.ip_forward\nnet.ipv4.ip_forward = 1\n",
    );
    expect((await netcheck(paste, peer)).stdout).toContain("Only here (module): br_netfilter; the peer does not have it");
    const { stdout } = await netcheck(hostile, peer);
    expect(stdout).toContain("net.ipv4.ip_forward: 0");
    expect(stdout).not.toMatch(/[\u0080-\u009f\u202a-\u202e]/);
  });

  test("of a paste nearly nothing can be compared: it says no more than that", async () => {
    const paste = join(scratch, "one-fact.txt");
    writeFileSync(paste, "$ ip route\ndefault via 10.0.0.1 dev eth0\n");
    const peer = join(scratch, "another-fact.txt");
    writeFileSync(peer, "$ lsmod\nModule                  Size  Used by\nvxlan                  32768  0\n");
    expect((await netcheck(paste, "healthy1")).stdout).toMatch(/: no difference that matters to traffic, in the one fact that could be compared\n/);
    expect((await netcheck(paste, peer)).stdout).toMatch(/: nothing of them could be compared\n/);
  });

  test("secrets of one's own (redact of a runbook) are blacked out here, too", async () => {
    const runbooks = join(scratch, "runbooks");
    cpSync(join(root, "runbooks"), runbooks, { recursive: true, filter: (path) => !path.endsWith("/fixtures") });
    const file = join(runbooks, "netcheck/runbook.yaml");
    writeFileSync(file, `${readFileSync(file, "utf8")}redact: ["acme_[a-z]+"]\n`);
    const paste = join(scratch, "acme.txt");
    writeFileSync(paste, "$ lsmod\nModule                  Size  Used by\nacme_falcon            32768  0\nvxlan                  32768  0\n");
    const peer = join(scratch, "without.txt");
    writeFileSync(peer, "$ lsmod\nModule                  Size  Used by\nvxlan                  32768  0\n");
    expect((await netcheck(paste, peer)).stdout).toContain("acme_falcon");
    expect((await runCli(["compare", paste, peer], scratch, { NETCHECK_RUNBOOKS: runbooks })).stdout).not.toContain("acme_falcon");
  });
});

describe("usage", () => {
  test.each<[string, string[], number, string]>([
    ["the same node twice", [bad, bad], 2, "is there twice; a node cannot be compared with itself"],
    ["no peer", [bad], 2, "missing required argument"],
    ["a bad limit", [bad, good, "--limit", "0"], 2, '--limit takes a number from 1 to 1000, not "0"'],
    ["no such file", [bad, "./gone.tgz"], 1, "./gone.tgz: could not read it"],
    ["no such target", [bad, "nodee1"], 1, "did you mean node1"],
  ])("%s", async (_, args, exit, words) => {
    const { code, stdout, stderr } = await netcheck(...args);
    expect([code, stdout]).toEqual([exit, ""]);
    expect(stderr).toContain(words);
  });
});
