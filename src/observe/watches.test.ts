// The age of watches, from what a Source says of itself.
import { expect, it } from "vitest";
import type { ResourceStatus } from "../sources/source.ts";
import { watchAges } from "./watches.ts";

const quiet: ResourceStatus = {
  synced: true,
  refused: false,
  lastEventAt: null,
  lastError: null,
  reconnects: 0,
  failures: 0,
  relists: 0,
  watchSince: null,
};

it("counts from the last sign of life, or from the beginning", () => {
  const status = {
    synced: true,
    resources: {
      Service: { ...quiet, lastEventAt: 5000, watchSince: 1000 },
      EndpointSlice: { ...quiet, lastEventAt: 5000, watchSince: 8000 },
      Node: quiet,
      ServiceCIDR: { ...quiet, refused: true },
    },
  };
  expect([...watchAges(status, 2000, 10_000)]).toEqual([
    ["services", 5000],
    ["endpointslices", 2000],
    ["nodes", 8000],
  ]);
});

it("is never negative, though the clock be set back; a resource not watched yet has no age", () => {
  const status = { synced: false, resources: { Service: { ...quiet, lastEventAt: 5000 } } };
  expect([...watchAges(status, 2000, 4000)]).toEqual([["services", 0]]);
});
