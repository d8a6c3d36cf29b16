// A process that makes one Service large and small again, until it receives a signal; prints a line after each Sync.
import type { ServicePort } from "../../src/model/snapshot.ts";
import { openNftables } from "../../src/modes/nftables/host/driver.ts";
import type { Routes } from "../../src/routing/routes.ts";
import { endpoint, ipv4Settings, routed, servicePort } from "../support/routed.ts";

const { signal } = new AbortController();

void (async () => {
  const driver = await openNftables({ family: "ip", netns: process.argv[2]! });
  let isEnding = false;
  process.stdin.on("data", () => {
    isEnding = true;
  });
  let routes: Routes | null = null;
  for (let i = 0; !isEnding; i++) {
    // 3,000 addresses × 2 endpoints are above the limit.
    routes = routed([crossing(i % 2 === 0 ? 3 : 3000)], ipv4Settings, routes);
    const { operations, refused } = await driver.sync(routes, signal);
    if (refused.length > 0) throw new Error(refused.map(({ message }) => message).join("; "));
    process.stdout.write(`${operations}\n`);
  }
  const { differences } = await driver.verify(signal);
  if (differences > 0) throw new Error(`the kernel differs from the Plan in ${differences} objects`);
  await driver.close();
  process.exit(0);
})();

/** UDP: what is lost is not sent again. */
function crossing(addresses: number): ServicePort {
  return servicePort("shop/wide", {
    protocol: "udp",
    clusterIP: "172.30.0.200",
    nodePort: 30_200,
    externalIPs: Array.from({ length: addresses }, (_, i) => `198.18.${i >> 8}.${i & 255}`),
    endpoints: [endpoint("10.180.0.1:8080"), endpoint("10.180.1.1:8080")],
  });
}
