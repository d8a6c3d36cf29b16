// Collects garbage after the start and after large Syncs, while the daemon is idle, instead of during the next changes, and returns memory to the kernel.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { native } from "../host/netlink/native.ts";
import type { Clock } from "../model/clock.ts";
import type { SyncRecord } from "../sync/record.ts";

/** Smaller Syncs leave little garbage, other than the first one: the start itself leaves some. */
const largeSync = 500;
/** A load takes several Syncs: collect after the last one. */
const quietMs = 500;

type Heap = {
  /** Collects V8's garbage, and returns the memory. */
  readonly collect: () => void;
  /** Returns memory that malloc keeps, such as that of collected buffers. */
  readonly trim: () => void;
};

const heap: Heap = { collect: collectGarbage, trim: () => void native().then((system) => system.trimHeap()) };

/** Call it with every record. */
export function collectAfterLoads(
  clock: Pick<Clock, "after">,
  { collect, trim }: Heap = heap,
): (record: Pick<SyncRecord, "changedPorts">) => void {
  let cancel = (): void => {};
  let isFirst = true;
  return ({ changedPorts }) => {
    if (changedPorts < largeSync && !isFirst) return;
    isFirst = false;
    cancel();
    cancel = clock.after(quietMs, () => {
      collect();
      trim();
    });
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
