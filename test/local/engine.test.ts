import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  CallbackExternalError,
  CallbackTimeoutError,
  createRetryStrategy,
  createWaitStrategy,
  type DurableContext,
  type DurableExecutionClient,
  type DurableLambdaHandler,
  InvocationStatus,
  JitterStrategy,
  OperationAction,
  OperationType,
  retryPresets,
  StepSemantics,
  withDurableExecution,
} from "@aws/durable-execution-sdk-js";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ClosedCallbackError, Engine, EngineLockedError, UnknownCallbackError } from "../../functions/local/engine.ts";
import { pass, VirtualClock } from "./virtual-clock.ts";

let folder: string;
let clock: VirtualClock;
const engines: Engine[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-engine-"));
  clock = new VirtualClock();
});
afterEach(async () => {
  await Promise.all(engines.splice(0).map((engine) => engine.close(0)));
  rmSync(folder, { recursive: true });
});

type Workflow = (event: unknown, context: DurableContext) => Promise<unknown>;

function engine(file = ":memory:"): Engine {
  const made = new Engine({ file, clock });
  engines.push(made);
  return made;
}

/** Starts one execution named "e" of a workflow on a fresh engine. */
function run(workflow: Workflow, payload: unknown = {}): { engine: Engine; arn: string } {
  const made = engine();
  made.start(withDurableExecution(workflow));
  return { engine: made, arn: made.execute("e", payload) };
}

function callbackOf(of: Engine, arn: string): string {
  const id = of.operations(arn).find(({ Type }) => Type === "CALLBACK")?.CallbackDetails?.CallbackId;
  if (!id) throw new Error("no callback");
  return id;
}

