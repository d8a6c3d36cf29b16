// Which Endpoints of a ServicePort may be chosen on this node: cluster-wide and local, with fallbacks and hints.
import type { Endpoint, ServicePort } from "../model/snapshot.ts";

/** Endpoints to choose from, uniformly, and why it is these. */
export type Pool = {
  readonly endpoints: readonly Endpoint[];
  readonly because: PoolReason;
};

export type PoolReason =
  | "not needed by any frontend"
  | "the Service has no usable endpoint"
  | "all ready endpoints"
  | "ready endpoints hinted for this node"
  | "ready endpoints hinted for this node's zone"
  | "no endpoint is ready: all that are serving while they terminate"
  | "ready endpoints on this node"
  | "no endpoint on this node is ready: those serving while they terminate"
  | "no usable endpoint on this node";

export type Pools = {
  /** For traffic with policy Cluster. */
  readonly cluster: Pool;
  /** For traffic with policy Local. */
  readonly local: Pool;
  /** Whether any endpoint anywhere could answer: decides between reject and drop where `local` is empty. */
  readonly anyUsable: boolean;
};

/** Of two pools of one ServicePort, which need not be the same objects: local and cluster-wide ones have different reasons. */
export function isSamePool(a: Pool, b: Pool): boolean {
  return a.because === b.because;
}

/** The node as far as pools depend on it. */
export type Place = { readonly nodeName: string; readonly zone: string };

export function choosePools(port: ServicePort, place: Place): Pools {
  const wants = policiesInUse(port);
  const cluster = wants.cluster ? clusterPool(port.endpoints, place) : unneeded;
  const local = wants.local ? localPool(port.endpoints, place) : unneeded;
  const anyUsable =
    cluster.endpoints.length > 0 || (wants.local && port.endpoints.some(({ state }) => state !== "unready"));
  return { cluster, local, anyUsable };
}

/** Whether an Endpoint runs on this node. An unnamed node has no local endpoints. */
export function isLocal(endpoint: Endpoint, place: Place): boolean {
  return endpoint.nodeName !== "" && endpoint.nodeName === place.nodeName;
}

/** Whether a ServicePort can be reached by anything but its cluster IP. */
export function isExternallyReachable(port: ServicePort): boolean {
  return port.nodePort !== 0 || port.loadBalancerIPs.length > 0 || port.externalIPs.length > 0;
}

function policiesInUse(port: ServicePort): { cluster: boolean; local: boolean } {
  const external = isExternallyReachable(port);
  return {
    cluster: port.internalPolicy === "cluster" || external,
    local: port.internalPolicy === "local" || (port.externalPolicy === "local" && external),
  };
}

const unneeded: Pool = { endpoints: [], because: "not needed by any frontend" };
const noEndpoint: Pool = { endpoints: [], because: "the Service has no usable endpoint" };
const noLocalEndpoint: Pool = { endpoints: [], because: "no usable endpoint on this node" };

function clusterPool(endpoints: readonly Endpoint[], place: Place): Pool {
  const ready = only(isReady, endpoints);
  if (ready.length > 0) return byTopology(ready, place);
  const draining = only(isDraining, endpoints);
  if (draining.length === 0) return noEndpoint;
  return { endpoints: draining, because: "no endpoint is ready: all that are serving while they terminate" };
}

/** Hints of a kind count only if every ready endpoint carries one and some match; node hints beat zone hints. */
function byTopology(ready: readonly Endpoint[], place: Place): Pool {
  const sameNode = hinted(ready, "nodeHints", place.nodeName);
  if (sameNode !== null) return { endpoints: sameNode, because: "ready endpoints hinted for this node" };
  const sameZone = hinted(ready, "zoneHints", place.zone);
  if (sameZone !== null)
    return { endpoints: sameZone, because: "ready endpoints hinted for this node's zone" };
  return { endpoints: ready, because: "all ready endpoints" };
}

function hinted(
  ready: readonly Endpoint[],
  kind: "nodeHints" | "zoneHints",
  here: string,
): readonly Endpoint[] | null {
  if (here === "") return null;
  const matching: Endpoint[] = [];
  for (const endpoint of ready) {
    const hints = endpoint[kind];
    if (hints.length === 0) return null;
    if (hints.includes(here)) matching.push(endpoint);
  }
  return matching.length > 0 ? matching : null;
}

function localPool(endpoints: readonly Endpoint[], place: Place): Pool {
  const here = endpoints.filter((endpoint) => isLocal(endpoint, place));
  const ready = only(isReady, here);
  if (ready.length > 0) return { endpoints: ready, because: "ready endpoints on this node" };
  const draining = only(isDraining, here);
  if (draining.length === 0) return noLocalEndpoint;
  return {
    endpoints: draining,
    because: "no endpoint on this node is ready: those serving while they terminate",
  };
}

function isReady({ state }: Endpoint): boolean {
  return state === "ready";
}

function isDraining({ state }: Endpoint): boolean {
  return state === "draining";
}

/** The list itself when all of it matches: most Services share one array with the Snapshot. */
function only(matches: (endpoint: Endpoint) => boolean, endpoints: readonly Endpoint[]): readonly Endpoint[] {
  return endpoints.every(matches) ? endpoints : endpoints.filter(matches);
}
