import { z } from "zod";
import { isPromptLine, operands, optionValue } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { catsFiles, grepAnswered, grepsWholeFiles, IniSetting, iniSettings } from "./ini.ts";
import { nmcliDevices, nmcliFields } from "./nmcli.ts";
import { isShown, ranked } from "./parts.ts";

/**
 * Devices as NetworkManager sees them, its settings and its version.
 *
 *     cali1234567890a:ethernet:unmanaged
 *     /etc/NetworkManager/conf.d/calico.conf:unmanaged-devices=interface-name:cali*;interface-name:tunl*
 */
const Device = z.object({
  line: z.int(),
  interface: z.string(),
  /** "ethernet", "bridge", "vxlan", … */
  type: z.string(),
  /** "connected", "connected (externally)", "unmanaged", "unavailable", … */
  state: z.string(),
});
const Version = z.object({
  line: z.int(),
  /** "1.42.2" */
  version: z.string(),
  major: z.int(),
  minor: z.int(),
});
const NetworkManager = z.object({ devices: z.array(Device), settings: z.array(IniSetting), versions: z.array(Version) });
type NetworkManager = z.infer<typeof NetworkManager>;
type Device = z.infer<typeof Device>;

const FOLDERS = ["/etc/NetworkManager/NetworkManager.conf", "/etc/NetworkManager/conf.d", "/run/NetworkManager/conf.d", "/usr/lib/NetworkManager/conf.d"];
const CONFIGURATION = /^(?:\/host)?\/(?:etc|run|usr\/lib)\/NetworkManager\/(?:NetworkManager\.conf|conf\.d(?:\/.{1,200})?)$/;
const FIELDS = "DEVICE,TYPE,STATE";
const STATE =
  "connected \\(externally\\)|connected|disconnected|unmanaged|unavailable|connecting \\([^)]{1,60}\\)|deactivating|activating|connection failed|unknown";
const TABLE = new RegExp(`^(\\S{1,15})\\s+(\\S{1,30})\\s+(${STATE})(?:\\s+.{0,200})?$`);
const TERSE = new RegExp(`^(\\S{1,15}):([a-z0-9-]{1,30}):(${STATE})(?::.{0,200})?$`);
const VERSION = /^(?:nmcli tool, version )?((\d{1,3})\.(\d{1,3})(?:\.\S{1,40})?)$/;

export const networkManager = defineFact({
  id: "network-manager",
  title: "Devices and settings of NetworkManager",
  // only these: connection files hold secrets
  commands: [{ argv: ["nmcli", "-t", "-f", FIELDS, "device"] }, { argv: ["nmcli", "--version"] }, { argv: ["grep", "-rsH", "^", ...FOLDERS] }],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if ((program === "nmcli" || program === "NetworkManager") && rest.some((word) => word === "--version" || word === "-V" || word === "-v")) {
      return { format: "version", complete: true, scope: "version", rank: 1 };
    }
    const shown = nmcliDevices(argv);
    if (shown !== undefined) {
      // fields that somebody chose may lack the state
      const all = shown === "device show" && optionValue(argv, "-f", "--fields", "-g", "--get-values") === undefined;
      return { format: "show", complete: all, scope: all ? "devices" : shown, rank: 0 };
    }
    if (program === "nmcli") {
      const fields = optionValue(argv, "-f", "--fields", "-g", "--get-values");
      if (fields !== undefined && !fields.toUpperCase().startsWith(FIELDS)) return undefined;
      const words = rest.filter(
        (word, i) => !word.startsWith("-") && !["-f", "--fields", "-g", "--get-values", "-c", "--colors", "-m", "--mode"].includes(rest[i - 1] ?? ""),
      );
      const object = words[0] ?? "";
      if (object === "" || !"device".startsWith(object) || (words[1] !== undefined && !"status".startsWith(words[1]))) return undefined;
      const terse = argv.includes("-g") || argv.includes("--get-values") || rest.some((word) => word === "--terse" || /^-[a-z]*t[a-z]*$/.test(word));
      return { format: terse ? "terse" : "table", complete: true, scope: "devices", rank: terse ? 2 : 1 };
    }
    if (grepsWholeFiles(argv, CONFIGURATION)) {
      return { format: "settings", complete: FOLDERS.slice(0, 2).every((path) => argv.includes(path)), scope: "settings", rank: 3 };
    }
    const files = catsFiles(argv, CONFIGURATION);
    return files === undefined ? undefined : { format: "settings", complete: false, scope: files.join(" "), rank: 2 };
  },
  schema: NetworkManager,
  answered: grepAnswered,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const value: NetworkManager = { devices: [], settings: [], versions: [] };
    if (view.format === "settings") {
      const files = argv[0] === "cat" ? operands(argv) : [];
      value.settings = iniSettings(text, files.length === 1 ? (files[0] as string) : "", unparsed).settings;
      return unparsed.with(value);
    }
    if (view.format === "show") {
      const types = new Map<string, string>();
      for (const { line, interface: name, key, value: said } of nmcliFields(text, argv, unparsed)) {
        if (key === "GENERAL.TYPE") types.set(name, said);
        const state = key === "GENERAL.STATE" ? /^\d{1,3} \((.{1,60})\)$/.exec(said)?.[1] : undefined;
        if (state !== undefined) value.devices.push({ line, interface: name, type: types.get(name) ?? "", state });
      }
      return unparsed.with(value);
    }
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim();
      const version = view.format === "version" ? VERSION.exec(bare) : null;
      // -t writes a colon in a value as \:
      const row = view.format === "version" ? null : (view.format === "terse" ? TERSE : TABLE).exec(bare.replaceAll("\\:", "."));
      if (version !== null) value.versions.push({ line, version: version[1] as string, major: Number(version[2]), minor: Number(version[3]) });
      else if (row !== null && row[1] !== "DEVICE") value.devices.push({ line, interface: row[1] as string, type: row[2] as string, state: row[3] as string });
      else if (!/^DEVICE\s/.test(bare) && !isPromptLine(content)) unparsed.add(line, content);
    }
    return unparsed.with(value);
  },
  merge(parts) {
    const best = ranked(parts);
    const devices = new Map<string, Device>();
    for (const part of best) for (const row of part.value.devices) if (!devices.has(row.interface)) devices.set(row.interface, row);
    return {
      devices: [...devices.values()],
      settings: best.flatMap((part) => part.value.settings),
      versions: best.flatMap((part) => part.value.versions).slice(0, 1),
    };
  },
  // where all its files were looked for and none says anything, it is not there, and has no devices
  whole: (parts) => isShown(parts, "devices") || (isShown(parts, "settings") && parts.every(({ value }) => value.settings.length === 0)),
});
