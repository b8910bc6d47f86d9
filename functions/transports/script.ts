import { createHash } from "node:crypto";
import { constants, gunzipSync } from "node:zlib";
import type { Capture, CaptureAbout, Command, FixPlan, FixRun, Output, Plan, Script, ScriptParameter, Scripts } from "../triage/ports.ts";
import { type AnswerRecord, readLongAnswer } from "./long-answer.ts";
import { secretsForSed } from "./secrets.ts";

/**
 * Plan → one POSIX sh script → capture. The script is the same text for every run of a runbook: constant commands, nothing substituted. It needs
 * sh and the usual small tools (dash, busybox), makes one round trip, changes nothing, and prints one frame:
 *
 *     NETCHECK/1 <nonce> collect <gz|raw> <bytes> <sha256|->
 *     <payload>
 *     NETCHECK/1 <nonce> end
 *
 * The header comes first, so that a cut is noticed; the nonce comes from us, so that nothing a node prints can pass for a frame. The payload holds a
 * record per output: `#<nonce> <command> <each> <sample> <exit> <start cs> <duration cs> <stdout bytes> <stderr bytes> <truncated 0|1>`, then the bytes.
 */

const HEX = "[0-9a-f]{32}";
const NONCE: ScriptParameter = { pattern: `^${HEX}$`, description: "Frames the output" };
const JOB: ScriptParameter = { pattern: "^[A-Za-z0-9_-]{1,80}$", description: "Names the job; its run marker on the node" };
/** More than this is never unpacked: a node cannot blow up our memory. */
const MAX_PAYLOAD = 256 * 1024 * 1024;
/** More than this is never collected, however many commands have much to say: it is held in the node's temporary folder, which may be its memory. */
const MAX_COLLECTED = 128 * 1024 * 1024;

const PRELUDE = `# shellcheck shell=sh
set -u
set -f
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
nonce=\${NETCHECK_nonce:?}
unfit() { printf 'netcheck: %s\\n' "$1" >&2; exit 69; }
for tool in cat grep head mktemp mv rm sed wc; do
  command -v "$tool" >/dev/null 2>&1 || unfit "this node has no $tool"
done
# where /tmp is full or read-only, what lies in memory may do
set -- /tmp /run /dev/shm
if [ -n "\${TMPDIR-}" ]; then set -- "$TMPDIR"; fi
dir=
trap 'if [ -n "$dir" ]; then rm -rf "$dir"; fi' EXIT
trap 'exit 143' HUP INT TERM PIPE
for place; do
  dir=$(mktemp -d "$place/netcheck.XXXXXX") || continue
  # a full disk takes folders, but no bytes
  if printf '%8192s' '' >"$dir/payload" 2>/dev/null; then break; fi
  rm -rf "$dir"
  dir=
  echo "netcheck: no space left on device: $place" >&2
done
if [ -z "$dir" ]; then exit 70; fi
: >"$dir/payload"
size() { bytes=$(wc -c <"$1"); bytes=$((bytes)); }
# prints what was gathered as one frame
frame() {
  encoding=raw
  if command -v gzip >/dev/null 2>&1 && command -v base64 >/dev/null 2>&1 && gzip -c "$dir/payload" | base64 >"$dir/encoded" && [ -s "$dir/encoded" ]; then
    encoding=gz
    mv "$dir/encoded" "$dir/payload"
  elif command -v tr >/dev/null 2>&1 && tr -c '\\11\\12\\15\\40-\\176' '?' <"$dir/payload" >"$dir/encoded"; then
    # byte for byte, so the lengths hold: what is not text does not survive wires that carry text
    mv "$dir/encoded" "$dir/payload"
  fi
  size "$dir/payload"
  sum=-
  if command -v sha256sum >/dev/null 2>&1; then sum=$(sha256sum <"$dir/payload"); sum=\${sum%% *}; fi
  printf 'NETCHECK/1 %s %s %s %s %s\\n' "$nonce" "$1" "$encoding" "$bytes" "$sum"
  cat "$dir/payload"
  printf '\\nNETCHECK/1 %s end\\n' "$nonce"
}
`;

/** What a script keeps of what programs say: not too much, and no secrets. @param more patterns besides the usual; the usual ones come first */
const keeping = (more: readonly string[] = []): string => `redactions=${quote(secretsForSed(more))}
# first COUNT: at most that many bytes of standard input; not every head knows -c
if [ "$(printf abc | head -c 2 2>/dev/null)" = ab ]; then
  first() { head -c "$1"; }
elif [ "$(printf abc | dd bs=1 count=2 2>/dev/null)" = ab ]; then
  first() { dd bs=1 count="$1" 2>/dev/null; }
else
  unfit "this node's head does not know -c, and there is no dd"
fi
case $(printf 'A Secret: abcdef' | sed -E -e "$redactions" 2>/dev/null) in '' | *abcdef*) unfit "this node's sed cannot black out secrets" ;; esac
# redact NAME: "$dir/NAME" without secrets, as "$dir/NAME.kept"; what cannot be redacted is withheld
redact() {
  if sed -E -e "$redactions" "$dir/$1" >"$dir/$1.kept" 2>/dev/null; then return 0; fi
  : >"$dir/$1.kept"
  return 1
}
`;

