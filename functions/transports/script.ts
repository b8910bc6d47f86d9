import { createHash } from "node:crypto";
import { constants, gunzipSync } from "node:zlib";
import type { Capture, Command, FixPlan, FixRun, Output, Plan, Script, ScriptParameter, Scripts } from "../triage/ports.ts";

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

const PRELUDE = `# shellcheck shell=sh
set -u
set -f
umask 077
LC_ALL=C
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL PATH
nonce=\${NETCHECK_nonce:?}
dir=$(mktemp -d "\${TMPDIR:-/tmp}/netcheck.XXXXXX") || exit 70
trap 'rm -rf "$dir"' EXIT
trap 'exit 143' HUP INT TERM
: >"$dir/payload"
# centiseconds since boot, without a fork
now() { read -r up _ </proc/uptime; now=\${up%.*}\${up#*.}; }
size() { bytes=$(wc -c <"$1"); bytes=$((bytes)); }
# prints what was gathered as one frame
frame() {
  encoding=raw
  if command -v gzip >/dev/null 2>&1 && command -v base64 >/dev/null 2>&1 && gzip -c "$dir/payload" | base64 >"$dir/encoded" && [ -s "$dir/encoded" ]; then
    encoding=gz
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

/** What is blacked out before anything leaves the node, whatever printed it: the one choke point. */
const REDACT = [
  "s/(-----BEGIN [A-Z ]*PRIVATE KEY-----).*/\\1[redacted]/",
  "s/(eyJ[A-Za-z0-9_-]{8,}\\.eyJ[A-Za-z0-9_-]{8,}\\.)[A-Za-z0-9_-]*/[redacted]/g",
  "s/(AKIA|ASIA)[A-Z0-9]{16}/[redacted]/g",
  "s/(xox[abeoprs]-)[A-Za-z0-9-]{8,}/[redacted]/g",
  "s/(gh[pousr]_)[A-Za-z0-9]{20,}/[redacted]/g",
  "s/((password|passwd|secret|token|api[_-]?key|access[_-]?key|authorization)[\"']?[[:space:]]*[=:][[:space:]]*[\"']?)(Bearer[[:space:]]+)?[^[:space:]\"',;]{4,}/\\1[redacted]/gI",
].join("\n");

const COLLECT = `
redact() { sed -E -e "$redactions" "$1" >"$dir/redacted" 2>/dev/null && mv "$dir/redacted" "$1"; }
low=
if command -v nice >/dev/null 2>&1; then low='nice -n 19'; fi
if command -v ionice >/dev/null 2>&1 && ionice -c 3 true 2>/dev/null; then low="$low ionice -c 3"; fi
limit=
if timeout -k 1 1 true 2>/dev/null; then limit="timeout -k 2 $seconds"; fi
now
began=$now
deadline=$((began + budget * 100))
# record INDEX EACH SAMPLE: what "$dir/out", "$dir/err" and $code hold
record() {
  truncated=0
  size "$dir/out"
  if [ "$bytes" -gt "$cap" ]; then
    truncated=1
    head -c "$cap" "$dir/out" >"$dir/cut" && mv "$dir/cut" "$dir/out"
  fi
  if [ -s "$dir/out" ]; then redact "$dir/out"; fi
  if [ -s "$dir/err" ]; then head -c 4000 "$dir/err" >"$dir/cut" && mv "$dir/cut" "$dir/err"; redact "$dir/err"; fi
  size "$dir/out"
  out=$bytes
  size "$dir/err"
  printf '#%s %s %s %s %s %s %s %s %s %s\\n' "$nonce" "$1" "$2" "$3" "$code" "$((started - began))" "$((now - started))" "$out" "$bytes" "$truncated" >>"$dir/payload"
  cat "$dir/out" "$dir/err" >>"$dir/payload"
}
# run INDEX EACH SAMPLE PROGRAM ARGUMENTS…
run() {
  index=$1 each=$2 sample=$3
  shift 3
  : >"$dir/out"
  : >"$dir/err"
  now
  started=$now
  if [ "$now" -ge "$deadline" ]; then
    code=-1
  elif ! command -v "$1" >/dev/null 2>&1; then
    code=127
  else
    # shellcheck disable=SC2086
    { $limit $low "$@" </dev/null 2>"$dir/err"; echo "$?" >"$dir/code"; } | head -c "$((cap + 1))" >"$dir/out"
    read -r code <"$dir/code"
  fi
  now
  record "$index" "$each" "$sample"
}
# tools INDEX NAME…: where each tool is
tools() {
  index=$1
  shift
  now
  started=$now
  : >"$dir/err"
  for tool; do command -v "$tool"; done >"$dir/out"
  code=0
  record "$index" - 1
}
# numbers: keeps lines that are a plain number, at most 16
numbers() { grep -E '^[0-9]{1,10}$' | head -n 16; }
`;

/** Quotes a constant word for sh. */
function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function collect(plan: Plan): Script {
  const line = (command: Command, index: number, sample: number): string => {
    if (command.argv[0] === "command") return `tools ${index} ${command.argv.slice(2).map(quote).join(" ")}`;
    if (command.each === undefined) return `run ${index} - ${sample} ${command.argv.map(quote).join(" ")}`;
    const argv = command.argv.map((word) => (word === "{}" ? '"$id"' : quote(word))).join(" ");
    return `for id in $({ ${command.each}; } 2>/dev/null </dev/null | numbers); do run ${index} "$id" ${sample} ${argv}; done`;
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
  const settings = `seconds=${plan.timeoutSeconds}\ncap=${plan.maxBytes}\nbudget=${plan.budgetSeconds}\nredactions=${quote(REDACT)}\n`;
  return {
    name: `collect-${plan.runbook}`,
    text: `#!/bin/sh\n# netcheck: collects the facts of runbook ${plan.runbook}. Read-only.\n${PRELUDE}${settings}${COLLECT}\n${body.join("\n")}\n\nframe collect\n`,
    parameters: { nonce: NONCE, job: JOB },
    timeoutSeconds: plan.budgetSeconds + plan.timeoutSeconds + 5,
  };
}

