// How Syncs are spaced: by what they cost, unless `minSyncPeriod` is set.
import type { Duration } from "./units/duration.ts";

export type SyncPace =
  | {
      /** `minSyncPeriod` is absent or zero. */
      readonly kind: "cost";
      /** kube-proxy's default: what is validated and written instead. */
      readonly written: Duration;
    }
  | { readonly kind: "period"; readonly period: Duration };

/** A zero in a file counts as not set: kubeadm writes `0s`. */
export function paceFromFile(minSyncPeriod: Duration, written: Duration): SyncPace {
  return minSyncPeriod === 0n ? { kind: "cost", written } : { kind: "period", period: minSyncPeriod };
}

/** The `minSyncPeriod` that kube-proxy would have. */
export function writtenPeriod(pace: SyncPace): Duration {
  return pace.kind === "cost" ? pace.written : pace.period;
}
