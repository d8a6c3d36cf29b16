// The age of watches, from the status of a Source.
import { expect, it } from "vitest";
import { initialStatus, type ResourceStatus } from "../sources/source.ts";
import { watchAges } from "./watches.ts";

const quiet: ResourceStatus = { ...initialStatus, synced: true };

it("counts from the last sign of life, or from the beginning", () => {
  const status = {
    synced: true,
    resources: {
      Service: { ...quiet, heardAt: 5000 },
      EndpointSlice: { ...quiet, heardAt: 8000 },
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

it("has no age for a resource that is not watched yet", () => {
  const status = { synced: false, resources: { Service: { ...quiet, heardAt: 2000 } } };
  expect([...watchAges(status, 1000, 4000)]).toEqual([["services", 2000]]);
});
