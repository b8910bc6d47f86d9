import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** What the lab runs, and the Debian package each comes in. */
const tools: Record<string, string> = {
  arping: "iputils-arping",
  bpftool: "bpftool",
  brctl: "bridge-utils",
  busybox: "busybox-static",
  conntrack: "conntrack",
  curl: "curl",
  ebtables: "ebtables",
  findmnt: "util-linux",
  ip: "iproute2",
  iptables: "iptables",
  nc: "netcat-openbsd",
  nft: "nftables",
  nsenter: "util-linux",
  "ovs-vswitchd": "openvswitch-switch",
  perl: "perl-base",
  ping: "iputils-ping",
  sysctl: "procps",
};

function found(tool: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((directory) => {
    try {
      accessSync(join(directory, tool), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function works(...argv: string[]): boolean {
  try {
    execFileSync(argv[0] ?? "", argv.slice(1), { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Why live tests cannot run on this machine, in one line; undefined when they can. */
export function labProblem(): string | undefined {
  if (process.platform !== "linux") return "the lab needs Linux";
  if (process.getuid?.() !== 0) return "the lab needs root";
  const missing = Object.keys(tools).filter((tool) => !found(tool));
  const packages = [...new Set(missing.map((tool) => tools[tool]))];
  if (missing.length > 0) return `the lab needs ${missing.join(", ")}: apt-get install ${packages.join(" ")}`;
  if (!works("unshare", "--net", "--mount", "--uts", "mount", "-t", "sysfs", "sysfs", "/sys")) return "the lab needs network and mount namespaces";
  if (!works("findmnt", "--types", "cgroup2")) return "the lab needs a cgroup2 mount";
  if (!works("bpftool", "prog", "list")) return "the lab needs BPF";
  return undefined;
}

/** For `describe.skipIf`: true = skip. On CI a lab that cannot run is a failure, so this throws there instead. */
export function skipLab(): boolean {
  const problem = labProblem();
  if (problem === undefined) return false;
  if (process.env["CI"] === "true") throw new Error(`lab: could not run on CI: ${problem}`);
  console.warn(`skipped: ${problem}`);
  return true;
}