describe("operations of the SDK", () => {
  test("steps run once, in order, and their results are remembered over suspensions", async () => {
    const calls: string[] = [];
    const { engine, arn } = run(
      async (event, context) => {
        const a = await context.step("a", async () => calls.push("a"));
        await context.wait("pause", { seconds: 30 });
        const b = await context.step("b", async () => calls.push("b"));
        return { event, a, b };
      },
      { node: "node1" },
    );
    await pass(engine, clock, 29);
    expect(calls).toEqual(["a"]);
    expect(engine.execution(arn)?.status).toBe("RUNNING");
    await pass(engine, clock, 1);
    expect(await engine.finished(arn)).toMatchObject({ status: "SUCCEEDED", result: { event: { node: "node1" }, a: 1, b: 2 }, operations: 3 });
    expect(engine.execution("e")).toEqual(engine.execution(arn));
    expect(engine.operations(arn).map(({ Type, Name, Status }) => [Type, Name, Status])).toEqual([
      ["EXECUTION", undefined, "STARTED"],
      ["STEP", "a", "SUCCEEDED"],
      ["WAIT", "pause", "SUCCEEDED"],
      ["STEP", "b", "SUCCEEDED"],
    ]);
  });

  test("a filtered retry strategy repeats what it knows, after the delay it asks for", async () => {
    const at: number[] = [];
    const retryStrategy = createRetryStrategy({
      maxAttempts: 4,
      initialDelay: { seconds: 10 },
      backoffRate: 2,
      jitter: JitterStrategy.NONE,
      retryableErrors: [/throttled/],
    });
    const start = clock.now();
    const { engine, arn } = run((_, context) =>
      context.step(
        "flaky",
        async ({ attempt }) => {
          at.push((clock.now() - start) / 1000);
          if (attempt < 3) throw new Error("throttled");
          return attempt;
        },
        { retryStrategy },
      ),
    );
    await pass(engine, clock, 60);
    expect(at).toEqual([0, 10, 30]);
    expect(engine.execution(arn)).toMatchObject({ status: "SUCCEEDED", result: 3, operations: 3 });
  });

  test("an error that the strategy does not know fails the step at once, with its name and message", async () => {
    let calls = 0;
    const { engine, arn } = run(async (_, context) => {
      const retryStrategy = createRetryStrategy({ maxAttempts: 4, retryableErrors: [/throttled/] });
      try {
        await context.step(
          "broken",
          async () => {
            calls++;
            throw new TypeError("x is not a function");
          },
          { retryStrategy },
        );
      } catch (error) {
        const cause = (error as Error).cause as Error;
        return [cause.name, cause.message];
      }
      return undefined;
    });
    expect(await engine.finished(arn)).toMatchObject({ status: "SUCCEEDED", result: ["TypeError", "x is not a function"] });
    expect(calls).toBe(1);
  });

  test("waitForCondition keeps its state between polls and counts each of them", async () => {
    const { engine, arn } = run((_, context) =>
      context.waitForCondition("poll", async (state: { polls: number }) => ({ polls: state.polls + 1 }), {
        initialState: { polls: 0 },
        waitStrategy: createWaitStrategy<{ polls: number }>({
          maxAttempts: 10,
          initialDelay: { seconds: 5 },
          backoffRate: 1,
          jitter: JitterStrategy.NONE,
          shouldContinuePolling: ({ polls }) => polls < 4,
        }),
      }),
    );
    await pass(engine, clock, 14);
    expect(engine.execution(arn)?.status).toBe("RUNNING");
    await pass(engine, clock, 1);
    expect(engine.execution(arn)).toMatchObject({ status: "SUCCEEDED", result: { polls: 4 }, operations: 4 });
  });

  test("child contexts: a result too large to store is built again from its children", async () => {
    let calls = 0;
    const { engine, arn } = run(async (_, context) => {
      const chunks = await context.runInChildContext("large", async (child) => {
        const made: string[] = [];
        for (const name of ["a", "b"]) {
          made.push(
            await child.step(name, async () => {
              calls++;
              return name.repeat(200_000);
            }),
          );
        }
        return made;
      });
      const small = await context.runInChildContext("small", (child) => child.step("inner", async () => "s"));
      await context.wait("pause", { seconds: 1 });
      return [chunks.join("").length, small];
    });
    await pass(engine, clock, 1);
    expect(engine.execution(arn)).toMatchObject({ status: "SUCCEEDED", result: [400_000, "s"] });
    expect(calls).toBe(2);
  });

  test("map runs items concurrently up to its limit, and one that fails does not sink the rest", async () => {
    let running = 0;
    let most = 0;
    const { engine, arn } = run(async (_, context) => {
      const batch = await context.map(
        "nodes",
        ["n1", "n2", "n3", "n4"],
        async (child, node) => {
          await child.step("collect", async () => {
            most = Math.max(most, ++running);
            await new Promise(setImmediate);
            running--;
          });
          await child.wait("settle", { seconds: 60 });
          return child.step(
            "judge",
            async () => {
              if (node === "n3") throw new Error("unreachable");
              return node.toUpperCase();
            },
            { retryStrategy: retryPresets.noRetry },
          );
        },
        { maxConcurrency: 2, completionConfig: { toleratedFailurePercentage: 100 } },
      );
      return { ok: batch.getResults(), failed: batch.getErrors().map(({ message }) => message) };
    });
    await pass(engine, clock, 120);
    expect(engine.execution(arn)).toMatchObject({ status: "SUCCEEDED", result: { ok: ["N1", "N2", "N4"], failed: ["unreachable"] } });
    expect(most).toBe(2);
  });
});

