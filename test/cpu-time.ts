import { expect } from "vitest";

/** Milliseconds that this thread has had of a processor: unlike the clock it does not go on while others have it. For tests that something stays cheap. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** How much longer the second input is than the first. */
const GROWTH = 4;
/** What is linear takes 4 times as long, or a little more for the garbage collector; what is quadratic takes 16 times as long. */
const LIMIT = 9;
/** Below these milliseconds the processor's own moods are larger than what is measured. */
const FLOOR = 60;

/**
 * Asks that the cost of `run` grows with its input and not with its square: the time of the processor for `make(4 * size)` against that for `make(size)`, so that it is
 * the same question on a fast and on a slow machine. `size` so large that what is quadratic would take a quarter of a second at least for the larger input.
 * @param make an input of so many parts
 */
export function expectLinear<T>(make: (size: number) => T, run: (input: T) => unknown, size: number, name = ""): void {
  const [small, large] = [make(size), make(GROWTH * size)];
  const taken = (input: T): number => {
    const started = cpuMs();
    run(input);
    return cpuMs() - started;
  };
  // the first run is slower, until the code is compiled; a quick one is measured more often
  const cold = taken(small);
  const once = cold < 200 ? Math.min(taken(small), taken(small), taken(small)) : Math.min(cold, taken(small));
  const limit = Math.max(FLOOR, LIMIT * once);
  const first = taken(large);
  expect(first < limit ? first : Math.min(first, taken(large)), `${name}: ${size} parts take ${once.toFixed(1)} ms`).toBeLessThan(limit);
}
