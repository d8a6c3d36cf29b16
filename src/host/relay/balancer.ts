// Chooses a backend for each connection of a relay: at random or in turn, and the same one again for a known client.

export type RelayBackend = { readonly address: string; readonly port: number };

export type BalancerOptions = {
  /** `turn`: shuffled once, then one after the other. */
  readonly order: "random" | "turn";
  /** A number from 0 up to but not including 1. */
  readonly random: () => number;
  /** Milliseconds that never go back. */
  readonly now: () => number;
};

type Pin = { readonly backend: RelayBackend; usedAt: number };

/** Clients that are remembered at the same time; the one that was silent longest goes first. */
const mostPins = 65_535;

export class Balancer {
  readonly #options: BalancerOptions;
  readonly #pins = new Map<string, Pin>();
  #backends: readonly RelayBackend[] = [];
  #affinityMs: number | null = null;
  #next = 0;

  constructor(options: BalancerOptions) {
    this.#options = options;
  }

  /** The same set of backends again changes nothing; pins to backends that left, or of another time-out, go. */
  set(backends: readonly RelayBackend[], affinitySeconds: number | null): void {
    const affinityMs = affinitySeconds === null ? null : affinitySeconds * 1000;
    if (affinityMs !== this.#affinityMs) this.#pins.clear();
    this.#affinityMs = affinityMs;
    if (sameSet(backends, this.#backends)) return;
    this.#backends = this.#options.order === "turn" ? this.#shuffled(backends) : backends;
    this.#next = 0;
    const keys = new Set(backends.map(keyOf));
    for (const [client, { backend }] of this.#pins) if (!keys.has(keyOf(backend))) this.#pins.delete(client);
  }

  /** The backends to choose from, in round-robin order. */
  get backends(): readonly RelayBackend[] {
    return this.#backends;
  }

  /** Clients that are remembered. */
  get remembered(): number {
    return this.#pins.size;
  }

  /** null: there is none. A client whose backend failed is pinned to another one. */
  choose(client: string, afterFailure = false): RelayBackend | null {
    const now = this.#options.now();
    const pin = this.#affinityMs === null || afterFailure ? undefined : this.#pins.get(client);
    if (pin !== undefined && now - pin.usedAt <= this.#affinityMs!) {
      this.#remember(client, pin.backend, now);
      return pin.backend;
    }
    const backend = this.#pick();
    if (backend !== null && this.#affinityMs !== null) this.#remember(client, backend, now);
    return backend;
  }

  #pick(): RelayBackend | null {
    const count = this.#backends.length;
    if (count === 0) return null;
    if (this.#options.order === "random") return this.#backends[Math.floor(this.#options.random() * count)]!;
    return this.#backends[this.#next++ % count]!;
  }

  #remember(client: string, backend: RelayBackend, usedAt: number): void {
    this.#pins.delete(client);
    this.#pins.set(client, { backend, usedAt });
    for (const [longest, pin] of this.#pins) {
      if (this.#pins.size <= mostPins && usedAt - pin.usedAt <= this.#affinityMs!) break;
      this.#pins.delete(longest);
    }
  }

  #shuffled(backends: readonly RelayBackend[]): readonly RelayBackend[] {
    const list = [...backends];
    for (let i = list.length - 1; i > 0; i--) {
      const j = Math.floor(this.#options.random() * (i + 1));
      [list[i], list[j]] = [list[j]!, list[i]!];
    }
    return list;
  }
}

function sameSet(a: readonly RelayBackend[], b: readonly RelayBackend[]): boolean {
  if (a.length !== b.length) return false;
  const keys = new Set(a.map(keyOf));
  return b.every((backend) => keys.has(keyOf(backend)));
}

function keyOf({ address, port }: RelayBackend): string {
  return `${address} ${port}`;
}
