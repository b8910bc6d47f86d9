import { plainKubectl } from "./kubectl-command.ts";

/** A command line as people write it, reduced to the program that printed the output. */
export interface CommandLine {
  /** Program (base name) and arguments; empty if nothing could be made of it. */
  readonly argv: readonly string[];
  /** True if the output went through a filter (`| grep`, `| head`), or into a file: it may miss lines. */
  readonly filtered: boolean;
  /** True if it went through `sort` or the like: the lines do not stand in the order in which they were printed. */
  readonly sorted: boolean;
  /** True if it ran in another network namespace than the node's (`ip netns exec pod1 …`, `nsenter -t 4711 -n …`), or looked into one (`cat /proc/4711/net/route`): it says nothing about the node. */
  readonly foreign: boolean;
}

/**
 * Words of a shell command line: quotes and backslashes are honoured, expansions are left as they are, but for alternatives in a path
 * (`/proc/sys/net/ipv4/conf/{all,eth1}/rp_filter`). An unclosed quote ends at the end.
 */
export function words(commandLine: string): string[] {
  const result: string[] = [];
  let word: string | undefined;
  for (let i = 0; i < commandLine.length; i++) {
    const char = commandLine[i] as string;
    if (char === "'" || char === '"') {
      let end = commandLine.indexOf(char, i + 1);
      if (end === -1) end = commandLine.length;
      word = (word ?? "") + commandLine.slice(i + 1, end);
      i = end;
    } else if (char === "\\" && i + 1 < commandLine.length) word = (word ?? "") + (commandLine[++i] as string);
    else if (char === "$" && commandLine[i + 1] === "(") {
      const end = substitutionEnd(commandLine, i);
      word = (word ?? "") + commandLine.slice(i, end);
      i = end - 1;
    } else if (/\s/.test(char)) {
      if (word !== undefined) result.push(word);
      word = undefined;
    } else if (char === "|" || char === ";" || (char === "&" && commandLine[i + 1] === "&")) {
      if (word !== undefined) result.push(word);
      word = undefined;
      FALLBACK.lastIndex = i;
      if (FALLBACK.test(commandLine)) {
        i = FALLBACK.lastIndex - 1;
        continue;
      }
      if (char === "&" || commandLine[i + 1] === char) i++;
      result.push(char);
    } else word = (word ?? "") + char;
  }
  if (word !== undefined) result.push(word);
  return result.flatMap((path) => alternatives(path));
}

/**
 * Where the `$(…)` that begins at `start` ends (exclusive): a pipe or a `;` inside of it belongs to the command whose output is put in its place. Behind the dollar sign
 * where it is not closed within a length that people type.
 */
export function substitutionEnd(line: string, start: number): number {
  const limit = Math.min(line.length, start + MAX_SUBSTITUTION);
  let depth = 0;
  let quote = "";
  for (let i = start + 1; i < limit; i++) {
    const char = line[i] as string;
    if (quote !== "") quote = char === quote ? "" : quote;
    else if (char === "'" || char === '"') quote = char;
    else if (char === "(") depth++;
    else if (char === ")" && --depth === 0) return i + 1;
  }
  return start + 1;
}
const MAX_SUBSTITUTION = 500;

/** What a script does where a command fails, so that it goes on (`|| true`, `|| echo none`): no other command's output. */
const FALLBACK = /\|\|\s{0,8}(?:(?:\/(?:usr\/)?bin\/)?true|:|exit(?: \d{1,3})?|(?:echo|printf)\b[^|;&]{0,200}?)\s{0,8}(?=$|;|&&)/gy;