/** @param enter what stands before each command, to run it elsewhere; "" or words with a blank behind them */
const collecting = (enter: string): string => `
# centiseconds since boot, without a fork; 1\${up#*.} - 100 because 08 is no number
now() { read -r up _ </proc/uptime; now=$((\${up%.*} * 100 + 1\${up#*.} - 100)); }
# what the node is there for comes first; what we start inherits it. Not 19: a node that is very busy is one to get an answer from
renice -n 10 -p "$$" >/dev/null 2>&1
ionice -c 3 -p "$$" >/dev/null 2>&1
# a busybox that prefers programs of its own to the node's says no path; env, by its path, starts the node's
node=
case $(command -v wc) in /*) ;; *) if [ -x /usr/bin/env ]; then node=/usr/bin/env; fi ;; esac
# watched SECONDS PROGRAM ARGUMENTS…: for nodes without GNU timeout
watched() {
  allowed=$1
  shift
  "$@" </dev/null &
  child=$!
  (
    sleep "$allowed" &
    nap=$!
    trap 'kill "$nap"; exit' TERM
    wait "$nap"
    kill -9 "$child"
  ) </dev/null >/dev/null 2>&1 3>&- &
  guard=$!
  wait "$child"
  ended=$?
  kill "$guard" 2>/dev/null
  return "$ended"
}
# busybox's timeout would do, but it holds the output open for up to a second after the command has ended
limit="watched $seconds"
if timeout --version >/dev/null 2>&1 && timeout -k 1 1 true 2>/dev/null; then limit="timeout -k 2 $seconds"; fi
total=0
now
began=$now
deadline=$((began + budget * 100))
# begin: an empty record; says by $code whether there is room for one more
begin() {
  for name in out err out.kept err.kept; do : >"$dir/$name"; done
  code=0
  now
  started=$now
  if [ "$now" -ge "$deadline" ]; then
    code=-1
  elif [ "$total" -ge "$whole" ]; then
    code=-2
  fi
}
# record INDEX EACH SAMPLE: what "$dir/out", "$dir/err" and $code hold. A program is started where there is work for it: on a busy node each one counts
record() {
  truncated=0 printed=0 out=0 err=0
  now
  if [ -s "$dir/out" ]; then redact out || truncated=1; fi
  if [ -s "$dir/err" ]; then redact err || truncated=1; fi
  if [ -s "$dir/out" ] || [ -s "$dir/err" ]; then sizes; fi
  if [ "$printed" -ge "$cap" ]; then truncated=1; fi
  total=$((total + out + err))
  printf '#%s %s %s %s %s %s %s %s %s %s\\n' "$nonce" "$1" "$2" "$3" "$code" "$((started - began))" "$((now - started))" "$out" "$err" "$truncated" >>"$dir/payload"
  if [ "$((out + err))" -gt 0 ]; then cat "$dir/out.kept" "$dir/err.kept" >>"$dir/payload"; fi
}
sizes() {
  # shellcheck disable=SC2046
  set -- $(cd "$dir" && wc -c out out.kept err.kept)
  printed=$((\${1:-0})) out=$((\${3:-0})) err=$((\${5:-0}))
}
# run INDEX EACH SAMPLE PROGRAM ARGUMENTS…
run() {
  index=$1 each=$2 sample=$3
  shift 3
  begin
  if [ "$code" -eq 0 ]; then
    if command -v "$1" >/dev/null 2>&1; then
      # shellcheck disable=SC2086
      { { $limit $node ${enter}"$@" </dev/null 2>&3; echo "$?" >"$dir/code"; } | first "$cap" >"$dir/out"; } 3>&1 | { first 4000 >"$dir/err"; if [ -s "$dir/err" ]; then cat >/dev/null; fi; }
      read -r code <"$dir/code"
      # one timeout says 124, another 143; either way there may be more to it
      if [ "$code" -eq 143 ]; then code=124; fi
    else
      code=127
    fi
  fi
  record "$index" "$each" "$sample"
}
`;

/**
 * Finds a process of the pod by the cgroups that the kubelet names after its uid (cgroupfs: "pod<uid>", systemd: "pod<uid with _>.slice"), and holds its network
 * namespace open as file 9, so that a pod that ends, or a process id that is used again, cannot lead elsewhere. Only the network namespace is entered: the
 * files, and the programs that run, stay the node's. The one file of the pod that is read, resolv.conf, is taken from the container runtime's own folder and
 * not through the pod's file system, where a link of the pod's could lead to any file of the node.
 */
