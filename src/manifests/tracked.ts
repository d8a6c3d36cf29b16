// A map that tracks changes since it was last settled; a change that was reverted does not count.
import { same } from "../model/same.ts";

type Equality<V> = {
  /** Whether putting one value in the place of the other is no change. */
  isSame(a: V | undefined, b: V | undefined): boolean;
};

export class Tracked<V> {
  readonly #now = new Map<string, V>();
  /** The value of each changed key when it was last settled. */
  readonly #before = new Map<string, V | undefined>();
  readonly #equality: Equality<V>;

  constructor(equality: Equality<V> = { isSame: same }) {
    this.#equality = equality;
  }

  get(key: string): V | undefined {
    return this.#now.get(key);
  }

  /** In no particular order. */
  keys(): string[] {
    return [...this.#now.keys()];
  }

  values(): IterableIterator<V> {
    return this.#now.values();
  }

  get dirty(): boolean {
    return this.#before.size > 0;
  }

  /** `undefined` removes. A value equal to the one there changes nothing and keeps its identity. Returns what is there now. */
  set(key: string, value: V | undefined): V | undefined {
    const current = this.#now.get(key);
    if (this.#equality.isSame(current, value)) return current;
    const next = this.#settledOr(key, current, value);
    if (next === undefined) this.#now.delete(key);
    else this.#now.set(key, next);
    return next;
  }

  /** Puts an equal value in the place of the one there, which is no change. */
  exchange(key: string, value: V): void {
    this.#now.set(key, value);
  }

  /** Keys that differ from when it was last settled, with their values then. */
  changes(): ReadonlyMap<string, V | undefined> {
    return this.#before;
  }

  /** The value when it was last settled. */
  settled(key: string): V | undefined {
    return this.#before.has(key) ? this.#before.get(key) : this.#now.get(key);
  }

  settle(): void {
    this.#before.clear();
  }

  #settledOr(key: string, current: V | undefined, value: V | undefined): V | undefined {
    if (!this.#before.has(key)) {
      this.#before.set(key, current);
      return value;
    }
    const settled = this.#before.get(key);
    if (!this.#equality.isSame(settled, value)) return value;
    this.#before.delete(key);
    return settled;
  }
}
