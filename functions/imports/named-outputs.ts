import { asksNetwork, commandLine, isPromptLine, asked as questionOf, searchOf, withoutPrompt } from "../facts/command.ts";
import { commandsOf } from "../facts/command-list.ts";
import { tellsTime } from "../facts/date-output.ts";
import { asksAnywhere } from "../facts/node-name.ts";
import { printsNothing } from "../facts/several-commands.ts";
import { folderAfter, inFolder } from "../facts/working-folder.ts";
import { isCommand, isKnown } from "./bundle.ts";
import type { Blocks } from "./code-blocks.ts";
import { announcedConfiguration, configurationOf } from "./configuration.ts";
import { type Headings, headingsOf, SAYS } from "./headings.ts";
import { isLog, logSignOf } from "./log-lines.ts";
import { type Machine, machinesLikePods, ofHost, ofLabel, ofLogin, ofPrompt, ofRemote } from "./machines.ts";
import { pairedLabels } from "./paired-labels.ts";
import { isProse } from "./prose.ts";
import { SavedFiles } from "./saved-files.ts";
import { signOf } from "./unnamed-outputs.ts";

/** Outputs whose command stands in the text: behind a prompt, in a heading, in the first line of a block, in the sentence above it. */

/** What a command printed: lines from 1, inclusive. */
export interface NamedOutput {
  readonly command: string;
  readonly from: number;
  readonly to: number;
  readonly machine: Machine | undefined;
}

/** The named outputs of a text, in order, and what else the text tells about its lines. */
export interface Named {
  readonly outputs: readonly NamedOutput[];
  /** The indexes of the lines that hold a command. */
  readonly commands: ReadonlySet<number>;
  /** By line the machine that it is of, where something above tells. */
  readonly machines: readonly (Machine | undefined)[];
  /** What the node is called. */
  readonly target: string | undefined;
}