describe("callbacks", () => {
  const waiting: Workflow = async (_, context) => {
    try {
      return await context.waitForCallback("approval", async () => undefined, { timeout: { hours: 4 } });
    } catch (error) {
      if (error instanceof CallbackTimeoutError) return `timeout: ${error.message}`;
      if (error instanceof CallbackExternalError) return `failed: ${error.message}`;
      throw error;
    }
  };

  test("answered", async () => {
    const { engine, arn } = run(waiting);
    await engine.idle();
    engine.succeed(callbackOf(engine, arn), "yes");
    expect(await engine.finished(arn)).toMatchObject({ status: "SUCCEEDED", result: "yes", operations: 3 });
  });

  test("failed", async () => {
    const { engine, arn } = run(waiting);
    await engine.idle();
    engine.fail(callbackOf(engine, arn), { ErrorMessage: "no", ErrorType: "Rejected" });
    expect(await engine.finished(arn)).toMatchObject({ result: "failed: no" });
  });

  test("timed out, and not a moment earlier", async () => {
    const { engine, arn } = run(waiting);
    await pass(engine, clock, 4 * 3600 - 1);
    expect(engine.execution(arn)?.status).toBe("RUNNING");
    await pass(engine, clock, 1);
    expect(engine.execution(arn)?.result).toBe("timeout: Callback timed out");
  });

  test("heartbeats keep it open, silence closes it, the whole timeout stands", async () => {
    const workflow: Workflow = (_, context) =>
      context
        .waitForCallback("agent", async () => undefined, { timeout: { seconds: 100 }, heartbeatTimeout: { seconds: 30 } })
        .catch((error: unknown) => `${(error as Error).message} at ${clock.now()}`);
    const silent = run(workflow);
    const start = clock.now();
    await pass(silent.engine, clock, 20);
    silent.engine.heartbeat(callbackOf(silent.engine, silent.arn));
    await pass(silent.engine, clock, 60);
    expect(silent.engine.execution(silent.arn)?.result).toBe(`Callback timed out on heartbeat at ${start + 50_000}`);

    const lively = run(workflow);
    const again = clock.now();
    for (let beats = 0; beats < 4; beats++) {
      await pass(lively.engine, clock, 24);
      lively.engine.heartbeat(callbackOf(lively.engine, lively.arn));
    }
    await pass(lively.engine, clock, 30);
    expect(lively.engine.execution(lively.arn)?.result).toBe(`Callback timed out at ${again + 100_000}`);
  });

  test("an answer that comes while the callback is still being handed out is not lost", async () => {
    const made = engine();
    made.start(withDurableExecution((_: unknown, context: DurableContext) => context.waitForCallback("approval", async (id) => made.succeed(id, "quick"))));
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ status: "SUCCEEDED", result: "quick" });
  });

  test("nor is one that comes while the invocation is on its way out", async () => {
    const made = engine();
    const workflow = withDurableExecution((_: unknown, context: DurableContext) => context.waitForCallback("approval", async () => undefined));
    let invocations = 0;
    made.start(async (event, context) => {
      const output = await workflow(event, context);
      if (++invocations === 1) made.succeed(callbackOf(made, event.DurableExecutionArn), "late, but not too late");
      return output;
    });
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ status: "SUCCEEDED", result: "late, but not too late" });
    expect(invocations).toBe(2);
  });

  test("an answer after the time is too late, even if the timer has not fired yet", async () => {
    let busy = 0;
    const made = new Engine({ file: ":memory:", clock: { real: false, now: () => clock.now() + busy, after: (ms, fire) => clock.after(ms, fire) } });
    engines.push(made);
    made.start(withDurableExecution(waiting));
    const arn = made.execute("e", {});
    await made.idle();
    busy = 4 * 3600 * 1000;
    expect(() => made.succeed(callbackOf(made, arn), "yes")).toThrow(ClosedCallbackError);
    expect(made.execution(arn)?.status).toBe("RUNNING");
  });

  test("unknown and closed callbacks are told apart", async () => {
    const { engine, arn } = run(waiting);
    await engine.idle();
    const id = callbackOf(engine, arn);
    expect(() => engine.succeed("nonsense", "yes")).toThrow(UnknownCallbackError);
    engine.succeed(id, "yes");
    expect(() => engine.succeed(id, "yes")).toThrow(ClosedCallbackError);
    expect(() => engine.fail(id, { ErrorMessage: "no" })).toThrow(ClosedCallbackError);
    expect(() => engine.heartbeat(id)).toThrow(ClosedCallbackError);

    const other = run(waiting);
    await other.engine.idle();
    clock.moveTo(clock.now() + 4 * 3600 * 1000);
    expect(() => other.engine.succeed(callbackOf(other.engine, other.arn), "late")).toThrow(ClosedCallbackError);
  });
});

describe("names", () => {
  test("the same name and payload are the same execution; another payload is refused as Lambda does", async () => {
    const { engine, arn } = run(async () => "done", { node: "node1" });
    expect(engine.execute("e", { node: "node1" })).toBe(arn);
    expect(() => engine.execute("e", { node: "node2" })).toThrow(expect.objectContaining({ name: "DurableExecutionAlreadyStartedException" }));
    await engine.finished(arn);
    expect(engine.execute("e", { node: "node1" })).toBe(arn);
  });

  test.each(["", "a b", "a/b", "é", "x".repeat(65)])("%j is no name", (name) => {
    expect(() => engine().execute(name, {})).toThrow(RangeError);
  });

  test("names of executions that ended are free after two weeks", async () => {
    const file = join(folder, "engine.db");
    const first = engine(file);
    first.start(withDurableExecution(async () => 1));
    const arn = first.execute("e", {});
    await first.finished(arn);
    await first.close();
    clock.moveTo(clock.now() + 15 * 86_400_000);
    const second = engine(file);
    expect(second.execution("e")).toBeUndefined();
    expect(second.operations(arn)).toEqual([]);
  });
});

