import fc from "fast-check";
import type { Course, NodeTrouble } from "./chaos-node.ts";
import type { SlackTrouble } from "./slack-world.ts";

/** Who is there. Alice asks; Bob and Carol are the group S_SRE; nobody ever allowed Mallory anything. */
export const PEOPLE = ["U_ALICE", "U_BOB", "U_CAROL", "U_MALLORY"] as const;
export type Person = (typeof PEOPLE)[number];

/** What the policy says, from the plainest to the strangest. */
export const POLICIES = ["sre", "two", "self", "not-carol", "limited", "glass", "nobody"] as const;
export type Policy = (typeof POLICIES)[number];

/** What somebody does with a request once it is on its way. Seconds. */
export interface Delivery {
  /** It never arrives. */
  readonly dropped: boolean;
  /** When it arrives again, each after the first time: the same bytes, or signed anew. */
  readonly copies: readonly { readonly after: number; readonly anew: boolean }[];
  /** Which of two machines answers, of the first and of the copies. */
  readonly doors: readonly (0 | 1)[];
}

export interface Gesture {
  readonly at: number;
  readonly who: Person;
  readonly what: "ask" | "approve" | "dismiss" | "preview" | "again" | "reviewed";
  /** What goes into the text inputs of a modal: the node's name, or another. */
  readonly typo: boolean;
  /** Seconds between a modal's opening and its being sent off. */
  readonly reading: number;
  /** Somebody changed what is signed, or does not know the secret, or edits the button's value. */
  readonly forged: "" | "signature" | "value" | "body";
  readonly delivery: Delivery;
}

/** The `nth` call of this name, and the `times - 1` after it, go wrong. */
export type Fault =
  | { readonly of: "slack"; readonly call: string; readonly nth: number; readonly times: number; readonly trouble: SlackTrouble }
  | { readonly of: "node"; readonly call: string; readonly nth: number; readonly times: number; readonly trouble: NodeTrouble }
  /** `before` or `after` it was done; `passes`: the error says that it may pass. */
  | {
      readonly of: "port";
      readonly call: string;
      readonly nth: number;
      readonly times: number;
      readonly trouble: "before" | "after";
      readonly passes: boolean;
    };

/** Something that somebody else changes while a triage is under way. */
export interface Change {
  readonly at: number;
  readonly what: { readonly policy: Policy } | "carol leaves" | "another version of the fix";
}

export interface Scenario {
  readonly policy: Policy;
  readonly course: Course;
  readonly gestures: readonly Gesture[];
  readonly faults: readonly Fault[];
  readonly changes: readonly Change[];
  /** Seeds what is left to chance in a run: how steps of different executions mix. */
  readonly mix: number;
}

// mostly at the same moment or soon after each other; now and then when all is over
const seconds = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(0, 0, 1, 2, 5) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 120 }) },
  fc.constantFrom(299, 3600, 90_000),
);

const delivery: fc.Arbitrary<Delivery> = fc.record({
  dropped: fc.integer({ min: 0, max: 7 }).map((dice) => dice === 7),
  copies: fc.array(fc.record({ after: fc.oneof(fc.constant(0), seconds), anew: fc.boolean() }), { maxLength: 2 }),
  doors: fc.array(fc.constantFrom<0 | 1>(0, 1), { minLength: 3, maxLength: 3 }),
});

/** A value, so many times as likely as one that says nothing. */
const often = <T>(...choices: readonly (readonly [weight: number, value: T])[]): fc.Arbitrary<T> =>
  fc.oneof(...choices.map(([weight, value]) => ({ weight, arbitrary: fc.constant(value) })));

