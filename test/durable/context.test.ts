import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { durableHandler } from "../../functions/durable/handler.ts";
import { Engine } from "../../functions/local/engine.ts";
import { type Durable, INTERRUPTED, type Progress, TransportError } from "../../functions/triage/ports.ts";
import { pass, VirtualClock } from "../local/virtual-clock.ts";

let clock: VirtualClock;
let engine: Engine;
beforeEach(() => {
  clock = new VirtualClock();
  engine = new Engine({ file: ":memory:", clock });
});
afterEach(() => engine.close(0));

/** Runs a workflow for some seconds of virtual time and returns what it came to. */
async function run(workflow: (durable: Durable) => Promise<unknown>, seconds = 0) {
  engine.start(durableHandler((_: unknown, durable) => workflow(durable)));
  const arn = engine.execute("e", {});
  await pass(engine, clock, seconds);
  return engine.execution(arn);
}

/** The name and message of what a promise rejects with. */
async function problem(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no error",
    (error: unknown) => String(error),
  );
}

const throttled = () => new TransportError("ssm: could not send: throttled", { retryable: true });

describe("step", () => {
  test("runs once; its result is remembered", async () => {
    let calls = 0;
    const ended = await run(async (durable) => {
      const value = await durable.step("a", async () => ++calls);
      await durable.wait("pause", 10);
      return value;
    }, 10);
    expect([ended?.status, ended?.result, calls]).toEqual(["SUCCEEDED", 1, 1]);
  });

  test("an error that may pass is retried, 5 attempts in all, within 40 seconds", async () => {
    let calls = 0;
    const started = clock.now();
    const ended = await run(
      (durable) =>
        problem(
          durable.step("a", async () => {
            calls++;
            throw throttled();
          }),
        ).then((text) => [text, (clock.now() - started) / 1000]),
      60,
    );
    const [text, seconds] = (ended?.result ?? []) as [string, number];
    expect([calls, text]).toEqual([5, "TransportError: ssm: could not send: throttled"]);
    // 1 + 3 + 9 + 27 seconds, of which the jitter takes up to half; the SDK rounds to whole seconds.
    expect(seconds).toBeGreaterThanOrEqual(20);
    expect(seconds).toBeLessThanOrEqual(40);
  });

  test("it succeeds when the trouble has passed", async () => {
    let calls = 0;
    const ended = await run(async (durable) => {
      return durable.step("a", async () => {
        if (++calls < 3) throw throttled();
        return "sent";
      });
    }, 10);
    expect([ended?.result, calls]).toEqual(["sent", 3]);
  });

  test.each([
    ["a programming error", () => new TypeError("x is not a function"), "TypeError: x is not a function"],
    [
      "an error for good",
      () => new TransportError("ssm: could not send: no such node", { retryable: false }),
      "TransportError: ssm: could not send: no such node",
    ],
    ["what is no error at all", () => "just words", "Error: just words"],
  ])("%s fails it at once, and reads the same after a replay", async (_, thrown, text) => {
    let calls = 0;
    const ended = await run(async (durable) => {
      const first = await problem(
        durable.step("a", async () => {
          calls++;
          throw thrown();
        }),
      );
      const replayed = await durable.step("seen", async () => first);
      await durable.wait("pause", 1);
      return [first, replayed];
    }, 1);
    expect([ended?.result, calls]).toEqual([[text, text], 1]);
  });

  test("a result that cannot be remembered fails the step, not the whole execution", async () => {
    const circular: { self?: unknown } = {};
    circular.self = circular;
    const ended = await run(async (durable) => [
      await problem(durable.step("large", async () => "x".repeat(256 * 1024))),
      await problem(durable.step("circular", async () => circular)),
      await durable.step("fits", async () => "x".repeat(256 * 1024 - 3)).then((text) => text.length),
      await durable.step("none", async () => undefined),
    ]);
    expect(ended?.result).toEqual([
      "RangeError: large: could not remember the result: 262146 bytes are too many",
      expect.stringContaining("TypeError: Converting circular structure"),
      262_141,
      null,
    ]);
  });

  test("an endless message is cut", async () => {
    const ended = await run((durable) =>
      problem(
        durable.step("a", async () => {
          throw new SyntaxError("x".repeat(2_000_000));
        }),
      ),
    );
    expect(ended?.result).toBe(`SyntaxError: ${"x".repeat(10_000)}…`);
  });
});

