import type { FleetAsk, NodeTerm } from "../../triage/ports.ts";

/** `/netcheck nodes …`: which nodes, or what of a fleet that was examined. Also the values of the buttons on a fleet's messages. */

/** As many terms as one command may have. */
const MAX_TERMS = 200;
/** A name with "*" for any letters, and perhaps a cluster before it. Three at most: each costs a look along the name. */
const NAME = /^(?:[A-Za-z0-9*][A-Za-z0-9_.*-]{0,252}\/)?[A-Za-z0-9*][A-Za-z0-9_.:*-]{0,252}$/;
const MAX_STARS = 4;
/** As Kubernetes and AWS take the name and the value of a label or a tag, without blanks; nothing in it means anything to a label selector. */
const LABEL = /^[A-Za-z0-9][\w.:/@+-]{0,252}$/;
const VALUE = /^[\w.:/@+-]{1,253}$/;
const INCIDENT = /^[A-Za-z0-9_-]{1,64}$/;
const RULE = /^[a-z0-9-]{1,80}$/;
const HASH = /^[0-9a-f]{16}$/;

const EXAMPLES = '"nodes pool=blue", "nodes web-*", "nodes node1,node2" or "nodes all"';

/** Reads `nodes …`; undefined if it is no such question. */
export function parseNodes(text: string): { readonly kind: "nodes"; readonly ask: FleetAsk } | { readonly kind: "help"; readonly problem: string } | undefined {
  const [first, ...words] = text.trim().split(/\s+/);
  if (first?.toLowerCase() !== "nodes") return undefined;
  const ask = ofFleet(words);
  if (ask !== undefined) return { kind: "nodes", ask };
  if (words.length === 0) return { kind: "help", problem: `Which nodes? Write it as in ${EXAMPLES}.` };
  const terms: NodeTerm[] = [];
  let confirmed: number | undefined;
  for (const word of words.flatMap((item) => item.split(",")).filter(Boolean)) {
    const at = word.indexOf("=");
    const [name, value] = [word.slice(0, at), word.slice(at + 1)];
    if (at >= 0 && name.toLowerCase() === "confirm" && /^[1-9]\d{0,4}$/.test(value)) confirmed = Number(value);
    else if (at >= 0 && LABEL.test(name) && VALUE.test(value)) terms.push({ by: "label", name, value });
    else if (at < 0 && word.toLowerCase() === "all") terms.push({ by: "all" });
    else if (at < 0 && NAME.test(word) && word.split("*").length <= MAX_STARS) terms.push({ by: "name", name: word });
    else return { kind: "help", problem: `"${word.slice(0, 80)}" is no name of nodes and no label; write it as in ${EXAMPLES}.` };
  }
  if (terms.length === 0) return { kind: "help", problem: `Which nodes? Write it as in ${EXAMPLES}.` };
  if (terms.length > MAX_TERMS) return { kind: "help", problem: `At most ${MAX_TERMS} names can stand behind "nodes"; use a label, or "*".` };
  return { kind: "nodes", ask: { kind: "examine", terms, ...(confirmed === undefined ? {} : { confirmed }) } };
}

/** What a button says: `show <incident> <cluster/node>`, `fix <incident> <rule>`, `approve <incident> <rule> <hash>`. May be typed as well. */
function ofFleet([verb, fleet = "", what = "", hash = "", ...more]: readonly string[]): FleetAsk | undefined {
  if (!INCIDENT.test(fleet) || more.length > 0) return undefined;
  if (verb === "show" && hash === "" && NAME.test(what) && !what.includes("*")) return { kind: verb, fleet, node: what };
  if (verb === "fix" && hash === "" && RULE.test(what)) return { kind: verb, fleet, rule: what };
  if ((verb === "approve" || verb === "dismiss") && RULE.test(what) && HASH.test(hash)) return { kind: verb, fleet, rule: what, hash };
  return undefined;
}
