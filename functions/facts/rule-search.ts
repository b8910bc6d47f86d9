import { z } from "zod";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { rule } from "./rule.ts";

/**
 * What was looked for among the routing rules, where only the matching ones were shown. The rules themselves are in the fact `rule`; this one tells of which of
 * them all were seen.
 *
 *     ip rule | grep 10.31.2.78
 */
const RuleSearch = z.object({ rows: z.array(z.object({ line: z.int(), address: z.string() })) });

/** The whole of an IPv4 address, as it stands in a rule. */
const ADDRESS = /^(?:\d{1,3}\\?\.){3}\d{1,3}$/;

export const ruleSearch = defineFact({
  id: "rule-search",
  title: "Addresses that were looked for among the routing rules (pasted only)",
  commands: [],
  recognize(argv, search): View | undefined {
    const view = rule.recognize(argv);
    const found = view?.format === "text" && view.complete && ADDRESS.test(search ?? "");
    return found ? { format: "search", complete: true, scope: (search ?? "").replaceAll("\\", ""), rank: 1 } : undefined;
  },
  schema: RuleSearch,
  parse: ({ view, truncated }) => new UnparsedLines().with({ rows: truncated === true ? [] : [{ line: 1, address: view.scope }] }),
});
