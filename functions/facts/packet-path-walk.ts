import type { Row } from "./fact.ts";
import { type Answer, type Doubt, either, type Flow, flowOf, type Marks, type Packet, type Stage } from "./packet-path-packet.ts";

/** What a rule does with a packet that it matches. `marks`: how it changes what the packet carries, before anything else. */
export interface Action {
  readonly kind: "none" | "accept" | "drop" | "reject" | "return" | "jump" | "goto" | "unknown";
  /** Of jump and goto. */
  readonly chain?: string;
  /** Of unknown: what is not known of it. */
  readonly doubt?: Doubt;
  /** Of unknown: whatever it does, it accepts nothing. */
  readonly neverAccepts?: true;
  readonly marks?: (marks: Marks) => Marks;
}

/** One thing that a rule may do. A rule with a verdict map has several, of which at most one happens. */
export interface Step {
  readonly answer: true | Doubt;
  readonly action: Action;
}

export interface PathRule {
  /** The line to quote; packets and packetsDelta where it counts. */
  readonly row: Row & { readonly packets?: number | undefined; readonly packetsDelta?: number | undefined; readonly spec?: string };
  /** What it does with the packet: nothing (empty), surely one thing, or perhaps one of several. */
  readonly steps: (flow: Flow, marks: Marks) => readonly Step[];
}

export interface PathChain {
  readonly name: string;
  readonly rules: readonly PathRule[];
  /** Rules of it may be missing. */
  readonly complete: boolean;
}

/** A chain that the kernel enters on its own. */
export interface BaseChain {
  /** Whose it is: "iptables-nft", "iptables-legacy", "iptables", or the nft table "inet firewalld". */
  readonly owner: string;
  readonly stage: Stage;
  /** Lower comes first. */
  readonly priority: number;
  readonly table: string;
  readonly name: string;
  readonly policy: "accept" | "drop" | "unknown";
  readonly row: PathRule["row"];
  /** The chains of its table by name. Undefined: not seen. */
  readonly chain: (name: string) => PathChain | undefined;
}

export type Verdict = "accept" | "drop" | "reject" | "undetermined";

/** What became of the packet at one owner's rules. */
export interface Decision {
  readonly owner: string;
  readonly verdict: Verdict;
  /** Why it is undetermined; empty otherwise. */
  readonly reason: string;
  /** The rule that decided, or the chain whose policy did; of "undetermined" the first that is in doubt. */
  readonly row: PathRule["row"];
  readonly table: string;
  readonly chain: string;
  readonly byPolicy: boolean;
  /** The chains on the way to it, first the base chain. */
  readonly via: readonly string[];
  /** Where it is or may be dropped or rejected: names of chains, "FORWARD policy", and {@link UNKNOWN_BLOCKER}. Bounded. */
  readonly blockers: readonly string[];
}

/** Stands among the blockers for what a target or chain does that is not known. */
const UNKNOWN_BLOCKER = "?";
const MAX_BLOCKERS = 32;

/** Deeper calls than this are not followed: the kernel allows 16 in nft, and no tool nests as deep in iptables. */
const MAX_DEPTH = 32;
/** Rules looked at for one packet. A node with 100,000 rules has most of them in nat, which is not walked. */
const MAX_STEPS = 200_000;

type Kind = "accept" | "drop" | "reject" | "unknown";
interface Outcome {
  readonly row: PathRule["row"];
  readonly chain: string;
  readonly via: readonly string[];
  readonly byPolicy: boolean;
  /** Why it may not happen; undefined if it surely does where the walk gets there. */
  readonly doubt: Doubt | undefined;
  readonly marks: Marks;
}
interface Walk {
  readonly outcomes: ReadonlyMap<Kind, Outcome>;
  /** What the packet carries if it comes out at the end of the chain; undefined if it never does. */
  readonly falls: Marks | undefined;
  readonly blockers: ReadonlySet<string>;
}

/** Rules that are taken out of the way, to see what would happen without them. */
export type Skip = ReadonlySet<PathRule["row"]>;

/**
 * Walks a packet through base chains as the kernel would: stage by stage, in order of priority; an accept ends only the base chain. A drop ends everything,
 * but the other owners are asked what they would do.
 * A condition that cannot be worked out makes both ways possible; if they disagree the verdict is "undetermined". nat is not walked: it cannot drop, and
 * probes go to no service. Returns the decision of each owner, in the order in which they decided. Never throws; bounded.
 */
