// Services designed to be slow: many source ranges, many addresses times endpoints, many endpoints; and how long other Services wait.
import { identify } from "../src/manifests/identity.ts";
import { parseService } from "../src/manifests/service.ts";
import { keyed } from "../src/model/keyed.ts";
import type { Endpoint, ServicePort } from "../src/model/snapshot.ts";
import { openNftables } from "../src/modes/nftables/host/driver.ts";
import { route } from "../src/routing/routes.ts";
import type { Namespace } from "../test/kernel/netns.ts";
import { numberedService, oneAddressSettings } from "../test/support/numbered.ts";
import { endpoint, servicePort } from "../test/support/routed.ts";
import { publish, type Row } from "./lib/measure.ts";
import { inNamespace, startAsRoot } from "./lib/run.ts";

const { signal } = new AbortController();

startAsRoot(async () => {
  const rows: Row[] = [];
  for (const count of [1000, 10_000, 50_000, 100_000])
    rows.push(...(await measure(`${count.toLocaleString("en")} source ranges`, () => guarded(count))));
  for (const count of [100, 1000, 2000])
    rows.push(
      ...(await measure(
        `${count.toLocaleString("en")} addresses × ${count.toLocaleString("en")} endpoints`,
        () => [wide(count, count)],
      )),
    );
  rows.push(...(await measure("1 address × 100,000 endpoints", () => [wide(0, 100_000)])));
  publish(rows);
});

/** From objects to the kernel, next to a thousand ordinary Services. */
function measure(what: string, make: () => readonly ServicePort[]): Promise<Row[]> {
  return inNamespace((netns) => measureIn(netns, what, make));
}

async function measureIn(netns: Namespace, what: string, make: () => readonly ServicePort[]): Promise<Row[]> {
  const driver = await openNftables({ family: "ip", netns: netns.path });
  const others = keyed(
    Array.from({ length: 1000 }, (_, i) => numberedService(i, 3)).map((port) => [port.key, port] as const),
  );
  const before = route(null, { ports: others, changed: new Set(), serviceCIDRs: [] }, oneAddressSettings);
  await driver.sync(before, signal);
  const stalls = watchStalls();
  const started = performance.now();
  const added = make().map((port) => [port.key, port] as const);
  const changed = new Set(added.map(([key]) => key));
  const routes = route(before, { ports: others.with(added), changed, serviceCIDRs: [] }, oneAddressSettings);
  const { operations } = await driver.sync(routes, signal);
  const ms = performance.now() - started;
  const longest = stalls.stop();
  await driver.close();
  return [
    { what: `${what}: Sync`, value: ms, unit: "ms" },
    { what: `${what}: kernel objects written`, value: operations, unit: "" },
    { what: `${what}: longest stall of the event loop`, value: longest, unit: "ms" },
  ];
}

function watchStalls(): { stop(): number } {
  let [last, longest] = [performance.now(), 0];
  const timer = setInterval(tick, 1);
  return {
    stop: () => {
      tick();
      clearInterval(timer);
      return longest;
    },
  };

  function tick(): void {
    const now = performance.now();
    longest = Math.max(longest, now - last);
    last = now;
  }
}

/** Two ports with two load-balancer addresses. */
function guarded(count: number): readonly ServicePort[] {
  const loadBalancerSourceRanges = Array.from(
    { length: count },
    (_, i) => `${20 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}.${(i * 16) & 240}/28`,
  );
  const object = {
    metadata: { namespace: "shop", name: "guarded" },
    spec: {
      type: "LoadBalancer",
      clusterIP: "172.31.0.1",
      ports: [
        { name: "a", port: 80 },
        { name: "b", port: 443 },
      ],
      loadBalancerSourceRanges,
    },
    status: { loadBalancer: { ingress: [{ ip: "198.51.100.1" }, { ip: "198.51.100.2" }] } },
  };
  const { value } = parseService(identify("Service", object), object);
  const endpoints = endpointsOf(10);
  return value!.ipv4.map((port) => ({ ...port, endpoints }));
}

function wide(addresses: number, endpoints: number): ServicePort {
  return servicePort("shop/wide", {
    clusterIP: "172.31.0.1",
    externalIPs: Array.from({ length: addresses }, (_, i) => `198.18.${i >> 8}.${i & 255}`),
    endpoints: endpointsOf(endpoints),
  });
}

function endpointsOf(count: number): Endpoint[] {
  return Array.from({ length: count }, (_, i) =>
    endpoint(`10.${200 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}:8080`),
  );
}