const ENTER = `uid=\${NETCHECK_uid:?}
case $uid in *[!0-9a-f-]*) unfit 'that is not the uid of a pod' ;; esac
for tool in nsenter readlink; do
  command -v "$tool" >/dev/null 2>&1 || unfit "this node has no $tool, so the network of the pod cannot be entered"
done
pattern="[/-]pod($uid|$(printf %s "$uid" | sed 's/-/_/g'))(\\.slice)?(/|$)"
members() (
  set +f
  cd /proc && grep -lsE "$pattern" [0-9]*/cgroup
)
# belongs PID: the first cgroup of a pod on its path is this one's: what a pod makes below its own may have any name
belongs() { sed -E 's#([/-]pod[0-9a-f_-]{32,36})(\\.slice)?(/.*)?$#\\1/#' "/proc/$1/cgroup" 2>/dev/null | grep -qE "$pattern"; }
own=$(readlink /proc/self/ns/net)
seen=
pid=
resolv=
for file in $(members); do
  one=\${file%/cgroup}
  belongs "$one" || continue
  seen=$one
  net=$(readlink "/proc/$one/ns/net" 2>/dev/null)
  if [ -n "$net" ] && [ "$net" != "$own" ] && { [ -z "$pid" ] || [ "$one" -lt "$pid" ]; }; then pid=$one; fi
  if [ -n "$resolv" ]; then continue; fi
  id=$(sed -n 's#.*/\\([0-9a-f]\\{64\\}\\)/\\(userdata/\\)\\{0,1\\}resolv\\.conf /etc/resolv\\.conf .*#\\1#p' "/proc/$one/mountinfo" 2>/dev/null | head -n 1)
  if [ -z "$id" ]; then continue; fi
  for place in /var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes /var/lib/rancher/k3s/agent/containerd/io.containerd.grpc.v1.cri/sandboxes \\
    /var/lib/rancher/rke2/agent/containerd/io.containerd.grpc.v1.cri/sandboxes /var/snap/microk8s/common/var/lib/containerd/io.containerd.grpc.v1.cri/sandboxes \\
    /var/lib/k0s/containerd/io.containerd.grpc.v1.cri/sandboxes /var/lib/docker/containers /run/containers/storage/overlay-containers; do
    for name in "$place/$id/resolv.conf" "$place/$id/userdata/resolv.conf"; do
      if [ -f "$name" ] && [ ! -L "$name" ]; then resolv=$name; fi
    done
  done
done
[ -n "$seen" ] || unfit 'no process of the pod runs on this node: its containers have not started, or have ended, or the pod has moved'
[ -n "$pid" ] || unfit "the pod has no network of its own here: its processes are in the node's"
command exec 9<"/proc/$pid/ns/net" || unfit 'the network of the pod could not be opened: it has just ended'
if ! belongs "$pid" || [ "$(readlink /proc/self/fd/9)" = "$own" ]; then unfit 'the pod ended while it was looked for'; fi
`;

/** What {@link ENTER} held open. */
const IN_POD = "nsenter --net=/proc/self/fd/9 ";

const POD_FILE = `# pod_resolv_conf INDEX
pod_resolv_conf() {
  begin
  if [ "$code" -eq 0 ]; then
    if [ -n "$resolv" ]; then
      first "$cap" <"$resolv" >"$dir/out"
    else
      echo "netcheck knows no place where this container runtime keeps the pod's resolv.conf" >"$dir/err"
      code=1
    fi
  fi
  record "$1" - 1
}
`;

/** As Kubernetes makes them; of a static pod the hash of its file. */
const UID: ScriptParameter = {
  pattern: "^(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$",
  description: "The uid of the pod whose network is looked at",
};