export function walkPacket(bases: readonly BaseChain[], packet: Packet, skip: Skip = new Set()): Decision[] {
  const flow = flowOf(packet);
  const stages: readonly Stage[] =
    packet.hook === "output" ? ["output", "postrouting"] : packet.hook === "input" ? ["prerouting", "input"] : ["prerouting", "forward", "postrouting"];
  const decisions = new Map<string, Decision>();
  let marks: Marks = { mark: packet.mark ?? 0, unknown: 0, untracked: packet.state === "UNTRACKED" };
  for (const stage of stages) {
    flow.stage = stage;
    for (const base of bases.filter((one) => one.stage === stage).sort((a, b) => a.priority - b.priority)) {
      // what an owner has dropped its later chains do not see; the others' are asked all the same
      if (weight(decisions.get(base.owner)) === 2) continue;
      const { decision, after } = walkBase(base, flow, marks, skip);
      marks = after;
      const known = decisions.get(base.owner);
      // of several accepts the filter table's is the one to quote; a doubt stays unless a later chain drops
      const heavier =
        known === undefined ||
        weight(decision) > weight(known) ||
        (weight(decision) === weight(known) && known.verdict === "accept" && base.table === "filter");
      if (heavier) decisions.set(base.owner, decision);
    }
  }
  return [...decisions.values()];
}

const weight = (decision: Decision | undefined): number =>
  decision === undefined || decision.verdict === "accept" ? 0 : decision.verdict === "undetermined" ? 1 : 2;

interface Based {
  readonly decision: Decision;
  readonly after: Marks;
}

/** Where it is in doubt because of chains that were not seen and accept nothing, what comes behind them decides if it drops: the packet does not get through, whatever they do. */
function walkBase(base: BaseChain, flow: Flow, marks: Marks, skip: Skip): Based {
  const walker = new Walker(base, flow, skip);
  const seen = walkWith(walker, base, marks);
  if (seen.decision.verdict !== "undetermined" || !walker.metNeverAccepts) return seen;
  const behind = walkWith(new Walker(base, flow, skip, true), base, marks);
  return weight(behind.decision) === 2 ? behind : seen;
}

function walkWith(walker: Walker, base: BaseChain, marks: Marks): Based {
  const { outcomes, falls, blockers } = walker.walk(base.name, marks, 0);
  const all = new Map(outcomes);
  if (falls !== undefined) {
    const kind = base.policy;
    const doubt = outcomes.size > 0 ? ([...outcomes.values()].find((outcome) => outcome.doubt !== undefined)?.doubt ?? "") : undefined;
    if (!all.has(kind)) all.set(kind, { row: base.row, chain: base.name, via: [base.name], byPolicy: true, doubt, marks: falls });
    else if (kind === "accept") all.set(kind, { ...(all.get(kind) as Outcome), marks: either((all.get(kind) as Outcome).marks, falls) });
  }
  const where = new Set(blockers);
  if (falls !== undefined && base.policy !== "accept") where.add(base.policy === "drop" ? `${base.name} policy` : UNKNOWN_BLOCKER);
  const kinds = new Set(all.keys());
  const sure = [...all].find(([, outcome]) => outcome.doubt === undefined) ?? [...all].find(([, outcome]) => !outcome.byPolicy) ?? [...all][0];
  const [kind, outcome] = sure as [Kind, Outcome];
  const place = { owner: base.owner, table: base.table };
  const decided = (verdict: Verdict, reason: string, at: Outcome): Decision => ({
    ...place,
    verdict,
    reason,
    row: at.row,
    chain: at.chain,
    byPolicy: at.byPolicy,
    via: at.via,
    blockers: verdict === "accept" ? [] : [...where],
  });
  const blocked = [...kinds].every((one) => one === "drop" || one === "reject");
  if (blocked) return { decision: decided(kind === "reject" ? "reject" : "drop", "", outcome), after: marks };
  const accepted = all.get("accept");
  const after = accepted?.marks ?? marks;
  if (kinds.size === 1 && accepted !== undefined) return { decision: decided("accept", "", accepted), after };
  const doubtful = [...all.values()].find((one) => one.doubt !== undefined) ?? outcome;
  const policy = base.policy === "unknown" && doubtful.byPolicy ? `the policy of ${base.name} is not known` : "";
  return { decision: decided("undetermined", doubtful.doubt || policy || `what becomes of it in ${doubtful.chain} is not known`, doubtful), after };
}

class Walker {
  readonly #base: BaseChain;
  readonly #flow: Flow;
  readonly #skip: Skip;
  /** Chains that accept nothing are passed. */
  readonly #passing: boolean;
  readonly #memo = new Map<string, Walk | "open">();
  #steps = 0;
  metNeverAccepts = false;

  constructor(base: BaseChain, flow: Flow, skip: Skip, passing = false) {
    this.#base = base;
    this.#flow = flow;
    this.#skip = skip;
    this.#passing = passing;
  }

