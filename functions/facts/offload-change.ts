import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";

/**
 * Offloads that somebody switched on or off by hand. netcheck itself changes none while it reads.
 *
 *     # ethtool -K flannel.1 tx-checksum-ip-generic off
 *     Actual changes:
 *     tx-checksum-ip-generic: off
 */
const Change = z.object({
  line: z.int(),
  interface: z.string(),
  /** "tx-checksum-ip-generic", …; of old versions, which print nothing, as the command line has it. */
  name: z.string(),
  on: z.boolean(),
});
const Changes = z.object({ rows: z.array(Change) });
type Change = z.infer<typeof Change>;

const CHANGED = /^\s{0,8}([a-z][\w-]{1,60}): (on|off)(?: \[(?:requested|not requested|fixed).{0,20}\])?$/;
const FEATURE = /^(?:tx|rx|tso|gso|gro|sg|ufo|lro|tx-[\w-]{1,60}|rx-[\w-]{1,60})$/;

export const offloadChange = defineFact({
  id: "offload-change",
  title: "Offloads that somebody switched by hand (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "ethtool" || !/^(?:-K|--features|--offload)$/.test(argv[1] ?? "") || argv[2] === undefined) return undefined;
    return { format: "text", complete: true, scope: argv.slice(2).join(" "), rank: 1 };
  },
  schema: Changes,
  parse({ text, argv }) {
    const name = argv[2] as string;
    const rows: Change[] = [];
    let silent = true;
    for (const { line, text: content } of lines(text)) {
      if (!isPrompt(content)) silent = false;
      const match = CHANGED.exec(content);
      if (match !== null && !content.includes("[fixed")) rows.push({ line, interface: name, name: match[1] as string, on: match[2] === "on" });
    }
    for (let i = 3; silent && i + 1 < argv.length; i += 2) {
      const [feature, value] = [argv[i] as string, argv[i + 1]];
      if (FEATURE.test(feature) && (value === "on" || value === "off")) rows.push({ line: 1, interface: name, name: feature, on: value === "on" });
    }
    return new UnparsedLines().with({ rows });
  },
  ...eachOnItsOwn,
});