/** For commands that would load kernel modules. What is read must stay as it is: a module stays loaded, and hooks into the path of packets. */
const MODULES = `# in_kernel MODULE: 0 it is there, loaded or built in, or this kernel loads none; 1 it would have to be loaded; 2 that cannot be told
in_kernel() {
  if [ -d "/sys/module/$1" ] || [ ! -e /proc/modules ] || grep -q "^$1 " /proc/modules; then return 0; fi
  # a built-in module without parameters is in this list only
  if read -r release </proc/sys/kernel/osrelease && [ -r "/lib/modules/$release/modules.builtin" ]; then
    grep -q "/$1[.]ko" "/lib/modules/$release/modules.builtin"
    return
  fi
  # no folder to load from, and none was ever loaded: all is built in. In a container the folder may be on the node only
  if [ ! -e "/lib/modules/$release" ] && ! grep -q . /proc/modules; then return 0; fi
  return 2
}
# alone PROGRAM: no table of nftables is one that PROGRAM reads rules of; it needs nft_compat only for rules
alone() {
  case $1 in ebtables-save) family=bridge ;; ip6tables-save) family=ip6 ;; *) family=ip ;; esac
  command -v nft >/dev/null 2>&1 && tables=$($limit nft list tables 2>/dev/null </dev/null) || return 1
  ! printf '%s\\n' "$tables" | grep -qE "^table $family (filter|nat|mangle|raw|security|broute)$"
}
# hidden PROGRAM: there are rules of the old interface that PROGRAM's nftables variant only warns of, and nothing else lists them
hidden() {
  case $1 in
  ebtables-save) grep -q '^ebtables ' /proc/modules ;;
  *) ! command -v "\${1%-save}-legacy-save" >/dev/null 2>&1 && grep -q . "/proc/net/\${1%tables-save}_tables_names" 2>/dev/null ;;
  esac
}
# using "MODULE…" run INDEX EACH SAMPLE PROGRAM ARGUMENTS…: runs it unless that would load one of the modules. If the first, which holds what is
# listed, is not there, that is the answer (-3); if it cannot be told, or the way to it is not there, there is none (-4)
using() {
  modules=$1 holds=\${1%% *} program=$6 blocked=0
  shift
  file=
  if command -v "$program" >/dev/null 2>&1; then file=$(readlink -f "$(command -v "$program")" 2>/dev/null) || file=; fi
  case $program:$file in
  # these ask the old interface, and only for tables that are there
  *tables-save:*/xtables-legacy-multi | *tables-save:*/xtables-multi | *tables-save:*/ip*tables-multi* | *tables-save:*/ebtables-legacy* | *:*/ebtables-save) modules= ;;
  *tables-save:) command -v "$program" >/dev/null 2>&1 || modules= ;;
  esac
  for module in $modules; do
    in_kernel "$module"
    case $?:$module:$program:$file in
    0:*) continue ;;
    1:"$holds":*tables-save:*nft*) if hidden "$program"; then blocked=-4; else blocked=-3; fi ;;
    *:nft_compat:*) alone "$program" || blocked=-4 ;;
    *:*tables-save:*) blocked=-4 ;;
    1:"$holds":*) blocked=-3 ;;
    *) if command -v "$program" >/dev/null 2>&1; then blocked=-4; fi ;;
    esac
    if [ "$blocked" -ne 0 ]; then break; fi
  done
  if [ "$blocked" -eq 0 ]; then
    "$@"
  else
    begin
    if [ "$code" -eq 0 ]; then
      code=$blocked
      printf %s "$module" >"$dir/err"
    fi
    record "$2" "$3" "$4"
  fi
}
`;

/** For commands that are run where another one could not be. */
const INSTEAD = `# instead run INDEX …: runs it if what was to be run just now is not installed or would have loaded a module
instead() {
  if [ "$code" -eq 127 ] || [ "$code" -eq -4 ]; then
    "$@"
  else
    begin
    if [ "$code" -eq 0 ]; then code=-5; fi
    record "$2" "$3" "$4"
  fi
}
`;

/** ss asks the kernel through modules. Where they are not loaded it reads /proc/net, which has the same sockets, without backlogs and drops. */
const SOCKETS = `in_kernel tcp_diag || { PROC_NET_TCP=/proc/net/tcp; export PROC_NET_TCP; }
in_kernel udp_diag || { PROC_NET_UDP=/proc/net/udp; export PROC_NET_UDP; }
`;

/** For commands that say which tools a node has. */
const TOOLS = `# tools INDEX NAME…: where each tool is
tools() {
  index=$1
  shift
  begin
  for tool; do command -v "$tool"; done >"$dir/out"
  record "$index" - 1
}
`;

/** For commands that are run once for each of something. */
const EACH = `# each INDEX SAMPLE PATTERN SNIPPET: sets $ids to the lines that the snippet prints and that are plain words of the pattern, at most 16
each() {
  ids=
  begin
  if [ "$code" -ne 0 ]; then
    record "$1" - "$2"
  else
    # shellcheck disable=SC2086
    ids=$($limit $node sh -c "$4" </dev/null 2>/dev/null | grep -E "^($3)$" | head -n 16)
  fi
}
`;

/** What may stand for `{}`: nothing that sh takes apart, and nothing that a program takes for an option. */
const EACH_OF = { number: "[0-9]{1,10}", interface: "[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}" } as const;