describe("failures", () => {
  test("a workflow that throws ends as FAILED", async () => {
    const { engine, arn } = run(async () => {
      throw new TypeError("x is not a function");
    });
    expect(await engine.finished(arn)).toMatchObject({ status: "FAILED", error: { ErrorType: "TypeError", ErrorMessage: "x is not a function" } });
  });

  test("an invocation that dies is repeated, later and later, and goes on from its checkpoints", async () => {
    let steps = 0;
    const at: number[] = [];
    const workflow = withDurableExecution(async (_: unknown, context: DurableContext) => context.step("a", async () => ++steps));
    const start = clock.now();
    const made = engine();
    made.start(async (event, context) => {
      at.push((clock.now() - start) / 1000);
      if (at.length <= 8) throw new Error("out of memory");
      return workflow(event, context);
    });
    const arn = made.execute("e", {});
    await pass(made, clock, 600);
    expect(at).toEqual([0, 1, 3, 7, 15, 31, 63, 123, 183]);
    expect(made.execution(arn)).toMatchObject({ status: "SUCCEEDED", result: 1 });
  });

  test("an invocation that hangs is given up after 15 minutes; it can no longer write, not even while its successor runs", async () => {
    const release: (() => void)[] = [];
    const { engine, arn } = run((_, context) =>
      context.step("a", async () => {
        const mine = release.length + 1;
        await new Promise<void>((resolve) => release.push(resolve));
        return `run ${mine}`;
      }),
    );
    await expect.poll(() => release.length).toBe(1);
    clock.moveTo(clock.now() + 900_000);
    // The successor comes after the back-off of a failed invocation.
    clock.moveTo(clock.now() + 1000);
    await expect.poll(() => release.length).toBe(2);
    const before = engine.operations(arn);
    release[0]?.();
    for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
    expect(engine.operations(arn)).toEqual(before);
    release[1]?.();
    expect(await engine.finished(arn)).toMatchObject({ status: "SUCCEEDED", result: "run 2" });
  });

  test("an execution that takes too long ends as TIMED_OUT", async () => {
    const made = new Engine({ file: ":memory:", clock, executionTimeoutSeconds: 60 });
    engines.push(made);
    made.start(withDurableExecution((_: unknown, context: DurableContext) => context.waitForCallback("never", async () => undefined)));
    const arn = made.execute("e", {});
    await pass(made, clock, 60);
    expect(made.execution(arn)).toMatchObject({ status: "TIMED_OUT" });
    expect(() => made.succeed(callbackOf(made, arn), "late")).toThrow(ClosedCallbackError);
    expect(clock.next()).toBeUndefined();
  });

  test("a workflow that suspends with nothing to wait for fails, rather than hang for ever", async () => {
    const made = engine();
    made.start((async () => ({ Status: "PENDING" })) as unknown as DurableLambdaHandler);
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ status: "FAILED", error: { ErrorType: "NothingPendingError" } });
  });

  test("a workflow that changed under a running execution fails closed", async () => {
    const file = join(folder, "engine.db");
    const ran: string[] = [];
    const first = engine(file);
    first.start(
      withDurableExecution(async (_: unknown, context: DurableContext) => {
        await context.step("collect", async () => ran.push("collect"));
        await context.waitForCallback("approval", async () => undefined);
        await context.step("fix", async () => ran.push("fix"));
      }),
    );
    const arn = first.execute("e", {});
    await first.idle();
    const callback = callbackOf(first, arn);
    await first.close();
    const second = engine(file);
    second.start(
      withDurableExecution(async (_: unknown, context: DurableContext) => {
        await context.step("inserted", async () => ran.push("inserted"));
        // The SDK lets the code run on until it waits for a checkpoint. A step that runs at most once waits for one before it begins.
        const once = { semantics: StepSemantics.AtMostOncePerRetry, retryStrategy: retryPresets.noRetry };
        await context.step("fix", async () => ran.push("fix"), once);
      }),
    );
    const ended = await second.finished(arn);
    expect(ended).toMatchObject({ status: "FAILED", error: { ErrorType: "NonDeterministicExecutionError" } });
    expect(ended.error?.ErrorMessage).toContain('Expected name "collect", but got "inserted"');
    expect(ran).toEqual(["collect"]);
    expect(() => second.succeed(callback, "yes")).toThrow(ClosedCallbackError);
  });
});