/** A prompt in front of a command (`core@n1 ~ $ `, too); the first group is the host, if it names one. */
const PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@([\w.*-]{1,64})[^\]\n]{0,80}\]|[\w.-]{1,64}@([\w.*-]{1,64})(?:(?::|[ \t][~/])[^\s#$%]{0,80})?|([\w.*-]{1,64})(?::[~/]|[ \t]~)[^\s#$%>]{0,80}|(?:ba|k|z|da)?sh-[\d.]{1,8}|(?:\/[\w.-]{0,40}){1,6}|\([\w.-]{1,40}\))[ \t]{0,4}[#$%>][ \t]{1,8}(?=\S)/;
/** Where the shell is, as the prompt says: `root@node1:/etc/cni/net.d# `, `[root@node1 /etc]# `, `root@node1:~# `. */
const IN_PROMPT = /^[^#$%>\n]{1,140}?[: ]([~/][^\s#$%>\]:]{0,100})\]?[ \t]?[#$%>][ \t]/;
/** Between a block with a command and the next one with what it printed. */
const FOLLOWS =
  /^[ \t]{0,4}(?:#{1,6} |\*\*|_)?(?:(?:[Tt]he )?(?:[Oo]utput|[Rr]esult)s?|[Rr]eturns|[Pp]rints|[Ss]hows|[Gg]ives)(?: is)?:?(?:\*\*|_)?:?[ \t]{0,4}$/;
/** The same in a sentence: "I get this:", "which prints:", "This is the output on my node:". */
const TELLS =
  /\b(?:outputs?|results?|returns?|returned|prints?|printed|shows?|showed|gives?|gave|sees?|saw|gets?|got|says?|said|reports?|reported|yields?|displays?)\b[^.!?]{0,60}[:：][ \t]{0,4}$/i;
/** A sentence of advice, or of something else than what the command printed. */
const TELLS_ELSE =
  /[`/|]|\b(?:should|must|would|expect(?:ed)?|healthy|examples?|e\.g\.|if|else|other|another|instead|before|earlier|after|config(?:uration)?|files?|logs?|journal|events?|pods?|change[ds]?|edit|set|to get|let's)\b/i;
const tells = (line: string): boolean => line.length < 160 && TELLS.test(line) && !TELLS_ELSE.test(line);
/** What stands there when the last command has ended. */
const EMPTY_PROMPT =
  /^[ \t]{0,8}(?:\[[\w.-]{1,64}@[\w.*-]{1,64}[^\]\n]{0,80}\]|[\w.-]{1,64}@[\w.*-]{1,64}(?:(?::|[ \t][~/])[^\s#$%]{0,80})?|(?:ba)?sh-[\d.]{1,8})[ \t]{0,4}[#$%][ \t]{0,8}$/;
/** True for a line at which an output ends: a prompt that waits, or one with a command that nobody knows. */
export const isPromptEnd = (line: string): boolean => /^[ \t]{0,8}\$ \S/.test(line) || EMPTY_PROMPT.test(line);
/** A line that names the command: `=== ip route ===`, `*** Output of conntrack -S ***`, `## iptables -L`, `Output of "ip rule":`, `+ ip route`. */
const HEADING =
  /^[ \t]{0,4}(?:[=*#+>-]{1,12}[ \t]{0,4}(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?:? )?)?(?:[Oo]utput of:? {0,2}|[Cc]ommand:? {0,2}|[Rr]unning:? {0,2})?[`"']?([a-z][^`"'\n]{1,300}?)[`"']?:?[ \t]{0,4}(?:[=*#-]{1,40})?:?[ \t]{0,4}$/;
/** The same in words of people: `ip rule output:`, `ip rule shows only:`, `Result of ip rule on wk-1:`, `The output from sysctl -a is:`. */
const WORDED =
  /^[ \t]{0,4}(?:(?:And |And the |The |Here is the |This is the )?(?:[Oo]utput|[Rr]esult)s? (?:of|from)(?: running)? [`"']?([a-z][^`"'\n]{1,200}?)[`"']?(?: (?:command|is|on (?:the )?[\w.-]{1,63}(?: node| host)?)){0,2}|[`"']?([a-z][^`"'\n]{1,200}?)[`"']? (?:command )?(?:outputs?|results?|shows?|gives|returns|prints|says|reports)(?: (?:me|us|only|just|this|the following)){0,2}):[ \t]{0,4}$/;
/** No sentence has a pipe into such a program: `netstat -na | awk '{print $6}' | sort | uniq -c`. */
const PIPED = /^[ \t]{0,4}[a-z][\w./-]{1,40} [^|]{1,400}\| {0,2}(?:[ef]?grep|awk|sort|uniq|wc|head|tail|sed|cut|less|jq)\b/;
/** Words of a person's behind a `#`. */
const COMMENT = /^[ \t]{0,8}# {1,4}[\p{L}\d][^\s=]{0,40}(?: \S{1,100}){1,60}[ \t]{0,4}$/u;
/** A shell inside of something else: what follows is not the node's until `exit`. */
const SHELL = /(?:^|[\s/])(?:ba|da|z|a)?sh(?:\s+-[il]+)?$/;
/** A container that is a node: kind, k3d, minikube. */
const OF_NODE =
  /^(?:sudo )?(?:docker|podman|nerdctl) exec (?:-\w{1,6} ){0,4}(?:[\w.-]{1,60}-(?:control-plane|worker)\d{0,3}|k3d-[\w.-]{1,60}-(?:server|agent)-\d{1,3}|minikube(?:-m\d{2})?) /;
const NODE = /(?:\bdebug\s+(?:-\S+\s+)*nodes?\/|\bdebugging pod \S+ with container \S+ on node )([\w.-]{0,252}\w)/;

/**
 * Reads the commands of a text. Pure, total, linear.
 * @param meant the command that the file is named after: all of it is its output, unless a prompt says otherwise
 */
export function namedOutputs(blocks: Blocks, meant: string | undefined): Named {
  const reader = new Reader(blocks, meant);
  for (let i = 0; i < blocks.lines.length; i++) reader.read(i);
  return reader.finish();
}

/** "# Pod to pod traffic"; "# Inside the pod" is a label all the same. */
const TITLE = /^# (?!(?:on|in|inside|from|within|at) )(?:\S{1,60} ){2,12}\S{1,60}[ \t]{0,4}$/i;

class Reader implements Named {
  readonly outputs: NamedOutput[] = [];
  readonly commands = new Set<number>();
  readonly machines: (Machine | undefined)[] = [];
  target: string | undefined;
  private debugged = false;
  private readonly blocks: Blocks;
  private readonly heads: ReadonlySet<string>;
  private readonly headings: Headings;
  private readonly paired: ReadonlyMap<number, string>;
  private open: (Omit<NamedOutput, "to"> & { readonly asked?: boolean }) | undefined;
  private machine: Machine | undefined;
  /** The first machine in a prompt at which only others were asked: through kubectl, or in a pod. */
  private asker: string | undefined;
  /** By prompt that names no host, the machine that it was last seen on; none of a pod's. */
  private readonly prompts = new Map<string, Machine | undefined>();
  /** Where the last command was typed in a pod: its prompt. */
  private podPrompt: string | undefined;
  /** The machine that the last `hostname` told. */
  private told: Machine | undefined;
  /** The block whose first line is a command without a prompt: further ones have none either. */
  private bare = 0;
  private readonly title: number;
  /** A bare `$` stands before several commands of ours: then it does before others, too. */
  private readonly dollar: boolean;
  /** Where the last command left the shell, as far as that is known. */
  private folder: string | undefined;
  private readonly saved = new SavedFiles();
  /** Machines that have names as pods have them. */
  private readonly nodes: ReadonlySet<string>;
  /** Whether such lines stood right above. */
  private noted = false;
  /** The shells that were opened and not left, and what of them is the node's. */
  private readonly shells: { readonly of: Shell; readonly behind: string | undefined; readonly before?: { readonly machine: Machine | undefined } }[] = [];

  constructor(blocks: Blocks, meant: string | undefined) {
    this.blocks = blocks;
    this.heads = promptHeads(blocks.lines);
    this.headings = headingsOf(blocks.lines);
    this.paired = pairedLabels(blocks);
    this.nodes = machinesLikePods(blocks.lines, promptOf);
    const asked = blocks.lines.flatMap((line) => (line.length < 500 && DOLLAR.test(line) ? [withoutPrompt(line)] : []));
    this.dollar = new Set(asked.filter((command) => plausible(command) !== undefined)).size >= DOLLAR_HABIT;
    const first = blocks.lines.findIndex((line) => line.trim() !== "");
    this.title = TITLE.test(blocks.lines[first] ?? "") ? first : -1;
    if (meant !== undefined) this.open = { command: meant, from: 1, machine: undefined };
  }

  /** Looks at the line at this index; the ones before it were read. */
  read(i: number): void {
    const { lines, block, edges } = this.blocks;
    const line = lines[i] ?? "";
    const label = block[i] === 0 && (this.headings.words.get(i) ?? "") === "" && !isIndented(lines, block, i + 1) ? ofLabel(line) : undefined;
    // the title of the whole text tells what it is about
    if (label !== undefined && !(i === this.title && label.pod === true)) this.machine = label;
    const paired = this.paired.get(i);
    if (paired !== undefined) {
      this.close(i);
      this.commands.add(i);
      this.machine = { name: paired };
    }
    this.machines[i] = this.machine;
    if (line.length > 4000) return;
    // of several nodes that were debugged, the first is the one that is read together with the rest
    const debugged = this.debugged ? undefined : NODE.exec(line)?.[1];
    this.debugged ||= debugged !== undefined;
    this.target = debugged ?? this.target;
    const begins = block[i] !== 0 && block[i] !== block[i - 1];
    if (begins) this.begin(i);
    else if (block[i] === 0 && (block[i - 1] ?? 0) !== 0 && !this.goesOn(i)) this.close(i);
    if (edges.has(i)) return;
    if (this.headings.rulers.has(i)) this.ruler(i);
    else if (this.open?.from === i + 1 && (NOTED.test(line) || (this.noted && /^[#=~-]{3,100}$/.test(line)))) this.skip(i);
    else if (EMPTY_PROMPT.test(line)) this.close(i);
    else this.command(i, begins || (block[i] !== 0 && edges.has(i - 1)));
  }

  /** A block begins: what stands above it may name it. */
  private begin(i: number): void {
    const { lines, block, edges } = this.blocks;
    // a heading or a prompt right above
    const above = this.open !== undefined && (this.isBlank(this.open.from - 1, i) || this.isTold(this.open, i)) ? this.open.command : undefined;
    const farther = this.overWords(i);
    if (farther !== undefined) this.open = undefined;
    else if (above === undefined) this.close(i);
    const command = above ?? announcedBy(lines.slice(Math.max(0, i - 3), i), firstOf(lines, block, i)) ?? farther;
    if (command !== undefined) this.open = { command: this.inside(command), from: edges.has(i) ? i + 2 : i + 1, machine: ofRemote(command) ?? this.machine };
  }

  /** `first`: it is the first line of a block. */
  private command(i: number, first: boolean): void {
    const { lines, block } = this.blocks;
    const line = lines[i] ?? "";
    const placed = (words: string): string => (this.paired.has(i) ? withoutPlace(words) : words);
    const heading = this.headings.words.get(i);
    const prompt = PROMPT.exec(line) ?? hostPrompt(line);
    const asked = prompt !== null || isPromptLine(line);
    const alone = first || (this.bare !== 0 && block[i] === this.bare) || PIPED.test(line);
    const typed =
      (heading === "" ? (configurationOf(line) ?? "") : heading === undefined ? undefined : placed(heading)) ??
      (prompt !== null
        ? unmarked(line.slice(prompt[0].length))
        : asked
          ? (plausible(unmarked(withoutPrompt(line))) ?? this.habitual(line) ?? commented(line))
          : (headingOf(placed(line), this.open) ?? configurationOf(line) ?? (alone && isTyped(line.trim()) ? line.trim() : undefined)));
    if (typed === undefined) return;
    if (first && prompt === null && typed === line.trim()) this.bare = block[i] ?? 0;
    this.commands.add(i);
    // a heading, and below it the prompt with the same: the script shows what it runs
    if (asked && this.open?.command === typed && this.isBlank(this.open.from - 1, i)) this.open = undefined;
    if (asked && this.isAnnounced(typed, i)) this.open = undefined;
    this.close(i);
    const host = prompt?.[1] ?? prompt?.[2] ?? prompt?.[3];
    if (asked) this.at(host, (prompt?.[0] ?? line.trimStart().split(" ", 1)[0] ?? "").trim());
    if (host !== undefined && (this.machine?.pod === true || asksAnywhere(typed))) this.asker ??= host;
    else this.target ??= host;
    const shown = asked ? IN_PROMPT.exec(line.slice(0, 200))?.[1] : undefined;
    if (shown !== undefined) this.folder = shown.startsWith("/") ? shown : undefined;
    const { folder } = this;
    this.folder = folderAfter(typed, folder);
    if (typed === "") return;
    // another shell begins in another folder
    if (typed === "exit" || typed === "logout" || SHELL.test(typed)) this.folder = undefined;
    const where = folder === undefined || inFolder(typed, folder) === typed ? typed : `cd ${folder} && ${typed}`;
    // a container names itself in its prompt: at the one from before, its shell was left
    const behind = host === undefined ? undefined : prompt?.[0];
    while (behind !== undefined && this.shells.at(-1)?.behind === behind) this.shells.pop();
    const shell = this.shells.at(-1)?.of ?? "node";
    const login = ofLogin(typed);
    if (typed === "exit" || typed === "logout") {
      const left = this.shells.pop();
      if (left?.before !== undefined && host === undefined) this.machine = left.before.machine;
    } else if (login !== undefined) {
      this.shells.push({ of: shell, behind, before: { machine: this.machine } });
      this.machine = login;
    } else if (SHELL.test(typed) || /^(?:sudo )?chroot \S+$/.test(typed))
      this.shells.push({ of: shellOf(typed, shell), behind: OF_CONTAINER.test(typed) ? behind : undefined });
    else {
      const meaning = this.saved.asPipe(typed, this.machine?.name) ?? where;
      const command = shell === "node" ? this.inside(meaning) : inShell(meaning, shell);
      this.saved.note(typed, this.machine?.name);
      this.open = { command, from: i + 2, machine: ofRemote(typed) ?? this.machine, asked };
    }
  }

  /** Behind which prompt a command stands: who looked into a pod, and goes on behind the prompt from before, has left it. */
  private at(host: string | undefined, prompt: string): void {
    const left = this.podPrompt !== undefined && this.podPrompt !== prompt && this.prompts.has(prompt);
    if (host !== undefined) this.machine = ofPrompt(host, this.nodes);
    else if (this.machine?.pod === true && left) this.machine = this.prompts.get(prompt);
    const inPod = this.machine?.pod === true;
    if (host === undefined && !inPod) this.prompts.set(prompt, this.machine);
    this.podPrompt = inPod ? prompt : undefined;
  }

  /** The heading above the words in front of the block at this index, if the block holds what it asks for: `dmesg | tail`, "During the load test:", block. */
  private overWords(i: number): string | undefined {
    const { lines, block } = this.blocks;
    if (this.open === undefined || this.open.asked === true || i - this.open.from > 8) return undefined;
    const { from, command } = this.open;
    const isWords = (line: string, at: number): boolean => block[from - 1 + at] === 0 && shownBy(line) === undefined;
    if (!lines.slice(from - 1, i).every(isWords)) return undefined;
    const shown = shownBy(firstOf(lines, block, i));
    return shown !== undefined && programOf(shown) === programOf(command) ? command : undefined;
  }

  /** True if between a command and the line at this index stands nothing, or only that its output follows. */
  private isBlank(from: number, to: number): boolean {
    return this.blocks.lines.slice(from, to).every((line) => line.trim() === "" || FOLLOWS.test(line));
  }

  /** True if the words above the block named what is asked for at this index, and since then stand only remarks: `# Column 2: packets that were dropped`. */
  private isAnnounced(typed: string, i: number): boolean {
    const { open } = this;
    if (open === undefined || open.asked === true || this.blocks.block[open.from - 1] !== this.blocks.block[i]) return false;
    const remarks = this.blocks.lines.slice(open.from - 1, i);
    return questionOf(open.command) === questionOf(typed) && remarks.every((line) => line.trim() === "" || COMMENT.test(line));
  }

  /** True if the block that ends here is only a command, and the next one follows at once: what it printed. */
  private goesOn(i: number): boolean {
    const { lines, block } = this.blocks;
    if (this.open === undefined || !this.isBlank(this.open.from - 1, i)) return false;
    let next = i;
    while (next < lines.length && block[next] === 0 && ((lines[next] ?? "").trim() === "" || FOLLOWS.test(lines[next] ?? "") || tells(lines[next] ?? "")))
      next++;
    return (block[next] ?? 0) !== 0 && (this.isBlank(i, next) || this.isTold(this.open, next));
  }

  /** True if between a command and the block at this index one sentence says that this is what it printed, and the block does not look like another one's. */
  private isTold({ command, from }: { readonly command: string; readonly from: number }, to: number): boolean {
    const { lines, block } = this.blocks;
    if (this.isBlank(from - 1, to) || lines.slice(from - 1, to).filter(tells).length !== 1) return false;
    const shown = shownBy(firstOf(lines, block, to));
    return (
      (shown === undefined || programOf(shown) === programOf(command)) &&
      lines.slice(from - 1, to).every((line) => line.trim() === "" || FOLLOWS.test(line) || tells(line))
    );
  }

  /** A line between a heading and its output. */
  private skip(i: number): void {
    this.noted = true;
    if (this.open !== undefined) this.open = { ...this.open, from: i + 2 };
  }

  /** A line of signs below a heading, or above the next one. */
  private ruler(i: number): void {
    this.commands.add(i);
    if (this.open?.from === i + 1) this.open = { ...this.open, from: i + 2 };
    else this.close(i);
  }

  /** Nothing follows the lines that were read. */
  finish(): Named {
    this.close(this.blocks.lines.length);
    this.target ??= this.asker;
    return this;
  }

  private habitual(line: string): string | undefined {
    const command = withoutPrompt(line);
    return this.dollar && DOLLAR.test(line) && !isProse(command) ? command : undefined;
  }

  private inside(command: string): string {
    return this.machine?.pod === true ? inPod(command) : command;
  }

  /** Ends the output that is open in front of the line at this index. */
  close(end: number): void {
    const to = this.heads.has(this.blocks.lines[end - 1] ?? "") ? end - 1 : end;
    if (this.open !== undefined) {
      const { asked, ...output } = this.open;
      if (to >= output.from || printsNothing(output.command) || (asked === true && this.foundNothing(output.command, end)))
        this.outputs.push({ ...output, to });
      if (HOSTNAME.test(output.command))
        this.named(
          this.blocks.lines
            .slice(output.from - 1, to)
            .join("\n")
            .trim(),
        );
    }
    this.open = undefined;
  }

  /** What `hostname` says, where no prompt and no label tells of which machine the outputs are. */
  private named(host: string): void {
    if (!/^[A-Za-z0-9][\w.-]{0,252}$/.test(host) || this.machine !== this.told) return;
    this.told = this.nodes.has("") ? ofHost(host) : ofPrompt(host, this.nodes);
    this.machine = this.told;
  }

  /** A search, or a question for some routes, between two prompts; of several commands in a row without an output nobody tells which printed nothing and which were only named. */
  private foundNothing(command: string, end: number): boolean {
    const { lines, block } = this.blocks;
    const isPrompt = (i: number): boolean => block[i] === block[end] && (isPromptLine(lines[i] ?? "") || PROMPT.test(lines[i] ?? ""));
    return (
      (searchOf(command) !== undefined || FILE_SEARCH.test(command) || SOME_ROUTES.test(command) || OF_CGROUP.test(command) || FORGOTTEN.test(command)) &&
      isPrompt(end) &&
      (!isPrompt(end - 2) || !isPrompt(end + 1))
    );
  }
}

/** The host that a prompt names, "" if it names none, its user, and what was typed behind it. */
function promptOf(line: string): { readonly host: string; readonly user?: string | undefined; readonly typed: string } | undefined {
  const prompt = PROMPT.exec(line);
  if (prompt !== null) {
    const [whole, ...hosts] = prompt;
    return { host: hosts.find((host) => host !== undefined) ?? "", user: /([\w.-]{1,64})@/.exec(whole)?.[1], typed: unmarked(line.slice(whole.length)) };
  }
  return isPromptLine(line) ? { host: "", typed: unmarked(withoutPrompt(line)) } : undefined;
}

const HOSTNAME = /^(?:sudo )?(?:hostname(?: -[sf])?|uname -n|cat \/etc\/hostname)$/;

/** `grep resolvConf /var/lib/kubelet/config.yaml` */
const FILE_SEARCH = /^(?:sudo )?[ef]?grep (?:-[EFinw]{1,5} )?["']?[\w.-]{2,60}["']? \/[\w./-]{2,200}$/;

/** `ip route show default`, `ip -4 route show table 110`: what they ask for may not be there, and then they print nothing. */
const SOME_ROUTES = /^(?:sudo )?ip (?:-[46] )?r(?:o(?:ute?)?)? (?:(?:sh|show|l|ls|list) )?(?:default|table \S{1,40})$/;

/** `bpftool cgroup show /sys/fs/cgroup effective`: it prints nothing where the cgroup has no program. */
const OF_CGROUP = /^(?:sudo )?bpftool (?:-f )?c(?:group)? (?:show|list) \/[\w./-]{1,200}(?: effective)?$/;

/** `ip neigh del 10.0.0.7 dev eth0`, `arp -d 10.0.0.7`: they print nothing when they work. */
const FORGOTTEN = /^(?:sudo )?(?:ip (?:-[46] )?n(?:eigh(?:bou?rs?)?)? d(?:el(?:ete)?)?|arp (?:-i \S{1,40} )?-d) [\da-f]/i;

/** From a container to the node: `chroot /host`, `nsenter -t 1 -a bash`. Who has the node's files or processes there was given its network, too. */
const OF_HOST = /^(?:sudo )?(?:chroot \/(?:host|rootfs|hostfs|hostroot)\b|nsenter (?:\S{1,40} ){0,6}?(?:-t ?|--target[ =])1\s)/;

/** A shell in a container, which has a host name of its own; one in another network namespace has not. */
const OF_CONTAINER = /^(?:sudo )?(?:docker|podman|nerdctl|crictl|kubectl|k|oc) (?:\S{1,80} ){0,8}?(?:exec|rsh) /;

/** Of a shell: all of it is the node's, its network alone (a pod of the host network), or nothing. */
type Shell = "node" | "network" | "none";

/** What is the node's of a shell that is opened in another one. Where what runs in the container is not told apart, nothing is. */
function shellOf(typed: string, around: Shell): Shell {
  if (OF_HOST.test(typed)) return "node";
  const { argv, foreign } = commandLine(typed);
  const contained = !OF_NODE.test(typed) && /^(?:sudo )?(?:kubectl|k|docker|crictl|podman|nerdctl)\s.{0,200}?\bexec\b|\bnetns exec\b/.test(typed);
  if (foreign || (contained && !SHELL.test(argv[0] ?? ""))) return "none";
  return contained && around === "node" && !/ (?:chroot|nsenter) /.test(typed) ? "network" : around;
}

/** A command as it was typed in such a shell. */
function inShell(line: string, shell: "network" | "none"): string {
  const commands = commandsOf(line);
  const isOfNode = (command: string): boolean => shell === "network" && asksNetwork(commandLine(command).argv);
  return commands.every(isOfNode) ? line : commands.map((command) => (isOfNode(command) ? command : inPod(command))).join("; ");
}

/** A command that another network namespace than the node's answered. */
export function inPod(line: string): string {
  const here = (command: string): string =>
    commandLine(command).foreign || isLog(command) || /^(?:kubectl|oc|crictl|docker) /.test(command) ? command : `nsenter -t 0 -n ${command}`;
  // of several on one line each
  return commandsOf(line).map(here).join("; ");
}

/** `node1# ip rule`, `node1> ip rule`, `node1 # ip rule`: a word and a sign are a prompt only in front of a command of ours. */
function hostPrompt(line: string): RegExpExecArray | null {
  const match = /^[ \t]{0,8}([a-z][\w.-]{0,63})(?:[#>$][ \t]{0,4}| [#$] )(?=[a-z])/i.exec(line);
  const command = line.slice(match?.[0].length ?? 0);
  return match !== null && isKnown(command) && !isProse(command) ? match : null;
}

/** True for a line that belongs to the one above it, as the names do below `Containers:` of `kubectl describe`. */
function isIndented(lines: readonly string[], block: readonly number[], i: number): boolean {
  const line = lines[i] ?? "";
  return block[i] === 0 && /^[ \t]+\S/.test(line) && signOf(line.trim()) === undefined && !isPromptLine(line);
}

/**
 * The upper lines of prompts of two lines (`user in ~/work` above `$ ip rule`): the same above several prompts, and the first time with nothing before it that it
 * could be the end of.
 */
function promptHeads(lines: readonly string[]): ReadonlySet<string> {
  const seen = new Map<string, number>();
  for (let i = 0; i + 1 < lines.length; i++) {
    const line = lines[i] ?? "";
    if (line.trim() === "" || line.length > 200 || !/^[ \t]{0,8}[$#%❯➜λ] \S/.test(lines[i + 1] ?? "")) continue;
    const known = seen.get(line);
    if (known !== undefined || ((lines[i - 1] ?? "").trim() === "" && signOf(line) === undefined)) seen.set(line, (known ?? 0) + 1);
  }
  return new Set([...seen].flatMap(([line, count]) => (count > 1 ? [line] : [])));
}

/** A bare sign, and what may be a program. */
const DOLLAR = /^[ \t]{0,8}\$ [a-z./~][\w./~-]{0,60}(?: |$)/;
const DOLLAR_HABIT = 2;

/** `# ` begins comments, too, and `$ ` prices: behind a bare sign only a command that netcheck reads, or that a person types all the time, counts. */
const TYPED =
  /^(?:sudo |cd |ls\b|cat |kubectl |docker |crictl |systemctl |journalctl |exit$|chroot |nsenter |ip |ping |curl |tcpdump |grep |echo |uname\b|date(?: ["']?[-+]\S.{0,60})?$|dmesg\b|sleep \d|hostname$|uptime$|free(?: -\w)?$|mpstat |ps (?:-|aux)|(?:tail|head) -|dig |nslookup |nc -|ls$|nproc$|lscpu$|for \w{1,40} in \S.{0,200}[;\n]\s?do\b|(?:ethtool|tc|ss|netstat|lsof|lspci|sysctl|ip6?tables|conntrack|ipvsadm|ifconfig|df|sar|vmstat|mtr|traceroute|numactl) -)/;
const plausible = (command: string): string | undefined => (!isProse(command) && (isCommand(command) || TYPED.test(command)) ? command : undefined);

/** `# Command: ip route`, above what it printed. */
function commented(line: string): string | undefined {
  const [, command = ""] = /^#{1,3} {0,2}(?:[Cc]ommand|COMMAND|[Cc]md|CMD) ?[:=] {0,2}(\S.{0,400})$/.exec(line) ?? [];
  return isKnown(command) || tellsTime(command) || isLog(command) ? command : undefined;
}

/** Below it, before the output: when, where and how it ran. */
const NOTED =
  /^(?:[#;] ?)?(?:exit(?:[ _-]?(?:code|status))?|rc|return[ _-]?code|status|date|time(?:stamp)?|started(?:[ _]at)?|collected(?:[ _]at)?|host(?:name)?|node|duration|elapsed|user) ?[:=] {0,4}\S.{0,100}$/i;

/** Only a heading whose words are a command of ours: prose is full of colons. One word is not enough, except between signs. */
function headingOf(line: string, open: unknown): string | undefined {
  const worded = WORDED.exec(line);
  const said = (worded?.[1] ?? worded?.[2])?.trim();
  if (said !== undefined && isKnown(said) && !isProse(said)) return said;
  const match = HEADING.exec(line);
  const command = match?.[1]?.trim();
  if (command === undefined || !/^[a-z]/.test(command)) return undefined;
  const framed = /^[ \t]{0,4}[=*#+>`-]/.test(line) || /[Oo]utput of|[Cc]ommand|[Rr]unning/.test(line);
  if (!framed && (open !== undefined || !command.includes(" "))) return undefined;
  return (isKnown(command) || isLog(command) || tellsTime(command)) && !isProse(command) ? command : undefined;
}

/** "### ip route (node 1)", "ip route on the second node:", without the machine. */
const withoutPlace = (line: string): string => line.replace(/ (?:\([^()]{1,60}\)|(?:on|from|at|in|-) [^`:]{1,60})(?=[:*#]{0,4}[ \t]{0,4}$)/, "");

/** The first line of the block at this index that holds something. */
function firstOf(lines: readonly string[], block: readonly number[], start: number): string {
  let i = start;
  while (block[i] === block[start] && (lines[i] ?? "").trim() === "") i++;
  return block[i] === block[start] ? (lines[i] ?? "") : "";
}

/** A file that is named in a sentence: `/etc/resolv.conf`, `10-calico.conflist`. */
const PATH = /(?:^|[\s`"'(])(\/(?:etc|proc|sys|run|usr\/lib|var\/l(?:og|ib))\/[\w./@-]{1,200}\w)/g;
const CNI_FILE = /(?:^|[\s`"'(])(\d{1,4}-[\w.-]{1,60}\.conf(?:list)?)/;

/** A place in a list, also of a heading: "3. ", "## 3) ", "- ". */
const NUMBER = /^[ \t]{0,4}(?:#{1,6} {1,4})?(?:(?:\(?\d{1,2}[.):]\)?|[a-h][.)]|[-*+•]) {1,4})?/;

/**
 * The command that the last sentence above a block names in backticks, or the file whose text it is. `first`, the block's first line, may tell that it is something
 * else.
 */
function announcedBy(above: readonly string[], first: string): string | undefined {
  const sentence = above.findLast((line) => line.trim() !== "") ?? "";
  const codes = [...sentence.matchAll(/`([^`\n]{2,300})`/g)].map(([, code = ""]) => code.trim());
  // a line that is all code or all bold has lost its signs by now
  const whole = unmarked(sentence.replace(NUMBER, ""))
    .replace(/(?<=[^:]):$/, "")
    .replace(SAYS, "");
  const typed =
    codes.findLast((code) => /^[a-z/]/.test(code) && (isCommand(code) || isLog(code) || tellsTime(code))) ??
    (isTyped(whole) || tellsTime(whole) || isElsewhere(whole) ? whole : undefined);
  const path = [...sentence.matchAll(PATH)].map(([, file = ""]) => `cat ${file}`).findLast(isKnown);
  const [, conflist] = CNI_FILE.exec(sentence) ?? [];
  const command = typed ?? (conflist === undefined ? path : `cat /etc/cni/net.d/${conflist}`);
  const signed = shownBy(first);
  // what a program says about its own work looks like a log
  const told = whole === typed && signed !== undefined && isLog(signed);
  if (command !== undefined && (signed === undefined || told || programOf(signed) === programOf(command))) return command;
  return typed === undefined ? announcedConfiguration(sentence, signed) : undefined;
}

/** The program; those that list rules look alike, whatever backend, family or way is in their names. */
const programOf = (command: string): string => (commandLine(command).argv[0] ?? "").replace(/^(?:ip6?|eb)tables(?:-legacy|-nft)?(?:-save)?$/, "iptables");

/** The command that prints such a line. */
const shownBy = (line: string): string | undefined => signOf(line) ?? logSignOf(line);

/** True for a command of ours that ran in a pod or in a namespace of its own: `nsenter -t 4711 -n ip route`. */
const isElsewhere = (line: string): boolean => /^[a-z/]/.test(line) && !isProse(line) && commandLine(line).foreign;

/** A command as it stands in bold: `**ip route**:`. */
const unmarked = (command: string): string => command.trim().replace(/^\*\*(.{1,400}?)\*\*:?$/, "$1");

/** True for the first line of a block that is a command of ours, without a prompt. */
const isTyped = (line: string): boolean => /^[a-z/]/.test(line) && signOf(line) === undefined && !isProse(line) && isKnown(line);
