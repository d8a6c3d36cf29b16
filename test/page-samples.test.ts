// Counters over time, as the page keeps them: bounded, and without values that were never read.
import { expect, it } from "vitest";
import { chartData, sampled } from "../page/samples.ts";
import type { PortTrafficJson } from "../src/page/json.ts";

const port = (connections: number) =>
  ({ row: { connections, refused: connections / 10, active: 3 } }) as PortTrafficJson;

it("has the rate since the reading before, and none over a gap or a counter that began again", () => {
  for (const [at, connections] of [
    [0, 100],
    [2_000, 120],
    [4_000, 150],
    [60_000, 900],
    [62_000, 10],
    [64_000, 30],
  ] as const)
    sampled("rates", at + 1_000_000, port(connections));
  const [times, rates, refused, active] = chartData(sampled("rates", null, null));
  expect(times.map((time) => time - 1000)).toEqual([0, 2, 4, 60, 62, 64]);
  expect(rates).toEqual([null, 10, 15, null, null, 10]);
  expect(refused).toEqual([null, 1, 1.5, null, null, 1]);
  expect(active).toEqual([3, 3, 3, 3, 3, 3]);
});

it("is zero where there was no traffic, and takes no reading twice", () => {
  sampled("quiet", 1_000, null);
  sampled("quiet", 1_000, null);
  expect(sampled("quiet", 3_000, null)).toEqual([
    { at: 1_000, connections: 0, refused: 0, active: 0 },
    { at: 3_000, connections: 0, refused: 0, active: 0 },
  ]);
});

it("keeps 300 readings of 50 ports", () => {
  for (let i = 1; i <= 400; i++) sampled("long", i, port(i));
  expect(sampled("long", null, null)).toHaveLength(300);
  for (let i = 0; i < 50; i++) sampled(`port ${i}`, 1, port(1));
  expect(sampled("long", null, null)).toHaveLength(0);
  expect(sampled("port 0", null, null)).toHaveLength(1);
});
