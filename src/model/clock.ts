// Time as an argument: the wall clock that may jump, a steady one that only grows, and a timer.

export type Clock = {
  /** Milliseconds since 1970; jumps when the clock is set. */
  wall(): number;
  /** Milliseconds since some moment; never goes back, so ages are measured with it. */
  steady(): number;
  /** Runs `run` once after `ms`, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void;
};

/** One moment on both clocks: `wall` to show, `steady` to measure with. */
export type Moment = { readonly wall: number; readonly steady: number };

export function momentOf(clock: Pick<Clock, "wall" | "steady">): Moment {
  return { wall: clock.wall(), steady: clock.steady() };
}