/** Where the run markers are. Outlives a reboot, so a fix stays run. */
const MARKERS = "\nruns=/var/lib/netcheck/runs\n";

const FIX = `
finish() {
  printf '%s\\n' "$1" >"$marker/outcome"
  cp "$dir/payload" "$marker/report" 2>/dev/null
  printf '#%s outcome %s %s 0 0\\n' "$nonce" "$1" "$2" >>"$dir/payload"
  frame fix
  exit 0
}
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
nth() { shift "$1"; printf '%s' "$1"; }
# step STDIN-FILE|/dev/null PROGRAM ARGUMENTS…: runs it and keeps what it said; the first failure ends the fix
step() {
  input=$1
  shift
  "$@" <"$input" >"$dir/out" 2>&1
  code=$?
  printf '%s ' "$@" | head -c 2000 >"$dir/said"
  head -c 4000 "$dir/out" >"$dir/heard"
  size "$dir/said"
  said=$bytes
  size "$dir/heard"
  printf '#%s step %s 0 %s %s\\n' "$nonce" "$code" "$said" "$bytes" >>"$dir/payload"
  cat "$dir/said" "$dir/heard" >>"$dir/payload"
  if [ "$code" -ne 0 ]; then finish failed 0; fi
}
`;

/** Seconds that a fix may take: it is a handful of commands, each over in a moment. */
const FIX_TIMEOUT = 60;

