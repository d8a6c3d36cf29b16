// An immutable map by string key whose copies share what did not change: one write copies one small bucket.

const bucketBits = 10;
const bucketCount = 1 << bucketBits;

/** Immutable. `with` and `without` give a new map; the old one stays valid. */
export type Keyed<V> = {
  readonly size: number;
  get(key: string): V | undefined;
  has(key: string): boolean;
  with(changes: Iterable<readonly [string, V | undefined]>): Keyed<V>;
  keys(): IterableIterator<string>;
  values(): IterableIterator<V>;
  entries(): IterableIterator<[string, V]>;
};

/** A map of the given entries. */
export function keyed<V>(entries: Iterable<readonly [string, V]> = []): Keyed<V> {
  return new Bucketed<V>(emptyBuckets as Buckets<V>, 0).with(entries);
}

type Buckets<V> = readonly ReadonlyMap<string, V>[];

const emptyBucket: ReadonlyMap<string, never> = new Map<string, never>();
const emptyBuckets: Buckets<never> = Array.from({ length: bucketCount }, () => emptyBucket);

class Bucketed<V> implements Keyed<V> {
  readonly size: number;
  readonly #buckets: Buckets<V>;

  constructor(buckets: Buckets<V>, size: number) {
    this.#buckets = buckets;
    this.size = size;
  }

  get(key: string): V | undefined {
    return this.#buckets[bucketOf(key)]!.get(key);
  }

  has(key: string): boolean {
    return this.#buckets[bucketOf(key)]!.has(key);
  }

  /** `undefined` as a value removes the key. Changes that change nothing give the very same map. */
  with(changes: Iterable<readonly [string, V | undefined]>): Keyed<V> {
    let copy: ReadonlyMap<string, V>[] | null = null;
    let size = this.size;
    for (const [key, value] of changes) {
      const at = bucketOf(key);
      const before = (copy ?? this.#buckets)[at]!;
      const had = before.has(key);
      if (value === undefined ? !had : had && before.get(key) === value) continue;
      copy ??= this.#buckets.slice();
      let bucket = copy[at] as Map<string, V>;
      if (bucket === this.#buckets[at]) {
        bucket = new Map(before);
        copy[at] = bucket;
      }
      if (value === undefined) {
        bucket.delete(key);
        size--;
      } else {
        bucket.set(key, value);
        if (!had) size++;
      }
    }
    return copy === null ? this : new Bucketed(copy, size);
  }

  *keys(): IterableIterator<string> {
    for (const bucket of this.#buckets) if (bucket.size > 0) yield* bucket.keys();
  }

  *values(): IterableIterator<V> {
    for (const bucket of this.#buckets) if (bucket.size > 0) yield* bucket.values();
  }

  *entries(): IterableIterator<[string, V]> {
    for (const bucket of this.#buckets) if (bucket.size > 0) yield* bucket.entries();
  }
}

function bucketOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) & (bucketCount - 1);
}
