import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { catsFiles, grepAnswered, grepsWholeFiles, IniSetting, iniSettings } from "./ini.ts";
import { readMac } from "./mask.ts";
import { isShown, ranked } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Settings of systemd-networkd and of .link files, the interfaces as networkctl sees them, and the version of systemd.
 *
 *     /etc/systemd/networkd.conf.d/10-cni.conf:ManageForeignRoutes=no
 *     /usr/lib/systemd/network/99-default.link:MACAddressPolicy=persistent
 */
const File = z.object({
  line: z.int(),
  file: z.string(),
  /** True of the last file of an output that was truncated: more of it, and more files, may have followed. */
  cut: z.boolean().optional(),
});
const Managed = z.object({
  line: z.int(),
  interface: z.string(),
  /** "ether", "vxlan", "loopback", … */
  type: z.string().optional(),
  /** "routable", "degraded", "carrier", "off", … */
  operational: z.string().optional(),
  /** "configured", "unmanaged", "configuring", "failed", … */
  setup: z.string().optional(),
  linkFile: z.string().optional(),
  networkFile: z.string().optional(),
  /** Lower case, colons; only `networkctl status` tells. */
  mac: z.string().optional(),
});
const Version = z.object({ line: z.int(), version: z.int() });
const Networkd = z.object({
  settings: z.array(IniSetting),
  /** Files that were read, those without settings too. */
  files: z.array(File),
  interfaces: z.array(Managed),
  versions: z.array(Version),
});
type Managed = z.infer<typeof Managed>;
type Networkd = z.infer<typeof Networkd>;

const FOLDERS = ["/etc/systemd", "/run/systemd", "/usr/local/lib/systemd", "/usr/lib/systemd", "/lib/systemd"];
const CONFIGURATION = /^(?:\/host)?\/(?:etc|run|usr\/local\/lib|usr\/lib|lib)\/systemd\/(?:networkd\.conf|networkd\.conf\.d|network)(?:\/|$)/;
/** Every grep knows these options; --include, which keeps the keys of WireGuard in .netdev files out, BusyBox's does not. */
const GREP = ["grep", "-rsH", "^", ...FOLDERS.flatMap((folder) => [`${folder}/networkd.conf`, `${folder}/networkd.conf.d`])];
const GREP_LINKS = ["grep", "-rsH", "^", "--include=*.link", ...FOLDERS.map((folder) => `${folder}/network`)];
const ROW = /^(\d{1,6}) (\S{1,15}) (\S{1,20}) (\S{1,20}) (\S{1,20})$/;
const STATUS = /^(?:[●○×*]\s+)?\d{1,6}: (\S{1,15})$/u;
/** `networkctl status` without a link: "●        State: routable" and the addresses of all links. */
const WHOLE = /^(?:[●○×*]\s+)?(?:Overall )?State: [a-z-]{1,20}$/u;
const FIELD = /^\s{0,48}([A-Z][A-Za-z0-9 ()./-]{1,40}):(?: (.*))?$/;
const DEVICE = /^(?:--path=)?(?:\/sys)?\/(?:class\/net|devices\/virtual\/net)\/([^/\s]{1,15})\/?$/;
/** `udevadm info` puts "E: " in front; what `udevadm test` says while it looks for the file. */
const LINK_FILE = /^(?:(?:E: )?ID_NET_LINK_FILE=(\/\S{1,250})|(?:\S{1,15}: )?Config file (\/\S{1,250}\.link) (?:is applied|applies to .{1,200}))$/;
const LEGEND = /^(?:IDX\s.*|WARNING: systemd-networkd is not running.*|\d{1,6} links listed\.)$/;
const VERSION = /^systemd (\d{1,5})\b/;

