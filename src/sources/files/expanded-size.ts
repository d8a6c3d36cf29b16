// How many values there are once every alias is replaced by what it refers to: a few lines can expand to billions.

/** Counts each shared value once for each reference, without expanding it. Infinite for a value that contains itself. */
export function expandedSize(value: unknown, limit: number): number {
  const sizes = new Map<object, number>();
  return sizeOf(value);

  function sizeOf(some: unknown): number {
    if (typeof some !== "object" || some === null) return 1;
    const known = sizes.get(some);
    if (known !== undefined) return known;
    // Found again before its size is known, it contains itself.
    sizes.set(some, Number.POSITIVE_INFINITY);
    let size = 1;
    for (const part of Object.values(some)) {
      size += sizeOf(part);
      if (size > limit) break;
    }
    sizes.set(some, size);
    return size;
  }
}
