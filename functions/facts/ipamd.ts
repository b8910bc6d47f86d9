import { z } from "zod";
import { agentLog } from "./agent-log.ts";
import { defineFact, type Input, lines, mergeParts, type Part, type Row, UnparsedLines, type View } from "./fact.ts";
import { asInteger, asString, jsonElements } from "./json.ts";
import { type JsonMember, jsonMembers, placeOf } from "./json-members.ts";
import { unitOfPath } from "./log-unit.ts";
import { answerOf } from "./paste.ts";
import { present } from "./present.ts";

/**
 * What the IPAM daemon of the AWS VPC CNI says of its interfaces (ENIs), their addresses, and its settings.
 *
 *     {"TotalIPs": 28, "AssignedIPs": 11, "ENIs": {"eni-0a12…": {"ID": "eni-0a12…", "IsPrimary": true, "DeviceNumber": 0, "AvailableIPv4Cidrs": {…}}}}
 *
 * Its log has the totals too: "IP address pool stats: total 28, assigned 11".
 */
const Total = z.object({
  line: z.int(),
  /** Addresses that pods of this node can have now. */
  total: z.int(),
  /** Of these, given to pods. */
  assigned: z.int(),
  /** Of these, just given back and not yet given again (30 s). */
  coolingDown: z.int().optional(),
});
type Total = z.infer<typeof Total>;
const Eni = z.object({
  line: z.int(),
  id: z.string(),
  /** 0 is the node's own interface (eth0); pods of others need a routing rule. */
  deviceNumber: z.int().optional(),
  primary: z.boolean().optional(),
  /** Separate addresses, or prefixes of 16, that it has for pods. */
  prefixes: z.int(),
});
const Address = z.object({
  line: z.int(),
  address: z.string(),
  /** ENI that it belongs to; left out in `/v1/pods`. */
  eni: z.string().optional(),
  deviceNumber: z.int().optional(),
  /** To a pod; left out where it was not told, as behind `jq`. */
  assigned: z.boolean().optional(),
  /** namespace/name, where told. */
  pod: z.string().optional(),
});
const Setting = z.object({ line: z.int(), name: z.string(), value: z.string() });
/** A subnet, as AWS itself counts its free addresses: `"AvailableIpAddressCount": 0`, in `aws ec2 describe-subnets`. */
const Subnet = z.object({ line: z.int(), available: z.int(), id: z.string().optional() });
const Ipamd = z.object({
  totals: z.array(Total),
  enis: z.array(Eni),
  /** Addresses of prefixes are listed only once a pod has had them. */
  addresses: z.array(Address),
  settings: z.array(Setting),
  subnets: z.array(Subnet),
});
type Ipamd = z.infer<typeof Ipamd>;

// 61678 served the introspection until v1.4; 61679 since
const METRICS = /^(?:http:\/\/)?(?:localhost|127\.0\.0\.1):6167[89]\/metrics\/?$/;
// awscni_ since v1.5; with several network cards one line for each
const METRIC = /^(?:awscni_)?(assigned|total)_ip_addresses(?:\{.{0,200}\})? (\d{1,6})$/;
const URL = /^(?:http:\/\/)?(?:localhost|127\.0\.0\.1):6167[89]\/v1\/(enis|pods|networkutils-env-settings|ipamd-env-settings|eni-configs)\/?$/;

// versions from 1.5 on: "IP pool stats: total = 10, used = 10, …", "Total IPs/Prefixes = 32/2, AssignedIPs/CooldownIPs: 32/0", "IP stats - total IPs: 42, assigned IPs: 4"
const LOGGED =
  /\b(?:pool stats:? total:? =? ?(\d{1,6}), (?:assigned|used):? =? ?(\d{1,6})|Total IPs\/Prefixes = (\d{1,6})\/\d{1,6}, AssignedIPs\/CooldownIPs: (\d{1,6})\/\d{1,6}|total IPs: (\d{1,6}), assigned IPs: (\d{1,6}))\b/;
/** Seconds: older totals tell nothing of now. */
const LATEST = 3600;

