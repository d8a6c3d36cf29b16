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
  return make<V>(emptyBuckets as Buckets<V>, 0).with(entries);
}

type Buckets<V> = readonly ReadonlyMap<string, V>[];

const emptyBucket: ReadonlyMap<string, never> = new Map<string, never>();
const emptyBuckets: Buckets<never> = Array.from({ length: bucketCount }, () => emptyBucket);

function make<V>(buckets: Buckets<V>, size: number): Keyed<V> {
  const map: Keyed<V> = {
    size,
    get: (key) => buckets[bucketOf(key)]!.get(key),
    has: (key) => buckets[bucketOf(key)]!.has(key),
    with: (changes) => changed(map, buckets, changes),
    *keys() {
      for (const bucket of buckets) if (bucket.size > 0) yield* bucket.keys();
    },
    *values() {
      for (const bucket of buckets) if (bucket.size > 0) yield* bucket.values();
    },
    *entries() {
      for (const bucket of buckets) if (bucket.size > 0) yield* bucket.entries();
    },
  };
  return map;
}

/** `undefined` as a value removes the key. Changes that change nothing give the very same map. */
function changed<V>(
  map: Keyed<V>,
  buckets: Buckets<V>,
  changes: Iterable<readonly [string, V | undefined]>,
): Keyed<V> {
  let copy: ReadonlyMap<string, V>[] | null = null;
  const own = new Set<number>();
  let count = map.size;
  for (const [key, value] of changes) {
    const at = bucketOf(key);
    const before = (copy ?? buckets)[at]!;
    if (value === undefined ? !before.has(key) : before.get(key) === value) continue;
    copy ??= [...buckets];
    if (!own.has(at)) {
      copy[at] = new Map(before);
      own.add(at);
    }
    const bucket = copy[at] as Map<string, V>;
    if (value === undefined) {
      bucket.delete(key);
      count--;
    } else {
      if (!bucket.has(key)) count++;
      bucket.set(key, value);
    }
  }
  return copy === null ? map : make(copy, count);
}

function bucketOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) & (bucketCount - 1);
}
