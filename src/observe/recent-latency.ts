// How long the latest changes of endpoints took to reach the kernel: percentiles of a bounded number of samples.

/** Milliseconds. */
export type Latency = { readonly p50: number; readonly p99: number; readonly samples: number };

export class RecentLatency {
  readonly #samples: Float64Array;
  #count = 0;

  constructor(most = 1000) {
    this.#samples = new Float64Array(most);
  }

  add(ms: number): void {
    this.#samples[this.#count++ % this.#samples.length] = ms;
  }

  /** null: there was no change yet. */
  read(): Latency | null {
    const samples = Math.min(this.#count, this.#samples.length);
    if (samples === 0) return null;
    const sorted = this.#samples.slice(0, samples).sort();
    const at = (share: number) => sorted[Math.min(samples - 1, Math.floor(share * samples))]!;
    return { p50: at(0.5), p99: at(0.99), samples };
  }
}
