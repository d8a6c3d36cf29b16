// The status keeps the troubles of each family until that family is rid of them.
import { expect, it } from "vitest";
import type { Family } from "../../model/address.ts";
import type { Problem } from "../../model/problem.ts";
import type { SyncRecord } from "../../sync/record.ts";
import { keepStatus, type StatusFacts } from "./status.ts";

const problem = (object: string): Problem => ({ kind: "refused", object, field: "", message: "no" });

function synced(family: Family, outcome: SyncRecord["outcome"]): SyncRecord {
  return { family, outcome, finishedAt: 5 } as unknown as SyncRecord;
}

it("a Sync after a change has the objects that changed, of many the first", () => {
  const object = (name: string) => ({
    kind: "EndpointSlice" as const,
    namespace: "shop",
    name,
    event: "modified" as const,
    resourceVersion: "7",
    receivedAt: 1,
  });
  const keeper = keepStatus({} as StatusFacts, {
    source: () => ({ synced: true, resources: {} }),
    configuration: () => "",
    problems: () => [],
    waits: () => null,
    now: () => 0,
  });
  const causes = { objects: ["a", "b", "c", "d"].map(object), more: 5 };
  const sync = (trigger: SyncRecord["trigger"]) =>
    keeper.synced({ ...synced("ipv4", { kind: "ok", refused: [] }), trigger });
  expect(keeper.lastSync()).toBeNull();
  keeper.taken("ipv4", { causes: { objects: [object("a")], more: 0 } });
  keeper.taken("ipv6", { causes });
  sync("change");
  keeper.taken("ipv4", { causes });
  sync("change");
  // Other addresses of the node: no new Snapshot.
  sync("change");
  keeper.taken("ipv4", { causes });
  sync("resync");
  expect(keeper.lastSync()?.trigger).toBe("resync");
  expect(keeper.status().syncs.map(({ objects }) => objects)).toEqual([
    undefined,
    undefined,
    [
      "EndpointSlice shop/a modified",
      "EndpointSlice shop/b modified",
      "EndpointSlice shop/c modified",
      "and 6 more",
    ],
    ["EndpointSlice shop/a modified"],
  ]);
});

it("what one family refused stays when the other syncs, and goes when it is accepted", () => {
  const keeper = keepStatus({} as StatusFacts, {
    source: () => ({ synced: true, resources: {} }),
    configuration: () => "",
    problems: () => [problem("Service shop/odd")],
    waits: () => null,
    now: () => 0,
  });
  const objects = () => keeper.status().problems.map(({ object }) => object);
  keeper.synced(synced("ipv4", { kind: "ok", refused: [problem("Service shop/web")] }));
  keeper.synced(synced("ipv6", { kind: "ok", refused: [] }));
  keeper.synced(synced("ipv4", { kind: "failed", message: "killed" }));
  expect(objects()).toEqual(["Service shop/odd", "Service shop/web"]);
  keeper.synced(synced("ipv4", { kind: "ok", refused: [] }));
  expect(objects()).toEqual(["Service shop/odd"]);
});
