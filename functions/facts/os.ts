import { z } from "zod";
import { isPromptLine, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { isOwn } from "./node-name.ts";
import { present } from "./present.ts";

/**
 * Distribution and kernel.
 *
 *     PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"
 *     Linux node1 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01) x86_64 GNU/Linux
 */
const Release = z.object({
  line: z.int(),
  /** Lower case ("debian", "ubuntu", "rhel"); "linux" where os-release leaves it out, as its manual says. */
  id: z.string(),
  versionId: z.string().optional(),
  name: z.string().optional(),
  prettyName: z.string().optional(),
});
const Kernel = z.object({
  line: z.int(),
  /** "6.1.0-18-amd64". */
  release: z.string(),
  /** "x86_64", "aarch64", … */
  machine: z.string().optional(),
  /** Build: "#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)". */
  version: z.string().optional(),
});
const Os = z.object({ releases: z.array(Release), kernels: z.array(Kernel) });
type Release = z.infer<typeof Release>;
type Kernel = z.infer<typeof Kernel>;

const OS_RELEASE = /^\/(?:host\/)?(?:etc|usr\/lib)\/(?:os-release|\*-?release|\*_release)$/;
const ASSIGNMENT = /^([A-Z][A-Z0-9_]{0,60})=(?:"([^"]{0,1000})"|'([^']{0,1000})'|([^\s"']{0,1000}))$/;
// one line for people, from which no identifier is made
const OTHER_RELEASE = /^\/(?:host\/)?etc\/(?:[a-z]{2,12}-release|issue)$/;
// /etc/redhat-release and its like, which `cat /etc/*release` brings along; /etc/issue
const ONE_LINE_RELEASE = /^(?:[A-Z][A-Za-z ]{1,60} release [\d.]{1,16}(?: \([\w .-]{1,40}\))?|[A-Z][\w ./]{1,60}\\n \\l)$/;
const RELEASE = /^\d{1,3}\.\d{1,5}[!-~]{0,100}$/;
const MACHINE = /^(?:x86_64|i[3-6]86|amd64|aarch64\w*|arm\w{1,12}|ppc64\w*|s390x?|riscv64|mips\w*|loongarch64|unknown)$/;
// Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org) (gcc-12 …) #1 SMP …
const PROC_VERSION = /^Linux version (\d[!-~]{1,100}) [^#]{0,1000}(#\d.*)$/;
//          Kernel: Linux 4.19.0-27-amd64   among other fields of the same form
const FIELD = /^[A-Z][A-Za-z /-]{1,40}: (.{0,400})$/;
/** The same field as forms for reports ask for it: "- Kernel (e.g. `uname -a`): Linux node1 6.1.0-18-amd64 #1 SMP …", "* **Kernel version**: 5.4.0-42-generic", "- OS: RHEL 8.1, Kernel: 4.18.0-147.el8". */
export const KERNEL_FIELD =
  /^[ \t]{0,40}(?:[-*+•] {1,3})?(?:[A-Z][\w ]{0,30}: {1,3}[^:`]{1,60}, {0,3})?(?:\*\*|__)?(?:Linux )?[Kk]ernel(?:[ -][Vv]ersion| release)?(?:\*\*|__)?(?: {0,2}\([^()]{1,60}\))?(?:\*\*|__)?:(?:\*\*|__)? {1,4}[`"']?(?:Linux (?:[A-Za-z][\w.-]{0,252} )?)?(\d{1,2}\.\d{1,3}[.-]\d[\w.+~-]{0,80})[`"']?(?:\s.{0,300})?$/;

// kubectl get nodes -o wide:  node7   Ready   <none>   23d   v1.18.1   10.20.0.7   <none>   Red Hat Enterprise Linux 8.1   4.18.0-147.el8.x86_64   docker://19.3.8
const NODE_ROW = /^\s{0,8}(\S{1,253})\s.{1,600}\s(\d{1,2}\.\d{1,3}[.-]\d[\w.+~-]{0,80})\s{1,40}[a-z-]{1,20}:\/\/\S{1,60}\s{0,40}$/;
// kubectl describe node:  "Name:  node7", and below "  Kernel Version:  4.18.0-147.el8.x86_64"
const DESCRIBED = /^(?:Name:\s{1,80}(\S{1,253})|\s{1,8}Kernel Version:\s{1,80}(\d[!-~]{1,100}))$/;

export const os = defineFact({
  id: "os",
  title: "Distribution and kernel",
  commands: [{ argv: ["cat", "/etc/os-release"] }, { argv: ["uname", "-a"] }],
  recognize(argv): View | undefined {
    if (
      argv[0] === "uname" &&
      argv.length >= 2 &&
      argv.slice(1).every((word) => /^-[asnrvmpio]{1,8}$/.test(word) || word === "--all" || word === "--kernel-release")
    ) {
      return /[ra]/.test(letters(argv)) ? { format: "uname", complete: true, scope: "kernel", rank: letters(argv).includes("a") ? 3 : 1 } : undefined;
    }
    if (argv[0] === "hostnamectl" && /^(?:status)?$/.test(argv.slice(1).join(" "))) return { format: "hostnamectl", complete: true, scope: "kernel", rank: 0 };
    // the cluster's list has it, too
    if (
      argv[0] === "kubectl" &&
      /^nodes(?:\/.{1,253})?$/.test(argv[2] ?? "") &&
      (argv[1] === "describe" || (argv[1] === "get" && optionValue(argv, "-o") === "wide"))
    )
      return { format: "nodes", complete: false, scope: "kernel", rank: 0 };
    if (argv[0] !== "cat") return undefined;
    const files = argv.slice(1);
    if (files.length === 1 && files[0] === "/proc/version") return { format: "proc-version", complete: true, scope: "kernel", rank: 2 };
    if (files.length === 0 || !files.every((file) => OS_RELEASE.test(file) || OTHER_RELEASE.test(file))) return undefined;
    const whole = files.some((file) => OS_RELEASE.test(file));
    return { format: "os-release", complete: whole, scope: whole ? "release" : files.join(" ").slice(0, 200), rank: whole ? 1 : 0 };
  },
  schema: Os,
  parse({ text, argv, view, names }) {
    const unparsed = new UnparsedLines();
    if (view.format === "nodes") return unparsed.with({ releases: [], kernels: ofNodes(text, names) });
    if (view.format === "os-release") return unparsed.with({ releases: releaseOf(text, unparsed), kernels: [] });
    const kernels: Kernel[] = [];
    for (const { line, text: content } of lines(text)) {
      const found =
        view.format === "uname"
          ? unameOf(content.trimStart(), letters(argv))
          : view.format === "hostnamectl"
            ? hostnamectlOf(content)
            : procVersionOf(content.trimStart());
      if (found !== undefined) kernels.push({ line, ...found });
      else if (!isPromptLine(content) && !(view.format === "hostnamectl" && FIELD.test(content.trim()))) unparsed.add(line, content);
    }
    return unparsed.with({ releases: [], kernels });
  },
});

function releaseOf(text: string, unparsed: UnparsedLines): Release[] {
  const values = new Map<string, { line: number; value: string }>();
  for (const { line, text: content } of lines(text)) {
    const [, name, double, single, bare] = (ASSIGNMENT.exec(content.trimStart()) ?? []) as (string | undefined)[];
    if (name !== undefined) {
      const value = double ?? single ?? bare ?? "";
      if (!values.has(name)) values.set(name, { line, value });
    } else if (!content.startsWith("#") && !ONE_LINE_RELEASE.test(content) && !isPromptLine(content)) unparsed.add(line, content);
  }
  const place = values.get("ID") ?? values.get("NAME") ?? values.get("PRETTY_NAME");
  if (place === undefined) return [];
  const of = (name: string): string | undefined => values.get(name)?.value || undefined;
  const names = present({ versionId: of("VERSION_ID"), name: of("NAME"), prettyName: of("PRETTY_NAME") });
  return [{ line: place.line, id: (of("ID") ?? "linux").toLowerCase(), ...names }];
}

/** The kernel of this node; where nobody knows what it is called, the one that all nodes of the list have. */
function ofNodes(text: string, names: readonly string[] | undefined): Kernel[] {
  let described = "";
  const found = [...lines(text)].flatMap(({ line, text: content }) => {
    const [, called, told] = content.length > 900 ? [] : (DESCRIBED.exec(content) ?? []);
    if (called !== undefined) described = called;
    const [, name, release] = told === undefined ? (NODE_ROW.exec(content.slice(0, 900)) ?? []) : [told, described, told];
    return name === undefined || release === undefined ? [] : [{ line, name, release }];
  });
  const own = found.filter(({ name }) => isOwn(names, name) === true);
  const alike = new Set(found.map(({ release }) => release)).size === 1 ? found : [];
  return (own.length > 0 ? own : alike).slice(0, 1).map(({ line, release }) => ({ line, release }));
}

/** The fields of uname that are asked for, one letter each. */
function letters(argv: readonly string[]): string {
  return argv
    .slice(1)
    .map((word) => (word === "--all" ? "a" : word === "--kernel-release" ? "r" : word.slice(1)))
    .join("");
}

/** uname prints its fields in a fixed order: s n r v m p i o. Only the version (v) holds blanks, and `-a` leaves unknown p and i out. */
function unameOf(content: string, asked: string): Omit<Kernel, "line"> | undefined {
  const has = (letter: string): boolean => asked.includes(letter) || asked.includes("a");
  const words = content.split(/\s+/);
  if (has("s") && words.shift() !== "Linux") return undefined;
  if (has("n")) words.shift();
  const release = words.shift();
  if (release === undefined || !RELEASE.test(release)) return undefined;
  if (has("o") && /^(?:GNU\/)?Linux$/.test(words.at(-1) ?? "")) words.pop();
  let machine: string | undefined;
  while (words.length > 0 && MACHINE.test(words.at(-1) as string)) machine = words.pop();
  if (words.length > 0 && !has("v")) return undefined;
  return { release, ...present({ machine }), ...(words.length === 0 ? {} : { version: words.join(" ") }) };
}

function hostnamectlOf(content: string): Omit<Kernel, "line"> | undefined {
  const release = KERNEL_FIELD.exec(content)?.[1];
  return release === undefined || !RELEASE.test(release) ? undefined : { release };
}

function procVersionOf(content: string): Omit<Kernel, "line"> | undefined {
  const match = PROC_VERSION.exec(content);
  return match === null ? undefined : { release: match[1] as string, version: match[2] as string };
}
