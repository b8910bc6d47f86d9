/** Time, as the engine sees it. Tests bring their own, so that hours pass without waiting. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once, when `milliseconds` (0 … 2^31 − 1) have passed. The result cancels it. */
  after(milliseconds: number, run: () => void): () => void;
  /** False if time stands still between two moves by hand: then the SDK must not wait by itself, for it looks at the wall clock. */
  readonly real: boolean;
}

/** The wall clock. */
export const systemClock: Clock = {
  now: Date.now,
  after(milliseconds, run) {
    const timer = setTimeout(run, milliseconds);
    return () => clearTimeout(timer);
  },
  real: true,
};