describe("once", () => {
  test("is never run again, not even after an error that may pass", async () => {
    let calls = 0;
    const ended = await run(
      (durable) =>
        problem(
          durable.once("fix", async () => {
            calls++;
            throw throttled();
          }),
        ),
      60,
    );
    expect([ended?.result, calls]).toEqual(["TransportError: ssm: could not send: throttled", 1]);
  });

  test("a run that was cut off is Interrupted, and stays so", async () => {
    let calls = 0;
    const workflow = async (durable: Durable) => {
      const outcome = await durable
        .once("fix", async () => {
          calls++;
          await new Promise(() => undefined);
        })
        .then(
          () => "done",
          (error: unknown) => (error as Error).name,
        );
      await durable.wait("pause", 1);
      return outcome;
    };
    engine.start(durableHandler((_: unknown, durable) => workflow(durable)));
    const arn = engine.execute("e", {});
    await expect.poll(() => calls).toBe(1);
    // The invocation is given up, as when Lambda stops it.
    clock.moveTo(clock.now() + 900_000);
    await pass(engine, clock, 10);
    expect([engine.execution(arn)?.result, calls]).toEqual([INTERRUPTED, 1]);
  });
});

describe("wait", () => {
  test("rounds up to whole seconds", async () => {
    engine.start(
      durableHandler(async (_: unknown, durable) => {
        await durable.wait("a", 0);
        await durable.wait("b", 1.2);
      }),
    );
    const arn = engine.execute("e", {});
    await pass(engine, clock, 2.9);
    expect(engine.execution(arn)?.status).toBe("RUNNING");
    await pass(engine, clock, 0.1);
    expect(engine.execution(arn)?.status).toBe("SUCCEEDED");
  });
});

describe("poll", () => {
  test("asks until it is done, as far apart as the check wants", async () => {
    const at: number[] = [];
    const start = clock.now();
    const ended = await run(
      (durable) =>
        durable.poll("job", 10, async (): Promise<Progress<string>> => {
          at.push((clock.now() - start) / 1000);
          return at.length < 4 ? { done: false, afterSeconds: at.length * 2 } : { done: true, value: "output" };
        }),
      60,
    );
    expect([ended?.result, at]).toEqual(["output", [0, 2, 6, 12]]);
  });

  test("gives up after maxChecks, and costs no more operations than it says", async () => {
    let calls = 0;
    const ended = await run(
      (durable) =>
        problem(
          durable.poll("job", 5, async () => {
            calls++;
            return { done: false, afterSeconds: 1 };
          }),
        ),
      60,
    );
    expect([ended?.result, calls]).toEqual(["TimeoutError: job: not done after 5 checks", 5]);
    expect(ended?.operations).toBeLessThanOrEqual(6);
  });

  test("a check that could not look counts as one that found nothing yet; any other error ends the poll", async () => {
    let calls = 0;
    const ended = await run(async (durable) => {
      const passing = await durable.poll("passing", 5, async (): Promise<Progress<string>> => {
        if (++calls < 3) throw throttled();
        return { done: true, value: "output" };
      });
      const lasting = await problem(
        durable.poll("lasting", 2, async () => {
          throw throttled();
        }),
      );
      const broken = await problem(
        durable.poll("broken", 5, async () => {
          throw new TypeError("x is not a function");
        }),
      );
      return [passing, lasting, broken];
    }, 60);
    expect(ended?.result).toEqual([
      "output",
      "TimeoutError: lasting: not done after 2 checks; the last one failed: ssm: could not send: throttled",
      "TypeError: x is not a function",
    ]);
  });
});

