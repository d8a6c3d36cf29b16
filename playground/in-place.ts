// Whether the kernel of a node holds what the cluster asks for now.

import type { ModeName } from "../src/config/modes.ts";
import { defaultConfig, nodeRoutes } from "../src/explain/node-routes.ts";
import { readAddresses } from "../src/host/netlink/route.ts";
import { namespaceName, namespacePath } from "../src/inspect/playgrounds.ts";
import type { Family } from "../src/model/address.ts";
import type { Snapshot } from "../src/model/snapshot.ts";
import { differences } from "../src/modes/differences.ts";
import { ask } from "../src/observe/status/client.ts";

export async function isInPlace(
  node: string,
  mode: ModeName,
  snapshot: Snapshot,
  statusSocket: string,
): Promise<boolean> {
  const place = { netns: namespacePath(namespaceName(node)) };
  const found = await readAddresses(place);
  const local = (family: Family) =>
    found
      .filter((each) => each.family === family)
      .map(({ address }) => address)
      .sort();
  const localAddresses = { ipv4: local("ipv4"), ipv6: local("ipv6") };
  // A daemon that is away has none.
  const relays = () => ask(statusSocket, "/relays").catch(() => ({}));
  const wanted = { mode, config: defaultConfig(mode), relays };
  const routes = nodeRoutes(snapshot, node, wanted.config, { localAddresses });
  const routesOf = (family: Family) => Promise.resolve(routes[family]);
  return (await differences(routesOf, wanted, place, new AbortController().signal)).length === 0;
}
