// The chart of Syncs: duration and operations over time.
import type uPlot from "uplot";
import type { SyncPoint } from "../src/page/json.ts";
import { clockTime, count, millis } from "./format.ts";
import { axisOf, fromZero, Plot } from "./plot.tsx";

export function SyncChart({ points }: { readonly points: readonly SyncPoint[] }) {
  const longest = Math.max(...points.map(({ ms }) => ms));
  const label = `${count(points.length, "Sync")}, the longest took ${millis(longest)}`;
  return <Plot label={label} height={160} data={dataOf(points)} options={optionsOf} />;
}

/** Between two times on the axis, which are printed without fractions of a second. */
const tickSeconds = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400];

function dataOf(points: readonly SyncPoint[]): uPlot.AlignedData {
  // Two families may end a Sync in the same millisecond, and times must increase.
  let last = 0;
  const times = points.map(({ at }) => {
    last = Math.max(last + 0.001, at / 1000);
    return last;
  });
  return [times, points.map(({ ms }) => ms), points.map(({ operations }) => operations)];
}

function optionsOf(colour: (name: string) => string): Omit<uPlot.Options, "width" | "height"> {
  const axis = axisOf(colour);
  return {
    legend: { show: true, live: false },
    cursor: { y: false },
    scales: { ms: { range: fromZero }, operations: { range: fromZero } },
    axes: [
      {
        ...axis,
        space: 80,
        incrs: tickSeconds,
        values: (_, ticks) => ticks.map((tick) => clockTime(tick * 1000)),
      },
      { ...axis, scale: "ms", values: (_, ticks) => ticks.map((tick) => `${tick} ms`), size: 60 },
      { ...axis, scale: "operations", side: 1, grid: { show: false }, size: 50 },
    ],
    series: [
      {},
      {
        label: "duration (ms)",
        scale: "ms",
        stroke: colour("--accent"),
        width: 2,
        paths: () => null,
        points: { show: true, size: 7, fill: colour("--accent") },
      },
      {
        label: "operations",
        scale: "operations",
        stroke: colour("--warn"),
        width: 1.5,
        paths: () => null,
        points: { show: true, size: 5 },
      },
    ],
  };
}
