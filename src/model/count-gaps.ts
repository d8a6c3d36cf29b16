// Times for which counts were lost, measured with the steady clock, so that setting the wall clock does not change how long they are.
import type { Moment } from "./clock.ts";

/** Milliseconds since 1970, on the clock as it was when the gap ended. */
export type CountGap = { readonly from: number; readonly to: number };

/** More than these are not remembered. */
const mostGaps = 20;

/** Oldest first; the latest few. */
export class GapLog {
  #gaps: readonly CountGap[] = [];
  /** The steady times of the last one. */
  #last: { readonly from: number; readonly to: number } | null = null;

  get all(): readonly CountGap[] {
    return this.#gaps;
  }

  /** What was counted between these moments is not known. A gap that follows another one without a break continues it. */
  add(since: Moment, now: Moment): void {
    const last = this.#last;
    const isContinued = last !== null && last.to >= since.steady;
    const from = isContinued ? Math.min(last.from, since.steady) : since.steady;
    const gap = { from: Math.round(now.wall - (now.steady - from)), to: Math.round(now.wall) };
    this.#gaps = [...(isContinued ? this.#gaps.slice(0, -1) : this.#gaps), gap].slice(-mostGaps);
    this.#last = { from, to: now.steady };
  }
}

/** Gaps of several counts as one list: those that overlap become one. */
export function mergedGaps(lists: readonly (readonly CountGap[])[]): readonly CountGap[] {
  const merged: CountGap[] = [];
  for (const gap of lists.flat().toSorted((a, b) => a.from - b.from)) {
    const last = merged.at(-1);
    if (last === undefined || gap.from > last.to) merged.push(gap);
    else merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, gap.to) };
  }
  return merged;
}
