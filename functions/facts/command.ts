/** A command line as people write it, reduced to the program that printed the output. */
export interface CommandLine {
  /** Program (base name) and arguments; empty if nothing could be made of it. */
  readonly argv: readonly string[];
  /** True if the output went through a filter (`| grep`, `| head`): it may miss lines. */
  readonly filtered: boolean;
  /** True if it ran in another network namespace than the node's (`ip netns exec pod1 …`, `nsenter -t 4711 -n …`): it says nothing about the node. */
  readonly foreign: boolean;
}

/** Words of a shell command line: quotes and backslashes are honoured, expansions are left as they are. An unclosed quote ends at the end. */
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
    else if (/\s/.test(char)) {
      if (word !== undefined) result.push(word);
      word = undefined;
    } else if (char === "|" || char === ";" || (char === "&" && commandLine[i + 1] === "&")) {
      if (word !== undefined) result.push(word);
      word = undefined;
      if (char === "&" || commandLine[i + 1] === char) i++;
      result.push(char);
    } else word = (word ?? "") + char;
  }
  if (word !== undefined) result.push(word);
  return result;
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
  nohup: [],
  busybox: [],
  toybox: [],
  command: [],
};

/**
 * Takes wrappers, environment assignments, redirections and filters off a command line (argv or text).
 * A leading prompt (`root@node1:~ # `, `$ `) is taken off too. Never throws.
 */
export function commandLine(command: string | readonly string[]): CommandLine {
  const all = typeof command === "string" ? words(withoutPrompt(command)) : [...command];
  const cut = typeof command === "string" ? all.findIndex((word) => word === "|" || word === ";" || word === "&") : -1;
  let filtered = cut !== -1 && all[cut] === "|";
  let rest = withoutRedirections(cut === -1 ? all : all.slice(0, cut));
  let foreign = false;
  for (let step = 0; step < 16 && rest.length > 0; step++) {
    const program = baseName(rest[0] as string);
    if (/^[A-Za-z_][A-Za-z0-9_]*=/.test(rest[0] as string)) rest = rest.slice(1);
    else if ((program === "sh" || program === "bash") && rest[1] === "-c" && rest[2] !== undefined) {
      const inner = commandLine(rest[2]);
      return { argv: inner.argv, filtered: filtered || inner.filtered, foreign: foreign || inner.foreign };
    } else if (program === "ip" && rest[1] === "netns" && rest[2] === "exec") {
      foreign = true;
      rest = rest.slice(4);
    } else if (program === "nsenter") {
      const target = /(?:^|\s)(?:-t|--target)[\s=]?(\d+)/.exec(rest.join(" "))?.[1];
      foreign = foreign || target !== "1";
      rest = afterOptions(rest, ["-t", "--target", "-S", "-G"]);
    } else if (Object.hasOwn(WRAPPERS, program) && !(program === "command" && (rest[1] === "-v" || rest[1] === "-V"))) {
      const positional = program === "timeout" || program === "chroot" ? 1 : 0;
      rest = afterOptions(rest, WRAPPERS[program] as readonly string[]).slice(positional);
    } else return { argv: [program, ...rest.slice(1)], filtered, foreign };
    if (rest[0] === "--") rest = rest.slice(1);
  }
  filtered = filtered && rest.length > 0;
  return { argv: rest, filtered, foreign };
}

/** `2>/dev/null`, `2>&1`, and `> file`, where the file is a word of its own. */
function withoutRedirections(argv: readonly string[]): string[] {
  return argv.filter((word, i) => !REDIRECTION.test(word) && !/^(?:\d|&)?(?:>>?\|?|<)$/.test(argv[i - 1] ?? ""));
}
const REDIRECTION = /^(?:\d|&)?[<>]/;

const baseName = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** Everything behind the program at [0] and its options. */
function afterOptions(argv: readonly string[], withValue: readonly string[]): string[] {
  let i = 1;
  while (i < argv.length && (argv[i] as string).startsWith("-") && argv[i] !== "--") i += withValue.includes(argv[i] as string) ? 2 : 1;
  return argv.slice(i);
}

/** A shell prompt before a command: `[root@n1 ~]# `, `root@n1:~ $ `, `user@host:/tmp# `, `$ `, `# `, `> `. */
const PROMPT = /^[ \t]{0,8}(?:(?:\[[^\]\n]{1,80}\]|[\w.-]{1,64}@[\w.-]{1,64}(?::[^\s#$%]{0,80})?|\([\w.-]{1,40}\))[ \t]{0,4})?[#$%][ \t]{1,8}(?=\S)/;

/** The command behind a shell prompt; the text itself if there is none. */
export function withoutPrompt(text: string): string {
  return text.replace(PROMPT, "");
}

/** True for a line that is a shell prompt with a command behind it. */
export function isPromptLine(text: string): boolean {
  return PROMPT.test(text);
}

/** True if one of these words is among the arguments. */
export function hasOption(argv: readonly string[], ...names: readonly string[]): boolean {
  return argv.some((word) => names.includes(word));
}

/** True if a short option letter is given, alone or in a cluster: `-nvL` has n, v and L. Words that begin with `--` do not count. */
export function hasLetter(argv: readonly string[], letter: string): boolean {
  return argv.some((word, i) => i > 0 && /^-[A-Za-z0-9]+$/.test(word) && word.includes(letter, 1));
}

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
