// The gap between Syncs as arithmetic: budget, share, limit.
import { describe, expect, it } from "vitest";
import {
  type Budget,
  burstMs,
  changeAt,
  fullBudget,
  type Gap,
  longestGapMs,
  reportPace,
  share,
  spend,
} from "./pace.ts";

const byCost: Gap = { kind: "cost" };
const empty: Budget = { ms: 0, at: 0 };
const gapAfter = (budget: Budget) => changeAt(byCost, budget, { end: budget.at, failed: false }) - budget.at;

describe("pacing by cost", () => {
  it("leaves no gap while the budget lasts", () => {
    const once = spend(fullBudget, 100, 1000);
    expect([once.ms, gapAfter(once)]).toEqual([burstMs - 100, 0]);
  });

  it("refills with time, up to the burst and no further", () => {
    const work = { ms: 0, at: 1000 };
    expect(spend(work, 0, 2000).ms).toBeCloseTo(share * 1000);
    expect(spend(work, 0, 1_000_000).ms).toBe(burstMs);
  });

  it.for([2, 20, 100])("a Sync of %i ms without budget is followed by a gap in proportion", (costMs) => {
    const gap = gapAfter(spend({ ...empty, at: 0 }, costMs, costMs));
    expect(costMs / (costMs + gap)).toBeCloseTo(share);
  });

  it("leaves no gap longer than the limit, and remembers no more work than that", () => {
    const dear = spend(empty, 10_000, 10_000);
    expect(gapAfter(dear)).toBe(longestGapMs);
    expect(gapAfter(spend(dear, 10_000, 10_001))).toBe(longestGapMs);
    expect(spend(dear, 0, 10_000 + longestGapMs).ms).toBe(0);
  });

  it("a family waits no longer than the limit after its own Sync, whatever the other one does", () => {
    const other = spend(empty, 10_000, 10_900);
    expect(changeAt(byCost, other, { end: 10_000, failed: false })).toBe(11_000);
  });

  it("leaves the longest gap after a failure", () => {
    expect(changeAt(byCost, fullBudget, { end: 500, failed: true })).toBe(500 + longestGapMs);
  });

  it("is not charged for a clock that was not advanced", () => {
    expect(spend({ ms: 10, at: 100 }, 5, 50).ms).toBe(5);
  });
});

describe("a period", () => {
  it.for([0, 10, 5000])("of %i ms is the gap, whatever Syncs cost", (ms) => {
    const spent = spend(empty, 10_000, 10_000);
    const gap: Gap = { kind: "period", ms };
    expect(changeAt(gap, spent, { end: 10_000, failed: false })).toBe(10_000 + ms);
    expect(changeAt(gap, fullBudget, { end: 10_000, failed: true })).toBe(10_000 + ms);
  });
});

describe("the report", () => {
  const last = { end: 1000, failed: false };

  it.for([
    [spend(fullBudget, 2, 1000), last, { gapMs: 0, reason: "budget", budgetMs: burstMs - 2 }],
    [{ ms: -1.5, at: 1000 }, last, { gapMs: 10, reason: "cost", budgetMs: 0 }],
    [{ ms: -150, at: 1000 }, last, { gapMs: 1000, reason: "limit", budgetMs: 0 }],
    [fullBudget, { ...last, failed: true }, { gapMs: 1000, reason: "failure", budgetMs: burstMs }],
  ] as const)("names the reason: %j", ([budget, of, expected]) => {
    expect(reportPace(byCost, budget, of, 2)).toEqual({ kind: "cost", costMs: 2, ...expected });
  });

  it("names the period", () => {
    expect(reportPace({ kind: "period", ms: 20 }, fullBudget, last, 2)).toEqual({
      kind: "period",
      gapMs: 20,
    });
  });
});
