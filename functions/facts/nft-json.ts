import type { UnparsedLines } from "./fact.ts";
import { asInteger, asObject, asString, jsonElements } from "./json.ts";
import { inWords } from "./nft-numeric.ts";
import { isFamily, isVerdict, MAX_MEMBERS, memberText, type Nft, type NftFamily, type NftRow, type NftSet } from "./nft-row.ts";
import { withoutPrompts } from "./paste.ts";
import { present } from "./present.ts";

type Json = Record<string, unknown>;

/** Objects that hold no rules: nothing of them is kept. */
const OTHERS = new Set(
  ["metainfo", "element", "flowtable", "counter", "quota", "limit", "secmark", "synproxy", "tunnel"].concat("ct helper", "ct timeout", "ct expectation"),
);

/**
 * Reads `nft -j list …`. A cut document still yields what came before the cut; then no chain is known to be complete.
 * `rules`: the command shows the rules of the chains that it shows.
 */
export function readJson(text: string, elements: boolean, rules: boolean, unparsed: UnparsedLines): Nft {
  const result: Nft = { tables: [], chains: [], rows: [], sets: [] };
  const positions = new Map<string, number>();
  for (const { value, line, text: quote } of jsonElements(elementsOf(withoutPrompts(text)), unparsed)) {
    const [kind = "", body] = Object.entries(value)[0] ?? [];
    if (OTHERS.has(kind)) continue;
    const object = asObject(body);
    const family = asString(object["family"]);
    const name = asString(object["name"]);
    const table = asString(object["table"]);
    const place = { line, text: quote };
    if (!isFamily(family)) unparsed.add(line, quote);
    else if (kind === "table" && name !== undefined) result.tables.push({ ...place, family, name });
    else if (kind === "chain" && name !== undefined && table !== undefined)
      result.chains.push({ ...place, family, table, name, ...hookOf(object), complete: rules });
    else if ((kind === "set" || kind === "map" || kind === "meter") && name !== undefined && table !== undefined) {
      result.sets.push({ ...place, ...setOf(kind, family, table, name, elements ? (object["elem"] ?? []) : undefined) });
    } else if (kind === "rule" && table !== undefined && asString(object["chain"]) !== undefined) {
      const chain = asString(object["chain"]) as string;
      const key = `${family} ${table} ${chain}`;
      const position = (positions.get(key) ?? 0) + 1;
      positions.set(key, position);
      result.rows.push({ ...place, family, table, chain, position, ...ruleOf(object) });
    } else unparsed.add(line, quote);
  }
  if (unparsed.count > 0) for (const chain of result.chains) chain.complete = false;
  return result;
}

/** The array inside `{"nftables": […]}`, lines kept in place; the text itself if it is not wrapped so. */
function elementsOf(text: string): string {
  const wrapper = /^\s*\{\s*"nftables"\s*:\s*(?=\[)/.exec(text.slice(0, 4096));
  if (wrapper === null) return text;
  const behind = text.slice(wrapper[0].length).trimEnd();
  return wrapper[0].replace(/[^\n]/g, "") + (/\]\s*\}$/.test(behind.slice(-4096)) ? behind.slice(0, -1) : behind);
}

const asArray = (value: unknown): unknown[] => (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]);

function hookOf(chain: Json) {
  const devices = asArray(chain["dev"]).filter((device) => typeof device === "string");
  return present({
    type: asString(chain["type"]),
    hook: asString(chain["hook"]),
    priority: typeof chain["prio"] === "number" ? String(chain["prio"]) : asString(chain["prio"]),
    policy: asString(chain["policy"]),
    device: devices.length === 0 ? undefined : devices.join(","),
  });
}

function setOf(kind: NftSet["kind"], family: NftFamily, table: string, name: string, elements: unknown) {
  if (elements === undefined) return { family, table, name, kind };
  const list = asArray(elements);
  // of a map each element is a pair
  const member = (element: unknown) => memberText(Array.isArray(element) ? element.map((part) => expression(part)).join(" : ") : expression(element));
  return { family, table, name, kind, elements: list.length, members: list.slice(0, MAX_MEMBERS).map((element) => inWords(member(element))) };
}