/** Quotes a constant word for sh. */
function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function collect(plan: Plan): Script {
  const line = (command: Command, index: number, sample: number): string => {
    if (plan.inPod === true && command.argv.join(" ") === "cat /etc/resolv.conf") return `pod_resolv_conf ${index}`;
    if (command.argv[0] === "command") return `tools ${index} ${command.argv.slice(2).map(quote).join(" ")}`;
    const guard = `${command.instead === true ? "instead " : ""}${command.modules === undefined ? "" : `using ${quote(command.modules.join(" "))} `}`;
    if (command.each === undefined) return `${guard}run ${index} - ${sample} ${command.argv.map(quote).join(" ")}`;
    const argv = command.argv.map((word) => (word === "{}" ? '"$id"' : quote(word))).join(" ");
    return `each ${index} ${sample} ${quote(EACH_OF[command.eachOf ?? "number"])} ${quote(command.each)}\nfor id in $ids; do run ${index} "$id" ${sample} ${argv}; done`;
  };
  const indexed = plan.commands.map((command, index) => ({ command, index }));
  const sampled = indexed.filter(({ command }) => command.samples === 2);
  const body = [
    ...sampled.map(({ command, index }) => line(command, index, 1)),
    "now",
    "first=$now",
    ...indexed.filter(({ command }) => command.samples !== 2).map(({ command, index }) => line(command, index, 1)),
  ];
  if (sampled.length > 0) {
    body.push(
      "now",
      `rest=$((${plan.intervalSeconds} * 100 - (now - first)))`,
      'if [ "$rest" -gt 0 ]; then sleep "$((rest / 100)).$(printf %02d "$((rest % 100))")" 2>/dev/null || sleep "$((rest / 100 + 1))"; fi',
      ...sampled.map(({ command, index }) => line(command, index, 2)),
    );
  }
  const settings = `seconds=${plan.timeoutSeconds}\ncap=${plan.maxBytes}\nwhole=${MAX_COLLECTED}\nbudget=${plan.budgetSeconds}\n`;
  const sockets = plan.commands.some((command) => command.argv[0] === "ss");
  const helpers = [
    plan.inPod === true ? POD_FILE : "",
    sockets || plan.commands.some((command) => command.modules !== undefined) ? MODULES : "",
    plan.commands.some((command) => command.instead === true) ? INSTEAD : "",
    plan.commands.some((command) => command.argv[0] === "command") ? TOOLS : "",
    plan.commands.some((command) => command.each !== undefined) ? EACH : "",
    sockets ? SOCKETS : "",
  ].join("");
  return {
    name: `collect-${plan.runbook}`,
    text: `#!/bin/sh\n# netcheck: collects the facts of runbook ${plan.runbook}. Read-only.\n${PRELUDE}${settings}${keeping(plan.redact)}${plan.inPod === true ? ENTER : ""}${collecting(plan.inPod === true ? IN_POD : "")}${helpers}\n${body.join("\n")}\n\nframe collect\n`,
    parameters: { nonce: NONCE, job: JOB, ...(plan.inPod === true ? { uid: UID } : {}) },
    timeoutSeconds: plan.budgetSeconds + plan.timeoutSeconds + 5,
  };
}

/** Where the run marker of a job is. Outlives a reboot, so a fix stays run. The parameter is checked once more: it becomes a path. */
const markerOf = (parameter: "job" | "run"): string => `
runs=/var/lib/netcheck/runs
case \${NETCHECK_${parameter}:?} in *[!A-Za-z0-9_-]*) unfit "that is not a job" ;; esac
marker=$runs/$NETCHECK_${parameter}
`;

/** The same in all fixes and before anything of their own, so that a cluster's policy can pin it once (pod-policy.ts). Functions alone: nothing runs yet. */
const FIX = `
finish() {
  # in one go: nobody ever reads half an outcome
  printf '%s\\n' "$1" >"$marker/outcome.new" && mv "$marker/outcome.new" "$marker/outcome"
  cp "$dir/payload" "$marker/report" 2>/dev/null
  printf '#%s outcome %s %s 0 0\\n' "$nonce" "$1" "$2" >>"$dir/payload"
  frame fix
  exit 0
}
claim() {
  mkdir -p "$runs" 2>/dev/null
  # mkdir is atomic: of two runs of one proposal exactly one gets past this line
  if ! mkdir "$marker" 2>/dev/null; then
    if [ -d "$marker" ]; then
      outcome=unfinished
      if [ -r "$marker/outcome" ]; then read -r outcome <"$marker/outcome"; fi
      printf '#%s outcome %s 1 0 0\\n' "$nonce" "$outcome" >>"$dir/payload"
    else
      printf '#%s outcome unmarked 0 0 0\\n' "$nonce" >>"$dir/payload"
    fi
    frame fix
    exit 0
  fi
}
# step STDIN-FILE|/dev/null PROGRAM ARGUMENTS…: runs it and keeps what it said
step() {
  input=$1
  shift
  "$@" <"$input" >"$dir/out" 2>&1
  code=$?
  printf '%s ' "$@" | first 2000 >"$dir/said"
  first 4000 <"$dir/out" >"$dir/heard"
  redact heard
  size "$dir/said"
  said=$bytes
  size "$dir/heard.kept"
  printf '#%s step %s 0 %s %s\\n' "$nonce" "$code" "$said" "$bytes" >>"$dir/payload"
  cat "$dir/said" "$dir/heard.kept" >>"$dir/payload"
  if [ "$code" -ne 0 ]; then fail; fi
}
`;
/** The first failure ends a fix. */
const STOP = "fail() { finish failed 0; }\n";
/** What cannot be undone does not keep the rest from being undone. */
const GO_ON = "failed=\nfail() { failed=1; }\n";

/** For fixes with lists. */
const LISTS = `nth() { shift "$1"; printf '%s' "$1"; }
`;

/** For fixes whose lists go together: one that is shorter than its partner would become an empty argument. */
const PAIRS = `count() { printf '%s' "$#"; }
# paired LIST LIST: whether both have the same number of words
paired() {
  # shellcheck disable=SC2086
  if [ "$(count $1)" -eq "$(count $2)" ]; then return 0; fi
  echo "the lists are not of the same length: $1 | $2"
  return 1
}
`;

/** Seconds that a fix may take: it is a handful of commands, each over in a moment. */
const FIX_TIMEOUT = 60;

