// The chart of Syncs: duration and operations over time.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { SyncPoint } from "../src/page/json.ts";
import { count, millis } from "./format.ts";

export function SyncChart({ points }: { readonly points: readonly SyncPoint[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  useEffect(() => {
    const element = frame.current!;
    const plot = new uPlot(optionsOf(element), dataOf(points), element);
    chart.current = plot;
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: 160 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(dataOf(points)), [points]);
  const longest = Math.max(...points.map(({ ms }) => ms));
  return (
    <div
      ref={frame}
      class="chart"
      role="img"
      aria-label={`${count(points.length, "Sync")}, the longest took ${millis(longest)}`}
    />
  );
}

function dataOf(points: readonly SyncPoint[]): uPlot.AlignedData {
  // Two families may end a Sync in the same millisecond, and times must increase.
  let last = 0;
  const times = points.map(({ at }) => {
    last = Math.max(last + 0.001, at / 1000);
    return last;
  });
  return [times, points.map(({ ms }) => ms), points.map(({ operations }) => operations)];
}

function optionsOf(element: Element): uPlot.Options {
  const style = getComputedStyle(element);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const axis = {
    stroke: colour("--dim"),
    grid: { stroke: colour("--line") },
    ticks: { stroke: colour("--line") },
  };
  return {
    width: element.clientWidth,
    height: 160,
    legend: { show: true, live: true },
    cursor: { y: false },
    scales: { ms: { range: fromZero }, operations: { range: fromZero } },
    axes: [
      axis,
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

function fromZero(_: uPlot, __: number, most: number): [number, number] {
  return [0, Math.max(1, most * 1.1)];
}
