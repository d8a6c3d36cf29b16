// What the history costs at 10,000 × 10: CPU of recording a change, in memory and in a directory, beside that of the Sync that writes the change.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistoryLog } from "../src/history/log.ts";
import { Cluster } from "../src/manifests/cluster.ts";
import { type Kind, slim } from "../src/manifests/objects.ts";
import type { Snapshot } from "../src/model/snapshot.ts";
import { openNftables } from "../src/modes/nftables/host/driver.ts";
import { systemClock } from "../src/observe/clock.ts";
import { HistoryDirectory } from "../src/observe/history/directory.ts";
import { HistoryRecorder, type HistoryStore, noStore } from "../src/observe/history/recorder.ts";
import { type Routes, route } from "../src/routing/routes.ts";
import type { Namespace } from "../test/kernel/netns.ts";
import { logLines } from "../test/support/log-lines.ts";
import { oneAddressSettings } from "../test/support/numbered.ts";
import { plainRecord } from "../test/support/sync-record.ts";
import { clusterOf, nodeName, type Size, sliceObject } from "./lib/cluster.ts";
import { publish, type Row } from "./lib/measure.ts";
import { inNamespace, startAsRoot } from "./lib/run.ts";

const size: Size = { services: 10_000, endpoints: 10 };
const rounds = 10;
const changesPerRound = 100;
const { signal } = new AbortController();

startAsRoot(async () => {
  const folder = mkdtempSync(join(tmpdir(), "turnout-bench-"));
  try {
    publish(await inNamespace((netns) => measure(netns, folder)));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

type Work = (snapshot: Snapshot) => Promise<void>;

/** The parts take turns with each change, as in a daemon, and the best round counts: other work on the machine slows all of them. */
async function measure(netns: Namespace, folder: string): Promise<Row[]> {
  const cluster = new Cluster(nodeName);
  for (const object of clusterOf(size))
    cluster.upsert(object.kind as Kind, slim(object.kind as Kind, object));
  const first = cluster.take();
  const { log } = logLines(systemClock);
  const directory = new HistoryDirectory({
    directory: folder,
    node: nodeName,
    clock: systemClock,
    log,
    signal,
  });
  const sync = await openSync(netns, first);
  const parts: Record<string, Work> = {
    Sync: sync.write,
    "history in memory": await openRecording(noStore, first),
    "history in a directory": await openRecording(directory, first),
  };
  const rows: Row[] = [];
  for (const moved of [size.endpoints, 1]) {
    const best = Object.values(parts).map(() => Number.POSITIVE_INFINITY);
    for (let round = 0; round < rounds; round++) {
      const spent = await microseconds(Object.values(parts), (i) =>
        changed(cluster, i * 97, moved, 1 + (round % 2)),
      );
      for (const [i, value] of spent.entries()) best[i] = Math.min(best[i]!, value);
    }
    rows.push(...rowsOf(`${moved} of ${size.endpoints} endpoints`, Object.keys(parts), best));
  }
  await directory.close();
  await sync.close();
  return rows;
}

function rowsOf(title: string, names: readonly string[], best: readonly number[]): Row[] {
  return names.flatMap((name, i): Row[] => {
    const value = best[i]!;
    const cost: Row = { what: `${title}, ${name}: CPU per change`, value, unit: "µs" };
    if (i === 0) return [cost];
    const share = (100 * value) / best[0]!;
    return [cost, { what: `${title}, ${name}: of a Sync`, value: share, unit: "%" }];
  });
}

/** Routes, Plan, difference and kernel: without the watch, the log and metrics. */
async function openSync(netns: Namespace, first: Snapshot) {
  const driver = await openNftables({ family: "ip", netns: netns.path });
  let routes: Routes | null = null;
  const write: Work = async ({ ipv4 }) => {
    routes = route(routes, ipv4, oneAddressSettings);
    await driver.sync(routes, signal);
  };
  await write(first);
  return { write, close: () => driver.close() };
}

async function openRecording(store: HistoryStore, first: Snapshot): Promise<Work> {
  const log = new HistoryLog({ bytes: 8 << 20, ageMs: 86_400_000 });
  const families = ["ipv4", "ipv6"] as const;
  const recorder = new HistoryRecorder({ log, node: nodeName, families, clock: systemClock, store });
  recorder.arrived(first);
  await recorder.idle();
  return async (snapshot) => {
    recorder.arrived(snapshot);
    recorder.taken("ipv4");
    recorder.synced({ ...plainRecord, finishedAt: Date.now() });
    await recorder.idle();
  };
}

/** CPU of each part for one change. */
async function microseconds(parts: readonly Work[], change: (i: number) => Snapshot): Promise<number[]> {
  globalThis.gc?.();
  const spent = parts.map(() => 0);
  for (let i = 0; i < changesPerRound; i++) {
    const snapshot = change(i);
    for (const [part, work] of parts.entries()) {
      const before = process.cpuUsage();
      await work(snapshot);
      const { user, system } = process.cpuUsage(before);
      spent[part]! += user + system;
    }
  }
  return spent.map((sum) => sum / changesPerRound);
}

/** Moves the first endpoints of a Service to pods of another generation, and the others back to the first one. */
function changed(cluster: Cluster, service: number, moved: number, generation: number): Snapshot {
  const [now, before] = [generation, 0].map((each) => sliceObject(service, size.endpoints, each));
  const endpoints = [
    ...(now!.endpoints as object[]).slice(0, moved),
    ...(before!.endpoints as object[]).slice(moved),
  ];
  const received = { version: String(service), at: Date.now() };
  cluster.upsert("EndpointSlice", slim("EndpointSlice", { ...now!, endpoints }), received);
  return cluster.take();
}
