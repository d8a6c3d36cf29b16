// What a Trace costs: a Service may have thousands of endpoints and addresses.
import { expect, it } from "vitest";
import { endpoint, ipv4Settings, routed, servicePort } from "../../test/support/routed.ts";
import { nftables } from "../modes/nftables/mode.ts";
import type { Packet } from "../routing/decide.ts";
import { trace } from "./trace.ts";

it("computes the Routes of a Service once, however many endpoints and addresses it has", () => {
  expect(readsOfPools(60)).toBe(readsOfPools(3));
});

it("looks for endpoints with a hint for this node once, however many are left out", () => {
  expect(readsOfHints(120)).toBeLessThan(2.2 * readsOfHints(60));
});

/** How often hints for nodes are read where so many endpoints are hinted for this zone, and as many for another. */
function readsOfHints(count: number): number {
  let reads = 0;
  const hinted = (address: string, zone: string) =>
    Object.defineProperty(endpoint(`${address}:8080`, { zoneHints: [zone] }), "nodeHints", {
      get() {
        reads++;
        return [];
      },
    });
  const numbers = Array.from({ length: count }, (_, i) => i);
  const port = servicePort("shop/web", {
    endpoints: numbers.flatMap((i) => [hinted(`10.180.0.${i}`, "a"), hinted(`10.180.1.${i}`, "b")]),
  });
  const packet: Packet = {
    from: { origin: "node", address: "192.168.0.2" },
    to: { address: port.clusterIP, protocol: "tcp", port: port.port },
  };
  const { leftOut } = trace(nftables, routed([port], { ...ipv4Settings, zone: "a" }), packet);
  expect(leftOut).toHaveLength(count);
  expect(leftOut[0]!.reason).toBe("hinted for zone b, and this node is in zone a");
  return reads;
}

/** How often the policy of a Service with so many endpoints and addresses is read. */
function readsOfPools(count: number): number {
  let reads = 0;
  const numbers = Array.from({ length: count }, (_, i) => i);
  const port = servicePort("shop/web", {
    endpoints: numbers.map((i) => endpoint(`10.180.${i >> 8}.${i & 255}:8080`)),
    externalIPs: numbers.map((i) => `198.51.${i >> 8}.${i & 255}`),
  });
  const counted = Object.defineProperty({ ...port }, "internalPolicy", {
    get() {
      reads++;
      return port.internalPolicy;
    },
  });
  const routes = routed([counted]);
  const from: Packet["from"] = { origin: "node", address: "192.168.0.2" };
  for (const address of [port.clusterIP, ...port.externalIPs]) {
    const packet: Packet = { from, to: { address, protocol: "tcp", port: port.port } };
    const { candidates } = trace(nftables, routes, packet);
    expect(candidates).toHaveLength(count);
    for (const { because } of candidates) expect(because.startsWith("sees this node")).toBe(true);
  }
  return reads;
}
