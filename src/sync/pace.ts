// The gap between two Syncs: a fixed period, or one in proportion to what Syncs cost, from a budget that time refills.

export type Gap =
  /** `minSyncPeriod` is not set. */
  { readonly kind: "cost" } | { readonly kind: "period"; readonly ms: number };

/** Share of one core that the Syncs of all families together may use in the long run. */
export const share = 0.15;

/** Work that can be done without a gap after two seconds without any. */
export const burstMs = 300;

/** No family waits longer than this after its last Sync, whatever it cost: kube-proxy's default period. */
export const longestGapMs = 1000;

/** Milliseconds of work that may be done now; below zero: work that was done in advance. */
export type Budget = { readonly ms: number; readonly at: number };

export const fullBudget: Budget = { ms: burstMs, at: Number.NEGATIVE_INFINITY };

/** After work of `costMs` that ended now. */
export function spend(budget: Budget, costMs: number, now: number): Budget {
  return { ms: Math.max(available(budget, now) - costMs, -longestGapMs * share), at: now };
}

/** A family's last Sync: its end, and whether it failed. */
export type LastSync = { readonly end: number; readonly failed: boolean };

/** When a family may sync a change. */
export function changeAt(gap: Gap, budget: Budget, last: LastSync): number {
  if (gap.kind === "period") return last.end + gap.ms;
  const latest = last.end + longestGapMs;
  return last.failed ? latest : Math.min(latest, budget.at + owedMs(budget) / share);
}

/** How Syncs are paced, and why: as of a family's last Sync. */
export type PaceReport =
  | { readonly kind: "period"; readonly gapMs: number }
  | {
      readonly kind: "cost";
      readonly costMs: number;
      /** What is left of the burst. */
      readonly budgetMs: number;
      readonly gapMs: number;
      /** What the gap follows from. */
      readonly reason: "budget" | "cost" | "limit" | "failure";
    };

export function reportPace(gap: Gap, budget: Budget, last: LastSync, costMs: number): PaceReport {
  if (gap.kind === "period") return { kind: "period", gapMs: gap.ms };
  const gapMs = Math.max(0, changeAt(gap, budget, last) - last.end);
  const reason = last.failed ? "failure" : gapMs >= longestGapMs ? "limit" : gapMs > 0 ? "cost" : "budget";
  return { kind: "cost", costMs, budgetMs: Math.max(0, budget.ms), gapMs, reason };
}

function available({ ms, at }: Budget, now: number): number {
  return Math.min(burstMs, ms + Math.max(0, now - at) * share);
}

function owedMs({ ms }: Budget): number {
  return Math.max(0, -ms);
}
