// Whether two plain values are equal all the way down.

export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && sameItems(a, b);
  return !Array.isArray(b) && sameFields(a as Fields, b as Fields);
}

type Fields = Readonly<Record<string, unknown>>;

function sameItems(a: readonly unknown[], b: readonly unknown[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!same(a[i], b[i])) return false;
  return true;
}

function sameFields(a: Fields, b: Fields): boolean {
  let more = 0;
  for (const key in a) {
    if (!(Object.hasOwn(b, key) && same(a[key], b[key]))) return false;
    more++;
  }
  for (const _ in b) more--;
  return more === 0;
}