export const ipamd = defineFact({
  id: "ipamd",
  title: "AWS VPC CNI: addresses of this node's interfaces, by its IPAM daemon",
  commands: [{ argv: ["curl", "-sS", "--max-time", "3", "http://localhost:61679/v1/enis"] }],
  recognize(argv): View | undefined {
    // AWS is asked from anywhere; what it tells is no answer of the daemon
    if (argv[0] === "aws" && argv.includes("describe-subnets"))
      return { format: "subnets", complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 0, hint: true };
    if (argv[0] !== "curl" && argv[0] !== "wget") {
      const logged = argv.some((word) => unitOfPath(word) === "ipamd") && agentLog.recognize(argv)?.format === "files";
      return logged ? { format: "log", complete: true, scope: "log", rank: 0 } : undefined;
    }
    if (argv.some((word) => METRICS.test(word))) return { format: "metrics", complete: true, scope: "metrics", rank: 0 };
    const what = argv.map((word) => URL.exec(word)?.[1]).find((word) => word !== undefined);
    if (what === undefined || what === "eni-configs") return undefined;
    return { format: what, complete: true, scope: what, rank: 1 };
  },
  schema: Ipamd,
  parse(input) {
    if (input.view.format === "log") return new UnparsedLines().with(fromLog(input));
    if (input.view.format === "metrics") return new UnparsedLines().with(fromMetrics(input));
    if (input.view.format === "subnets") return new UnparsedLines().with(fromSubnets(input));
    const unparsed = new UnparsedLines();
    const value: Ipamd = { totals: [], enis: [], addresses: [], settings: [], subnets: [] };
    const text = answerOf(input.text);
    const oneLine = !text.trim().includes("\n");
    if (input.view.format === "enis") {
      readEnis(value, text, 1, oneLine, new UnparsedLines());
      const sums = value.totals.length === 0 ? searched(text) : [];
      value.totals.push(...sums);
      if (sums.length > 0) return unparsed.with(value);
      if (value.enis.length === 0 && readPicked(value, text)) return unparsed.with(value);
    }
    for (const member of jsonMembers(text, unparsed)) if (input.view.format !== "enis") read(value, input, member);
    return unparsed.with(value);
  },
  // what it answers itself outweighs what it wrote before
  merge(parts: readonly Part<Ipamd>[]) {
    const answers = parts.filter(({ view }) => view.format !== "log" && view.format !== "metrics");
    return mergeParts(answers.some(({ value }) => value.totals.length > 0) ? answers : parts);
  },
});

/** The sums over all network cards. What else the metrics tell is not about addresses. */
function fromMetrics(input: Input): Ipamd {
  const sums = { assigned: 0, total: 0 };
  let place = 0;
  for (const { line, text } of lines(input.text)) {
    const [, name, number] = METRIC.exec(text.trim()) ?? [];
    if (name === undefined) continue;
    sums[name as "assigned" | "total"] += Number(number);
    if (name === "assigned") place = line;
  }
  return { totals: place === 0 ? [] : [{ line: place, ...sums }], enis: [], addresses: [], settings: [], subnets: [] };
}

/** The free addresses of subnets: the field of the JSON, or what a query for that field alone left, a number in each line; of tables the number beside a subnet's id. */
function fromSubnets({ text, argv, truncated }: Input): Ipamd {
  const subnets: Ipamd["subnets"] = [];
  // of some subnets it cannot be told that none has an address
  if (truncated === true) return { totals: [], enis: [], addresses: [], settings: [], subnets };
  const asked = argv.some((word) => /AvailableIpAddressCount/.test(word));
  for (const { line, text: content } of lines(text)) {
    if (content.length > 2000) continue;
    const number =
      /"AvailableIpAddressCount": {0,4}(\d{1,9})/.exec(content)?.[1] ?? (asked ? /^[\s|[]{0,40}(\d{1,9})[\s|,\]]{0,40}$/.exec(content)?.[1] : undefined);
    // its range, zone and name may stand between
    const [, id, beside] =
      asked && number === undefined ? (/(subnet-[0-9a-f]{4,17})["\s|,](?:.{0,160}?["\s|,])?(\d{1,9})[\s|,]{0,40}$/.exec(content) ?? []) : [];
    const available = number ?? beside;
    if (available !== undefined) subnets.push({ line, available: Number(available), ...present({ id }) });
  }
  return { totals: [], enis: [], addresses: [], settings: [], subnets };
}

/** The newest totals of its log. What else the log says is read as messages. */
function fromLog(input: Input): Ipamd {
  const { value } = agentLog.parse({ ...input, view: { ...input.view, format: "files" } });
  const totals = value.rows.flatMap(({ line, unit, age, message }) => {
    const numbers =
      unit === "ipamd" && (age ?? 0) < LATEST
        ? LOGGED.exec(message)
            ?.slice(1)
            .flatMap((digits) => digits ?? [])
        : undefined;
    return numbers === undefined ? [] : [{ line, total: Number(numbers[0]), assigned: Number(numbers[1]) }];
  });
  return { totals: totals.slice(-1), enis: [], addresses: [], settings: [], subnets: [] };
}