function fix(plan: FixPlan): Script {
  const names = Object.keys(plan.parameters);
  const word = (text: string, each: readonly string[]): string =>
    !text.startsWith("$") ? quote(text) : each.includes(text.slice(1)) ? `"$(nth "$i" $NETCHECK_${text.slice(1)})"` : `"$NETCHECK_${text.slice(1)}"`;
  const steps = plan.steps.map((step, index) => {
    if (step.stdin?.split("\n").includes("NETCHECK_STDIN")) throw new Error(`${plan.name}: a line of stdin is NETCHECK_STDIN`);
    const input = step.stdin === undefined ? "/dev/null" : `"$dir/stdin${index}"`;
    const stdin = step.stdin === undefined ? "" : `cat >"$dir/stdin${index}" <<'NETCHECK_STDIN'\n${step.stdin.trimEnd()}\nNETCHECK_STDIN\n`;
    let command = `# shellcheck disable=SC2086\nstep ${input} ${step.run.map((text) => word(text, step.each ?? [])).join(" ")}`;
    if (step.each !== undefined) command = `i=0\nfor _ in $NETCHECK_${step.each[0]}; do\ni=$((i + 1))\n${command}\ndone`;
    if (step.if !== undefined) command = `if [ -n "$NETCHECK_${step.if}" ]; then\n${command}\nfi`;
    if (step.unless !== undefined) command = `if [ -z "$NETCHECK_${step.unless}" ]; then\n${command}\nfi`;
    return stdin + command;
  });
  const lists = plan.steps.flatMap(({ each = [] }) => each);
  const paired = plan.steps.flatMap(({ each: [head, ...rest] = [] }) => rest.map((name) => `paired "$NETCHECK_${head}" "$NETCHECK_${name}" || exit 1\n`));
  const required = names.map((name) => `: "\${NETCHECK_${name}?}"`).join("\n");
  return {
    name: plan.name,
    text: `#!/bin/sh
# netcheck: a fix. Runs at most once per job.
${PRELUDE}${keeping()}${markerOf("job")}${FIX}
# ${plan.name}
${required}
# sh reads as it goes: a check that it cannot parse ends the script here, before there is a marker
check() {
# shellcheck disable=SC2086
{
${[...new Set(paired)].join("")}${plan.check.trimEnd()}
}
}
claim
${plan.goOn === true ? GO_ON : STOP}${lists.length > 0 ? LISTS : ""}${paired.length > 0 ? PAIRS : ""}
if ! (check) </dev/null >"$dir/out" 2>&1; then
  first 4000 <"$dir/out" >"$dir/heard"
  redact heard
  size "$dir/heard.kept"
  printf '#%s step 1 0 5 %s\\ncheck' "$nonce" "$bytes" >>"$dir/payload"
  cat "$dir/heard.kept" >>"$dir/payload"
  finish refused 0
fi
echo unfinished >"$marker/outcome"
${steps.join("\n")}${plan.goOn === true ? '\nif [ -n "$failed" ]; then finish failed 0; fi' : ""}
finish succeeded 0
`,
    parameters: { nonce: NONCE, job: JOB, ...plan.parameters },
    timeoutSeconds: FIX_TIMEOUT,
    changes: true,
  };
}

const fixStatus: Script = {
  name: "fix-status",
  text: `#!/bin/sh
# netcheck: says how an earlier fix run went. Read-only.
${PRELUDE}${markerOf("run")}outcome=none
if [ -d "$marker" ]; then
  outcome=unfinished
  if [ -r "$marker/outcome" ]; then read -r outcome <"$marker/outcome"; fi
fi
printf '#%s outcome %s 1 0 0\\n' "$nonce" "$outcome" >>"$dir/payload"
frame status
`,
  parameters: { nonce: NONCE, job: JOB, run: { ...JOB, description: "The job whose marker to read" } },
  timeoutSeconds: 20,
};

interface Frame {
  readonly payload: Buffer;
  /** True if the end is missing or the payload is not what the node sent. */
  readonly cut: boolean;
}

/** Finds our frame. Throws if there is none: then nothing at all is known. */
function unframe(stdout: string, nonce: string, kind: string): Frame {
  const start = stdout.indexOf(`NETCHECK/1 ${nonce} ${kind} `);
  const lineEnd = start === -1 ? -1 : stdout.indexOf("\n", start);
  const header =
    start === -1
      ? null
      : /^NETCHECK\/1 \S+ \S+ (gz|raw) (\d{1,12}) ([0-9a-f]{64}|-)$/.exec(stdout.slice(start, lineEnd === -1 ? undefined : lineEnd).trimEnd());
  if (header === null) {
    const said = stdout.trim().slice(0, 200);
    throw new Error(`the node sent no result frame${said === "" ? " (nothing at all)" : `; it said: ${said}`}`);
  }
  const [, encoding, size, sum] = header as unknown as [string, string, string, string];
  const rest = lineEnd === -1 ? Buffer.alloc(0) : Buffer.from(stdout.slice(lineEnd + 1));
  const bytes = rest.subarray(0, Number(size));
  const short = bytes.length < Number(size);
  if (!short && sum !== "-" && createHash("sha256").update(bytes).digest("hex") !== sum)
    throw new Error("the node's answer was changed on its way: its checksum does not match");
  // without a checksum the end line must be where it belongs
  const cut = short || (sum === "-" && !rest.subarray(bytes.length).toString("latin1", 0, 64).startsWith(`\nNETCHECK/1 ${nonce} end`));
  if (encoding === "raw") return { payload: bytes.subarray(0, MAX_PAYLOAD), cut: cut || bytes.length > MAX_PAYLOAD };
  const compressed = Buffer.from(bytes.toString("latin1"), "base64");
  if (compressed.length === 0) return { payload: compressed, cut: true };
  try {
    return { payload: gunzipSync(compressed, { finishFlush: cut ? constants.Z_SYNC_FLUSH : constants.Z_FINISH, maxOutputLength: MAX_PAYLOAD }), cut };
  } catch (error) {
    throw new Error(`the node's answer could not be unpacked: ${(error as Error).message}`, { cause: error });
  }
}

