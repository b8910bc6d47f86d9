import { z } from "zod";
import { isPromptLine, operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, asStrings, jsonElements } from "./json.ts";
import { isMasked, readFamily, readMac } from "./mask.ts";
import { isShown, ranked } from "./parts.ts";

/**
 * Forwarding database: which MAC is behind which port of a bridge, or behind which remote of a vxlan.
 *
 *     0a:58:64:60:36:f0 dev veth05420679 master cni0
 *     5a:5d:19:d8:3b:27 dev flannel.1 dst 10.0.0.2 self permanent
 */
const Entry = z.object({
  line: z.int(),
  mac: z.string(),
  interface: z.string(),
  /** The bridge in whose table it is. */
  bridge: z.string().optional(),
  /** Address of the remote tunnel end (vxlan), without port. */
  destination: z.string().optional(),
  port: z.int().optional(),
  vni: z.int().optional(),
  vlan: z.int().optional(),
  /** Not aged out; on a bridge port, its own address. */
  permanent: z.boolean(),
  /** In the device's own table, not the bridge's. */
  self: z.boolean(),
  externLearn: z.boolean(),
  /** "permanent", "static" or "stale"; absent for an entry that was learned and is in use. */
  state: z.string().optional(),
});
/** A device whose entries were all seen: what is not in `rows` is not there. "*" stands for every device. */
const Listing = z.object({ line: z.int(), interface: z.string() });
const Fdb = z.object({ rows: z.array(Entry), listings: z.array(Listing) });
type Entry = z.infer<typeof Entry>;
export type Fdb = z.infer<typeof Fdb>;

const MAC = /^[0-9a-f]{2}(?::[0-9a-f]{2}){5}$/i;
const NAME = /^[!-~]{1,31}$/;
const ADDRESS = /^(?:[0-9.]{7,15}|[0-9a-f:.]{2,45})$/i;
const isMac = (text: string): boolean => MAC.test(text) || (isMasked(text) && readMac(text) !== undefined);
const isAddress = (text: string): boolean => ADDRESS.test(text) || readFamily(text, "ipv4") !== undefined;
const NUMBER = /^\d{1,10}$/;
const STATES: ReadonlySet<string> = new Set(["permanent", "static", "stale"]);
/** Words that stand alone and tell nothing that a row keeps. */
const FLAGS: ReadonlySet<string> = new Set(["offload", "sticky", "router", "master", "dynamic", "locked", "added_by_user", "activity_notify", "inactive"]);
/** Words with a value behind them that a row does not keep. */
const IGNORED = new Map([
  ["via", NAME],
  ["src_vni", NUMBER],
  ["nhid", NUMBER],
  ["link-netnsid", NUMBER],
  ["used", /^\d{1,10}\/\d{1,10}$/],
]);

/** A search through all entries by the name of devices: each entry has it. `bridge fdb | grep flannel` */
const SEARCH = /^[ef]?grep (?:-[iEFw] ){0,2}([A-Za-z][\w.-]{2,14})$/;
/** All entries of one device, without those that its bridge keeps for others. */
const DEVICE_SCOPE = /^(?:dev|brport) (\S{1,31})$/;