export const networkd = defineFact({
  id: "networkd",
  title: "Settings of systemd-networkd and of .link files",
  commands: [{ argv: GREP }, { argv: GREP_LINKS }, { argv: ["networkctl", "list", "--no-pager", "--no-legend"] }, { argv: ["systemctl", "--version"] }],
  byHand: "systemd-analyze cat-config systemd/networkd.conf",
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    const words = operands(argv);
    if ((program === "systemctl" || program === "networkctl" || program === "systemd") && rest.includes("--version")) {
      return { format: "version", complete: true, scope: "version", rank: 1 };
    }
    if (program === "networkctl" && (words.length === 0 || words[0] === "list")) return { format: "list", complete: words.length < 2, scope: "list", rank: 1 };
    if (program === "networkctl" && words[0] === "status") return { format: "status", complete: false, scope: words.join(" "), rank: 1 };
    if (program === "systemd-analyze" && words[0] === "cat-config" && /(?:^|\/)networkd\.conf$/.test(words[1] ?? "")) {
      return { format: "settings", complete: true, scope: "settings", rank: 3 };
    }
    if (program === "systemd-analyze" && words[0] === "cat-config" && words.length > 1 && words.slice(1).every((word) => /\.(?:link|network)$/.test(word))) {
      return { format: "settings", complete: false, scope: words.slice(1).join(" "), rank: 2 };
    }
    // which .link file systemd takes for an interface, as people ask it
    const device = rest.findLast((word) => DEVICE.test(word));
    if (program === "udevadm" && device !== undefined && /^(?:test-builtin|test|info)$/.test(words[0] ?? "")) {
      return { format: "udevadm", complete: false, scope: device, rank: 1 };
    }
    if (grepsWholeFiles(argv, CONFIGURATION)) {
      const links = words.slice(1).every((word) => word.endsWith("/network"));
      const own = links ? GREP_LINKS : GREP;
      return {
        format: "settings",
        complete: own.filter((word) => word.startsWith("/")).every((path) => argv.includes(path)),
        scope: links ? "links" : "settings",
        rank: 4,
      };
    }
    // `grep -r MACAddressPolicy FOLDER…`: some lines of the files
    if (program === "grep" && words.length > 1 && words.slice(1).every((word) => CONFIGURATION.test(word))) {
      return { format: "settings", complete: false, scope: words.join(" "), rank: 1 };
    }
    const files = catsFiles(argv, CONFIGURATION);
    if (files !== undefined) return { format: "settings", complete: false, scope: files.join(" "), rank: 2 };
    return undefined;
  },
  schema: Networkd,
  answered: grepAnswered,
  parse({ text, argv, view, truncated }) {
    const unparsed = new UnparsedLines();
    const value: Networkd = { settings: [], files: [], interfaces: [], versions: [] };
    if (view.format === "settings") {
      const words = operands(argv);
      const files = argv[0] === "cat" ? words : argv[0] === "grep" && /\.(?:link|conf|network)$/.test(words[1] ?? "") ? words.slice(1) : [];
      Object.assign(value, iniSettings(text, files.length === 1 ? (files[0] as string) : "", unparsed));
      const last = value.files.at(-1);
      // files of links are another matter: networkd.conf is not among them
      if (truncated === true && last !== undefined && view.scope !== "links") last.cut = true;
      return unparsed.with(value);
    }
    if (view.format === "udevadm") {
      const name = DEVICE.exec(view.scope)?.[1] ?? "";
      // the rest of what udev says of the device is of no use here
      for (const { line, text: content } of lines(text)) {
        const [, asked, applied] = LINK_FILE.exec(content.trim()) ?? [];
        const linkFile = asked ?? applied;
        if (linkFile !== undefined && value.interfaces.length === 0) value.interfaces.push({ line, interface: name, linkFile });
      }
      return unparsed.with(value);
    }
    let current: Managed | undefined;
    let whole = false;
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim().replace(/\s+/g, " ");
      if (isPromptLine(content) || LEGEND.test(bare)) continue;
      if (view.format === "version") {
        const version = VERSION.exec(bare)?.[1];
        if (version !== undefined) value.versions.push({ line, version: Number(version) });
        // the second line lists what it was built with: +PAM +AUDIT default-hierarchy=unified
        else if (!/^[+-][A-Z0-9]{2,20} /.test(bare)) unparsed.add(line, content);
      } else if (view.format === "list") {
        const row = ROW.exec(bare);
        if (row === null) unparsed.add(line, content);
        else value.interfaces.push({ line, interface: row[2] as string, type: row[3] as string, operational: row[4] as string, setup: row[5] as string });
      } else {
        const heading = STATUS.exec(content.trim());
        const field = FIELD.exec(content);
        if (heading !== null) {
          current = { line, interface: heading[1] as string };
          value.interfaces.push(current);
        } else if (current === undefined) {
          // without a name: that of the whole node comes first
          whole ||= WHOLE.test(content.trim());
          if (!whole) unparsed.add(line, content);
        } else if (field !== null) Object.assign(current, statusField(field[1] as string, field[2] ?? ""));
      }
    }
    return unparsed.with(value);
  },
  merge(parts) {
    const best = ranked(parts);
    // /lib is /usr/lib on most distributions: the same file is read once.
    const seen = new Set<string>();
    const once = <R extends { file: string }>(list: (value: Networkd) => R[], key: (row: R) => string): R[] =>
      best.flatMap((part) =>
        list(part.value).filter((row) => {
          const id = `${row.file.replace(/^\/lib\//, "/usr/lib/")} ${key(row)}`;
          return !seen.has(id) && seen.add(id) !== undefined;
        }),
      );
    return {
      settings: once(
        (value) => value.settings,
        (row) => `${row.section} ${row.key} ${row.value}`,
      ),
      files: once(
        (value) => value.files,
        () => "file",
      ),
      interfaces: best.flatMap((part) => part.value.interfaces),
      versions: best.flatMap((part) => part.value.versions).slice(0, 1),
    };
  },
  // What is not set can only be told from all of networkd's own files.
  whole: (parts) => isShown(parts, "settings"),
});

/** The lines of `networkctl status` that are kept; the others (addresses, DNS, counters, the log below) are other facts'. */
function statusField(name: string, value: string): Partial<Managed> {
  if (name === "Link File" && value !== "n/a") return { linkFile: value };
  if (name === "Network File" && value !== "n/a") return { networkFile: value };
  if (name === "Type") return { type: value };
  // the name of the maker may follow
  if (name === "HW Address" || name === "Hardware Address") return present({ mac: readMac(value.split(" ", 1)[0] ?? "") });
  const state = name === "State" ? /^([a-z-]{1,20}) \(([a-z-]{1,20})\)/.exec(value) : null;
  return state === null ? {} : present({ operational: state[1], setup: state[2] });
}
