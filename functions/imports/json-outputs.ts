/** Outputs in JSON that stand in a text, or in a file, without the command that printed them: their first members tell what they are. */

/** A stretch of lines: its command, and the index behind its end. */
export interface JsonOutput {
  readonly command: string;
  readonly end: number;
}

/** So much of an output is looked at for what it is. */
const HEAD = 6000;
/** Lists of Kubernetes by the kind of what is in them. */
const OBJECTS: Readonly<Record<string, string>> = {
  Node: "kubectl get nodes -o json",
  Pod: "kubectl get pods -A -o json",
  Service: "kubectl get svc -A -o json",
  Endpoints: "kubectl get endpoints -A -o json",
  EndpointSlice: "kubectl get endpointslices -A -o json",
};

/** The output in JSON that begins with the line at this index; undefined if none does. Linear in its length. */
export function jsonOutputAt(lines: readonly string[], start: number): JsonOutput | "unclosed" | undefined {
  if (!/^\s{0,8}(?:\[\s{0,8}(?:\{|$)|\{)/.test(lines[start] ?? "") || !BEGINNING.test(headOf(lines, start, 80))) return undefined;
  const command = commandOf(headOf(lines, start, HEAD));
  if (command === undefined) return undefined;
  const end = endOf(lines, start);
  return end === undefined ? "unclosed" : { command, end };
}

/** The beginning of what stands there, without blanks. */
function headOf(lines: readonly string[], start: number, length: number): string {
  let head = "";
  for (let i = start; i < lines.length && head.length < length; i++) head += (lines[i] ?? "").slice(0, 2 * length).replaceAll(/\s+/g, "");
  return head.slice(0, length);
}
/** Most of what is in JSON is something else: a log. */
const BEGINNING = /^\[?\{"(?:ifindex|type|dst|priority|mac|nftables|apiVersion)":/;

function commandOf(head: string): string | undefined {
  if (/^\[?\{"ifindex":\d+,/.test(head)) {
    if (head.includes('"addr_info":')) return "ip -j addr show";
    const shown = ["-j", ...(head.includes('"linkinfo":') ? ["-d"] : []), ...(head.includes('"stats64":') ? ["-s"] : [])];
    return /"state":"(?:forwarding|disabled|blocking|learning|listening)"/.test(head) ? "bridge -d -j link show" : `ip ${shown.join(" ")} link show`;
  }
  if (/^\[?\{(?:"type":"\w+",)?"dst":"/.test(head)) {
    if (/"lladdr":|"state":\[/.test(head)) return "ip -j neigh show";
    const family = /"dst":"[^"]*:/.test(head) ? " -6" : "";
    return `ip -j${family} route show${head.includes('"table":') ? " table all" : ""}`;
  }
  // only the rules of IPv4 have a table "default" in the end
  if (/^\[?\{"priority":\d+,/.test(head)) return `ip -j ${/"priority":32767|"src":"\d+\./.test(head) ? "-4" : "-6"} rule show`;
  if (/^\[?\{"mac":"[0-9a-f:]{17}","ifname":/.test(head)) return "bridge -j fdb show";
  if (head.startsWith('{"nftables":[')) return "nft -j list ruleset";
  if (!head.startsWith('{"apiVersion":')) return undefined;
  const kind = /"kind":"(\w{1,40}?)(?:List)?"/.exec(head.replace(/"kind":"List"/, ""))?.[1] ?? "";
  return OBJECTS[kind];
}

/** The index behind the line on which what begins at this one is closed. */
function endOf(lines: readonly string[], start: number): number | undefined {
  let depth = 0;
  for (let i = start; i < lines.length; i++) {
    for (const [sign] of (lines[i] ?? "").matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/g)) {
      if (sign === "[" || sign === "{") depth++;
      else if (sign === "]" || sign === "}") depth--;
    }
    if (depth <= 0) return i + 1;
  }
  return undefined;
}
