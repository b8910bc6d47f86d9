import { lines } from "./fact.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { isPrompt } from "./paste.ts";
import { pipeOf } from "./pipe.ts";

/** One grep for a plain name, which shows every line that holds it: "grep kube-dns:dns", "grep -w 'default/web:http'". */
const SEARCH = /^[ef]?grep(?: -[niwEFPe]{1,4}){0,3} ([\w:/.-]{3,200})$/;
/** Chains of kube-proxy in which the comment of each rule begins with the service: "ns/name:port", "ns/name:port cluster IP", "ns/name:port -> 10.0.0.1:53". */
const OF_A_SERVICE = /^KUBE-(?:SVC|SVL|SEP)-/;
const SERVICE = /^([\w.-]{1,253}\/[\w.:-]{1,253})(?: cluster IP| -> \S{1,64})?$/;

/**
 * Marks the chains of which a search behind the command cannot have left out a rule: those of the services whose name holds what was searched for. A search for
 * an endpoint's address shows only some of the rules, and marks none.
 *
 * @param value what was read of the output; its chains are changed
 * @param pipe what the output was piped into (`Input.pipe`)
 */
export function completeBySearch(value: Iptables, pipe: string, text: string): void {
  const pattern = SEARCH.exec(pipe)?.[1];
  if (pattern === undefined) return;
  // behind a prompt stands the output of another command, which had a filter of its own or none, unless it is the command itself that was copied along
  for (const { text: content } of lines(text)) if (isPrompt(content) && pipeOf(content) !== pipe) return;
  const chains = new Map<string, IptablesRow[]>();
  for (const row of value.rows) {
    if (!OF_A_SERVICE.test(row.chain)) continue;
    const rules = chains.get(row.chain);
    if (rules === undefined) chains.set(row.chain, [row]);
    else rules.push(row);
  }
  for (const chain of value.chains) {
    const rules = chains.get(chain.name) ?? [];
    const services = new Set(rules.map((rule) => SERVICE.exec(rule.comment ?? "")?.[1] ?? ""));
    const [service = ""] = services;
    if (services.size === 1 && service.includes(pattern) && isEnd(rules.at(-1))) chain.complete = true;
  }
}

/** kube-proxy's last rule of a chain always takes the packet; without it the rest was lost otherwise. */
const isEnd = (rule: IptablesRow | undefined): boolean =>
  rule !== undefined && (rule.toDestination !== undefined || (rule.target?.startsWith("KUBE-SEP-") === true && !/\bprobability\b/.test(rule.spec)));
