import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { grepAnswered } from "./ini.ts";
import { asString, asStrings, jsonElements } from "./json.ts";
import { readFamily } from "./mask.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";
import { present } from "./present.ts";

/**
 * Where names are resolved: the files of the resolver, and which of them the kubelet hands to pods.
 *
 *     /etc/resolv.conf:nameserver 127.0.0.53
 *     /var/lib/kubelet/config.yaml:resolvConf: /run/systemd/resolve/resolv.conf
 */
const Nameserver = z.object({
  line: z.int(),
  /** "/etc/resolv.conf"; "" where the listing is of a daemon, not of a file (`resolvectl status`). */
  file: z.string(),
  address: z.string(),
  /** Only `resolvectl` tells: the interface whose server it is; "" for a global one. */
  interface: z.string().optional(),
});
const File = z.object({
  line: z.int(),
  file: z.string(),
  search: z.array(z.string()),
  options: z.array(z.string()),
  nameservers: z.int(),
});
const Kubelet = z.object({
  line: z.int(),
  /** The file of the setting: "/var/lib/kubelet/config.yaml". */
  file: z.string(),
  /** The file that pods get their nameservers from; absent if the kubelet's settings do not say: then it is /etc/resolv.conf. */
  resolvConf: z.string().optional(),
  /** All of the output was read: a setting that is not there is not set. Known once the outputs are put together. */
  whole: z.boolean(),
  /** Only this setting was looked for, and it is not there. */
  searched: z.boolean().optional(),
});
/** Addresses that the kubelet tells pods to ask. */
const ClusterDns = z.object({ line: z.int(), file: z.string(), address: z.string() });
/** A file that is only a link to another: `ls -l` and `readlink -f` say so, and `resolvectl` of its own file (`resolv.conf mode: stub`). */
const Target = z.object({
  line: z.int(),
  file: z.string(),
  /** Absolute; of `resolvectl` the mode: "stub", "uplink", "foreign". */
  target: z.string(),
});
const ResolvConf = z.object({
  nameservers: z.array(Nameserver),
  files: z.array(File),
  kubelet: z.array(Kubelet),
  clusterDns: z.array(ClusterDns),
  targets: z.array(Target),
});
type Kubelet = z.infer<typeof Kubelet>;
type ResolvConf = z.infer<typeof ResolvConf>;

const RESOLV =
  /^(?:\/host)?(\/(?:etc\/resolv\.conf|run\/systemd\/resolve\/(?:stub-)?resolv\.conf|run\/NetworkManager\/(?:no-stub-)?resolv\.conf|etc\/resolvconf\/\S{1,100}|etc\/k8s-resolv\.conf|var\/lib\/rancher\/\S{1,100}\/resolv\.conf))$/;
const KUBELET =
  /^(?:\/host)?(\/(?:var\/lib\/kubelet\/(?:config\.yaml|kubeadm-flags\.env)|etc\/kubernetes\/kubelet(?:\/kubelet-config\.json|\/config\.json|-config\.yaml|\.conf|\/kubelet-config\.yaml)|etc\/default\/kubelet|etc\/sysconfig\/kubelet|(?:etc|lib|usr\/lib)\/systemd\/system\/kubelet\.service(?:\.d\/[\w.-]{1,64}\.conf)?))$/;
const UNIT = /\/kubelet\.service(?:$|\.d\/)/;
const PREFIX = /^(\/[^\s:]{1,200}):/;
const HEADER = /^==> (\/[^\s<>]{1,200}) <==$/;
const NAMESERVER = /^nameserver\s{1,20}(\S{1,64})(?:\s.{0,200})?$/;
const SEARCH = /^(?:search|domain)(?:\s{1,20}(.{1,2000}))?$/;
const OPTIONS = /^options(?:\s{1,20}(.{1,1000}))?$/;
const OTHER = /^(?:sortlist|lookup|family)\b|^[#;]/;
const NUMBERED = /^\d{1,6}[:-](?=\s{0,8}\S)/;
const COMPLAINT = /^(?:grep|cat|tail|head|ls): |: No such file or directory$/;
// kubelet: `resolvConf: /x`, `"resolvConf": "/x",`, and --resolv-conf=/x among its flags
const SETTING = /^\s{0,8}"?resolvConf"?\s{0,4}:\s{0,4}"?([^",\s]{0,200})"?,?$/;
const FLAG = /--resolv-conf[= ]"?([^"\s]{0,200})/;
const KIND = /^\s{0,8}"?(?:kind|apiVersion)"?\s{0,4}:/;
const CLUSTER_DNS = /^\s{0,8}"?clusterDNS"?\s{0,4}:\s{0,4}(?:\[(.{0,400})\]?,?)?$/;
const ITEM = /^\s{0,12}(?:-\s{1,4})?"?([^\s",]{3,64})"?,?$/;

