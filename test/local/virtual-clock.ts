import type { Clock } from "../../functions/local/clock.ts";
import type { Engine } from "../../functions/local/engine.ts";

/** A clock that stands still until it is moved: hours of waits, retries and timeouts pass at once. */
export class VirtualClock implements Clock {
  readonly real = false;
  #now: number;
  #timers = new Set<{ at: number; run: () => void }>();

  /** @param start milliseconds since 1970; a fixed date unless given */
  constructor(start = Date.parse("2026-01-01T00:00:00Z")) {
    this.#now = start;
  }

  now = (): number => this.#now;

  after(milliseconds: number, run: () => void): () => void {
    const timer = { at: this.#now + milliseconds, run };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** When the next timer fires, in milliseconds since 1970. */
  next(): number | undefined {
    return this.#timers.size === 0 ? undefined : Math.min(...[...this.#timers].map(({ at }) => at));
  }

  /** Goes to a time, firing the timers up to it in order. */
  moveTo(time: number): void {
    for (let next = this.next(); next !== undefined && next <= time; next = this.next()) {
      this.#now = Math.max(this.#now, next);
      const timer = [...this.#timers].find(({ at }) => at === next);
      if (!timer) break;
      this.#timers.delete(timer);
      timer.run();
    }
    this.#now = Math.max(this.#now, time);
  }
}

/** Lets time pass for an engine: everything happens at the moment it is due, and what it sets off is done before time goes on. */
export async function pass(engine: Engine, clock: VirtualClock, seconds: number): Promise<void> {
  const end = clock.now() + seconds * 1000;
  await engine.idle();
  for (let next = clock.next(); next !== undefined && next <= end; next = clock.next()) {
    clock.moveTo(next);
    await engine.idle();
  }
  clock.moveTo(end);
  await engine.idle();
}
