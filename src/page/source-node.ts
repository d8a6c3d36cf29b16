// A node of a cluster that this process reads itself: files, or an API server, without a daemon.
import { nodeRoutes } from "../explain/node-routes.ts";
import type { BothRoutes } from "../explain/resolve.ts";
import type { Target } from "../inspect/target.ts";
import { families } from "../model/address.ts";
import type { Clock } from "../model/clock.ts";
import type { Snapshot } from "../model/snapshot.ts";
import type { Mode } from "../modes/mode.ts";
import { openSource } from "../sources/index.ts";
import { realWorld } from "../sources/world.ts";
import type { NodeObserver, PageNode } from "./node.ts";

/** Follows the Source until the signal aborts. Throws SourceError when it cannot be opened. */
export async function sourceNode(
  target: Pick<Target, "spec" | "node" | "config" | "disk">,
  mode: Mode,
  version: string,
  clock: Clock,
  signal: AbortSignal,
): Promise<PageNode> {
  const { spec, node, config, disk } = target;
  const source = await openSource(spec, node, { ...realWorld(clock), disk }, signal);
  const observers = new Set<NodeObserver>();
  let state: { readonly snapshot: Snapshot; readonly routes: BothRoutes } | null = null;
  const follow = async () => {
    for await (const snapshot of source.snapshots(signal)) {
      const routes = nodeRoutes(snapshot, node, config, {}, state?.routes ?? null);
      state = { snapshot, routes };
      for (const observer of observers)
        for (const family of families) observer.changed(family, routes[family].changed);
    }
  };
  follow().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return {
    name: node,
    version,
    spec,
    mode,
    config: () => config,
    status: () => null,
    snapshot: () => state?.snapshot ?? null,
    routes: () => state?.routes ?? null,
    problems: () => state?.snapshot.problems ?? none,
    kernel: null,
    observe(observer) {
      observers.add(observer);
      return () => observers.delete(observer);
    },
  };
}

const none: readonly never[] = [];
