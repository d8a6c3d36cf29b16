// To which Service and endpoint a tracked flow belongs, by the Routes of now; a few lookups for each flow.
import { type Address, isLoopback } from "../model/address.ts";
import type { FlowView } from "../model/flow.ts";
import { anyContains } from "../model/networks.ts";
import {
  type Endpoint,
  endpointKey,
  type PortKey,
  type Protocol,
  type ServicePort,
} from "../model/snapshot.ts";
import type { Behavior } from "../routing/behavior.ts";
import { nodePortScope } from "../routing/decide.ts";
import {
  type FrontendId,
  frontendId,
  holderOf,
  type PortRoutes,
  type Route,
  type Routes,
} from "../routing/routes.ts";
import { protocolOf } from "./activity.ts";

export type Attribution =
  | ServiceFlow
  | DeletedServiceFlow
  | { readonly kind: "other"; readonly because: OtherReason };

/** The destination is a Frontend of this ServicePort. */
export type ServiceFlow = {
  readonly kind: "service";
  readonly routed: PortRoutes;
  readonly route: Route;
  readonly to: Destination;
};

/** Where a flow to a Frontend leads. */
export type Destination =
  | { readonly kind: "endpoint"; readonly endpoint: Endpoint }
  /** Translated to this place, which is no longer an endpoint of the ServicePort. */
  | { readonly kind: "gone"; readonly address: Address; readonly port: number }
  /** Translated to a socket of Turnout, which connects to an endpoint itself. */
  | { readonly kind: "relay" }
  /** Not translated: it started while the Frontend had no rules. */
  | { readonly kind: "untranslated" };

/** Translated at an address that no ServicePort has now, but that only a Service can have had. */
export type DeletedServiceFlow = {
  readonly kind: "deleted";
  readonly endpoint: { readonly address: Address; readonly port: number };
  /** The Service, where it is known. */
  readonly service: string | null;
  readonly because: string;
};

export type OtherReason =
  | "Services do not have this protocol"
  | "no Service has this destination, and it was not translated"
  | "translated by other rules, such as a hostPort: no Service has this destination";

export type AttributionOptions = {
  /** own: flows end at sockets of the daemon, and endpoints are not visible in conntrack. */
  readonly conntrack: "shared" | "own";
  /** Frontends that were removed lately. */
  readonly removed?: ReadonlyMap<FrontendId, RemovedFrontend>;
};

/** With its ServicePort and the endpoints, `address:port`, that this one had. */
export type RemovedFrontend = { readonly label: string; readonly endpoints: readonly string[] };

export type Attribute = (flow: FlowView) => Attribution;

/** A function for the flows of one family. Build it once for a dump; it keeps tables that are filled as they are used. */
export function attributor(routes: Routes, behavior: Behavior, options: AttributionOptions): Attribute {
  const nodePortsAt = nodePortReader(routes, behavior);
  const removedBy = removalTest(routes, options.removed ?? new Map());
  return (flow) => {
    const protocol = protocolOf(flow);
    if (protocol === null) return noProtocol;
    const { destination, destinationPort: port } = flow;
    const byAddress = routeAt(routes, `${destination}/${protocol}/${port}`);
    const nodePorts = byAddress === null ? nodePortsAt(destination) : null;
    const found = nodePorts === null ? byAddress : routeAt(routes, `node/${protocol}/${port}`);
    if (found !== null) {
      const isRelayed = options.conntrack === "own" || nodePorts === "relayed";
      return { kind: "service", ...found, to: isRelayed ? relay : destinationOf(flow, found.routed) };
    }
    if (!isTranslated(flow)) return notTranslated;
    const removal = removedBy(flow, protocol);
    if (removal === null) return foreign;
    return { kind: "deleted", endpoint: answererOf(flow), ...removal };
  };
}

const noProtocol: Attribution = { kind: "other", because: "Services do not have this protocol" };
const notTranslated: Attribution = {
  kind: "other",
  because: "no Service has this destination, and it was not translated",
};
const foreign: Attribution = {
  kind: "other",
  because: "translated by other rules, such as a hostPort: no Service has this destination",
};

function isTranslated(flow: FlowView): boolean {
  return flow.replySourcePort !== flow.destinationPort || flow.replySource !== flow.destination;
}

function answererOf({ replySource: address, replySourcePort: port }: FlowView): {
  readonly address: Address;
  readonly port: number;
} {
  return { address, port };
}

type Held = { readonly routed: PortRoutes; readonly route: Route };

