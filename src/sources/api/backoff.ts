// How long to wait after a failure: exponential backoff with jitter, reset after a quiet period or a watch that lasted.
import type { World } from "../world.ts";

/** Those of the Go client, except `heldMs`: a watch that lasts this long counts as a recovery. */
export const backoffFigures = { startMs: 800, factor: 2, capMs: 30_000, resetMs: 120_000, heldMs: 10_000 };

export type BackoffFigures = typeof backoffFigures;

export class Backoff {
  readonly #world: Pick<World, "clock" | "random">;
  readonly #figures: BackoffFigures;
  #delay = 0;
  #pause = 0;
  #failedAt = Number.NEGATIVE_INFINITY;

  constructor(world: Pick<World, "clock" | "random">, figures: BackoffFigures = backoffFigures) {
    this.#world = world;
    this.#figures = figures;
  }

  /** Counts a failure and returns the pause after it: between d and 2d. */
  next(): number {
    const { startMs, factor, capMs, resetMs } = this.#figures;
    const now = this.#world.clock.steady();
    const rested = now - this.#failedAt > resetMs;
    this.#delay = rested ? startMs : Math.min(capMs, this.#delay * factor);
    this.#failedAt = now;
    this.#pause = this.#delay * (1 + this.#world.random());
    return this.#pause;
  }

  /** The pause after a watch that was lost: the request itself did not fail, so the pause does not grow. */
  same(): number {
    const { startMs, resetMs } = this.#figures;
    const now = this.#world.clock.steady();
    if (now - this.#failedAt > resetMs) {
      this.#delay = startMs;
      this.#failedAt = now;
    }
    this.#pause = this.#delay * (1 + this.#world.random());
    return this.#pause;
  }

  /** A watch that lasted longer than the pause before it was a recovery: the next failure counts as the first. */
  held(ms: number): void {
    if (ms >= Math.max(this.#figures.heldMs, this.#pause)) this.#failedAt = Number.NEGATIVE_INFINITY;
  }
}
