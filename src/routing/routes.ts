// From a Snapshot to Routes: what happens at every Frontend to traffic from a pod, this node, or outside.
import type { FamilySettings } from "../config/resolve/settings.ts";
import { type Address, type Cidr, contains, hostCidr } from "../model/address.ts";
import { type Keyed, keyed } from "../model/keyed.ts";
import type { FamilySnapshot, PortKey, Protocol, ServicePort } from "../model/snapshot.ts";
import { choosePools, type Pool, type Pools } from "./pools.ts";

/** The sender: a pod of this node (as far as the detector can see), this node itself, or any other client. */
export type Sender = "pod" | "node" | "outside";

/** One place where traffic arrives. */
export type Frontend =
  | {
      readonly kind: "clusterIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | {
      readonly kind: "loadBalancerIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | {
      readonly kind: "externalIP";
      readonly address: Address;
      readonly protocol: Protocol;
      readonly port: number;
    }
  | { readonly kind: "nodePort"; readonly protocol: Protocol; readonly port: number };

/** `172.30.0.1/tcp/80`, or for a NodePort `node/tcp/30080`. */
export type FrontendId = string;

export type Target =
  | { readonly kind: "forward"; readonly pool: Pool; readonly masquerade: boolean }
  | { readonly kind: "reject" }
  | { readonly kind: "drop" };

/** What happens at one Frontend. */
export type Route = {
  readonly frontend: Frontend;
  readonly from: { readonly [sender in Sender]: Target };
  /** Sources that may use it; null: all. Others are dropped. */
  readonly allowed: readonly Cidr[] | null;
};

/** All Routes of one ServicePort. */
export type PortRoutes = {
  readonly port: ServicePort;
  readonly pools: Pools;
  readonly routes: readonly Route[];
  /** Frontends this ServicePort claims but another one holds. */
  readonly lost: readonly { readonly frontend: Frontend; readonly holder: PortKey }[];
};

/** All Routes of a family; immutable, shares what did not change with the Routes before. */
export type Routes = {
  readonly settings: FamilySettings;
  readonly serviceCIDRs: readonly Cidr[];
  readonly ports: Keyed<PortRoutes>;
  /** The ServicePorts that claim each Frontend, the holder first. */
  readonly claims: Keyed<readonly Claim[]>;
  /** Keys whose PortRoutes differ from the Routes before. */
  readonly changed: ReadonlySet<PortKey>;
};

export type Claim = { readonly key: PortKey; readonly kind: Frontend["kind"] };

/**
 * Routes of a Snapshot. `before` must be the Routes of the Snapshot before: then only changed keys are visited;
 * without it, or when the settings differ, everything is.
 */
export function route(before: Routes | null, snapshot: FamilySnapshot, settings: FamilySettings): Routes {
  const known = before !== null && before.settings === settings ? before : null;
  const visited = known === null ? allKeys(before, snapshot) : snapshot.changed;
  const touched = stakeClaims(known, snapshot, visited, settings);
  const claims = (known?.claims ?? keyed<readonly Claim[]>()).with(touched);
  const { dirty, contested } = settleClaims(known, touched, visited);
  const routed = new Map<PortKey, PortRoutes | undefined>();
  for (const key of dirty) {
    const port = snapshot.ports.get(key);
    const disputes = contested.has(key) ? claims : null;
    routed.set(key, port === undefined ? undefined : routePort(port, settings, disputes));
  }
  const ports = (known?.ports ?? keyed<PortRoutes>()).with(routed);
  return { settings, serviceCIDRs: snapshot.serviceCIDRs, ports, claims, changed: dirty };
}

/** Every Frontend a ServicePort claims; an address that is both external and a load balancer's counts once. */
export function frontendsOf(port: ServicePort, settings: FamilySettings): readonly Frontend[] {
  const { protocol } = port;
  const wanted: Frontend[] = [{ kind: "clusterIP", address: port.clusterIP, protocol, port: port.port }];
  for (const address of port.loadBalancerIPs)
    wanted.push({ kind: "loadBalancerIP", address, protocol, port: port.port });
  for (const address of settings.externalIPsAllowed ? port.externalIPs : []) {
    wanted.push({ kind: "externalIP", address, protocol, port: port.port });
  }
  if (port.nodePort !== 0) wanted.push({ kind: "nodePort", protocol, port: port.nodePort });
  if (wanted.length === 1) return wanted;
  const byId = new Map<FrontendId, Frontend>();
  for (const frontend of wanted.reverse()) byId.set(frontendId(frontend), frontend);
  return [...byId.values()].reverse();
}

