// Collects garbage after the start and after large Syncs, while the daemon is idle, instead of during the next changes, and returns memory to the kernel.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { native } from "../host/netlink/native.ts";
import type { Family } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { SyncRecord } from "../sync/record.ts";

/** Smaller Syncs leave little garbage, other than the first one: the start itself leaves some. */
const largeSync = 500;
/** A load takes several Syncs: collect after the last one. */
const quietMs = 500;

/** A tenant can cause a large Sync every second: collections, for which all other work waits, take a twentieth of the time at most. */
const share = 20;

type Heap = {
  /** Collects V8's garbage, and returns the memory. */
  readonly collect: () => void;
  /** Returns memory that malloc keeps, such as that of collected buffers. */
  readonly trim: () => void;
};

const heap: Heap = { collect: collectGarbage, trim: () => void native().then((system) => system.trimHeap()) };

type Finished = Pick<SyncRecord, "family" | "changedPorts">;

/** To be notified of every Sync. */
export function collectAfterLoads(
  clock: Pick<Clock, "after" | "steady">,
  { collect, trim }: Heap = heap,
): { readonly taken: (family: Family) => void; readonly synced: (record: Finished) => void } {
  const syncing = new Set<Family>();
  let cancel = (): void => {};
  let isFirst = true;
  let notBefore = Number.NEGATIVE_INFINITY;
  const collectSoon = (): void => {
    cancel();
    cancel = clock.after(Math.max(quietMs, notBefore - clock.steady()), () => {
      if (syncing.size > 0) return collectSoon();
      const start = clock.steady();
      collect();
      trim();
      notBefore = clock.steady() + (clock.steady() - start) * share;
    });
  };
  return {
    taken: (family) => void syncing.add(family),
    synced({ family, changedPorts }) {
      syncing.delete(family);
      if (changedPorts < largeSync && !isFirst) return;
      isFirst = false;
      collectSoon();
    },
  };
}

/**
 * Started with `--expose-gc`, Node.js would have to compile its own modules: the code it ships for them is valid only
 * without the flag. So the flag is set for a moment; a new context then has the function.
 */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options: object) => void;
  setFlagsFromString("--no-expose-gc");
  // Other collections compact few pages, and keep free ones for later.
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
