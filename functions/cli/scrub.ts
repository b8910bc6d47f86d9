import { createHash } from "node:crypto";
import type { Capture, Output } from "../facts/capture.ts";
import { commandLine } from "../facts/command.ts";
import { AddressScrubber } from "./scrub-addresses.ts";
import { inColumn, namesIn, namespaceIn, replacer } from "./scrub-names.ts";

/**
 * Takes out of a capture what tells whose node it is: addresses, MACs, host names, the names of pods, namespaces, services and users, domains, cloud and
 * container ids. Everything gets a pseudonym, the same one wherever it stands, so that the rules see the same node. What it cannot know (a secret in a log
 * message, a name that stands nowhere else) stays: whoever shares a capture reads it first.
 */

/** A scrubbed capture, and how many different things were replaced. */
export interface Scrubbed {
  readonly capture: Capture;
  readonly replaced: { readonly addresses: number; readonly macs: number; readonly names: number; readonly ids: number };
  /** The pseudonym of each original, for whoever made the capture; never written down. */
  readonly pseudonyms: ReadonlyMap<string, string>;
}

/**
 * @param ranges prefixes that rules name: an address inside stays inside
 * @throws {RangeError} if addresses cannot be told apart any more (a range that is used completely)
 */
export function scrubCapture(capture: Capture, ranges: readonly string[] = []): Scrubbed {
  const texts = capture.outputs.flatMap(({ text, stderr, command }) => [text, stderr, command]);
  // nobody who has not got the capture itself can work the pseudonyms back; and the same capture always gives the same ones
  const key = createHash("sha256").update(JSON.stringify(capture.outputs)).digest("hex");
  const scrubber = new Scrubber(
    AddressScrubber.of(texts, key, ranges),
    namesIn(
      texts,
      hostsOf(capture),
      capture.outputs.map(({ command }) => command),
    ),
  );
  const outputs = capture.outputs.map((output, i) => scrubOutput(output, i, scrubber));
  return {
    capture: {
      ...capture,
      target: scrubber.text(capture.target),
      notCollected: capture.notCollected.map(({ command, reason }) => ({ command: scrubber.command(command), reason: scrubber.text(reason) })),
      outputs,
    },
    replaced: scrubber.counts(),
    pseudonyms: scrubber.pseudonyms,
  };
}

function hostsOf(capture: Capture): string[] {
  const told = capture.outputs.filter(({ command, argv }) => /^hostname(?:ctl)?$/.test(commandLine(argv ?? command).argv[0] ?? ""));
  const names = told.flatMap(({ text }) =>
    [...text.matchAll(/^(?:[ \t]{0,40}(?:Static|Transient) hostname:[ \t]{0,40})?([a-z0-9][\w.-]{1,252})[ \t\r]{0,40}$/gim)].map((match) => match[1] as string),
  );
  return [capture.target, ...names];
}

function scrubOutput(output: Output, index: number, scrubber: Scrubber): Output {
  const { argv } = commandLine(output.argv ?? output.command);
  const program = (argv[0] ?? "output").replaceAll(/[^A-Za-z0-9_-]/g, "");
  const text =
    program === "bpftool"
      ? scrubber.bytes(output.text)
      : program === "tc"
        ? scrubber.matches(output.text)
        : program === "ps"
          ? processes(output.text)
          : output.text;
  return {
    ...output,
    command: scrubber.command(output.command),
    argv: output.argv?.map((word) => (word === namespaceIn(output.command)?.[2] ? scrubber.text(word) : scrubber.command(word))),
    // a file may be named after its command, addresses and all
    file: `outputs/${String(index + 1).padStart(2, "0")}-${program === "" ? "output" : program}${output.sample === 1 ? "" : `.sample${output.sample}`}.txt`,
    text: scrubber.text(text),
    stderr: scrubber.text(output.stderr),
  };
}

/** Programs whose arguments rules look at, or that tell nothing of their owner. */
const SYSTEM =
  /^(?:[\w./-]*\/)?(?:kube[\w-]*|cilium[\w-]*|calico[\w-]*|felix|bird6?|confd|flannel[\w-]*|k3s|rke2|containerd[\w-]*|docker[\w-]*|dnsmasq|coredns|node-cache|aws-k8s-agent|aws-node|ipamd|chronyd|ntpd|systemd[\w-]*|ovs[\w-]*|ovsdb-server|tailscaled|firewalld|NetworkManager|sshd|dhclient|dhcpcd|keepalived|haproxy|etcd|crio|runc|ps|sh|bash|init|\[.*\]?)$/;

