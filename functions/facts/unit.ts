import { z } from "zod";
import { hasLetter, hasOption, isPromptLine, operands, optionValue } from "./command.ts";
import { answeredByDefault, defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { combine, isShown, ranked } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Units of systemd (services, timers, …) and whether they run and start at boot.
 *
 *     systemd-networkd.service  loaded    active   running Network Configuration
 *     nm-cloud-setup.timer      enabled   disabled
 */
const Unit = z.object({
  line: z.int(),
  /** With its type: "kubelet.service". */
  unit: z.string(),
  /** "loaded", "not-found", "masked", … */
  load: z.string().optional(),
  /** "active", "inactive", "failed", "activating", … */
  active: z.string().optional(),
  /** "running", "dead", "exited", "waiting", … */
  sub: z.string().optional(),
  /** "enabled", "disabled", "static", "masked", "not-found", … */
  enabled: z.string().optional(),
});
const Units = z.object({ rows: z.array(Unit) });
type Unit = z.infer<typeof Unit>;

const NAME = /^[\w@.:\\-]{1,200}\.(?:service|timer|socket|target|mount|path|slice|scope|device|swap|automount)$/;
const BULLET = /^[●○×↻*•◌]\s+/u;
const ACTIVE = new Set(["active", "inactive", "failed", "activating", "deactivating", "reloading", "maintenance", "refreshing", "unknown"]);
const ENABLED = new Set(
  "enabled enabled-runtime disabled static masked masked-runtime linked linked-runtime alias indirect generated transient bad not-found".split(" "),
);
const LEGEND =
  /^(?:UNIT\s.*|UNIT FILE\s.*|NEXT\s.*|LOAD\s+[=→].*|ACTIVE\s+[=→].*|SUB\s+[=→].*|Legend:.*|Pass --all to see .*|To show all installed unit files use .*|\d{1,6} (?:loaded units|unit files|timers|sockets)? ?listed\..*)$/;
const NO_UNIT = /^(?:Unit (\S{1,200}) could not be found\.|Failed to get unit file state for (\S{1,200}): No such file or directory)$/;
const LOADED = /^\s{0,12}Loaded: (\S{1,40})(?: \((?:[^;)]{1,200}; )?([a-z-]{1,30})?[;)].*)?$/;
const RUNS = /^\s{0,12}Active: ([a-z-]{1,30})(?: \(([^)]{1,60})\))?/;

