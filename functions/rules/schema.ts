import { z } from "zod";
import { roles, severities } from "./diagnosis.ts";
import { re2 } from "./re2.ts";

/** Ids: lower case words with hyphens; also file, folder and CLI names. */
export const Id = z
  .string()
  .regex(/^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/, "an id is lower case words joined by hyphens")
  .max(64);
const Cel = z.string().min(1).max(4000);
const Sentence = z.string().min(1).max(600);
/** A few words, before `{{ }}` are filled in. */
const Label = z.string().min(1).max(200);
const Name = z
  .string()
  .regex(/^[a-z][A-Za-z0-9]*$/, "a name is camelCase")
  .max(40);

/** CEL expressions that give rows (or lists of rows): the lines quoted as proof. */
const EvidenceList = z.array(Cel);
/** 0…1, or a CEL expression that gives it. */
const Confidence = z.union([z.number().min(0).max(1), Cel]);

/** One of several ways in which a fault shows itself. */
const Form = z.strictObject({
  when: Cel,
  /** One sentence about this node; `{{ CEL }}` is replaced by the value. */
  summary: Sentence,
  confidence: Confidence,
  evidence: EvidenceList.default([]),
});

/** `runbooks/rules/<id>/rule.yaml` (DESIGN C6). Conditions are CEL over the facts, which are variables named by their id with `_` for `-`. */
export const RuleFile = z
  .strictObject({
    id: Id,
    title: Sentence,
    role: z.enum(roles),
    severity: z.enum(severities),
    status: z.enum(["experimental", "stable"]),
    /** "Detects a node …": what it finds, for people. */
    detects: z.string().startsWith("Detects ").max(1200),
    /** Facts without which nothing can be said. `whole`: the rule concludes from something that is not there, so a partial fact will not do. */
    needs: z.array(z.union([Id, z.strictObject({ fact: Id, whole: z.literal(true) })])).min(1),
    /** Facts that strengthen it, open its gate or give its fix parameters; where they were not read their lists are empty, and it still decides. */
    uses: z.array(Id).default([]),
    /** Those of `uses` that prove the fault another way: where one of them was read, a needed fact that was not is taken for empty, and a no-match stays inconclusive. */
    instead: z.array(Id).default([]),
    /** False: the rule has nothing to say here. */
    applies: Cel.optional(),
    let: z.record(Name, Cel).default({}),
    /** Absent where there are forms: then one of them must hold. */
    when: Cel.optional(),
    /** The ways in which the fault shows itself, by name, the most telling first: the first that holds says what is wrong and how sure that is. Lines of all that hold are quoted. */
    forms: z.record(Name, Form).optional(),
    /** True: a no-match is certain although facts are only partly known (the one key that matters was seen). */
    settled: Cel.optional(),
    /** Where `when` is false, this is true, and that is no no-match: what is missing, in words (a second sample of counters). */
    undecided: z.strictObject({ when: Cel, because: Sentence }).optional(),
    /** Of a rule with forms: lines that are quoted whichever holds, behind those of the forms. */
    evidence: EvidenceList.default([]),
    /** Absent where there are forms, as confidence is. */
    summary: Sentence.optional(),
    /** For causes on the packet's path: what it passes, in order, and where it is lost. The texts may hold `{{ CEL }}`, too. */
    diagram: z
      .strictObject({
        path: z.array(Label).min(2).max(7),
        /** 1-based place in `path` at which the packet is lost or sent wrong. */
        breakAt: z.int().min(1).max(7),
        /** What happens there, in a few words. */
        note: Label,
      })
      .refine(({ path, breakAt }) => breakAt <= path.length, { path: ["breakAt"], message: "it is a place in path, counted from 1" })
      .optional(),
    confidence: Confidence.optional(),
    explains: z.array(Id).default([]),
    fix: Id.optional(),
    falsePositives: z.array(Sentence).min(1),
    references: z.array(z.string().min(1).max(400)).min(1),
  })
  .superRefine(({ forms, when, summary, confidence, evidence }, context) => {
    const complain = (key: string, message: string): void => context.addIssue({ code: "custom", path: [key], message });
    for (const [key, value] of Object.entries({ when, summary, confidence })) {
      if (forms !== undefined && value !== undefined) complain(key, "each form has its own");
      if (forms === undefined && value === undefined) complain(key, "it is missing, and there are no forms");
    }
    if (forms === undefined && evidence.length === 0) complain("evidence", "no evidence, no finding: name the rows that prove it");
    if (forms !== undefined && Object.keys(forms).length < 2) complain("forms", "there are at least two, or none");
  });
