import { z } from "zod";
import { attachTypeOf, bpftoolAnswered, bpftoolCall, isCgroupAttachType, isJson, nestedElements, withoutPromptLines } from "./bpftool.ts";
import { hasLetter, isPromptLine } from "./command.ts";
import { defineFact, lines, type Part, rankOf, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { placed } from "./placed.ts";

/**
 * BPF programs attached to cgroups, in the order in which they run.
 *
 *     /sys/fs/cgroup/unified/lab-s3
 *         149      cgroup_inet4_connect multi           cil_sock4_connect
 */
const BpfCgroup = z.object({
  line: z.int(),
  /** Path of the cgroup's directory. */
  cgroup: z.string(),
  /** New names: cgroup_inet4_connect, … */
  attachType: z.string(),
  /** "multi", "override", …; left out where exclusive or not shown. */
  attachFlags: z.string().optional(),
  programId: z.int(),
  /** Order on that attach point: 1 runs first. */
  position: z.int(),
  name: z.string().optional(),
  /** True in listings of what is in effect, which repeat the programs of the cgroups above. */
  effective: z.boolean(),
});
/** A listing that begins at the root and shows everything below it: what is attached to the root stands in it, first. */
const Tree = z.object({ line: z.int(), root: z.string() });
/** `bpftool cgroup show` of a cgroup that has no program: it prints nothing. `effective`: none of the cgroups above has one either. */
const Empty = z.object({ line: z.int(), cgroup: z.string(), effective: z.boolean() });
/** Which directory has the number that a BPF link tells in place of a path: `find /sys/fs/cgroup -inum 5411`, `ls -di /sys/fs/cgroup/podruntime`. */
const Numbered = z.object({ line: z.int(), cgroup: z.string(), cgroupId: z.string() });
const BpfCgroups = z.object({ rows: z.array(BpfCgroup), trees: z.array(Tree), empty: z.array(Empty), numbered: z.array(Numbered).optional() });
export type BpfCgroup = z.infer<typeof BpfCgroup>;
type BpfCgroups = z.infer<typeof BpfCgroups>;

const HEADER = /^(?:CgroupPath|ID\s+AttachType\s+(?:AttachFlags\s+)?Name)$/;
const PATH = /^(\/.*)$/;
/** What people write where a command printed nothing. */
const NOTHING = /^\s{0,20}[(<[](?:empty|none|nothing|no output|empty output)[)>\]]\s{0,20}$/i;
const PROGRAM =
  /^\s*(\d{1,10})\s+(type \d{1,5}|[a-z0-9_]{4,64})(?:\s+(multi|override|multi,preorder|unknown\([0-9a-f]{1,8}\)))?(?:\s+([\w.]{1,128}))?(?:\s+[\w.]{1,128}|\s+attach_btf_obj_id=\d+ attach_btf_id=\d+)?(?:\s+(?:←|<-|#).*)?$/;
// Where cgroup v2 is mounted as a whole: a tree from there is the whole tree.
const ROOTS = new Set(["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/run/cilium/cgroupv2", "/var/run/cilium/cgroupv2", "/host/sys/fs/cgroup"]);

export const bpfCgroup = defineFact({
  id: "bpf-cgroup",
  title: "BPF programs attached to cgroups, in the order they run",
  commands: [{ argv: ["bpftool", "-j", "cgroup", "tree"] }],
  recognize(argv): View | undefined {
    const number = numberOf(argv);
    if (number !== undefined) return { format: "numbered", complete: false, scope: argv.join(" ").slice(0, 200), rank: 0 };
    const call = bpftoolCall(argv);
    if (call?.object !== "cgroup" || (call.command !== "show" && call.command !== "tree")) return undefined;
    const effective = call.rest.includes("effective");
    const path = pathOf(call.rest[0] === "effective" ? undefined : call.rest[0]);
    const whole = call.command === "tree" && (path === undefined || ROOTS.has(path));
    const scope = `${effective ? "effective " : ""}${whole ? "" : `${call.command} ${path ?? ""}`}`;
    return {
      format: effective ? "effective" : "attached",
      complete: whole && !effective,
      scope,
      rank: (call.json ? 2 : 1) + (call.command === "tree" ? 2 : 0),
    };
  },
  schema: BpfCgroups,
  answered: bpftoolAnswered,
  parse({ text: given, argv, view, truncated, pipe = "" }) {
    const unparsed = new UnparsedLines();
    if (view.format === "numbered") return unparsed.with({ rows: [], trees: [], empty: [], numbered: fromNumbers(given, numberOf(argv) ?? "", unparsed) });
    const text = withoutPromptLines(given);
    const call = bpftoolCall(argv);
    const cgroup = call?.command === "show" ? (pathOf(call.rest[0]) ?? "") : undefined;
    const add = collector(view.format === "effective");
    const finish = (rows: BpfCgroup[]) => {
      const first = view.complete ? rows[0] : undefined;
      const trees = first === undefined ? [] : [{ ...placed(first), root: pathOf(call?.rest[0]) ?? "/sys/fs/cgroup" }];
      const nothing = rows.length === 0 && truncated !== true && pipe === "" && cgroup !== undefined && cgroup !== "" && unparsed.count === 0;
      return unparsed.with({ rows, trees, empty: nothing ? [{ line: 1, cgroup, effective: view.format === "effective" }] : [] });
    };
    if (!isJson(text)) return finish(fromText(text, cgroup, add, unparsed));
    const elements =
      cgroup === undefined
        ? nestedElements(text, ["programs"], "cgroup", unparsed)
        : jsonElements(text, unparsed).map((element) => ({ ...element, label: cgroup }));
    const rows: BpfCgroup[] = [];
    for (const { value, line, text: quote, label } of elements) {
      const programId = asInteger(value["id"]);
      const attachType =
        asString(value["attach_type"]) ?? (asInteger(value["attach_type"]) === undefined ? undefined : `type ${asInteger(value["attach_type"])}`);
      if (programId === undefined || attachType === undefined) unparsed.add(line, quote);
      else
        rows.push(
          Object.assign(add(line, pathOf(label) ?? "", programId, attachType, asString(value["attach_flags"]), asString(value["name"])), { text: quote }),
        );
    }
    return finish(rows);
  },
  merge: mergeCgroups,
});

/** Makes rows, counting positions per attach point. */
function collector(effective: boolean) {
  const positions = new Map<string, number>();
  return (line: number, cgroup: string, programId: number, printed: string, flags: string | undefined, name: string | undefined): BpfCgroup => {
    const attachType = attachTypeOf(printed);
    const point = `${attachType} ${cgroup}`;
    const position = (positions.get(point) ?? 0) + 1;
    positions.set(point, position);
    const row: BpfCgroup = { line, cgroup, attachType, programId, position, effective };
    if (flags !== undefined && flags !== "") row.attachFlags = flags;
    if (name !== undefined && name !== "") row.name = name;
    return row;
  };
}

function fromText(text: string, shown: string | undefined, add: ReturnType<typeof collector>, unparsed: UnparsedLines): BpfCgroup[] {
  const rows: BpfCgroup[] = [];
  let cgroup = shown;
  for (const { line, text: content } of lines(text)) {
    const path = PATH.exec(content);
    if (path !== null) {
      cgroup = pathOf(path[1]);
      continue;
    }
    const match = PROGRAM.exec(content);
    const attachType = match?.[2] ?? "";
    if (match !== null && cgroup !== undefined && (isCgroupAttachType(attachType) || attachType.startsWith("type "))) {
      rows.push(add(line, cgroup, Number(match[1]), attachType, match[3], match[4]));
    } else if (!(shown !== undefined && NOTHING.test(content)) && !HEADER.test(content) && !isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
  }
  return rows;
}

/** The number that was looked for among the cgroups; "" where the numbers of some were listed (`ls -di`, `stat -c '%i %n'`). */
function numberOf(argv: readonly string[]): string | undefined {
  const [program, ...rest] = argv;
  const ofCgroups = rest.some((word) => [...ROOTS].some((root) => word === root || word.startsWith(`${root}/`)));
  if (!ofCgroups) return undefined;
  const number = rest[rest.indexOf("-inum") + 1] ?? "";
  if (program === "find") return rest.includes("-inum") && /^\d{1,20}$/.test(number) ? number : undefined;
  const lists = program === "stat" ? rest.some((word) => /^%i %n$/.test(word)) : program === "ls" && hasLetter(argv, "i") && hasLetter(argv, "d");
  return lists ? "" : undefined;
}

/** `/sys/fs/cgroup/podruntime`, which has the number that was looked for; `5411 /sys/fs/cgroup/podruntime`. */
function fromNumbers(text: string, asked: string, unparsed: UnparsedLines): z.infer<typeof Numbered>[] {
  const rows: z.infer<typeof Numbered>[] = [];
  for (const { line, text: content } of lines(text)) {
    const { path, number = asked } = (content.length > 1000 ? undefined : (asked === "" ? NUMBERED : FOUND).exec(content)?.groups) ?? {};
    if (path !== undefined) rows.push({ line, cgroup: path, cgroupId: number });
    else if (!isPromptLine(content.slice(0, 400))) unparsed.add(line, content);
  }
  return rows;
}
const NUMBERED = /^\s{0,20}(?<number>\d{1,20}) (?<path>\/\S{1,900})\s*$/;
const FOUND = /^(?<path>\/\S{1,900})\s*$/;

/** A path without the slash at its end; undefined for none. */
function pathOf(path: string | undefined): string | undefined {
  if (path === undefined || path === "") return undefined;
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** A cgroup listed by several outputs comes from the best of them: a tree and `cgroup show` of one path overlap. */
function mergeCgroups(parts: readonly Part<BpfCgroups>[]): BpfCgroups {
  const rows: BpfCgroup[] = [];
  const seen = { attached: new Set<string>(), effective: new Set<string>() };
  let wholeTree = false;
  for (const part of parts.toSorted((a, b) => rankOf(b) - rankOf(a))) {
    if (part.sample !== 1 || (wholeTree && part.view.format === "attached")) continue;
    const covered = part.view.format === "effective" ? seen.effective : seen.attached;
    const own = part.value.rows.filter((row) => !covered.has(row.cgroup));
    rows.push(...own);
    for (const row of own) covered.add(row.cgroup);
    wholeTree ||= part.complete && part.view.scope === "";
  }
  const shown = parts.filter((part) => part.sample === 1);
  const numbered = shown.flatMap((part) => part.value.numbered ?? []);
  const places = { trees: shown.flatMap((part) => part.value.trees), empty: shown.flatMap((part) => part.value.empty) };
  return { rows, ...places, ...(numbered.length === 0 ? {} : { numbered }) };
}
