// Checks whether the rules of a node match the cluster.

import type { ModeName } from "../src/config/modes.ts";
import { defaultConfig, nodeRoutes } from "../src/explain/node-routes.ts";
import { readAddresses } from "../src/host/netlink/route.ts";
import { differences } from "../src/inspect/differences.ts";
import { namespaceName, namespacePath } from "../src/inspect/playgrounds.ts";
import type { Family } from "../src/model/address.ts";
import type { Snapshot } from "../src/model/snapshot.ts";
import { modes } from "../src/modes/index.ts";
import { queryDaemon } from "../src/observe/status/client.ts";
import { traffic } from "./daemon.ts";

export async function isSynced(
  node: string,
  mode: ModeName,
  snapshot: Snapshot,
  statusSocket: string,
): Promise<boolean> {
  const at = { netns: namespacePath(namespaceName(node)) };
  const found = await readAddresses(at);
  const local = (family: Family) =>
    found
      .filter((each) => each.family === family)
      .map(({ address }) => address)
      .sort();
  const localAddresses = { ipv4: local("ipv4"), ipv6: local("ipv6") };
  // A daemon that is not running has no relays.
  const relays = () => queryDaemon(statusSocket, "/relays").catch(() => ({}));
  const config = defaultConfig(mode);
  const routes = nodeRoutes(snapshot, node, config, { localAddresses, traffic });
  const routesOf = (family: Family) => Promise.resolve(routes[family]);
  const { signal } = new AbortController();
  return (await differences(modes[mode], { at, routes: routesOf, config, relays, signal })).length === 0;
}
