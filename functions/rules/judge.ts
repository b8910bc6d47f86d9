import type { Capture, Output } from "../facts/capture.ts";
import { isRefusal, sampled } from "../facts/command.ts";
import { tellsTime } from "../facts/date-output.ts";
import { readFacts } from "../facts/read.ts";
import type { Rule } from "./compile.ts";
import { evaluateRule, Facts, type Outcome } from "./evaluate.ts";
import type { Catalogue } from "./load.ts";

/** The word of some rules on a capture, and the facts they judged. */
export interface Judgement {
  readonly facts: Facts;
  readonly outcomes: readonly Outcome[];
  /** Causes that the first answers show and that are gone from later answers to the same questions. */
  readonly gone: ReadonlySet<string>;
}

/**
 * The word on a capture of every rule of its runbook. What a runbook does not name has nothing to say: a pod's network is no node's.
 *
 * Of a question that a person asked twice the first answer counts: people show what is wrong, then what they did about it. Where the first answers show no
 * cause, the last ones count: others show what was well, what happened, and what is wrong since.
 */
export function judge(capture: Capture, { rules, runbooks }: Pick<Catalogue, "rules"> & Partial<Pick<Catalogue, "runbooks">>): Judgement {
  const named = runbooks?.get(capture.runbook)?.rules ?? "all";
  return judgeBy(named === "all" ? [...rules.values()] : named.flatMap((id) => rules.get(id) ?? []), capture);
}

/** The word of one rule, as {@link judge} has it, from the facts it asks for. */
export function judgeRule(rule: Rule, capture: Capture): { readonly facts: Facts; readonly outcome: Outcome } {
  const { facts, outcomes } = judgeBy([rule], capture, rule.facts);
  return { facts, outcome: outcomes[0] as Outcome };
}

function judgeBy(rules: readonly Rule[], capture: Capture, only?: ReadonlySet<string>): Judgement {
  const judged = (of: Capture): Omit<Judgement, "gone"> => {
    const facts = new Facts(of, readFacts(of, only));
    return { facts, outcomes: rules.map((rule) => evaluateRule(rule, facts)) };
  };
  const first = judged(capture);
  const later = latest(capture);
  if (later === undefined) return { ...first, gone: new Set() };
  const last = judged(later);
  if (first.outcomes.some(isCause)) {
    const gone = first.outcomes.filter((outcome, i) => isCause(outcome) && isRuledOut(last.outcomes[i]));
    return { ...first, gone: new Set(gone.map(({ rule }) => rule.file.id)) };
  }
  if (last.outcomes.some(isCause)) return { ...last, gone: new Set() };
  // nothing is ruled out by an answer that a later one has replaced
  const outcomes = first.outcomes.map((outcome, i) => (isRuledOut(outcome) ? (last.outcomes[i] as Outcome) : outcome));
  return { facts: outcomes.some((outcome, i) => outcome.verdict !== first.outcomes[i]?.verdict) ? last.facts : first.facts, outcomes, gone: new Set() };
}
const isRuledOut = (outcome?: Outcome): boolean => outcome?.verdict === "no-match" || outcome?.verdict === "not-applicable";
const isCause = ({ rule, verdict }: Outcome): boolean => verdict === "match" && rule.file.role === "cause";

/**
 * A capture with the last answers to questions about a state in place of the first ones; undefined where there are none, or where they say the same.
 * Counters are left, because what counts of them is the difference, and logs, of which every line counts; so is what a runbook asked twice: it does so for counters alone.
 */
export function latest(capture: Capture): Capture | undefined {
  const answers = Map.groupBy(capture.outputs.filter(isState), ({ command, machine }) => `${sampled(command)}\n${machine ?? ""}`);
  const replaced = new Set<Output>();
  const last = new Set<Output>();
  for (const own of answers.values()) {
    const newest = own.at(-1) as Output;
    if (own.length === 1 || own[0]?.text === newest.text) continue;
    last.add(newest);
    for (const older of own.slice(0, -1)) replaced.add(older);
  }
  if (last.size === 0) return undefined;
  return {
    ...capture,
    outputs: capture.outputs.filter((output) => !replaced.has(output)).map((output) => (last.has(output) ? { ...output, sample: 1 } : output)),
  };
}

/** True for an answer about a state that a person asked for, and of which it is known what was asked: a table of IPv6 may look like one of IPv4. */
const isState = ({ argv, command, text, guessed, truncated }: Output): boolean =>
  argv === undefined && guessed !== true && !truncated && text.trim() !== "" && !isRefusal(text) && !GROWS.test(command) && !tellsTime(command);

/** Counters and logs. */
const GROWS =
  /\b(?:nstat|conntrack|ifconfig|softnet\w*|statistics|metrics|sar|nft|dmesg|journalctl|logs?|tail|events?)\b|\/proc\/net\/|--stat|\bethtool .{0,40}-S|\b(?:ip|tc|ss|netstat|ipvsadm) (?:.{0,40} )?-\w{0,8}[si]\b|tables (?:.{0,40} )?-\w{0,4}v|tables-save (?:.{0,40} )?-c/;
