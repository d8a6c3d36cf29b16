// Gives memory back behind large Syncs, at a moment we choose, instead of in the middle of the next changes.
import type { Clock } from "../model/clock.ts";
import type { SyncRecord } from "../sync/record.ts";

/** A Sync of fewer ServicePorts leaves so little that it can wait for the ordinary collection. */
const largeSync = 500;
/** Loads come in several Syncs: the last one counts. */
const quietMs = 500;
/** The first collection thins the pages of the heap out; only the next one moves what is left together. */
const rounds = 2;

/** Give it every record. `collect` is V8's, which the programs in bin/ expose; without it V8 works at its own pace. */
export function collectAfterLargeSyncs(
  clock: Pick<Clock, "after">,
  collect: (() => void) | undefined = globalThis.gc,
): (record: Pick<SyncRecord, "changedPorts">) => void {
  let cancel = (): void => {};
  const after = (left: number): void => {
    cancel();
    cancel = clock.after(quietMs, () => {
      collect?.();
      if (left > 1) after(left - 1);
    });
  };
  return ({ changedPorts }) => {
    if (changedPorts >= largeSync) after(rounds);
  };
}
