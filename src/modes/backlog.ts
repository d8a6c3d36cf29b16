// ServicePorts that a driver still has to write, and those that the host refused; applies a Plan without the refused ones.
import type { Problem } from "../model/problem.ts";
import type { PortKey } from "../model/snapshot.ts";
import type { Applied } from "./driver.ts";

export type Attempts<Plan> = {
  /** Whether it is known what the host holds. */
  readonly isKnown: () => boolean;
  readonly without: (plan: Plan, keys: readonly PortKey[]) => Plan;
  /** `left`: keys that it did not write, because a newer Snapshot waits. */
  readonly attempt: (
    want: Plan,
    keys: readonly PortKey[],
  ) => Promise<Omit<Applied, "refused" | "unfinished"> & { readonly left?: readonly PortKey[] }>;
  /** The ServicePorts that a refusal concerns, with the reason; null: the error is not a refusal. */
  readonly refusedKeys: (error: unknown, want: Plan) => Iterable<readonly [PortKey, string]> | null;
};

export class Backlog {
  /** Keys that differ between what is wanted and what the host holds. */
  readonly #pending = new Set<PortKey>();
  /** What the host refused, and why: left out until it changes or is tried again. */
  readonly #refused = new Map<PortKey, string>();

  get refused(): readonly PortKey[] {
    return [...this.#refused.keys()];
  }

  /** How many keys differ. */
  get pending(): number {
    return this.#pending.size;
  }

  add(changed: Iterable<PortKey>, retryRefused: boolean): void {
    for (const key of changed) {
      this.#pending.add(key);
      this.#refused.delete(key);
    }
    if (!retryRefused) return;
    for (const key of this.#refused.keys()) this.#pending.add(key);
    this.#refused.clear();
  }

  /** A first refusal may mean that the host differs from the known state: then it is read. A second one names the refused part. */
  async reach<Plan>(
    whole: Plan,
    { isKnown, without, attempt, refusedKeys }: Attempts<Plan>,
  ): Promise<Applied> {
    for (let retries = 0; ; retries++) {
      const want = this.#refused.size === 0 ? whole : without(whole, this.refused);
      const wasKnown = isKnown();
      try {
        const { left = [], ...applied } = await attempt(want, [...this.#pending, ...this.#refused.keys()]);
        this.#pending.clear();
        for (const key of left) this.#pending.add(key);
        const refused = [...this.#refused].map(([key, reason]) => refusal(key, reason));
        return { ...applied, retries: retries, refused, ...(left.length > 0 ? { unfinished: true } : {}) };
      } catch (error) {
        const found = refusedKeys(error, want);
        if (found === null) throw error;
        if (!wasKnown && !this.#refuse(found)) throw error;
      }
    }
  }

  /** Whether a key is set aside that was not yet. */
  #refuse(keys: Iterable<readonly [PortKey, string]>): boolean {
    const before = this.#refused.size;
    for (const [key, reason] of keys) this.#refused.set(key, reason);
    return this.#refused.size > before;
  }
}

export function refusal(key: PortKey, reason: string): Problem {
  return {
    kind: "refused",
    object: `Service ${key.split("/").slice(0, 2).join("/")}`,
    field: "",
    message: `the kernel refused ${key}: ${reason}; all others are in place, and this one will be tried again`,
  };
}
