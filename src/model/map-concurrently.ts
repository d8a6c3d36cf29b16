// Runs an asynchronous function for many items, a few at a time.

/** Enough to keep the threads that read files busy. */
const workerCount = 8;

/** The results, in the order of the items. */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  const workers = Array.from({ length: Math.min(workerCount, items.length) }, async () => {
    while (next < items.length) {
      const at = next++;
      done[at] = await work(items[at]!);
    }
  });
  await Promise.all(workers);
  return done;
}