/** One of the last messages, where `| tail` left nothing else of `status`: "Nov 20 06:51:08 node1 kubelet[2118]: …". */
const MESSAGE = /^[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d \S{1,80} [^\s:]{1,80}: /;

const VALUED = new Set(["-t", "--type", "-n", "--lines", "-p", "--property"]);

export const unit = defineFact({
  id: "unit",
  title: "Services and timers of systemd",
  commands: [{ argv: ["systemctl", "list-units", "--all", "--type=service,timer", "--plain", "--no-legend", "--no-pager"] }],
  recognize(argv): View | undefined {
    if (argv[0] !== "systemctl") return undefined;
    if (argv.some((word) => /^(?:--user|-M|--machine|-H|--host|-o|--output|--version|--help)/.test(word))) return undefined;
    const words = operands(argv, VALUED);
    const verb = words[0] ?? "list-units";
    const given = words.slice(1);
    if (verb === "list-units") {
      const state = hasOption(argv, "--failed") || argv.some((word) => word.startsWith("--state"));
      const types = optionValue(argv, "--type", "-t");
      const all = (hasOption(argv, "--all") || hasLetter(argv, "a")) && !state && given.length === 0;
      const services = types === undefined || types.split(",").includes("service");
      return { format: "list", complete: all && services, scope: all && services ? "" : ["list", ...argv.slice(1)].join(" "), rank: 3 };
    }
    if (verb === "list-unit-files") return { format: "files", complete: given.length === 0, scope: "files", rank: 2 };
    if (verb === "list-timers") return { format: "timers", complete: false, scope: "timers", rank: 1 };
    if ((verb === "is-active" || verb === "is-enabled") && given.length > 0) return { format: verb, complete: false, scope: words.join(" "), rank: 1 };
    // with --value nobody knows which line is which
    if (verb === "show" && given.length > 0 && !hasOption(argv, "--value", "-P")) return { format: "show", complete: false, scope: words.join(" "), rank: 1 };
    if (verb === "status" && given.length > 0) return { format: "status", complete: false, scope: words.join(" "), rank: 1 };
    return undefined;
  },
  schema: Units,
  answered: (output) => answeredByDefault(output) || NO_UNIT.test(output.stderr.trim()),
  parse({ text, argv, view, stderr }) {
    const unparsed = new UnparsedLines();
    const rows: Unit[] = [];
    const asked = operands(argv, VALUED).slice(1).map(fullName);
    let at = 0;
    let inStatus = false;
    let shown: { row: Unit; last: number; kept: boolean } | undefined;
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim().replace(BULLET, "");
      const words = bare.split(/\s+/);
      const missing = NO_UNIT.exec(bare);
      if (missing !== null) rows.push({ line, unit: fullName((missing[1] ?? missing[2]) as string), load: "not-found" });
      else if (isPromptLine(content) || LEGEND.test(bare)) continue;
      else if (view.format === "is-active" || view.format === "is-enabled") {
        const name = asked[at];
        const known = view.format === "is-active" ? ACTIVE : ENABLED;
        if (name === undefined || !known.has(bare)) unparsed.add(line, content);
        else {
          at++;
          rows.push({ line, unit: name, ...(view.format === "is-active" ? { active: bare } : { enabled: bare }) });
        }
      } else if (view.format === "show") {
        const [, key = "", value = ""] = /^([A-Z][A-Za-z0-9]{1,60})=(.{0,4000})$/.exec(bare) ?? [];
        if (key === "") {
          unparsed.add(line, content);
          continue;
        }
        // a blank line stands between two units
        if (shown === undefined || line > shown.last + 1) {
          const row: Unit = { line, unit: asked[at++] ?? "" };
          shown = { row, last: line, kept: false };
        }
        shown.last = line;
        if (key === "Id") shown.row.unit = value;
        const field = Object.hasOwn(PROPERTIES, key) ? PROPERTIES[key] : undefined;
        if (field === undefined || value === "") continue;
        shown.row[field] = value;
        if (!shown.kept) rows.push(shown.row);
        shown.kept = true;
        if (key === "ActiveState" || shown.row.active === undefined) shown.row.line = line;
      } else if (view.format === "status") {
        const name = words[0] as string;
        const last = rows.at(-1);
        const [loaded, runs] = [LOADED.exec(content), RUNS.exec(content)];
        if (NAME.test(name) && (words.length === 1 || words[1] === "-")) {
          inStatus = true;
          rows.push({ line, unit: name });
        } else if (last !== undefined && inStatus && loaded !== null) Object.assign(last, present({ load: loaded[1], enabled: loaded[2] }));
        else if (last !== undefined && inStatus && runs !== null) Object.assign(last, present({ active: runs[1], sub: runs[2] }));
        // What else `status` prints (process tree, last messages) is no fact about the unit's state.
        else if (!inStatus && !MESSAGE.test(content)) unparsed.add(line, content);
      } else if (view.format === "timers") {
        const name = words.find((word) => word.endsWith(".timer"));
        if (name === undefined) unparsed.add(line, content);
        else rows.push({ line, unit: name, active: "active" });
      } else {
        const [name, second, third, fourth] = words as [string, string?, string?, string?];
        if (!NAME.test(name) || second === undefined) unparsed.add(line, content);
        else if (view.format === "files" && ENABLED.has(second)) rows.push({ line, unit: name, enabled: second });
        else if (view.format === "list" && third !== undefined && ACTIVE.has(third))
          rows.push({ line, unit: name, ...present({ load: second, active: third, sub: fourth }) });
        else unparsed.add(line, content);
      }
    }
    const told = NO_UNIT.exec(stderr.trim());
    if (told !== null && rows.length === 0)
      rows.push(Object.assign({ line: 1, unit: fullName((told[1] ?? told[2]) as string), load: "not-found" }, { text: stderr.trim() }));
    return unparsed.with({ rows });
  },
  merge: (parts) => ({
    rows: combine(
      ranked(parts).flatMap((part) => part.value.rows),
      (row) => row.unit,
    ),
  }),
  // Which units there are only the listing of the loaded ones tells.
  whole: (parts) => isShown(parts),
});

/** What `systemctl show` calls them. */
const PROPERTIES: Readonly<Record<string, "load" | "active" | "sub" | "enabled">> = {
  LoadState: "load",
  ActiveState: "active",
  SubState: "sub",
  UnitFileState: "enabled",
};

/** systemctl takes "kubelet" for "kubelet.service". */
const fullName = (name: string): string => (NAME.test(name) ? name : `${name}.service`);