/** https://NODE:10250/configz, or by way of the API server. */
const CONFIGZ = /\/configz$/;

const FILES = ["/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"];
const SETTINGS = [
  "/var/lib/kubelet/config.yaml",
  "/var/lib/kubelet/kubeadm-flags.env",
  "/etc/kubernetes/kubelet/kubelet-config.json",
  "/etc/kubernetes/kubelet/config.json",
];

export const resolvConf = defineFact<ResolvConf>({
  id: "resolv-conf",
  title: "Nameservers of the node, and where the kubelet takes those of pods from",
  commands: [
    { argv: ["grep", "-HsE", "^[[:space:]]*(nameserver|search|domain|options)", ...FILES] },
    {
      argv: ["grep", "-HsE", "-A3", '^[[:space:]]*"?(kind|resolvConf|clusterDNS)"?[[:space:]]*:|--resolv-conf', ...SETTINGS],
      byHand: `cat ${SETTINGS[0]}`,
    },
  ],
  byHand: "cat /etc/resolv.conf",
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if ((program === "resolvectl" || program === "systemd-resolve") && rest.every((word) => /^(?:status|--status|dns|--no-pager)$/.test(word))) {
      return { format: "resolvectl", complete: rest.every((word) => word !== "dns"), scope: "resolvectl", rank: 1 };
    }
    const files = rest.filter((word) => RESOLV.test(word));
    const shown = program === "ls" ? rest.some((word) => /^-[a-zA-Z]{0,6}l[a-zA-Z]{0,6}$/.test(word)) : program === "readlink" || program === "realpath";
    if (shown && files.length > 0 && rest.every((word) => word.startsWith("-") || RESOLV.test(word)))
      return { format: "link", complete: true, scope: `link ${bare(files).join(" ")}`, rank: 1 };
    // the kubelet's settings as they are in force, files and arguments together
    if (rest.some((word) => CONFIGZ.test(word)) && (program === "curl" || (program === "kubectl" && rest.includes("--raw"))))
      return { format: "configz", complete: true, scope: "kubelet configz", rank: 2 };
    // the unit has flags, and no word of the settings in the files that they name
    if (program === "systemctl" && rest[0] === "cat" && rest.slice(1).some((word) => /^kubelet(?:\.service)?$/.test(word)))
      return { format: "kubelet", complete: false, scope: "unit kubelet", rank: 1 };
    if (!["cat", "grep", "head", "tail", "egrep"].includes(program ?? "")) return undefined;
    const settings = rest.filter((word) => KUBELET.test(word));
    if (files.length === 0 && settings.length > 0 && settings.every((word) => UNIT.test(word)))
      return { format: "kubelet", complete: false, scope: `unit ${bare(settings).join(" ")}`, rank: 1 };
    if (files.length > 0) return { format: "files", complete: program === "cat" || isOurs(rest, 0), scope: `files ${bare(files).join(" ")}`, rank: 1 };
    if (settings.length > 0)
      return { format: "kubelet", complete: program === "cat" || isOurs(rest, 1) || namesAll(argv), scope: `kubelet ${bare(settings).join(" ")}`, rank: 1 };
    return undefined;
  },
  schema: ResolvConf,
  // grep -s exits with 1 or 2, and says nothing, where a file or a line is not there: that is an answer
  answered: (output) => grepAnswered(output) || ((output.exitCode ?? 0) <= 2 && output.stderr.includes("No such file or directory")),
  parse({ text, argv, view, pipe, stderr }) {
    const unparsed = new UnparsedLines();
    const value: ResolvConf = { nameservers: [], files: [], kubelet: [], clusterDns: [], targets: [] };
    if (view.format === "link") readTargets(text, view.scope, value, unparsed);
    else if (view.format === "resolvectl") readResolvectl(text, value, unparsed);
    else if (view.format === "configz" && ONE_FIELD.test(pipe ?? "")) readField(text, value, unparsed);
    else if (view.format === "configz") readConfigz(text, value, unparsed);
    else readFiles(text, argv, view.format, value, unparsed);
    // looked for in one file, which is there and does not have it
    const [asked, ...more] = argv.filter((word) => KUBELET.test(word) && !FLAG_FILE.test(word));
    if (view.format === "kubelet" && asked !== undefined && more.length === 0 && sought(argv) && withoutPrompts(text).trim() === "" && stderr.trim() === "")
      value.kubelet.push({ line: 1, file: bare([asked])[0] as string, whole: true, searched: true });
    return unparsed.with(value);
  },
  merge(parts: readonly Part<ResolvConf>[]) {
    const files = new Set<string>();
    const kubelets = new Set<string>();
    const merged: ResolvConf = { nameservers: [], files: [], kubelet: [], clusterDns: [], targets: parts.flatMap((part) => part.value.targets) };
    for (const { value, complete } of parts.toSorted((a, b) => Number(b.complete) - Number(a.complete))) {
      const fresh = value.files.filter((row) => !files.has(row.file));
      merged.files.push(...fresh);
      merged.nameservers.push(...value.nameservers.filter((row) => row.file === "" || fresh.some((file) => file.file === row.file)));
      for (const row of fresh) files.add(row.file);
      for (const row of value.kubelet) {
        if (kubelets.has(row.file)) continue;
        merged.kubelet.push({ ...row, whole: complete || row.whole });
        merged.clusterDns.push(...value.clusterDns.filter((server) => server.file === row.file));
        kubelets.add(row.file);
      }
    }
    return merged;
  },
  // the node's file and the kubelet's settings are two halves
  whole: (parts) => ["files ", "kubelet "].every((half) => parts.some((part) => part.complete && part.view.scope.startsWith(half))),
});

