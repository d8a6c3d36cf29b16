// A small seeded random generator: the same seed always generates the same cluster.

export type Random = {
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  one<T>(values: readonly T[]): T;
  /** Some of the values, in their order. */
  some<T>(values: readonly T[], probability: number): T[];
  /** Up to `count` different values in random order. */
  sample<T>(values: readonly T[], count: number): T[];
};

export function seeded(seed: number): Random {
  const next = mulberry32(seed);
  const between = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    between,
    chance: (probability) => next() < probability,
    one: (values) => values[between(0, values.length - 1)]!,
    some: (values, probability) => values.filter(() => next() < probability),
    sample(values, count) {
      const rest = [...values];
      return Array.from({ length: Math.min(count, rest.length) }, () =>
        rest.splice(between(0, rest.length - 1), 1),
      ).flat();
    },
  };
}

function mulberry32(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