describe("limits", () => {
  test("a payload over 1 MB is refused as Lambda would", async () => {
    const exact = run((_, context) => context.step("max", async () => "x".repeat(1_048_574)));
    expect(await exact.engine.finished(exact.arn)).toMatchObject({ status: "SUCCEEDED" });
    const over = run((_, context) => context.step("over", async () => "x".repeat(1_048_575)));
    const ended = await over.engine.finished(over.arn);
    expect(ended.status).toBe("FAILED");
    expect(ended.error?.ErrorMessage).toContain("larger than 1 MB");
    expect(() => over.engine.execute("input", "x".repeat(1_048_576))).toThrow("larger than 1 MB");
  });

  test("a result of several MB is accepted, as in Lambda", async () => {
    const { engine, arn } = run(async () => "x".repeat(7_000_000));
    const { status, result } = await engine.finished(arn);
    expect([status, (result as string).length]).toEqual(["SUCCEEDED", 7_000_000]);
  });

  test("operation 3,001 fails the execution", async () => {
    let steps = 0;
    const workflow: Workflow = async (event, context) => {
      const batches = event as number[];
      for (const size of batches) await Promise.all(Array.from({ length: size }, (_, i) => context.step(`${i}`, async () => ++steps)));
    };
    const within = run(workflow, [1500, 1500]);
    expect(await within.engine.finished(within.arn)).toMatchObject({ status: "SUCCEEDED", operations: 3000 });
    const beyond = run(workflow, [1500, 1500, 1]);
    const ended = await beyond.engine.finished(beyond.arn);
    expect(ended.status).toBe("FAILED");
    expect(ended.error?.ErrorMessage).toContain("at most 3000 operations");
  });

  test("waits longer than a timer can be set are kept", async () => {
    const { engine, arn } = run((_, context) => context.wait("long", { days: 60 }));
    await pass(engine, clock, 60 * 86_400 - 1);
    expect(engine.execution(arn)?.status).toBe("RUNNING");
    await pass(engine, clock, 1);
    expect(engine.execution(arn)?.status).toBe("SUCCEEDED");
  });
});

