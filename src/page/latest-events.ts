// A stream of server-sent events that holds only the latest one: a slow reader misses those in between, and nothing piles up.
import { Readable } from "node:stream";

export class LatestEvents extends Readable {
  #latest: string | null = null;
  #isWanted = false;

  constructor() {
    // One event at a time: the next one is taken when this one was passed on.
    super({ highWaterMark: 1 });
  }

  /** Replaces an event that was not read yet. */
  send(value: unknown): void {
    this.#put(`data: ${JSON.stringify(value)}\n\n`);
  }

  /** A comment, which shows that the connection works; only if nothing else is waiting. */
  beat(): void {
    if (this.#latest === null) this.#put(": \n\n");
  }

  /** No more events: the reader connects again. */
  finish(): void {
    this.#latest = null;
    this.push(null);
  }

  override _read(): void {
    this.#isWanted = true;
    this.#pass();
  }

  #put(text: string): void {
    this.#latest = text;
    this.#pass();
  }

  #pass(): void {
    if (!this.#isWanted || this.#latest === null || this.destroyed || this.readableEnded) return;
    const text = this.#latest;
    this.#latest = null;
    this.#isWanted = false;
    this.push(text);
  }
}