export const fdb = defineFact({
  id: "fdb",
  title: "Forwarding database of bridges and vxlan devices",
  commands: [{ argv: ["bridge", "-j", "fdb", "show"] }],
  recognize(argv): View | undefined {
    // -n looks into another network namespace
    if (argv[0] !== "bridge" || argv.some((word) => /^--?n(?:etns)?$/.test(word))) return undefined;
    const words = operands(argv);
    if (!/^f(?:d|db)?$/.test(words[0] ?? "") || !/^(?:s|sh|sho|show|l|ls|li|lis|list|g|ge|get)?$/.test(words[1] ?? "")) return undefined;
    const json = argv.some((word) => /^--?j(?:son)?$/.test(word));
    const scope = words.slice(2).join(" ");
    return { format: json ? "json" : "text", complete: scope === "" || DEVICE_SCOPE.test(scope), scope, rank: json ? 3 : 2 };
  },
  schema: Fdb,
  // each interface has entries of groups
  neverEmpty: (view) => view.scope === "",
  parse({ text, view, pipe, truncated }) {
    const unparsed = new UnparsedLines();
    const rows: Entry[] = [];
    // `bridge fdb show dev flannel.1` does not repeat the device
    const device = /(?:^| )(?:dev|brport) (\S{1,31})(?: |$)/.exec(view.scope)?.[1];
    if (view.format === "json") {
      for (const { value, line, text: quote } of jsonElements(text, unparsed)) {
        const row = fromJson(value, device);
        if (row !== undefined) rows.push(Object.assign({ line, ...row }, { text: quote }));
        else if (Object.keys(value).length > 0) unparsed.add(line, quote);
      }
      return unparsed.with({ rows, listings: [] });
    }
    for (const { line, text: content } of lines(text)) {
      const row = fromText(content.trimStart(), device);
      if (row !== undefined) rows.push({ line, ...row });
      else if (!isPromptLine(content)) unparsed.add(line, content);
    }
    // whether it shows all of them is known when the parts are put together
    const name = view.scope === "" && truncated !== true && unparsed.count === 0 ? SEARCH.exec(pipe ?? "")?.[1] : undefined;
    const found = new Set(rows.map((row) => row.interface).filter((device) => name !== undefined && device.includes(name)));
    return unparsed.with({ rows, listings: [...found].map((device) => ({ line: 1, interface: device })) });
  },
  whole: (parts) => isShown(parts),
  merge(parts) {
    const best = ranked(parts);
    const whole = best.find((part) => part.complete && part.view.scope === "");
    if (whole !== undefined) return { rows: whole.value.rows, listings: [{ line: 1, interface: "*" }] };
    const listings = best.flatMap((part) => {
      const device = part.complete ? DEVICE_SCOPE.exec(part.view.scope)?.[1] : undefined;
      return device === undefined ? part.value.listings : [{ line: 1, interface: device }];
    });
    const rows = new Map<string, Entry>();
    for (const part of best) {
      for (const row of part.value.rows) {
        const key = [row.mac, row.interface, row.bridge, row.destination, row.port, row.vni, row.vlan, row.self].join(" ");
        if (!rows.has(key)) rows.set(key, row);
      }
    }
    return { rows: [...rows.values()], listings };
  },
});

type Draft = Omit<Entry, "line">;
const draft = (mac: string, name: string): Draft => ({
  mac: readMac(mac) ?? mac.toLowerCase(),
  interface: name,
  permanent: false,
  self: false,
  externLearn: false,
});

function fromText(content: string, device: string | undefined): Draft | undefined {
  const words = content.split(/\s+/);
  const [mac, dev, shown] = words;
  const name = dev === "dev" ? shown : device;
  if (mac === undefined || !isMac(mac) || name === undefined) return undefined;
  const row = draft(mac, name);
  for (let i = dev === "dev" ? 3 : 1; i < words.length; i++) {
    const word = words[i] as string;
    const value = words[i + 1] ?? "";
    const ignored = IGNORED.get(word);
    if (word === "self") row.self = true;
    else if (word === "extern_learn") row.externLearn = true;
    else if (STATES.has(word)) {
      row.state = word;
      row.permanent = word === "permanent";
    } else if (word === "dst" && isAddress(value)) {
      row.destination = value;
      i++;
    } else if (word === "master" && NAME.test(value)) {
      row.bridge = value;
      i++;
    } else if ((word === "vlan" || word === "vni" || word === "port") && NUMBER.test(value)) {
      row[word] = Number(value);
      i++;
    } else if (ignored?.test(value) === true) i++;
    else if (!FLAGS.has(word)) return undefined;
  }
  return row;
}

function fromJson(value: Record<string, unknown>, device: string | undefined): Draft | undefined {
  const mac = asString(value["mac"]);
  const name = asString(value["ifname"]) ?? device;
  if (mac === undefined || !isMac(mac) || name === undefined) return undefined;
  const row = draft(mac, name);
  const flags = asStrings(value["flags"]);
  row.self = flags.includes("self");
  row.externLearn = flags.includes("extern_learn");
  const state = asString(value["state"]);
  if (state !== undefined && STATES.has(state)) row.state = state;
  row.permanent = state === "permanent";
  const destination = asString(value["dst"]);
  if (destination !== undefined && isAddress(destination)) row.destination = destination;
  const master = asString(value["master"]);
  if (master !== undefined) row.bridge = master;
  for (const field of ["vlan", "vni", "port"] as const) {
    const number = asInteger(value[field]);
    if (number !== undefined) row[field] = number;
  }
  return row;
}
