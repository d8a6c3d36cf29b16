// Changes at a steady rate: how long each takes from the event to the first packet that arrives, and what all of them cost.
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeObject } from "../../test/reference/objects.ts";
import type { RunningProxy } from "../../test/reference/proxy.ts";
import { clusterOf, endpointAddress, type Size, serviceAddress, sliceObject } from "./cluster.ts";
import type { Stage } from "./stage.ts";
import { cpuSeconds } from "./usage.ts";

/** Latencies in milliseconds, CPU time of the process and its children in milliseconds for each change. */
export type Churn = {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly cpuPerChange: number;
  /** Changes that no packet confirmed in time. */
  readonly lost: number;
};

export type ChurnPlan = {
  readonly changesPerSecond: number;
  readonly seconds: number;
  /** Moves Services to the pods of this generation; another one than they have. */
  readonly generation: number;
  /** Which Services change: those with a UDP port too, or the others. */
  readonly protocol: "tcp" | "udp";
};

type Change = { readonly service: number; readonly at: number };

/** A change that takes longer than this counts as lost. */
const timeoutMs = 30_000;

/** Every tenth Service has a UDP port too: a change may leave stale flows. */
export function churnCluster(size: Size): readonly KubeObject[] {
  return clusterOf(size).map((object) => {
    const [, i] = /^service-(\d+)/.exec(object.metadata.name) ?? [];
    return i !== undefined && isUdp(Number(i)) ? withUdp(object) : object;
  });
}

/** Every change moves all endpoints of another Service. */
export async function churn(
  stage: Stage,
  { api, pid }: RunningProxy,
  size: Size,
  { changesPerSecond, seconds, generation, protocol }: ChurnPlan,
): Promise<Churn> {
  const services = Array.from({ length: size.services }, (_, i) => i).filter(
    (i) => isUdp(i) === (protocol === "udp"),
  );
  const count = Math.min(changesPerSecond * seconds, services.length);
  const cpuBefore = cpuSeconds(pid);
  const start = performance.now();
  let pending: Change[] = [];
  let isProducing = true;
  const produce = async (): Promise<void> => {
    for (let n = 0; n < count; n++) {
      await sleep(Math.max(0, start + (n * 1000) / changesPerSecond - performance.now()));
      const service = services[Math.floor(((n + 0.5) * services.length) / count)]!;
      const slice = sliceObject(service, size.endpoints, generation);
      pending.push({ service, at: performance.now() });
      api.put(isUdp(service) ? withUdp(slice) : slice);
    }
    isProducing = false;
  };
  const producing = produce();
  const latencies: number[] = [];
  let lost = 0;
  while (isProducing || pending.length > 0) {
    for (const change of [...pending]) {
      const isReached = await reaches(stage, change.service, size, generation);
      const waited = performance.now() - change.at;
      if (!isReached && waited < timeoutMs) continue;
      pending = pending.filter((other) => other !== change);
      if (isReached) latencies.push(waited);
      else lost++;
    }
    await sleep(1);
  }
  await producing;
  const cpuPerChange = ((cpuSeconds(pid) - cpuBefore) / count) * 1000;
  return { ...summary(latencies), cpuPerChange, lost };
}

function isUdp(service: number): boolean {
  return service % 10 === 5;
}

/** A Service or slice with one more port. */
function withUdp(object: KubeObject): KubeObject {
  const dns = { name: "dns", protocol: "UDP" };
  if (object.kind !== "Service")
    return { ...object, ports: [...(object.ports as []), { ...dns, port: 8080 }] };
  const spec = object.spec as { ports: [] };
  return { ...object, spec: { ...spec, ports: [...spec.ports, { ...dns, port: 53, targetPort: 8080 }] } };
}

async function reaches(
  stage: Stage,
  service: number,
  { endpoints }: Size,
  generation: number,
): Promise<boolean> {
  const reached = await stage.reach(serviceAddress(service), 80);
  const wanted = Array.from(
    { length: endpoints },
    (_, e) => `${endpointAddress(service, e, generation)}:8080`,
  );
  return reached !== null && wanted.includes(reached);
}

function summary(values: readonly number[]): Pick<Churn, "p50" | "p99" | "max"> {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? Number.NaN };
}
