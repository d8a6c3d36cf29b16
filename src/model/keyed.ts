// An immutable map by string key whose copies share what did not change: a base, and what was written since in a layer.

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
  return new Layered<V>(new Map(), new Map(), 0).with(entries);
}

/** undefined: gone. */
type Layer<V> = ReadonlyMap<string, V | undefined>;

class Layered<V> implements Keyed<V> {
  readonly size: number;
  readonly #base: ReadonlyMap<string, V>;
  /** Written since the base was made; copied by every write, so it stays small. */
  readonly #layer: Layer<V>;

  constructor(base: ReadonlyMap<string, V>, layer: Layer<V>, size: number) {
    this.#base = base;
    this.#layer = layer;
    this.size = size;
  }

  get(key: string): V | undefined {
    return this.#getWith(this.#layer, key);
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  /** `undefined` as a value removes the key. Changes without an effect return the same map. */
  with(changes: Iterable<readonly [string, V | undefined]>): Keyed<V> {
    if (this.size === 0) return this.#filled(changes);
    let layer: Map<string, V | undefined> | null = null;
    let size = this.size;
    for (const [key, value] of changes) {
      const before = this.#getWith(layer ?? this.#layer, key);
      if (before === value) continue;
      layer ??= new Map(this.#layer);
      layer.set(key, value);
      size += Number(before === undefined) - Number(value === undefined);
    }
    if (layer === null) return this;
    return isLarge(layer, this.#base) ? this.#folded(layer) : new Layered(this.#base, layer, size);
  }

  keys(): IterableIterator<string> {
    return this.#layer.size === 0 ? this.#base.keys() : firsts(this.#merged());
  }

  values(): IterableIterator<V> {
    return this.#layer.size === 0 ? this.#base.values() : seconds(this.#merged());
  }

  entries(): IterableIterator<[string, V]> {
    return this.#layer.size === 0 ? this.#base.entries() : this.#merged();
  }

  *#merged(): IterableIterator<[string, V]> {
    for (const entry of this.#base) if (!this.#layer.has(entry[0])) yield entry;
    for (const [key, value] of this.#layer) if (value !== undefined) yield [key, value];
  }

  #getWith(layer: Layer<V>, key: string): V | undefined {
    return layer.size > 0 && layer.has(key) ? layer.get(key) : this.#base.get(key);
  }

  /** Of an empty map: there is nothing to share. */
  #filled(changes: Iterable<readonly [string, V | undefined]>): Keyed<V> {
    const base = isFull(changes) ? changes : written(new Map<string, V>(), changes);
    return base.size === 0 ? this : new Layered(base, new Map(), base.size);
  }

  #folded(layer: Layer<V>): Keyed<V> {
    const base = written(new Map(this.#base), layer);
    return new Layered(base, new Map(), base.size);
  }
}

function* firsts<A>(pairs: Iterable<readonly [A, unknown]>): IterableIterator<A> {
  for (const [first] of pairs) yield first;
}

function* seconds<B>(pairs: Iterable<readonly [unknown, B]>): IterableIterator<B> {
  for (const [, second] of pairs) yield second;
}

/** Whether these changes are a Map that removes nothing. */
function isFull<V>(
  changes: Iterable<readonly [string, V | undefined]>,
): changes is ReadonlyMap<string, V> & typeof changes {
  if (!(changes instanceof Map)) return false;
  for (const value of changes.values()) if (value === undefined) return false;
  return true;
}

function written<V>(
  map: Map<string, V>,
  changes: Iterable<readonly [string, V | undefined]>,
): ReadonlyMap<string, V> {
  for (const [key, value] of changes) {
    if (value === undefined) map.delete(key);
    else map.set(key, value);
  }
  return map;
}

/** At its square root, the copies of the layer between two copies of the base cost about as much as the latter. */
function isLarge(layer: Layer<unknown>, base: ReadonlyMap<string, unknown>): boolean {
  return layer.size ** 2 > base.size + 4096;
}