describe("several executions", () => {
  test("run side by side, each with its own history, and leave no timer behind", async () => {
    const made = engine();
    made.start(
      withDurableExecution(async (event: { n: number }, context: DurableContext) => {
        await context.wait("own time", { seconds: event.n });
        return context.step("answer", async () => event.n * 10);
      }),
    );
    const arns = Array.from({ length: 20 }, (_, i) => made.execute(`e${i}`, { n: i + 1 }));
    await pass(made, clock, 10);
    expect(arns.map((arn) => made.execution(arn)?.status === "SUCCEEDED")).toEqual(arns.map((_, i) => i < 10));
    await pass(made, clock, 10);
    expect(arns.map((arn) => made.execution(arn)?.result)).toEqual(arns.map((_, i) => (i + 1) * 10));
    expect(clock.next()).toBeUndefined();
  });

  test("the SDK is told which operations changed while it was suspended", async () => {
    const updated: unknown[] = [];
    const made = engine();
    const workflow = withDurableExecution((_: unknown, context: DurableContext) => context.wait("pause", { seconds: 5 }));
    made.start((event, context) => {
      updated.push(event.UpdatedOperationIds);
      return workflow(event, context);
    });
    const arn = made.execute("e", {});
    await pass(made, clock, 5);
    expect(updated).toEqual([[], [made.operations(arn)[1]?.Id]]);
  });

  test("a replay sees no operation inside a context that has ended", async () => {
    const seen: unknown[] = [];
    const made = engine();
    const workflow = withDurableExecution(async (_: unknown, context: DurableContext) => {
      await context.runInChildContext("outer", (outer) => outer.runInChildContext("inner", (inner) => inner.step("leaf", async () => 1)));
      await context.wait("pause", { seconds: 5 });
    });
    made.start((event, context) => {
      seen.push(event.InitialExecutionState.Operations.map(({ Type, Name }) => Name ?? Type));
      return workflow(event, context);
    });
    const arn = made.execute("e", {});
    await pass(made, clock, 5);
    expect(seen).toEqual([["EXECUTION"], ["EXECUTION", "outer", "pause"]]);
    expect(made.operations(arn).map(({ Name }) => Name)).toEqual([undefined, "outer", "inner", "leaf", "pause"]);
  });

  test("a step that became ready just before the invocation suspended is run by the next one", async () => {
    const made = engine();
    let invocations = 0;
    // The protocol by hand: the SDK can be told that a step is ready, and suspend all the same.
    made.start(async (event) => {
      if (++invocations === 2) return { Status: InvocationStatus.SUCCEEDED };
      const request = { DurableExecutionArn: event.DurableExecutionArn, CheckpointToken: event.CheckpointToken };
      const step = { Id: "1", Type: OperationType.STEP };
      const retry = { ...step, Action: OperationAction.RETRY, StepOptions: { NextAttemptDelaySeconds: 0 } };
      await made.checkpoint({ ...request, Updates: [{ ...step, Action: OperationAction.START }, retry] });
      await expect.poll(async () => (await made.checkpoint({ ...request, Updates: [] })).NewExecutionState?.Operations?.[0]?.Status).toBe("READY");
      return { Status: InvocationStatus.PENDING };
    });
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ status: "SUCCEEDED" });
    expect(invocations).toBe(2);
  });

  test.each([
    ["an operation that has ended", { Action: OperationAction.SUCCEED }, "it has ended already (SUCCEEDED)"],
    ["another kind of operation", { Type: OperationType.WAIT, Action: OperationAction.START }, "it is a STEP"],
    ["an unknown kind", { Id: "2", Type: OperationType.CHAINED_INVOKE, Action: OperationAction.START }, "cannot do that"],
  ])("a checkpoint about %s is refused, and nothing of it is stored", async (_, wrong, problem) => {
    const made = engine();
    made.start(async (event) => {
      const request = { DurableExecutionArn: event.DurableExecutionArn, CheckpointToken: event.CheckpointToken };
      const step = { Id: "1", Type: OperationType.STEP };
      if (wrong.Action === OperationAction.START) await made.checkpoint({ ...request, Updates: [{ ...step, Action: OperationAction.START }] });
      else await made.checkpoint({ ...request, Updates: [{ ...step, Action: OperationAction.SUCCEED, Payload: "1" }] });
      const before = made.operations(event.DurableExecutionArn);
      const updates = [
        { Id: "9", Type: OperationType.STEP, Action: OperationAction.START },
        { ...step, ...wrong },
      ];
      await expect(made.checkpoint({ ...request, Updates: updates })).rejects.toMatchObject({ scope: "EXECUTION", message: expect.stringContaining(problem) });
      expect(made.operations(event.DurableExecutionArn)).toEqual(before);
      return { Status: InvocationStatus.SUCCEEDED };
    });
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ status: "SUCCEEDED", error: undefined });
  });

  test("requests of an invocation that is not the current one are refused", async () => {
    const { engine, arn } = run((_, context) => context.wait("pause", { seconds: 5 }));
    await engine.idle();
    const client: DurableExecutionClient = engine;
    const stale = { DurableExecutionArn: arn, CheckpointToken: "of yesterday" };
    await expect(client.checkpoint({ ...stale, Updates: [] })).rejects.toThrow("Invalid Checkpoint Token");
    await expect(client.getExecutionState(stale)).rejects.toThrow("Invalid Checkpoint Token");
  });
});

