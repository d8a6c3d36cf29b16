// Allocates host ports for relays: chosen by the kernel, or from a range, each once.
import { HostError } from "../error.ts";

/** Both ends belong to it. */
export type Range = { readonly first: number; readonly last: number };

export class RelayPorts {
  readonly #range: Range | null;
  readonly #random: () => number;
  readonly #inUse = new Set<number>();

  /** null: the kernel chooses. */
  constructor(range: Range | null, random: () => number) {
    this.#range = range;
    this.#random = random;
  }

  /** Opens with a free port, or 0 for any; tries the next when another program uses the port. */
  async open<T>(openAt: (port: number) => Promise<T>): Promise<T> {
    if (this.#range === null) return openAt(0);
    for (const port of this.#candidates(this.#range)) {
      this.#inUse.add(port);
      try {
        return await openAt(port);
      } catch (error) {
        this.#inUse.delete(port);
        if (!(error instanceof HostError) || error.errno !== "EADDRINUSE") throw error;
      }
    }
    throw new HostError("unavailable", exhausted);
  }

  release(port: number): void {
    this.#inUse.delete(port);
  }

  /** From somewhere in the range upwards, then from the bottom. */
  *#candidates({ first, last }: Range): Generator<number> {
    const size = last - first + 1;
    const start = Math.floor(this.#random() * size);
    for (let i = 0; i < size; i++) {
      const port = first + ((start + i) % size);
      if (!this.#inUse.has(port)) yield port;
    }
  }
}

/** The same message as kube-proxy v1.25. */
const exhausted =
  "port allocation failed; there are no remaining ports left to allocate in the accepted range";
