// Many small waits side by side.

/** As many as keep the threads busy that read for us. */
const most = 8;

/** What becomes of each, in their order. */
export async function atOnce<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  let next = 0;
  const workers = Array.from({ length: Math.min(most, items.length) }, async () => {
    while (next < items.length) {
      const at = next++;
      done[at] = await work(items[at]!);
    }
  });
  await Promise.all(workers);
  return done;
}
