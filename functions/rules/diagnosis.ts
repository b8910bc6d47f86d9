/** The types of a diagnosis: the ranked findings of a capture (DESIGN C5). */

export const severities = ["info", "warning", "critical"] as const;
export type Severity = (typeof severities)[number];
export const roles = ["cause", "symptom", "risk"] as const;
export type Role = (typeof roles)[number];
/** What a rule says of a capture. "Could not look" is inconclusive: never a match, never a no-match. */
export type RuleVerdict = "match" | "no-match" | "not-applicable" | "inconclusive";
export type Verdict = "cause-found" | "symptoms-only" | "healthy" | "inconclusive";

/** A line that proves a finding. */
export interface Evidence {
  readonly command: string;
  readonly file: string;
  /** 1-based. */
  readonly line: number;
  /** Verbatim. */
  readonly text: string;
  /** By how much the counters in the line rose between the two samples: "+121", of several "insert_failed +14, drop +14". */
  readonly grew?: string;
}

/** Parameters of a fix: strings of a strict type, or lists of them. */
export type FixParameters = Readonly<Record<string, string | readonly string[]>>;

/** A matched rule with its evidence. */
export interface Finding {
  readonly rule: string;
  readonly title: string;
  readonly severity: Severity;
  /** 0…1. */
  readonly confidence: number;
  /** One sentence with the values of this node. */
  readonly summary: string;
  readonly evidence: readonly Evidence[];
  /** The packet's path with the break, for causes that lie on it. */
  readonly diagram?: Diagram;
}

/** What a packet passes, in order, and where it is lost. */
export interface Diagram {
  readonly path: readonly string[];
  /** 1-based place in `path`. */
  readonly breakAt: number;
  readonly note: string;
}

export interface Cause extends Finding {
  /** Ids of the matched rules that this cause explains. */
  readonly explains: readonly string[];
  readonly fix?: { readonly id: string; readonly parameters: FixParameters };
  /** Why the rule's fix cannot be offered, where it cannot. */
  readonly fixProblem?: string;
}

export interface Diagnosis {
  readonly schema: "netcheck.diagnosis/1";
  readonly capture: string;
  readonly target: string;
  readonly verdict: Verdict;
  /** Best first. */
  readonly causes: readonly Cause[];
  readonly symptoms: readonly Finding[];
  readonly risks: readonly Finding[];
  /** Rules that could not be decided, and why. */
  readonly unchecked: readonly { readonly rule: string; readonly reason: string }[];
  readonly unparsed: readonly { readonly command: string; readonly lines: number }[];
  /** Outputs of commands that netcheck does not know: kept, harmless. */
  readonly unknown: readonly string[];
  /** `rules`: those that were asked, and those that could not be loaded. */
  readonly stats: { readonly bytes: number; readonly lines: number; readonly rules: number; readonly ms: number };
}