export function frontendId(frontend: Frontend): FrontendId {
  const place = frontend.kind === "nodePort" ? "node" : frontend.address;
  return `${place}/${frontend.protocol}/${frontend.port}`;
}

/** `disputes` are the claims; null when no other ServicePort claims any of its Frontends. */
function routePort(
  port: ServicePort,
  settings: FamilySettings,
  disputes: Keyed<readonly Claim[]> | null,
): PortRoutes {
  const pools = choosePools(port, settings);
  const claimed = frontendsOf(port, settings);
  const lost = disputes === null ? nothingLost : lostBy(port, claimed, disputes);
  const taken = new Set(lost.map(({ frontend }) => frontend));
  const held = lost.length === 0 ? claimed : claimed.filter((frontend) => !taken.has(frontend));
  return {
    port,
    pools,
    routes: held.map((frontend) => routeFrontend(frontend, port, pools, settings)),
    lost,
  };
}

const nothingLost: PortRoutes["lost"] = [];

function lostBy(
  port: ServicePort,
  claimed: readonly Frontend[],
  claims: Keyed<readonly Claim[]>,
): PortRoutes["lost"] {
  const lost = claimed
    .map((frontend) => ({ frontend, holder: claims.get(frontendId(frontend))![0]!.key }))
    .filter(({ holder }) => holder !== port.key);
  return lost.length === 0 ? nothingLost : lost;
}

function routeFrontend(frontend: Frontend, port: ServicePort, pools: Pools, settings: FamilySettings): Route {
  switch (frontend.kind) {
    case "clusterIP":
      return { frontend, from: internalTargets(port, pools, settings), allowed: null };
    case "loadBalancerIP":
      return {
        frontend,
        from: externalTargets(port, pools, settings),
        allowed: allowedSources(port, settings),
      };
    case "externalIP":
    case "nodePort":
      return { frontend, from: externalTargets(port, pools, settings), allowed: null };
  }
}

/** Cluster IP: the internal policy picks the pool; every sender that is not a known pod is masqueraded. */
function internalTargets(port: ServicePort, pools: Pools, settings: FamilySettings): Route["from"] {
  const pool = port.internalPolicy === "local" ? pools.local : pools.cluster;
  const detects = settings.detector.kind !== "none";
  const others = targetOf(pool, pools, settings.masqueradeAll || detects);
  return { pod: targetOf(pool, pools, settings.masqueradeAll), node: others, outside: others };
}

/** From outside the external policy rules; pods of this node and the node itself reach the whole cluster. */
function externalTargets(port: ServicePort, pools: Pools, settings: FamilySettings): Route["from"] {
  if (port.externalPolicy === "cluster") {
    const target = targetOf(pools.cluster, pools, true);
    return { pod: target, node: target, outside: target };
  }
  const here = targetOf(pools.local, pools, false);
  const detects = settings.detector.kind !== "none";
  return {
    pod: detects ? targetOf(pools.cluster, pools, false) : here,
    node: targetOf(pools.cluster, pools, true),
    outside: here,
  };
}

function targetOf(pool: Pool, { anyUsable }: Pools, masquerade: boolean): Target {
  if (pool.endpoints.length > 0) return { kind: "forward", pool, masquerade };
  return anyUsable ? { kind: "drop" } : { kind: "reject" };
}

