// What one ServicePort adds: a virtual server for each Frontend, addresses, entries of sets, and sometimes a rule.
import type { FamilySettings } from "../../config/resolve/settings.ts";
import { type Address, contains, hostCidr, isLoopback } from "../../model/address.ts";
import type { Protocol, ServicePort } from "../../model/snapshot.ts";
import type { PlacedRule } from "../../plan/iptables/types.ts";
import { destinationKey } from "../../plan/ipvs/names.ts";
import {
  type DestinationId,
  type DestinationKey,
  type Entry,
  type Fragment,
  serverFlag,
  type VirtualServer,
  type WantedServer,
} from "../../plan/ipvs/types.ts";
import { isLocal, type Pool } from "../../routing/pools.ts";
import type { PortRoutes, Route } from "../../routing/routes.ts";
import { drop, from, rule } from "../iptables/rule.ts";
import { outFilter } from "./foundation.ts";
import { type Role, setName } from "./sets.ts";

export type Compiled = { readonly fragment: Fragment; readonly placed: readonly PlacedRule[] };

export function compilePort(routed: PortRoutes, settings: FamilySettings, scheduler: string): Compiled {
  const { port } = routed;
  const draft: Draft = { servers: [], addresses: [], entries: [], placed: [] };
  const add = (role: Role, entry: Entry) =>
    draft.entries.push({ set: setName(role, settings.family), entry });
  const subject: Subject = { routed, settings, draft, add, server: serverOf(port, scheduler) };
  for (const route of routed.routes) addFrontend(route, subject);
  for (const endpoint of port.endpoints) {
    if (!isLocal(endpoint, settings)) continue;
    add("loopBack", `${at(endpoint.address, port.protocol, endpoint.port)},${endpoint.address}`);
  }
  // Also where no NodePort answers: a load balancer must be able to check.
  if (port.healthCheckNodePort !== 0) add("healthCheck", String(port.healthCheckNodePort));
  const { placed, ...rest } = draft;
  return { fragment: { key: port.key, ...rest }, placed };
}

/** Addresses of this node at which NodePorts answer; never loopback, and never an address of a Service. */
export function nodePortIPs({
  nodePortAddresses: places,
  localAddresses,
}: FamilySettings): readonly Address[] {
  const others = localAddresses.filter((address) => !isLoopback(address));
  if (places.kind === "all") return others.filter((address) => !contains("fe80::/10", address));
  return others.filter((address) => places.cidrs.some((cidr) => contains(cidr, address)));
}

type Draft = {
  servers: WantedServer[];
  addresses: Address[];
  entries: Fragment["entries"][number][];
  placed: PlacedRule[];
};

type Subject = {
  readonly routed: PortRoutes;
  readonly settings: FamilySettings;
  readonly draft: Draft;
  readonly add: (role: Role, entry: Entry) => void;
  /** What all servers of the ServicePort have in common. */
  readonly server: Pick<VirtualServer, "protocol" | "scheduler" | "flags" | "timeoutSeconds">;
};

function serverOf({ protocol, affinity }: ServicePort, scheduler: string): Subject["server"] {
  const persistent = affinity === null ? 0 : serverFlag.persistent;
  const hashing = scheduler === "mh" ? serverFlag.hashSourcePort : 0;
  return { protocol, scheduler, flags: persistent | hashing, timeoutSeconds: affinity?.seconds ?? 0 };
}