describe("callback", () => {
  const waiting = async (durable: Durable) => durable.callback("approval", 3600, async (id) => void ids.push(id));
  let ids: string[];
  beforeEach(() => {
    ids = [];
  });

  test("answered: the value comes as it was given", async () => {
    await run(waiting, 100);
    expect(ids).toHaveLength(1);
    engine.succeed(ids[0] ?? "", JSON.stringify({ by: "U_BOB", decisions: [1, 2] }));
    expect((await engine.finished("e")).result).toEqual({ kind: "answered", value: { by: "U_BOB", decisions: [1, 2] } });
  });

  test("nobody answers: expired, after its time and not before", async () => {
    expect((await run(waiting, 3599))?.status).toBe("RUNNING");
    await pass(engine, clock, 1);
    expect(engine.execution("e")?.result).toEqual({ kind: "expired" });
  });

  test("a failing hand-out is passed on; one that may pass is retried", async () => {
    let calls = 0;
    const ended = await run(async (durable) => {
      const broken = await problem(
        // The SDK keeps the message of what a hand-out throws, not its name.
        durable.callback("a", 60, async () => {
          throw new TypeError("x is not a function");
        }),
      );
      await durable.callback("b", 60, async (id) => {
        if (++calls < 2) throw throttled();
        engine.succeed(id);
      });
      return broken;
    }, 60);
    expect([ended?.result, calls]).toEqual([expect.stringContaining("x is not a function"), 2]);
  });

  test("an answer that is not JSON fails the execution, rather than repeat it for ever", async () => {
    await run(waiting);
    engine.succeed(ids[0] ?? "", "not json");
    expect(await engine.finished("e")).toMatchObject({ status: "FAILED", error: { ErrorType: "SyntaxError" } });
  });
});

describe("all", () => {
  test("runs branches side by side up to the limit; one that throws does not stop the others; results are in order", async () => {
    const begun: Record<string, number> = {};
    const start = clock.now();
    const branch = (name: string, seconds: number) => ({
      name,
      run: async (durable: Durable) => {
        begun[name] = await durable.step("begin", async () => (clock.now() - start) / 1000);
        await durable.wait("work", seconds);
        return durable.step("judge", async () => {
          if (name === "node2") throw new TransportError("ssm: could not reach node2: offline", { retryable: false });
          return name.toUpperCase();
        });
      },
    });
    const ended = await run((durable) => durable.all("nodes", [branch("node1", 50), branch("node2", 10), branch("node3", 5)], 2), 120);
    expect(ended?.result).toEqual([
      { ok: true, value: "NODE1" },
      { ok: false, error: { name: "TransportError", message: "ssm: could not reach node2: offline" } },
      { ok: true, value: "NODE3" },
    ]);
    expect(begun).toEqual({ node1: 0, node2: 0, node3: 10 });
  });

  test("an interrupted branch keeps its name, and branches may be nested and replayed", async () => {
    let calls = 0;
    const workflow = async (durable: Durable) => {
      const outer = await durable.all(
        "outer",
        [
          {
            name: "a",
            run: (child) =>
              child.all(
                "inner",
                [
                  {
                    name: "x",
                    run: (grandchild) =>
                      grandchild.once("fix", async () => {
                        calls++;
                        await new Promise(() => undefined);
                      }),
                  },
                ],
                1,
              ),
          },
        ],
        1,
      );
      await durable.wait("pause", 1);
      return outer;
    };
    engine.start(durableHandler((_: unknown, durable) => workflow(durable)));
    engine.execute("e", {});
    await expect.poll(() => calls).toBe(1);
    clock.moveTo(clock.now() + 900_000);
    await pass(engine, clock, 10);
    const error = { name: INTERRUPTED, message: "fix: an earlier run was cut off, so its outcome is unknown" };
    expect(engine.execution("e")?.result).toEqual([{ ok: true, value: [{ ok: false, error }] }]);
    expect(calls).toBe(1);
  });

  test("no branches, no results", async () => {
    expect((await run((durable) => durable.all("none", [], 3)))?.result).toEqual([]);
  });
});