/** A node inside a range reaches a load-balancer address that it holds itself from that very address. */
function allowedSources(
  { sourceRanges, loadBalancerIPs }: ServicePort,
  { nodeIP }: FamilySettings,
): readonly Cidr[] | null {
  if (sourceRanges.length === 0) return null;
  const known = allowedBy.get(sourceRanges);
  if (known?.nodeIP === nodeIP && known.loadBalancerIPs === loadBalancerIPs) return known.allowed;
  const nodeAllowed = sourceRanges.some((range) => contains(range, nodeIP));
  const allowed = nodeAllowed ? [...sourceRanges, ...loadBalancerIPs.map(hostCidr)] : sourceRanges;
  allowedBy.set(sourceRanges, { nodeIP, loadBalancerIPs, allowed });
  return allowed;
}

/** All ports and addresses of a Service share one list of ranges, and so one list of allowed sources. */
const allowedBy = new WeakMap<
  readonly Cidr[],
  {
    readonly nodeIP: Address;
    readonly loadBalancerIPs: readonly Address[];
    readonly allowed: readonly Cidr[];
  }
>();

function allKeys(before: Routes | null, snapshot: FamilySnapshot): ReadonlySet<PortKey> {
  const keys = new Set(before?.ports.keys());
  for (const key of snapshot.ports.keys()) keys.add(key);
  return keys;
}

/** The claims on every Frontend that the visited ServicePorts claim or no longer claim; undefined: no claim is left. */
function stakeClaims(
  before: Routes | null,
  snapshot: FamilySnapshot,
  visited: ReadonlySet<PortKey>,
  settings: FamilySettings,
): ReadonlyMap<FrontendId, readonly Claim[] | undefined> {
  const touched = new Map<FrontendId, Claim[]>();
  // Copied once for each Frontend, without those visited, whose claims follow: thousands may claim the same one.
  const claimsOf = (id: FrontendId) => {
    let claims = touched.get(id);
    if (claims === undefined) {
      claims = (before?.claims.get(id) ?? noClaims).filter(({ key }) => !visited.has(key));
      touched.set(id, claims);
    }
    return claims;
  };
  for (const key of visited) {
    const old = before?.ports.get(key)?.port;
    for (const frontend of old === undefined ? noFrontends : frontendsOf(old, settings))
      claimsOf(frontendId(frontend));
    const now = snapshot.ports.get(key);
    for (const frontend of now === undefined ? noFrontends : frontendsOf(now, settings))
      claimsOf(frontendId(frontend)).push({ key, kind: frontend.kind });
  }
  return inOrder(touched);
}

function inOrder(
  touched: ReadonlyMap<FrontendId, Claim[]>,
): ReadonlyMap<FrontendId, readonly Claim[] | undefined> {
  const result = new Map<FrontendId, readonly Claim[] | undefined>();
  for (const [id, claims] of touched) {
    if (claims.length > 1) claims.sort(byRightToHold);
    result.set(id, claims.length === 0 ? undefined : claims);
  }
  return result;
}

const noFrontends: readonly Frontend[] = [];
const noClaims: readonly Claim[] = [];

/** A ServicePort whose Frontend changes hands must be routed again as well. Contested: all that may have lost one. */
function settleClaims(
  before: Routes | null,
  touched: ReadonlyMap<FrontendId, readonly Claim[] | undefined>,
  visited: ReadonlySet<PortKey>,
): { dirty: ReadonlySet<PortKey>; contested: ReadonlySet<PortKey> } {
  const affected = new Set<PortKey>();
  const contested = new Set<PortKey>();
  for (const [id, claims] of touched) {
    if (claims === undefined || (claims.length === 1 && visited.has(claims[0]!.key))) continue;
    const isHandedOver = before?.claims.get(id)?.[0]?.key !== claims[0]!.key;
    for (const { key } of claims) {
      contested.add(key);
      if (isHandedOver) affected.add(key);
    }
  }
  return { dirty: affected.size === 0 ? visited : new Set([...visited, ...affected]), contested };
}

/** A cluster IP cannot be taken over by another Service's external IP; among equals the key decides, not the arrival. */
function byRightToHold(a: Claim, b: Claim): number {
  return rank[a.kind] - rank[b.kind] || (a.key < b.key ? -1 : 1);
}

const rank = { clusterIP: 0, nodePort: 0, loadBalancerIP: 1, externalIP: 2 } as const satisfies Record<
  Frontend["kind"],
  number
>;
