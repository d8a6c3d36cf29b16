// The figures of one kube-proxy at one size: how fast it gets ready and follows changes, and what it costs.

import { setTimeout as sleep } from "node:timers/promises";
import { enter } from "../../test/reference/foothold.ts";
import { type Configuration, type Mode, type RunningProxy, startProxy } from "../../test/reference/proxy.ts";
import {
  clusterOf,
  endpointAddress,
  nodeName,
  type Size,
  serviceAddress,
  serviceObject,
  sliceObject,
} from "./cluster.ts";
import { median } from "./measure.ts";
import { cachedProtobuf } from "./protobuf.ts";
import type { Stage } from "./stage.ts";
import { cpuSeconds, peakMiB, residentMiB } from "./usage.ts";

/** Times in seconds, memory in MiB, latency in microseconds. */
export type Figures = {
  readonly ready: number;
  readonly flip: number;
  readonly add: number;
  readonly cpuToReady: number;
  readonly cpuPerChange: number;
  readonly rss: number;
  /** The most that was resident until it was ready. */
  readonly peak: number;
  readonly firstPacketP50: number;
  readonly firstPacketP99: number;
  readonly connectionsPerSecond: number;
};

/** null: not ready within the timeout. */
export async function measure(
  stage: Stage,
  program: string,
  mode: Mode,
  size: Size,
  { patience, changes }: { readonly patience: number; readonly changes: number },
): Promise<Figures | null> {
  const foothold = enter(stage.node);
  const proxy = await startProxy(
    foothold,
    program,
    configurationOf(mode),
    nodeName,
    clusterOf(size),
    cachedProtobuf(),
  );
  try {
    const ready = await untilReached(stage, size.services - 1, size, 0, patience);
    if (ready === null) return null;
    const [cpuToReady, peak] = [cpuSeconds(proxy.pid), peakMiB(proxy.pid)];
    await sleep(2500);
    const flips = await flipMany(stage, proxy, size, changes);
    const adds = await addMany(stage, proxy, size, Math.min(5, changes));
    const packets = firstPackets(stage, size);
    return {
      ready,
      cpuToReady,
      peak,
      flip: median(flips.times),
      cpuPerChange: flips.cpu / changes,
      add: median(adds),
      rss: residentMiB(proxy.pid),
      ...packets,
    };
  } finally {
    await proxy.stop();
    await foothold.leave();
    stage.sweep();
  }
}

/** The default periods, as kubeadm writes them: zeros. */
export function configurationOf(mode: Mode): Configuration {
  const periods = { minSyncPeriod: "0s", syncPeriod: "0s" };
  return { mode, detectLocalMode: "ClusterCIDR", clusterCIDR: "10.0.0.0/8", [mode]: periods };
}

async function flipMany(
  stage: Stage,
  { api, pid }: RunningProxy,
  size: Size,
  count: number,
): Promise<{ times: number[]; cpu: number }> {
  const before = cpuSeconds(pid);
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const i = Math.floor(((n + 0.5) * size.services) / count);
    api.put(sliceObject(i, size.endpoints, 1));
    times.push((await untilReached(stage, i, size, 1, 60)) ?? 60);
    await sleep(1200);
  }
  return { times, cpu: cpuSeconds(pid) - before };
}

/** Seconds until each of this many new Services answers. */
export async function addMany(
  stage: Stage,
  { api }: RunningProxy,
  size: Size,
  count: number,
): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < count; n++) {
    const i = size.services + n;
    api.put(serviceObject(i));
    api.put(sliceObject(i, size.endpoints));
    times.push((await untilReached(stage, i, size, 0, 60)) ?? 60);
    await sleep(2200);
  }
  return times;
}

/** Seconds until a connection to the Service reaches one of these endpoints; null after the timeout. */
export async function untilReached(
  stage: Stage,
  i: number,
  { endpoints }: Size,
  generation: number,
  patience: number,
): Promise<number | null> {
  const wanted = new Set(
    Array.from({ length: endpoints }, (_, e) => `${endpointAddress(i, e, generation)}:8080`),
  );
  const started = performance.now();
  for (;;) {
    const reached = await stage.reach(serviceAddress(i), 80);
    const seconds = (performance.now() - started) / 1000;
    if (reached !== null && wanted.has(reached)) return seconds;
    if (seconds > patience) return null;
    await sleep(1);
  }
}

function firstPackets(
  stage: Stage,
  { services }: Size,
): Pick<Figures, "firstPacketP50" | "firstPacketP99" | "connectionsPerSecond"> {
  const count = 2000;
  const started = performance.now();
  const times = Array.from({ length: count }, (_, n) =>
    stage.firstPacket(serviceAddress(Math.floor((n * services) / count)), 80),
  ).filter((time) => time !== null);
  const seconds = (performance.now() - started) / 1000;
  const sorted = times.sort((a, b) => a - b);
  return {
    firstPacketP50: sorted[sorted.length >> 1] ?? Number.NaN,
    firstPacketP99: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    connectionsPerSecond: times.length / seconds,
  };
}
