// Gaps in what was counted: how they continue each other, and what setting the clock does to them.
import { describe, expect, it } from "vitest";
import { GapLog, mergedGaps } from "./count-gaps.ts";

const at = (steady: number, wall = 1_000_000 + steady) => ({ steady, wall });

describe("gaps", () => {
  it("are from one moment to another, and one that follows without a break continues the one before", () => {
    const log = new GapLog();
    log.add(at(100), at(200));
    log.add(at(200), at(300));
    log.add(at(100), at(350));
    log.add(at(400), at(500));
    expect(log.all).toEqual([
      { from: 1_000_100, to: 1_000_350 },
      { from: 1_000_400, to: 1_000_500 },
    ]);
  });

  it.each([-3_600_000, 3_600_000])(
    "are as long as they were when the clock is set by %d ms in between",
    (step) => {
      const log = new GapLog();
      log.add(at(100), at(200, 1_000_200 + step));
      expect(log.all).toEqual([{ from: 1_000_100 + step, to: 1_000_200 + step }]);
      log.add(at(1000, 1_001_000 + step), at(1500, 1_001_500));
      expect(log.all.map(({ from, to }) => to - from)).toEqual([100, 500]);
    },
  );

  it("are the latest 20", () => {
    const log = new GapLog();
    for (let i = 0; i < 25; i++) log.add(at(i * 10), at(i * 10 + 5));
    expect(log.all).toHaveLength(20);
    expect(log.all.at(-1)).toEqual({ from: 1_000_240, to: 1_000_245 });
  });

  it("of both IP families are one where they overlap", () => {
    const v4 = [
      { from: 10, to: 20 },
      { from: 50, to: 60 },
    ];
    const v6 = [
      { from: 15, to: 18 },
      { from: 19, to: 30 },
    ];
    expect(mergedGaps([v4, v6])).toEqual([
      { from: 10, to: 30 },
      { from: 50, to: 60 },
    ]);
  });
});
