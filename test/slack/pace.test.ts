import { expect, test } from "vitest";
import { pace } from "../../functions/slack/pace.ts";

/** Time by hand: what waits is let go one by one. */
function clock() {
  const waiting: (() => void)[] = [];
  return {
    wait: () => new Promise<void>((resolve) => waiting.push(resolve)),
    waiting,
    /** One pause is over; then everything that follows from it happens. */
    async tick() {
      waiting.shift()?.();
      await settled();
    },
  };
}
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test("one message, a pause, the next; in the order in which they were asked for", async () => {
  const time = clock();
  const paced = pace(1000, time.wait);
  const sent: string[] = [];
  const say = (channel: string, text: string) => paced(channel, async () => sent.push(`${channel} ${text}`));
  void say("C1", "one");
  void say("C1", "two");
  void say("C1", "three");
  void say("C2", "elsewhere");
  await settled();
  // channels do not wait for each other
  expect(sent).toEqual(["C1 one", "C2 elsewhere"]);
  await time.tick();
  expect(sent).toEqual(["C1 one", "C2 elsewhere", "C1 two"]);
  await time.tick();
  await time.tick();
  expect(sent).toEqual(["C1 one", "C2 elsewhere", "C1 two", "C1 three"]);
});

test("the pause begins when the answer is there", async () => {
  const time = clock();
  const paced = pace(1000, time.wait);
  let answer: (value: string) => void = () => undefined;
  const first = paced("C1", () => new Promise<string>((resolve) => (answer = resolve)));
  const second = paced("C1", async () => "second");
  await settled();
  expect(time.waiting).toHaveLength(0);
  answer("first");
  expect(await first).toBe("first");
  await settled();
  expect(time.waiting).toHaveLength(1);
  await time.tick();
  expect(await second).toBe("second");
});

test("a message that fails is told to its sender, and keeps nobody else waiting for ever", async () => {
  const time = clock();
  const paced = pace(1000, time.wait);
  const failing = paced("C1", async () => Promise.reject(new Error("not_in_channel")));
  const next = paced("C1", async () => "sent");
  await expect(failing).rejects.toThrow("not_in_channel");
  await settled();
  await time.tick();
  expect(await next).toBe("sent");
});

test("after a silence nobody waits", async () => {
  const time = clock();
  const paced = pace(1000, time.wait);
  await paced("C1", async () => "one");
  await settled();
  await time.tick();
  expect(await paced("C1", async () => "two")).toBe("two");
});
