import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { concatenated } from "./parts.ts";

/**
 * Where CoreDNS sends the questions that it cannot answer itself, as its Corefile has it: a file, or the ConfigMap that holds it.
 *
 *     .:53 {
 *         forward . /etc/resolv.conf
 *     }
 */
const Forward = z.object({
  line: z.int(),
  /** Of the server block, without a port: ".", "corp.example". */
  zone: z.string(),
  /** What it forwards: "." for everything. */
  from: z.string(),
  /** Addresses as written: "10.0.0.2", "tls://9.9.9.9". */
  servers: z.array(z.string()),
  /** In their place, a resolver's file: "/etc/resolv.conf". */
  files: z.array(z.string()),
  /** The block answers on a link-local address: it is the Corefile of a cache on the node, which has the node's own resolver. */
  nodeCache: z.boolean(),
});
const Corefile = z.object({ forwards: z.array(Forward) });
type Forward = z.infer<typeof Forward>;

const FILE = /(?:^|\/)Corefile$/;
const KIND = /^(?:cm|configmaps?)(?:$|\/)/i;
const NAME = /^(?:(?:cm|configmaps?)\/)?(?:(?:[\w.-]{0,60}-)?coredns(?:-[\w.-]{1,60})?|dns-default)$/i;
/** The whole file in one string, as JSON has it, and YAML where a line of it ends with a blank. */
const INLINE = /^\s{0,40}"?Corefile"?\s{0,4}:\s{0,4}"((?:[^"\\]|\\.){0,30000})"/;
const BLOCK = /^([^\s{}#"][^{}#"]{0,400}?)\s{0,10}\{\s{0,10}$/;
const FORWARD = /^(?:forward|proxy)\s{1,10}(\S{1,253})\s{1,10}([^{}#]{1,1000}?)\s{0,10}\{?\s{0,10}(?:#.{0,400})?$/;
const BIND = /^bind\s.{0,200}(?:\b169\.254\.|\bfe80:)/;

export const corefile = defineFact({
  id: "corefile",
  title: "Servers that CoreDNS forwards to (not collected: the ConfigMap is the cluster's)",
  commands: [],
  byHand: "kubectl -n kube-system get configmap coredns -o yaml",
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (program === "cat" && rest.some((word) => FILE.test(word))) return { format: "file", complete: true, scope: "", rank: 1 };
    const asked = (program === "kubectl" || program === "oc") && rest.some((word) => KIND.test(word)) && rest.some((word) => NAME.test(word));
    return asked ? { format: "map", complete: true, scope: "", rank: 1 } : undefined;
  },
  // `kubectl exec … -- cat /etc/coredns/Corefile` is the usual way to it
  anywhere: true,
  schema: Corefile,
  parse({ text }) {
    const forwards: Forward[] = [];
    let block: { zone: string; depth: number; own: Forward[]; nodeCache: boolean } | undefined;
    const read = (line: number, raw: string): void => {
      const content = raw.trim();
      if (content === "" || content.startsWith("#")) return;
      const opens = content.endsWith("{");
      if (block === undefined) {
        const zone = opens ? BLOCK.exec(content)?.[1] : undefined;
        // "Corefile: ." of `describe` and of YAML stands on a line of its own, so what opens a block is its zones
        if (zone !== undefined && !zone.startsWith("(")) block = { zone: zoneOf(zone), depth: 1, own: [], nodeCache: false };
        return;
      }
      const found = FORWARD.exec(content);
      if (found !== null && block.depth === 1) {
        const targets = (found[2] as string).split(/\s+/);
        const row = {
          line,
          zone: block.zone,
          from: found[1] as string,
          servers: targets.filter((to) => !to.startsWith("/")),
          files: targets.filter((to) => to.startsWith("/")),
        };
        block.own.push({ ...row, nodeCache: false });
      }
      if (BIND.test(content)) block.nodeCache = true;
      if (opens) block.depth += 1;
      if (content === "}") block.depth -= 1;
      if (block.depth > 0) return;
      const { nodeCache } = block;
      forwards.push(...block.own.map((row) => ({ ...row, nodeCache })));
      block = undefined;
    };
    for (const { line, text: raw } of lines(text)) {
      const inline = INLINE.exec(raw)?.[1];
      for (const part of inline === undefined ? [raw] : inline.split("\\n")) read(line, part.replaceAll("\\t", " "));
    }
    return new UnparsedLines().with({ forwards });
  },
  merge: concatenated,
});

/** "." of ".:53" and "dns://.:53"; of several zones the root, if it is among them. */
function zoneOf(zones: string): string {
  const names = zones.split(/[\s,]+/).map((zone) => zone.replace(/^[a-z]{2,8}:\/\//, "").replace(/:\d{1,5}$/, "") || ".");
  return names.includes(".") ? "." : (names[0] as string);
}