const bare = (files: readonly string[]): string[] => files.map((file) => file.replace(/^\/host(?=\/)/, ""));

/** True for a grep that shows each line of the two settings with what stands below: `grep -A3 -E "resolvConf|clusterDNS" /var/lib/kubelet/config.yaml`. */
function namesAll([program, ...rest]: readonly string[]): boolean {
  const pattern = rest.find((word, i) => !word.startsWith("-") && !/^-[ABC]$/.test(rest[i - 1] ?? "")) ?? "";
  const options = rest.every(
    (word) => !word.startsWith("-") || /^-(?:[EPiHhnse]{1,6}|[AC]\d{0,3}|-(?:after-)?context=\d{1,3}|-color(?:=\w{1,8})?)$/.test(word),
  );
  const below = rest.some((word, i) => /^-[AC][1-9]|^--(?:after-)?context=[1-9]/.test(word) || (/^-[AC]$/.test(word) && Number(rest[i + 1]) > 0));
  const words = pattern.split("|").map((one) => one.replace(/\\$/, "").toLowerCase());
  return /^e?grep$/.test(program ?? "") && options && below && ["resolvconf", "clusterdns"].every((key) => words.includes(key));
}

/** Of units and of files for a shell, which have arguments and no settings. */
const FLAG_FILE = /\.env$|^(?:\/host)?\/etc\/(?:default|sysconfig)\/|\/kubelet\.service(?:$|\.d\/)/;

/** True for a plain search for the one setting: `grep -i resolvConf /var/lib/kubelet/config.yaml`. */
function sought([program, ...rest]: readonly string[]): boolean {
  const [pattern = "", ...files] = rest.filter((word) => !word.startsWith("-"));
  const plain = rest.every((word) => !word.startsWith("-") || /^-[EniHh]{1,5}$/.test(word));
  return /^e?grep$/.test(program ?? "") && plain && files.length === 1 && /^(?:resolvConf|resolv(?:-|\.\*)?conf|resolv):?$/i.test(pattern);
}

/** True for the fact's own command, which leaves out only what this fact does not read. */
function isOurs(rest: readonly string[], index: 0 | 1): boolean {
  const own = resolvConf.commands[index]?.argv.slice(1) ?? [];
  return rest.length === own.length && rest.every((word, i) => word === own[i]);
}

// lrwxrwxrwx 1 root root 39 Feb 17  2026 /etc/resolv.conf -> ../run/systemd/resolve/stub-resolv.conf
const LISTED = /^[l-][rwxsStT-]{9}[.+@]? .{1,200} (\/\S{1,200})(?: -> (\S{1,200}))?$/;