const gesture: fc.Arbitrary<Gesture> = fc.record({
  at: seconds,
  who: often<Person>([4, "U_BOB"], [3, "U_CAROL"], [1, "U_ALICE"], [1, "U_MALLORY"]),
  what: often<Gesture["what"]>([12, "approve"], [2, "dismiss"], [1, "preview"], [2, "again"], [2, "ask"], [1, "reviewed"]),
  typo: often([9, false], [1, true]),
  reading: fc.constantFrom(0, 0, 0, 1, 20, 400),
  forged: often<Gesture["forged"]>([20, ""], [1, "signature"], [1, "value"], [1, "body"]),
  delivery,
});

const nth = fc.integer({ min: 0, max: 6 });
const times = fc.constantFrom(1, 1, 1, 2);
const SLACK = [
  "chat.postMessage",
  "chat.postMessage",
  "chat.update",
  "chat.postEphemeral",
  "filesUploadV2",
  "views.open",
  "usergroups.users.list",
  "conversations.replies",
];
const NODE = [
  "start fix",
  "start fix",
  "start fix",
  "start fix",
  "poll fix",
  "poll fix",
  "find fix",
  "start collect",
  "poll collect",
  "find collect",
  "start status",
  "poll status",
  "start rollback",
  "poll rollback",
];
const STORE = [
  "open",
  "update",
  "propose",
  "proposal",
  "incident",
  "transition",
  "transition",
  "record",
  "put",
  "get",
  "remember",
  "recall",
  "lock",
  "unlock",
  "reserve",
  "release",
];
const PORT = [...STORE.map((method) => `store.${method}`), "work.start", "work.answer", "work.answer", "ports.config"];

/**
 * Where such a call fails for good, nothing can mend it: what was taken stays taken, and what was posted and not noted is not found. Outages of the store pass
 * (test/store/dynamodb-outage.test.ts), and who got no answer cannot know that it was refused.
 */
const NEEDED: ReadonlySet<string> = new Set(["store.unlock", "store.release", "store.remember"]);

const fault: fc.Arbitrary<Fault> = fc.oneof(
  fc.record({
    of: fc.constant("slack" as const),
    call: fc.constantFrom(...SLACK),
    nth,
    times,
    trouble: fc.constantFrom("refused" as const, "failed" as const, "lost" as const),
  }),
  fc.record({
    of: fc.constant("node" as const),
    call: fc.constantFrom(...NODE),
    // most calls of a node are made once
    nth: often([4, 0], [1, 1], [1, 2]),
    times,
    trouble: fc.constantFrom("throttled" as const, "failed" as const, "lost" as const, "late" as const),
  }),
  fc
    .record({
      of: fc.constant("port" as const),
      call: fc.constantFrom(...PORT),
      nth: fc.integer({ min: 0, max: 12 }),
      times,
      trouble: fc.constantFrom("before" as const, "after" as const),
      passes: fc.integer({ min: 0, max: 4 }).map((dice) => dice > 0),
    })
    .map((one): Fault => (one.trouble === "after" || NEEDED.has(one.call) ? { ...one, passes: true } : one)),
);

const change: fc.Arbitrary<Change> = fc.record({
  at: seconds,
  what: fc.oneof(fc.record({ policy: fc.constantFrom(...POLICIES) }), fc.constantFrom("carol leaves" as const, "another version of the fix" as const)),
});

/** Any of what may happen to one incident, and what it may lead to. Five faults at most: Slack being away for an hour is not what is asked. */
export const scenario: fc.Arbitrary<Scenario> = fc.record({
  policy: often<Policy>([4, "sre"], [3, "two"], [1, "self"], [1, "not-carol"], [2, "limited"], [2, "glass"], [1, "nobody"]),
  course: often<Course>([6, "succeeded"], [3, "useless"], [1, "failed"], [1, "refused"], [1, "unmarked"], [1, "silent"]),
  gestures: fc.array(gesture, { minLength: 1, maxLength: 7 }),
  faults: fc.oneof(fc.constant([]), fc.array(fault, { maxLength: 5 })),
  changes: fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.array(change, { minLength: 1, maxLength: 2 })),
  mix: fc.integer({ min: 1, max: 2 ** 30 }),
});