describe("closing and coming back", () => {
  test("suspended executions go on from the file, with the time that is left", async () => {
    const file = join(folder, "deep/er/engine.db");
    const calls: string[] = [];
    const workflow: Workflow = async (_, context) => {
      await context.step("a", async () => calls.push("a"));
      await context.wait("pause", { seconds: 100 });
      await context.step("b", async () => calls.push("b"));
    };
    const first = engine(file);
    first.start(withDurableExecution(workflow));
    const arn = first.execute("e", {});
    await pass(first, clock, 60);
    await first.close();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = engine(file);
    second.start(withDurableExecution(workflow));
    await pass(second, clock, 39);
    expect(calls).toEqual(["a"]);
    await pass(second, clock, 1);
    expect(second.execution(arn)?.status).toBe("SUCCEEDED");
    expect(calls).toEqual(["a", "b"]);
  });

  test("closing stores the result of a step that ends within the grace time, and starts nothing new", async () => {
    const file = join(folder, "engine.db");
    const calls: string[] = [];
    const gate: (() => void)[] = [];
    const once = { semantics: StepSemantics.AtMostOncePerRetry, retryStrategy: retryPresets.noRetry };
    const workflow: Workflow = async (_, context) => {
      const first = await context.step(
        "slow",
        async () => {
          calls.push("slow");
          await new Promise<void>((resolve) => gate.push(resolve));
          return "kept";
        },
        once,
      );
      const second = await context.step("next", async () => calls.push("next"), once);
      return [first, second];
    };
    const first = engine(file);
    first.start(withDurableExecution(workflow));
    const arn = first.execute("e", {});
    const waiting = expect(first.finished(arn)).rejects.toThrow("the engine is closed");
    await expect.poll(() => gate.length).toBe(1);
    const closing = first.close(5000);
    gate[0]?.();
    await closing;
    await waiting;
    expect(calls).toEqual(["slow"]);
    const second = engine(file);
    second.start(withDurableExecution(workflow));
    expect(await second.finished(arn)).toMatchObject({ status: "SUCCEEDED", result: ["kept", 2] });
  });

  test("a file belongs to one engine at a time", async () => {
    const file = join(folder, "engine.db");
    const first = engine(file);
    expect(() => engine(file)).toThrow(EngineLockedError);
    expect(crash(file, "")).toMatchObject({ status: 1, stderr: expect.stringContaining("another process runs on it") });
    await first.close();
    await engine(file).close();
  });

  test("the wall clock works as well", async () => {
    const made = new Engine({ file: ":memory:" });
    engines.push(made);
    made.start(
      withDurableExecution(async (_: unknown, context: DurableContext) => {
        await context.wait("pause", { seconds: 1 });
        return "done";
      }),
    );
    expect(await made.finished(made.execute("e", {}))).toMatchObject({ result: "done" });
  });
});

function crash(file: string, place: string) {
  const child = join(import.meta.dirname, "crash-child.ts");
  return spawnSync(process.execPath, [child, file, join(folder, "journal"), place], { encoding: "utf8", timeout: 20_000 });
}

describe("kill -9", () => {
  const lines = () =>
    readFileSync(join(folder, "journal"), "utf8")
      .trim()
      .split("\n")
      .map((line) => line.split(" ")[0]);

  test.each([
    { place: "in-collect", effects: ["collect", "collect", "fix", "callback", "report"], fix: "fixed" },
    { place: "in-fix", effects: ["collect", "fix", "callback", "report"], fix: "StepInterruptedError" },
    { place: "after-fix", effects: ["collect", "fix", "callback", "report"], fix: "fixed" },
    { place: "in-submit", effects: ["collect", "fix", "callback", "callback", "report"], fix: "fixed" },
    { place: "suspended", effects: ["collect", "fix", "callback", "report"], fix: "fixed" },
    { place: "answered", effects: ["collect", "fix", "callback", "report"], fix: "fixed" },
    { place: "in-report", effects: ["collect", "fix", "callback", "report", "report"], fix: "fixed" },
  ])("at $place: the rest is done after a restart, the fix at most once", ({ place, effects, fix }) => {
    const file = join(folder, "engine.db");
    expect(crash(file, place).signal).toBe("SIGKILL");
    const second = crash(file, "");
    expect([second.status, second.stderr]).toEqual([0, ""]);
    expect(JSON.parse(second.stdout)).toEqual({ status: "SUCCEEDED", result: { fix, answer: "yes" } });
    expect(lines()).toEqual(effects);
  });
});