/** What `|| echo …` at the end of a command line prints where the command fails; "" if there is none, or more than plain words. */
export const fallbackOf = (command: string): string => (command.includes("||") ? (SAID_INSTEAD.exec(command)?.[2] ?? "").trim() : "");
const SAID_INSTEAD = /\|\|\s{0,8}echo\s{1,8}(["']?)([^"'|;&$`<>\\]{1,200})\1\s{0,8}$/;

/** True if the command line says what to do where the command fails: that it printed nothing may be that. */
export const isHushed = (command: string): boolean => command.includes("||");

const ALTERNATIVES = /^(\/[\w./*-]{0,200})\{([\w.*-]{1,40}(?:,[\w.*-]{0,40}){1,20})\}([\w./*{},-]{0,200})$/;

/** The paths that a shell makes of `/a/{b,c}/d`; what has more than two such lists stays as it is. */
function alternatives(word: string, depth = 0): string[] {
  const [, head = "", list = "", tail = ""] = (depth < 2 && word.startsWith("/") ? ALTERNATIVES.exec(word) : null) ?? [];
  return list === "" ? [word] : list.split(",").flatMap((one) => alternatives(`${head}${one}${tail}`, depth + 1));
}

/** What people put before a command on the same line: `date; ethtool -S eth0`, `hostname && ip a`. */
const REMARKS = new Set(["date", "hostname", "echo", "clear", "cd", "export", "set", "true", "sleep"]);

/**
 * What a loop runs again and again (`while true; do date; ethtool -S eth0; sleep 5; done`): the output holds several answers of one command, which only facts
 * of counters can tell apart. A loop with a variable in it runs several commands, and which answer is whose nobody knows, but for ping, which says itself what
 * it sent (`for s in 1472 1372; do ping -M do -s $s 10.0.0.9; done`).
 */
function insideLoop(all: readonly string[]): readonly string[] {
  const start = all.indexOf("do");
  const begin = start === -1 ? -1 : all.findIndex((word) => LOOPS.has(word));
  if (begin === -1 || begin > start || !onlyRemarks(all.slice(0, begin))) return all;
  const inside = all.slice(start + 1).filter((word) => !COUNTS_TURNS.test(word));
  if (inside.some((word, i) => /^ping[46]?$/.test(word) && (i === 0 || inside[i - 1] === ";"))) return inside;
  if (withoutLastWait(inside).some((word) => word.includes("$") && !OF_AWK.test(word))) return all;
  const counts = inside.some((word) => COUNTING.has(baseName(word)) || word === "/proc/net/dev") || STATISTICS.test(inside.join(" "));
  return counts ? inside : all;
}
/** A program of awk, whose columns no loop sets: `{print $1, strtonum("0x"$2)}`. */
const OF_AWK = /^[^$]{0,80}\{(?:[^$]|\$(?:\d|NF\b)){1,400}\}$/;
/** `i=0; while [ $i -lt 3 ]; do nstat -az; sleep 5; i=$((i+1)); done` */
const COUNTS_TURNS = /^\w{1,40}=\$\(\(\w{1,40} ?\+ ?1\)\)$/;
/** True of words in front of a loop that only print what is no output, or set its counter: `date; i=0;`. */
const onlyRemarks = (before: readonly string[]): boolean =>
  before.every((word, i) => (i > 0 && before[i - 1] !== ";") || REMARKS.has(word) || /^\w{1,40}=\d{1,9}$/.test(word));
/** The words of a loop without the test that spares its last turn the wait: `for i in 1 2; do nstat -az; [ $i = 1 ] && sleep 10; done`. */
const withoutLastWait = (all: readonly string[]): readonly string[] => {
  const opens = all.findIndex((word) => word === "[" || word === "[[" || word === "test");
  const waits = all.indexOf("sleep", opens);
  const test = opens === -1 || waits === -1 ? [] : all.slice(opens, waits);
  const alone = test.length <= 8 && !test.includes(";") && /^[&|]$/.test(test.at(-1) ?? "");
  return alone ? [...all.slice(0, opens), ...all.slice(waits)] : all;
};
const STATISTICS = /(?:^|[; ])(?:conntrack (?:\S+ )?-S|ip (?:-\S+ )*-s(?:tat\w*)?) /;
const LOOPS = new Set(["while", "until", "for"]);
const COUNTING = new Set(["ethtool", "netstat", "nstat", "snmp", "softnet_stat", "nf_conntrack", "arp_cache", "ndisc_cache"]);

/** The words behind such remarks. What a remark printed stands in the output as a line that no fact reads. */
function behindRemarks(all: readonly string[]): string[] {
  let rest = [...insideLoop(all)];
  while (REMARKS.has(rest[0] ?? "")) {
    const end = rest.findIndex((word) => word === ";" || word === "&" || word === "|");
    if (end === -1 || rest[end] === "|" || end === rest.length - 1) break;
    rest = rest.slice(end + 1);
  }
  return sinceNoted(rest);
}

/** What people write behind a command to tell which answer it is: `# 10 s later`, `(2nd, +10s)`, `-- sample 1`, `(03:01:10)`. */
const WHICH = String.raw`(?:(?:sample|run|reading|round|take) ?#?\d{1,2}|\d(?:st|nd|rd)(?: (?:sample|run|reading|time))?|(?:first|second) (?:sample|run|reading|time)|again|\+?(?:\d{1,4}|an?|a few) ?(?:s|secs?|seconds?|m|mins?|minutes?)(?: later)?|\d\d?:\d\d(?::\d\d)?)`;
const MOMENT = new RegExp(String.raw`\s{1,20}(?:#{1,3}|--|—|–|\() ?${WHICH}(?:,? ${WHICH}){0,2}\)?$`, "i");
const REMARKED = /\s(?:#|--\s|[—–(])/;
/** Looking for a sign of it first spares nearly every command the pattern, whose making alone takes longer than the reading of a short output. */
const typed = (command: string): string => {
  const bare = withoutPrompt(command).trimEnd();
  return REMARKED.test(bare) ? bare.replace(MOMENT, "") : bare;
};

/**
 * A command line without what a person wrote behind it for whoever reads along: `ip route   # on the bad node`. Between quotes the sign is a sign. Who asks
 * again may have written there that it is another machine, so that it counts where answers are told apart.
 */
function withoutComment(line: string): string {
  let quote = "";
  for (let i = 1; i < line.length; i++) {
    const char = line[i] as string;
    if (quote !== "") quote = char === quote ? "" : quote;
    else if (char === "'" || char === '"') quote = char;
    else if (char === "#" && /\s/.test(line[i - 1] as string)) return line.slice(0, i).trimEnd();
  }
  return line;
}

/** A command line without what stands in front of it and prints nothing that is read: `sleep 5; nstat -az` and `sudo nstat -az` ask what `nstat -az` asks. */
export const asked = (command: string): string => {
  const rest = behindRemarks(words(typed(command)));
  return rest.slice(rest[0] === "sudo" && rest[1]?.startsWith("-") === false ? 1 : 0).join(" ");
};

/**
 * {@link asked} for telling samples apart: `ethtool -S ens5 | grep exceeded` asks for counters that `ethtool -S ens5` asks for, too. Each has a name, so that a
 * search of them is compared with all of them, and with another search.
 */
export const sampled = (command: string): string => {
  const [, card, statistics] = COUNTERS.exec(asked(command)) ?? [];
  return card !== undefined ? `ethtool -S ${card}` : (statistics ?? asked(command));
};
const COUNTERS = /^(?:ethtool (?:-S|--statistics) (\S{1,40})|(netstat -s|nstat -(?:az?|za)))(?: \| (?:[ef]?grep|egrep) .{1,400})?$/;

/** True of what a program says that may not look: people ask again as root then, and the second answer is the first one. */
export const isRefusal = (text: string): boolean => text.length <= 400 && REFUSAL.test(text);
const REFUSAL = /permission denied|operation not permitted|must be (?:run as )?(?:root|superuser)/i;

/** An option that nstat does not have: what it prints is what grew since a run of the same line that only noted the numbers. */
export const SINCE_NOTED = "--since-noted";

/** `nstat -n; sleep 10; nstat`, `nstat > /dev/null; sleep 10; nstat`. */
function sinceNoted(all: string[]): string[] {
  const [first, ...more] = all
    .join("\n")
    .split(/\n[;&]\n/)
    .map((run) => run.replace(/^sudo\n/, "").split("\n"));
  const again = more.findLast((run) => baseName(run[0] ?? "") === "nstat");
  const noted = baseName(first?.[0] ?? "") === "nstat" && /\n(?:-n|--nooutput|1?>{1,2}\n?\/dev\/null)(?:\n|$)/.test((first ?? []).join("\n"));
  return noted && again !== undefined ? ["nstat", SINCE_NOTED, ...again.slice(1)] : all;
}

/** Options of wrappers that take a value in the next word. */
const WRAPPERS: Record<string, readonly string[]> = {
  sudo: ["-u", "-g", "--user", "--group"],
  doas: ["-u"],
  timeout: ["-k", "-s", "--kill-after", "--signal"],
  nice: ["-n", "--adjustment"],
  ionice: ["-c", "-n", "--class", "--classdata"],
  chrt: ["-p"],
  stdbuf: [],
  env: ["-u", "--unset", "-C"],
  chroot: [],
  unshare: [],
  setsid: [],
  time: ["-f", "-o", "--format", "--output"],
  unbuffer: [],
  nohup: [],
  busybox: [],
  toybox: [],
  command: [],
  // Bottlerocket: a shell in the namespaces of the node
  sheltie: [],
};

/** `ip -n pod1 addr`, short for `ip netns exec pod1 ip addr`. */
export const isNetnsOption = (word: string | undefined): boolean => /^-(?:n|-?netns)$/.test(word ?? "");

/**
 * Takes wrappers, environment assignments, redirections and filters off a command line (argv or text).
 * A leading prompt (`root@node1:~ # `, `$ `) is taken off too. Never throws.
 */
export function commandLine(command: string | readonly string[]): CommandLine {
  const all = typeof command === "string" ? behindRemarks(words(withoutComment(typed(command)))) : [...command];
  const cut = typeof command === "string" ? all.findIndex((word) => word === "|" || word === ";" || word === "&") : -1;
  const sorted = cut !== -1 && all.some((word, i) => i >= cut && word === "|" && ORDERING.has(baseName(all[i + 1] ?? "")));
  let filtered = cut !== -1 && all[cut] === "|" && !keepsLines(all.slice(cut + 1).join(" "));
  const shown = cut === -1 ? all : all.slice(0, cut);
  filtered = filtered || (typeof command === "string" && isKept(shown));
  let rest = withoutRedirections(shown);
  let foreign = false;
  for (let step = 0; step < 16 && rest.length > 0; step++) {
    const program = baseName(rest[0] as string);
    if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(rest[0] as string)) rest = rest.slice(1);
    else if (SHELLS.test(program) && scriptOf(rest) !== undefined) {
      const inner = commandLine(scriptOf(rest) as string);
      return { argv: inner.argv, filtered: filtered || inner.filtered, sorted: sorted || inner.sorted, foreign: foreign || inner.foreign };
    } else if (program === "ip" && rest[1] === "netns" && rest[2] === "exec") {
      foreign = true;
      rest = rest.slice(4);
    } else if (program === "ip" && isNetnsOption(rest[1])) return { argv: [program, ...rest.slice(1)], filtered, sorted, foreign: true };
    else if (program === "nsenter") {
      const inner = afterOptions(rest, ["-t", "--target", "-S", "-G"]);
      foreign = foreign || !staysInNetwork(rest.slice(1, rest.length - inner.length), inner);
      rest = inner;
    } else if (KUBECTLS.has(program)) rest = ["kubectl", ...rest.slice(1)];
    // the short name that its manual suggests
    else if (program === "k" && /^(?:get|describe|logs|exec|debug|-n|-nkube-system|--namespace(?:=.{1,63})?)$/.test(rest[1] ?? ""))
      rest = ["kubectl", ...rest.slice(1)];
    // tools that bring their own kubectl, and crictl
    else if (BUNDLES.has(program) && /^(?:kubectl|crictl)$/.test(rest[1] ?? "")) rest = [rest[1] as string, ...rest.slice(rest[2] === "--" ? 3 : 2)];
    else if (program === "kubectl" && rest[1] === "calico") rest = ["calicoctl", ...rest.slice(2)];
    else if (/^calicoctl-linux-\w{1,10}$/.test(program)) rest = ["calicoctl", ...rest.slice(1)];
    // whom to ask, in front of what is asked
    else if (AGENT_CLIENTS.has(program) && rest[1]?.startsWith("-") === true && afterOptions(rest, AGENT_VALUES).length > 0)
      rest = [rest[0] as string, ...afterOptions(rest, AGENT_VALUES)];
    // kubectl-aks, formerly kubectl-az: `kubectl aks run-command "ip route" --node n1`
    else if (program === "kubectl" && /^(?:aks|az)$/.test(rest[1] ?? "") && rest[2] === "run-command" && rest[3] !== undefined) rest = ["sh", "-c", rest[3]];
    else if (CONTAINER_TOOLS.has(program)) {
      const inner = insideContainer(rest);
      if (inner === undefined) return { argv: plainKubectl([program, ...rest.slice(1)]), filtered, sorted, foreign };
      foreign = foreign || !inner.node;
      rest = inner.argv;
    } else if (program === "watch") {
      const watched = afterOptions(rest, ["-n", "--interval"]);
      // it hands what it is given to a shell
      rest = watched.length === 0 ? [] : ["sh", "-c", watched.join(" ")];
    } else if (program === "ssh" || ((program === "minikube" || program === "tsh") && rest[1] === "ssh")) {
      // Teleport's tsh has the options of ssh
      const toHost = program === "tsh" ? rest.slice(1) : rest;
      const remote = program === "minikube" ? afterOptions(rest.slice(1), MINIKUBE_VALUES) : afterOptions(toHost, SSH_VALUES).slice(1);
      if (remote.length === 0) return { argv: [program, ...rest.slice(1)], filtered, sorted, foreign };
      // the far end's shell splits the words once more
      rest = remote.length === 1 ? ["sh", "-c", remote[0] as string] : remote[0] === "--" ? remote.slice(1) : remote;
    } else if (REMOTE_TOOLS.has(program)) {
      const remote = onMachine(rest);
      if (remote === undefined) return { argv: [program, ...rest.slice(1)], filtered, sorted, foreign };
      rest = remote;
    } else if (program === "pdsh" || program === "clush") {
      const spread = afterOptions(rest, SPREAD_VALUES);
      if (spread.length === 0) return { argv: [program, ...rest.slice(1)], filtered, sorted, foreign };
      rest = ["sh", "-c", spread.join(" ")];
    } else if (program === "ctr" && rest.includes("exec")) return { argv: rest, filtered, sorted, foreign: true };
    else if (Object.hasOwn(WRAPPERS, program) && !(program === "command" && (rest[1] === "-v" || rest[1] === "-V"))) {
      const positional = program === "timeout" || program === "chroot" ? 1 : 0;
      const inner = afterOptions(rest, WRAPPERS[program] as readonly string[]).slice(positional);
      foreign ||= program === "unshare" && rest.slice(1, rest.length - inner.length).some((word) => /^(?:-[a-zA-Z]{0,8}n|--net)/.test(word));
      rest = inner;
    } else return { argv: [program, ...rest.slice(1)], filtered, sorted, foreign: foreign || rest.some((word) => OF_PROCESS.test(word)) };
    if (rest[0] === "--") rest = rest.slice(1);
  }
  filtered = filtered && rest.length > 0;
  return { argv: rest, filtered, sorted, foreign };
}

/** A file of the network namespace that a process is in, most often a pod's. Process 1 is in the node's. */
const OF_PROCESS = /^(?:\/host)?\/proc\/(?!1\/)\d{1,10}\/net\//;

/**
 * What the shell behind such a line is given, where all of it stands in quotes at the end: `ssh node1 'ip route | grep bond'`, `ansible node1 -m shell -a "ss -tan | wc -l"`.
 * Else the line itself: a pipe outside of the quotes gets what came out of the other one.
 */
export function givenToShell(command: string): string {
  const [, before = "", quote = "", inner = ""] = QUOTED_LAST.exec(command) ?? [];
  return inner === "" || inner.includes(quote) || !HANDS_OVER.test(before) ? command : inner;
}
const QUOTED_LAST = /^([^|;&'"]{0,2000})(["'])(.{1,4000})\2\s{0,8}$/s;
const HANDS_OVER =
  /sh\s{1,8}-[a-z]{0,4}c\s{1,8}$|(?:^|\s)(?:ssh|pdsh|clush|watch)\s|(?:^|\s)ansible\s.{0,400}\s(?:-a|--args)[= ]{1,4}$|(?:^|\s)(?:vagrant|gcloud)\s.{0,400}\s(?:-c|--command)[= ]{1,4}$/;

/**
 * What a person looked for in an output: the pattern of the one `| grep` that stands behind the command, or of the `| sed -n '/…/p'` or `| awk '/…/'` in its place.
 * Every line that matches it was shown. Undefined where there is none or more than it, or where grep shows other lines or only parts of them.
 */
export function searchOf(command: string | readonly string[]): string | undefined {
  if (typeof command !== "string") return undefined;
  const all = words(givenToShell(withoutPrompt(command)));
  const pipe = all.indexOf("|");
  const [program, ...rest] = pipe === -1 ? [] : withoutRedirections(all.slice(pipe + 1));
  if (all.slice(0, pipe).some((word) => word === ";" || word === "&")) return undefined;
  if (/^(?:sed|[gm]?awk)$/.test(program ?? "")) return LIKE_GREP.exec(`${program} ${rest.join(" ")}`)?.[1];
  if (!/^[ef]?grep$/.test(baseName(program ?? ""))) return undefined;
  const options = rest.filter((word) => word.startsWith("-"));
  const patterns = rest.filter((word) => !word.startsWith("-"));
  return patterns.length === 1 && options.every((word) => /^-[niwEFPe]{1,4}$|^--color(?:=\w{1,8})?$/.test(word)) ? patterns[0] : undefined;
}

const LIKE_GREP = /^(?:sed -n(?: -e)? (?=.{1,202}p$)|[gm]?awk )\/([^/\\]{1,200})\/(?:p| ?\{ ?print(?: \$0)? ?\})?$/;

/** True of a pipe (its words, behind the first `|`) in which no line is lost or moved: `jq . | less`, `jq -c '.[]'`, `tee pods.json`. */
export const keepsLines = (pipe: string): boolean => HARMLESS.test(pipe);
const HARMLESS = /^(?:(?:^| \| )(?:jq(?: -[cCMSrj]{1,5}| --tab)*(?: \.(?:\[\])?)?|json_pp|python3? -m json\.tool|cat|less|more|tee [^|;&]{1,200}|column -t))+$/;

/** Pipes behind which the lines do not stand in the order in which they were printed. */
const ORDERING = new Set(["sort", "tac", "shuf"]);

const AGENT_CLIENTS = new Set(["cilium", "cilium-dbg", "calicoctl", "hubble", "crictl", "nerdctl"]);
const AGENT_VALUES = [
  "-H",
  "--host",
  "-c",
  "--config",
  "--context",
  "-n",
  "--namespace",
  "--kubeconfig",
  "--helm-release-name",
  "--server",
  "-l",
  "--log-level",
];
AGENT_VALUES.push("-r", "--runtime-endpoint", "-i", "--image-endpoint", "-t", "--timeout", "-a", "--address");
const KUBECTLS = new Set(["microk8s.kubectl", "kubectl.sh", "kubectl.exe", "kubecolor"]);
const BUNDLES = new Set(["microk8s", "minikube", "k0s", "k3s", "k8s", "rke2"]);
const CONTAINER_TOOLS = new Set(["kubectl", "oc", "crictl", "docker", "podman", "nerdctl"]);
/** Options of these tools, and of ssh, with a value in the next word. */
const CONTAINER_VALUES = ["-n", "-c", "-f", "-u", "-w", "-e", "-r", "-H", "-l", "--namespace", "--container", "--context", "--kubeconfig", "--cluster"];
CONTAINER_VALUES.push("--user", "--workdir", "--env", "--runtime-endpoint", "--config", "--host", "--image", "--profile", "--target", "--as", "--server", "-s");
/** Of pdsh and clush: machines, groups, who is left out, user, limits. */
const SPREAD_VALUES = ["-w", "-x", "-g", "-X", "-l", "-f", "-t", "-u", "-R", "-o"];
const SSH_VALUES = ["-i", "-l", "-p", "-o", "-F", "-J"];
/** Of `minikube ssh`, where -n names the node. */
const MINIKUBE_VALUES = [...SSH_VALUES, "-n"];

const REMOTE_TOOLS = new Set(["ansible", "salt", "gcloud", "vagrant", "multipass", "lxc", "incus", "aws", "az", "talosctl", "limactl", "colima"]);

const LIMA_VALUES = ["--workdir", "--shell"];
const TALOS_VALUES = ["-n", "--nodes", "-e", "--endpoints", "--talosconfig", "--context", "--cluster"];

/**
 * What runs on a machine: `gcloud compute ssh node1 --command 'ip rule'`, `vagrant ssh node1 -c 'ip rule'`, `multipass exec node1 -- ip rule`, `ansible node1 -m shell
 * -a 'ip rule'`, `salt node1 cmd.run 'ip rule'`, `aws ssm start-session … --parameters command='ip rule'`, `talosctl -n 10.0.0.9 dmesg`. Undefined where nothing does.
 */
function onMachine(argv: readonly string[]): string[] | undefined {
  const [tool = "", ...words] = argv;
  const program = baseName(tool);
  const shell = (line: string | undefined): string[] | undefined => (line === undefined || line === "" ? undefined : ["sh", "-c", line]);
  if (program === "ansible") {
    const module = optionValue(argv, "-m", "--module-name") ?? "command";
    return /^(?:ansible\.builtin\.)?(?:shell|command|raw)$/.test(module) ? shell(optionValue(argv, "-a", "--args")) : undefined;
  }
  // `salt 'node1*' cmd.run 'ip rule'`
  if (program === "salt") return shell(words[words.findIndex((word) => /^cmd\.(?:run|shell|run_stdout)$/.test(word)) + 1 || words.length]);
  if (program === "aws") {
    const [, line] = /^commands?=\[?"?(.{1,4000}?)"?\]?$/.exec(words[0] === "ssm" ? (optionValue(argv, "--parameters") ?? "") : "") ?? [];
    return shell(line);
  }
  if (program === "az") return words.includes("run-command") ? shell(optionValue(argv, "--scripts")) : undefined;
  if (program === "talosctl") {
    const [verb, ...files] = afterOptions(argv, TALOS_VALUES);
    if (verb === "dmesg") return ["dmesg"];
    // of a service; a container's has more than one word in its name
    const service = verb === "logs" ? files.find((word) => /^[a-z][a-z-]{1,30}$/.test(word)) : undefined;
    if (service !== undefined) return ["journalctl", "-u", service === "cri" ? "containerd" : service, "-o", "cat"];
    return (verb === "read" || verb === "cat") && files.length > 0 ? ["cat", ...files] : undefined;
  }
  if (program === "limactl" && words[0] === "shell") return afterOptions(argv.slice(1), LIMA_VALUES).slice(1);
  if (program === "colima" && words[0] === "ssh") return words.includes("--") ? words.slice(words.indexOf("--") + 1) : undefined;
  if (program === "gcloud" || program === "vagrant") return words.includes("ssh") ? shell(optionValue(argv, "--command", "-c")) : undefined;
  // containers of LXD and Incus are machines with an init of their own
  const end = words.indexOf("--");
  return words[0] === "exec" && end !== -1 ? words.slice(end + 1) : undefined;
}

/** Pods and containers that run in the network namespace of the node: what is run in them, the node itself answers. */
const HOST_NETWORK =
  /(?:^|[/_=-])(?:cilium(?!-operator|-test|-envoy-config)|calico-node|kube-proxy|kubelet|aws-node|kube-flannel|flannel|canal|weave-net|kube-router|node-local-dns|antrea-agent|kindnet|ovnkube-node|speaker|anetd|node-exporter)(?:[-_/$]|$)/i;
/** Containers that are a whole node: kind, k3d, minikube. */
const NODE_CONTAINER = /^(?:[\w.-]{1,60}-(?:control-plane|worker)\d{0,3}|k3d-[\w.-]{1,60}-(?:server|agent)-\d{1,3}|minikube(?:-m\d{2})?)$/;
/** What an agent's own tool prints is about the node, wherever it was asked. */
const AGENT_TOOLS = new Set([
  "cilium",
  "cilium-dbg",
  "cilium-agent",
  "cilium-health",
  "calicoctl",
  "calico-node",
  "birdcl",
  "aws-cni-support.sh",
  "kube-proxy",
]);

/**
 * `kubectl exec`, `oc rsh`, `oc debug node/…`, `kubectl debug node/…`, `crictl exec`, `docker exec` and the like: the command behind them, and whether
 * the node's own network namespace answered it. It does for debug containers of a node, for agents that run with hostNetwork (known by the name of the
 * pod or container), for nodes that are containers, and for the agents' own tools. Every other container counts as foreign.
 * Undefined if it is another subcommand (`kubectl logs`).
 */
function insideContainer(argv: readonly string[]): { argv: string[]; node: boolean } | undefined {
  const start = afterOptions(argv, CONTAINER_VALUES);
  const verb = start[0];
  // a plug-in of kubectl that opens a shell of the node
  if (verb === "run" && ENGINES.has(baseName(argv[0] ?? ""))) return onHostNetwork(start);
  if (verb === "node-shell" && argv.includes("--")) return { argv: argv.slice(argv.indexOf("--") + 1), node: true };
  if (verb !== "exec" && verb !== "debug" && verb !== "rsh") return undefined;
  const target = afterOptions(start, CONTAINER_VALUES);
  const name = target[0] ?? "";
  let rest = afterOptions(target, CONTAINER_VALUES);
  if (rest[0] === "--") rest = rest.slice(1);
  if (name === "" || name === "--" || rest.length === 0) return undefined;
  if (verb === "debug") return { argv: rest, node: /^nodes?\//.test(name) };
  const container = optionValue(argv, "-c", "--container") ?? "";
  const program = baseName(rest[0] as string);
  const node =
    HOST_NETWORK.test(name) ||
    name.startsWith("node-debugger-") ||
    HOST_NETWORK.test(container) ||
    NODE_CONTAINER.test(name) ||
    AGENT_TOOLS.has(program) ||
    // a pod that was given the node's files to work on the node runs in its network, too
    (program === "chroot" && /^\/(?:host|rootfs|hostfs|hostroot)\/?$/.test(rest[1] ?? "")) ||
    // process 1 of a pod that sees the node's processes is the node's; in another pod nobody has to enter it
    (program === "nsenter" && /\s(?:-t|--target)[\s=]?1(?:\s|$)/.test(rest.join(" ")));
  return { argv: rest, node };
}

/**
 * Whether what nsenter runs is in the node's network: it goes to process 1, or it is a tool of the network, and nsenter goes to a program that has the node's network, or
 * into namespaces of other kinds (`nsenter -t $(pgrep -xo cilium-agent) -m bpftool net`).
 */
function staysInNetwork(options: readonly string[], argv: readonly string[]): boolean {
  const all = options.join(" ");
  if (/(?:^|\s)(?:-t|--target)[\s=]?1(?:\s|$)/.test(all)) return true;
  const enters = options.some((word) => /^(?:--net(?:=.*)?|--all|-[A-Za-z]{0,8}[na].*)$/.test(word));
  return asksNetwork(argv[0] === "--" ? argv.slice(1) : argv) && (!enters || OF_THE_NODE.test(all));
}
const OF_THE_NODE = /\$\((?:pgrep|pidof)\s[^)]{0,80}?\b(?:kubelet|kube-proxy|cilium-agent|calico-node|flanneld|containerd|dockerd|crio)(?![\w-])/;

const ENGINES = new Set(["docker", "podman", "nerdctl"]);
/** Options of `docker run` without a value; every other one has it in the same word or in the next. */
const RUN_FLAGS = /^(?:-[itdPq]{1,5}|--(?:rm|privileged|init|interactive|tty|detach|read-only|quiet|publish-all|no-healthcheck|sig-proxy|tls-verify|replace))$/;

/** `docker run --rm --net=host nicolaka/netshoot ip route`: what runs in the node's network. Undefined of a container with one of its own, whose messages may be docker's. */
function onHostNetwork(run: readonly string[]): { argv: string[]; node: boolean } | undefined {
  let i = 1;
  while (run[i]?.startsWith("-") === true) i += RUN_FLAGS.test(run[i] as string) || (run[i] as string).includes("=") ? 1 : 2;
  const options = run.slice(0, i);
  if (optionValue(options, "--net", "--network") !== "host" || run[i] === undefined) return undefined;
  const image = baseName(run[i] as string).replace(/[:@].*$/, "");
  // the image may be the tool: `docker run --net=host example/conntrack -S`
  const own = NETWORK_TOOLS.test(image) && run[i + 1]?.startsWith("-") === true ? image : "";
  const entry = optionValue(options, "--entrypoint") ?? own;
  const argv = [...(entry === "" ? [] : [entry]), ...run.slice(i + 1)];
  return argv.length === 0 ? undefined : { argv, node: asksNetwork(argv) };
}

/** True if what it prints is of the network namespace it runs in: processes and files are a container's own, but for what the kernel shows of the network. */
export function asksNetwork(argv: readonly string[]): boolean {
  const paths = argv.filter((word) => word.startsWith("/"));
  const shown = /^(?:cat|head|tail|e?grep)$/.test(argv[0] ?? "") && paths.length > 0 && paths.every((path) => /^\/proc\/(?:sys\/)?net\//.test(path));
  return shown || NETWORK_TOOLS.test(baseName(argv[0] ?? ""));
}
const NETWORK_TOOLS =
  /^(?:ip|ip6?tables(?:-(?:nft|legacy))?(?:-save)?|ebtables(?:-(?:nft|legacy))?(?:-save)?|nft|ss|netstat|route|arp|ifconfig|bridge|brctl|tc|ethtool|nstat|conntrack|ipset|ipvsadm|bpftool|sysctl|dmesg|nsenter|chroot)$/;

/** `2>/dev/null`, `2>&1`, and `> file`, where the file is a word of its own. */
function withoutRedirections(argv: readonly string[]): string[] {
  return argv.filter((word, i) => !REDIRECTION.test(word) && !/^(?:\d|&)?(?:>>?\|?|<)$/.test(argv[i - 1] ?? ""));
}
const REDIRECTION = /^(?:\d|&)?[<>]/;

/** True if what the command prints goes into a file: `ip rule > /tmp/before`. */
function isKept(argv: readonly string[]): boolean {
  return argv.some((word, i) => {
    const [, file = ""] = /^[1&]?>>?\|?(.{0,4096})$/.exec(word) ?? [undefined, "&"];
    const target = file === "" ? (argv[i + 1] ?? "&") : file;
    return !target.startsWith("&") && target !== "/dev/null";
  });
}

const SHELLS = /^(?:ba|da|a|z|k)?sh$/;

/** What a shell is told to run: `sh -c '…'`, `bash -lc '…'`, `bash --login -x -c '…'`. */
function scriptOf(argv: readonly string[]): string | undefined {
  const at = argv.findIndex((word, i) => i > 0 && !/^(?:--login|--noprofile|--norc|-[abd-z]{1,4})$/.test(word));
  return /^-[a-z]{0,4}c$/.test(argv[at] ?? "") ? argv[at + 1] : undefined;
}

/** The last part of a path. */
export const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Everything behind the program at [0] and its options. */
function afterOptions(argv: readonly string[], withValue: readonly string[]): string[] {
  let i = 1;
  while (i < argv.length && (argv[i] as string).startsWith("-") && argv[i] !== "--") i += withValue.includes(argv[i] as string) ? 2 : 1;
  return argv.slice(i);
}

/**
 * A shell prompt before a command: `[root@n1 ~]# `, `root@n1:~ $ `, `user@host:/tmp# `, `core@host ~ $ `, `n1:~ # `, `n1 ~ # ` (Container-Optimized OS,
 * Gentoo), `n1 [~]$ ` (k3OS), `worker/4d1c:/var# ` (BOSH), `sh-4.4# `, `$ `, `# `, with the sign that a block of code marked as a patch gives them (`+n1:~# `), and the signs of prompts
 * that people adorn (`➜  ~ `, `❯ `, `node1 ➜  `).
 */
const HOST = String.raw`[\w.-]{1,64}@[\w.*-]{1,64}(?::[^\s#$%]{0,80}|[ \t][~/][^\s#$%]{0,80})?`;
const PROMPT = new RegExp(
  String.raw`^[ \t]{0,8}(?:(?:\[[^\]\n]{1,80}\]|${HOST}|[+-]?[\w.-]{0,64}(?:/[\w-]{1,64})?:[~/][^\s#$%]{0,80}|[\w.-]{1,64}[ \t](?:\[~[^\]\s]{0,80}\]|~[^\s#$%]{0,80})|(?:ba|z|k|da)?sh-[\d.]{1,8}|\([\w.-]{1,40}\))[ \t]{0,4})?[#$%][ \t]{1,8}(?=\S)|^(?:[\w.@-]{1,64}[ \t]{1,4})?[➜❯λ][ \t]{1,4}(?:[~/]\S{0,80}[ \t]{1,4})?(?=\S)`,
);

/** Every prompt has one: looking for them first spares long listings the pattern. */
const PROMPT_SIGN = /[#$%➜❯λ]/;

/** The command behind a shell prompt; the text itself if there is none. */
export function withoutPrompt(text: string): string {
  return text.replace(PROMPT, "");
}

/** True for a line that is a shell prompt with a command behind it. */
export function isPromptLine(text: string): boolean {
  return PROMPT_SIGN.test(text) && PROMPT.test(text);
}

/** True if one of these words is among the arguments. */
export function hasOption(argv: readonly string[], ...names: readonly string[]): boolean {
  return argv.some((word) => names.includes(word));
}

/** True if a short option letter is given, alone or in a cluster: `-nvL` has n, v and L. Words that begin with `--` do not count. */
export function hasLetter(argv: readonly string[], letter: string): boolean {
  return argv.some((word, i) => i > 0 && /^-[A-Za-z0-9]+$/.test(word) && word.includes(letter, 1));
}

/** The words behind the program that are no options, nor the values of those `valued` options that have them in words of their own (`-n 5`). */
export const operands = (argv: readonly string[], valued: ReadonlySet<string> = NONE): string[] =>
  argv.filter((word, i) => i > 0 && !word.startsWith("-") && !valued.has(argv[i - 1] as string));
const NONE: ReadonlySet<string> = new Set();

/** The value of an option: the word behind it, or behind its `=`. */
export function optionValue(argv: readonly string[], ...names: readonly string[]): string | undefined {
  for (let i = 1; i < argv.length; i++) {
    const word = argv[i] as string;
    for (const name of names) {
      if (word === name) return argv[i + 1];
      if (name.startsWith("--") && word.startsWith(`${name}=`)) return word.slice(name.length + 1);
    }
  }
  return undefined;
}
