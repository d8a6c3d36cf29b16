// Wakes one consumer that waits for something new; notifications without a waiting consumer are merged into one.

export class Notifier {
  #rung = false;
  #wake: () => void = () => {};

  notify(): void {
    this.#rung = true;
    this.#wake();
  }

  /** Resolves at the next notification, or immediately if there was one since the last time. Rejects on abort. */
  notified(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const done = () => {
        this.#wake = () => {};
        this.#rung = false;
        signal.removeEventListener("abort", abort);
        resolve();
      };
      const abort = () => {
        this.#wake = () => {};
        reject(signal.reason as Error);
      };
      if (signal.aborted) return abort();
      if (this.#rung) return done();
      this.#wake = done;
      signal.addEventListener("abort", abort, { once: true });
    });
  }
}
