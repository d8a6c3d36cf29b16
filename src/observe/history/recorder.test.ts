// Changes are recorded after they are in the kernel, with what their Syncs wrote, at a cost that follows the change.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { endpoint, node, service, slice } from "../../../test/objects.ts";
import { type ManualClock, manualClock } from "../../../test/support/manual-clock.ts";
import { plainRecord } from "../../../test/support/sync-record.ts";
import { finished } from "../../history/change.ts";
import { HistoryLog, stateAt } from "../../history/log.ts";
import { recordOf } from "../../history/record.ts";
import { Cluster } from "../../manifests/cluster.ts";
import type { Family } from "../../model/address.ts";
import type { Keyed } from "../../model/keyed.ts";
import type { ServicePort, Snapshot } from "../../model/snapshot.ts";
import type { SyncRecord } from "../../sync/record.ts";
import { HistoryRecorder, noStore } from "./recorder.ts";

function open(families: readonly Family[] = ["ipv4"]) {
  const clock: ManualClock = manualClock();
  const log = new HistoryLog({ bytes: 8_000_000, ageMs: 86_400_000 });
  const recorder = new HistoryRecorder({ log, node: "node-a", families, clock, store: noStore });
  const made = new Cluster("node-a");
  made.upsert("Service", service());
  let count = 0;
  const next = (type = "IPv4") => {
    const address = type === "IPv4" ? `10.0.1.${++count}` : `fd00::${++count}`;
    const object = slice([endpoint(address)], { addressType: type, metadata: { name: `web-${type}` } });
    made.upsert("EndpointSlice", object, { version: String(count), at: clock.wall() });
    return made.take();
  };
  const sync = (family: Family = "ipv4", more: Partial<SyncRecord> = {}) => {
    recorder.taken(family);
    clock.advance(5);
    recorder.synced({ ...plainRecord, family, finishedAt: clock.wall(), ...more });
  };
  return { clock, log, recorder, made, next, sync };
}

describe("what is written", () => {
  it("is recorded only after the Sync, with its operations and the time since the event", async () => {
    const { recorder, log, next, sync } = open();
    recorder.arrived(next());
    await recorder.idle();
    expect([log.size, log.beginsAt]).toEqual([0, Date.UTC(2026, 0, 2, 3, 4, 5)]);
    recorder.arrived(next());
    await new Promise(setImmediate);
    expect(log.size).toBe(0);
    sync("ipv4", { operations: 7 });
    await recorder.idle();
    expect(log.stored[0]!.written).toEqual({
      ipv4: { at: expect.any(Number), latencyMs: 5, operations: 7, together: 1, refused: 0, failed: null },
    });
  });

  it("of changes that one Sync writes together is the same for each", async () => {
    const { recorder, log, next, sync } = open();
    recorder.arrived(next());
    for (let i = 0; i < 3; i++) recorder.arrived(next());
    sync();
    await recorder.idle();
    expect(log.stored.map(({ written }) => written.ipv4?.together)).toEqual([3, 3, 3]);
  });

  it("is that of the Sync that took the change, not of one that began before", async () => {
    const { recorder, log, next, sync } = open();
    recorder.arrived(next());
    recorder.taken("ipv4");
    recorder.arrived(next());
    recorder.synced({ ...plainRecord, operations: 1 });
    await recorder.idle();
    expect(log.stored.map(({ written }) => written)).toEqual([{}]);
    sync("ipv4", { operations: 2 });
    expect(log.stored.map(({ written }) => written.ipv4?.operations)).toEqual([2]);
  });

  it("by a Sync that fails is replaced by that of the one that succeeds", async () => {
    const { recorder, log, next, sync } = open();
    recorder.arrived(next());
    recorder.arrived(next());
    sync("ipv4", { outcome: { kind: "failed", message: "EBUSY".repeat(1000) } });
    await recorder.idle();
    expect(log.stored[0]!.written.ipv4!.failed).toHaveLength(300);
    sync("ipv4", { trigger: "retry", operations: 9 });
    expect(log.stored[0]!.written.ipv4).toMatchObject({ failed: null, operations: 9 });
    sync("ipv4", { trigger: "resync", operations: 0 });
    expect(log.stored[0]!.written.ipv4).toMatchObject({ operations: 9 });
  });

  it("is kept by family, and only of families that the change concerns", async () => {
    const { recorder, log, next, sync, made } = open(["ipv4", "ipv6"]);
    made.upsert(
      "Service",
      service({ clusterIPs: ["172.30.0.10", "fd30::10"], ipFamilies: ["IPv4", "IPv6"] }),
    );
    recorder.arrived(next());
    recorder.arrived(next("IPv6"));
    sync("ipv4");
    sync("ipv6", { operations: 3 });
    await recorder.idle();
    expect(Object.keys(log.stored[0]!.written)).toEqual(["ipv6"]);
  });
});

