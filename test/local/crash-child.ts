/**
 * A process that is killed: `node crash-child.ts <database> <journal> <place>`. Runs one execution on the engine and dies by SIGKILL at `place`
 * (none: runs to the end and prints the execution as JSON). Each effect leaves a line in the journal, so that a test can count them.
 */
import { appendFileSync } from "node:fs";
import { type DurableContext, retryPresets, StepSemantics, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { Engine } from "../../functions/local/engine.ts";

const [database = "", journal = "", place = ""] = process.argv.slice(2);

function effect(name: string): void {
  appendFileSync(journal, `${name}\n`);
}
function dieAt(name: string): void {
  if (place === name) process.kill(process.pid, "SIGKILL");
}

const handler = withDurableExecution(async (_event: unknown, context: DurableContext) => {
  await context.step("collect", async () => {
    effect("collect");
    dieAt("in-collect");
  });
  const fix = await context
    .step(
      "fix",
      async () => {
        effect("fix");
        dieAt("in-fix");
        return "fixed";
      },
      { semantics: StepSemantics.AtMostOncePerRetry, retryStrategy: retryPresets.noRetry },
    )
    .catch((error: unknown) => ((error as Error).cause as Error).name);
  dieAt("after-fix");
  const answer = await context.waitForCallback(
    "approval",
    async (callbackId) => {
      effect(`callback ${callbackId}`);
      dieAt("in-submit");
    },
    { timeout: { hours: 4 } },
  );
  await context.step("report", async () => {
    effect("report");
    dieAt("in-report");
  });
  return { fix, answer };
});

const engine = new Engine({ file: database });
engine.start(handler);
const arn = engine.execute("crash-test", { node: "node1" });
await engine.idle();
if (place === "suspended") process.kill(process.pid, "SIGKILL");
if (place === "answered") {
  // Dies right after the answer was accepted: it must not be lost.
  const callback = engine.operations(arn).find(({ Type }) => Type === "CALLBACK");
  engine.succeed(callback?.CallbackDetails?.CallbackId ?? "", "yes");
  process.kill(process.pid, "SIGKILL");
}
const open = engine.operations(arn).find(({ Type, Status }) => Type === "CALLBACK" && Status === "STARTED");
if (open) engine.succeed(open.CallbackDetails?.CallbackId ?? "", "yes");
const { status, result } = await engine.finished(arn);
process.stdout.write(JSON.stringify({ status, result }));
await engine.close();
