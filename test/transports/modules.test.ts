import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { captureOf } from "../../functions/facts/capture.ts";
import { facts } from "../../functions/facts/index.ts";
import { readFacts } from "../../functions/facts/read.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { scripts } from "../../functions/transports/script.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import type { Capture, Command, Plan } from "../../functions/triage/ports.ts";

/**
 * A collection loads no kernel module. The machine that runs the tests may have a kernel without modules; so the script is told of another kernel (its
 * files in /proc, /sys and /lib are exchanged), once with stand-ins for the programs, and once with the real ones while strace watches what they ask the
 * kernel for: a module is loaded for a kind of socket, for a netlink subsystem, or by modprobe, and for nothing else that they do.
 */
const nonce = "0123456789abcdef0123456789abcdef";
const about = { nonce, target: "node1", transport: "test", startedAt: "2026-01-01T00:00:00.000Z", truncated: false };
const real: Plan = { ...collectionPlan(loadCatalogue(join(import.meta.dirname, "../../runbooks")), "netcheck"), intervalSeconds: 0 };
/** What may load a module, and what is run instead of it. */
const guarded = facts
  .filter(({ id }) => /^(?:conntrack|conntrack-stats|ebtables|ipset|iptables|ipvs|nft|socket)$/.test(id))
  .flatMap(({ commands }) => commands);
const plan = (commands: readonly Command[] = guarded): Plan => ({ ...real, runbook: "test", commands });

vi.setConfig({ testTimeout: 60_000 });
const found = (program: string): boolean => spawnSync(program, ["--help"]).error === undefined;
const shells = [["dash"], ["busybox", "sh"]].filter(([program = ""]) => found(program)).map((shell) => ({ name: shell.join(" "), shell }));

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-modules-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

interface Kernel {
  /** Loaded modules; undefined: the kernel can load none. */
  readonly loaded?: readonly string[];
  /** What modules.builtin lists; undefined: there is no such list. */
  readonly builtin?: readonly string[];
  /** What /proc/net/ip_tables_names lists; undefined: ip_tables is not there. */
  readonly legacyTables?: readonly string[];
  /** What `nft list tables` lists: family and name. */
  readonly nftTables?: readonly string[];
}
const BARE: Kernel = { loaded: ["virtio_net", "nfnetlink"], builtin: ["unix", "ipv6"] };
const EVERYTHING = "nf_tables nft_compat ip_set ip_vs nf_conntrack nf_conntrack_netlink tcp_diag udp_diag".split(" ");

/** The script on a node with another kernel. */
function on(kernel: Kernel, text: string): string {
  const path = (name: string, content: string | undefined): string => {
    if (content !== undefined) writeFileSync(join(directory, name), content);
    return join(directory, name);
  };
  const lines = (words: readonly string[] | undefined, line: (word: string) => string) => words?.map((word) => `${line(word)}\n`).join("");
  const release = join(directory, "modules", "6.1.0");
  if (kernel.builtin !== undefined) {
    mkdirSync(release, { recursive: true });
    writeFileSync(join(release, "modules.builtin"), lines(kernel.builtin, (name) => `kernel/net/${name}.ko`) ?? "");
  }
  const files: Readonly<Record<string, string>> = {
    "/proc/modules": path(
      "proc-modules",
      lines(kernel.loaded, (name) => `${name} 16384 1 - Live 0x0000000000000000`),
    ),
    "/sys/module/": join(directory, "no-sysfs/"),
    "/proc/sys/kernel/osrelease": path("osrelease", "6.1.0\n"),
    "/lib/modules/": join(directory, "modules/"),
    "/proc/net/": join(directory, "net/"),
  };
  mkdirSync(join(directory, "net"), { recursive: true });
  path(
    "tables",
    lines(kernel.nftTables ?? ["inet firewalld"], (name) => `table ${name}`),
  );
  if (kernel.legacyTables !== undefined)
    path(
      "net/ip_tables_names",
      lines(kernel.legacyTables, (name) => name),
    );
  path(
    "net/nf_conntrack",
    "ipv4     2 tcp      6 100 ESTABLISHED src=192.0.2.1 dst=192.0.2.2 sport=1 dport=2 src=192.0.2.2 dst=192.0.2.1 sport=2 dport=1 [ASSURED] mark=0 use=1\n",
  );
  // once replaced, a path is no longer found
  const pattern = new RegExp(Object.keys(files).join("|"), "g");
  for (const name of Object.keys(files)) expect(text).toContain(name);
  return text.replaceAll(pattern, (name) => files[name] as string);
}