/** Where the columns of `ps aux` or `ps -ef` are named, the program is what stands under the last one, behind the branches of `ps f`. */
const PS_HEAD = /^[ \t]*((?:[A-Z%]{1,10}[ \t]+){3,14})(?:COMMAND|CMD|ARGS)[ \t]*$/m;

/** The arguments of everybody's own programs: none of our business, and full of names. */
function processes(text: string): string {
  const columns = PS_HEAD.exec(text)?.[1]
    ?.trim()
    .split(/[ \t]+/).length;
  if (columns !== undefined) {
    const line = new RegExp(
      `^([ \\t]*(?:\\S{1,400}[ \\t]+){${columns}}(?:[|\\\\_]{1,2}[ \\t]+){0,40})(?![|\\\\_]{1,2}[ \\t])(\\S{1,400})([ \\t]+\\S.*)$`,
      "gm",
    );
    return text.replaceAll(line, (whole: string, before: string, command: string) => (SYSTEM.test(command.replace(/:$/, "")) ? whole : `${before}${command}`));
  }
  return text.replaceAll(/^([ \t]*(?:[\w+-]{1,32}[ \t]+)?\d{1,10}[ \t]+)(\S{1,400})([ \t]+\S.*)$/gm, (line: string, before: string, command: string) =>
    // with more columns than pid and args the program stands elsewhere
    /^[\d.:?]/.test(command) || SYSTEM.test(command.replace(/:$/, "")) ? line : `${before}${command}`,
  );
}

/** As tcpdump writes it: a port stands behind a dot. */
const PORT = "(?=\\.\\d{1,5}(?: >|:(?:\\s|$)))";
const IPV6 = `(?<![\\w:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?:(?![\\w:]|\\.\\d)|${PORT})`;
const MAC = "(?<![0-9A-Fa-f:-])[0-9A-Fa-f]{1,2}(?:[:-][0-9A-Fa-f]{1,2}){5}(?![0-9A-Fa-f]|[:-][0-9A-Fa-f])";
/** The kernel's log: destination, source and type of a frame. */
const FRAME = "(?<![0-9A-Fa-f:])[0-9a-f]{2}(?::[0-9a-f]{2}){13}(?![0-9a-f:])";
const IPV4 = `(?<![\\d.])(?:\\d{1,3}\\.){3}\\d{1,3}(?:(?!\\.?\\d)|${PORT})`;
const DASHED = "(?<![\\w-])\\d{1,3}(?:-\\d{1,3}){3}(?![\\w-])";
const UUID = "[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}(?![0-9a-f])";
const LONG_ID = "(?<![0-9A-Za-z])(?:[0-9a-f]{64}|(?!0{31})[0-9a-f]{32})(?![0-9A-Za-z])";
/** The name of an EKS cluster's API server begins with it. */
const ENDPOINT = "(?<![0-9A-Za-z])[0-9A-F]{32}(?![0-9A-Za-z])";
const SERIAL = '(?<=\\b[Ss]erial(?: ?[Nn]umber| [Nn]o\\.?)?[:=] {0,4}"?)[A-Za-z0-9][A-Za-z0-9-]{3,39}(?![\\w-])';
const CLOUD_ID = "(?<![\\w-])(?:i|eni|vpc|subnet|sg|ami|vol|rtb|igw|nat|eipalloc|eipassoc|acl)-[0-9a-f]{8,17}(?![0-9a-f])";
/** kube-proxy's chains end with a hash of namespace, service and port: whoever guesses the names can check the guess. */
const CHAIN = "(?<=\\bKUBE-(?:SVC|SVL|SEP|FW|XLB|EXT)-)[A-Z2-7]{16}\\b";
const ACCOUNT = "(?<=arn:aws[\\w-]{0,12}:[\\w-]{0,30}:[\\w-]{0,20}:)\\d{12}";
/** One of them, and the blanks that fill its column. */
const TOKEN = new RegExp(
  `(${[
    FRAME,
    MAC,
    `(?:${IPV6})(?:/\\d{1,3}(?!\\d))?`,
    `(?:${IPV4})(?:/\\d{1,2}(?![\\d.]))?`,
    DASHED,
    UUID,
    LONG_ID,
    ENDPOINT,
    CLOUD_ID,
    CHAIN,
    ACCOUNT,
    SERIAL,
  ].join("|")})( {2,})?`,
  "gm",
);

