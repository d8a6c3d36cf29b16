// The nftables mode: 10,000 and 30,000 Services with 10 endpoints each into the kernel; one change at each size; a restart.
import { encode } from "../src/host/netlink/batch.ts";
import { openSocket } from "../src/host/netlink/socket.ts";
import { encodePatch } from "../src/host/nftables/encode.ts";
import { keyed } from "../src/model/keyed.ts";
import { compareEndpoints, type FamilySnapshot, type ServicePort } from "../src/model/snapshot.ts";
import { compile } from "../src/modes/nftables/compile.ts";
import { openNftables } from "../src/modes/nftables/host/driver.ts";
import { after, batches } from "../src/plan/nftables/batches.ts";
import { diff } from "../src/plan/nftables/diff.ts";
import { settled, unfold, unfoldChanged } from "../src/plan/nftables/plan.ts";
import type { NftPlan } from "../src/plan/nftables/types.ts";
import { type Routes, route } from "../src/routing/routes.ts";
import type { Namespace } from "../test/kernel/netns.ts";
import { numberedEndpoint, numberedService, oneAddressSettings } from "../test/support/numbered.ts";
import { publish, type Row } from "./lib/measure.ts";
import { inNamespace, startAsRoot } from "./lib/run.ts";

const sizes = [10_000, 30_000];
const endpointsEach = 10;
const changes = 51;
const { signal } = new AbortController();

startAsRoot(async () => {
  const figures: Row[] = [];
  for (const size of sizes) figures.push(...(await inNamespace((netns) => measure(size, netns))));
  publish(figures);
});

async function measure(size: number, netns: Namespace): Promise<Row[]> {
  const label = `${size.toLocaleString("en")} × ${endpointsEach}`;
  const ports = Array.from({ length: size }, (_, i) => numberedService(i, endpointsEach, "http"));
  const parts = await inNamespace((other) => partsOfLoad(ports, other));
  global.gc?.();
  const driver = await openNftables({ family: "ip", netns: netns.path });
  let list = ports;
  let routes: Routes | null = null;
  let map = keyed(ports.map((port) => [port.key, port] as const));
  const sync = async (changed: readonly ServicePort[]) => {
    for (const port of changed) list = list.with(Number(port.name.slice(1)), port);
    map = map.with(changed.map((port) => [port.key, port] as const));
    const snapshot: FamilySnapshot = {
      ports: map,
      changed: new Set(changed.map(({ key }) => key)),
      serviceCIDRs,
    };
    routes = route(routes, snapshot, oneAddressSettings);
    return driver.sync(routes, signal);
  };
  const load = await timed(() => sync([]));
  const change = await changeMs(async (i) => sync([replaced(list[4711]!, i)]));
  const scale = await changeMs(async (i) => sync([scaled(list[4712]!, i)]));
  await driver.close();
  const restart = await timed(async () => {
    const next = await openNftables({ family: "ip", netns: netns.path });
    const { operations } = await next.sync(
      route(null, { ports: map, changed: new Set(), serviceCIDRs }, oneAddressSettings),
      signal,
    );
    await next.close();
    if (operations !== 0) throw new Error(`a restart wrote ${operations} objects`);
  });
  return [
    ...parts.map(({ what, value }) => ({ what: `${label}: ${what}, CPU`, value, unit: "ms" })),
    { what: `${label}: Snapshot → kernel, all in all`, value: load.ms, unit: "ms" },
    { what: `${label}: CPU of that`, value: load.cpu, unit: "ms" },
    { what: `${label}: bytes written`, value: load.result.bytes / 1e6, unit: "MB" },
    { what: `${label}: one endpoint replaced`, value: change, unit: "ms" },
    { what: `${label}: 10 endpoints → 11 and back`, value: scale, unit: "ms" },
    { what: `${label}: restart with nothing changed`, value: restart.ms, unit: "ms" },
    { what: `${label}: CPU of that`, value: restart.cpu, unit: "ms" },
    { what: `${label}: RSS`, value: process.memoryUsage.rss() / 2 ** 20, unit: "MiB" },
  ];
}

/** The same load taken apart, in CPU time. */
async function partsOfLoad(
  ports: readonly ServicePort[],
  netns: Namespace,
): Promise<{ what: string; value: number }[]> {
  const snapshot = {
    ports: keyed(ports.map((port) => [port.key, port] as const)),
    changed: new Set<string>(),
    serviceCIDRs,
  };
  const routing = timedNow(() => route(null, snapshot, oneAddressSettings));
  const compiling = timedNow(() => compile(null, routing.result));
  const want = compiling.result;
  const socket = await openSocket("netfilter", { netns: netns.path });
  let [diffMs, encodeMs, kernelMs] = [0, 0, 0];
  let applied: NftPlan | null = null;
  const cutting = timedNow(() => batches(null, want, want.fragments.keys()));
  for (const batch of cutting.result) {
    const before: NftPlan | null = applied;
    const { keys } = batch;
    const diffing = timedNow(() => {
      const plan = after(before, want, batch);
      const tables = before === null ? { have: null, want: unfold(plan) } : unfoldChanged(before, plan, keys);
      applied = settled(plan, keys, tables.have);
      return diff(tables.have, tables.want);
    });
    const encoding = timedNow(
      () =>
        encode(encodePatch(diffing.result, { family: "ip", tableFlags: 0 }).map(({ operation }) => operation))
          .bytes,
    );
    kernelMs += (await timed(() => socket.exchange(encoding.result))).cpu;
    diffMs += diffing.cpu;
    encodeMs += encoding.cpu;
  }
  await socket.close();
  return [
    { what: "route", value: routing.cpu },
    { what: "compile", value: compiling.cpu },
    { what: "cut and diff", value: cutting.cpu + diffMs },
    { what: "encode", value: encodeMs },
    { what: "kernel", value: kernelMs },
  ];
}

async function changeMs(change: (i: number) => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < changes; i++) times.push((await timed(() => change(i))).ms);
  return times.sort((a, b) => a - b)[changes >> 1]!;
}

type Timed<T> = { readonly ms: number; readonly cpu: number; readonly result: T };

async function timed<T>(work: () => Promise<T>): Promise<Timed<T>> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const result = await work();
  return { ms: performance.now() - start, cpu: cpuSince(cpu), result };
}

function timedNow<T>(work: () => T): Timed<T> {
  const [start, cpu] = [performance.now(), process.cpuUsage()];
  const result = work();
  return { ms: performance.now() - start, cpu: cpuSince(cpu), result };
}

/** Of all threads, user and system: what a busy machine does not change. */
function cpuSince(start: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1000;
}

function replaced(port: ServicePort, i: number): ServicePort {
  const [first, ...rest] = port.endpoints;
  const moved = { ...first!, address: `10.250.${i & 255}.1` };
  return { ...port, endpoints: [...rest, moved].sort(compareEndpoints) };
}

function scaled(port: ServicePort, i: number): ServicePort {
  const endpoints =
    i % 2 === 0
      ? [...port.endpoints, numberedEndpoint(4712, 200)]
      : port.endpoints.filter(({ address }) => !address.endsWith(".201"));
  return { ...port, endpoints: [...endpoints].sort(compareEndpoints) };
}

const serviceCIDRs = ["172.30.0.0/15"];
