// Requests that wait while the server is down: the first successful response wakes the others.
import { sleep, type World } from "../world.ts";

/** The others follow spread over this time. */
const spreadMs = 1000;

export class OutageGate {
  readonly #world: Pick<World, "clock" | "random">;
  readonly #waiting = new Set<() => void>();

  constructor(world: Pick<World, "clock" | "random">) {
    this.#world = world;
  }

  /** Resolves after `ms`, or soon after the server has responded to any request; rejects on abort. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#world;
    const end = clock.steady() + ms;
    const pause = new AbortController();
    const wake = () => pause.abort();
    this.#waiting.add(wake);
    signal.addEventListener("abort", wake, { once: true });
    if (!signal.aborted) await sleep(clock, ms, pause.signal).catch(() => {});
    this.#waiting.delete(wake);
    signal.removeEventListener("abort", wake);
    const left = Math.min(end - clock.steady(), random() * spreadMs);
    if (left > 0 || signal.aborted) await sleep(clock, left, signal);
  }

  /** The server has responded. */
  over(): void {
    for (const wake of this.#waiting) wake();
  }
}
