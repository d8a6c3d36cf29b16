// An immutable map by string key: the newest version holds a Map, older versions hold what differs from the next one.

/**
 * Immutable. `with` returns a new map; the old one stays valid. In no particular order.
 * A Map handed to `with` must not be written any more: an empty map becomes that one instead of copying it.
 */
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
  return new Version<V>(new Shared(new Map())).with(entries);
}

/** The Map of the newest version, which older versions refer to. */
class Shared<V> {
  readonly map: Map<string, V>;
  /** Values that older versions keep; bounds what an old version that is held can retain. */
  replaced = 0;
  /** Iterations under way: the Map must not change below them. */
  readers = 0;

  constructor(map: Map<string, V>) {
    this.map = map;
  }
}

/** A version that is no longer the newest: the values it has instead of those of the next version, which shares its Map. */
type Older<V> = { readonly next: Version<V>; readonly instead: ReadonlyMap<string, V | undefined> };

// Why not copies or layers: docs/decisions/0009-versions-of-one-map.md.
class Version<V> implements Keyed<V> {
  readonly size: number;
  readonly #shared: Shared<V>;
  /** null: the newest version. */
  #older: Older<V> | null = null;

  constructor(shared: Shared<V>) {
    this.#shared = shared;
    this.size = shared.map.size;
  }

  get(key: string): V | undefined {
    for (let older = this.#older; older !== null; older = older.next.#older)
      if (older.instead.has(key)) return older.instead.get(key);
    return this.#shared.map.get(key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** `undefined` as a value removes the key. Changes without an effect return the same map. */
  with(changes: Iterable<readonly [string, V | undefined]>): Keyed<V> {
    if (this.size === 0) return this.#filled(changes);
    // All changes are read before the first is made: they may be computed from this map.
    const now = changes instanceof Map ? (changes as ReadonlyMap<string, V | undefined>) : new Map(changes);
    const instead = new Map<string, V | undefined>();
    for (const [key, value] of now) {
      const before = this.get(key);
      if (before !== value) instead.set(key, before);
    }
    return instead.size === 0 ? this : this.#next(now, instead);
  }

  *keys(): IterableIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): IterableIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  *entries(): IterableIterator<[string, V]> {
    if (this.#older !== null) return yield* this.#copy();
    const shared = this.#shared;
    shared.readers++;
    try {
      yield* shared.map;
    } finally {
      shared.readers--;
    }
  }

  #next(now: ReadonlyMap<string, V | undefined>, instead: ReadonlyMap<string, V | undefined>): Version<V> {
    const isInPlace = this.#older === null && this.#shared.readers === 0 && !this.#retainsMuch();
    const shared = isInPlace ? this.#shared : new Shared(this.#copy());
    for (const key of instead.keys()) write(shared.map, key, now.get(key));
    const next = new Version(shared);
    if (isInPlace) {
      shared.replaced += instead.size;
      this.#older = { next, instead };
    }
    return next;
  }

  /** An old version that is held keeps all replaced values alive: at most about as many as a copy would. */
  #retainsMuch(): boolean {
    return this.#shared.replaced > this.size + 1024;
  }

  #copy(): Map<string, V> {
    const chain: Older<V>[] = [];
    for (let older = this.#older; older !== null; older = older.next.#older) chain.push(older);
    const copy = new Map(this.#shared.map);
    for (const { instead } of chain.reverse()) for (const [key, value] of instead) write(copy, key, value);
    return copy;
  }

  /** Of an empty map: there is nothing to share. */
  #filled(changes: Iterable<readonly [string, V | undefined]>): Keyed<V> {
    if (isFull(changes)) return changes.size === 0 ? this : new Version(new Shared(changes));
    const map = new Map<string, V>();
    for (const [key, value] of changes) write(map, key, value);
    return map.size === 0 ? this : new Version(new Shared(map));
  }
}

/** Whether these changes are a Map that removes nothing. */
function isFull<V>(changes: Iterable<readonly [string, V | undefined]>): changes is Map<string, V> {
  if (!(changes instanceof Map)) return false;
  for (const value of changes.values()) if (value === undefined) return false;
  return true;
}

function write<V>(map: Map<string, V>, key: string, value: V | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