class Scrubber {
  readonly pseudonyms = new Map<string, string>();
  private readonly addresses: AddressScrubber;
  private readonly names: ReadonlyMap<string, string>;
  private readonly replaceNames: (text: string) => string;
  private readonly replaceNamesInCommands: (text: string) => string;
  private readonly seen = { addresses: new Set<string>(), macs: new Set<string>(), ids: new Set<string>() };

  constructor(addresses: AddressScrubber, names: ReadonlyMap<string, string>) {
    this.addresses = addresses;
    this.names = names;
    this.replaceNames = replacer(names);
    this.replaceNamesInCommands = replacer(new Map([...names].filter(([name]) => !/^[A-Za-z]+$/.test(name))));
    for (const [name, pseudonym] of names) this.pseudonyms.set(name, pseudonym);
  }

  counts(): Scrubbed["replaced"] {
    return { addresses: this.seen.addresses.size, macs: this.seen.macs.size, names: this.names.size, ids: this.seen.ids.size };
  }

  /** A text with a pseudonym in every place that shows an address, a MAC, an id or a name. */
  text(text: string): string {
    return this.replaceNames(text).replaceAll(TOKEN, (_, token: string, blanks?: string) => inColumn(token, this.token(token), blanks));
  }

  /** A command line: a namespace may be called "logs", and `kubectl logs` must go on being one. Plain words stay, but behind `-n`. */
  command(text: string): string {
    const namespace = namespaceIn(text);
    const end = namespace?.[0].length ?? 0;
    const named = namespace === null ? "" : this.replaceNamesInCommands(namespace[1] as string) + this.replaceNames(namespace[2] as string);
    return (named + this.replaceNamesInCommands(text.slice(end))).replaceAll(TOKEN, (_, token: string, blanks = "") => this.token(token) + blanks);
  }

  /** Byte dumps of Cilium's maps (`bpftool map dump`): addresses at the head of service keys and backend values. */
  bytes(text: string): string {
    const array = '\\[\\s*((?:"0x[0-9a-f]{2}"[,\\s]*){4,64})\\]';
    const json = new RegExp(`("key":\\s*)${array}(\\s*,\\s*"value":\\s*)${array}`, "g");
    const plain = /(key:\s+)((?:[0-9a-f]{2}[ \n]{1,4}){4,64})(\s*value:\s+)((?:[0-9a-f]{2}[ \n]{0,4}){4,64})/g;
    const pair = (whole: string, head: string, key: string, middle: string, value: string): string => {
      const [madeKey, madeValue] = this.element(key, value);
      return whole.startsWith('"') ? `${head}[${madeKey}]${middle}[${madeValue}]` : `${head}${madeKey}${middle}${madeValue}`;
    };
    return text
      .replaceAll(json, pair)
      .replaceAll(plain, pair)
      .replaceAll(/("address":\s*)(\d{1,10})(?!\d)/g, (_, head: string, number: string) => `${head}${this.littleEndian(Number(number))}`);
  }

  /** Matches of `tc filter` on addresses: `match 0a000005/ffffffff at 16`. */
  matches(text: string): string {
    return text.replaceAll(/\bmatch ([0-9a-f]{8})\/([0-9a-f]{8}) at (12|16)\b/g, (_, value: string, mask: string, at: string) => {
      const made = Buffer.from(this.ipv4(Buffer.from(value, "hex")));
      const masked = made.map((byte, i) => byte & (Buffer.from(mask, "hex")[i] as number));
      return `match ${Buffer.from(masked).toString("hex")}/${mask} at ${at}`;
    });
  }

  private token(token: string): string {
    const made = this.pseudonym(token);
    if (made !== token) this.pseudonyms.set(token, made);
    return made;
  }

