// A huge change in several transactions: a newer change and other work go in between, and the record covers all of it.
import { expect, it } from "vitest";
import { endpoint, ipv4Settings, servicePort } from "../../test/support/routed.ts";
import { MemoryTableHost } from "../host/nftables/memoryhost.ts";
import { keyed } from "../model/keyed.ts";
import { noCauses, noTriggers, type ServicePort, type Snapshot } from "../model/snapshot.ts";
import { NftablesDriver } from "../modes/nftables/host/driver.ts";
import { countOperations, type Operation } from "../plan/nftables/diff.ts";
import type { FinishedSync } from "./flows.ts";
import { openLoop } from "./loop.ts";
import type { SyncRecord } from "./record.ts";

it("security/3: a change of another Service does not wait for a large one", async () => {
  const host = new MemoryTableHost("ip");
  const records: SyncRecord[] = [];
  const finished: FinishedSync[] = [];
  const loop = openLoop({
    snapshots: snapshots(),
    drivers: new Map([["ipv4", new NftablesDriver(host)]]),
    settings: () => ipv4Settings,
    pace: () => ({ gap: { kind: "period", ms: 0 }, retryMs: 1000, resyncMs: 1_000_000 }),
    clock: { wall: () => records.length, steady: () => 0, after: () => () => {} },
    cpuMs: () => 0,
    observers: [{ synced: (record) => records.push(record), afterSync: (sync) => finished.push(sync) }],
  });
  await loop.run(new AbortController().signal);

  const leadsToLarge = host.applied.findIndex((patch) => touches(patch, "service-ips", "172.30.255.2"));
  const changesSmall = host.applied.findLastIndex((patch) => touches(patch, "endpoints", "172.30.0.10"));
  expect(changesSmall).toBeGreaterThan(1);
  expect(changesSmall).toBeLessThan(leadsToLarge);

  expect(records.map(({ trigger }) => trigger)).toEqual(["first", "change"]);
  const written = host.applied.slice(1).reduce((sum, patch) => sum + countOperations(patch), 0);
  expect(records[1]).toMatchObject({ operations: written, changedPorts: 2, outcome: { kind: "ok" } });
  // What runs after a Sync receives the changes of all its turns.
  expect([...finished.at(-1)!.changed]).toEqual(["shop/large/tcp/", "shop/web/tcp/"]);
});

it("other work is done between the observers of a large Sync, and not after a small one", async () => {
  const many = Array.from({ length: 1000 }, (_, i) =>
    servicePort(`shop/s${i}`, { clusterIP: `172.30.${i >> 8}.${i & 255}` }),
  );
  const turns: number[] = [];
  let others = 0;
  const loop = openLoop({
    snapshots: (async function* () {
      yield snapshotOf(many, many);
      yield snapshotOf([...many, web(1)], [web(1)]);
    })(),
    drivers: new Map([["ipv4", new NftablesDriver(new MemoryTableHost("ip"))]]),
    settings: () => ipv4Settings,
    pace: () => ({ gap: { kind: "period", ms: 0 }, retryMs: 1000, resyncMs: 1_000_000 }),
    clock: { wall: () => 0, steady: () => 0, after: () => () => {} },
    cpuMs: () => 0,
    observers: [
      {
        synced: () => {
          others = 0;
          setImmediate(() => others++);
        },
        afterSync: () => turns.push(others),
      },
    ],
  });
  await loop.run(new AbortController().signal);
  expect(turns).toEqual([1, 0]);
});

async function* snapshots(): AsyncGenerator<Snapshot> {
  yield snapshotOf([web(1)], []);
  yield snapshotOf([web(1), large], [large]);
  yield snapshotOf([web(2), large], [web(2)]);
}

const large = servicePort("shop/large", {
  clusterIP: "172.30.255.2",
  endpoints: Array.from({ length: 100_000 }, (_, i) =>
    endpoint(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}:80`),
  ),
});

function web(endpoints: number): ServicePort {
  return servicePort("shop/web", {
    clusterIP: "172.30.0.10",
    endpoints: Array.from({ length: endpoints }, (_, i) => endpoint(`10.180.0.${i + 1}:80`)),
  });
}

const none = { ports: keyed<ServicePort>(), changed: new Set<string>(), serviceCIDRs: [] };

function snapshotOf(ports: readonly ServicePort[], changed: readonly ServicePort[]): Snapshot {
  return {
    ipv4: {
      ports: keyed(ports.map((port) => [port.key, port] as const)),
      changed: new Set(changed.map(({ key }) => key)),
      serviceCIDRs: none.serviceCIDRs,
    },
    ipv6: none,
    node: null,
    triggeredAt: noTriggers,
    causes: noCauses,
    problems: [],
  };
}

function touches(patch: readonly Operation[], set: string, address: string): boolean {
  return patch.some(
    (operation) =>
      "items" in operation &&
      operation.set.name === set &&
      operation.items.some(({ key }) => key.startsWith(`${address} `)),
  );
}