  /** One chain, entered with these marks. Each chain is walked once per marks. */
  walk(name: string, marks: Marks, depth: number): Walk {
    const key = `${name} ${marks.mark} ${marks.unknown} ${marks.untracked}`;
    const known = this.#memo.get(key);
    if (known === "open") return this.#lost(name, marks, "the chains call each other in a circle");
    if (known !== undefined) return known;
    const chain = this.#base.chain(name);
    if (chain === undefined) return this.#lost(name, marks, `the rules of ${name} are not known`);
    if (depth > MAX_DEPTH) return this.#lost(name, marks, `${name} is called too deep`);
    this.#memo.set(key, "open");
    const walk = this.#chain(chain, marks, depth);
    this.#memo.set(key, walk);
    return walk;
  }

  #chain(chain: PathChain, entered: Marks, depth: number): Walk {
    const outcomes = new Map<Kind, Outcome>();
    const blockers = new Set<string>();
    let marks = entered;
    let returned: Marks | undefined;
    let doubt: Doubt | undefined;
    const add = (kind: Kind, outcome: Outcome): void => {
      if (kind !== "accept" && blockers.size < MAX_BLOCKERS) blockers.add(kind === "unknown" ? UNKNOWN_BLOCKER : outcome.chain);
      const known = outcomes.get(kind);
      if (known === undefined) outcomes.set(kind, outcome);
      // the one that surely happens is the one to quote
      else outcomes.set(kind, { ...(known.doubt !== undefined && outcome.doubt === undefined ? outcome : known), marks: either(known.marks, outcome.marks) });
    };
    if (!chain.complete) {
      doubt = `only a part of the chain ${chain.name} is known`;
      add("unknown", { row: chain.rules[0]?.row ?? this.#base.row, chain: chain.name, via: [chain.name], byPolicy: false, doubt, marks });
    }
    for (const rule of chain.rules) {
      if (++this.#steps > MAX_STEPS) {
        add("unknown", { row: rule.row, chain: chain.name, via: [chain.name], byPolicy: false, doubt: "there are too many rules to follow", marks });
        break;
      }
      if (this.#skip.has(rule.row)) continue;
      const steps = rule.steps(this.#flow, marks);
      if (steps.length === 0) continue;
      if (steps.every(({ action }) => action.neverAccepts === true)) {
        this.metNeverAccepts = true;
        if (this.#passing) continue;
      }
      const sure = steps.length === 1 && steps[0]?.answer === true;
      let falls: Marks | undefined = sure ? undefined : marks;
      const join = (more: Marks | undefined): void => {
        if (more !== undefined) falls = falls === undefined ? more : either(falls, more);
      };
      for (const { answer, action } of steps) {
        const changed = action.marks?.(marks) ?? marks;
        const why = answer === true ? doubt : answer;
        const here = { row: rule.row, chain: chain.name, via: [chain.name], byPolicy: false, doubt: why, marks: changed };
        if (action.kind === "accept" || action.kind === "drop" || action.kind === "reject") add(action.kind, here);
        else if (action.kind === "unknown") {
          add("unknown", { ...here, doubt: action.doubt ?? why ?? "" });
          join(changed);
        } else if (action.kind === "none") join(changed);
        else if (action.kind === "return") returned = returned === undefined ? changed : either(returned, changed);
        else {
          const inner = this.walk(action.chain ?? "", changed, depth + 1);
          for (const blocker of inner.blockers) if (blockers.size < MAX_BLOCKERS) blockers.add(blocker);
          for (const [kind, outcome] of inner.outcomes)
            add(kind, { ...outcome, doubt: outcome.doubt ?? why, via: [chain.name, ...outcome.via].slice(0, MAX_DEPTH) });
          if (action.kind === "goto") returned = inner.falls === undefined ? returned : returned === undefined ? inner.falls : either(returned, inner.falls);
          else join(inner.falls);
        }
      }
      // what comes behind a rule that may have ended it only may happen
      if (!sure) doubt ??= steps.find((step) => step.answer !== true && ends(step.action))?.answer as Doubt | undefined;
      else if (outcomes.size > 0 && falls !== undefined) doubt ??= [...outcomes.values()].find((outcome) => outcome.doubt !== undefined)?.doubt;
      if (falls === undefined) return { outcomes, falls: returned, blockers };
      marks = falls;
    }
    return { outcomes, falls: returned === undefined ? marks : either(returned, marks), blockers };
  }

  #lost(name: string, marks: Marks, doubt: Doubt): Walk {
    const row = this.#base.row;
    return {
      outcomes: new Map([["unknown", { row, chain: name, via: [name], byPolicy: false, doubt, marks }]]),
      falls: marks,
      blockers: new Set([UNKNOWN_BLOCKER]),
    };
  }
}

const ends = ({ kind }: Action): boolean => kind !== "none";

/** The steps of a rule that does one thing. */
export function stepsOf(answer: Answer, action: Action): readonly Step[] {
  return answer === false ? NOTHING : [{ answer, action }];
}
const NOTHING: readonly Step[] = [];
