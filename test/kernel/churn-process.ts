// A process that syncs one changed cluster after the other into a namespace, until it is killed.

import { openNftables } from "../../src/modes/nftables/host/driver.ts";
import type { Routes } from "../../src/routing/routes.ts";
import { ipv4Settings, routed } from "../support/routed.ts";
import { type ChurnOrder, churned } from "./churn.ts";

const { netns, seed, owned } = JSON.parse(process.argv[2]!) as ChurnOrder;
const { signal } = new AbortController();

void (async () => {
  const driver = await openNftables({ family: "ip", netns, owned });
  process.stdout.write("ready\n");
  let routes: Routes | null = null;
  for (let step = 0; ; step++) {
    routes = routed(churned(seed, step), ipv4Settings, routes);
    const { refused } = await driver.sync(routes, signal);
    if (refused.length > 0) throw new Error(refused.map(({ message }) => message).join("; "));
  }
})();