/** The records of a payload: header words, then two byte strings whose lengths are the words at `lengthsAt` and the next. `cut`: not as the node sent it. */
function* records(payload: Buffer, nonce: string, lengthsAt: number): Generator<AnswerRecord> {
  for (let position = 0; position < payload.length; ) {
    const end = payload.indexOf(10, position);
    if (end === -1) return;
    const words = payload.toString("latin1", position, end).split(" ");
    if (words[0] !== `#${nonce}`) return;
    const [a, b] = [Number(words[lengthsAt]), Number(words[lengthsAt + 1])];
    if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b) || a < 0 || b < 0) return;
    const middle = end + 1 + a;
    const next = middle + b;
    // what follows is another record or nothing; else bytes were lost or added
    const cut = next > payload.length || (next < payload.length && payload.toString("latin1", next, next + nonce.length + 2) !== `#${nonce} `);
    yield { words, first: payload.subarray(end + 1, middle), second: payload.subarray(middle, next), cut };
    position = next;
  }
}

/** What follows the nonce in a record of a collection: index, each, sample, exit code (-1: no time, -2: no room, -3: nothing to list, -4: would load a module, -5: not needed), start, duration, two lengths, truncated. */
const RECORD = /^(\d{1,6}) (-|[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}) ([12]) (-?\d{1,3}) (\d{1,12}) (\d{1,12}) \d{1,12} \d{1,12} ([01])$/;

function readCapture(stdout: string, about: CaptureAbout): Capture {
  const { payload, cut } = unframe(stdout, about.nonce, "collect");
  const gathered = new Gathering(about);
  for (const record of records(payload, about.nonce, 7)) if (!gathered.take(record)) break;
  return gathered.capture(cut);
}

async function readLongCapture(stdout: AsyncIterable<Uint8Array>, about: CaptureAbout): Promise<Capture> {
  const answer = readLongAnswer(stdout, { nonce: about.nonce, kind: "collect", lengthsAt: 7, maxPayload: MAX_PAYLOAD });
  const gathered = new Gathering(about);
  let understood = true;
  for (;;) {
    const next = await answer.next();
    if (next.done === true) return gathered.capture(next.value);
    // to the end, whatever it holds: its checksum is known there
    if (understood) understood = gathered.take(next.value);
  }
}

/** A capture in the making. */
class Gathering {
  readonly #about: CaptureAbout;
  readonly #outputs: Output[] = [];
  readonly #notCollected: { command: string; reason: string }[] = [];
  readonly #seen = new Set<string>();
  #last = -1;

  constructor(about: CaptureAbout) {
    this.#about = about;
  }

