import { setTimeout as delay } from "node:timers/promises";

/** Sends one message to a channel when it is its turn. What `send` throws is passed on. */
export type Pace = <T>(channel: string, send: () => Promise<T>) => Promise<T>;

/** Slack takes one message per second and channel, with short bursts whose length it does not tell (docs.slack.dev, "Rate limits": special tier of chat.postMessage). */
const PAUSE_MS = 1000;

/**
 * One message after another in each channel, in the order in which they were asked for, and a pause between the answer to one and the next. It is counted from the
 * answer, so that the way to Slack, which is not always equally long, makes no two of them meet there. Channels do not wait for each other.
 * A process knows only of its own messages: where several share a channel, Slack's own "later" (429) does the rest (client.ts).
 * @param pauseMs milliseconds
 * @param wait how to let time pass; by the wall clock unless given
 */
export function pace(pauseMs: number = PAUSE_MS, wait: (milliseconds: number) => Promise<unknown> = delay): Pace {
  /** When the next message may go, by channel; only of those in which somebody waits or has just spoken. */
  const free = new Map<string, Promise<unknown>>();
  return async (channel, send) => {
    const before = free.get(channel) ?? Promise.resolve();
    const sent = before.then(send);
    const after = sent.then(
      () => wait(pauseMs),
      () => wait(pauseMs),
    );
    free.set(channel, after);
    void after.then(() => {
      if (free.get(channel) === after) free.delete(channel);
    });
    return sent;
  };
}

/** Where nobody counts: a simulated workspace. */
export const unpaced: Pace = (_channel, send) => send();
