import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { KnownAlert } from "../../functions/triage/page-alert.ts";
import { joinStorm } from "../../functions/triage/page-storm.ts";
import type { Ports } from "../../functions/triage/ports.ts";
import { alertOf, PageBench, pagesConfig } from "./page-bench.ts";

/** Pages while the store, the chat and the start of executions lose their answers: all is done once. */

let bench: PageBench | undefined;
afterEach(async () => bench?.close());

const noAnswer = () => Object.assign(new Error("no answer"), { retryable: true });

/** Its `change` goes through `then`, which is told what is changed. */
const changing = (store: Ports["store"], then: (what: string, made: Promise<unknown>) => Promise<unknown>): Ports["store"] =>
  new Proxy(store, {
    get(target, name) {
      const method = Reflect.get(target, name) as unknown;
      if (typeof method !== "function") return method;
      if (name !== "change") return method.bind(target) as unknown;
      return (kind: string, key: string, update: unknown) => then(`${kind} ${key}`, method.call(target, kind, key, update) as Promise<unknown>);
    },
  });

describe("the list of nodes cannot be had", () => {
  const throttled = () => Object.assign(new Error("ssm: could not list the nodes of lab: Throttling"), { retryable: true });
  let refusals = 0;
  beforeEach(() => {
    bench = new PageBench(({ targets }) => ({
      targets: { all: () => targets.all(), resolve: (name) => (refusals-- > 0 ? Promise.reject(throttled()) : targets.resolve(name)) },
    }));
    bench.config = pagesConfig();
  });

  test("for a moment: it is asked for again, and the node is examined", async () => {
    refusals = 2;
    expect(bench?.outcome(await bench.deliver([alertOf()], {}, 120))).toBe("started");
    expect(Object.keys((await bench?.triages()) ?? {})).toEqual(["lab/node2"]);
    expect(bench?.root()).not.toContain("could not be looked up");
  });

  test("for longer: that is said, and the next delivery counts as the first", async () => {
    refusals = 1000;
    await bench?.deliver([alertOf()], {}, 240);
    expect(bench?.root()).toContain("node2: it could not be looked up: ssm: could not list the nodes of lab: Throttling");
    refusals = 0;
    expect(bench?.outcome(await bench.deliver([alertOf()], {}, 120))).toBe("started");
    expect(Object.keys((await bench?.triages()) ?? {})).toEqual(["lab/node2"]);
  });
});

test("whoever was to post the message is silent: of all that come then one takes it on, and after a minute the next", async () => {
  bench = new PageBench();
  const openerAfter = async (seconds: number, delivery: string): Promise<string> => {
    const about = { channel: "C0PAGES", alerts: [], left: 0, windowMs: 600_000 };
    return (await joinStorm({ store: (bench as PageBench).store }, { ...about, delivery, now: new Date(1000 * seconds) })).opener;
  };
  const openers = [];
  for (const [seconds, delivery] of [
    [0, "one"],
    [59, "two"],
    [60, "three"],
    [61, "four"],
    [119, "five"],
    [120, "six"],
  ] as const)
    openers.push(await openerAfter(seconds, delivery));
  expect(openers).toEqual(["one", "one", "three", "three", "three", "six"]);
});

test("answers get lost on the way: one message, one triage per node, each alert counted once", async () => {
  const calls = new Map<string, number>();
  let lost = 0;
  /** The first answer about each thing is lost, and the third about an alert: each step does all of it, and is repeated. */
  const losing = async <T>(what: string, made: Promise<T>): Promise<T> => {
    const value = await made;
    const call = (calls.get(what) ?? 0) + 1;
    calls.set(what, call);
    if (call !== 1 && !(call === 3 && what.startsWith("alert "))) return value;
    lost += 1;
    throw noAnswer();
  };
  bench = new PageBench(
    (ports): Partial<Ports> => ({
      store: changing(ports.store, (what, made) => (/^(?:alert|storm) /.test(what) ? losing(what, made) : made)),
      work: { ...ports.work, start: (name, event) => losing(name, ports.work.start(name, event)) },
    }),
  );
  bench.config = pagesConfig();
  const alerts = [alertOf(), alertOf({ key: "a2", labels: { node: "node3" } }), alertOf({ key: "a3", labels: { node: "node3" } })];
  expect(bench.outcome(await bench.deliver(alerts, {}, 240))).toBe("started");
  expect(lost).toBeGreaterThanOrEqual(10);
  expect(Object.keys(await bench.triages()).sort()).toEqual(["lab/node2", "lab/node3"]);
  expect(bench.root()).toContain("3 alerts, 2 nodes, 2 triages");
  for (const key of ["a1", "a2", "a3"]) {
    const known = await bench.store.kept<KnownAlert>("alert", `generic/${key}`);
    expect([known?.incidents.length, known?.times, known?.status]).toEqual([1, 1, "firing"]);
  }
});

test("of a delivery that could not be put on record, the next one counts as the first", async () => {
  let calls = 0;
  // the step is tried five times; what takes it back comes then
  bench = new PageBench(
    (ports): Partial<Ports> => ({ store: changing(ports.store, (_, made) => (++calls > 5 ? made : made.then(() => Promise.reject(noAnswer())))) }),
  );
  bench.config = pagesConfig();
  expect(bench.outcome(await bench.deliver([alertOf()], {}, 240))).toBe("FAILED");
  expect(bench.outcome(await bench.deliver([alertOf()]))).toBe("started");
});

test("a message that Slack does not take for a while is posted once, and its edits come later", async () => {
  bench = new PageBench();
  bench.config = pagesConfig();
  // each new message, and the changes of each kind of message, by themselves: which of two is tried first is not said
  const tries = new Map<string, number>();
  bench.chat.trouble = (call, what) => {
    if (call !== "post" && call !== "update") return;
    const key = `${call} ${what}`;
    tries.set(key, (tries.get(key) ?? 0) + 1);
    if ((tries.get(key) ?? 0) % 3 !== 0) throw noAnswer();
  };
  await bench.deliver([alertOf()], {}, 300);
  expect(Object.keys(await bench.triages())).toEqual(["lab/node2"]);
  expect(bench.root()).toContain("likely cause found");
});
