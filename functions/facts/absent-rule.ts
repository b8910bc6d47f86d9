import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { requestOf } from "./iptables-command.ts";
import { namesFound } from "./iptables-search.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";

/**
 * What was looked for among all rules of iptables and is in none of them. The rules themselves are in the fact `iptables`; a search that finds nothing shows none.
 *
 *     iptables-save | grep 'ctstate INVALID -j DROP'
 */
const AbsentRule = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      family: z.enum(["ipv4", "ipv6"]),
      /** Rules that drop packets which connection tracking takes for INVALID. */
      of: z.enum(["invalid-drop"]),
    }),
  ),
});

/** Such a rule as each kind of listing prints it, whatever its chain: a search that would have found it names nothing but what all of them have. */
const INVALID_DROP: Readonly<Record<string, string>> = {
  save: "-m conntrack --ctstate INVALID -j DROP",
  rules: "-m conntrack --ctstate INVALID -j DROP",
  list: "ctstate INVALID",
};
/** What is left of a pipe once nothing but the number of lines is asked for: `| grep INVALID | wc -l`, `| grep -c INVALID`. */
const COUNTED = / \| wc -l$/;
const COUNTS = /((?:^|\| )[ef]?grep(?: -[niwEFPe]{1,4})?) -([niwEFPe]{0,3})c([niwEFPe]{0,3}) (?=[^|]{1,200}$)/;

export const absentRule = defineFact({
  id: "absent-rule",
  title: "Rules of iptables that somebody looked for and that are not there (pasted only)",
  commands: [],
  recognize(argv, _, pipe = ""): View | undefined {
    if (pipe === "") return undefined;
    const request = requestOf(argv);
    if (request === undefined || request.chain !== undefined || (request.table ?? "filter") !== "filter") return undefined;
    const searches = pipe
      .replace(COUNTED, "")
      .replace(COUNTS, (_all, grep, before, behind) => `${grep}${before + behind === "" ? "" : ` -${before}${behind}`} `)
      .split(" | ");
    const printed = INVALID_DROP[request.format] ?? "";
    const sought = searches.every((one) => namesFound(one)?.(printed) === true) && searches.some((one) => /INVALID/i.test(one));
    return sought ? { format: COUNTED.test(pipe) || COUNTS.test(pipe) ? "count" : "lines", complete: true, scope: request.family, rank: 1 } : undefined;
  },
  schema: AbsentRule,
  // grep ends with 1 where it found nothing
  answered: ({ exitCode, stderr }) => (exitCode ?? 0) <= 1 && stderr.trim() === "",
  parse({ text, view, truncated }) {
    const said = [...lines(text)].filter(({ text: content }) => content.trim() !== "" && !isPrompt(content));
    const none = view.format === "count" ? said.length === 1 && said[0]?.text.trim() === "0" : said.length === 0;
    const family = view.scope === "ipv6" ? ("ipv6" as const) : ("ipv4" as const);
    return new UnparsedLines().with({ rows: none && truncated !== true ? [{ line: 1, family, of: "invalid-drop" as const }] : [] });
  },
  ...eachOnItsOwn,
});
