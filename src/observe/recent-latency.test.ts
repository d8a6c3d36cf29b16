// Percentiles of the latest samples.
import { expect, it } from "vitest";
import { RecentLatency } from "./recent-latency.ts";

it("has none before the first sample, and forgets the oldest", () => {
  const latency = new RecentLatency(100);
  expect(latency.read()).toBeNull();
  latency.add(7);
  expect(latency.read()).toEqual({ p50: 7, p99: 7, samples: 1 });
  for (let ms = 1; ms <= 100; ms++) latency.add(ms);
  expect(latency.read()).toEqual({ p50: 51, p99: 100, samples: 100 });
  for (let i = 0; i < 60; i++) latency.add(1000);
  expect(latency.read()).toEqual({ p50: 1000, p99: 1000, samples: 100 });
});
