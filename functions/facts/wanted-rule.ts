import { z } from "zod";
import { byWord } from "./by-word.ts";
import { operands } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";
import { wordsOf } from "./words.ts";

/**
 * Routing rules that a configuration file or connection asks for, as people paste them. Which ones the kernel has is in the fact `rule`.
 *
 *     [RoutingPolicyRule]
 *     From=192.0.2.10
 *     Table=101
 *
 *     routing-policy: [a list of] from, to, table, priority     (netplan)
 *     ipv4.routing-rules:   priority 101 from 192.0.2.10 table 101     (nmcli; in a keyfile routing-rule1=…)
 *     from 192.0.2.10 table 101     (rule-eth1)
 *     post-up ip rule add from 192.0.2.10 lookup isp2     (/etc/network/interfaces)
 */
const Wanted = z.object({
  line: z.int(),
  /** An address or a prefix. */
  from: z.string().optional(),
  to: z.string().optional(),
  /** A number or a name, as written. */
  table: z.string(),
  priority: z.int().optional(),
});
const WantedRules = z.object({ rows: z.array(Wanted) });
type Wanted = z.infer<typeof Wanted>;
/** A rule of which more keys may follow. */
type Draft = { line: number; from?: string; to?: string; table?: string; priority?: string };

const FORMATS: readonly (readonly [RegExp, string])[] = [
  [/^(?:\/host)?\/(?:etc|run|usr\/lib|lib)\/systemd\/network\/\S{1,200}\.(?:network|conf)$/, "networkd"],
  [/^(?:\/host)?\/(?:etc|run|lib)\/netplan\/\S{1,200}\.ya?ml$/, "netplan"],
  [/^(?:\/host)?\/etc\/NetworkManager\/system-connections\/\S{1,200}$/, "words"],
  [/^(?:\/host)?\/etc\/sysconfig\/(?:network-scripts|network)\/(?:rule|ifrule)6?-\S{1,64}$/, "words"],
  [/^(?:\/host)?\/etc\/network\/interfaces(?:\.d\/\S{1,100})?$/, "words"],
];
const KEYS = byWord<keyof Omit<Draft, "line">>({
  from: "from",
  to: "to",
  table: "table",
  lookup: "table",
  priority: "priority",
  pref: "priority",
  preference: "priority",
  prio: "priority",
});
const SECTION = /^\[([A-Za-z0-9]{1,40})\]$/;
const SETTING = /^([A-Za-z]{1,20}) {0,4}= {0,4}(\S{1,64})$/;
const ITEM = /^(- {1,8})?([a-z]{1,20}): {1,8}["']?([^\s"']{1,64})["']?$/;
/** What stands before a rule on its line: a key of NetworkManager, or a command of ifupdown. A file of rules alone has nothing there. */
const LEAD =
  /^(?:ipv[46]\.routing-rules: {0,60}|routing-rule\d{1,4} ?= ?|(?:post-|pre-)?up (?:\/sbin\/|\/usr\/sbin\/)?ip (?:-[46] )?rule add )?(?=(?:priority|pref|prio|from|to) )/;

export const wantedRule = defineFact({
  id: "wanted-rule",
  title: "Routing rules that a configuration asks for (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const words = operands(argv);
    const scope = argv.join(" ").slice(0, 200);
    if (argv[0] === "nmcli" && words.some((word) => /^c(?:on(?:nection)?)?$/.test(word)) && words.some((word) => /^s(?:how)?$/.test(word)))
      return { format: "words", complete: true, scope, rank: 1 };
    if (argv[0] === "netplan" && words[0] === "get") return { format: "netplan", complete: true, scope, rank: 1 };
    const format = argv[0] === "cat" ? FORMATS.find(([path]) => words.length > 0 && words.every((word) => path.test(word)))?.[1] : undefined;
    return format === undefined ? undefined : { format, complete: true, scope, rank: 1 };
  },
  schema: WantedRules,
  parse({ text, view }) {
    const drafts: Draft[] = [];
    let open: Draft | undefined;
    // of netplan's list: how far the line that begins it is set in; -1 outside of it
    let list = -1;
    const begin = (line: number): Draft => {
      const draft: Draft = { line };
      drafts.push(draft);
      return draft;
    };
    // what else these files hold is about other things
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trim();
      if (content.startsWith("#") || content.length > 1000) continue;
      if (view.format === "networkd") {
        const section = SECTION.exec(content)?.[1];
        const [, key = "", value = ""] = SETTING.exec(content) ?? [];
        const field = KEYS[key.toLowerCase()];
        if (section !== undefined) open = section === "RoutingPolicyRule" ? begin(line) : undefined;
        else if (open !== undefined && field !== undefined) open[field] ??= value;
      } else if (view.format === "netplan") {
        const indent = raw.length - raw.trimStart().length;
        const [, dash, key = "", value = ""] = ITEM.exec(content) ?? [];
        if (content === "routing-policy:") list = indent;
        else if (list !== -1 && (indent < list || (indent === list && !content.startsWith("-")))) list = -1;
        else if (list !== -1) {
          if (dash !== undefined) open = begin(line);
          const field = KEYS[key];
          if (open !== undefined && field !== undefined) open[field] ??= value;
        }
        if (list === -1) open = undefined;
      } else if (LEAD.test(content)) {
        // NetworkManager separates rules by commas
        for (const rule of content.replace(LEAD, "").split(",", 50)) readWords(begin(line), wordsOf(rule, 40));
      }
    }
    return new UnparsedLines().with({ rows: drafts.flatMap(finished) });
  },
  // several files may have been shown
  ...eachOnItsOwn,
});

function readWords(draft: Draft, words: readonly string[]): void {
  for (let i = 0; i + 1 < words.length; i += 2) {
    const field = KEYS[words[i] as string];
    if (field !== undefined) draft[field] ??= words[i + 1] as string;
  }
}

/** What does not name a table leads to main, or rejects: that is no table which could be forgotten. */
function finished({ line, from, to, table, priority }: Draft): Wanted[] {
  if (table === undefined) return [];
  const number = priority !== undefined && /^\d{1,10}$/.test(priority) ? Number(priority) : undefined;
  return [{ line, table, ...present({ from, to, priority: number }) }];
}