function ruleOf(rule: Json): Pick<NftRow, "spec"> & Partial<NftRow> {
  const words: string[] = [];
  const found: Partial<NftRow> = {};
  for (const statement of asArray(rule["expr"])) {
    const [name = "", body] = Object.entries(asObject(statement))[0] ?? [];
    const values = asObject(body);
    if (isVerdict(name)) {
      found.verdict = name;
      const target = asString(values["target"]);
      if (target !== undefined) found.target = target;
    }
    const [packets, bytes] = [asInteger(values["packets"]), asInteger(values["bytes"])];
    if (name === "counter" && packets !== undefined && bytes !== undefined) {
      found.packets ??= packets;
      found.bytes ??= bytes;
    }
    words.push(statementText(name, body));
  }
  return { ...present({ handle: asInteger(rule["handle"]) }), spec: inWords(words.join(" ")), ...found, ...present({ comment: asString(rule["comment"]) }) };
}

/** A statement in the words of the text form. */
function statementText(name: string, body: unknown): string {
  const values = asObject(body);
  switch (name) {
    case "match": {
      // The text form leaves out `==`, but behind a mask.
      const masked = /^[&|^]$/.test(Object.keys(asObject(values["left"]))[0] ?? "");
      const op = values["op"] === "in" || (values["op"] === "==" && !masked) ? "" : ` ${expression(values["op"])}`;
      return `${expression(values["left"])}${op} ${expression(values["right"])}`;
    }
    case "counter":
      return typeof body === "string" ? `counter name ${body}` : "counter";
    case "jump":
    case "goto":
      return `${name} ${expression(values["target"])}`;
    case "mangle":
      return `${expression(values["key"])} set ${expression(values["value"])}`;
    case "vmap":
      return `${expression(values["key"])} vmap ${expression(values["data"])}`;
    case "xt":
      return ["xt", asString(values["type"]), asString(values["name"])].filter((word) => word !== undefined).join(" ");
    case "dnat":
    case "snat":
    case "redirect":
    case "masquerade": {
      const port = values["port"] === undefined ? "" : `:${expression(values["port"])}`;
      const address = values["addr"] === undefined ? port : `${expression(values["addr"])}${port}`;
      return [name, address === "" ? "" : `to ${address}`, ...asArray(values["flags"]).map((flag) => expression(flag))].filter((word) => word !== "").join(" ");
    }
    case "set":
    case "map":
      return `${expression(values["op"])} ${expression(values["set"] ?? values["map"])} { ${expression(values["elem"])} }`;
    default:
      return [name, ...options(body)].join(" ");
  }
}

/** What a statement without a case of its own says: its fields in order. */
function options(body: unknown): string[] {
  if (body === null || body === undefined) return [];
  if (typeof body !== "object" || Array.isArray(body)) return [expression(body)];
  return Object.entries(body).map(([key, value]) => (value === null ? key : `${key} ${expression(value)}`));
}

/** Documents are as deep as their author likes; rules are not. */
const MAX_DEPTH = 12;

function expression(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) return "…";
  const inner = (part: unknown) => expression(part, depth + 1);
  if (Array.isArray(value)) return value.map(inner).join(", ");
  if (typeof value !== "object" || value === null) return String(value);
  const object = value as Json;
  const [name = "", body] = Object.entries(object)[0] ?? [];
  const values = asObject(body);
  switch (name) {
    case "meta":
      return /^[io]if/.test(inner(values["key"])) ? inner(values["key"]) : `meta ${inner(values["key"])}`;
    case "rt":
    case "socket":
      return `${name} ${inner(values["key"])}`;
    case "ct":
      return ["ct", values["dir"], values["key"]].filter((word) => typeof word === "string").join(" ");
    case "payload":
      return values["field"] === undefined
        ? `@${inner(values["base"])},${inner(values["offset"])},${inner(values["len"])}`
        : `${inner(values["protocol"])} ${inner(values["field"])}`;
    case "prefix":
      return `${inner(values["addr"])}/${inner(values["len"])}`;
    case "range":
      return asArray(body).map(inner).join("-");
    case "concat":
      return asArray(body).map(inner).join(" . ");
    case "set":
      return `{ ${asArray(body)
        .map((element) => (Array.isArray(element) ? element.map(inner).join(" : ") : inner(element)))
        .join(", ")} }`;
    case "map":
      return `${inner(values["key"])} map ${inner(values["data"])}`;
    case "elem":
      return inner(values["val"]);
    case "&":
    case "|":
    case "^":
    case "<<":
    case ">>":
      return asArray(body).map(inner).join(` ${name} `);
    case "jump":
    case "goto":
      return `${name} ${inner(values["target"])}`;
    default:
      return Object.entries(object)
        .map(([key, part]) => (part === null ? key : `${key} ${inner(part)}`))
        .join(" ");
  }
}
