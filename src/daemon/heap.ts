// Collects garbage after large Syncs, while the daemon is idle, instead of during the next changes.
import type { Clock } from "../model/clock.ts";
import type { SyncRecord } from "../sync/record.ts";

/** Smaller Syncs leave little garbage. */
const largeSync = 500;
/** A load takes several Syncs: collect after the last one. */
const quietMs = 500;
/** The first collection frees objects; only the next one compacts the pages and returns them. */
const rounds = 2;

/** Call it with every record. `collect` is V8's, which the programs in bin/ expose; without it nothing is done. */
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