/** One member of `/v1/pods` or of the settings. */
function read(value: Ipamd, { view }: Input, member: JsonMember): void {
  const place = placeOf(member);
  if (view.format === "pods") {
    const pod = member.value as Record<string, unknown> | null;
    const address = asString(pod?.["IP"]);
    if (address !== undefined) {
      value.addresses.push({ ...place, address, assigned: true, pod: member.name, ...present({ deviceNumber: asInteger(pod?.["DeviceNumber"]) }) });
    }
  } else if (typeof member.value === "string" || typeof member.value === "number" || typeof member.value === "boolean") {
    value.settings.push({ ...place, name: member.name, value: String(member.value) });
  }
}

/** `/v1/enis`. Newer versions have one such object per network card: `{"0": {"TotalIPs": …}}`. */
function readEnis(value: Ipamd, text: string, startLine: number, oneLine: boolean, unparsed: UnparsedLines): void {
  const members = jsonMembers(text, unparsed, startLine);
  const number = (name: string): number | undefined => asInteger(members.find((member) => member.name === name)?.value);
  const total = number("TotalIPs");
  const assigned = number("AssignedIPs");
  if (total !== undefined && assigned !== undefined) {
    const line = members.find((member) => member.name === "AssignedIPs")?.line ?? startLine;
    const row = { line, total, assigned, ...present({ coolingDown: number("CooldownIPs") }) };
    value.totals.push(oneLine ? Object.assign(row, { text: text.trim().slice(0, 120) }) : row);
  }
  for (const member of members) {
    if (/^\d{1,3}$/.test(member.name) && member.source.startsWith("{")) readEnis(value, member.source, member.sourceLine, oneLine, unparsed);
    // "ENIIPPools" until v1.9
    if (member.name !== "ENIs" && member.name !== "ENIIPPools") continue;
    for (const eni of jsonMembers(member.source, unparsed, member.sourceLine)) if (eni.source.startsWith("{")) readEni(value, eni, unparsed);
  }
}

/** The sums that a search left of `/v1/enis`: of each network card both, in the same order. */
function searched(text: string): Total[] {
  const counts = (name: string): (Row & { count: number })[] =>
    [...lines(text)].flatMap(({ line, text: content }) => {
      const digits = content.length > 200 ? undefined : new RegExp(`^\\s{0,40}(?:\\d{1,4}[:-]\\s{0,40})?"${name}": ?(\\d{1,6}),?\\s{0,8}$`).exec(content)?.[1];
      return digits === undefined ? [] : [{ line, count: Number(digits) }];
    });
  const [totals, assigned] = [counts("TotalIPs"), counts("AssignedIPs")];
  if (totals.length !== assigned.length) return [];
  return assigned.map(({ line, count }, card) => ({ line, total: totals[card]?.count ?? 0, assigned: count }));
}

function readEni(value: Ipamd, eni: JsonMember, unparsed: UnparsedLines): void {
  const fields = jsonMembers(eni.source, unparsed, eni.sourceLine);
  const field = (name: string): unknown => fields.find((member) => member.name === name)?.value;
  const deviceNumber = asInteger(field("DeviceNumber"));
  const primary = field("IsPrimary");
  const pools = fields.filter((member) => member.name === "AvailableIPv4Cidrs" || member.name === "IPv4Addresses" || member.name === "IPv6Cidrs");
  const prefixes = pools.reduce((count, pool) => count + Object.keys((pool.value ?? {}) as object).length, 0);
  const shared = { eni: eni.name, ...present({ deviceNumber }) };
  const row = { ...placeOf(eni), id: eni.name, prefixes, ...present({ deviceNumber, primary: typeof primary === "boolean" ? primary : undefined }) };
  value.enis.push(row);
  for (const pool of pools) {
    for (const entry of jsonMembers(pool.source, unparsed, pool.sourceLine)) {
      const inner = entry.value as Record<string, unknown> | null;
      if (pool.name === "IPv4Addresses") {
        value.addresses.push({
          ...placeOf(entry),
          address: entry.name,
          ...shared,
          assigned: inner?.["Assigned"] === true || inner?.["IPAMKey"] !== undefined,
        });
        continue;
      }
      const addresses = jsonMembers(entry.source, unparsed, entry.sourceLine).find((member) => member.name === "IPAddresses");
      if (addresses?.source.startsWith("{") !== true) continue;
      for (const item of jsonMembers(addresses.source, unparsed, addresses.sourceLine)) readAddress(value, item, shared);
    }
  }
}

