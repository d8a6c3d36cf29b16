// Runs long work of the history in steps, so that the daemon's other work does not wait for it.
import { setImmediate as nextTurn } from "node:timers/promises";

/** Time for which steps run without a pause. */
const stretchMs = 4;

export async function finishedInTurns<T>(steps: Generator<void, T>): Promise<T> {
  let since = performance.now();
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    if (performance.now() - since < stretchMs) continue;
    await nextTurn();
    since = performance.now();
  }
}
