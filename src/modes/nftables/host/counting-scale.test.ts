// Counting among 100,000 Services: a change costs the same as among few, a read asks for each element once, and memory is bounded.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { manualClock } from "../../../../test/support/manual-clock.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../../../../test/support/routed.ts";
import { MemoryTableHost } from "../../../host/nftables/memoryhost.ts";
import { momentOf } from "../../../model/clock.ts";
import type { ServicePort } from "../../../model/snapshot.ts";
import { elementId } from "../../../plan/nftables/key.ts";
import { NftablesDriver } from "./driver.ts";

const signal = new AbortController().signal;
const settings = { ...ipv4Settings, traffic: "services" } as const;

class ReadHost extends MemoryTableHost {
  requests = 0;
  elements = 0;

  override readPackets(...args: Parameters<MemoryTableHost["readPackets"]>) {
    this.requests++;
    this.elements += args[1].length;
    return super.readPackets(...args);
  }
}

it("one changed Service takes as many operations among 100,000 as among 100, and reads are by key", async () => {
  const small = await measured(100);
  const large = await measured(100_000);
  expect(large.operations).toBe(small.operations);
  expect(large.bytes).toBe(small.bytes);
  // The element of first packets and that of refused ones, for each address.
  expect([small.elements, large.elements]).toEqual([200, 200_000]);
  expect(large.requests).toBe(2 * Math.ceil(100_000 / 1024));
  expect(large.connections).toBe(3);
  // What is kept for a Service: two places with their values, and a sum.
  expect(large.heapBytes / 100_000).toBeLessThan(1500);
  expect(large.secondReadBytes).toBeLessThan(large.heapBytes / 2);
}, 120_000);

async function measured(services: number) {
  const clock = manualClock();
  const host = new ReadHost("ip");
  const driver = new NftablesDriver(
    host,
    (ms, run) => clock.after(ms, run),
    () => momentOf(clock),
  );
  const ports = Array.from({ length: services }, (_, i) => web(i, "10.180.1.1:80"));
  const first = routed(ports, settings);
  await driver.sync(first, signal);
  const empty = heapAfterCollection();
  await driver.readCounts!(signal);
  const { requests, elements } = host;
  const read = heapAfterCollection();
  await driver.readCounts!(signal);
  const secondReadBytes = heapAfterCollection() - read;
  const changed = web(7, "10.180.1.2:80");
  const second = routed(ports.with(7, changed), settings, first);
  const { operations, bytes } = await driver.sync(second, signal);
  host.counts.set(elementId("traffic-ips", `${changed.clusterIP} . tcp . 80`), 3);
  const { ports: counts } = await driver.readCounts!(signal);
  const { connections } = counts.get(changed.key)!;
  return { operations, bytes, requests, elements, connections, heapBytes: read - empty, secondReadBytes };
}

function web(i: number, at: string): ServicePort {
  const clusterIP = `172.${16 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
  return servicePort(`shop/web-${i}`, { clusterIP, endpoints: [endpoint(at)] });
}

function heapAfterCollection(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}
