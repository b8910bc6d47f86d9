import { lines } from "./fact.ts";
import type { Iptables, IptablesRow } from "./iptables-row.ts";
import { isPrompt } from "./paste.ts";
import { pipeOf } from "./pipe.ts";

/** One grep for a plain name, which shows every line that holds it: "grep kube-dns:dns", "grep -w 'default/web:http'". */
const SEARCH = /^[ef]?grep(?: -[niwEFPe]{1,4}){0,3} ([\w:/.-]{3,200})$/;
/** What takes the other protocol's lines away: all rules that lead on in a service's chains are of one. */
const BUT = / \| [ef]?grep -v (?:tcp|udp|sctp)$/;
/** Chains of kube-proxy in which the comment of each rule begins with the service: "ns/name:port", "ns/name:port cluster IP", "ns/name:port -> 10.0.0.1:53". */
const OF_A_SERVICE = /^KUBE-(?:SVC|SVL|SEP)-/;
const SERVICE = /^([\w.-]{1,253}\/[\w.:-]{1,253})(?: cluster IP| -> \S{1,64})?$/;

/** One grep, its options, and what it looks for. */
const ANY_SEARCH = /^([ef]?grep)((?: -[niwEFPe]{1,4}){0,3})(?: --)? (.{3,200})$/;
/** A pattern that is a text, or a choice of texts: "FORWARD", "-A (FORWARD|KUBE-FORWARD) ", "KUBE-FORWARD|CILIUM_FORWARD". */
const CHOICE = /^([\w:/ -]{0,100})\(([\w:/| -]{1,200})\)([\w:/ -]{0,100})$/;
const TEXTS = /^[\w:/| -]{3,200}$/;

/**
 * Marks the chains of which a search behind the command cannot have left out a rule: those whose name in front of each rule (`-A FORWARD `) is what was searched
 * for, and those of the services whose name holds it. A search for an endpoint's address shows only some of the rules, and marks none.
 *
 * @param value what was read of the output; its chains are changed
 * @param pipe what the output was piped into (`Input.pipe`)
 */
export function completeBySearch(value: Iptables, pipe: string, text: string): void {
  const pattern = SEARCH.exec(pipe.replace(BUT, ""))?.[1];
  const finds = namesFound(pipe);
  if (pattern === undefined && finds === undefined) return;
  // behind a prompt stands the output of another command, which had a filter of its own or none, unless it is the command itself that was copied along
  for (const { text: content } of lines(text)) if (isPrompt(content) && pipeOf(content) !== pipe) return;
  if (finds !== undefined) {
    completeByName(value, text, finds);
    noteTargets(value, searchesOf(pipe));
  }
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
    const shown = (pattern !== undefined && service.includes(pattern)) || finds?.(`-A ${chain.name} `) === true;
    if (services.size === 1 && shown && isEnd(rules.at(-1))) chain.complete = true;
  }
}

/** kube-proxy's last rule of a chain always takes the packet; without it the rest was lost otherwise. */
const isEnd = (rule: IptablesRow | undefined): boolean =>
  rule !== undefined && (rule.toDestination !== undefined || (rule.target?.startsWith("KUBE-SEP-") === true && !/\bprobability\b/.test(rule.spec)));

/** Whether the search, or all of several one behind the other, finds a text, by the words alone of which it gives a choice; undefined if it is no such search. */
export function namesFound(pipe: string): Search | undefined {
  const searches = searchesOf(pipe);
  return searches.length > 0 ? (text) => searches.every((finds) => finds(text)) : undefined;
}
type Search = (text: string) => boolean;

/** The searches one behind the other; none if any is of another kind. */
function searchesOf(pipe: string): Search[] {
  const searches = pipe.split(" | ").map(searchFor);
  return searches.every((search) => search !== undefined) ? searches : [];
}

function searchFor(pipe: string): Search | undefined {
  const [, program, options = "", raw = ""] = ANY_SEARCH.exec(pipe) ?? [];
  if (program === undefined || raw.includes(" -e ")) return undefined;
  const extended = program === "egrep" || /[EP]/.test(options);
  const literal = program === "fgrep" || options.includes("F");
  const pattern = extended || literal ? raw : raw.replaceAll("\\|", "|");
  const [, before = "", choice, behind = ""] = (extended ? CHOICE.exec(pattern) : null) ?? [];
  if (choice === undefined && !TEXTS.test(pattern)) return undefined;
  // in a pattern that is not extended "|" is a character like others, and so is it in a text
  const isChoice = choice !== undefined || extended || pattern !== raw;
  const words = (isChoice ? (choice ?? pattern).split("|") : [pattern]).map((word) => `${before}${word}${behind}`);
  if (words.some((word) => word.trim().length < 3 || (!isChoice && word.includes("|")))) return undefined;
  const fold = (text: string): string => (options.includes("i") ? text.toLowerCase() : text);
  const isWord = (text: string, word: string): boolean => {
    const at = text.indexOf(word);
    return at !== -1 && (!options.includes("w") || !(/\w/.test(text[at - 1] ?? " ") || /\w/.test(text[at + word.length] ?? " ")));
  };
  return (text) => words.some((word) => isWord(fold(text), fold(word)));
}

/** `iptables -S FORWARD | grep -E 'KUBE-FORWARD|CILIUM_FORWARD'`: all jumps to the two are there, in their order. */
function noteTargets(value: Iptables, searches: readonly Search[]): void {
  const shown = new Map<string, Set<string>>();
  for (const { chain, target } of value.rows) {
    if (target === undefined || !searches.every((finds) => finds(target) || finds(`-j ${target}`) || finds(`-A ${chain} `))) continue;
    const targets = shown.get(chain);
    if (targets === undefined) shown.set(chain, new Set([target]));
    else targets.add(target);
  }
  for (const chain of value.chains) {
    // a search that finds the chain's own line, too, is looked at by that
    const targets = chain.complete || searches.every((finds) => finds(`:${chain.name} `)) ? undefined : shown.get(chain.name);
    if (targets !== undefined) chain.targets = [...targets];
  }
}

/**
 * Each rule of `iptables-save` and `iptables -S` begins with the name of its chain; those of `iptables -L` do not. A search that
 * finds the chain's own line (`:FORWARD ACCEPT [0:0]`), too, must show it. Chains of services are looked at by their ends.
 */
function completeByName(value: Iptables, text: string, finds: (text: string) => boolean): void {
  const written = new Map([...lines(text)].map(({ line, text: content }) => [line, content]));
  const isShown = ({ name, line }: { name: string; line: number }): boolean =>
    !finds(`:${name} `) || written.get(line)?.trim().startsWith(`:${name} `) === true;
  const named = value.chains.filter((chain) => !OF_A_SERVICE.test(chain.name) && finds(`-A ${chain.name} `) && isShown(chain));
  if (named.length === 0) return;
  const without = new Set(value.rows.filter((row) => written.get(row.line)?.includes(`-A ${row.chain} `) !== true).map((row) => row.chain));
  const listed = new Set(value.rows.map((row) => row.chain));
  for (const chain of named) if (listed.has(chain.name) && !without.has(chain.name)) chain.complete = true;
}