export type RuleFile = z.infer<typeof RuleFile>;

/** The types of fix parameters, each with the anchored pattern that every value matches: none of them holds a blank, a quote or a shell character. */
export const parameterTypes = {
  ipv4: "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
  prefix: "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])/(?:3[0-2]|[12]?[0-9])",
  mac: "[0-9a-f]{2}(?::[0-9a-f]{2}){5}",
  // IFNAMSIZ is 16 with the NUL; the kernel refuses "/" and blanks, we refuse more
  interface: "[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}",
  // XT_EXTENSION_MAXNAMELEN is 29 with the NUL
  chain: "[A-Za-z0-9_][A-Za-z0-9_.-]{0,28}",
  "bpf-id": "[1-9][0-9]{0,9}",
  metric: "[0-9]{1,10}",
  // who made a route, as `ip route` names it or counts
  "route-protocol": "[a-z]{2,12}|[0-9]{1,3}",
  // where a rule stands in its chain
  "rule-number": "[1-9][0-9]{0,4}",
  cgroup: "/sys/fs/cgroup(?:/[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,120}){0,8}|/run/cilium/cgroupv2(?:/[A-Za-z0-9_][A-Za-z0-9_.@:-]{0,120}){0,8}",
  "attach-type": "[a-z0-9_]{3,40}",
  "iptables-restore": "ip6?tables(?:-nft|-legacy)?-restore",
  module: "br_netfilter",
  iptables: "ip6?tables(?:-nft|-legacy)?",
  protocol: "tcp|udp|sctp",
  port: "[1-9][0-9]{0,4}",
  // address and port, as DNAT takes them
  socket: "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9]):[1-9][0-9]{0,4}",
  // KEY=VALUE as `sysctl -w` takes it: these keys alone, and no value that could take all memory. In an interface's name "/" stands for a dot
  setting:
    "net\\.ipv4\\.ip_forward=[01]|net\\.ipv4\\.conf\\.[A-Za-z0-9_][A-Za-z0-9_/@-]{0,14}\\.(?:forwarding=[01]|rp_filter=[012])|net\\.netfilter\\.nf_conntrack_max=[1-9][0-9]{0,6}|net\\.ipv[46]\\.neigh\\.default\\.gc_thresh[23]=[1-9][0-9]{0,5}",
  "reserved-ports": "net\\.ipv4\\.ip_local_reserved_ports=[0-9]{1,5}(?:-[0-9]{1,5})?(?:,[0-9]{1,5}(?:-[0-9]{1,5})?){0,31}",
  // of addresses and rules: "ip -4", "ip -6"
  family: "-[46]",
  // the tables that every node looks up; nobody else's
  table: "main|local",
  // RFC 8200: IPv6 needs 1280 and ends on an interface below it. The largest packet has 65535
  mtu: "1(?:2[89][0-9]|[3-9][0-9]{2})|[2-9][0-9]{3}|[1-5][0-9]{4}|6(?:[0-4][0-9]{3}|5(?:[0-4][0-9]{2}|5(?:[0-2][0-9]|3[0-5])))",
  // routes that reject; "prohibit" is what people set on purpose
  "reject-route": "unreachable|blackhole",
  // of a switch that is only ever turned on
  "switch-on": "yes",
} as const;
export type ParameterType = keyof typeof parameterTypes;

/** At most this many values in a list parameter: a fix is targeted, never a sweep. */
export const MAX_LIST = 32;

