import { z } from "zod";
import { hasLetter, hasOption, isPromptLine, optionValue } from "./command.ts";
import { answeredByDefault, defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { unbracketed } from "./ip-address.ts";
import { ranked } from "./parts.ts";
import { present } from "./present.ts";
import { procNet } from "./proc-net.ts";

/**
 * Virtual servers of the kernel's load balancer IPVS and the real servers behind them.
 *
 *     TCP  10.96.0.1:443 rr
 *       -> 10.0.0.11:6443               Masq    1      3          0
 */
const Service = z.object({
  line: z.int(),
  /** "tcp", "udp", "sctp", or "fwmark" (then `address` is the mark and there is no port). */
  protocol: z.string(),
  address: z.string(),
  port: z.int().optional(),
  /** "rr", "lc", "sh", …; left out where the listing shows numbers instead. */
  scheduler: z.string().optional(),
  /** Clients stay with one real server for a time (session affinity). */
  persistent: z.boolean(),
  /** Real servers that were listed for it. */
  servers: z.int(),
  /** True of the last one of a listing that was truncated, filtered, or asked for this one alone: there may be others, and other real servers. */
  partial: z.boolean().optional(),
});
const Server = z.object({
  line: z.int(),
  protocol: z.string(),
  serviceAddress: z.string(),
  servicePort: z.int().optional(),
  address: z.string(),
  port: z.int().optional(),
  /** "masq", "route", "tunnel" or "local". */
  forward: z.string().optional(),
  /** 0: gets no new connections. */
  weight: z.int().optional(),
  /** Connections now. */
  active: z.int().optional(),
  /** Of a second sample: how many more connections there are then. */
  activeDelta: z.int().optional(),
  /** Connections that are closing, TIME_WAIT among them. */
  inactive: z.int().optional(),
});
/** The title of a whole listing that has nothing below it, or what `ipvsadm -S` says of no service: IPVS is there, and serves nothing. */
const Empty = z.object({ line: z.int() });
const Ipvs = z.object({ services: z.array(Service), servers: z.array(Server), empty: z.array(Empty) });
type Service = z.infer<typeof Service>;
type Server = z.infer<typeof Server>;
type Ipvs = z.infer<typeof Ipvs>;
interface Endpoint {
  address: string;
  port?: number;
}

// TCP  10.96.0.1:443 rr persistent 10800   TCP  [fd00::1]:443 rr   FWM  1 rr   (--stats: numbers instead)
const SERVICE = /^(TCP|UDP|SCTP|FWM)\s{1,40}(\S{1,80})(?:\s{1,60}(\S.{0,200}))?$/;
const SERVER = /^->\s{1,8}(\S{1,80})(?:\s{1,60}(\S.{0,200}))?$/;
const FORWARD = /^(Masq|Route|Tunnel|Local)\s{1,20}(-?\d{1,9})\s{1,20}(\d{1,15})\s{1,20}(\d{1,15})$/;
const NUMBERS = /^\d{1,20}[KMGT]?(?:\s{1,20}\d{1,20}[KMGT]?){2,5}$/;
const FRAME = /^(?:IP Virtual Server version .{1,80}|Prot LocalAddress:Port\b.{0,80}|-> RemoteAddress:Port\b.{0,80})$/;
const FORWARDS: Readonly<Record<string, string>> = {
  "-m": "masq",
  "-g": "route",
  "-i": "tunnel",
  "--masquerading": "masq",
  "--gatewaying": "route",
  "--ipip": "tunnel",
};
const PROTOCOLS: Readonly<Record<string, string>> = { "-t": "tcp", "-u": "udp", "-f": "fwmark", "--sctp-service": "sctp" };
const FILE = procNet("ip_vs");

export const ipvs = defineFact<Ipvs>({
  id: "ipvs",
  title: "Virtual and real servers of IPVS",
  commands: [{ argv: ["ipvsadm", "-Ln"], modules: ["ip_vs"] }, { argv: ["cat", "/proc/net/ip_vs"] }],
  recognize(argv): View | undefined {
    const [program] = argv;
    if (program === "cat" && argv.length === 2 && FILE.test(argv[1] as string)) return { format: "proc", complete: true, scope: "", rank: 2 };
    if (program === "ipvsadm-save") return { format: "save", complete: true, scope: "", rank: 1 };
    if (program !== "ipvsadm") return undefined;
    if (hasLetter(argv, "S") || hasOption(argv, "--save")) return { format: "save", complete: true, scope: "", rank: 1 };
    const lists = hasLetter(argv, "L") || hasLetter(argv, "l") || hasOption(argv, "--list") || argv.length === 1 || hasOption(argv, "-n");
    if (!lists || hasLetter(argv, "c") || hasOption(argv, "--connection", "--timeout", "--daemon", "--set")) return undefined;
    const numbers = hasOption(argv, "--stats", "--rate", "--thresholds", "--persistent-conn");
    const one = optionValue(argv, "-t", "-u", "-f", "--tcp-service", "--udp-service", "--fwmark-service");
    return { format: "list", complete: one === undefined, scope: "", rank: numbers ? 2 : 3 };
  },
  schema: Ipvs,
  // without the module there is no file, and no virtual server either
  answered: (output) => answeredByDefault(output) || /(?:ip_vs: No such file or directory|Can't initialize ipvs: Protocol not available)/.test(output.stderr),
  parse({ text, view, truncated }) {
    const unparsed = new UnparsedLines();
    const services: Service[] = [];
    const servers: Server[] = [];
    let current: Service | undefined;
    let title: number | undefined;
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trimStart();
      const saved = view.format === "save" ? readSaved(content, line) : undefined;
      const service = saved === undefined ? SERVICE.exec(content) : null;
      const server = saved === undefined && service === null ? SERVER.exec(content) : null;
      if (saved !== undefined) {
        if ("servers" in saved) services.push(saved);
        else {
          servers.push(saved);
          const owner = services.findLast((row) => row.protocol === saved.protocol && row.address === saved.serviceAddress && row.port === saved.servicePort);
          if (owner !== undefined) owner.servers++;
        }
      } else if (FRAME.test(content)) {
        current = undefined;
        title ??= line;
      } else if (service !== null) {
        current = serviceOf(service, line, view.format === "proc");
        if (current === undefined) unparsed.add(line, raw);
        else services.push(current);
      } else if (server !== null && current !== undefined) {
        const row = serverOf(server, line, current, view.format === "proc");
        if (row === undefined) unparsed.add(line, raw);
        else {
          servers.push(row);
          current.servers++;
        }
      } else if (!isPromptLine(raw) && !NO_MODULE.test(content)) unparsed.add(line, raw);
    }
    const last = services.at(-1);
    if (last !== undefined && (truncated === true || !view.complete)) last.partial = true;
    const whole = view.complete && truncated !== true && unparsed.count === 0;
    // what is saved of no service is nothing, not even a title
    if (view.format === "save" && services.length + servers.length === 0) title = 1;
    return unparsed.with({ services, servers, empty: title !== undefined && services.length === 0 && whole ? [{ line: title }] : [] });
  },
  // the listing of one service beside that of all adds nothing
  merge(parts) {
    const { value, view } = ranked(parts)[0] as (typeof parts)[number];
    const later = parts.find((part) => part.sample === 2 && part.view.scope === view.scope && part.view.format === view.format)?.value;
    if (later === undefined || later === value) return value;
    const active = new Map(later.servers.map((row) => [keyOf(row), row.active]));
    const grown = (row: Server): Server => {
      const now = active.get(keyOf(row));
      return now === undefined || row.active === undefined ? row : { ...row, activeDelta: now - row.active };
    };
    return { ...value, servers: value.servers.map(grown) };
  },
});

/** A real server of one virtual server. */
const keyOf = (row: Server): string => [row.protocol, row.serviceAddress, row.servicePort, row.address, row.port].join(" ");

const NO_MODULE =
  /^(?:cat: .{1,80}ip_vs: No such file or directory|Can't initialize ipvs: Protocol not available.{0,80}|Are you sure that IP Virtual Server is built in the kernel or as module\?)$/;

/** "10.0.0.1:443" or "[fd00::1]:443"; in /proc addresses of IPv4 and all ports are hex: "0A000001:01BB". A port that is a name is left out. */
function endpointOf(text: string, hex: boolean): Endpoint | undefined {
  const colon = text.lastIndexOf(":");
  if (colon <= 0) return undefined;
  const [host, port] = [unbracketed(text.slice(0, colon)), text.slice(colon + 1)];
  const bytes = hex && /^[0-9A-F]{8}$/.test(host) ? (host.match(/../g) as string[]).map((byte) => Number.parseInt(byte, 16)) : undefined;
  const address = bytes?.join(".") ?? host;
  if (hex) return /^[0-9A-F]{4}$/.test(port) ? { address, port: Number.parseInt(port, 16) } : undefined;
  return /^\d{1,5}$/.test(port) ? { address, port: Number(port) } : /^[\w-]{1,32}$/.test(port) ? { address } : undefined;
}

function serviceOf(match: RegExpExecArray, line: number, hex: boolean): Service | undefined {
  const [, name, where, rest = ""] = match as unknown as [string, string, string, string | undefined];
  const mark = name === "FWM";
  // ipvsadm prints marks in decimal, the kernel's file prints all in hexadecimal
  const endpoint = !mark ? endpointOf(where, hex) : { address: hex && /^[0-9A-F]{8}$/.test(where) ? String(Number.parseInt(where, 16)) : where };
  if (endpoint === undefined) return undefined;
  const scheduler = NUMBERS.test(rest) ? undefined : /^[a-z]{1,16}(?= |$)/.exec(rest)?.[0];
  if (rest !== "" && scheduler === undefined && !NUMBERS.test(rest) && !/^(?:ops|persistent)/.test(rest)) return undefined;
  const persistent = / persistent\b/.test(rest);
  return { line, protocol: mark ? "fwmark" : name.toLowerCase(), ...endpoint, ...present({ scheduler }), persistent, servers: 0 };
}

function serverOf(match: RegExpExecArray, line: number, service: Service, hex: boolean): Server | undefined {
  const [, where, rest = ""] = match as unknown as [string, string, string | undefined];
  const endpoint = endpointOf(where, hex);
  const forward = FORWARD.exec(rest);
  if (endpoint === undefined || (forward === null && rest !== "" && !NUMBERS.test(rest))) return undefined;
  const { protocol, address: serviceAddress, port: servicePort } = service;
  const row: Server = { line, protocol, serviceAddress, ...present({ servicePort }), ...endpoint };
  if (forward === null) return row;
  const [, kind, weight, active, inactive] = forward as unknown as [string, string, string, string, string];
  return { ...row, forward: kind.toLowerCase(), weight: Number(weight), active: Number(active), inactive: Number(inactive) };
}

/** `-A -t 10.96.0.1:443 -s rr` and `-a -t 10.96.0.1:443 -r 10.0.0.11:6443 -m -w 1`. */
function readSaved(content: string, line: number): Service | Server | undefined {
  const words = content.split(/\s+/, 40);
  if (words[0] !== "-A" && words[0] !== "-a" && words[0] !== "--add-service" && words[0] !== "--add-server") return undefined;
  const kind = words.findIndex((word) => Object.hasOwn(PROTOCOLS, word));
  const where = words[kind + 1];
  if (kind === -1 || where === undefined) return undefined;
  const protocol = PROTOCOLS[words[kind] as string] as string;
  const endpoint = protocol === "fwmark" ? { address: where } : endpointOf(where, false);
  if (endpoint === undefined) return undefined;
  // optionValue looks from the second word on
  const real = optionValue(words, "-r", "--real-server");
  if (real === undefined) {
    const scheduler = optionValue(words, "-s", "--scheduler");
    const persistent = words.includes("-p") || words.includes("--persistent");
    return { line, protocol, ...endpoint, ...present({ scheduler }), persistent, servers: 0 };
  }
  const server = endpointOf(real, false);
  if (server === undefined) return undefined;
  const forward = FORWARDS[words.find((word) => Object.hasOwn(FORWARDS, word)) ?? ""];
  const weight = Number(optionValue(words, "-w", "--weight") ?? "1");
  return {
    line,
    protocol,
    serviceAddress: endpoint.address,
    ...present({ servicePort: endpoint.port }),
    ...server,
    ...present({ forward }),
    ...(Number.isSafeInteger(weight) ? { weight } : {}),
  };
}