/** `"10.0.1.5": {"Address": "10.0.1.5", "IPAMKey": {"containerID": "4e…"}, "IPAMMetadata": {"k8sPodNamespace": "shop", "k8sPodName": "cart-0"}}` */
function readAddress(value: Ipamd, item: JsonMember, shared: { eni: string; deviceNumber?: number }): void {
  const inner = item.value as Record<string, unknown> | null;
  const key = inner?.["IPAMKey"] as Record<string, unknown> | null | undefined;
  const metadata = inner?.["IPAMMetadata"] as Record<string, unknown> | null | undefined;
  const name = asString(metadata?.["k8sPodName"]);
  const pod = name === undefined ? undefined : `${asString(metadata?.["k8sPodNamespace"]) ?? ""}/${name}`;
  // an address that was given back keeps its place, with an empty key
  const assigned = key === undefined ? undefined : (asString(key?.["containerID"]) ?? "") !== "";
  value.addresses.push({ ...placeOf(item), address: item.name, ...shared, ...present({ assigned, pod }) });
}

/**
 * What `jq` left of `/v1/enis`: an object for each interface, its fields under their names or under those of whoever wrote the filter, or a line of plain words.
 * Only what has an interface's id, its number and addresses counts. False if nothing did.
 *
 *     {"ID":"eni-0e1f6a5f0a3c99d41","DeviceNumber":1,"ips":["10.31.2.78","10.31.2.99"]}
 *     eni-0e1f6a5f0a3c99d41  1  10.31.2.78 10.31.2.99
 */
function readPicked(value: Ipamd, text: string): boolean {
  const shown = [...lines(text)].filter((line) => line.text.length <= MAX_LINE);
  const places = new Map<string, Row>();
  for (const { line, text: content } of shown)
    for (const address of content.match(PICKED) ?? []) if (!places.has(address)) places.set(address, { line, text: content.trim().slice(0, 400) });
  const add = (content: string, number: number | undefined, addresses: { address: string; assigned?: boolean }[]): void => {
    const id = ENI.exec(content)?.[0];
    const place = places.get(addresses[0]?.address ?? "");
    if (id === undefined || number === undefined || place === undefined) return;
    value.enis.push({ ...place, id, deviceNumber: number, prefixes: addresses.length });
    for (const row of addresses) value.addresses.push({ ...(places.get(row.address) ?? place), ...row, eni: id, deviceNumber: number });
  };
  if (!/^\s{0,100}[{[]/.test(text)) {
    for (const { text: content } of shown) add(content, asInteger(Number(/(?:^|[\s",|])(\d{1,2})(?=[\s",|]|$)/.exec(content)?.[1])), found(content));
    return value.enis.length > 0;
  }
  for (const { value: object } of jsonElements(text, new UnparsedLines())) {
    // `jq .ENIs` leaves the names of the interfaces outside
    const named = Object.entries(object).filter(([name, inner]) => ENI.test(name) && typeof inner === "object" && inner !== null);
    for (const [name, inner] of named.length > 0 ? named : [["", object] as const]) {
      const fields = inner as Record<string, unknown>;
      const number = Object.keys(fields).find((field) => /dev|num|index|idx/i.test(field) && asInteger(fields[field]) !== undefined);
      const content = JSON.stringify(fields).slice(0, MAX_LINE);
      add(name === "" ? content : name, number === undefined ? undefined : asInteger(fields[number]), pooled(fields) ?? found(content));
    }
  }
  return value.enis.length > 0;
}
const ENI = /\beni-[0-9a-f]{8,17}\b/;
/** A whole address, or the prefix of one: of larger prefixes it is not known which addresses pods have. */
const PICKED = /(?<![\w./-])\d{1,3}(?:\.\d{1,3}){3}(?=\/32(?!\d)|(?![\w./-]))/g;
const MAX_LINE = 200_000;
const found = (content: string): { address: string }[] => [...new Set(content.match(PICKED))].map((address) => ({ address }));

/** The addresses of an interface's own object. */
function pooled(fields: Record<string, unknown>): { address: string; assigned?: boolean }[] | undefined {
  const pools = fields["AvailableIPv4Cidrs"];
  if (typeof pools !== "object" || pools === null || Array.isArray(pools)) return undefined;
  return Object.values(pools as Record<string, { IPAddresses?: Record<string, { IPAMKey?: { containerID?: unknown } } | null> } | null>).flatMap((pool) =>
    Object.entries(pool?.IPAddresses ?? {}).map(([address, inner]) => ({
      address,
      ...present({ assigned: inner?.IPAMKey ? (asString(inner.IPAMKey.containerID) ?? "") !== "" : undefined }),
    })),
  );
}