function fix(plan: FixPlan): Script {
  const names = Object.keys(plan.parameters);
  const word = (text: string, each: readonly string[]): string =>
    !text.startsWith("$") ? quote(text) : each.includes(text.slice(1)) ? `"$(nth "$i" $NETCHECK_${text.slice(1)})"` : `"$NETCHECK_${text.slice(1)}"`;
  const steps = plan.steps.map((step, index) => {
    const input = step.stdin === undefined ? "/dev/null" : `"$dir/stdin${index}"`;
    const stdin = step.stdin === undefined ? "" : `cat >"$dir/stdin${index}" <<'NETCHECK_STDIN'\n${step.stdin.trimEnd()}\nNETCHECK_STDIN\n`;
    let command = `# shellcheck disable=SC2086\nstep ${input} ${step.run.map((text) => word(text, step.each ?? [])).join(" ")}`;
    if (step.each !== undefined) command = `i=0\nfor _ in $NETCHECK_${step.each[0]}; do\ni=$((i + 1))\n${command}\ndone`;
    if (step.if !== undefined) command = `if [ -n "$NETCHECK_${step.if}" ]; then\n${command}\nfi`;
    if (step.unless !== undefined) command = `if [ -z "$NETCHECK_${step.unless}" ]; then\n${command}\nfi`;
    return stdin + command;
  });
  const required = names.map((name) => `: "\${NETCHECK_${name}?}"`).join("\n");
  return {
    name: plan.name,
    text: `#!/bin/sh
# netcheck: ${plan.name}. Runs at most once per job.
${PRELUDE}${MARKERS}marker=$runs/\${NETCHECK_job:?}
${required}
${FIX}
check() {
# shellcheck disable=SC2086
{
${plan.check.trimEnd()}
}
}
if ! (check) >"$dir/out" 2>&1; then
  head -c 4000 "$dir/out" >"$dir/heard"
  size "$dir/heard"
  printf '#%s step 1 0 5 %s\\ncheck' "$nonce" "$bytes" >>"$dir/payload"
  cat "$dir/heard" >>"$dir/payload"
  finish refused 0
fi
echo unfinished >"$marker/outcome"
${steps.join("\n")}
finish succeeded 0
`,
    parameters: { nonce: NONCE, job: JOB, ...plan.parameters },
    timeoutSeconds: FIX_TIMEOUT,
  };
}

const fixStatus: Script = {
  name: "fix-status",
  text: `#!/bin/sh
# netcheck: says how an earlier fix run went. Read-only.
${PRELUDE}${MARKERS}marker=$runs/\${NETCHECK_run:?}
outcome=none
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
  // the text came over wires that carry text: what is not UTF-8 was replaced on the way, which only raw frames can suffer from
  const bytes = lineEnd === -1 ? Buffer.alloc(0) : Buffer.from(stdout.slice(lineEnd + 1)).subarray(0, Number(size));
  let cut = bytes.length < Number(size) || (sum !== "-" && createHash("sha256").update(bytes).digest("hex") !== sum);
  if (encoding === "raw") return { payload: bytes.subarray(0, MAX_PAYLOAD), cut: cut || bytes.length > MAX_PAYLOAD };
  const compressed = Buffer.from(bytes.toString("latin1"), "base64");
  try {
    return { payload: gunzipSync(compressed, { finishFlush: cut ? constants.Z_SYNC_FLUSH : constants.Z_FINISH, maxOutputLength: MAX_PAYLOAD }), cut };
  } catch (error) {
    cut = true;
    throw new Error(`the result frame could not be unpacked: ${(error as Error).message}`, { cause: error });
  }
}

/** The records of a payload: header words, then two byte strings whose lengths are the words at `first` and `first + 1`. */
function* records(
  payload: Buffer,
  nonce: string,
  lengthsAt: (words: readonly string[]) => number,
): Generator<{ words: string[]; first: Buffer; second: Buffer; cut: boolean }> {
  for (let position = 0; position < payload.length; ) {
    const end = payload.indexOf(10, position);
    if (end === -1) return;
    const words = payload.toString("latin1", position, end).split(" ");
    if (words[0] !== `#${nonce}`) return;
    const at = lengthsAt(words);
    const [a, b] = [Number(words[at]), Number(words[at + 1])];
    if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b) || a < 0 || b < 0) return;
    const middle = end + 1 + a;
    yield { words, first: payload.subarray(end + 1, middle), second: payload.subarray(middle, middle + b), cut: middle + b > payload.length };
    position = middle + b;
  }
}