function addFrontend({ frontend }: Route, subject: Subject): void {
  const { port, pools } = subject.routed;
  const { add, settings } = subject;
  const isLocalOnly = port.externalPolicy === "local";
  const external = isLocalOnly ? orElsewhere(pools.local, pools.cluster) : pools.cluster;
  switch (frontend.kind) {
    case "clusterIP": {
      const internal =
        port.internalPolicy === "local" ? orElsewhere(pools.local, pools.cluster) : pools.cluster;
      addServer(frontend.address, frontend.port, "address", internal, subject);
      addAddress(frontend.address, subject);
      add("clusterIP", at(frontend.address, port.protocol, port.port));
      return;
    }
    case "externalIP":
      addServer(frontend.address, frontend.port, "address", external, subject);
      if (!settings.localAddresses.includes(frontend.address)) addAddress(frontend.address, subject);
      add(isLocalOnly ? "externalIPLocal" : "externalIP", at(frontend.address, port.protocol, port.port));
      return;
    case "loadBalancerIP":
      addServer(frontend.address, frontend.port, "address", external, subject);
      if (!settings.localAddresses.includes(frontend.address)) addAddress(frontend.address, subject);
      add("loadBalancer", at(frontend.address, port.protocol, port.port));
      if (isLocalOnly) add("loadBalancerLocal", at(frontend.address, port.protocol, port.port));
      guard(frontend.address, subject);
      return;
    case "nodePort": {
      const addresses = nodePortIPs(settings);
      for (const address of addresses) addServer(address, frontend.port, "nodePort", external, subject);
      addNodePort(addresses, isLocalOnly, subject);
      return;
    }
  }
}

/** kube-proxy's ipvs mode prefers endpoints of this node to being silent: without one it goes on to others. */
function orElsewhere(local: Pool, cluster: Pool): Pool {
  return local.endpoints.length > 0 ? local : cluster;
}

function addServer(
  address: Address,
  port: number,
  kind: WantedServer["kind"],
  pool: Pool,
  { draft, server }: Subject,
): void {
  draft.servers.push({ kind, address, port, ...server, destinations: destinationsOf(pool) });
}

/** One map for all servers of a pool. */
function destinationsOf(pool: Pool): ReadonlyMap<DestinationKey, DestinationId> {
  let destinations = known.get(pool);
  if (destinations === undefined) {
    destinations = new Map(
      pool.endpoints.map(({ address, port }) => [destinationKey({ address, port }), { address, port }]),
    );
    known.set(pool, destinations);
  }
  return destinations;
}

const known = new WeakMap<Pool, ReadonlyMap<DestinationKey, DestinationId>>();

function addAddress(address: Address, { draft, add }: Subject): void {
  draft.addresses.push(address);
  add("ipvsIPs", address);
}

/** Source ranges of a balancer. What the node itself sends never meets the firewall chain, so it has a rule of its own. */
function guard(vip: Address, { routed: { port }, settings, draft, add }: Subject): void {
  if (port.sourceRanges.length === 0) return;
  const place = at(vip, port.protocol, port.port);
  for (const range of port.sourceRanges) add("sourceCidr", `${place},${asListed(range)}`);
  add("firewall", place);
  if (port.sourceRanges.some((range) => contains(range, settings.nodeIP))) {
    add("sourceIP", `${place},${vip}`);
    return;
  }
  draft.placed.push({
    table: "filter",
    chain: outFilter,
    rule: rule(from(vip), { kind: "ipvs", address: vip, protocol: port.protocol, port: port.port }, drop),
  });
}

function addNodePort(
  addresses: readonly Address[],
  isLocalOnly: boolean,
  { routed: { port }, add }: Subject,
): void {
  if (addresses.length === 0) return;
  const [all, local] = nodePortRoles[port.protocol];
  const entries =
    port.protocol === "sctp"
      ? addresses.map((address) => at(address, "sctp", port.nodePort))
      : [String(port.nodePort)];
  for (const entry of entries) {
    add(all, entry);
    if (isLocalOnly) add(local, entry);
  }
}

const nodePortRoles = {
  tcp: ["nodePortTcp", "nodePortLocalTcp"],
  udp: ["nodePortUdp", "nodePortLocalUdp"],
  sctp: ["nodePortSctp", "nodePortLocalSctp"],
} as const satisfies Record<Protocol, readonly [Role, Role]>;

function at(address: Address, protocol: Protocol, port: number): Entry {
  return `${address},${protocol}:${port}`;
}

/** The kernel lists a network of one address without its prefix length. */
function asListed(range: string): string {
  const address = range.slice(0, range.indexOf("/"));
  return hostCidr(address) === range ? address : range;
}