  /** False if it is no record of ours: then nothing behind it can be believed. */
  take({ words, first, second, cut }: AnswerRecord): boolean {
    const { plan } = this.#about;
    const header = RECORD.exec(words.slice(1).join(" "));
    if (header === null) return false;
    const [, index, each, sample, code, start, duration, capped] = header as unknown as [string, string, string, string, string, string, string, string];
    const command = plan.commands[Number(index)];
    const key = `${index} ${each} ${sample}`;
    if (command === undefined || this.#seen.has(key)) return true;
    this.#last = Number(index);
    this.#seen.add(key).add(`${index} ${sample}`);
    const argv = command.argv.map((item) => (item === "{}" && each !== "-" ? each : item));
    if (code === "-1" || code === "-2") {
      const limit = code === "-1" ? `time budget of ${plan.budgetSeconds} s` : `limit of ${MAX_COLLECTED / 1024 / 1024} MiB`;
      this.#notCollected.push({ command: argv.join(" "), reason: `the collection's ${limit} was used up` });
      return true;
    }
    if (code === "-5") return true;
    const module = /^[a-z0-9_]{1,55}$/.exec(second.toString("latin1"))?.[0] ?? "that it needs";
    if (code === "-4") {
      const reason = `it was not run: it would load the kernel module ${module}, and netcheck only reads`;
      this.#notCollected.push({ command: `${argv.join(" ")}${sample === "2" ? " (second sample)" : ""}`, reason });
      return true;
    }
    if (code === "-3") {
      const notRun = `the kernel module ${module} is not loaded, so there is nothing to list`;
      const place = { file: `outputs/${fileName(argv, Number(sample))}`, durationMs: Number(duration) * 10, startMs: Number(start) * 10 };
      this.#outputs.push({
        command: argv.join(" "),
        argv,
        ...place,
        text: "",
        exitCode: undefined,
        stderr: "",
        truncated: cut,
        sample: Number(sample),
        notRun,
      });
      return true;
    }
    this.#outputs.push({
      command: argv.join(" "),
      argv,
      file: `outputs/${fileName(argv, Number(sample))}`,
      text: first.toString("utf8"),
      exitCode: Number(code),
      durationMs: Number(duration) * 10,
      startMs: Number(start) * 10,
      stderr: second.toString("utf8"),
      truncated: capped === "1" || cut,
      sample: Number(sample),
    });
    return true;
  }

  /** @param cut the end of the answer is missing */
  capture(cut: boolean): Capture {
    const { plan, target, transport, startedAt, truncated } = this.#about;
    const reason = cut || truncated ? "the transport cut the node's answer off" : "the node's answer does not hold it";
    plan.commands.forEach(({ argv, each, samples = 1 }, index) => {
      const command = argv.join(" ");
      if (each === undefined) {
        if (!this.#seen.has(`${index} 1`)) this.#notCollected.push({ command, reason });
        if (samples === 2 && !this.#seen.has(`${index} 2`)) this.#notCollected.push({ command: `${command} (second sample)`, reason });
      } else if ((cut || truncated) && (this.#last === index || !this.#seen.has(`${index} 1`))) this.#notCollected.push({ command, reason });
    });
    const redacted = this.#outputs.reduce((count, output) => count + output.text.split("[redacted]").length - 1, 0);
    return { target, transport, runbook: plan.runbook, startedAt, redacted, notCollected: this.#notCollected, outputs: this.#outputs };
  }
}

/** A file name that tells the command: "iptables-save_-c.txt". */
function fileName(argv: readonly string[], sample: number): string {
  const name = argv.join("_").replaceAll(/[^A-Za-z0-9_.-]+/g, "-");
  const short = name.length > 80 ? `${name.slice(0, 68)}-${createHash("sha256").update(name).digest("hex").slice(0, 8)}` : name;
  return `${short}${sample === 1 ? "" : `.sample${sample}`}.txt`;
}

const CUT_OFF = "the node's answer was cut off before the outcome";

function readFix(stdout: string, nonce: string): FixRun {
  const { payload } = unframe(stdout, nonce, "fix");
  const steps: FixRun["steps"][number][] = [];
  for (const { words, first, second, cut } of records(payload, nonce, 4)) {
    if (cut) break;
    if (words[1] === "step") steps.push({ command: first.toString("utf8").trim(), exitCode: Number(words[2]), output: second.toString("utf8").trim() });
    else if (words[1] === "outcome") {
      const outcome = words[2] ?? "";
      if (outcome === "unfinished") throw new Error("an earlier run of this proposal was started on the node and never reported how it went");
      if (isOutcome(outcome)) return { outcome, repeated: words[3] === "1", steps };
    }
  }
  throw new Error(CUT_OFF);
}

function isOutcome(word: string): word is FixRun["outcome"] {
  return ["succeeded", "failed", "refused", "unmarked"].includes(word);
}

function readFixStatus(stdout: string, nonce: string): "none" | "unfinished" | FixRun["outcome"] {
  const { payload } = unframe(stdout, nonce, "status");
  for (const { words } of records(payload, nonce, 4)) {
    const outcome = words[2] ?? "";
    if (words[1] === "outcome" && (outcome === "none" || outcome === "unfinished" || isOutcome(outcome))) return outcome;
  }
  throw new Error(CUT_OFF);
}

/** A fix run as a node would report it: what the replay transport answers with. */
export function replayFix(run: FixRun, nonce: string): string {
  const steps = run.steps.map(
    ({ command, exitCode, output }) => `#${nonce} step ${exitCode} 0 ${Buffer.byteLength(command)} ${Buffer.byteLength(output)}\n${command}${output}`,
  );
  const payload = `${steps.join("")}#${nonce} outcome ${run.outcome} ${run.repeated ? 1 : 0} 0 0\n`;
  return `NETCHECK/1 ${nonce} fix raw ${Buffer.byteLength(payload)} -\n${payload}\nNETCHECK/1 ${nonce} end\n`;
}

/** What a run marker says, as a node would report it. */
export function replayFixStatus(outcome: "none" | "unfinished" | FixRun["outcome"], nonce: string): string {
  const payload = `#${nonce} outcome ${outcome} 1 0 0\n`;
  return `NETCHECK/1 ${nonce} status raw ${payload.length} -\n${payload}\nNETCHECK/1 ${nonce} end\n`;
}

/** The one implementation of the port. */
export const scripts: Scripts = { collect, fix, fixStatus, readCapture, readLongCapture, readFix, readFixStatus };