/** Programs that only write down that they ran, and the usual small tools. */
function standIns(programs: Readonly<Record<string, string>>): string {
  const bin = join(directory, "bin");
  mkdirSync(bin);
  for (const name of ["cat", "grep", "head", "mktemp", "mv", "rm", "sed", "wc", "sh", "true", "sleep", "readlink", "timeout", "tr", "echo"]) {
    symlinkSync(spawnSync("which", [name], { encoding: "utf8" }).stdout.trim(), join(bin, name));
  }
  for (const [name, target] of Object.entries(programs)) {
    const file = join(bin, target);
    if (!existsSync(file)) {
      const says = `case \${0##*/} in nft) if [ "$2" = tables ]; then cat ${join(directory, "tables")}; fi ;; ss) echo "\${PROC_NET_TCP-} \${PROC_NET_UDP-}" >>${join(directory, "ss")} ;; esac`;
      writeFileSync(file, `#!/bin/sh\necho "\${0##*/} $*" >>${join(directory, "ran")}\n${says}\n`);
      chmodSync(file, 0o755);
    }
    if (name !== target) symlinkSync(target, join(bin, name));
  }
  return bin;
}
const NFT_TOOLS = Object.fromEntries(
  "iptables-save=xtables-nft-multi ip6tables-save=xtables-nft-multi ebtables-save=xtables-nft-multi nft=nft ipset=ipset ipvsadm=ipvsadm conntrack=conntrack ss=ss"
    .split(" ")
    .map((pair) => pair.split("=") as [string, string]),
);