function routeAt(routes: Routes, id: FrontendId): Held | null {
  const key = holderOf(routes, id);
  return key === undefined ? null : (heldBy(routes, key).get(id) ?? null);
}

/** Computed once for all flows to a ServicePort, which may have thousands of Frontends. */
function heldBy(routes: Routes, key: PortKey): ReadonlyMap<FrontendId, Held> {
  const { settings, servicePorts } = routes;
  const port = servicePorts.get(key)!;
  const lost = routes.lost.get(key);
  const known = knownRoutes.get(port);
  if (known?.settings === settings && known.lost === lost) return known.held;
  const routed = routes.ports.get(key)!;
  const held = new Map(routed.routes.map((route) => [frontendId(route.frontend), { routed, route }]));
  knownRoutes.set(port, { settings, lost, held });
  return held;
}

/** Of ServicePorts, with what else their Routes are computed from. */
const knownRoutes = new WeakMap<
  ServicePort,
  Pick<Routes, "settings"> & {
    readonly lost: PortRoutes["lost"] | undefined;
    readonly held: ReadonlyMap<FrontendId, Held>;
  }
>();

function destinationOf(flow: FlowView, { port }: PortRoutes): Destination {
  if (!isTranslated(flow)) return untranslated;
  const place = answererOf(flow);
  const endpoint = endpointsByKey(port).get(endpointKey(place));
  return endpoint === undefined ? { kind: "gone", ...place } : { kind: "endpoint", endpoint };
}

const relay: Destination = { kind: "relay" };
const untranslated: Destination = { kind: "untranslated" };

type NodePorts = "translated" | "relayed" | null;

/** How NodePorts are served at an address; null: they are not, and what arrives there may be a hostPort of the same number. */
function nodePortReader({ settings }: Routes, behavior: Behavior): (address: Address) => NodePorts {
  const at = (address: Address): NodePorts => {
    const scope = nodePortScope(address, settings, behavior);
    if (scope === "localhost") return settings.nftLocalhost === "serve" ? "relayed" : null;
    return scope === "everything" ? "translated" : null;
  };
  const local = new Map(settings.localAddresses.map((address) => [address, at(address)]));
  return (address) => {
    const known = local.get(address);
    if (known !== undefined) return known;
    return isLoopback(address) ? at(address) : null;
  };
}

type Removal = Pick<DeletedServiceFlow, "service" | "because">;

/**
 * Why a translated flow to no known Frontend belonged to a Service; null: it may belong to other software. Only Services have cluster IPs
 * and addresses inside a ServiceCIDR; any other address must be known as removed. Flows in other zones may belong to a CNI plugin that
 * forwards Services itself.
 */
function removalTest(
  routes: Routes,
  removed: ReadonlyMap<FrontendId, RemovedFrontend>,
): (flow: FlowView, protocol: Protocol) => Removal | null {
  const local = new Set(routes.settings.localAddresses);
  let clusterIPs: ReadonlyMap<Address, ServicePort> | null = null;
  return (flow, protocol) => {
    const { destination, destinationPort: port, zone } = flow;
    const atNode = local.has(destination) || isLoopback(destination);
    const gone =
      removed.get(`${destination}/${protocol}/${port}`) ??
      (atNode ? removed.get(`node/${protocol}/${port}`) : undefined);
    // Another program may translate at the same place by now: then to other endpoints.
    if (gone?.endpoints.includes(endpointKey(answererOf(flow))))
      return { service: gone.label, because: `${gone.label} was removed from this address` };
    if (zone !== 0) return null;
    clusterIPs ??= clusterIPsOf(routes);
    const owner = clusterIPs.get(destination);
    if (owner !== undefined)
      return {
        service: owner.service,
        because: `${destination} is the cluster IP of ${owner.service}, which no longer has port ${port}/${protocol}`,
      };
    if (!anyContains(routes.serviceCIDRs, destination)) return null;
    return {
      service: null,
      because: `${destination} is inside a ServiceCIDR, but belongs to no Service now`,
    };
  };
}

function clusterIPsOf({ servicePorts }: Routes): ReadonlyMap<Address, ServicePort> {
  const found = new Map<Address, ServicePort>();
  for (const port of servicePorts.values()) found.set(port.clusterIP, port);
  return found;
}

/** By `endpointKey`. */
export function endpointsByKey(port: ServicePort): ReadonlyMap<string, Endpoint> {
  let known = knownEndpoints.get(port);
  if (known === undefined) {
    known = new Map(port.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
    knownEndpoints.set(port, known);
  }
  return known;
}

const knownEndpoints = new WeakMap<ServicePort, ReadonlyMap<string, Endpoint>>();
