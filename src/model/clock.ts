// Time as an argument: the wall clock that may jump, a steady one that only grows, and a timer.

export type Clock = {
  /** Milliseconds since 1970; jumps when the clock is set. */
  wall(): number;
  /** Milliseconds since some moment; never goes back, so ages are measured with it. */
  steady(): number;
  /** Runs `run` once after `ms`, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
};