function readCapture(
  stdout: string,
  {
    nonce,
    plan,
    target,
    transport,
    startedAt,
    truncated,
  }: { nonce: string; plan: Plan; target: string; transport: string; startedAt: string; truncated: boolean },
): Capture {
  const { payload, cut } = unframe(stdout, nonce, "collect");
  const outputs: Output[] = [];
  const notCollected: { command: string; reason: string }[] = [];
  const seen = new Set<number>();
  for (const { words, first, second, cut: incomplete } of records(payload, nonce, () => 7)) {
    const [, index, each, sample, code, start, duration, , , capped] = words as [
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
      string,
    ];
    const command = plan.commands[Number(index)];
    if (command === undefined) continue;
    seen.add(Number(index));
    const argv = command.argv.map((item) => (item === "{}" ? each : item));
    if (code === "-1") {
      notCollected.push({ command: argv.join(" "), reason: `the collection's time budget of ${plan.budgetSeconds} s was used up` });
      continue;
    }
    outputs.push({
      command: argv.join(" "),
      argv,
      file: `outputs/${fileName(argv, Number(sample))}`,
      text: first.toString("utf8"),
      exitCode: Number(code),
      durationMs: Number(duration) * 10,
      startMs: Number(start) * 10,
      stderr: second.toString("utf8"),
      truncated: capped === "1" || incomplete,
      sample: Number(sample),
    });
  }
  if (cut || truncated) {
    plan.commands.forEach((command, index) => {
      if (!seen.has(index) && command.each === undefined)
        notCollected.push({ command: command.argv.join(" "), reason: "the transport cut the node's answer off" });
    });
  }
  const redacted = outputs.reduce((count, output) => count + output.text.split("[redacted]").length - 1, 0);
  return { target, transport, runbook: plan.runbook, startedAt, redacted, notCollected, outputs };
}

/** A file name that tells the command: "iptables-save_-c.txt". */
function fileName(argv: readonly string[], sample: number): string {
  const name = argv.join("_").replaceAll(/[^A-Za-z0-9_.-]+/g, "-");
  const short = name.length > 80 ? `${name.slice(0, 68)}-${createHash("sha256").update(name).digest("hex").slice(0, 8)}` : name;
  return `${short}${sample === 1 ? "" : `.sample${sample}`}.txt`;
}

function readFix(stdout: string, nonce: string): FixRun {
  const { payload } = unframe(stdout, nonce, "fix");
  const steps: FixRun["steps"][number][] = [];
  for (const { words, first, second } of records(payload, nonce, () => 4)) {
    if (words[1] === "step") steps.push({ command: first.toString("utf8").trim(), exitCode: Number(words[2]), output: second.toString("utf8").trim() });
    else if (words[1] === "outcome") {
      const outcome = words[2] as FixRun["outcome"] | "unfinished";
      if (outcome === "unfinished") throw new Error("an earlier run of this proposal was started on the node and never reported how it went");
      return { outcome, repeated: words[3] === "1", steps };
    }
  }
  throw new Error("the node's answer was cut off before the outcome");
}

function readFixStatus(stdout: string, nonce: string): "none" | "unfinished" | FixRun["outcome"] {
  const { payload } = unframe(stdout, nonce, "status");
  for (const { words } of records(payload, nonce, () => 4)) if (words[1] === "outcome") return words[2] as "none" | "unfinished" | FixRun["outcome"];
  throw new Error("the node's answer was cut off");
}

/** A fix run as a node would report it: what the replay transport answers with. */
export function replayFix(run: FixRun, nonce: string): string {
  const steps = run.steps.map(
    ({ command, exitCode, output }) => `#${nonce} step ${exitCode} 0 ${Buffer.byteLength(command)} ${Buffer.byteLength(output)}\n${command}${output}`,
  );
  const payload = `${steps.join("")}#${nonce} outcome ${run.outcome} ${run.repeated ? 1 : 0} 0 0\n`;
  return `NETCHECK/1 ${nonce} fix raw ${Buffer.byteLength(payload)} -\n${payload}\nNETCHECK/1 ${nonce} end\n`;
}

/** The one implementation of the port. */
export const scripts: Scripts = { collect, fix, fixStatus, readCapture, readFix, readFixStatus };
