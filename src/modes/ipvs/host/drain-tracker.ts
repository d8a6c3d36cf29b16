// Checks real servers that drain, every minute and when they begin to, and deletes those without connections.
import { HostError } from "../../../host/error.ts";
import type { IpvsHost } from "../../../host/ipvs/host.ts";
import type { Clock } from "../../../model/clock.ts";
import { type Draining, settle } from "../../../plan/ipvs/drain.ts";
import type { Operation, ServerId } from "../../../plan/ipvs/types.ts";

const periodMs = 60_000;

export class DrainTracker {
  readonly #host: Pick<IpvsHost, "readDestinations" | "apply">;
  #draining: Draining = new Map();

  constructor(host: Pick<IpvsHost, "readDestinations" | "apply">) {
    this.#host = host;
  }

  get all(): Draining {
    return this.#draining;
  }

  /** From now on these drain; the new ones are checked now. Returns how many operations that took. */
  async become(draining: Draining, signal: AbortSignal): Promise<number> {
    const begun = new Map([...draining].filter(([key]) => !this.#draining.has(key)));
    this.#draining = draining;
    return this.#verification(begun, signal);
  }

  /** Checks all of them every minute until the signal aborts; `alone` excludes Syncs meanwhile. */
  follow(clock: Clock, alone: (work: () => Promise<void>) => Promise<void>, signal: AbortSignal): void {
    const check = async () => {
      try {
        await alone(async () => void (await this.#verification(this.#draining, signal)));
      } catch (error) {
        // The next check finds them again, and the next Sync reports what is wrong.
        if (!(error instanceof HostError) && !signal.aborted) throw error;
      }
      if (!signal.aborted) cancel = clock.after(periodMs, () => void check());
    };
    let cancel = clock.after(periodMs, () => void check());
    signal.addEventListener("abort", () => cancel(), { once: true });
  }

  async #verification(some: Draining, signal: AbortSignal): Promise<number> {
    if (some.size === 0) return 0;
    const seen = await this.#host.readDestinations(serversOf(some), signal);
    const { draining, ended } = settle(some, seen);
    const operations = [...ended.values()].map(
      ({ server, destination }): Operation => ({ kind: "delete destination", server, destination }),
    );
    const failures = operations.length === 0 ? [] : (await this.#host.apply(operations, signal)).failures;
    const keys = [...ended.keys()];
    const kept = new Set([...draining.keys(), ...failures.map(({ operation }) => keys[operation]!)]);
    this.#draining = new Map([...this.#draining].filter(([key]) => !some.has(key) || kept.has(key)));
    return operations.length - failures.length;
  }
}

/** Each once. */
function serversOf(draining: Draining): ServerId[] {
  const byKey = new Map(
    [...draining].map(([key, { server }]) => [key.slice(0, key.lastIndexOf("/")), server]),
  );
  return [...byKey.values()];
}
