// Whether the kernel of a node holds what the cluster asks for now.
import { defaultConfig, type ExplainedMode, nodeRoutes } from "../explain/node-routes.ts";
import { readAddresses } from "../host/netlink/route.ts";
import type { Family } from "../model/address.ts";
import type { Snapshot } from "../model/snapshot.ts";
import { differences } from "../sync/differences.ts";
import { namespaceName, namespacePath } from "./net/namespaces.ts";

/** Longer than a change needs from the API to the kernel. */
const quietMs = 700;

/** `quietFor`: milliseconds since anything changed in the API or on the node. */
export async function isInPlace(
  node: string,
  mode: ExplainedMode,
  snapshot: Snapshot,
  quietFor: number,
): Promise<boolean> {
  // The rules of userspace mode lead to ports that only the daemon knows: that it rests must be enough.
  if (mode === "userspace") return quietFor > quietMs;
  const place = { netns: namespacePath(namespaceName(node)) };
  const found = await readAddresses(place);
  const local = (family: Family) =>
    found
      .filter((each) => each.family === family)
      .map(({ address }) => address)
      .sort();
  const localAddresses = { ipv4: local("ipv4"), ipv6: local("ipv6") };
  const wanted = { mode, config: defaultConfig(mode) };
  const routes = nodeRoutes(snapshot, node, wanted.config, { localAddresses });
  return (await differences(routes, wanted, place, new AbortController().signal)).length === 0;
}