  private pseudonym(token: string): string {
    if (/^[0-9a-f]{2}(?::[0-9a-f]{2}){13}$/.test(token)) return `${this.mac(token.slice(0, 17))}:${this.mac(token.slice(18, 35))}${token.slice(35)}`;
    if (/^[0-9A-Fa-f]{1,2}(?:[:-][0-9A-Fa-f]{1,2}){5}$/.test(token)) return this.mac(token);
    // `::1:25`: an old ss sets no brackets around the address, and nobody else's ends so
    if (/^::1:\d{1,5}$/.test(token)) return token;
    if (token.includes(":") || token.includes(".")) {
      const [address = "", length] = token.split("/");
      this.seen.addresses.add(address);
      return length === undefined ? this.addresses.address(address) : this.addresses.prefix(address, Number(length));
    }
    if (/^\d{1,3}(?:-\d{1,3}){3}$/.test(token)) return this.addresses.address(token.replaceAll("-", ".")).replaceAll(".", "-");
    this.seen.ids.add(token);
    if (/^\d{12}$/.test(token)) return String(Number.parseInt(this.addresses.hex(token).slice(0, 10), 16) % 10 ** 12).padStart(12, "1");
    if (/^[A-Z2-7]{16}$/.test(token))
      return token.replaceAll(
        /./g,
        (_, i: number) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[Number.parseInt(this.addresses.hex(token + token).slice(2 * i, 2 * i + 2), 16) % 32] as string,
      );
    if (!/^(?:[a-z]+-)?[0-9a-f_-]+$/.test(token)) {
      const digits = this.addresses.hex(token).toUpperCase();
      return token.replaceAll(/[A-Za-z0-9]/g, (_, i: number) => digits[i % digits.length] as string);
    }
    // i-0123…, 8-4-4-4-12: the letters in front and the separators stay
    const at = /^[a-z]+-/.exec(token)?.[0].length ?? 0;
    return token.slice(0, at) + token.slice(at).replaceAll(/[0-9a-f]+/g, (digits) => this.addresses.hex(`${token}/${digits}`).slice(0, digits.length));
  }

  /** In the spelling of the original: case, separator, leading zeros. */
  private mac(token: string): string {
    const groups = token.split(/[:-]/);
    const original = groups.map((group) => group.padStart(2, "0").toLowerCase()).join(":");
    this.seen.macs.add(original);
    const short = groups.some((group) => group.length === 1);
    const made = this.addresses.mac(original).split(":");
    const text = (short ? made.map((group) => group.replace(/^0/, "")) : made).join(token.includes("-") ? "-" : ":");
    return /[A-F]/.test(token) && !/[a-f]/.test(token) ? text.toUpperCase() : text;
  }

  /** Key and value of one element, in the spelling they had. */
  private element(key: string, value: string): [string, string] {
    const lengths = [key, value].map((part) => part.match(/[0-9a-f]{2}(?![x])/g)?.length ?? 0);
    const [keyLength = 0, valueLength = 0] = lengths;
    // lb4_key has 12 bytes, lb4_backend 8 or 12 behind a key of 4; lb6_key has 24, lb6_backend 20 or 24
    if (keyLength === 12) return [this.headOf(key, 4), value];
    if (keyLength === 24 || keyLength === 20) return [this.headOf(key, 16), value];
    if (keyLength === 4 && (valueLength === 8 || valueLength === 12)) return [key, this.headOf(value, 4)];
    if (keyLength === 4 && (valueLength === 20 || valueLength === 24)) return [key, this.headOf(value, 16)];
    return [key, value];
  }

  private headOf(part: string, length: 4 | 16): string {
    const bytes = Buffer.from((part.match(/(?:0x)?[0-9a-f]{2}/g) ?? []).map((byte) => Number.parseInt(byte, 16)));
    const made = length === 4 ? this.ipv4(bytes.subarray(0, 4)) : this.ipv6(bytes.subarray(0, 16));
    let i = 0;
    return part.replaceAll(/(0x)?[0-9a-f]{2}/g, (byte, prefix: string | undefined) =>
      i < length ? `${prefix ?? ""}${(made[i++] as number).toString(16).padStart(2, "0")}` : byte,
    );
  }

  private littleEndian(number: number): number {
    if (number > 0xffffffff) return number;
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(number);
    return Buffer.from(this.ipv4(bytes)).readUInt32LE();
  }

  private ipv4(bytes: Uint8Array): number[] {
    const original = [...bytes].join(".");
    this.seen.addresses.add(original);
    return this.addresses.address(original).split(".").map(Number);
  }

  private ipv6(bytes: Uint8Array): number[] {
    const groups = Buffer.from(bytes).toString("hex").match(/.{4}/g) ?? [];
    // all eight groups with their zeros: the pseudonym has them too
    return [...Buffer.from(this.addresses.address(groups.join(":")).replaceAll(":", ""), "hex")];
  }
}
