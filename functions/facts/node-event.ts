import type { Input, View } from "./fact.ts";
import { isCalled } from "./node-name.ts";
import { describedEvent, tableEvent } from "./pod-event.ts";

/** An event of a node: what a watcher on it (node-problem-detector, EKS's node monitoring agent) measured there. */
export interface NodeEvent {
  readonly line: number;
  readonly reason: string;
  readonly message: string;
}

/** Such a watcher looks every few minutes: what it said before that may be over. */
const FRESH = 900;

/** The view of events (`kubectl get events`, `kubectl describe node NAME`) for a fact that reads what was measured on a node; undefined for every other command. It tells of that by the way. */
export function nodeEventsView(argv: readonly string[], format: string): View | undefined {
  const [program, verb, kind = ""] = argv;
  const listed = program === "kubectl" && (verb === "events" || (verb === "get" && /^events?(?:\.events\.k8s\.io)?$/.test(kind)));
  return listed || describedNode(argv) !== undefined
    ? { format, complete: false, scope: argv.slice(1).join(" ").slice(0, 200), rank: 0, hint: true }
    : undefined;
}

/** The node that `kubectl describe node NAME` or `node/NAME` is about; undefined if it is none, or several. */
function describedNode([program, verb, ...rest]: readonly string[]): string | undefined {
  const words = rest.filter((word) => !word.startsWith("-")).flatMap((word) => word.split("/"));
  return program === "kubectl" && verb === "describe" && words.length === 2 && /^(?:no|nodes?)$/.test(words[0] as string) ? words[1] : undefined;
}

/** The events of the last minutes that are about this node, newest first; where nobody knows what it is called, those of a list that is about one node alone. */
export function nodeEvents({ text, argv, names = [] }: Pick<Input, "text" | "argv" | "names">): NodeEvent[] {
  const described = describedNode(argv);
  const events = text.split("\n").flatMap((content, i) => {
    const event = content.length > 2000 ? undefined : described === undefined ? tableEvent(content) : describedEvent(content);
    const node = described ?? /^nodes?\/(\S{1,253})$/i.exec(event?.object ?? "")?.[1];
    return event?.age === undefined || event.age > FRESH || node === undefined ? [] : [{ ...event, age: event.age, node, line: i + 1 }];
  });
  const nodes = new Set(events.map(({ node }) => node));
  const own = events.filter(({ node }) => (names.length === 0 ? nodes.size === 1 : isCalled(names, node)));
  return own.toSorted((a, b) => a.age - b.age);
}
