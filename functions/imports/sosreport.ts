import { parsedJson } from "../facts/json.ts";
import { decodeText } from "../transports/archive.ts";
import { type Draft, type Importer, isKnown, withoutRawDmesg } from "./bundle.ts";

/**
 * A sosreport (`sos report`): `sos_commands/<plugin>/<command with _ for blanks>`, and copies of files under their own paths.
 * Its manifest tells the commands as they were run; older reports have none, or hide it.
 */

/** Folders that hold copies of the node's files. */
const COPIED = /^(?:etc|proc|run|sys|var|usr|lib)\//;
const DATE = /^[A-Z][a-z]{2} [A-Z][a-z]{2} {1,2}\d{1,2} .{8,40}$/;

/** The path below the report's own folder. */
function inside(name: string, root: string): string | undefined {
  return name.startsWith(root) ? name.slice(root.length) : undefined;
}

function rootOf(names: readonly string[]): string | undefined {
  const found = names.find((name) => /^(?:[^/]{1,200}\/){0,3}sos_commands\//.test(name));
  return found?.slice(0, found.indexOf("sos_commands/"));
}

/** The kubeconfig's own name may have a `_` that is no blank (Charmed Kubernetes): `kubectl_--kubeconfig_.root.cdk.cdk_addons_kubectl_config_get_nodes`. */
const KUBECONFIG = /^(kubectl)_--kubeconfig_[\w.-]{1,200}?_(?=(?:--namespace|describe|get|logs)_)/;

/** The last word is a device, whose own name may end so (`flannel.1`, the VLAN `bond0.5`): without its number it would be taken for another, or for a second sample. */
const OF_DEVICE = /^ethtool_|_dev_(?:show_)?[^_]{1,15}$/;

/**
 * `sos_commands/networking/ip_route_show_table_all` → `ip route show table all`. A name that repeats has a number behind it (`.1`).
 * The plugin may sort them into folders of its own (`kubernetes/pods/…`).
 */
function commandOf(path: string): string | undefined {
  const mangled = /^sos_commands\/[\w-]{1,40}\/(?:[\w.-]{1,100}\/){0,2}([^/]{1,255})$/.exec(path)?.[1];
  const once = mangled === undefined || OF_DEVICE.test(mangled) ? mangled : mangled.replace(/\.\d$/, "");
  if (once !== undefined) return slashed(once.replace(KUBECONFIG, "$1_").split("_")).join(" ");
  return COPIED.test(path) ? `cat /${path}` : undefined;
}

/** A path, of which each slash is a dot: `.etc.cni.net.d`. A dot before `d`, or before what a file's name ends with, is the name's own. */
const DOTTED_PATH = /^\.(?:dev|etc|lib|opt|proc|run|sys|usr|var)(?:\.|$)/;
const OWN_DOT = /\.(?!d(?:\.|$)|(?:conf|conflist|json|log|sock|ya?ml)$)/g;

/** A slash is a dot in a name: `ovs-appctl_bond.show_bond1`, `ls_-alhZR_.etc.cni`. */
function slashed(words: readonly string[]): string[] {
  const appctl = words[0] === "ovs-appctl";
  return words.map((word) => {
    if (appctl && /^[a-z-]{2,40}\.[a-z-]{2,40}$/.test(word)) return word.replace(".", "/");
    return DOTTED_PATH.test(word) ? word.replaceAll(OWN_DOT, "/") : word;
  });
}

export const sosreport: Importer = {
  id: "sosreport",
  title: "a sosreport",
  recognize(names) {
    const root = rootOf(names);
    if (root === undefined) return undefined;
    return (name) => {
      const path = inside(name, root);
      if (path === undefined) return false;
      if (/^(?:hostname|date|sos_reports\/manifest\.json|sos_commands\/(?:host\/hostname|date\/date|general\/(?:date|hostname)))$/.test(path)) return true;
      const command = commandOf(path);
      return command !== undefined && isKnown(command);
    };
  },
  read(files, names) {
    const root = rootOf(names) ?? "";
    const text = (path: string): string | undefined => {
      const head = files.get(root + path);
      return head === undefined ? undefined : decodeText(head.bytes);
    };
    const exact = manifestCommands(text("sos_reports/manifest.json"));
    const outputs: Draft["outputs"][number][] = [];
    for (const [name, head] of files) {
      const path = inside(name, root) ?? "";
      const command = exact.get(path) ?? commandOf(path);
      if (command !== undefined && isKnown(command)) outputs.push({ command, file: name, text: decodeText(head.bytes), truncated: head.truncated });
    }
    // those at the top are links into sos_commands, and a zip may hold a link's target as its text
    const hostname = (text("sos_commands/host/hostname") ?? text("sos_commands/general/hostname") ?? text("hostname"))?.trim().split("\n")[0];
    const date = (text("sos_commands/date/date") ?? text("sos_commands/general/date") ?? text("date"))?.trim().split("\n")[0] ?? "";
    const time = DATE.test(date) ? Date.parse(date) : Number.NaN;
    return [{ target: hostname || undefined, startedAt: Number.isNaN(time) ? undefined : new Date(time).toISOString(), outputs: withoutRawDmesg(outputs) }];
  },
};

/** Path → command line, from the manifest. Anything else than what is expected in it is passed over. */
function manifestCommands(text: string | undefined): Map<string, string> {
  const commands = new Map<string, string>();
  if (text === undefined) return commands;
  // where it was cut the names of the files tell nearly as much
  const plugins = at(parsedJson(text), "components", "report", "plugins");
  if (typeof plugins !== "object" || plugins === null) return commands;
  for (const plugin of Object.values(plugins)) {
    const list = at(plugin, "commands");
    if (!Array.isArray(list)) continue;
    for (const entry of list) {
      const path = at(entry, "filepath");
      const command = at(entry, "exec") ?? at(entry, "command");
      if (typeof path === "string" && typeof command === "string") commands.set(path.replace(/^\//, ""), command);
    }
  }
  return commands;
}

function at(value: unknown, ...keys: readonly string[]): unknown {
  let current = value;
  for (const key of keys) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}