/** What `ls -l`, `readlink` and `realpath` say of the files. */
function readTargets(text: string, scope: string, value: ResolvConf, unparsed: UnparsedLines): void {
  const files = scope.split(" ").slice(1);
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim();
    const listed = LISTED.exec(content);
    const [file, target] = listed === null ? [files.length === 1 ? files[0] : undefined, content] : [listed[1], listed[2]];
    if (isPrompt(raw) || COMPLAINT.test(content) || (listed !== null && target === undefined)) continue;
    if (file === undefined || target === undefined || !/^(?:\/|\.\.\/)\S{1,200}$/.test(target)) unparsed.add(line, raw);
    else value.targets.push({ line, file: bare([file])[0] as string, target: target.replace(/^(?:\.\.\/){1,8}/, "/") });
  }
}

function readFiles(text: string, argv: readonly string[], format: string, value: ResolvConf, unparsed: UnparsedLines): void {
  const asked = argv.slice(1).filter((word) => RESOLV.test(word) || KUBELET.test(word));
  let file = bare(asked)[0] ?? (argv[0] === "systemctl" ? "/etc/systemd/system/kubelet.service" : "");
  let open: Kubelet | undefined; // the list of clusterDNS goes on
  for (const { line, text: raw } of lines(text)) {
    const header = HEADER.exec(raw);
    if (header !== null) {
      file = bare([header[1] as string])[0] as string;
      open = undefined;
      continue;
    }
    // grep puts the path in front, with a hyphen where the line is only context
    const path = asked.find((one) => raw.startsWith(one) && (raw[one.length] === ":" || raw[one.length] === "-")) ?? PREFIX.exec(raw)?.[1];
    const named = path !== undefined && (RESOLV.test(path) || KUBELET.test(path));
    if (named) file = bare([path])[0] as string;
    // and with -n the number of the line
    const content = (named ? raw.slice(path.length + 1) : raw).replace(NUMBERED, "");
    if (content.trim() === "" || raw === "--" || isPrompt(raw)) continue;
    if (format === "kubelet") {
      // every line of the settings is one of many that say nothing of names
      if (!COMPLAINT.test(content)) open = readSetting(content, file, line, value, open);
      else if (!content.endsWith("No such file or directory")) unparsed.add(line, raw);
    } else if (!readResolv(content.trim(), file, line, value) && !COMPLAINT.test(content)) unparsed.add(line, raw);
  }
}

/** One line of resolv.conf. False if it is none. */
function readResolv(content: string, file: string, line: number, value: ResolvConf): boolean {
  const server = NAMESERVER.exec(content);
  const search = SEARCH.exec(content);
  const options = OPTIONS.exec(content);
  if (server === null && search === null && options === null) return OTHER.test(content);
  let row = value.files.find((known) => known.file === file);
  if (row === undefined) {
    row = { line, file, search: [], options: [], nameservers: 0 };
    value.files.push(row);
  }
  if (server !== null) {
    value.nameservers.push({ line, file, address: server[1] as string });
    row.nameservers++;
  } else if (search !== null) row.search = wordsOf(search[1]);
  else row.options.push(...wordsOf(options?.[1]));
  return true;
}

const wordsOf = (text: string | undefined): string[] => (text ?? "").split(/\s+/, 64).filter((word) => word !== "");