function collect(kernel: Kernel, tools: Readonly<Record<string, string>>, shell: readonly string[], of = plan()) {
  const bin = standIns(tools);
  const text = on(kernel, scripts.collect(of).text).replace(/^PATH=.*$/m, `PATH=${bin}`);
  mkdirSync(join(directory, "tmp"));
  const [program = "sh", ...words] = shell;
  const env = { PATH: process.env["PATH"] ?? "", TMPDIR: join(directory, "tmp"), NETCHECK_nonce: nonce };
  const { status, stdout, stderr } = spawnSync(program, [...words, "-s"], { input: text, env, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  const ran = existsSync(join(directory, "ran")) ? readFileSync(join(directory, "ran"), "utf8").trim().split("\n") : [];
  const capture = scripts.readCapture(stdout, { ...about, plan: of });
  return { capture, ran: [...new Set(ran.map((line) => line.split(" ")[0] as string))].sort() };
}
const notRun = (capture: Capture): string[] =>
  [...new Set(capture.outputs.filter((output) => output.notRun !== undefined).map(({ command }) => command))].sort();
const reading = (capture: Capture, id: string) => readFacts(capture).readings.get(id);
const wouldLoad = (module: string): string => `it was not run: it would load the kernel module ${module}, and netcheck only reads`;

describe.each(shells)("under $name", ({ shell }) => {
  test("a kernel that has none of it: nothing is run that would load a module, and that is an answer", () => {
    const { capture, ran } = collect(BARE, NFT_TOOLS, shell);
    expect(ran).toEqual(["ss"]);
    expect(capture.notCollected).toEqual([]);
    expect(notRun(capture)).toEqual(
      [
        "conntrack -L",
        "conntrack -S",
        "ebtables-save",
        "ip6tables-save -c",
        "ipset list -o save",
        "iptables-save -c",
        "ipvsadm -Ln",
        "nft -j list ruleset",
      ].sort(),
    );
    expect(capture.outputs.find(({ command }) => command.startsWith("ipset"))).toMatchObject({
      text: "",
      stderr: "",
      exitCode: undefined,
      notRun: "the kernel module ip_set is not loaded, so there is nothing to list",
    });
    for (const id of ["conntrack", "conntrack-stats", "ebtables", "ipset", "iptables", "ipvs", "nft"]) {
      expect([id, reading(capture, id)?.status, reading(capture, id)?.complete]).toEqual([id, "read", true]);
    }
    expect(reading(capture, "nft")?.value).toEqual({ tables: [], chains: [], rows: [], sets: [] });
    expect(readFileSync(join(directory, "ss"), "utf8")).toMatch(/^(?:\S+\/net\/tcp \S+\/net\/udp\n)+$/);
  });

  test("without the tools the answer is the same; of iptables nothing is known", () => {
    const { capture, ran } = collect(BARE, {}, shell);
    expect(ran).toEqual([]);
    expect(notRun(capture)).toEqual(["conntrack -L", "conntrack -S", "ipset list -o save", "ipvsadm -Ln", "nft -j list ruleset"]);
    expect(["nft", "ipset", "ipvs", "conntrack"].map((id) => reading(capture, id)?.complete)).toEqual([true, true, true, true]);
    expect(["iptables", "ebtables"].map((id) => reading(capture, id)?.reason)).toEqual([
      "iptables-save is not installed on the node",
      "ebtables-save is not installed on the node",
    ]);
  });

  const ALL = ["conntrack", "ebtables-save", "ip6tables-save", "ipset", "iptables-save", "ipvsadm", "nft", "ss"];
  test.each<[string, Kernel]>([
    ["everything is loaded", { loaded: EVERYTHING, builtin: [] }],
    ["everything is built in", { loaded: ["virtio_net"], builtin: EVERYTHING }],
    ["the kernel loads no modules", {}],
    ["nothing was ever loaded, and there is no folder to load from", { loaded: [] }],
  ])("%s: all is run", (_name, kernel) => {
    const { capture, ran } = collect(kernel, NFT_TOOLS, shell);
    expect(ran).toEqual(ALL);
    expect([notRun(capture), capture.notCollected]).toEqual([[], []]);
    expect(readFileSync(join(directory, "ss"), "utf8").trim()).toBe("");
    // the table of connections is read once
    expect(capture.outputs.map(({ command }) => command)).not.toContain("cat /proc/net/nf_conntrack");
  });

  test("where it cannot be told what is built in, nothing is run and nothing concluded", () => {
    const { capture, ran } = collect({ loaded: ["virtio_net"] }, NFT_TOOLS, shell);
    expect(ran).toEqual(["ss"]);
    expect(notRun(capture)).toEqual([]);
    expect(reading(capture, "nft")).toMatchObject({ status: "absent", complete: false, reason: wouldLoad("nf_tables") });
    expect(capture.notCollected.map(({ command }) => command)).toContain("iptables-save -c (second sample)");
  });

  test("connections where only the way to them would be loaded are read from /proc", () => {
    const { capture, ran } = collect({ loaded: ["nf_conntrack"], builtin: [] }, { conntrack: "conntrack" }, shell);
    expect(ran).toEqual([]);
    expect(capture.notCollected.find(({ command }) => command === "conntrack -L")?.reason).toBe(wouldLoad("nf_conntrack_netlink"));
    expect(reading(capture, "conntrack")?.value).toMatchObject({ rows: [{ source: "192.0.2.1" }] });
    expect(reading(capture, "conntrack")?.complete).toBe(true);
  });

  test("connections where the tool is not installed are read from /proc", () => {
    const { capture } = collect({ loaded: EVERYTHING, builtin: [] }, {}, shell);
    expect(reading(capture, "conntrack")?.value).toMatchObject({ rows: [{ source: "192.0.2.1" }] });
  });

  test.each(["xtables-legacy-multi", "xtables-multi"])("%s loads nothing and is always run", (file) => {
    const { ran } = collect(BARE, { "iptables-save": file, "ip6tables-save": file }, shell);
    expect(ran).toEqual(["ip6tables-save", "iptables-save"]);
  });

  test("a variant that is not known is not run", () => {
    const { capture, ran } = collect(BARE, { "iptables-save": "iptables-wrapper" }, shell);
    expect(ran).toEqual([]);
    expect(reading(capture, "iptables")).toMatchObject({ status: "absent", reason: wouldLoad("nf_tables") });
  });

  test("rules of the old interface that only a warning would tell of: no conclusion without the tool that lists them", () => {
    const kernel = { ...BARE, legacyTables: ["filter", "nat"] };
    const { capture } = collect(kernel, { "iptables-save": "xtables-nft-multi" }, shell);
    expect(reading(capture, "iptables")).toMatchObject({ status: "absent", reason: wouldLoad("nf_tables") });
  });

  test("rules of the old interface are listed by their own tool", () => {
    const kernel = { ...BARE, legacyTables: ["filter", "nat"] };
    const { capture, ran } = collect(kernel, { "iptables-save": "xtables-nft-multi", "iptables-legacy-save": "xtables-legacy-multi" }, shell);
    expect(ran).toEqual(["iptables-legacy-save"]);
    expect(notRun(capture)).toContain("iptables-save -c");
  });

  test("nft_compat is loaded for rules: without it, only tables that hold none of iptables' are read", () => {
    const { ran } = collect({ loaded: ["nf_tables"], builtin: [] }, NFT_TOOLS, shell);
    expect(ran).toEqual(["ebtables-save", "ip6tables-save", "iptables-save", "nft", "ss"]);
  });

  test("nft_compat is loaded for rules: a table of iptables is not read without it", () => {
    const kernel = { loaded: ["nf_tables"], builtin: [], nftTables: ["inet firewalld", "ip filter"] };
    const { capture, ran } = collect(kernel, NFT_TOOLS, shell);
    expect(ran).toEqual(["ebtables-save", "ip6tables-save", "nft", "ss"]);
    expect(capture.notCollected.find(({ command }) => command === "iptables-save -c")?.reason).toBe(wouldLoad("nft_compat"));
  });

  test("nft_compat is loaded for rules: which tables there are is not known without nft", () => {
    const { ran } = collect({ loaded: ["nf_tables"], builtin: [] }, { "iptables-save": "xtables-nft-multi" }, shell);
    expect(ran).toEqual([]);
  });
});

describe("the list of commands", () => {
  test("what stands in for another command stands behind it, is of one sample and needs no module", () => {
    for (const { commands } of facts) {
      commands.forEach((command, i) => {
        if (command.instead === undefined) return;
        expect([commands[i - 1]?.samples ?? 1, command.samples ?? 1, command.modules, command.each]).toEqual([1, 1, undefined, undefined]);
      });
    }
  });

  test("every program that asks netfilter or IPVS names its modules", () => {
    const asks = /^(?:nft|ipset|conntrack|ipvsadm|(?:ip6?|eb|arp)tables(?:-nft)?(?:-save)?)$/;
    const open = real.commands.filter(({ argv, modules }) => asks.test(argv[0] ?? "") && modules === undefined).map(({ argv }) => argv.join(" "));
    expect(open).toEqual([]);
    expect(real.commands.filter(({ modules }) => modules !== undefined).length).toBeGreaterThan(7);
  });
});

const strace = found("strace") && process.getuid?.() === 0 && spawnSync("unshare", ["-n", "true"]).status === 0;
describe.skipIf(!strace)(`what the real programs ask the kernel for${strace ? "" : " (skipped: needs strace and root)"}`, () => {
  /** Kinds of sockets and programs of a whole collection in a fresh network namespace. */
  function watch(kernel: Kernel): { sockets: string[]; loaders: string[]; capture: Capture } {
    const log = join(directory, "strace");
    const env = { PATH: process.env["PATH"] ?? "", TMPDIR: directory, NETCHECK_nonce: nonce };
    const input = on(kernel, scripts.collect(real).text).replaceAll(join(directory, "net/"), "/proc/net/");
    const { status, stdout } = spawnSync("unshare", ["-n", "strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=socket,execve", "-o", log, "dash", "-s"], {
      input,
      env,
      encoding: "utf8",
      maxBuffer: 256 << 20,
    });
    expect(status).toBe(0);
    const calls = readFileSync(log, "utf8");
    const sockets = [...calls.matchAll(/socket\((AF_\w+), ([^,]+), (\w+)/g)].map(
      ([, family, , protocol]) => (family === "AF_NETLINK" ? protocol : family) as string,
    );
    const loaders = [...calls.matchAll(/execve\("([^"]*\/(?:modprobe|insmod|kmod))"/g)].map(([, path]) => path as string);
    return { sockets: [...new Set(sockets)].sort(), loaders, capture: scripts.readCapture(stdout, { ...about, plan: real }) };
  }

  test("no netfilter, no socket diagnosis, no modprobe, where the kernel has none of it", () => {
    const { sockets, loaders, capture } = watch(BARE);
    // builtin everywhere (ipv6 is loaded by systemd before anything else)
    expect(["AF_INET", "AF_INET6", "AF_UNIX", "NETLINK_GENERIC", "NETLINK_ROUTE"]).toEqual(expect.arrayContaining(sockets));
    expect(loaders).toEqual([]);
    expect(notRun(capture)).toContain("nft -j list ruleset");
    expect(capture.notCollected).toEqual([]);
  });

  test("they are asked for where the kernel has it: the watch would see it", () => {
    const { sockets, capture } = watch({ loaded: EVERYTHING, builtin: [] });
    expect(sockets).toEqual(expect.arrayContaining(["NETLINK_NETFILTER", "NETLINK_SOCK_DIAG"]));
    expect(notRun(capture)).toEqual([]);
  });
});

describe("a list of loaded modules that a person pasted", () => {
  const LSMOD = "Module                  Size  Used by\n";
  const pasted = (outputs: readonly (readonly [string, string])[]) =>
    readFacts(
      captureOf(
        { schema: "netcheck.capture/1", target: { name: "node1" }, outputs: outputs.map(([command], i) => ({ command, file: String(i) })) },
        (file) => ({ text: outputs[Number(file)]?.[1] ?? "", truncated: false }),
      ),
    ).readings;

  test("nfnetlink without nf_tables and ip_set: both are modules and not loaded, so there are no tables and no sets", () => {
    const readings = pasted([
      ["lsmod", `${LSMOD}nfnetlink              20480  1 nf_conntrack_netlink\nip_tables              32768  1 iptable_filter\n`],
      ["nft list ruleset", "bash: nft: command not found\n"],
    ]);
    expect(readings.get("nft")).toMatchObject({ status: "read", complete: true, value: { tables: [], chains: [], rows: [], sets: [] } });
    expect(readings.get("ipset")).toMatchObject({ status: "read", complete: true, value: { sets: [], members: [] } });
  });

  test.each([
    ["nf_tables is loaded", "lsmod", `${LSMOD}nfnetlink              20480  2 nf_tables\nnf_tables             266240  0\n`],
    ["nfnetlink may be built in, and nf_tables with it", "lsmod", `${LSMOD}ip_tables              32768  1 iptable_filter\n`],
    ["only some modules were shown", "lsmod | grep netlink", "nfnetlink              20480  1 nf_conntrack_netlink\n"],
    ["/sys/module lists nfnetlink when it is built in, too", "ls /sys/module", "ip_tables\nnfnetlink\n"],
    ["a line was not understood", "lsmod", `${LSMOD}nfnetlink              20480  1\nnf_tab…\n`],
  ])("no conclusion: %s", (_why, command, text) => {
    expect(pasted([[command, text]]).get("nft")?.status).toBe("absent");
  });

  test("what nft said is never replaced", () => {
    const readings = pasted([
      ["lsmod", `${LSMOD}nfnetlink              20480  1 nf_conntrack_netlink\n`],
      ["nft list ruleset", "table inet filter {\n}\n"],
    ]);
    expect(readings.get("nft")?.value).toMatchObject({ tables: [{ family: "inet", name: "filter" }] });
  });
});