it("a Sync that hangs does not keep the change from being recorded", async () => {
  const { recorder, log, next, clock } = open();
  recorder.arrived(next());
  await recorder.idle();
  recorder.arrived(next());
  clock.advance(249);
  await new Promise(setImmediate);
  expect(log.size).toBe(0);
  clock.advance(1);
  await expect.poll(() => log.size).toBe(1);
});

it("a Snapshot that changes nothing for packets adds no entry; this Node's zone does", async () => {
  const { recorder, log, made, next } = open();
  recorder.arrived(next());
  recorder.arrived({ ...made.take(), problems: [] });
  made.upsert("Node", node("node-a", { metadata: { labels: { "topology.kubernetes.io/zone": "a" } } }));
  recorder.arrived(made.take());
  await recorder.idle();
  expect(log.stored.map(({ text }) => JSON.parse(text).undo)).toEqual([{ node: null }]);
});

describe("with 100,000 Services", () => {
  const services = 100_000;
  const made = new Cluster("node-a");
  made.replace(
    "Service",
    Array.from({ length: services }, (_, i) =>
      service(
        { clusterIP: `172.${30 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}` },
        { metadata: { name: `s-${i}` } },
      ),
    ),
  );
  const owner = { labels: { "kubernetes.io/service-name": "s-7" } };
  made.upsert("EndpointSlice", slice([endpoint("10.0.1.1")], { metadata: owner }));
  const before = made.take();
  made.upsert("EndpointSlice", slice([endpoint("10.0.1.2")], { metadata: owner }));
  const now = made.take();

  it("a change of one is recorded and undone by reading that one", () => {
    expect(now.ipv4.ports.size).toBe(services);
    const calls = { get: 0, all: 0 };
    const [counted, countedNow] = [countingCalls(before, calls), countingCalls(now, calls)];
    const log = new HistoryLog({ bytes: 8_000_000, ageMs: 1e9 });
    log.begin(counted, 0);
    const stored = log.append(
      finished(recordOf(counted, countedNow, 0))!,
      { at: 1, steadyAt: 1 },
      countedNow,
    );
    expect(stored!.text.length).toBeLessThan(1000);
    const then = finished(stateAt(log, 0)) as Snapshot;
    expect(then.ipv4.ports.get("shop/s-7/tcp/http")!.endpoints).toEqual(
      before.ipv4.ports.get("shop/s-7/tcp/http")!.endpoints,
    );
    expect(calls.all).toBe(0);
    expect(calls.get).toBeLessThan(10);
  });
});

it("the memory of the log is at most its estimate", () => {
  setFlagsFromString("--expose-gc");
  const gc = runInNewContext("gc") as () => void;
  const { next } = open();
  const states = Array.from({ length: 200 }, () => next());
  const log = new HistoryLog({ bytes: 1e9, ageMs: 1e12 });
  log.begin(states[0]!, 0);
  gc();
  const start = process.memoryUsage().heapUsed;
  const written = { at: 1, latencyMs: 1, operations: 1, together: 1, refused: 0 };
  for (let i = 1; i <= 20_000; i++) {
    const recorded = finished(recordOf(states[(i - 1) % 199]!, states[((i - 1) % 199) + 1]!, 0))!;
    const stored = log.append(recorded, { at: i, steadyAt: i }, states[199]!);
    for (const family of ["ipv4", "ipv6"] as const)
      stored!.written[family] = {
        ...written,
        failed: i % 10 === 0 ? `refused ${i} ${"x".repeat(200)}` : null,
      };
  }
  gc();
  const used = process.memoryUsage().heapUsed - start;
  expect(log.size).toBe(20_000);
  expect(used).toBeLessThan(log.bytes);
  expect(used).toBeGreaterThan(log.bytes / 3);
});

/** Counts reads of one ServicePort, and everything that reads or copies all. */
function countingCalls(snapshot: Snapshot, calls: { get: number; all: number }): Snapshot {
  const counted = (ports: Keyed<ServicePort>): Keyed<ServicePort> => {
    const all =
      <T>(run: () => T) =>
      () => {
        calls.all++;
        return run();
      };
    return {
      size: ports.size,
      get: (key) => {
        calls.get++;
        return ports.get(key);
      },
      has: (key) => {
        calls.get++;
        return ports.has(key);
      },
      with: (changes) => {
        calls.all++;
        return ports.with(changes);
      },
      keys: all(() => ports.keys()),
      values: all(() => ports.values()),
      entries: all(() => ports.entries()),
    };
  };
  return { ...snapshot, ipv4: { ...snapshot.ipv4, ports: counted(snapshot.ipv4.ports) } };
}