/** One line of the kubelet's settings. Returns the row whose list of clusterDNS goes on. */
function readSetting(content: string, file: string, line: number, value: ResolvConf, open: Kubelet | undefined): Kubelet | undefined {
  let row = value.kubelet.find((known) => known.file === file);
  const needed = (): Kubelet => {
    if (row !== undefined) return row;
    row = { line, file, whole: false };
    value.kubelet.push(row);
    return row;
  };
  const item = ITEM.exec(content);
  if (open !== undefined && item !== null && readFamily(item[1] as string, "ipv4") !== undefined) {
    value.clusterDns.push({ line, file, address: item[1] as string });
    return open;
  }
  const setting = /^\s{0,20}[#;]/.test(content) ? null : (SETTING.exec(content) ?? FLAG.exec(content));
  if (setting !== null) Object.assign(needed(), { line }, setting[1] === "" ? {} : { resolvConf: setting[1] });
  else if (CLUSTER_DNS.test(content)) {
    const row = needed();
    const inline = CLUSTER_DNS.exec(content)?.[1] ?? "";
    for (const address of inline.split(/[",\]\s]+/, 16)) if (readFamily(address, "ipv4") !== undefined) value.clusterDns.push({ line, file, address });
    return inline.trim() === "" ? row : undefined;
  } else if (KIND.test(content)) needed();
  return undefined;
}

/** `{"kubeletconfig":{"clusterDNS":["10.96.0.10"],"resolvConf":"/etc/resolv.conf",…}}` */
function readConfigz(text: string, value: ResolvConf, unparsed: UnparsedLines): void {
  for (const { value: given, line, text: quote } of jsonElements(text.trimStart().startsWith("[") ? "" : `[${text}]`, unparsed)) {
    const settings = given["kubeletconfig"] as Record<string, unknown> | undefined;
    if (typeof settings !== "object" || settings === null) {
      unparsed.add(line, quote);
      continue;
    }
    const resolvConf = asString(settings["resolvConf"]);
    value.kubelet.push(Object.assign({ line, file: "configz", whole: true, ...present({ resolvConf }) }, { text: quote }));
    for (const address of asStrings(settings["clusterDNS"]))
      if (readFamily(address, "ipv4") !== undefined) value.clusterDns.push(Object.assign({ line, file: "configz", address }, { text: quote }));
  }
}

/** `| jq .kubeletconfig.resolvConf`, `| jq -r '.kubeletconfig | .resolvConf'` */
const ONE_FIELD = /^jq (?:-r )?["']?\.kubeletconfig ?(?:\| ?)?\.resolvConf["']?$/;

/** The one field of configz that somebody kept; null where it is not set. */
function readField(text: string, value: ResolvConf, unparsed: UnparsedLines): void {
  for (const { line, text: raw } of lines(text)) {
    const [, file] = /^"?(\/[^\s"]{1,200}|null|)"?$/.exec(raw.trim()) ?? [];
    if (file === undefined) {
      if (!isPromptLine(raw)) unparsed.add(line, raw);
    } else if (file !== "") value.kubelet.push({ line, file: "configz", whole: true, ...(file === "null" ? {} : { resolvConf: file }) });
  }
}

// Link 2 (eth0)   Global   then   Current DNS Server: …   DNS Servers: 10.1.0.2 10.1.0.3   and one more server a line
const LINK = /^(?:Link \d{1,6} \(([^)]{1,15})\)|(Global))(?:: ?(.*))?$/;
const SERVERS = /^(Current )?(?:DNS Servers?|Fallback DNS Servers): {0,4}(.*)$/;
const MODE = /^resolv\.conf mode: (\w{1,20})$/;
const FIELD = /^[A-Za-z][\w /.+-]{1,40}: ?.*$/;

/** `resolvectl status`: the servers of the daemon, and the file's mode. */
function readResolvectl(text: string, value: ResolvConf, unparsed: UnparsedLines): void {
  let owner = "";
  let list = false;
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim();
    const link = LINK.exec(content);
    const servers = SERVERS.exec(content);
    if (link !== null) {
      owner = link[1] ?? "";
      list = false;
      addServers(link[3] ?? "", line, owner, value);
    } else if (servers !== null) {
      list = servers[1] === undefined && !content.startsWith("Fallback");
      if (list) addServers(servers[2] as string, line, owner, value);
    } else if (MODE.test(content)) value.targets.push({ line, file: "/etc/resolv.conf", target: MODE.exec(content)?.[1] as string });
    else if (list && readFamily(serverAddress(content), "ipv4") !== undefined) addServers(content, line, owner, value);
    else if (FIELD.test(content) || isPrompt(raw)) list = false;
    else if (!/^[~\w.%:#-]{1,255}(?: [~\w.%:#-]{1,255}){0,32}$/.test(content)) unparsed.add(line, raw);
  }
}

/** "10.1.0.2#53", "fe80::1%eth0", "9.9.9.9#dns.quad9.net" → the address. */
const serverAddress = (word: string): string => word.split(/[#%]/, 1)[0] as string;

function addServers(text: string, line: number, owner: string, value: ResolvConf): void {
  for (const word of wordsOf(text)) {
    const address = serverAddress(word);
    if (readFamily(address, "ipv4") !== undefined) value.nameservers.push({ line, file: "", address, interface: owner });
  }
}