const Word = z.string().min(1).max(300);
const Step = z.strictObject({
  /** Program and arguments; a word `$name` is that parameter. */
  run: z.array(Word).min(1),
  /** Repeat for each value of these list parameters (in parallel); inside, `$name` is the current one. */
  each: z.array(Name).optional(),
  /** Only where this optional parameter is set, or is not. */
  if: Name.optional(),
  unless: Name.optional(),
  /** Constant text for standard input. */
  stdin: z.string().max(4000).optional(),
});

/** `runbooks/fixes/<id>/fix.yaml` (DESIGN C9). */
export const FixFile = z.strictObject({
  id: Id,
  title: Sentence,
  /** disruptive: established traffic may break while it runs. */
  risk: z.enum(["low", "disruptive"]),
  parameters: z.record(
    Name,
    z.strictObject({
      type: z.enum(Object.keys(parameterTypes) as [ParameterType, ...ParameterType[]]),
      list: z.boolean().default(false),
      optional: z.boolean().default(false),
      /** CEL over the rule's facts and lets. */
      from: Cel,
    }),
  ),
  /** Said after "No fix can be offered: " where the rule's evidence gives a parameter no value: why there is no button for this form of the fault, and what to do by hand. */
  otherwise: Sentence.optional(),
  /** POSIX sh, read-only: exit 0 if the precondition still holds on the node. Parameters are `$NETCHECK_<name>`; lists are blank separated. */
  check: z.string().min(1).max(4000),
  apply: z.array(Step).min(1),
  /** Undoes apply. Empty where it cannot be undone; then `rollbackNote` says why. */
  rollback: z.array(Step),
  rollbackNote: Sentence.optional(),
  verify: z.strictObject({
    /** Seconds to wait before collecting again. */
    settle: z.int().min(0).max(600),
    note: Sentence,
  }),
  sideEffects: z.array(Sentence).min(1),
  makeItLast: z.array(Sentence).min(1),
  references: z.array(z.string().min(1).max(400)).min(1),
});
export type FixFile = z.infer<typeof FixFile>;
export type FixStep = FixFile["apply"][number];

/**
 * A pattern of a secret of your own, as an extended regular expression (`sed -E`) that RE2 takes, too: without lookaround and back references. It is searched in
 * every line, and what it matches is blacked out on the node.
 */
const SecretPattern = z
  .string()
  .regex(/^[\x20-\x7e]{1,200}$/, "1 to 200 printable characters of one line")
  .refine((pattern) => !pattern.includes("{{"), '"{{" is the SSM agent\'s own syntax')
  .refine(
    (pattern) => !/\\[^.*+?()[\]{}|^$\\/-]/.test(pattern),
    "a backslash stands only before a sign that it takes the meaning from: sed knows no \\d, \\w or \\b everywhere",
  )
  .refine((pattern) => {
    try {
      return !re2(pattern).test("");
    } catch {
      return false;
    }
  }, "no regular expression, or one that an empty text fits");

/** `runbooks/<name>/runbook.yaml` (DESIGN C8): what to collect. */
export const RunbookFile = z.strictObject({
  id: Id,
  title: Sentence,
  /** "all", or these rules. */
  rules: z.union([z.literal("all"), z.array(Id).min(1)]),
  /** Facts to collect besides what the rules need. */
  facts: z.array(Id).default([]),
  /** Whose network is looked at. In a pod's: only `facts` are collected, by their commands that tell of the caller's own network namespace, and nothing is fixed. */
  namespace: z.enum(["node", "pod"]).default("node"),
  /** Secrets of your own that are blacked out on the node, besides those that always are (passwords, tokens, keys, …; functions/transports/script.ts). */
  redact: z.array(SecretPattern).max(50).default([]),
  /** Limits per command. */
  timeoutSeconds: z.int().min(1).max(120),
  maxBytes: z
    .int()
    .min(1024)
    .max(64 * 1024 * 1024),
  /** Pause between the two samples of counters. */
  intervalSeconds: z.int().min(1).max(60),
  /** The whole collection is stopped after this; what was collected by then counts. */
  budgetSeconds: z.int().min(5).max(600),
});
export type RunbookFile = z.infer<typeof RunbookFile>;
