import { z } from "zod";
import { hasOption, operands } from "./command.ts";
import { PHYSICAL } from "./ethtool-statistics.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { asString, jsonElements } from "./json.ts";
import { isPrompt, withoutPrompts } from "./paste.ts";

/**
 * What network devices do in the place of the kernel (offloads).
 *
 *     Features for flannel.1:
 *     tx-checksumming: on
 *     	tx-checksum-ip-generic: on
 *     rx-vlan-offload: off [fixed]
 */
const Feature = z.object({
  line: z.int(),
  interface: z.string(),
  /** "tx-checksum-ip-generic", "generic-receive-offload", … */
  name: z.string(),
  on: z.boolean(),
  /** The driver does not let it be changed. */
  fixed: z.boolean(),
  /** What was asked for where it is not what is ("off [requested on]"). */
  requested: z.boolean().optional(),
});
const EthtoolFeatures = z.object({ rows: z.array(Feature) });
type Feature = z.infer<typeof Feature>;

// old versions: "rx-checksumming: on", "Offload parameters for eth0:", "tcp segmentation offload: on"
const FEATURE = /^\s{0,20}([a-z][\w. -]{1,60}):\s{1,8}(on|off)(?:\s+\[((?:fixed|not requested|requested on|requested off))\])?$/;
const FRAME = /^(?:(?:Features|Offload parameters) for ([^\s:]{1,15}):|Cannot get device .{1,60}|netlink error: .{1,60})$/;
const NAME = /^[^\s/-][^\s/]{0,14}$/;

/** Tunnels first, which is where offloads go wrong; then what is hardware. */
const TUNNELS_AND_CARDS = `ls /sys/class/net | grep -E '^(flannel|vxlan|genev|cilium_(vxlan|geneve)$|weave|antrea-gw)'; ${PHYSICAL}`;

export const ethtoolFeatures = defineFact({
  id: "ethtool-features",
  title: "Offloads of network devices",
  commands: [{ argv: ["ethtool", "-k", "{}"], each: TUNNELS_AND_CARDS, eachOf: "interface" }],
  byHand: "ethtool -k INTERFACE",
  recognize(argv): View | undefined {
    if (argv[0] !== "ethtool" || !hasOption(argv, "-k", "--show-features", "--show-offload")) return undefined;
    const names = operands(argv);
    const [name] = names;
    if (name === undefined || names.length > 1 || !(NAME.test(name) || name === "{}")) return undefined;
    return { format: hasOption(argv, "--json", "-j") ? "json" : "text", complete: true, scope: name, rank: 1 };
  },
  schema: EthtoolFeatures,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const rows: Feature[] = [];
    if (view.format === "json") return unparsed.with({ rows: fromJson(text, view.scope, unparsed) });
    for (const { line, text: content } of lines(text)) {
      const match = FEATURE.exec(content);
      const frame = match === null ? FRAME.exec(content.trim()) : null;
      if (match !== null) {
        const [, name, on, remark] = match as unknown as [string, string, string, string?];
        const requested = remark === "requested on" ? { requested: true } : remark === "requested off" ? { requested: false } : {};
        rows.push({ line, interface: view.scope, name: name.replaceAll(" ", "-"), on: on === "on", fixed: remark === "fixed", ...requested });
      } else if (frame === null && !isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
});

/** `"tx-checksum-ip-generic": { "active": true, "fixed": false, "requested": true }`; a sum of several features has null in place of the last two. */
function fromJson(text: string, scope: string, unparsed: UnparsedLines): Feature[] {
  const shown = withoutPrompts(text);
  const places = new Map<string, number>();
  for (const { line, text: content } of lines(shown)) {
    const key = KEY.exec(content)?.[1];
    if (key !== undefined) places.set(key, line);
  }
  const rows: Feature[] = [];
  for (const { value, line } of jsonElements(shown, unparsed)) {
    const name = asString(value["ifname"]) ?? scope;
    for (const [key, feature] of Object.entries(value)) {
      if (typeof feature !== "object" || feature === null) continue;
      const { active, fixed, requested } = feature as Readonly<Record<string, unknown>>;
      if (typeof active !== "boolean") continue;
      const asked = typeof requested === "boolean" && fixed !== true && requested !== active ? { requested } : {};
      rows.push({ line: places.get(key) ?? line, interface: name, name: key, on: active, fixed: fixed === true, ...asked });
    }
  }
  return rows;
}
const KEY = /^\s{0,40}"([a-z][\w.-]{1,60})": \{/;
