// Counters of Service ports over time: kept in this tab only, and only of ports that it has shown.
import type { PortTrafficJson } from "../src/page/json.ts";

/** Totals at a moment; null: not known. */
export type TrafficPoint = {
  readonly at: number;
  readonly connections: number | null;
  readonly refused: number | null;
  readonly active: number | null;
};

/** Ten minutes, with a reading every two seconds. */
const mostPoints = 300;
const mostSeries = 50;

const series = new Map<string, readonly TrafficPoint[]>();

/** Adds a reading, and returns all that are known of this port. */
export function sampled(
  key: string,
  at: number | null,
  port: PortTrafficJson | null,
): readonly TrafficPoint[] {
  const before = series.get(key) ?? [];
  const last = before.at(-1);
  if (at === null || (last !== undefined && last.at >= at)) return before;
  const row = port?.row;
  // What had no traffic is not in the report.
  const none = port === null ? 0 : null;
  const point = {
    at,
    connections: row?.connections ?? none,
    refused: row?.refused ?? none,
    active: row?.active ?? none,
  };
  const points = [...before, point].slice(-mostPoints);
  series.delete(key);
  series.set(key, points);
  for (const oldest of series.keys()) {
    if (series.size <= mostSeries) break;
    series.delete(oldest);
  }
  return points;
}

/** Longer than between two readings: nobody has watched meanwhile, and a line would invent what was. */
const longestGapMs = 15_000;

/** Times in seconds, new connections a second, refused packets a second, active connections. */
export function chartData(points: readonly TrafficPoint[]): [number[], ...(number | null)[][]] {
  const rates = (of: "connections" | "refused") => points.map((_, i) => rateAt(points, i, of));
  return [
    points.map(({ at }) => at / 1000),
    rates("connections"),
    rates("refused"),
    points.map(({ active }) => active),
  ];
}

function rateAt(points: readonly TrafficPoint[], i: number, of: "connections" | "refused"): number | null {
  const [before, now] = [points[i - 1], points[i]!];
  if (before === undefined || now.at - before.at > longestGapMs) return null;
  const [then, value] = [before[of], now[of]];
  // A counter that is smaller began again.
  if (then === null || value === null || value < then) return null;
  return (1000 * (value - then)) / (now.at - before.at);
}
