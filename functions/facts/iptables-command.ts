import type { Backend, Family } from "./iptables-row.ts";

/** What a command line asks for. */
export interface Request {
  readonly family: Family;
  readonly backend: Backend;
  readonly format: "save" | "rules" | "list";
  /** Undefined: all tables. */
  readonly table: string | undefined;
  readonly chain: string | undefined;
  /** The one rule that is shown. */
  readonly rule: number | undefined;
  readonly verbose: boolean;
  readonly numeric: boolean;
  readonly numbered: boolean;
}

const PROGRAM = /^(ip6?tables|xtables)(-nft|-legacy)?(-save)?$/;
const MULTI = /^xtables-(?:(nft|legacy)-)?multi$/;

/** Reads the command line; undefined if it does not list rules. */
export function requestOf(argv: readonly string[]): Request | undefined {
  const multi = MULTI.exec(argv[0] ?? "");
  const args = multi === null ? argv : argv.slice(1);
  const program = PROGRAM.exec(args[0] ?? "");
  if (program === null) return undefined;
  const save = program[3] !== undefined;
  if (program[1] === "xtables" && !save) return undefined;
  const flavour = program[2]?.slice(1) ?? (multi === null ? undefined : (multi[1] ?? "legacy"));
  const backend: Backend = flavour === "nft" || flavour === "legacy" ? flavour : program[1] === "xtables" ? "nft" : "unknown";
  let mode: Request["format"] | undefined = save ? "save" : undefined;
  let table: string | undefined;
  let [verbose, numeric, numbered] = [false, false, false];
  const positional: string[] = [];
  for (let i = 1; i < args.length; i++) {
    const arg = args[i] as string;
    if (arg.startsWith("--")) {
      const [name = "", value] = arg.split("=", 2);
      if (name === "--table") table = value ?? args[++i];
      else if (name === "--list") mode = "list";
      else if (name === "--list-rules") mode = "rules";
      else if (name === "--verbose" || name === "--counters") verbose = true;
      else if (name === "--numeric") numeric = true;
      else if (name.startsWith("--line")) numbered = true;
      else if (name === "--modprobe" || name === "--wait-interval") i += value === undefined ? 1 : 0;
      else if (name === "--wait") i += value === undefined && /^\d+$/.test(args[i + 1] ?? "") ? 1 : 0;
      else if (name !== "--exact" && name !== "--zero" && name !== "--ipv4" && name !== "--ipv6") return undefined;
      continue;
    }
    if (!arg.startsWith("-")) {
      positional.push(arg);
      continue;
    }
    for (let k = 1; k < arg.length; k++) {
      const letter = arg[k] as string;
      if ("tMW".includes(letter)) {
        const value = k + 1 < arg.length ? arg.slice(k + 1) : args[++i];
        if (letter === "t") table = value;
        break;
      }
      if (letter === "w") {
        if (k + 1 === arg.length && /^\d+$/.test(args[i + 1] ?? "")) i++;
        if (/^\d+$/.test(arg.slice(k + 1))) break;
      } else if (letter === "L" && !save) mode = "list";
      else if (letter === "S" && !save) mode = "rules";
      else if (letter === "v" || (letter === "c" && save)) verbose = true;
      else if (letter === "n") numeric = true;
      else if (!"xZ46".includes(letter)) return undefined;
    }
  }
  if (mode === undefined || positional.length > (save ? 0 : 2)) return undefined;
  const rule = /^\d{1,9}$/.test(positional[1] ?? "") ? Number(positional[1]) : undefined;
  if (positional[1] !== undefined && rule === undefined) return undefined;
  const family = program[1] === "ip6tables" ? "ipv6" : "ipv4";
  return { family, backend, format: mode, table: table ?? (save ? undefined : "filter"), chain: positional[0], rule, verbose, numeric, numbered };
}
